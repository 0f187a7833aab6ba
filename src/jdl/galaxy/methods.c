#include "jdl/galaxy/methods.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "jdl/galaxy/formats.h"
#include "jdl/galaxy/modules.h"

struct call {
        struct expressions *x;
        struct datum *self;
        const struct datum *arguments;
        struct datum **ret;
        struct err *err;
};

static struct datum *argument(const struct call *c, size_t i)
{
        return i < c->arguments->n ? c->arguments->items[i] : NULL;
}

/* Returns the written form of a value as a text. May return -E2BIG or -EINVAL. */
static int written(struct expressions *x, const struct datum *v, struct datum **ret, struct err *err)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};

        if (!datum_write(v, &b))
                return err_set(err, -EINVAL, "a %s has no text", datum_kind_name(v));
        return expression_text(x, &b, ret, err);
}

/* ---- functions */

static int call_str(struct call *c)
{
        return written(c->x, argument(c, 0), c->ret, c->err);
}

static int to_number(struct call *c, bool whole)
{
        const struct datum *v = argument(c, 0);
        struct datum *text = NULL;
        double d;

        if (!datum_number(v, &d)) {
                int rc = written(c->x, v, &text, c->err);

                if (rc != 0)
                        return rc;
                if (str_to_double(str_trim(text->text), &d) != 0)
                        return err_set(c->err, -EINVAL, "'" STR_FMT "' is no number",
                                       STR_ARG(str_head(text->text, 60)));
        }
        *c->ret = datum_of_number(c->x->arena, whole ? trunc(d) : d, whole);
        return 0;
}

static int call_int(struct call *c)
{
        return to_number(c, true);
}

static int call_float(struct call *c)
{
        return to_number(c, false);
}

static int call_bool(struct call *c)
{
        *c->ret = datum_bool(c->x->arena, datum_true(argument(c, 0)));
        return 0;
}

static int call_len(struct call *c)
{
        const struct datum *v = argument(c, 0);

        if (v->kind != DATUM_LIST && v->kind != DATUM_MAP && v->kind != DATUM_TEXT)
                return err_set(c->err, -EINVAL, "len() of a %s", datum_kind_name(v));
        *c->ret = datum_int(c->x->arena, (int64_t)(v->kind == DATUM_TEXT ? v->text.n : v->n));
        return 0;
}

static int methods_too_many(struct call *c)
{
        return err_set(c->err, -E2BIG, "a list has more than %u items", DATUM_ITEMS_MAX);
}

static int call_range(struct call *c)
{
        int64_t v[3] = {0, 0, 1};

        for (size_t i = 0; i < c->arguments->n; i++) {
                if (argument(c, i)->kind != DATUM_INT || llabs(argument(c, i)->integer) > 1000000000000)
                        return err_set(c->err, -EINVAL, "range() takes numbers");
                v[c->arguments->n == 1 ? 1 : i] = argument(c, i)->integer;
        }
        if (v[2] == 0)
                return err_set(c->err, -EINVAL, "range() with a step of 0");
        *c->ret = datum_new(c->x->arena, DATUM_LIST);
        for (int64_t i = v[0]; v[2] > 0 ? i < v[1] : i > v[1]; i += v[2])
                if (!datum_add(c->x->arena, *c->ret, datum_int(c->x->arena, i)))
                        return methods_too_many(c);
        return 0;
}

static struct datum *new_tuple(const struct call *c)
{
        struct datum *row = datum_new(c->x->arena, DATUM_LIST);

        row->tuple = true;
        return row;
}

/* Returns tuples of the arguments' items at the same position. */
static int call_zip(struct call *c)
{
        *c->ret = datum_new(c->x->arena, DATUM_LIST);
        for (size_t i = 0;; i++) {
                struct datum *row = new_tuple(c);

                for (size_t k = 0; k < c->arguments->n; k++) {
                        if (argument(c, k)->kind != DATUM_LIST)
                                return err_set(c->err, -EINVAL, "zip() of a %s",
                                               datum_kind_name(argument(c, k)));
                        if (i >= argument(c, k)->n)
                                return 0;
                        datum_add(c->x->arena, row, argument(c, k)->items[i]);
                }
                datum_add(c->x->arena, *c->ret, row);
        }
}

static int call_enumerate(struct call *c)
{
        struct datum *over;
        int64_t first = argument(c, 1) && argument(c, 1)->kind == DATUM_INT ? argument(c, 1)->integer : 0;
        int rc = expression_iterate(c->x, argument(c, 0), &over, c->err);

        *c->ret = datum_new(c->x->arena, DATUM_LIST);
        for (size_t i = 0; rc == 0 && i < over->n; i++) {
                struct datum *row = new_tuple(c);

                datum_add(c->x->arena, row, datum_int(c->x->arena, first + (int64_t)i));
                datum_add(c->x->arena, row, over->items[i]);
                datum_add(c->x->arena, *c->ret, row);
        }
        return rc;
}

static int extreme(struct call *c, int sign)
{
        const struct datum *all = c->arguments->n == 1 ? argument(c, 0) : c->arguments;
        int order;

        if (all->kind != DATUM_LIST || all->n == 0)
                return err_set(c->err, -EINVAL, "min() and max() take values, or a list of them");
        *c->ret = all->items[0];
        for (size_t i = 1; i < all->n; i++) {
                if (!datum_compare(all->items[i], *c->ret, &order))
                        return err_set(c->err, -EINVAL, "these values have no order");
                if (order * sign > 0)
                        *c->ret = all->items[i];
        }
        return 0;
}

static int call_min(struct call *c)
{
        return extreme(c, -1);
}

static int call_max(struct call *c)
{
        return extreme(c, 1);
}

static int call_abs(struct call *c)
{
        double d;

        if (!datum_number(argument(c, 0), &d))
                return err_set(c->err, -EINVAL, "abs() of a %s", datum_kind_name(argument(c, 0)));
        *c->ret = datum_of_number(c->x->arena, fabs(d), argument(c, 0)->kind != DATUM_FLOAT);
        return 0;
}

/* Insertion sort: the lists are short, and the order is stable. */
static int call_sorted(struct call *c)
{
        struct datum *over, *list = datum_new(c->x->arena, DATUM_LIST);
        int order, rc = expression_iterate(c->x, argument(c, 0), &over, c->err);

        if (rc == 0 && over->n > 2000)
                return err_set(c->err, -E2BIG, "sorted() of more than 2000 items");
        for (size_t i = 0; rc == 0 && i < over->n; i++) {
                datum_add(c->x->arena, list, over->items[i]);
                for (size_t k = i; k > 0; k--) {
                        struct datum *before = list->items[k - 1];

                        if (!datum_compare(before, list->items[k], &order))
                                return err_set(c->err, -EINVAL, "these values have no order");
                        if (order <= 0)
                                break;
                        list->items[k - 1] = list->items[k];
                        list->items[k] = before;
                }
        }
        *c->ret = list;
        return rc;
}

/* ---- functions of lists */

/* Copies a list, a dict's keys, or the values of a multiple parameter. */
static int call_list(struct call *c)
{
        struct datum *over;
        int rc = 0;

        *c->ret = datum_new(c->x->arena, DATUM_LIST);
        if (c->arguments->n)
                rc = expression_iterate(c->x, argument(c, 0), &over, c->err);
        for (size_t i = 0; rc == 0 && c->arguments->n && i < over->n; i++)
                if (!datum_add(c->x->arena, *c->ret, over->items[i]))
                        return methods_too_many(c);
        return rc;
}

static int call_tuple(struct call *c)
{
        int rc = call_list(c);

        (*c->ret)->tuple = true;
        return rc;
}

/* Keeps each value once, in order of appearance. Python's sets have no order, so templates sort them. */
static int call_set(struct call *c)
{
        struct datum *set = datum_new(c->x->arena, DATUM_LIST);
        int rc = call_list(c);

        if (rc == 0 && (*c->ret)->n > 2000)
                return err_set(c->err, -E2BIG, "set() of more than 2000 items");
        for (size_t i = 0; rc == 0 && i < (*c->ret)->n; i++) {
                size_t k = 0;

                while (k < set->n && !datum_equal(set->items[k], (*c->ret)->items[i]))
                        k++;
                if (k == set->n)
                        datum_add(c->x->arena, set, (*c->ret)->items[i]);
        }
        *c->ret = set;
        return rc;
}

static int call_reversed(struct call *c)
{
        int rc = call_list(c);

        for (size_t i = 0, n = (*c->ret)->n; rc == 0 && i < n / 2; i++) {
                struct datum *first = (*c->ret)->items[i];

                (*c->ret)->items[i] = (*c->ret)->items[n - 1 - i];
                (*c->ret)->items[n - 1 - i] = first;
        }
        return rc;
}

static int call_sum(struct call *c)
{
        bool whole = true;
        double sum = 0, d;
        int rc = call_list(c);

        for (size_t i = 0; rc == 0 && i < (*c->ret)->n; i++) {
                if (!datum_number((*c->ret)->items[i], &d))
                        return err_set(c->err, -EINVAL, "sum() of a %s",
                                       datum_kind_name((*c->ret)->items[i]));
                whole = whole && (*c->ret)->items[i]->kind != DATUM_FLOAT;
                sum += d;
        }
        if (rc == 0)
                *c->ret = datum_of_number(c->x->arena, sum, whole);
        return rc;
}

/* Implements any() and, with the opposite truth, all(). */
static int look_for(struct call *c, bool truth)
{
        bool found = false;
        int rc = call_list(c);

        for (size_t i = 0; rc == 0 && i < (*c->ret)->n; i++)
                found = found || datum_true((*c->ret)->items[i]) == truth;
        if (rc == 0)
                *c->ret = datum_bool(c->x->arena, found == truth);
        return rc;
}

static int call_any(struct call *c)
{
        return look_for(c, true);
}

static int call_all(struct call *c)
{
        return look_for(c, false);
}

static int call_map(struct call *c)
{
        struct datum *over, *list = datum_new(c->x->arena, DATUM_LIST);
        int rc = expression_iterate(c->x, argument(c, 1), &over, c->err);

        if (rc == 0 && argument(c, 0)->kind != DATUM_FUNCTION)
                return err_set(c->err, -EINVAL, "map() by a %s", datum_kind_name(argument(c, 0)));
        for (size_t i = 0; rc == 0 && i < over->n; i++) {
                struct datum *one = datum_new(c->x->arena, DATUM_LIST), *made;

                datum_add(c->x->arena, one, over->items[i]);
                rc = value_call(c->x, argument(c, 0), one, &made, c->err);
                if (rc == 0 && !datum_add(c->x->arena, list, made))
                        return methods_too_many(c);
        }
        *c->ret = list;
        return rc;
}

/* ---- functions of names */

/* Returns the variable, such as "input.name", that the first argument names; NULL: there is none. */
static struct datum *variable_named(const struct call *c)
{
        struct str rest = argument(c, 0)->kind == DATUM_TEXT ? argument(c, 0)->text : STR_NONE, part;
        struct datum *v = c->x->names;

        if (str_starts(rest, STR("$")))
                rest = str_skip(rest, 1);
        while (v && str_cut(&rest, '.', &part))
                v = datum_attribute(v, part);
        return v == c->x->names ? NULL : v;
}

static int call_var_exists(struct call *c)
{
        *c->ret = datum_bool(c->x->arena, variable_named(c) != NULL);
        return 0;
}

static int call_get_var(struct call *c)
{
        *c->ret = variable_named(c);
        if (!*c->ret)
                *c->ret = argument(c, 1);
        return *c->ret ? 0 : err_set(c->err, -EINVAL, "getVar(): there is no such variable");
}

static int call_hasattr(struct call *c)
{
        const struct datum *name = argument(c, 1);

        *c->ret = datum_bool(c->x->arena,
                             name->kind == DATUM_TEXT && datum_attribute(argument(c, 0), name->text));
        return 0;
}

/* ---- functions of modules */

#define MODULE_FUNCTION(name)                                                                                \
        static int call_##name(struct call *c)                                                               \
        {                                                                                                    \
                return module_##name(c->x, c->arguments, c->ret, c->err);                                    \
        }

MODULE_FUNCTION(basename)
MODULE_FUNCTION(dirname)
MODULE_FUNCTION(join)
MODULE_FUNCTION(splitext)
MODULE_FUNCTION(sub)
MODULE_FUNCTION(search)
MODULE_FUNCTION(match)

struct verb {
        const char *name;
        size_t least, most; /* numbers of arguments */
        int (*call)(struct call *c);
};

static int call_verb(const struct verb *verbs, size_t n, struct str name, const char *of, struct call *c)
{
        for (size_t i = 0; i < n; i++) {
                if (!str_eqz(name, verbs[i].name))
                        continue;
                if (c->arguments->n < verbs[i].least || c->arguments->n > verbs[i].most)
                        return err_set(c->err, -EINVAL, "%s() has %zu arguments", verbs[i].name,
                                       c->arguments->n);
                return verbs[i].call(c);
        }
        return err_set(c->err, -EINVAL, "%s" STR_FMT "() is not supported", of, STR_ARG(name));
}

static const struct verb functions[] = {
        {"str", 1, 1, call_str},
        {"int", 1, 1, call_int},
        {"float", 1, 1, call_float},
        {"bool", 1, 1, call_bool},
        {"len", 1, 1, call_len},
        {"range", 1, 3, call_range},
        {"zip", 1, 8, call_zip},
        {"enumerate", 1, 2, call_enumerate},
        {"min", 1, 100, call_min},
        {"max", 1, 100, call_max},
        {"abs", 1, 1, call_abs},
        {"sorted", 1, 1, call_sorted},
        {"list", 0, 1, call_list},
        {"tuple", 0, 1, call_tuple},
        {"set", 0, 1, call_set},
        {"reversed", 1, 1, call_reversed},
        {"sum", 1, 1, call_sum},
        {"any", 1, 1, call_any},
        {"all", 1, 1, call_all},
        {"map", 2, 2, call_map},
        {"varExists", 1, 1, call_var_exists},
        {"getVar", 1, 2, call_get_var},
        {"hasattr", 2, 2, call_hasattr},
        {"os.path.basename", 1, 1, call_basename},
        {"os.path.dirname", 1, 1, call_dirname},
        {"os.path.join", 1, 16, call_join},
        {"os.path.splitext", 1, 1, call_splitext},
        {"re.sub", 3, 3, call_sub},
        {"re.search", 2, 2, call_search},
        {"re.match", 2, 2, call_match},
};

int builtin_call(struct expressions *x, struct str name, const struct datum *arguments, struct datum **ret,
                 struct err *err)
{
        struct call c = {x, NULL, arguments, ret, err};

        return call_verb(functions, sizeof(functions) / sizeof(*functions), name, "", &c);
}

int value_call(struct expressions *x, const struct datum *function, const struct datum *arguments,
               struct datum **ret, struct err *err)
{
        return function->definition ? x->call(x, function, arguments, ret, err)
                                    : builtin_call(x, function->text, arguments, ret, err);
}

struct datum *builtin_named(struct expressions *x, struct str name)
{
        for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
                if (str_eqz(name, functions[i].name))
                        return datum_function(x->arena, name);
        return NULL;
}

/* ---- methods of texts */

static struct str text_argument(const struct call *c, size_t i)
{
        return argument(c, i) && argument(c, i)->kind == DATUM_TEXT ? argument(c, i)->text : STR_NONE;
}

static int give_text(struct call *c, struct str s)
{
        *c->ret = datum_text(c->x->arena, s);
        return 0;
}

static struct str strip(const struct call *c, bool left, bool right)
{
        struct str s = c->self->text, of = text_argument(c, 0);

        if (!of.n)
                of = STR(" \t\r\n\f\v");
        while (left && s.n && memchr(of.p, s.p[0], of.n))
                s = str_skip(s, 1);
        while (right && s.n && memchr(of.p, s.p[s.n - 1], of.n))
                s.n--;
        return s;
}

static int text_strip(struct call *c)
{
        return give_text(c, strip(c, true, true));
}

static int text_lstrip(struct call *c)
{
        return give_text(c, strip(c, true, false));
}

static int text_rstrip(struct call *c)
{
        return give_text(c, strip(c, false, true));
}

static int change_case(struct call *c, int (*to)(int))
{
        BUF_CLEANUP struct buf b = {0};

        for (size_t i = 0; i < c->self->text.n; i++)
                buf_char(&b, (char)to((unsigned char)c->self->text.p[i]));
        return give_text(c, buf_view(&b));
}

static int text_lower(struct call *c)
{
        return change_case(c, tolower);
}

static int text_upper(struct call *c)
{
        return change_case(c, toupper);
}

/* Compares with one text, or with any text of a tuple. */
static int text_fits(struct call *c, bool (*fits)(struct str, struct str))
{
        const struct datum *all = argument(c, 0)->kind == DATUM_LIST ? argument(c, 0) : c->arguments;
        bool is = false;

        for (size_t i = 0; i < all->n && !is; i++)
                is = all->items[i]->kind == DATUM_TEXT && fits(c->self->text, all->items[i]->text);
        *c->ret = datum_bool(c->x->arena, is);
        return 0;
}

static bool starts_with(struct str s, struct str with)
{
        return str_starts(s, with);
}

static bool ends_with(struct str s, struct str with)
{
        return str_ends(s, with);
}

static int text_starts(struct call *c)
{
        return text_fits(c, starts_with);
}

static int text_ends(struct call *c)
{
        return text_fits(c, ends_with);
}

static int text_split(struct call *c)
{
        struct str rest = c->self->text, by = text_argument(c, 0), part;
        bool fits = true;

        *c->ret = datum_new(c->x->arena, DATUM_LIST);
        if (!by.n) {
                while (fits && str_word(&rest, &part))
                        fits = datum_add(c->x->arena, *c->ret, datum_text(c->x->arena, part));
                return fits ? 0 : methods_too_many(c);
        }
        for (ptrdiff_t at; fits && (at = str_search(rest, by)) >= 0; rest = str_skip(rest, (size_t)at + by.n))
                fits = datum_add(c->x->arena, *c->ret, datum_text(c->x->arena, str_head(rest, (size_t)at)));
        return fits && datum_add(c->x->arena, *c->ret, datum_text(c->x->arena, rest)) ? 0
                                                                                      : methods_too_many(c);
}

static int text_replace(struct call *c)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        struct str rest = c->self->text, from = text_argument(c, 0);

        if (!from.n)
                return err_set(c->err, -EINVAL, "replace() of nothing");
        for (ptrdiff_t at; (at = str_search(rest, from)) >= 0; rest = str_skip(rest, (size_t)at + from.n)) {
                buf_str(&b, str_head(rest, (size_t)at));
                buf_str(&b, text_argument(c, 1));
        }
        buf_str(&b, rest);
        return expression_text(c->x, &b, c->ret, c->err);
}

static int text_join(struct call *c)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        struct datum *over;
        int rc = expression_iterate(c->x, argument(c, 0), &over, c->err);

        for (size_t i = 0; rc == 0 && i < over->n; i++) {
                if (i)
                        buf_str(&b, c->self->text);
                if (!datum_write(over->items[i], &b))
                        rc = err_set(c->err, -EINVAL, "join() of what has no text");
        }
        return rc == 0 ? expression_text(c->x, &b, c->ret, c->err) : rc;
}

/* Returns whether the text is not empty and all its bytes are of this class. */
static int text_is(struct call *c, int (*is)(int))
{
        bool all = c->self->text.n > 0;

        for (size_t i = 0; i < c->self->text.n; i++)
                all = all && is((unsigned char)c->self->text.p[i]);
        *c->ret = datum_bool(c->x->arena, all);
        return 0;
}

static int text_isdigit(struct call *c)
{
        return text_is(c, isdigit);
}

static int text_isalpha(struct call *c)
{
        return text_is(c, isalpha);
}

static int text_isspace(struct call *c)
{
        return text_is(c, isspace);
}

static int text_find(struct call *c)
{
        *c->ret = datum_int(c->x->arena, (int64_t)str_search(c->self->text, text_argument(c, 0)));
        return 0;
}

static int text_count(struct call *c)
{
        struct str rest = c->self->text, of = text_argument(c, 0);
        int64_t n = 0;

        for (ptrdiff_t at; of.n && (at = str_search(rest, of)) >= 0; n++)
                rest = str_skip(rest, (size_t)at + of.n);
        *c->ret = datum_int(c->x->arena, n);
        return 0;
}

static int text_capitalize(struct call *c)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};

        for (size_t i = 0; i < c->self->text.n; i++) {
                int byte = (unsigned char)c->self->text.p[i];

                buf_char(&b, (char)(i ? tolower(byte) : toupper(byte)));
        }
        return expression_text(c->x, &b, c->ret, c->err);
}

static int text_splitlines(struct call *c)
{
        struct str rest = c->self->text, line;
        bool fits = true;

        *c->ret = datum_new(c->x->arena, DATUM_LIST);
        while (fits && rest.n && str_cut(&rest, '\n', &line))
                fits = datum_add(c->x->arena, *c->ret, datum_text(c->x->arena, line));
        return fits ? 0 : methods_too_many(c);
}

/* Implements "{} {0} {1}".format(…): fields without names, widths and types. */
static int text_format(struct call *c)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        struct str s = c->self->text;
        size_t next = 0;

        for (size_t i = 0; i < s.n; i++) {
                ptrdiff_t end = s.p[i] == '{' ? str_find(str_skip(s, i), '}') : -1;
                struct str field;
                uint64_t n = next;

                if (i + 1 < s.n && strchr("{}", s.p[i]) && s.p[i + 1] == s.p[i]) {
                        buf_char(&b, s.p[i++]);
                        continue;
                }
                if (s.p[i] != '{') {
                        buf_char(&b, s.p[i]);
                        continue;
                }
                field = str_make(s.p + i + 1, end > 0 ? (size_t)end - 1 : 0);
                if (end < 0 || (field.n && str_to_u64(field, &n) != 0) || n >= c->arguments->n)
                        return err_set(c->err, -EINVAL, "format() has no value for '{" STR_FMT "}'",
                                       STR_ARG(str_head(field, 40)));
                next = (size_t)n + 1;
                if (!datum_write(argument(c, (size_t)n), &b))
                        return err_set(c->err, -EINVAL, "format() of what has no text");
                i += (size_t)end;
        }
        return expression_text(c->x, &b, c->ret, c->err);
}

/* ---- methods of lists and dicts */

static int list_index(struct call *c)
{
        for (size_t i = 0; i < c->self->n; i++)
                if (datum_equal(c->self->items[i], argument(c, 0))) {
                        *c->ret = datum_int(c->x->arena, (int64_t)i);
                        return 0;
                }
        return err_set(c->err, -EINVAL, "index() of what the list does not have");
}

static int list_count(struct call *c)
{
        int64_t n = 0;

        for (size_t i = 0; i < c->self->n; i++)
                n += datum_equal(c->self->items[i], argument(c, 0));
        *c->ret = datum_int(c->x->arena, n);
        return 0;
}

static int map_update(struct call *c)
{
        const struct datum *more = argument(c, 0);

        *c->ret = datum_new(c->x->arena, DATUM_NONE);
        if (more->kind != DATUM_MAP)
                return err_set(c->err, -EINVAL, "update() by a %s", datum_kind_name(more));
        for (size_t i = 0, n = more->n; i < n; i++)
                if (!datum_put(c->x->arena, c->self, more->keys[i], more->items[i]))
                        return methods_too_many(c);
        return 0;
}

static int list_append(struct call *c)
{
        *c->ret = datum_new(c->x->arena, DATUM_NONE);
        if (argument(c, 0) == c->self)
                return err_set(c->err, -EINVAL, "a list within itself");
        return datum_add(c->x->arena, c->self, argument(c, 0)) ? 0 : methods_too_many(c);
}

static int list_extend(struct call *c)
{
        const struct datum *more = argument(c, 0);
        size_t n = more->n;

        *c->ret = datum_new(c->x->arena, DATUM_NONE);
        if (more->kind != DATUM_LIST)
                return err_set(c->err, -EINVAL, "extend() by a %s", datum_kind_name(more));
        for (size_t i = 0; i < n; i++)
                if (!datum_add(c->x->arena, c->self, more->items[i]))
                        return methods_too_many(c);
        return 0;
}

static int map_get(struct call *c)
{
        struct datum *v = datum_get(c->self, text_argument(c, 0));

        *c->ret = v ? v : argument(c, 1) ? argument(c, 1) : datum_new(c->x->arena, DATUM_NONE);
        return 0;
}

static int map_list(struct call *c, bool keys, bool values)
{
        *c->ret = datum_new(c->x->arena, DATUM_LIST);
        for (size_t i = 0; i < c->self->n; i++) {
                struct datum *key = datum_text(c->x->arena, c->self->keys[i]), *row = new_tuple(c);

                datum_add(c->x->arena, row, key);
                datum_add(c->x->arena, row, c->self->items[i]);
                datum_add(c->x->arena, *c->ret, keys && values ? row : keys ? key : c->self->items[i]);
        }
        return 0;
}

static int map_keys(struct call *c)
{
        return map_list(c, true, false);
}

static int map_values(struct call *c)
{
        return map_list(c, false, true);
}

static int map_items(struct call *c)
{
        return map_list(c, true, true);
}

static int data_is_of_type(struct call *c)
{
        const struct datum *ext = datum_get(c->self, STR("ext"));
        bool is = false;

        for (size_t i = 0; i < c->arguments->n && ext; i++)
                is = is || format_is(ext->text, text_argument(c, i));
        *c->ret = datum_bool(c->x->arena, is);
        return 0;
}

int method_call(struct expressions *x, struct datum *self, struct str name, const struct datum *arguments,
                struct datum **ret, struct err *err)
{
        static const struct verb of_text[] = {
                {"strip", 0, 1, text_strip},           {"lstrip", 0, 1, text_lstrip},
                {"rstrip", 0, 1, text_rstrip},         {"lower", 0, 0, text_lower},
                {"upper", 0, 0, text_upper},           {"startswith", 1, 1, text_starts},
                {"endswith", 1, 1, text_ends},         {"split", 0, 1, text_split},
                {"replace", 2, 2, text_replace},       {"join", 1, 1, text_join},
                {"isdigit", 0, 0, text_isdigit},       {"isalpha", 0, 0, text_isalpha},
                {"isspace", 0, 0, text_isspace},       {"find", 1, 1, text_find},
                {"count", 1, 1, text_count},           {"capitalize", 0, 0, text_capitalize},
                {"splitlines", 0, 0, text_splitlines}, {"format", 0, 100, text_format}};
        static const struct verb of_list[] = {{"append", 1, 1, list_append},
                                              {"extend", 1, 1, list_extend},
                                              {"index", 1, 1, list_index},
                                              {"count", 1, 1, list_count}};
        static const struct verb of_collection[] = {{"keys", 0, 0, map_keys}};
        static const struct verb of_map[] = {
                {"get", 1, 2, map_get},       {"keys", 0, 0, map_keys},
                {"values", 0, 0, map_values}, {"items", 0, 0, map_items},
                {"update", 1, 1, map_update}, {"is_of_type", 1, 16, data_is_of_type}};
        struct call c = {x, self, arguments, ret, err};

        if (self->collection)
                return call_verb(of_collection, sizeof(of_collection) / sizeof(*of_collection), name,
                                 "a collection's ", &c);
        if (self->kind == DATUM_LIST)
                return call_verb(of_list, sizeof(of_list) / sizeof(*of_list), name, "a list's ", &c);
        if (self->kind == DATUM_MAP)
                return call_verb(of_map, sizeof(of_map) / sizeof(*of_map), name, "a dict's ", &c);
        if (self->kind != DATUM_TEXT) { /* a parameter is used by its written form */
                int rc = written(x, self, &c.self, err);

                if (rc != 0)
                        return rc;
        }
        return call_verb(of_text, sizeof(of_text) / sizeof(*of_text), name, "a text's ", &c);
}
