/* Writes the values of a tool's inputs as one JSON object, in the form that Galaxy writes for <inputs>
 * among the configfiles: like Python's json.dumps, with ", " and ": " as separators. */
#include <stdlib.h>

#include "jdl/galaxy/tool.h"

struct writer {
        struct tool *t;
        bool paths; /* paths of files are included */
        bool words; /* a select's value is written as one text, as in profiles before 20.05 */
        struct buf *out;
        struct err *err;
};

static int write_object(struct writer *w, const struct xml *inputs, const struct datum *values);

static void write_word(struct writer *w, struct str s)
{
        json_t *word = json_stringn_nocheck(s.p ? s.p : "", s.n);
        char *text = json_dumps(word, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

        buf_addz(w->out, text ? text : "null");
        free(text);
        json_decref(word);
}

static void write_text(struct writer *w, const struct datum *v)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};

        datum_write(v, &b);
        write_word(w, buf_view(&b));
}

/* Writes an integer, or null if none was given. */
static void write_bare(struct writer *w, const struct datum *v)
{
        BUF_CLEANUP struct buf b = {0};

        datum_write(v, &b);
        buf_str(w->out, b.n && v->kind != DATUM_NONE ? buf_view(&b) : STR("null"));
}

static void write_list(struct writer *w, const struct datum *v,
                       void (*write)(struct writer *, const struct datum *))
{
        buf_char(w->out, '[');
        for (size_t i = 0; i < (v->kind == DATUM_LIST ? v->n : 1); i++) {
                buf_addz(w->out, i ? ", " : "");
                write(w, v->kind == DATUM_LIST ? v->items[i] : v);
        }
        buf_char(w->out, ']');
}

static void write_param(struct writer *w, const struct xml *x, const struct datum *v)
{
        const char *type = xml_get(x, "type");

        if (strcmp(type, "data_column") == 0)
                write_list(w, v, write_bare);
        else if (v->collection)
                write_list(w, datum_get(v->attributes, STR("all_paths")), write_text);
        else if (strcmp(type, "select") == 0 && w->words)
                write_text(w, v);
        else if (v->kind == DATUM_NONE) /* for several files it is a list with one null */
                buf_addz(w->out, strcmp(type, "data") == 0 && tool_says(x, "multiple") ? "[null]" : "null");
        else if (v->kind == DATUM_BOOL)
                buf_addz(w->out, v->integer ? "true" : "false");
        else if (strcmp(type, "integer") == 0 || strcmp(type, "float") == 0)
                write_bare(w, v);
        else if (v->kind == DATUM_LIST)
                write_list(w, v, write_text);
        else
                write_text(w, v);
}

static int write_repeat(struct writer *w, const struct xml *x, const struct datum *v)
{
        int rc = 0;

        buf_char(w->out, '[');
        for (size_t i = 0; rc == 0 && i < v->n; i++) {
                buf_addz(w->out, i ? ", {" : "{");
                rc = write_object(w, x, v->items[i]);
                buf_char(w->out, '}');
        }
        buf_char(w->out, ']');
        return rc;
}

static void write_key(struct writer *w, struct str name)
{
        buf_addz(w->out, w->out->n && w->out->p[w->out->n - 1] != '{' ? ", " : "");
        write_word(w, name);
        buf_addz(w->out, ": ");
}

/* The value that selects the case of a conditional is written last. */
static int write_conditional(struct writer *w, const struct xml *x, const struct datum *v)
{
        const struct xml *test = xml_child(x, "param"), *when = tool_when(w->t, x, v);
        int rc = when ? write_object(w, when, v) : 0;

        write_key(w, tool_variable(w->t, test));
        write_param(w, test, datum_get(v, tool_variable(w->t, test)));
        return rc;
}

static int write_nested(struct writer *w, const struct xml *x, const struct datum *values)
{
        const char *name = xml_get(x, "name");
        const struct datum *v = datum_get(values, str_of(name));
        int rc;

        write_key(w, str_of(name));
        if (xml_is(x, "repeat"))
                return write_repeat(w, x, v);
        buf_char(w->out, '{');
        rc = xml_is(x, "conditional") ? write_conditional(w, x, v) : write_object(w, x, v);
        buf_char(w->out, '}');
        return rc;
}

static bool is_data(const char *type)
{
        return strcmp(type, "data") == 0 || strcmp(type, "data_collection") == 0;
}

/* Writes only the members, without the brackets. */
static int write_object(struct writer *w, const struct xml *inputs, const struct datum *values)
{
        int rc = 0;

        for (const struct xml *x = inputs ? inputs->first : NULL; x && rc == 0; x = x->next) {
                if (xml_is(x, "param")) {
                        if (is_data(xml_get(x, "type")) && !w->paths)
                                continue;
                        write_key(w, tool_variable(w->t, x));
                        write_param(w, x, datum_get(values, tool_variable(w->t, x)));
                } else if (xml_is(x, "page")) {
                        rc = write_object(w, x, values);
                } else if (xml_is(x, "section") || xml_is(x, "repeat") || xml_is(x, "conditional")) {
                        rc = write_nested(w, x, values);
                }
                if (buf_check(w->out) != 0)
                        return tool_fail(x, w->err, "the values of the inputs are too long");
        }
        return rc;
}

int tool_inputs_json(struct tool *t, bool paths, struct buf *out, struct err *err)
{
        struct writer w = {.t = t, .paths = paths, .out = out, .err = err};
        double profile = 16.01;
        int rc;

        if (xml_get(t->root, "profile"))
                str_to_double(str_of(xml_get(t->root, "profile")), &profile);
        w.words = profile < 20.05;
        buf_char(out, '{');
        rc = write_object(&w, xml_child(t->root, "inputs"), t->x.names);
        buf_char(out, '}');
        return rc;
}
