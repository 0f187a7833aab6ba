/* Reads the inputs of a tool, with the values that a job gives them, as variables of the template. Values
 * are found in the nested form, {"mode": {"select": "a", "x": 1}}, and in Galaxy's flat form,
 * {"mode|select": "a", "series_0|file": …}. A value without an input is refused, because its name is
 * probably misspelled. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "jdl/galaxy/sanitizer.h"
#include "jdl/galaxy/tool.h"

#define REPEATS_MAX 10000

struct scope {
        struct tool *t;
        json_t *root;      /* all given values */
        json_t *here;      /* the object of this level, or NULL */
        struct str prefix; /* for the flat form, "mode|" */
        json_t *used;      /* an object: the names in root that were used */
        struct err *err;
        const struct datum *values; /* values of this level that were read so far */
        const struct scope *outer;  /* the enclosing level, or NULL */
};

static int read_inputs(struct scope *s, const struct xml *inputs, struct datum *to);

struct str tool_name(const struct xml *x)
{
        const char *name = xml_get(x, "name"), *argument = xml_get(x, "argument");
        struct str s = str_of(name ? name : argument);

        while (!name && s.n && s.p[0] == '-')
                s = str_skip(s, 1);
        return s;
}

/* argument="--max-depth" is the parameter max_depth. */
struct str tool_variable(struct tool *t, const struct xml *x)
{
        char *copy = arena_dup(&t->arena, tool_name(x).p, tool_name(x).n);

        for (char *z = copy; *z && !xml_get(x, "name"); z++)
                if (*z == '-')
                        *z = '_';
        return str_make(copy, tool_name(x).n);
}

/* Returns the value given for a name at this level; NULL: none. */
static json_t *find_parameter(struct scope *s, struct str name)
{
        BUF_CLEANUP struct buf flat = {0}, own = {0};
        json_t *v;

        buf_str(&own, name);
        buf_printf(&flat, STR_FMT STR_FMT, STR_ARG(s->prefix), STR_ARG(name));
        v = json_object_get(s->root, buf_z(&flat));
        if (v)
                json_object_set_new(s->used, buf_z(&flat), json_true());
        else if (s->here && s->here != s->root)
                v = json_object_get(s->here, buf_z(&own));
        return v;
}

/* ---- texts */

static int sanitized(struct scope *s, const struct xml *x, struct str text, struct datum **ret)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        int rc = sanitizer_apply(x, text, &b, s->err);

        if (rc == 0 && buf_check(&b) != 0)
                rc = tool_fail(x, s->err, "the value is longer than %u bytes", EXPRESSION_TEXT_MAX);
        if (rc == 0)
                *ret = datum_text(&s->t->arena, buf_view(&b));
        return rc;
}

bool tool_word(json_t *given, struct buf *out)
{
        if (json_is_string(given))
                buf_add(out, json_string_value(given), json_string_length(given));
        else if (json_is_integer(given))
                buf_printf(out, "%lld", (long long)json_integer_value(given));
        else if (json_is_real(given))
                buf_printf(out, "%.17g", json_real_value(given));
        else if (json_is_boolean(given))
                buf_addz(out, json_is_true(given) ? "true" : "false");
        else
                return false;
        return true;
}

static int missing(struct scope *s, const struct xml *x)
{
        return tool_fail(x, s->err, "the job gives no value for the parameter " STR_FMT STR_FMT,
                         STR_ARG(s->prefix), STR_ARG(tool_name(x)));
}

static int parameters_read_text(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};

        if (given && !json_is_null(given)) {
                if (!tool_word(given, &b))
                        return tool_fail(x, s->err, "the value of " STR_FMT " is a word",
                                         STR_ARG(tool_name(x)));
        } else if (xml_get(x, "value")) {
                buf_addz(&b, xml_get(x, "value"));
        } else if (tool_says(x, "optional")) {
                *ret = datum_none(&s->t->arena);
                (*ret)->text = STR_NONE; /* as a text it is written as nothing */
                return 0;
        }
        return sanitized(s, x, buf_view(&b), ret);
}

static int parameters_read_number(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        BUF_CLEANUP struct buf b = {0};
        bool whole = strcmp(xml_get(x, "type"), "integer") == 0;
        double d, limit;
        int64_t n;

        if (!given || json_is_null(given))
                buf_str(&b, tool_attribute(x, "value", ""));
        else if (!tool_word(given, &b))
                return tool_fail(x, s->err, "the value of " STR_FMT " is a number", STR_ARG(tool_name(x)));
        if (b.n == 0 && tool_says(x, "optional")) {
                *ret = datum_text(&s->t->arena, STR_NONE);
                return 0;
        }
        if (b.n == 0)
                return missing(s, x);
        if (str_to_double(buf_view(&b), &d) != 0 || !isfinite(d) ||
            (whole && str_to_i64(buf_view(&b), &n) != 0))
                return tool_fail(x, s->err, "the value '%s' of " STR_FMT " is no %s", buf_z(&b),
                                 STR_ARG(tool_name(x)), whole ? "integer" : "number");
        if (xml_get(x, "min") && str_to_double(str_of(xml_get(x, "min")), &limit) == 0 && d < limit)
                return tool_fail(x, s->err, "the value %s of " STR_FMT " is less than %s", buf_z(&b),
                                 STR_ARG(tool_name(x)), xml_get(x, "min"));
        if (xml_get(x, "max") && str_to_double(str_of(xml_get(x, "max")), &limit) == 0 && d > limit)
                return tool_fail(x, s->err, "the value %s of " STR_FMT " is more than %s", buf_z(&b),
                                 STR_ARG(tool_name(x)), xml_get(x, "max"));
        *ret = whole ? datum_int(&s->t->arena, n) : datum_float(&s->t->arena, d);
        return 0;
}

static int read_boolean(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        BUF_CLEANUP struct buf b = {0};
        struct str on = tool_attribute(x, "truevalue", "true"),
                   off = tool_attribute(x, "falsevalue", "false");
        bool is = tool_says(x, "checked");

        if (given && !json_is_null(given)) {
                if (!tool_word(given, &b))
                        return tool_fail(x, s->err, "the value of " STR_FMT " is true or false",
                                         STR_ARG(tool_name(x)));
                if (str_eq(buf_view(&b), on) || str_ieqz(buf_view(&b), "true"))
                        is = true;
                else if (str_eq(buf_view(&b), off) || str_ieqz(buf_view(&b), "false"))
                        is = false;
                else
                        return tool_fail(x, s->err, "the value '%s' of " STR_FMT " is neither true nor false",
                                         buf_z(&b), STR_ARG(tool_name(x)));
        }
        *ret = datum_bool(&s->t->arena, is);
        (*ret)->written = true;
        (*ret)->text = is ? on : off;
        return 0;
}

/* Reads "#rrggbb", also without #; with rgb="true" it is written as (r, g, b). */
static int read_color(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        struct str color, digits;
        BUF_CLEANUP struct buf b = {0}, usual = {0};
        unsigned long rgb;
        bool plain;

        for (const char *z = tool_attribute(x, "value", "#000000").p; *z; z++)
                buf_char(&usual, (char)tolower((unsigned char)*z));
        color = buf_view(&usual);
        if (json_is_string(given))
                color = str_make(json_string_value(given), json_string_length(given));
        digits = str_skip(color, str_starts(color, STR("#")) ? 1 : 0);
        plain = digits.n == 6;
        for (size_t i = 0; i < digits.n; i++)
                plain = plain && isxdigit((unsigned char)digits.p[i]);
        if (!plain)
                return tool_fail(x, s->err, "the value of " STR_FMT " is a color: #rrggbb",
                                 STR_ARG(tool_name(x)));
        buf_str(&b, digits);
        rgb = strtoul(buf_z(&b), NULL, 16);
        if (tool_says(x, "rgb")) {
                buf_reset(&b);
                buf_printf(&b, "(%lu, %lu, %lu)", rgb >> 16, rgb >> 8 & 255, rgb & 255);
                color = buf_view(&b);
        }
        *ret = datum_text(&s->t->arena, color);
        return 0;
}

/* ---- choices */

/* The choices of a parameter: the options in the tool's file, or the rows of a table. */
struct choices {
        const struct xml *first; /* the first <option> */
        struct tool_table table; /* rows NULL: there is no table, or its file is missing */
};

/* Returns a parameter of this level or of an enclosing one. */
static struct datum *seen_value(const void *arg, struct str name)
{
        struct datum *v = NULL;

        for (const struct scope *s = arg; s && !v; s = s->outer)
                v = datum_get(s->values, name);
        return v;
}

/* Refuses a value that is not among the options. */
static int check_option(struct scope *s, const struct xml *x, const struct choices *c, struct str value)
{
        const char *table = xml_get(xml_child(x, "options"), "from_data_table");

        for (const struct xml *o = c->first; o; o = xml_next(o, "option"))
                if (str_eq(tool_attribute(o, "value", ""), value))
                        return 0;
        for (size_t i = 0; c->table.rows && i < c->table.rows->n; i++) {
                const struct datum *field = tool_field(&c->table, c->table.rows->items[i], "value");

                if (field && str_eq(field->text, value))
                        return 0;
        }
        if (!c->first && !c->table.rows)
                return 0;
        return tool_fail(x, s->err, "'" STR_FMT "' is no option of " STR_FMT "%s%s", STR_ARG(value),
                         STR_ARG(tool_name(x)), table ? ": it is not among those of the data table " : "",
                         table ? table : "");
}

static struct datum *chosen_by_default(struct scope *s, const struct xml *x, const struct choices *c,
                                       bool multiple)
{
        struct datum *list = datum_new(&s->t->arena, DATUM_LIST), *first = NULL;

        for (const struct xml *o = c->first; o; o = xml_next(o, "option"))
                if (tool_says(o, "selected"))
                        datum_add(&s->t->arena, list,
                                  datum_text(&s->t->arena, tool_attribute(o, "value", "")));
        if (c->first)
                first = datum_text(&s->t->arena, tool_attribute(c->first, "value", ""));
        else if (c->table.rows && c->table.rows->n)
                first = tool_field(&c->table, c->table.rows->items[0], "value");
        if (list->n == 0 && !multiple && !tool_says(x, "optional") && first)
                datum_add(&s->t->arena, list, datum_text(&s->t->arena, first->text));
        return list;
}

static int add_chosen(struct scope *s, const struct xml *x, const struct choices *c, json_t *given,
                      struct datum *list)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        struct datum *one;
        int rc;

        if (!tool_word(given, &b))
                return tool_fail(x, s->err, "the value of " STR_FMT " is a word%s", STR_ARG(tool_name(x)),
                                 tool_says(x, "multiple") ? ", or a list of words" : "");
        rc = check_option(s, x, c, buf_view(&b));
        if (rc == 0 && (c->first || c->table.rows))
                one = datum_text(&s->t->arena, buf_view(&b));
        else if (rc == 0)
                rc = sanitized(s, x, buf_view(&b), &one);
        if (rc == 0)
                datum_add(&s->t->arena, list, one);
        return rc;
}

/* The rows whose values were chosen. */
static int chosen_rows(struct scope *s, const struct xml *x, const struct choices *c,
                       const struct datum *chosen, struct datum *to)
{
        s->t->rows_seen += chosen->n * c->table.rows->n;
        if (s->t->rows_seen > TOOL_ROWS_MAX)
                return tool_fail(x, s->err, "parameters look at more than %u options", TOOL_ROWS_MAX);
        for (size_t i = 0; i < chosen->n; i++)
                for (size_t r = 0; r < c->table.rows->n; r++) {
                        const struct datum *value = tool_field(&c->table, c->table.rows->items[r], "value");

                        if (value && str_eq(value->text, chosen->items[i]->text) &&
                            !datum_add(&s->t->arena, to, c->table.rows->items[r]))
                                return tool_fail(x, s->err, "too many options were chosen");
                }
        return 0;
}

/* Adds $NAME.fields.COLUMN, the fields of the chosen row; of several rows they are joined. */
static int add_fields(struct scope *s, const struct xml *x, const struct choices *c,
                      const struct datum *chosen, struct datum *to)
{
        struct datum *fields = datum_new(&s->t->arena, DATUM_MAP),
                     *rows = datum_new(&s->t->arena, DATUM_LIST);
        int rc = chosen_rows(s, x, c, chosen, rows);

        for (size_t k = 0; k < c->table.columns->n && rc == 0; k++) {
                struct str column = c->table.columns->keys[k];
                BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX}, name = {0};

                buf_str(&name, column);
                for (size_t r = 0; r < rows->n; r++) {
                        const struct datum *field = tool_field(&c->table, rows->items[r], buf_z(&name));

                        buf_addz(&b, r ? tool_attribute(x, "separator", ",").p : "");
                        buf_str(&b, field ? field->text : STR_NONE);
                }
                if (buf_check(&b) != 0 || s->t->arena.used > TOOL_MEMORY_MAX)
                        return tool_fail(x, s->err, "the fields of the options chosen are too long");
                datum_put(&s->t->arena, fields, column, datum_text(&s->t->arena, buf_view(&b)));
        }
        datum_set_attribute(&s->t->arena, to, "fields", fields);
        return rc;
}

static int find_choices(struct scope *s, const struct xml *x, struct choices *ret)
{
        struct tool_values values = {seen_value, s};

        *ret = (struct choices){.first = xml_child(x, "option")};
        return tool_options(s->t, x, &values, &ret->table, s->err);
}

/* Joins several values as Galaxy does: a,b. */
static struct datum *join_chosen(struct scope *s, const struct xml *x, struct datum *list)
{
        BUF_CLEANUP struct buf joined = {.max = EXPRESSION_TEXT_MAX};

        for (size_t k = 0; k < list->n; k++)
                buf_printf(&joined, "%s" STR_FMT, k ? tool_attribute(x, "separator", ",").p : "",
                           STR_ARG(list->items[k]->text));
        list->written = true;
        list->text = list->n ? arena_str(&s->t->arena, buf_view(&joined)) : STR("None");
        return list;
}

static int read_select(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        bool multiple = tool_says(x, "multiple");
        struct datum *list = datum_new(&s->t->arena, DATUM_LIST);
        struct choices c;
        json_t *one;
        size_t i;
        int rc = find_choices(s, x, &c);

        if (rc != 0)
                return rc;
        if (!given || json_is_null(given))
                list = chosen_by_default(s, x, &c, multiple);
        else if (!json_is_array(given))
                rc = add_chosen(s, x, &c, given, list);
        json_array_foreach (given, i, one) {
                if (rc == 0)
                        rc = add_chosen(s, x, &c, one, list);
        }
        if (rc != 0)
                return rc;
        if (!multiple && list->n == 0 && !tool_says(x, "optional"))
                return missing(s, x);
        if (multiple)
                *ret = join_chosen(s, x, list);
        else
                *ret = list->n ? list->items[0] : datum_none(&s->t->arena);
        return c.table.rows ? add_fields(s, x, &c, list, *ret) : 0;
}

/* ---- data */

/* Writes several datasets as Galaxy does: a.txt,b.txt. */
static int write_files(struct scope *s, const struct xml *x, struct datum *files)
{
        BUF_CLEANUP struct buf joined = {.max = EXPRESSION_TEXT_MAX};

        for (size_t i = 0; i < files->n; i++) {
                buf_addz(&joined, i ? "," : "");
                if (!datum_write(files->items[i], &joined))
                        return tool_fail(x, s->err, "a file cannot be written as text");
        }
        if (buf_check(&joined) != 0)
                return tool_fail(x, s->err, "there are too many files");
        files->written = true;
        files->text = arena_str(&s->t->arena, buf_view(&joined));
        return 0;
}

/* Reads a file, a list of files, or the files of a collection. */
static int read_files(struct scope *s, const struct xml *x, json_t *given, struct datum *list)
{
        struct datum *d = NULL;
        json_t *one;
        size_t i;
        int rc = 0;

        if (!json_is_array(given)) {
                rc = tool_is_file(given) || !json_is_object(given)
                             ? tool_dataset(s->t, x, given, &d, s->err)
                             : tool_collection(s->t, x, given, &d, s->err);
                if (rc == 0 &&
                    !(d->collection ? tool_flatten(s->t, d, list) : datum_add(&s->t->arena, list, d)))
                        rc = tool_fail(x, s->err, "there are too many files");
        }
        json_array_foreach (given, i, one) {
                rc = rc == 0 ? tool_dataset(s->t, x, one, &d, s->err) : rc;
                if (rc == 0 && !datum_add(&s->t->arena, list, d))
                        rc = tool_fail(x, s->err, "there are too many files");
        }
        return rc;
}

static int read_data(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        int rc;

        if (!given || json_is_null(given)) {
                if (!tool_says(x, "optional"))
                        return missing(s, x);
                *ret = datum_none(&s->t->arena);
                return 0;
        }
        if (!tool_says(x, "multiple"))
                return tool_dataset(s->t, x, given, ret, s->err);
        *ret = datum_new(&s->t->arena, DATUM_LIST);
        rc = read_files(s, x, given, *ret);
        return rc == 0 ? write_files(s, x, *ret) : rc;
}

static int read_data_collection(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        if (given && !json_is_null(given))
                return tool_collection(s->t, x, given, ret, s->err);
        if (!tool_says(x, "optional"))
                return missing(s, x);
        *ret = tool_no_collection(s->t);
        return 0;
}

/* ---- inputs that contain others */

static int read_param(struct scope *s, const struct xml *x, struct datum *to)
{
        static const struct {
                const char *type;
                int (*read)(struct scope *, const struct xml *, json_t *, struct datum **);
        } types[] = {{"data", read_data},
                     {"data_collection", read_data_collection},
                     {"text", parameters_read_text},
                     {"integer", parameters_read_number},
                     {"hidden", parameters_read_text},
                     {"float", parameters_read_number},
                     {"color", read_color},
                     {"boolean", read_boolean},
                     {"select", read_select},
                     {"data_column", read_select},
                     {"genomebuild", read_select}};
        const char *type = xml_get(x, "type");
        struct str name = tool_variable(s->t, x);
        struct datum *v = NULL;

        if (!type || !name.n)
                return tool_fail(x, s->err, "a <param> needs a name and a type");
        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
                if (strcmp(types[i].type, type) == 0) {
                        int rc = types[i].read(s, x, find_parameter(s, name), &v);

                        if (rc == 0)
                                datum_put(&s->t->arena, to, name, v);
                        return rc;
                }
        return tool_fail(x, s->err, "parameters of the type %s are not supported", type);
}

/* Returns the scope of the level below: its object and its prefix. */
static struct scope parameters_below(struct scope *s, json_t *here, const char *name,
                                     const struct datum *values, struct buf *prefix)
{
        struct scope b = *s;

        buf_printf(prefix, STR_FMT "%s|", STR_ARG(s->prefix), name);
        b.here = json_is_object(here) ? here : NULL;
        b.prefix = buf_view(prefix);
        b.values = values;
        b.outer = s;
        return b;
}

static int unknown_names(struct scope *s, const struct xml *x, const struct datum *known)
{
        const char *key;
        json_t *v;

        json_object_foreach (s->here, key, v) {
                if (!datum_get(known, str_of(key)))
                        return tool_fail(x, s->err, "the tool has no parameter " STR_FMT "%s",
                                         STR_ARG(s->prefix), key);
        }
        return 0;
}

static int read_section(struct scope *s, const struct xml *x, struct datum *to)
{
        BUF_CLEANUP struct buf prefix = {0};
        const char *name = xml_get(x, "name");
        struct datum *d = datum_section(&s->t->arena);
        struct scope inner;
        int rc;

        if (!name)
                return tool_fail(x, s->err, "a <section> needs a name");
        inner = parameters_below(s, find_parameter(s, str_of(name)), name, d, &prefix);
        rc = read_inputs(&inner, x, d);
        if (rc == 0)
                rc = unknown_names(&inner, x, d);
        datum_put(&s->t->arena, to, str_of(name), d);
        return rc;
}

const struct xml *tool_when(struct tool *t, const struct xml *conditional, const struct datum *values)
{
        BUF_CLEANUP struct buf chosen = {0};
        const struct datum *v = datum_get(values, tool_variable(t, xml_child(conditional, "param")));
        const struct xml *when;

        datum_write(v, &chosen);
        for (when = xml_child(conditional, "when"); when; when = xml_next(when, "when"))
                if (str_eq(tool_attribute(when, "value", ""), buf_view(&chosen)) ||
                    (v->kind == DATUM_BOOL &&
                     str_ieqz(tool_attribute(when, "value", ""), v->integer ? "true" : "false")))
                        break;
        return when;
}

static int read_conditional(struct scope *s, const struct xml *x, struct datum *to)
{
        BUF_CLEANUP struct buf prefix = {0};
        const char *name = xml_get(x, "name");
        const struct xml *test = xml_child(x, "param"), *when;
        struct datum *d = datum_section(&s->t->arena);
        struct scope inner;
        int rc;

        if (!name || !test)
                return tool_fail(x, s->err, "a <conditional> needs a name and a <param>");
        inner = parameters_below(s, find_parameter(s, str_of(name)), name, d, &prefix);
        rc = read_param(&inner, test, d);
        if (rc != 0)
                return rc;
        when = tool_when(s->t, x, d);
        if (when)
                rc = read_inputs(&inner, when, d);
        if (rc == 0)
                rc = unknown_names(&inner, x, d);
        datum_put(&s->t->arena, to, str_of(name), d);
        return rc;
}

static int read_one_repeat(struct scope *s, const struct xml *x, json_t *here, size_t i, struct datum *list)
{
        BUF_CLEANUP struct buf prefix = {0}, numbered = {0};
        struct datum *d = datum_new(&s->t->arena, DATUM_MAP);
        struct scope inner;
        int rc;

        buf_printf(&numbered, "%s_%zu", xml_get(x, "name"), i);
        inner = parameters_below(s, here, buf_z(&numbered), d, &prefix);
        rc = read_inputs(&inner, x, d);
        if (rc == 0)
                rc = unknown_names(&inner, x, d);
        datum_put(&s->t->arena, d, STR("__index__"), datum_int(&s->t->arena, (int64_t)i));
        datum_add(&s->t->arena, list, d);
        return rc;
}

/* Returns whether the flat form has an i-th element. */
static bool has_flat(struct scope *s, const char *name, size_t i)
{
        BUF_CLEANUP struct buf prefix = {0};
        const char *key;
        json_t *v;

        buf_printf(&prefix, STR_FMT "%s_%zu|", STR_ARG(s->prefix), name, i);
        json_object_foreach (s->root, key, v) {
                if (str_starts(str_of(key), buf_view(&prefix)))
                        return true;
        }
        return false;
}

static int read_repeat(struct scope *s, const struct xml *x, struct datum *to)
{
        const char *name = xml_get(x, "name");
        struct datum *list = datum_new(&s->t->arena, DATUM_LIST);
        uint64_t least = 0;
        json_t *given;
        int rc = 0;

        if (!name)
                return tool_fail(x, s->err, "a <repeat> needs a name");
        if (xml_get(x, "min"))
                str_to_u64(str_of(xml_get(x, "min")), &least);
        given = find_parameter(s, str_of(name));
        if (given && !json_is_array(given))
                return tool_fail(x, s->err, "the value of %s is a list", name);
        for (size_t i = 0; rc == 0 && (i < json_array_size(given) || has_flat(s, name, i) || i < least);
             i++) {
                if (i == REPEATS_MAX)
                        return tool_fail(x, s->err, "%s is repeated more than %d times", name, REPEATS_MAX);
                rc = read_one_repeat(s, x, json_array_get(given, i), i, list);
        }
        datum_put(&s->t->arena, to, str_of(name), list);
        return rc;
}

static int read_inputs(struct scope *s, const struct xml *inputs, struct datum *to)
{
        static const struct {
                const char *name;
                int (*read)(struct scope *, const struct xml *, struct datum *);
        } kinds[] = {{"param", read_param},
                     {"section", read_section},
                     {"conditional", read_conditional},
                     {"repeat", read_repeat},
                     {"page", read_inputs}};
        int rc = 0;

        for (const struct xml *x = inputs ? inputs->first : NULL; x && rc == 0; x = x->next) {
                size_t i = 0, n = sizeof(kinds) / sizeof(*kinds);

                while (i < n && !xml_is(x, kinds[i].name))
                        i++;
                if (i < n)
                        rc = kinds[i].read(s, x, to);
                else if (!xml_is(x, "display") && !xml_is(x, "help") && !xml_is(x, "options"))
                        rc = tool_fail(x, s->err, "<%s> among the inputs is not supported", x->name);
        }
        return rc;
}

int tool_parameters(struct tool *t, json_t *given, struct err *err)
{
        const struct xml *inputs = xml_child(t->root, "inputs");
        struct scope s = {.t = t,
                          .root = given,
                          .here = given,
                          .used = json_object(),
                          .err = err,
                          .values = t->x.names};
        BUF_CLEANUP struct buf folder = {0};
        const char *key;
        json_t *v;
        int rc = read_inputs(&s, inputs, t->x.names);

        json_object_foreach (given, key, v) {
                if (rc == 0 && !json_object_get(s.used, key) && strncmp(key, "__", 2) != 0)
                        rc = tool_fail(inputs ? inputs : t->root, err, "the tool has no parameter %s", key);
        }
        json_decref(s.used);
        buf_printf(&folder, TOOL_BOX "/" STR_FMT,
                   STR_ARG(str_skip(t->folder, (size_t)(str_rfind(t->folder, '/') + 1))));
        datum_put(&t->arena, t->x.names, STR("__tool_directory__"), datum_text(&t->arena, buf_view(&folder)));
        return rc;
}
