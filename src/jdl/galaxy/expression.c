/* A recursive-descent parser that evaluates while it reads. Parts that are not to be evaluated (the other
 * operand of and, or, if) are read with `live` off; a comprehension reads its element once for each item. */
#include "jdl/galaxy/expression.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "jdl/galaxy/methods.h"
#include "jdl/galaxy/operators.h"

#define DEPTH_MAX 100u
#define ARENA_MAX (256u << 20)

struct reader {
        struct expressions *x;
        const char *p, *begin, *end;
        bool live;
        struct err *err;
};

static int read_or(struct reader *r, struct datum **ret);
static int read_test(struct reader *r, struct datum **ret);

static int fail_expression(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail_expression(struct reader *r, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        err_vset(r->err, -EINVAL, fmt, ap);
        va_end(ap);
        return -EINVAL;
}

static struct datum *none(struct reader *r)
{
        return datum_new(r->x->arena, DATUM_NONE);
}

static void blanks(struct reader *r)
{
        while (r->p < r->end &&
               (isspace((unsigned char)*r->p) || (*r->p == '\\' && r->p + 1 < r->end && r->p[1] == '\n')))
                r->p++;
}

static bool is_name_char(char c)
{
        return isalnum((unsigned char)c) || c == '_';
}

/* Reads an operator or bracket, after blanks. */
static bool expression_take_word(struct reader *r, const char *word)
{
        size_t n = strlen(word);

        blanks(r);
        if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
                return false;
        if (is_name_char(word[n - 1]) && r->p + n < r->end && is_name_char(r->p[n]))
                return false;
        r->p += n;
        return true;
}

static bool ahead(struct reader *r, const char *word)
{
        const char *p = r->p;
        bool is = expression_take_word(r, word);

        r->p = p;
        return is;
}

static int need(struct reader *r, const char *word)
{
        if (expression_take_word(r, word))
                return 0;
        if (r->p == r->end)
                return fail_expression(r, "'%s' is missing at the end", word);
        return fail_expression(r, "'%s' is missing before '" STR_FMT "'", word,
                               STR_ARG(str_head(str_make(r->p, (size_t)(r->end - r->p)), 20)));
}

static struct str read_name(struct reader *r)
{
        const char *p = r->p;

        if (p < r->end && (isalpha((unsigned char)*p) || *p == '_'))
                while (r->p < r->end && is_name_char(*r->p))
                        r->p++;
        return str_make(p, (size_t)(r->p - p));
}

static bool is_keyword(struct str s)
{
        static const char *const words[] = {"and", "or", "not", "in", "is", "if", "else", "for", "lambda"};

        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
                if (str_eqz(s, words[i]))
                        return true;
        return false;
}

/* ---- literals */

static bool is_end_quote(const struct reader *r, char quote, bool triple)
{
        return *r->p == quote && (!triple || (r->end - r->p >= 3 && r->p[1] == quote && r->p[2] == quote));
}

/* raw: a literal such as r"\d", in which backslashes are not escapes */
static int expression_read_text(struct reader *r, bool raw, struct datum **ret)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        char quote = *r->p++;
        bool triple = r->end - r->p >= 2 && r->p[0] == quote && r->p[1] == quote;

        if (triple)
                r->p += 2;
        while (r->p < r->end && !is_end_quote(r, quote, triple)) {
                char c = *r->p++;

                if (c == '\n' && !triple)
                        return fail_expression(r, "a text does not end on its line");
                if (c == '\\' && r->p < r->end && !raw) {
                        static const char from[] = "nrt\\'\"", to[] = "\n\r\t\\'\"";
                        const char *at = strchr(from, *r->p);

                        if (at && *at) {
                                buf_char(&b, to[at - from]);
                                r->p++;
                                continue;
                        }
                }
                buf_char(&b, c);
        }
        if (r->p == r->end)
                return fail_expression(r, "a text has no end");
        r->p += triple ? 3 : 1;
        *ret = datum_text(r->x->arena, buf_view(&b));
        return 0;
}

static int expression_read_number(struct reader *r, struct datum **ret)
{
        const char *p = r->p;
        bool whole = true;
        int64_t n;
        double d;

        while (r->p < r->end && (isdigit((unsigned char)*r->p) || *r->p == '.' ||
                                 ((*r->p == 'e' || *r->p == 'E') && r->p > p))) {
                if (*r->p == '.' || *r->p == 'e' || *r->p == 'E')
                        whole = false;
                r->p++;
                if (!whole && (r->p[-1] == 'e' || r->p[-1] == 'E') && r->p < r->end &&
                    (*r->p == '-' || *r->p == '+'))
                        r->p++;
        }
        if (whole && str_to_i64(str_make(p, (size_t)(r->p - p)), &n) == 0) {
                *ret = datum_int(r->x->arena, n);
                return 0;
        }
        if (str_to_double(str_make(p, (size_t)(r->p - p)), &d) != 0)
                return fail_expression(r, "'" STR_FMT "' is no number",
                                       STR_ARG(str_make(p, (size_t)(r->p - p))));
        *ret = datum_float(r->x->arena, d);
        return 0;
}

/* ---- comprehensions */

static int read_targets(struct reader *r, struct expression_target *ret);
static int index_of(struct reader *r, struct datum *self, struct datum *key, struct datum **ret);

/* Reads name, name[index]… or (targets). Elements are read for their syntax only, until they are bound. */
static int read_target(struct reader *r, struct expression_target *ret)
{
        struct datum *v;
        bool live = r->live;
        const char *p;
        int rc = 0;

        *ret = (struct expression_target){.n = 0};
        if (expression_take_word(r, "(")) {
                if (++r->x->depth > DEPTH_MAX)
                        return fail_expression(r, "nested too deep");
                rc = read_targets(r, ret);
                r->x->depth--;
                return rc == 0 ? need(r, ")") : rc;
        }
        expression_take_word(r, "$");
        blanks(r);
        p = r->p;
        ret->name = read_name(r);
        if (!ret->name.n || is_keyword(ret->name))
                return fail_expression(r, "a variable's name is missing");
        r->live = false;
        while (rc == 0 && r->p < r->end && *r->p == '[') {
                ret->of = str_make(p, (size_t)(r->p++ - p));
                ret->index = str_make(r->p, (size_t)(r->end - r->p));
                rc = read_test(r, &v);
                if (rc == 0)
                        rc = need(r, "]");
        }
        r->live = live;
        return rc;
}

static int read_targets(struct reader *r, struct expression_target *ret)
{
        struct expression_target *items = NULL;
        size_t n = 1;
        int rc = read_target(r, ret);

        while (rc == 0 && expression_take_word(r, ",")) {
                if (!items) {
                        items = arena_alloc(r->x->arena, EXPRESSION_TARGETS_MAX * sizeof(*items));
                        items[0] = *ret;
                }
                if (n == EXPRESSION_TARGETS_MAX)
                        return fail_expression(r, "more than %d variables side by side",
                                               EXPRESSION_TARGETS_MAX);
                rc = read_target(r, &items[n++]);
        }
        if (items)
                *ret = (struct expression_target){.items = items, .n = n};
        return rc;
}

static struct reader reader_of(struct expressions *x, struct str s, struct err *err)
{
        return (struct reader){.x = x, .p = s.p, .begin = s.p, .end = s.p + s.n, .live = true, .err = err};
}

static int bind_element(struct expressions *x, const struct expression_target *t, struct datum *v,
                        struct err *err)
{
        struct reader of_reader = reader_of(x, t->of, err), key_reader = reader_of(x, t->index, err);
        BUF_CLEANUP struct buf b = {.max = 65536};
        struct datum *of, *key, *had;
        int rc = read_test(&of_reader, &of);

        if (rc == 0)
                rc = read_test(&key_reader, &key);
        if (rc != 0)
                return rc;
        if (of->kind == DATUM_MAP && !of->written && !of->section) {
                if (!datum_write(key, &b) || buf_check(&b) != 0)
                        return err_set(err, -EINVAL, "a %s as the key of a dict", datum_kind_name(key));
                if (!datum_put(x->arena, of, buf_view(&b), v))
                        return err_set(err, -E2BIG, "a dict has more than %u items", DATUM_ITEMS_MAX);
                return 0;
        }
        if (of->kind != DATUM_LIST || of->tuple || of->collection)
                return err_set(err, -EINVAL, "an item of a %s cannot be set",
                               of->tuple ? "tuple" : datum_kind_name(of));
        rc = index_of(&key_reader, of, key, &had);
        if (rc == 0)
                of->items[key->integer < 0 ? key->integer + (int64_t)of->n : key->integer] = v;
        return rc;
}

int expression_bind(struct expressions *x, const struct expression_target *t, struct datum *v, bool shared,
                    struct err *err)
{
        int rc = 0;

        if (t->of.n)
                return bind_element(x, t, v, err);
        if (t->name.n)
                return datum_put(x->arena, x->names, t->name, v) &&
                                       (!shared || datum_put(x->arena, x->shared, t->name, v))
                               ? 0
                               : err_set(err, -E2BIG, "there are more than %u variables", DATUM_ITEMS_MAX);
        if (v->kind != DATUM_LIST || v->n != t->n)
                return err_set(err, -EINVAL, "%zu names for what is no list of so many", t->n);
        for (size_t i = 0; i < t->n && rc == 0; i++)
                rc = expression_bind(x, &t->items[i], v->items[i], shared, err);
        return rc;
}

int expression_iterate(struct expressions *x, struct datum *over, struct datum **ret_list, struct err *err)
{
        struct datum *list;

        if (over->kind == DATUM_LIST) {
                *ret_list = over;
                return 0;
        }
        if (over->kind != DATUM_MAP || over->written)
                return err_set(err, -EINVAL, "a for goes through a list, not a %s", datum_kind_name(over));
        list = datum_new(x->arena, DATUM_LIST);
        for (size_t i = 0; i < over->n; i++)
                datum_add(x->arena, list, datum_text(x->arena, over->keys[i]));
        *ret_list = list;
        return 0;
}

/* After an element, reads "for x in LIST [if CONDITION]"; the element is read again for each item. */
static int read_comprehension(struct reader *r, const char *element, struct datum **ret)
{
        struct datum *over, *items = NULL, *list = datum_new(r->x->arena, DATUM_LIST), *v;
        struct expression_target t;
        const char *condition = NULL, *end;
        bool live = r->live;
        int rc = read_targets(r, &t);

        if (rc == 0)
                rc = need(r, "in");
        if (rc == 0)
                rc = read_or(r, &over);
        if (rc == 0 && live)
                rc = expression_iterate(r->x, over, &items, r->err);
        if (rc != 0)
                return rc;
        r->live = false;
        if (expression_take_word(r, "if")) {
                condition = r->p;
                rc = read_or(r, &v);
        }
        end = r->p;
        r->live = live;
        for (size_t i = 0; rc == 0 && live && i < items->n; i++) {
                rc = expression_bind(r->x, &t, items->items[i], false, r->err);
                if (rc == 0 && condition) {
                        r->p = condition;
                        rc = read_or(r, &v);
                        if (rc != 0 || !datum_true(v))
                                continue;
                }
                r->p = element;
                if (rc == 0)
                        rc = read_test(r, &v);
                if (rc == 0 && !datum_add(r->x->arena, list, v))
                        rc = fail_expression(r, "a list has more than %u items", DATUM_ITEMS_MAX);
        }
        r->p = end;
        *ret = list;
        return rc;
}

/* ONE: a single value without a comma */
enum brackets { BRACKETS_ITEMS, BRACKETS_ONE, BRACKETS_COMPREHENSION };

/* Reads the content of brackets, separated by commas, into a list; for a comprehension, its list. */
static int read_items(struct reader *r, const char *close, enum brackets *ret_form, struct datum **ret)
{
        struct datum *list = datum_new(r->x->arena, DATUM_LIST), *v;
        int rc;

        *ret_form = BRACKETS_ITEMS;
        while (!expression_take_word(r, close)) {
                bool live = r->live;
                const char *element = r->p;

                if (list->n == 0) { /* its names may be defined only after it */
                        r->live = false;
                        rc = read_test(r, &v);
                        r->live = live;
                        if (rc != 0)
                                return rc;
                        if (expression_take_word(r, "for")) {
                                *ret_form = BRACKETS_COMPREHENSION;
                                rc = read_comprehension(r, element, ret);
                                return rc == 0 ? need(r, close) : rc;
                        }
                        if (live)
                                r->p = element;
                }
                rc = r->live || list->n ? read_test(r, &v) : 0;
                if (rc != 0)
                        return rc;
                if (!datum_add(r->x->arena, list, v))
                        return fail_expression(r, "a list has more than %u items", DATUM_ITEMS_MAX);
                if (expression_take_word(r, ","))
                        *ret_form = BRACKETS_ITEMS;
                else if (ahead(r, close))
                        *ret_form = list->n == 1 ? BRACKETS_ONE : *ret_form;
                else
                        return need(r, close);
        }
        *ret = list;
        return 0;
}

/* ---- operands */

static int read_list(struct reader *r, struct datum **ret)
{
        enum brackets form;

        return read_items(r, "]", &form, ret);
}

/* Reads (a), which is a; or a tuple: (a,), (a, b) or (). */
static int read_tuple(struct reader *r, struct datum **ret)
{
        enum brackets form;
        int rc = read_items(r, ")", &form, ret);

        if (rc == 0 && form == BRACKETS_ONE)
                *ret = (*ret)->items[0];
        else if (rc == 0 && form == BRACKETS_ITEMS)
                (*ret)->tuple = true;
        return rc;
}

/* Reads {"a": 1, …}; keys must be texts. */
static int read_dict(struct reader *r, struct datum **ret)
{
        struct datum *map = datum_new(r->x->arena, DATUM_MAP), *key, *v;

        while (!expression_take_word(r, "}")) {
                BUF_CLEANUP struct buf b = {.max = 65536};
                int rc = read_test(r, &key);

                if (rc == 0)
                        rc = need(r, ":");
                if (rc == 0)
                        rc = read_test(r, &v);
                if (rc != 0)
                        return rc;
                if (r->live && (!datum_write(key, &b) || buf_check(&b) != 0))
                        return fail_expression(r, "a %s as the key of a dict", datum_kind_name(key));
                if (r->live && !datum_put(r->x->arena, map, buf_view(&b), v))
                        return fail_expression(r, "a dict has more than %u items", DATUM_ITEMS_MAX);
                if (!expression_take_word(r, ",") && !ahead(r, "}"))
                        return need(r, "}");
        }
        *ret = map;
        return 0;
}

/* self: the value whose method NAME is called; a function, which has a name of its own; or NULL: a function
 * of that name. */
static int read_call(struct reader *r, struct datum *self, struct str name, struct datum **ret)
{
        struct datum *arguments;
        enum brackets form;
        int rc = read_items(r, ")", &form, &arguments);

        if (rc == 0 && form == BRACKETS_COMPREHENSION) {
                struct datum *only = arguments;

                arguments = datum_new(r->x->arena, DATUM_LIST);
                datum_add(r->x->arena, arguments, only);
        }
        *ret = none(r);
        if (rc != 0 || !r->live)
                return rc;
        if (self && self->kind == DATUM_FUNCTION)
                return value_call(r->x, self, arguments, ret, r->err);
        return self ? method_call(r->x, self, name, arguments, ret, r->err)
                    : builtin_call(r->x, name, arguments, ret, r->err);
}

static int index_of(struct reader *r, struct datum *self, struct datum *key, struct datum **ret)
{
        if (self->kind == DATUM_MAP || (self->collection && key->kind == DATUM_TEXT)) {
                BUF_CLEANUP struct buf b = {.max = 65536};

                datum_write(key, &b);
                *ret = datum_get(self, buf_view(&b));
                return *ret ? 0 : fail_expression(r, "there is no '%s' in it", buf_z(&b));
        }
        if (key->kind != DATUM_INT)
                return fail_expression(r, "an index is a number");
        if (self->kind == DATUM_LIST || self->kind == DATUM_TEXT) {
                int64_t n = (int64_t)(self->kind == DATUM_LIST ? self->n : self->text.n),
                        i = key->integer < 0 ? key->integer + n : key->integer;

                if (i < 0 || i >= n)
                        return fail_expression(r, "there is no item %lld of %lld", (long long)key->integer,
                                               (long long)n);
                *ret = self->kind == DATUM_LIST ? self->items[i]
                                                : datum_text(r->x->arena, str_make(self->text.p + i, 1));
                return 0;
        }
        return fail_expression(r, "a %s has no items", datum_kind_name(self));
}

/* Returns [first:end] of a list or a text; NULL: not given. */
static int slice_of(struct reader *r, struct datum *self, const struct datum *first, const struct datum *end,
                    struct datum **ret)
{
        struct datum *of = self->kind == DATUM_LIST ? self : NULL, *list = datum_new(r->x->arena, DATUM_LIST);
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        const struct datum *given[2] = {first, end};
        int64_t at[2];

        if (!of && (!datum_write(self, &b) || buf_check(&b) != 0))
                return fail_expression(r, "a %s has no items", datum_kind_name(self));
        at[0] = 0;
        at[1] = (int64_t)(of ? of->n : b.n);
        for (int64_t i = 0, n = at[1]; i < 2; i++) {
                if (!given[i] || given[i]->kind == DATUM_NONE)
                        continue;
                if (given[i]->kind != DATUM_INT)
                        return fail_expression(r, "an index is a number");
                at[i] = given[i]->integer < 0 ? given[i]->integer + n : given[i]->integer;
                at[i] = at[i] < 0 ? 0 : at[i] > n ? n : at[i];
        }
        if (at[1] < at[0])
                at[1] = at[0];
        if (!of) {
                *ret = datum_text(r->x->arena, str_make(buf_view(&b).p + at[0], (size_t)(at[1] - at[0])));
                return 0;
        }
        list->tuple = of->tuple;
        for (int64_t i = at[0]; i < at[1]; i++)
                datum_add(r->x->arena, list, of->items[i]);
        *ret = list;
        return 0;
}

/* After a '[': reads an index or a slice up to its ']'. */
static int read_index(struct reader *r, struct datum **v)
{
        struct datum *first = NULL, *end = NULL;
        bool part;
        int rc = ahead(r, ":") ? 0 : read_test(r, &first);

        if (rc != 0)
                return rc;
        part = expression_take_word(r, ":");
        if (part && !ahead(r, "]") && !ahead(r, ":"))
                rc = read_test(r, &end);
        if (rc == 0 && ahead(r, ":"))
                rc = fail_expression(r, "a part of a list by [a:b:c] is not supported");
        if (rc == 0)
                rc = need(r, "]");
        if (rc != 0 || !r->live)
                return rc;
        return part ? slice_of(r, *v, first, end, v) : index_of(r, *v, first, v);
}

/* Returns a parameter's value without its written form: True for "--fast". */
static struct datum *bare_value(struct reader *r, struct datum *v)
{
        struct datum *bare = v;

        if (v->written && v->kind != DATUM_MAP) {
                bare = datum_new(r->x->arena, v->kind);
                *bare = *v;
                bare->written = false;
        }
        return bare;
}

/* Reads an attribute of os.path or another module: a module or a function, by its full name. */
static int read_module(struct reader *r, struct datum *self, struct str name, struct datum **ret)
{
        BUF_CLEANUP struct buf whole = {0};

        buf_printf(&whole, STR_FMT "." STR_FMT, STR_ARG(self->text), STR_ARG(name));
        *ret = datum_function(r->x->arena, buf_view(&whole));
        if (r->p == r->end || *r->p != '(')
                return 0;
        r->p++;
        return read_call(r, NULL, (*ret)->text, ret);
}

/* The error for a missing attribute says that the job may not have given it. */
static int fail_attribute(struct reader *r, struct str name)
{
        static const struct {
                const char *name, *hint;
        } hints[] = {
                {"fields", ": it needs the data table that the value is from, by --tables"},
                {"extra_files_path", ": give the folder as \"extra_files\" beside the \"path\" of the file"}};
        const char *hint = "";

        for (size_t i = 0; i < sizeof(hints) / sizeof(*hints); i++)
                if (str_eqz(name, hints[i].name))
                        hint = hints[i].hint;
        return fail_expression(r, "." STR_FMT " is not known of this value%s", STR_ARG(name), hint);
}

static int read_attribute(struct reader *r, struct datum *self, struct datum **ret)
{
        struct str name = read_name(r);

        if (!name.n)
                return fail_expression(r, "a name is missing behind the point");
        if (r->live && self->kind == DATUM_FUNCTION)
                return read_module(r, self, name, ret);
        if (r->p < r->end && *r->p == '(') {
                r->p++;
                return read_call(r, self, name, ret);
        }
        if (!r->live)
                return 0;
        *ret = datum_attribute(self, name);
        if (!*ret && str_eqz(name, "value"))
                *ret = bare_value(r, self);
        return *ret ? 0 : fail_attribute(r, name);
}

/* Reads .attribute, [index] and (arguments). tight: without blanks in between, as in a template's text. */
static int read_trailers(struct reader *r, bool tight, struct datum **v)
{
        int rc = 0;

        while (rc == 0) {
                if (!tight)
                        blanks(r);
                if (r->p == r->end)
                        return 0;
                if (*r->p == '.' && r->p + 1 < r->end &&
                    (isalpha((unsigned char)r->p[1]) || r->p[1] == '_')) {
                        r->p++;
                        rc = read_attribute(r, *v, v);
                } else if (*r->p == '[') {
                        r->p++;
                        rc = read_index(r, v);
                } else if (*r->p == '(') {
                        return fail_expression(r, "what is called here is not a function");
                } else {
                        return 0;
                }
        }
        return rc;
}

static int read_variable(struct reader *r, bool tight, struct datum **ret)
{
        struct str name = read_name(r);
        struct datum *v;
        int rc = 0;

        *ret = none(r);
        if (!name.n)
                return fail_expression(r, "'" STR_FMT "' is not understood",
                                       STR_ARG(str_head(str_make(r->p, (size_t)(r->end - r->p)), 20)));
        v = r->live ? datum_find(r->x->names, name) : NULL;
        if (r->p < r->end && *r->p == '(' && (!v || v->kind == DATUM_FUNCTION)) {
                r->p++;
                rc = read_call(r, v, name, ret);
        } else if (!v && (str_eqz(name, "True") || str_eqz(name, "False"))) {
                *ret = datum_bool(r->x->arena, name.p[0] == 'T');
        } else if (str_eqz(name, "lambda")) {
                rc = fail_expression(r, "lambda is not supported");
        } else if ((v || !str_eqz(name, "None")) && r->live) {
                *ret = v ? v : builtin_named(r->x, name);
                if (!*ret)
                        rc = fail_expression(r, "there is no variable " STR_FMT, STR_ARG(name));
        }
        return rc == 0 ? read_trailers(r, tight, ret) : rc;
}

static int read_atom(struct reader *r, struct datum **ret)
{
        int rc;

        blanks(r);
        *ret = none(r);
        if (r->p == r->end)
                return fail_expression(r, "something is missing at the end");
        if (*r->p == '"' || *r->p == '\'') {
                rc = expression_read_text(r, false, ret);
        } else if ((*r->p == 'r' || *r->p == 'u') && r->p + 1 < r->end &&
                   (r->p[1] == '"' || r->p[1] == '\'')) {
                bool raw = *r->p++ == 'r';

                rc = expression_read_text(r, raw, ret);
        } else if (isdigit((unsigned char)*r->p) ||
                   (*r->p == '.' && r->p + 1 < r->end && isdigit((unsigned char)r->p[1]))) {
                rc = expression_read_number(r, ret);
        } else if (expression_take_word(r, "[")) {
                rc = read_list(r, ret);
        } else if (expression_take_word(r, "${")) {
                rc = read_test(r, ret);
                rc = rc == 0 ? need(r, "}") : rc;
        } else if (expression_take_word(r, "$(") || expression_take_word(r, "(")) {
                rc = read_tuple(r, ret);
        } else if (expression_take_word(r, "$[")) {
                rc = read_list(r, ret);
        } else if (expression_take_word(r, "{")) {
                rc = read_dict(r, ret);
        } else {
                expression_take_word(r, "$");
                return read_variable(r, false, ret);
        }
        return rc == 0 ? read_trailers(r, false, ret) : rc;
}

/* ---- operators, highest precedence first */

static int negate(struct reader *r, struct datum **v)
{
        double d;

        if (!r->live)
                return 0;
        if (!datum_number(*v, &d))
                return fail_expression(r, "- of a %s", datum_kind_name(*v));
        *v = (*v)->kind == DATUM_FLOAT ? datum_float(r->x->arena, -d)
                                       : datum_int(r->x->arena, (int64_t) - (uint64_t)(*v)->integer);
        return 0;
}

static int read_unary(struct reader *r, struct datum **ret)
{
        int rc;

        if (++r->x->steps > EXPRESSION_STEPS_MAX)
                return err_set(r->err, -E2BIG, "it takes more than %u steps", EXPRESSION_STEPS_MAX);
        if (r->x->arena->used > ARENA_MAX)
                return err_set(r->err, -E2BIG, "it takes more than %u MiB", ARENA_MAX >> 20);
        if (++r->x->depth > DEPTH_MAX)
                return fail_expression(r, "it is nested too deep");
        if (expression_take_word(r, "-")) {
                rc = read_unary(r, ret);
                if (rc == 0)
                        rc = negate(r, ret);
        } else {
                rc = read_atom(r, ret);
        }
        r->x->depth--;
        return rc;
}

static int read_product(struct reader *r, struct datum **ret)
{
        static const char *const operators[] = {"//", "*", "/", "%"};
        int rc = read_unary(r, ret);

        for (size_t i = 0; rc == 0 && i < 4;) {
                struct datum *right;

                if (!expression_take_word(r, operators[i])) {
                        i++;
                        continue;
                }
                rc = read_unary(r, &right);
                if (rc == 0 && r->live)
                        rc = operator_apply(r->x, operators[i], *ret, right, ret, r->err);
                i = 0;
        }
        return rc;
}

static int read_sum(struct reader *r, struct datum **ret)
{
        int rc = read_product(r, ret);

        while (rc == 0) {
                const char *op = expression_take_word(r, "+")   ? "+"
                                 : expression_take_word(r, "-") ? "-"
                                                                : NULL;
                struct datum *right;

                if (!op)
                        break;
                rc = read_product(r, &right);
                if (rc == 0 && r->live)
                        rc = operator_apply(r->x, op, *ret, right, ret, r->err);
        }
        return rc;
}

static const char *comparison(struct reader *r)
{
        static const char *const operators[] = {"==", "!=", "<=", ">=", "<", ">", "in"};

        for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
                if (expression_take_word(r, operators[i]))
                        return operators[i];
        if (expression_take_word(r, "is"))
                return expression_take_word(r, "not") ? "is not" : "is";
        if (ahead(r, "not")) {
                const char *p = r->p;

                expression_take_word(r, "not");
                if (expression_take_word(r, "in"))
                        return "not in";
                r->p = p;
        }
        return NULL;
}

static int read_comparison(struct reader *r, struct datum **ret)
{
        int rc = read_sum(r, ret);
        bool so = true, any = false;
        const char *op;

        while (rc == 0 && (op = comparison(r)) != NULL) {
                struct datum *right, *is;

                rc = read_sum(r, &right);
                if (rc == 0 && r->live)
                        rc = operator_apply(r->x, op, *ret, right, &is, r->err);
                if (rc == 0 && r->live)
                        so = so && datum_true(is);
                any = true;
                *ret = right;
        }
        if (rc == 0 && any)
                *ret = datum_bool(r->x->arena, so);
        return rc;
}

static int read_not(struct reader *r, struct datum **ret)
{
        bool negated = false;
        int rc;

        while (expression_take_word(r, "not"))
                negated = !negated;
        rc = read_comparison(r, ret);
        if (rc == 0 && negated)
                *ret = datum_bool(r->x->arena, !datum_true(*ret));
        /* an even number of minus signs also gives a bool, but that does not occur */
        return rc;
}

static int read_chain(struct reader *r, const char *word, bool stops_at,
                      int (*operand)(struct reader *, struct datum **), struct datum **ret)
{
        bool live = r->live;
        int rc = operand(r, ret);

        while (rc == 0 && expression_take_word(r, word)) {
                struct datum *right;
                bool decided = live && datum_true(*ret) == stops_at;

                if (decided)
                        r->live = false;
                rc = operand(r, &right);
                if (!decided && rc == 0)
                        *ret = right;
        }
        r->live = live;
        return rc;
}

static int read_and(struct reader *r, struct datum **ret)
{
        return read_chain(r, "and", false, read_not, ret);
}

static int read_or(struct reader *r, struct datum **ret)
{
        return read_chain(r, "or", true, read_and, ret);
}

/* Reads A if CONDITION else B. A was read before it is known whether it is used. */
static int read_test(struct reader *r, struct datum **ret)
{
        const char *first = r->p, *end;
        struct datum *condition, *other;
        bool live = r->live;
        int rc;

        r->live = false;
        rc = read_or(r, ret);
        r->live = live;
        if (rc != 0)
                return rc;
        if (!expression_take_word(r, "if")) {
                if (!live)
                        return 0;
                r->p = first;
                return read_or(r, ret);
        }
        rc = read_or(r, &condition);
        if (rc == 0)
                rc = need(r, "else");
        if (rc != 0)
                return rc;
        r->live = live && !datum_true(condition);
        rc = read_test(r, &other);
        r->live = live;
        end = r->p;
        *ret = other;
        if (rc == 0 && live && datum_true(condition)) {
                r->p = first;
                rc = read_or(r, ret);
                r->p = end;
        }
        return rc;
}

/* ---- public functions */

int expression_read(struct expressions *x, struct str s, struct datum **ret, size_t *ret_used,
                    struct err *err)
{
        struct reader r = reader_of(x, s, err);
        int rc;

        x->depth = 0;
        rc = read_test(&r, ret);
        *ret_used = (size_t)(r.p - r.begin);
        return rc;
}

int expression_values(struct expressions *x, struct str s, struct datum **ret, size_t *ret_used,
                      struct err *err)
{
        struct reader r = reader_of(x, s, err);
        struct datum *tuple = NULL, *v;
        int rc;

        x->depth = 0;
        rc = read_test(&r, ret);
        while (rc == 0 && expression_take_word(&r, ",")) {
                if (!tuple) {
                        tuple = datum_new(x->arena, DATUM_LIST);
                        tuple->tuple = true;
                        datum_add(x->arena, tuple, *ret);
                        *ret = tuple;
                }
                blanks(&r);
                if (r.p == r.end) /* (1,) */
                        break;
                rc = read_test(&r, &v);
                if (rc == 0 && !datum_add(x->arena, tuple, v))
                        rc = fail_expression(&r, "a tuple has more than %u items", DATUM_ITEMS_MAX);
        }
        *ret_used = (size_t)(r.p - r.begin);
        return rc;
}

int expression_all(struct expressions *x, struct str s, struct datum **ret, struct err *err)
{
        size_t used;
        int rc = expression_read(x, s, ret, &used, err);

        if (rc == 0 && str_trim(str_skip(s, used)).n)
                return err_set(err, -EINVAL, "'" STR_FMT "' is not understood",
                               STR_ARG(str_head(str_trim(str_skip(s, used)), 60)));
        return rc;
}

int expression_place(struct expressions *x, struct str s, struct datum **ret, size_t *ret_used,
                     struct err *err)
{
        struct reader r = reader_of(x, s, err);
        int rc;

        x->depth = 0;
        if (s.n && (s.p[0] == '{' || s.p[0] == '(')) {
                const char *close = s.p[0] == '{' ? "}" : ")";

                r.p++;
                rc = read_test(&r, ret);
                if (rc == 0)
                        rc = need(&r, close);
        } else {
                rc = read_variable(&r, true, ret);
        }
        *ret_used = (size_t)(r.p - r.begin);
        return rc;
}

int expression_add(struct expressions *x, struct datum *a, struct datum *b, struct datum **ret,
                   struct err *err)
{
        return operator_apply(x, "+", a, b, ret, err);
}

int expression_text(struct expressions *x, struct buf *text, struct datum **ret, struct err *err)
{
        if (buf_check(text) != 0)
                return err_set(err, -E2BIG, "a text is longer than %u bytes", EXPRESSION_TEXT_MAX);
        *ret = datum_text(x->arena, buf_view(text));
        return 0;
}

int expression_target_read(struct expressions *x, struct str s, struct expression_target *ret,
                           size_t *ret_used, struct err *err)
{
        struct reader r = reader_of(x, s, err);
        int rc;

        x->depth = 0;
        rc = read_targets(&r, ret);
        *ret_used = (size_t)(r.p - r.begin);
        return rc;
}
