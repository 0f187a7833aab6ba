/* job_conf.xml: plugins, handlers, destinations, resources, tools, limits; all their settings are
 * <param id="NAME">VALUE</param>. */
#include <errno.h>

#include "agent/import/galaxy.h"
#include "base/format/xml.h"
#include "base/mem.h"

static struct str attribute(const struct xml *x, const char *name)
{
        return str_of(xml_get(x, name));
}

/* Adds a note for an element of the form that has no equivalent. */
static void note_unknown(struct galaxy_conf *c, const struct xml *x, const char *within)
{
        galaxy_note(c, x->line, "<%s> in %s has no equivalent", x->name, within);
}

static void read_param(struct galaxy_conf *c, struct galaxy_words *to, const struct xml *x)
{
        const char *from = xml_get(x, "from_environ");

        if (from)
                galaxy_note(c, x->line,
                            "param %s takes its value from the variable %s of Galaxy's process, which is not "
                            "known here",
                            xml_get(x, "id") ? xml_get(x, "id") : "", from);
        else
                galaxy_add_word(to, attribute(x, "id"), xml_text(x), x->line);
}

static void read_plugins(struct galaxy_conf *c, const struct xml *plugins)
{
        for (const struct xml *x = plugins->first; x; x = x->next) {
                struct galaxy_runner *r;
                const char *workers = xml_get(x, "workers");

                if (!xml_is(x, "plugin")) {
                        note_unknown(c, x, "plugins");
                        continue;
                }
                r = galaxy_add_runner(c, attribute(x, "id"), x->line);
                r->load = mem_dupz(xml_get(x, "load"));
                if (!workers)
                        workers = xml_get(plugins, "workers");
                if (workers)
                        galaxy_add_word(&r->params, STR("workers"), str_of(workers), x->line);
                for (const struct xml *p = x->first; p; p = p->next)
                        if (xml_is(p, "param"))
                                read_param(c, &r->params, p);
                        else
                                note_unknown(c, p, "a plugin");
        }
}

static void xml_read_env(struct galaxy_conf *c, struct galaxy_place *p, const struct xml *x)
{
        BUF_CLEANUP struct buf line = {0};

        if (xml_get(x, "file"))
                buf_printf(&line, ". %s", xml_get(x, "file"));
        else if (xml_get(x, "exec"))
                buf_addz(&line, xml_get(x, "exec"));
        if (line.n)
                galaxy_add_word(&p->scripts, STR_NONE, buf_view(&line), x->line);
        else if (xml_get(x, "raw") && str_ieqz(attribute(x, "raw"), "true"))
                galaxy_note(c, x->line,
                            "variable %s is set as the shell reads it (raw), which a queue cannot: set it in "
                            "the job",
                            xml_get(x, "id") ? xml_get(x, "id") : "");
        else
                galaxy_add_word(&p->environment, attribute(x, "id"), xml_text(x), x->line);
}

static void xml_read_tags(struct galaxy_place *p, const struct xml *x)
{
        struct str tags = attribute(x, "tags"), tag;

        while (str_cut(&tags, ',', &tag))
                if (str_trim(tag).n)
                        galaxy_add_word(&p->tags, str_trim(tag), STR_NONE, x->line);
}

static void read_destination(struct galaxy_conf *c, const struct xml *x)
{
        struct galaxy_place *p = galaxy_add_place(c, attribute(x, "id"), x->line);

        p->runner = mem_dupz(xml_get(x, "runner"));
        xml_read_tags(p, x);
        for (const struct xml *i = x->first; i; i = i->next) {
                if (xml_is(i, "param"))
                        read_param(c, &p->params, i);
                else if (xml_is(i, "env"))
                        xml_read_env(c, p, i);
                else if (xml_is(i, "resubmit"))
                        galaxy_add_word(&p->params, STR("resubmit"), STR_NONE, i->line);
                else
                        note_unknown(c, i, "a destination");
        }
}

static void read_destinations(struct galaxy_conf *c, const struct xml *destinations)
{
        c->default_place = mem_dupz(xml_get(destinations, "default"));
        c->default_line = destinations->line;
        for (const struct xml *x = destinations->first; x; x = x->next) {
                if (xml_is(x, "destination"))
                        read_destination(c, x);
                else
                        note_unknown(c, x, "destinations");
        }
}

static void xml_read_tools(struct galaxy_conf *c, const struct xml *tools)
{
        for (const struct xml *x = tools->first; x; x = x->next) {
                BUF_CLEANUP struct buf id = {0};
                struct galaxy_tool *t;

                if (!xml_is(x, "tool")) {
                        note_unknown(c, x, "tools");
                        continue;
                }
                if (xml_get(x, "id"))
                        buf_addz(&id, xml_get(x, "id"));
                else
                        buf_printf(&id, "class %s", xml_get(x, "class") ? xml_get(x, "class") : "?");
                t = galaxy_add_tool(c, x->line);
                t->id = buf_take(&id);
                t->place = mem_dupz(xml_get(x, "destination"));
        }
}

static void xml_read_limits(struct galaxy_conf *c, const struct xml *limits)
{
        for (const struct xml *x = limits->first; x; x = x->next) {
                struct galaxy_limit *l;

                if (!xml_is(x, "limit")) {
                        note_unknown(c, x, "limits");
                        continue;
                }
                l = galaxy_add_limit(c, x->line);
                l->type = mem_dupz(xml_get(x, "type"));
                l->id = mem_dupz(xml_get(x, "id"));
                l->tag = mem_dupz(xml_get(x, "tag"));
                l->value = str_dupz(xml_text(x));
        }
}

int galaxy_read_xml(struct galaxy_conf *c, struct str text, struct err *err)
{
        static const struct {
                const char *name;
                void (*read)(struct galaxy_conf *, const struct xml *);
        } parts[] = {{"plugins", read_plugins},
                     {"destinations", read_destinations},
                     {"tools", xml_read_tools},
                     {"limits", xml_read_limits}};
        struct xml *root;
        int r = xml_parse(c->file, text, &root, err);

        if (r != 0)
                return r;
        if (!xml_is(root, "job_conf"))
                r = err_set(err, -EINVAL, "%s:%u: <%s> is not Galaxy's <job_conf>", c->file, root->line,
                            root->name);
        for (const struct xml *x = root->first; x && r == 0; x = x->next) {
                size_t i = 0, n = sizeof(parts) / sizeof(*parts);

                while (i < n && !xml_is(x, parts[i].name))
                        i++;
                if (i < n)
                        parts[i].read(c, x);
                else if (xml_is(x, "handlers"))
                        galaxy_note(c, x->line, "handlers are processes of Galaxy; droverd needs none");
                else if (xml_is(x, "resources"))
                        galaxy_note(c, x->line,
                                    "resources that users choose are said in the submit file: request_cpus, "
                                    "request_memory, allowed_execute_duration");
                else
                        note_unknown(c, x, "job_conf");
        }
        xml_free(root);
        return r;
}
