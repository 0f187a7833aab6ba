/* job_conf.yml: runners, handling, execution.environments, resources, tools, limits. A map by id may also be
 * a list of maps with an `id`. */
#include <errno.h>

#include "agent/import/galaxy.h"
#include "base/format/doc.h"
#include "base/mem.h"

static struct str text_of(const struct doc *d)
{
        return d && d->kind == DOC_WORD ? d->text : STR_NONE;
}

static char *copy_of(const struct doc *map, const char *key)
{
        const struct doc *d = doc_get(map, key);

        return d && d->kind == DOC_WORD && !d->empty ? str_dupz(d->text) : NULL;
}

static struct str id_of(const struct doc *d)
{
        return d->key.p ? d->key : text_of(doc_get(d, "id"));
}

/* Joins a word or a list of words into "a, b". Returns false for anything else. */
static bool join(const struct doc *d, struct buf *out)
{
        if (d->kind == DOC_MAP)
                return false;
        if (d->kind == DOC_WORD)
                buf_str(out, d->text);
        for (const struct doc *i = d->first; i; i = i->next) {
                if (i->kind != DOC_WORD)
                        return false;
                buf_printf(out, "%s" STR_FMT, out->n ? ", " : "", STR_ARG(i->text));
        }
        return true;
}

static void add_param(struct galaxy_conf *c, struct galaxy_words *to, const struct doc *d)
{
        BUF_CLEANUP struct buf value = {0};

        if (join(d, &value))
                galaxy_add_word(to, d->key, buf_view(&value), d->line);
        else
                galaxy_note(c, d->line, STR_FMT " has no equivalent", STR_ARG(d->key));
}

static void read_runners(struct galaxy_conf *c, const struct doc *runners)
{
        for (const struct doc *d = runners->first; d; d = d->next) {
                struct galaxy_runner *r = galaxy_add_runner(c, id_of(d), d->line);

                r->load = copy_of(d, "load");
                for (const struct doc *i = d->first; i; i = i->next)
                        if (!str_eqz(i->key, "load") && !str_eqz(i->key, "id"))
                                add_param(c, &r->params, i);
        }
}

static bool is_true(const struct doc *d)
{
        bool yes;

        return d && d->kind == DOC_WORD && doc_bool(d, &yes, NULL) == 0 && yes;
}

static void yaml_read_env(struct galaxy_conf *c, struct galaxy_place *p, const struct doc *env)
{
        for (const struct doc *d = env->first; d; d = d->next) {
                struct str name = text_of(doc_get(d, "name")), file = text_of(doc_get(d, "file")),
                           execute = text_of(doc_get(d, "execute"));
                BUF_CLEANUP struct buf line = {0};

                if (!execute.n)
                        execute = text_of(doc_get(d, "exec"));
                if (file.n)
                        buf_printf(&line, ". " STR_FMT, STR_ARG(file));
                else
                        buf_str(&line, execute);
                if (line.n)
                        galaxy_add_word(&p->scripts, STR_NONE, buf_view(&line), d->line);
                else if (!name.n)
                        galaxy_note(c, d->line, "a part of env that has neither name, file nor execute");
                else if (is_true(doc_get(d, "raw")))
                        galaxy_note(c, d->line,
                                    "variable " STR_FMT " is set as the shell reads it (raw), which a queue "
                                    "cannot: set it in the job",
                                    STR_ARG(name));
                else
                        galaxy_add_word(&p->environment, name, text_of(doc_get(d, "value")), d->line);
        }
}

static void yaml_read_tags(struct galaxy_place *p, const struct doc *d)
{
        BUF_CLEANUP struct buf all = {0};
        struct str tags, tag;

        join(d, &all);
        tags = buf_view(&all);
        while (str_cut(&tags, ',', &tag))
                if (str_trim(tag).n)
                        galaxy_add_word(&p->tags, str_trim(tag), STR_NONE, d->line);
}

static void read_place(struct galaxy_conf *c, const struct doc *d)
{
        struct galaxy_place *p = galaxy_add_place(c, id_of(d), d->line);

        p->runner = copy_of(d, "runner");
        for (const struct doc *i = d->first; i; i = i->next) {
                if (str_eqz(i->key, "tags"))
                        yaml_read_tags(p, i);
                else if (str_eqz(i->key, "env"))
                        yaml_read_env(c, p, i);
                else if (str_eqz(i->key, "resubmit"))
                        galaxy_add_word(&p->params, i->key, STR_NONE, i->line);
                else if (!str_eqz(i->key, "runner") && !str_eqz(i->key, "id"))
                        add_param(c, &p->params, i);
        }
}

static void read_execution(struct galaxy_conf *c, const struct doc *d)
{
        const struct doc *places = doc_get(d, "environments");

        c->default_place = copy_of(d, "default");
        c->default_line = c->default_place ? doc_get(d, "default")->line : d->line;
        for (const struct doc *i = places ? places->first : NULL; i; i = i->next)
                read_place(c, i);
}

static void yaml_read_tools(struct galaxy_conf *c, const struct doc *tools)
{
        for (const struct doc *d = tools->first; d; d = d->next) {
                struct galaxy_tool *t = galaxy_add_tool(c, d->line);

                t->id = copy_of(d, "id");
                t->place = copy_of(d, "environment");
                if (!t->place)
                        t->place = copy_of(d, "destination");
                if (!t->id) {
                        BUF_CLEANUP struct buf id = {0};

                        buf_printf(&id, "class " STR_FMT, STR_ARG(text_of(doc_get(d, "class"))));
                        t->id = buf_take(&id);
                }
        }
}

static void yaml_read_limits(struct galaxy_conf *c, const struct doc *limits)
{
        for (const struct doc *d = limits->first; d; d = d->next) {
                struct galaxy_limit *l = galaxy_add_limit(c, d->line);

                l->type = copy_of(d, "type");
                l->id = copy_of(d, "id");
                l->tag = copy_of(d, "tag");
                l->value = copy_of(d, "value");
        }
}

static void read_part(struct galaxy_conf *c, const struct doc *d)
{
        if (str_eqz(d->key, "runners"))
                read_runners(c, d);
        else if (str_eqz(d->key, "execution"))
                read_execution(c, d);
        else if (str_eqz(d->key, "tools"))
                yaml_read_tools(c, d);
        else if (str_eqz(d->key, "limits"))
                yaml_read_limits(c, d);
        else if (str_eqz(d->key, "handling"))
                galaxy_note(c, d->line, "handlers are processes of Galaxy; droverd needs none");
        else if (str_eqz(d->key, "resources"))
                galaxy_note(c, d->line,
                            "resources that users choose are said in the submit file: request_cpus, "
                            "request_memory, allowed_execute_duration");
        else
                galaxy_note(c, d->line, STR_FMT " has no equivalent", STR_ARG(d->key));
}

int galaxy_read_yaml(struct galaxy_conf *c, struct str text, struct err *err)
{
        struct doc *root = NULL;
        int r = doc_parse(c->file, text, &root, err);

        if (r == 0 && (!root || root->kind != DOC_MAP || !doc_get(root, "execution")))
                r = err_set(err, -EINVAL, "%s:1: this is not Galaxy's job_conf: there is no `execution`",
                            c->file);
        for (const struct doc *d = root ? root->first : NULL; d && r == 0; d = d->next)
                read_part(c, d);
        doc_free(root);
        return r;
}
