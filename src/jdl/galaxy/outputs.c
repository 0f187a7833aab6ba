/* The outputs of a tool: which of them exist (their filters), their names, and their variables. The file
 * of an output is NAME.FORMAT in the job's folder, from where it is transferred back. */
#include <errno.h>

#include "base/mem.h"
#include "jdl/galaxy/tool.h"

static struct str written_of(struct tool *t, const struct datum *v)
{
        BUF_CLEANUP struct buf b = {0};

        datum_write(v, &b);
        return arena_str(&t->arena, buf_view(&b));
}

/* Returns a parameter by its name with dots or '|'. */
static struct datum *parameter(const struct tool *t, const char *name)
{
        struct str rest = str_of(name), part;
        struct datum *v = t->x.names;

        while (v && rest.p) {
                size_t n = 0;

                while (n < rest.n && rest.p[n] != '.' && rest.p[n] != '|')
                        n++;
                part = str_head(rest, n);
                rest = n < rest.n ? str_skip(rest, n + 1) : STR_NONE;
                v = datum_attribute(v, part);
        }
        return v;
}

static struct datum *ext_of(const struct tool *t, const char *name)
{
        struct datum *v = name ? parameter(t, name) : NULL;

        while (v && v->kind == DATUM_LIST && v->n)
                v = v->items[0];
        return v ? datum_get(v, STR("ext")) : NULL;
}

static int find_format(struct tool *t, const struct xml *x, struct str *ret, struct err *err)
{
        const char *format = xml_get(x, "format") ? xml_get(x, "format") : xml_get(x, "ext"),
                   *source = xml_get(x, "format_source");
        const struct xml *change = xml_child(x, "change_format");

        *ret = str_of(format ? format : "data");
        if (source || (format && strcmp(format, "input") == 0)) {
                struct datum *ext = ext_of(t, source ? source : "input");

                if (ext) /* for a missing input the format itself counts, as in Galaxy */
                        *ret = ext->text;
        }
        for (const struct xml *w = xml_child(change, "when"); w; w = xml_next(w, "when")) {
                const struct datum *v = xml_get(w, "input") ? parameter(t, xml_get(w, "input")) : NULL;

                if (!xml_get(w, "input") || !xml_get(w, "value") || !xml_get(w, "format"))
                        return tool_fail(w, err,
                                         "<when> of change_format is supported with input, value and format");
                /* As in Galaxy a parameter that is not there, say of another case, counts for nothing. */
                if (v && str_eqz(written_of(t, v), xml_get(w, "value"))) {
                        *ret = str_of(xml_get(w, "format"));
                        break;
                }
        }
        for (size_t i = 0; i < ret->n; i++)
                if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", ret->p[i]))
                        return tool_fail(x, err, "'" STR_FMT "' cannot be the name of a format",
                                         STR_ARG(*ret));
        return 0;
}

/* Evaluates <filter> elements: expressions over the parameters' values, which must all be true. */
static int is_wanted(struct tool *t, const struct xml *x, bool *ret, struct err *err)
{
        *ret = true;
        for (const struct xml *f = xml_child(x, "filter"); f; f = xml_next(f, "filter")) {
                struct err why = {""};
                struct datum *v;
                int rc;

                t->x.filter = true;
                rc = expression_all(&t->x, xml_text(f), &v, &why);
                t->x.filter = false;
                if (rc == -E2BIG)
                        return tool_fail(f, err, "the filter `" STR_FMT "`: %s",
                                         STR_ARG(str_head(xml_text(f), 60)), why.text);
                if (rc != 0) /* as in Galaxy */
                        tool_warn(t, f, "the output is kept, for its filter `" STR_FMT "` fails: %s",
                                  STR_ARG(str_head(xml_text(f), 60)), why.text);
                else
                        *ret = *ret && datum_true(v);
        }
        if (!*ret) { /* its variable is then None, which Galaxy writes as "None" */
                struct datum *none = datum_none(&t->arena);

                none->text = STR("XXXX");
                datum_put(&t->arena, t->x.names, str_of(xml_get(x, "name")), none);
        }
        return 0;
}

static int check_name(const struct xml *x, struct str name, struct err *err)
{
        for (size_t i = 0; i < name.n; i++)
                if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", name.p[i]) ||
                    name.p[0] == '.')
                        return tool_fail(x, err, "'" STR_FMT "' cannot be the name of an output",
                                         STR_ARG(name));
        return name.n && name.n < 200 ? 0 : tool_fail(x, err, "an output needs a name");
}

/* Checks that the output has a name, and whether it exists. */
static int begin_output(struct tool *t, const struct xml *x, bool *ret_wanted, struct err *err)
{
        int rc = check_name(x, str_of(xml_get(x, "name")), err);

        return rc == 0 ? is_wanted(t, x, ret_wanted, err) : rc;
}

/* Makes one file NAME.FORMAT for the element, and its variable. */
static int make_output(struct tool *t, const struct xml *x, struct str name, struct str format,
                       struct datum **ret, struct err *err)
{
        BUF_CLEANUP struct buf file = {0}, written = {0};
        struct datum *d = datum_new(&t->arena, DATUM_MAP);

        if (t->output_count == TOOL_DATA_MAX)
                return tool_fail(x, err, "there are more than %u outputs", TOOL_DATA_MAX);
        buf_printf(&file, STR_FMT "." STR_FMT, STR_ARG(name), STR_ARG(format));
        buf_printf(&written, TOOL_BOX "/%s", buf_z(&file));
        for (size_t i = 0; i < t->file_count; i++)
                if (str_ends(t->files[i], buf_view(&file)) &&
                    (t->files[i].n == file.n || t->files[i].p[t->files[i].n - file.n - 1] == '/'))
                        return tool_fail(x, err, "an input is called %s, as this output will be: rename it",
                                         buf_z(&file));
        datum_put(&t->arena, d, STR("ext"), datum_text(&t->arena, format));
        datum_put(&t->arena, d, STR("extension"), datum_text(&t->arena, format));
        datum_put(&t->arena, d, STR("name"), datum_text(&t->arena, name));
        datum_put(&t->arena, d, STR("file_name"), datum_text(&t->arena, buf_view(&written)));
        d->written = true;
        d->text = arena_str(&t->arena, buf_view(&written));
        buf_reset(&written);
        buf_printf(&written, TOOL_BOX "/" STR_FMT "_files", STR_ARG(name));
        datum_put(&t->arena, d, STR("files_path"), datum_text(&t->arena, buf_view(&written)));
        datum_put(&t->arena, d, STR("extra_files_path"), datum_text(&t->arena, buf_view(&written)));
        MEM_GROW(t->outputs, t->output_cap, t->output_count + 1);
        t->outputs[t->output_count++] = (struct tool_output){
                .at = x, .name = name, .file = arena_str(&t->arena, buf_view(&file)), .data = d};
        *ret = d;
        return 0;
}

static int add_output(struct tool *t, const struct xml *x, struct err *err)
{
        struct str name = str_of(xml_get(x, "name")), format;
        struct datum *d = NULL;
        bool wanted = false;
        int rc = begin_output(t, x, &wanted, err);

        if (rc != 0 || !wanted)
                return rc;
        rc = find_format(t, x, &format, err);
        if (rc == 0)
                rc = make_output(t, x, name, format, &d, err);
        if (rc == 0)
                datum_put(&t->arena, t->x.names, name, d);
        return rc;
}

/* ---- collections: their files are NAME__ELEMENT.FORMAT */

static int make_element(struct tool *t, const struct xml *x, struct str name, struct str element,
                        struct str format, struct datum *to, struct err *err)
{
        BUF_CLEANUP struct buf whole = {0};
        struct datum *d = NULL;
        int rc;

        buf_printf(&whole, STR_FMT "__" STR_FMT, STR_ARG(name), STR_ARG(element));
        rc = check_name(x, buf_view(&whole), err);
        if (rc == 0)
                rc = make_output(t, x, arena_str(&t->arena, buf_view(&whole)), format, &d, err);
        if (rc != 0)
                return rc;
        datum_put(&t->arena, d, STR("element_identifier"), datum_text(&t->arena, element));
        return datum_put(&t->arena, to, element, d) ? 0 : tool_fail(x, err, "there are too many outputs");
}

/* Implements structured_like="input": an element for each of the input's. */
static int make_alike(struct tool *t, const struct xml *x, struct str name, const struct datum *like,
                      struct datum *to, struct err *err)
{
        struct str format;
        int rc = find_format(t, x, &format, err);

        for (size_t i = 0; i < like->n && rc == 0; i++) {
                const struct datum *one = like->items[i];

                if (one->collection) {
                        struct datum *inner = datum_collection(&t->arena);
                        BUF_CLEANUP struct buf below = {0};

                        buf_printf(&below, STR_FMT "__" STR_FMT, STR_ARG(name), STR_ARG(like->keys[i]));
                        rc = make_alike(t, x, buf_view(&below), one, inner, err);
                        tool_name_collection(t, inner, like->keys[i]);
                        datum_put(&t->arena, to, like->keys[i], inner);
                        continue;
                }
                if (tool_says(x, "inherit_format"))
                        format = datum_get(one, STR("ext"))->text;
                rc = make_element(t, x, name, like->keys[i], format, to, err);
        }
        return rc;
}

/* Makes the <data> elements of a collection; each is also a variable. */
static int make_named(struct tool *t, const struct xml *x, struct datum *to, struct err *err)
{
        int rc = 0;

        for (const struct xml *one = xml_child(x, "data"); one && rc == 0; one = xml_next(one, "data")) {
                struct str name = str_of(xml_get(one, "name")), format;

                rc = find_format(t, xml_get(one, "format") || xml_get(one, "format_source") ? one : x,
                                 &format, err);
                if (rc == 0)
                        rc = make_element(t, one, str_of(xml_get(x, "name")), name, format, to, err);
                if (rc == 0)
                        datum_put(&t->arena, t->x.names, name, datum_get(to, name));
        }
        return rc;
}

static int add_collection(struct tool *t, const struct xml *x, struct err *err)
{
        struct str name = str_of(xml_get(x, "name"));
        struct datum *c = datum_collection(&t->arena);
        const char *like = xml_get(x, "structured_like");
        bool wanted = false;
        int rc = begin_output(t, x, &wanted, err);

        if (rc != 0 || !wanted)
                return rc;
        tool_name_collection(t, c, name);
        if (xml_child(x, "discover_datasets")) { /* files that the tool discovers */
                MEM_GROW(t->outputs, t->output_cap, t->output_count + 1);
                t->outputs[t->output_count++] = (struct tool_output){.at = x, .name = name};
        } else if (like) {
                const struct datum *input = parameter(t, like);

                if (!input || !input->collection)
                        return tool_fail(x, err, "there is no collection %s for structured_like", like);
                rc = make_alike(t, x, name, input, c, err);
        } else {
                rc = make_named(t, x, c, err);
        }
        if (rc == 0)
                datum_put(&t->arena, t->x.names, name, c);
        return rc;
}

int tool_outputs(struct tool *t, struct err *err)
{
        const struct xml *outputs = xml_child(t->root, "outputs");
        int rc = 0;

        for (const struct xml *x = outputs ? outputs->first : NULL; x && rc == 0; x = x->next) {
                if (xml_is(x, "data"))
                        rc = add_output(t, x, err);
                else if (xml_is(x, "collection"))
                        rc = add_collection(t, x, err);
                else
                        rc = tool_fail(x, err, "<%s> among the outputs is not supported", x->name);
        }
        return rc;
}
