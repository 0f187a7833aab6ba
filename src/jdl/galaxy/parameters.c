/* The inputs of a tool, with the values that a job gives them, as variables of the template. Values are found
 * in the nested form, {"mode": {"select": "a", "x": 1}}, and in Galaxy's flat one, {"mode|select": "a",
 * "series_0|file": …}. A value for which there is no input is refused: most often its name is misspelled. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "jdl/galaxy/tool.h"

#define REPEATS_MAX 10000

struct scope {
        struct tool *t;
        json_t *root;      /* all that was given */
        json_t *here;      /* the object of this level, or NULL */
        struct str prefix; /* of the flat form, "mode|" */
        json_t *used;      /* an object: names of root that were found */
        struct err *err;
};

static int read_inputs(struct scope *s, const struct xml *inputs, struct datum *to);

static struct str name_of(const struct xml *x)
{
        const char *name = xml_get(x, "name"), *argument = xml_get(x, "argument");
        struct str s = str_of(name ? name : argument);

        while (!name && s.n && s.p[0] == '-')
                s = str_skip(s, 1);
        return s;
}

/* argument="--max-depth" is the parameter max_depth. */
static struct str parameter_name(struct scope *s, const struct xml *x)
{
        char *copy = arena_dup(&s->t->arena, name_of(x).p, name_of(x).n);

        for (char *z = copy; *z && !xml_get(x, "name"); z++)
                if (*z == '-')
                        *z = '_';
        return str_make(copy, name_of(x).n);
}

static bool yes(const struct xml *x, const char *attribute)
{
        const char *v = xml_get(x, attribute);

        return v && (str_ieqz(str_of(v), "true") || str_ieqz(str_of(v), "yes") || strcmp(v, "1") == 0);
}

static struct str text_of(const struct xml *x, const char *attribute, const char *otherwise)
{
        const char *v = xml_get(x, attribute);

        return str_of(v ? v : otherwise);
}

/* What was given for a name at this level; NULL: nothing. */
static json_t *find(struct scope *s, struct str name)
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

static const struct {
        char c;
        const char *by;
} replaced[] = {{'>', "__gt__"},  {'<', "__lt__"},  {'\'', "__sq__"}, {'"', "__dq__"}, {'[', "__ob__"},
                {']', "__cb__"},  {'{', "__oc__"},  {'}', "__cc__"},  {'@', "__at__"}, {'\n', "__cn__"},
                {'\r', "__cr__"}, {'\t', "__tc__"}, {'#', "__pd__"}};

static struct str preset(const char *name)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        static const char printable[] =
                "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ!\"#$%&'()*+,-./:;<=>?@["
                "\\]^_`{|}~ \t\n\r\v\f";
        static const char usual[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -=_.()/+*^,:?!";

        if (!name || strcmp(name, "default") == 0)
                return str_of(usual);
        if (strcmp(name, "string.printable") == 0)
                return str_of(printable);
        if (strcmp(name, "string.letters") == 0 || strcmp(name, "string.ascii_letters") == 0)
                return str_of(letters);
        if (strcmp(name, "string.digits") == 0)
                return str_head(str_of(printable), 10);
        return STR_NONE;
}

struct sanitizer {
        bool valid[256];
        const char *by[256];
        const char *other;
};

static int set_valid(struct sanitizer *s, const struct xml *valid, struct err *err)
{
        struct str initial = preset(xml_get(valid, "initial"));

        if (!initial.n && !str_eqz(text_of(valid, "initial", ""), "none") && xml_get(valid, "initial"))
                return tool_fail(valid, err, "the sanitizer's initial=\"%s\" is not supported",
                                 xml_get(valid, "initial"));
        memset(s->valid, 0, sizeof(s->valid));
        for (size_t i = 0; i < initial.n; i++)
                s->valid[(unsigned char)initial.p[i]] = true;
        for (const struct xml *x = valid->first; x; x = x->next) {
                struct str value = text_of(x, "value", ""), chars = preset(xml_get(x, "preset"));
                bool add = xml_is(x, "add");

                if (!add && !xml_is(x, "remove"))
                        return tool_fail(x, err, "<%s> in a sanitizer is not supported", x->name);
                if (!value.n && xml_get(x, "preset"))
                        value = chars;
                for (size_t i = 0; i < value.n; i++)
                        s->valid[(unsigned char)value.p[i]] = add;
        }
        return 0;
}

static int set_mapping(struct sanitizer *s, const struct xml *mapping, struct err *err)
{
        if (xml_get(mapping, "initial") && strcmp(xml_get(mapping, "initial"), "none") == 0)
                memset(s->by, 0, sizeof(s->by));
        for (const struct xml *x = mapping->first; x; x = x->next) {
                struct str source = text_of(x, "source", "");

                if (!xml_is(x, "add") || source.n != 1)
                        return tool_fail(x, err, "<%s> in a sanitizer's mapping is not supported", x->name);
                s->by[(unsigned char)source.p[0]] = xml_get(x, "target") ? xml_get(x, "target") : "";
        }
        return 0;
}

/* A text as Galaxy would put it into a command: what the parameter's sanitizer doesn't let through is
 * replaced. */
static int tool_sanitize(const struct xml *param, struct str text, struct buf *out, struct err *err)
{
        const struct xml *own = xml_child(param, "sanitizer");
        struct sanitizer s = {.other = "X"};
        struct str usual = preset(NULL);
        int rc = 0;

        if (own && xml_get(own, "sanitize") && !yes(own, "sanitize")) {
                buf_str(out, text);
                return 0;
        }
        for (size_t i = 0; i < usual.n; i++)
                s.valid[(unsigned char)usual.p[i]] = true;
        for (size_t i = 0; i < sizeof(replaced) / sizeof(*replaced); i++)
                s.by[(unsigned char)replaced[i].c] = replaced[i].by;
        if (own && xml_get(own, "invalid_char"))
                s.other = xml_get(own, "invalid_char");
        for (const struct xml *x = own ? own->first : NULL; x && rc == 0; x = x->next)
                rc = xml_is(x, "valid") ? set_valid(&s, x, err)
                     : xml_is(x, "mapping")
                             ? set_mapping(&s, x, err)
                             : tool_fail(x, err, "<%s> in a sanitizer is not supported", x->name);
        for (size_t i = 0; i < text.n && rc == 0; i++) {
                unsigned char c = (unsigned char)text.p[i];

                if (s.valid[c])
                        buf_char(out, (char)c);
                else if ((c & 0xc0) != 0x80) /* one for a character of several bytes */
                        buf_addz(out, s.by[c] ? s.by[c] : s.other);
        }
        return rc;
}

static int sanitized(struct scope *s, const struct xml *x, struct str text, struct datum **ret)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        int rc = tool_sanitize(x, text, &b, s->err);

        if (rc == 0 && buf_check(&b) != 0)
                rc = tool_fail(x, s->err, "the value is longer than %u bytes", EXPRESSION_TEXT_MAX);
        if (rc == 0)
                *ret = datum_text(&s->t->arena, buf_view(&b));
        return rc;
}

/* A word that was given, whatever JSON calls it. False: it is none. */
static bool word_of(json_t *given, struct buf *out)
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
                         STR_ARG(s->prefix), STR_ARG(name_of(x)));
}

static int read_text(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};

        if (given && !json_is_null(given)) {
                if (!word_of(given, &b))
                        return tool_fail(x, s->err, "the value of " STR_FMT " is a word",
                                         STR_ARG(name_of(x)));
        } else if (xml_get(x, "value")) {
                buf_addz(&b, xml_get(x, "value"));
        } else if (yes(x, "optional")) {
                *ret = datum_new(&s->t->arena, DATUM_NONE);
                return 0;
        }
        return sanitized(s, x, buf_view(&b), ret);
}

static int read_number(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        BUF_CLEANUP struct buf b = {0};
        bool whole = strcmp(xml_get(x, "type"), "integer") == 0;
        double d, limit;
        int64_t n;

        if (!given || json_is_null(given))
                buf_str(&b, text_of(x, "value", ""));
        else if (!word_of(given, &b))
                return tool_fail(x, s->err, "the value of " STR_FMT " is a number", STR_ARG(name_of(x)));
        if (b.n == 0 && yes(x, "optional")) {
                *ret = datum_text(&s->t->arena, STR_NONE);
                return 0;
        }
        if (b.n == 0)
                return missing(s, x);
        if (str_to_double(buf_view(&b), &d) != 0 || !isfinite(d) ||
            (whole && str_to_i64(buf_view(&b), &n) != 0))
                return tool_fail(x, s->err, "the value '%s' of " STR_FMT " is no %s", buf_z(&b),
                                 STR_ARG(name_of(x)), whole ? "integer" : "number");
        if (xml_get(x, "min") && str_to_double(str_of(xml_get(x, "min")), &limit) == 0 && d < limit)
                return tool_fail(x, s->err, "the value %s of " STR_FMT " is less than %s", buf_z(&b),
                                 STR_ARG(name_of(x)), xml_get(x, "min"));
        if (xml_get(x, "max") && str_to_double(str_of(xml_get(x, "max")), &limit) == 0 && d > limit)
                return tool_fail(x, s->err, "the value %s of " STR_FMT " is more than %s", buf_z(&b),
                                 STR_ARG(name_of(x)), xml_get(x, "max"));
        *ret = whole ? datum_int(&s->t->arena, n) : datum_new(&s->t->arena, DATUM_FLOAT);
        if (!whole)
                (*ret)->number = d;
        return 0;
}

static int read_boolean(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        BUF_CLEANUP struct buf b = {0};
        struct str on = text_of(x, "truevalue", "true"), off = text_of(x, "falsevalue", "false");
        bool is = yes(x, "checked");

        if (given && !json_is_null(given)) {
                if (!word_of(given, &b))
                        return tool_fail(x, s->err, "the value of " STR_FMT " is true or false",
                                         STR_ARG(name_of(x)));
                if (str_eq(buf_view(&b), on) || str_ieqz(buf_view(&b), "true"))
                        is = true;
                else if (str_eq(buf_view(&b), off) || str_ieqz(buf_view(&b), "false"))
                        is = false;
                else
                        return tool_fail(x, s->err, "the value '%s' of " STR_FMT " is neither true nor false",
                                         buf_z(&b), STR_ARG(name_of(x)));
        }
        *ret = datum_bool(&s->t->arena, is);
        (*ret)->written = true;
        (*ret)->text = is ? on : off;
        return 0;
}

/* ---- choices */

/* Its options are in the file itself: one that isn't among them is refused. */
static int check_option(struct scope *s, const struct xml *x, struct str value)
{
        bool any = false;

        for (const struct xml *o = xml_child(x, "option"); o; o = xml_next(o, "option")) {
                any = true;
                if (str_eq(text_of(o, "value", ""), value))
                        return 0;
        }
        return any ? tool_fail(x, s->err, "'" STR_FMT "' is no option of " STR_FMT, STR_ARG(value),
                               STR_ARG(name_of(x)))
                   : 0;
}

static struct datum *chosen_by_default(struct scope *s, const struct xml *x, bool multiple)
{
        struct datum *list = datum_new(&s->t->arena, DATUM_LIST);

        for (const struct xml *o = xml_child(x, "option"); o; o = xml_next(o, "option"))
                if (yes(o, "selected"))
                        datum_add(&s->t->arena, list, datum_text(&s->t->arena, text_of(o, "value", "")));
        if (list->n == 0 && !multiple && !yes(x, "optional") && xml_child(x, "option"))
                datum_add(&s->t->arena, list,
                          datum_text(&s->t->arena, text_of(xml_child(x, "option"), "value", "")));
        return list;
}

static int add_chosen(struct scope *s, const struct xml *x, json_t *given, struct datum *list)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        struct datum *one;
        int rc;

        if (!word_of(given, &b))
                return tool_fail(x, s->err, "the value of " STR_FMT " is a word%s", STR_ARG(name_of(x)),
                                 yes(x, "multiple") ? ", or a list of words" : "");
        rc = check_option(s, x, buf_view(&b));
        if (rc == 0)
                rc = xml_child(x, "option") ? 0 : sanitized(s, x, buf_view(&b), &one);
        if (rc == 0 && xml_child(x, "option"))
                one = datum_text(&s->t->arena, buf_view(&b));
        if (rc == 0)
                datum_add(&s->t->arena, list, one);
        return rc;
}

static int read_select(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        BUF_CLEANUP struct buf joined = {.max = EXPRESSION_TEXT_MAX};
        bool multiple = yes(x, "multiple");
        struct datum *list;
        json_t *one;
        size_t i;
        int rc = 0;

        if (!given || json_is_null(given)) {
                list = chosen_by_default(s, x, multiple);
        } else {
                list = datum_new(&s->t->arena, DATUM_LIST);
                if (json_is_array(given)) {
                        json_array_foreach (given, i, one)
                                if (rc == 0)
                                        rc = add_chosen(s, x, one, list);
                } else {
                        rc = add_chosen(s, x, given, list);
                }
        }
        if (rc != 0)
                return rc;
        if (!multiple && list->n == 0 && !yes(x, "optional"))
                return missing(s, x);
        if (!multiple) {
                *ret = list->n ? list->items[0] : datum_new(&s->t->arena, DATUM_NONE);
                return 0;
        }
        for (size_t k = 0; k < list->n; k++)
                buf_printf(&joined, "%s" STR_FMT,
                           k ? xml_get(x, "separator") ? xml_get(x, "separator") : "," : "",
                           STR_ARG(list->items[k]->text));
        list->written = true;
        list->text = list->n ? arena_str(&s->t->arena, buf_view(&joined)) : STR("None");
        *ret = list;
        return 0;
}

/* ---- data */

static struct datum *from_json(struct arena *a, json_t *v, unsigned depth)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        struct datum *d;
        const char *key;
        json_t *one;
        size_t i;

        if (json_is_integer(v))
                return datum_int(a, json_integer_value(v));
        if (json_is_boolean(v))
                return datum_bool(a, json_is_true(v));
        if (word_of(v, &b))
                return datum_text(a, buf_view(&b));
        d = datum_new(a, json_is_array(v)                               ? DATUM_LIST
                         : json_is_object(v) && depth < DATUM_DEPTH_MAX ? DATUM_MAP
                                                                        : DATUM_NONE);
        if (d->kind == DATUM_LIST && depth < DATUM_DEPTH_MAX)
                json_array_foreach (v, i, one)
                        datum_add(a, d, from_json(a, one, depth + 1));
        if (d->kind == DATUM_MAP)
                json_object_foreach (v, key, one)
                        datum_put(a, d, str_of(key), from_json(a, one, depth + 1));
        return d;
}

static struct str base_name(struct str path)
{
        return str_skip(path, (size_t)(str_rfind(path, '/') + 1));
}

/* A file that the job gets; its name beneath the job's folder in *ret_name. */
static int add_file(struct scope *s, const struct xml *x, struct str path, struct str *ret_name)
{
        struct tool *t = s->t;
        BUF_CLEANUP struct buf b = {0};
        struct str name;

        if (str_starts(path, STR("file://")))
                path = str_skip(path, 7);
        if (str_search(path, STR("://")) < 0 && !str_starts(path, STR("/")))
                buf_printf(&b, STR_FMT "/", STR_ARG(t->params_dir));
        buf_str(&b, path);
        name = base_name(path);
        if (!name.n || str_find(path, ',') >= 0 || str_find(path, '\n') >= 0 || str_find(name, '\'') >= 0)
                return tool_fail(x, s->err, "'" STR_FMT "' cannot be the path of an input", STR_ARG(path));
        for (size_t i = 0; i < t->file_count; i++) {
                if (str_eq(t->files[i], buf_view(&b))) {
                        *ret_name = base_name(t->files[i]);
                        return 0;
                }
                if (str_eq(base_name(t->files[i]), name))
                        return tool_fail(x, s->err,
                                         "two inputs have the name " STR_FMT
                                         " in the job's folder: rename one",
                                         STR_ARG(name));
        }
        if (t->file_count == TOOL_DATA_MAX)
                return tool_fail(x, s->err, "there are more than %u input files", TOOL_DATA_MAX);
        MEM_GROW(t->files, t->file_cap, t->file_count + 1);
        t->files[t->file_count] = arena_str(&t->arena, buf_view(&b));
        *ret_name = base_name(t->files[t->file_count++]);
        return 0;
}

static void put_text(struct tool *t, struct datum *map, const char *key, struct str text)
{
        datum_put(&t->arena, map, str_of(key), datum_text(&t->arena, text));
}

static const char *string_of(json_t *object, const char *const *keys)
{
        for (; *keys; keys++)
                if (json_is_string(json_object_get(object, *keys)))
                        return json_string_value(json_object_get(object, *keys));
        return NULL;
}

/* "data.txt", or {"path": "data.txt", "ext": "txt", "name": "…", "metadata": {…}}. */
static int one_file(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        static const char *const paths[] = {"path", "location", "url", "file", NULL},
                                 *const exts[] = {"ext", "format", "extension", "ftype", NULL},
                                 *const names[] = {"name", "element_identifier", NULL};
        const char *path = json_is_string(given) ? json_string_value(given) : string_of(given, paths), *ext,
                   *label;
        struct datum *d = datum_new(&s->t->arena, DATUM_MAP);
        BUF_CLEANUP struct buf written = {0};
        struct str file, format = text_of(x, "format", "data"), first;
        int rc;

        if (!path)
                return tool_fail(x, s->err,
                                 "the value of " STR_FMT " is a file: \"PATH\", or {\"path\": \"PATH\"}",
                                 STR_ARG(name_of(x)));
        rc = add_file(s, x, str_of(path), &file);
        if (rc != 0)
                return rc;
        str_cut(&format, ',', &first);
        ext = string_of(given, exts);
        if (!ext && str_rfind(file, '.') > 0)
                put_text(s->t, d, "ext", str_skip(file, (size_t)str_rfind(file, '.') + 1));
        else
                put_text(s->t, d, "ext", ext ? str_of(ext) : first);
        datum_put(&s->t->arena, d, STR("extension"), datum_get(d, STR("ext")));
        label = string_of(given, names);
        put_text(s->t, d, "name", label ? str_of(label) : file);
        put_text(s->t, d, "element_identifier", label ? str_of(label) : file);
        buf_printf(&written, TOOL_BOX "/" STR_FMT, STR_ARG(file));
        put_text(s->t, d, "file_name", buf_view(&written));
        datum_put(&s->t->arena, d, STR("metadata"),
                  json_object_get(given, "metadata")
                          ? from_json(&s->t->arena, json_object_get(given, "metadata"), 0)
                          : datum_new(&s->t->arena, DATUM_MAP));
        d->written = true;
        d->text = arena_str(&s->t->arena, buf_view(&written));
        *ret = d;
        return 0;
}

static int read_data(struct scope *s, const struct xml *x, json_t *given, struct datum **ret)
{
        bool multiple = yes(x, "multiple");
        json_t *one;
        size_t i;
        int rc = 0;

        if (!given || json_is_null(given)) {
                if (!yes(x, "optional"))
                        return missing(s, x);
                *ret = datum_new(&s->t->arena, DATUM_NONE);
                return 0;
        }
        if (!multiple)
                return one_file(s, x, given, ret);
        *ret = datum_new(&s->t->arena, DATUM_LIST);
        if (!json_is_array(given)) {
                struct datum *d = NULL;

                rc = one_file(s, x, given, &d);
                if (rc == 0)
                        datum_add(&s->t->arena, *ret, d);
                return rc;
        }
        json_array_foreach (given, i, one) {
                struct datum *d = NULL;

                rc = rc == 0 ? one_file(s, x, one, &d) : rc;
                if (rc == 0 && !datum_add(&s->t->arena, *ret, d))
                        rc = tool_fail(x, s->err, "there are too many files");
        }
        return rc;
}

/* ---- what holds others */

static int read_param(struct scope *s, const struct xml *x, struct datum *to)
{
        static const struct {
                const char *type;
                int (*read)(struct scope *, const struct xml *, json_t *, struct datum **);
        } types[] = {{"data", read_data},   {"integer", read_number},     {"float", read_number},
                     {"text", read_text},   {"boolean", read_boolean},    {"select", read_select},
                     {"hidden", read_text}, {"data_column", read_select}, {"genomebuild", read_select},
                     {"color", read_text}};
        const char *type = xml_get(x, "type");
        struct str name = parameter_name(s, x);
        struct datum *v = NULL;

        if (!type || !name.n)
                return tool_fail(x, s->err, "a <param> needs a name and a type");
        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
                if (strcmp(types[i].type, type) == 0) {
                        int rc = types[i].read(s, x, find(s, name), &v);

                        if (rc == 0)
                                datum_put(&s->t->arena, to, name, v);
                        return rc;
                }
        return tool_fail(x, s->err, "parameters of the type %s are not supported", type);
}

/* The level below: its object, and its prefix. */
static struct scope below(struct scope *s, json_t *here, const char *name, struct buf *prefix)
{
        struct scope b = *s;

        buf_printf(prefix, STR_FMT "%s|", STR_ARG(s->prefix), name);
        b.here = json_is_object(here) ? here : NULL;
        b.prefix = buf_view(prefix);
        return b;
}

static int unknown_names(struct scope *s, const struct xml *x, const struct datum *known)
{
        const char *key;
        json_t *v;

        if (s->here)
                json_object_foreach (s->here, key, v)
                        if (!datum_get(known, str_of(key)) && !json_object_get(s->used, key) &&
                            !(s->here == s->root && strncmp(key, "__", 2) == 0))
                                return tool_fail(x, s->err, "the tool has no parameter " STR_FMT "%s",
                                                 STR_ARG(s->prefix), key);
        return 0;
}

static int read_section(struct scope *s, const struct xml *x, struct datum *to)
{
        BUF_CLEANUP struct buf prefix = {0};
        const char *name = xml_get(x, "name");
        struct datum *d = datum_new(&s->t->arena, DATUM_MAP);
        struct scope inner;
        int rc;

        if (!name)
                return tool_fail(x, s->err, "a <section> needs a name");
        inner = below(s, find(s, str_of(name)), name, &prefix);
        rc = read_inputs(&inner, x, d);
        if (rc == 0)
                rc = unknown_names(&inner, x, d);
        datum_put(&s->t->arena, to, str_of(name), d);
        return rc;
}

static int read_conditional(struct scope *s, const struct xml *x, struct datum *to)
{
        BUF_CLEANUP struct buf prefix = {0}, chosen = {0};
        const char *name = xml_get(x, "name");
        const struct xml *test = xml_child(x, "param"), *when;
        struct datum *d = datum_new(&s->t->arena, DATUM_MAP), *v;
        struct scope inner;
        bool truth;
        int rc;

        if (!name || !test)
                return tool_fail(x, s->err, "a <conditional> needs a name and a <param>");
        inner = below(s, find(s, str_of(name)), name, &prefix);
        rc = read_param(&inner, test, d);
        if (rc != 0)
                return rc;
        v = datum_get(d, parameter_name(s, test));
        datum_write(v, &chosen);
        truth = v->kind == DATUM_BOOL && v->integer;
        for (when = xml_child(x, "when"); when; when = xml_next(when, "when"))
                if (str_eq(text_of(when, "value", ""), buf_view(&chosen)) ||
                    (v->kind == DATUM_BOOL && str_ieqz(text_of(when, "value", ""), truth ? "true" : "false")))
                        break;
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
        inner = below(s, here, buf_z(&numbered), &prefix);
        rc = read_inputs(&inner, x, d);
        if (rc == 0)
                rc = unknown_names(&inner, x, d);
        datum_put(&s->t->arena, d, STR("__index__"), datum_int(&s->t->arena, (int64_t)i));
        datum_add(&s->t->arena, list, d);
        return rc;
}

/* Does the flat form name an i-th one? */
static bool has_flat(struct scope *s, const char *name, size_t i)
{
        BUF_CLEANUP struct buf prefix = {0};
        const char *key;
        json_t *v;

        buf_printf(&prefix, STR_FMT "%s_%zu|", STR_ARG(s->prefix), name, i);
        json_object_foreach (s->root, key, v)
                if (str_starts(str_of(key), buf_view(&prefix)))
                        return true;
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
        given = find(s, str_of(name));
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
                     {"repeat", read_repeat}};
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
        struct scope s = {.t = t, .root = given, .here = given, .used = json_object(), .err = err};
        BUF_CLEANUP struct buf folder = {0};
        const char *key;
        json_t *v;
        int rc = read_inputs(&s, inputs, t->x.names);

        if (rc == 0)
                json_object_foreach (given, key, v)
                        if (rc == 0 && !json_object_get(s.used, key) && strncmp(key, "__", 2) != 0)
                                rc = tool_fail(inputs ? inputs : t->root, err, "the tool has no parameter %s",
                                               key);
        json_decref(s.used);
        buf_printf(&folder, TOOL_BOX "/" STR_FMT, STR_ARG(base_name(t->folder)));
        put_text(t, t->x.names, "__tool_directory__", buf_view(&folder));
        return rc;
}
