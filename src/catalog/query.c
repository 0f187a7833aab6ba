#include "catalog/query.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

/* ---- operators and keys */

static const struct {
        const char *name;
        enum catalog_key key;
} keys[] = {
        {"name", CATALOG_NAME}, {"lfn", CATALOG_NAME},      {"filename", CATALOG_NAME},
        {"size", CATALOG_SIZE}, {"storage", CATALOG_STORE}, {"store", CATALOG_STORE},
        {"host", CATALOG_HOST}, {"node", CATALOG_HOST},     {"url", CATALOG_URL},
};
/* Longer ones must come first. */
static const struct {
        const char *sign;
        enum catalog_operator op;
} operators[] = {
        {"!=", CATALOG_UNEQUAL}, {"!~", CATALOG_LACKS},    {"==", CATALOG_EQUAL},   {"=>", CATALOG_AT_LEAST},
        {"=<", CATALOG_AT_MOST}, {">=", CATALOG_AT_LEAST}, {"<=", CATALOG_AT_MOST}, {"[]", CATALOG_WITHIN},
        {"][", CATALOG_OUTSIDE}, {"=", CATALOG_EQUAL},     {">", CATALOG_GREATER},  {"<", CATALOG_LESS},
        {"~", CATALOG_CONTAINS},
};

static bool is_name(struct str s)
{
        if (s.n == 0 || s.n > CATALOG_KEY_MAX || (s.p[0] >= '0' && s.p[0] <= '9'))
                return false;
        for (size_t i = 0; i < s.n; i++)
                if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '_')
                        return false;
        return true;
}

bool catalog_key_is_valid(struct str key)
{
        static const char *const others[] = {"dataset", "limit", "where"};

        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                if (str_ieqz(key, keys[i].name))
                        return false;
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
                if (str_ieqz(key, others[i]))
                        return false;
        return is_name(key);
}

/* ---- parsing */

static int query_number_of(struct str s, struct catalog_operand *o)
{
        double d;

        if (str_to_i64(s, &o->integer) == 0) {
                o->whole = o->number = true;
                o->value = (double)o->integer;
                return 0;
        }
        if (str_to_double(s, &d) != 0 || !isfinite(d))
                return -EINVAL;
        o->number = true;
        o->value = d;
        return 0;
}

/* Reads the ends of a range that are separated by `sign`. The first one may be negative. */
static bool range_of(struct str s, const char *sign, struct catalog_operand *o)
{
        struct catalog_operand a = {0}, b = {0};
        ptrdiff_t at = s.n ? str_search(str_skip(s, 1), str_of(sign)) : -1;

        if (at < 0)
                return false;
        if (query_number_of(str_trim(str_head(s, (size_t)at + 1)), &a) != 0 ||
            query_number_of(str_trim(str_skip(s, (size_t)at + 1 + strlen(sign))), &b) != 0)
                return false;
        o->range = true;
        o->value = a.value;
        o->upper = b.value;
        return true;
}

static int read_operand(struct str text, struct catalog_condition *c, struct str whole, struct err *err)
{
        struct catalog_operand *o;

        text = str_trim(text);
        if (c->operand_count == CATALOG_OPERANDS_MAX)
                return err_set(err, CATALOG_INVALID, "a condition has more than %u values",
                               CATALOG_OPERANDS_MAX);
        if (text.n == 0)
                return err_set(err, CATALOG_INVALID, "\"" STR_FMT "\": a value is missing",
                               STR_ARG(str_head(whole, 100)));
        c->operands = mem_array(c->operands, c->operand_count + 1, sizeof(*c->operands));
        o = &c->operands[c->operand_count++];
        *o = (struct catalog_operand){.text = text};
        if (text.n >= 2 && (text.p[0] == '\'' || text.p[0] == '"') && text.p[text.n - 1] == text.p[0]) {
                o->quoted = true;
                o->text = str_make(text.p + 1, text.n - 2);
                return 0;
        }
        if (c->op == CATALOG_WITHIN || c->op == CATALOG_OUTSIDE)
                return range_of(text, "-", o) || range_of(text, "..", o)
                               ? 0
                               : err_set(err, CATALOG_INVALID,
                                         "\"" STR_FMT "\": a range is two numbers, as in 5000-6000",
                                         STR_ARG(str_head(whole, 100)));
        if (c->op == CATALOG_EQUAL || c->op == CATALOG_UNEQUAL) {
                if (range_of(text, "..", o))
                        return 0;
                o->pattern = str_find(text, '*') >= 0 || str_find(text, '?') >= 0;
        }
        if (!o->pattern && c->op != CATALOG_CONTAINS && c->op != CATALOG_LACKS)
                query_number_of(text, o);
        return 0;
}

/* Returns where a piece ends: at `sep` outside of quotes, or at the end. A quote begins only after an
 * operator or a separator, so that an apostrophe within a word is not one. */
static size_t piece_end(struct str s, const char *sep)
{
        size_t n = strlen(sep);
        char quote = 0, before = '=';

        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];

                if (quote) {
                        if (c == quote)
                                quote = 0;
                } else if ((c == '\'' || c == '"') && strchr("=<>~[]|", before)) {
                        quote = c;
                } else if (s.n - i >= n && memcmp(s.p + i, sep, n) == 0) {
                        return i;
                }
                if (c != ' ')
                        before = c;
        }
        return s.n;
}

static int directive(struct catalog_query *q, struct str key, enum catalog_operator op, struct str value,
                     struct err *err)
{
        if (op != CATALOG_EQUAL)
                return err_set(err, CATALOG_INVALID, "\"" STR_FMT "\" is followed by =", STR_ARG(key));
        if (str_ieqz(key, "limit")) {
                if (str_to_u64(value, &q->limit) != 0)
                        return err_set(err, CATALOG_INVALID,
                                       "limit=" STR_FMT ": a number of files is expected",
                                       STR_ARG(str_head(value, 100)));
                return 0;
        }
        if (q->dataset.n)
                return err_set(err, CATALOG_INVALID, "a query names one dataset at most");
        if (value.n == 0 || value.n > CATALOG_NAME_MAX)
                return err_set(err, CATALOG_INVALID, "dataset= needs the name of a dataset");
        q->dataset = value;
        return 0;
}

static int read_condition(struct catalog_query *q, struct str text, struct err *err)
{
        struct catalog_condition *c;
        struct str key, rest;
        size_t n = 0, i;
        int r = 0;

        while (n < text.n && (isalnum((unsigned char)text.p[n]) || text.p[n] == '_'))
                n++;
        key = str_head(text, n);
        rest = str_trim_left(str_skip(text, n));
        for (i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
                if (str_starts(rest, str_of(operators[i].sign)))
                        break;
        if (!is_name(key) || i == sizeof(operators) / sizeof(operators[0]))
                return err_set(err, CATALOG_INVALID,
                               "\"" STR_FMT "\" is not a condition: write KEY=VALUE, with one of "
                               "= != < > <= >= ~ !~ [] ][",
                               STR_ARG(str_head(text, 100)));
        rest = str_trim(str_skip(rest, strlen(operators[i].sign)));
        if (str_ieqz(key, "limit") || str_ieqz(key, "dataset"))
                return directive(q, key, operators[i].op, rest, err);
        if (q->condition_count == CATALOG_CONDITIONS_MAX)
                return err_set(err, CATALOG_INVALID, "a query has more than %u conditions",
                               CATALOG_CONDITIONS_MAX);
        MEM_GROW(q->conditions, q->condition_cap, q->condition_count + 1);
        c = &q->conditions[q->condition_count++];
        *c = (struct catalog_condition){.key = CATALOG_META, .name = key, .op = operators[i].op};
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
                if (str_ieqz(key, keys[k].name))
                        c->key = keys[k].key;
        for (;;) {
                size_t end = piece_end(rest, "||");

                r = read_operand(str_head(rest, end), c, text, err);
                if (r != 0 || end == rest.n)
                        return r;
                rest = str_skip(rest, end + 2);
        }
}

static bool is_where(struct str s, struct str *ret)
{
        struct str rest;

        if (!str_istarts(s, STR("where")))
                return false;
        rest = str_trim_left(str_skip(s, 5));
        if (rest.n == 0 || rest.p[0] != '=' || (rest.n > 1 && rest.p[1] == '='))
                return false;
        *ret = str_trim(str_skip(rest, 1));
        return true;
}

int catalog_query_parse(struct str text, struct catalog_query **ret, struct err *err)
{
        struct catalog_query *q = mem_new(struct catalog_query);
        struct str rest;
        int r = 0;

        if (text.n > CATALOG_QUERY_MAX)
                r = err_set(err, CATALOG_INVALID, "a query has more than %u bytes", CATALOG_QUERY_MAX);
        q->text = r == 0 ? str_dupz(text) : NULL;
        for (rest = str_make(q->text, q->text ? text.n : 0); r == 0 && str_trim(rest).n;) {
                size_t end;

                rest = str_trim_left(rest);
                if (is_where(rest, &q->where)) {
                        if (q->where.n == 0)
                                r = err_set(err, CATALOG_INVALID, "where= needs an expression");
                        break;
                }
                end = piece_end(rest, ",");
                if (str_trim(str_head(rest, end)).n)
                        r = read_condition(q, str_trim(str_head(rest, end)), err);
                rest = str_skip(rest, end + 1);
        }
        if (r != 0)
                catalog_query_free(q);
        else
                *ret = q;
        return r;
}

void catalog_query_free(struct catalog_query *q)
{
        if (!q)
                return;
        for (size_t i = 0; i < q->condition_count; i++)
                free(q->conditions[i].operands);
        free(q->conditions);
        free(q->text);
        free(q);
}

/* ---- matching */

/* Matches a pattern with * and ?, case-insensitive unless `exact`. Takes linear time, because only the
 * last star is tried again. */
static bool pattern_matches(struct str p, struct str s, bool exact)
{
        size_t i = 0, k = 0, star = SIZE_MAX, mark = 0;

        while (k < s.n) {
                bool same = i < p.n &&
                            (p.p[i] == '?' || p.p[i] == s.p[k] ||
                             (!exact && tolower((unsigned char)p.p[i]) == tolower((unsigned char)s.p[k])));

                if (i < p.n && p.p[i] == '*') {
                        star = i++;
                        mark = k;
                } else if (same) {
                        i++;
                        k++;
                } else if (star != SIZE_MAX) {
                        i = star + 1;
                        k = ++mark;
                } else {
                        return false;
                }
        }
        while (i < p.n && p.p[i] == '*')
                i++;
        return i == p.n;
}

static bool contains(struct str s, struct str what)
{
        for (size_t i = 0; i + what.n <= s.n; i++)
                if (str_ieq(str_make(s.p + i, what.n), what))
                        return true;
        return false;
}

/* Returns -1, 0 or 1; 2: the values cannot be compared. */
static int compare_value(const struct catalog_operand *o, const struct catalog_value *v, bool exact)
{
        double d;
        int order;

        switch (v->type) {
        case CATALOG_BOOLEAN:
                if (!o->quoted && (str_ieqz(o->text, "true") || str_ieqz(o->text, "false")))
                        return (int)v->boolean - (int)str_ieqz(o->text, "true");
                d = v->boolean;
                break;
        case CATALOG_INTEGER:
                if (o->whole)
                        return v->integer < o->integer ? -1 : v->integer > o->integer;
                d = (double)v->integer;
                break;
        case CATALOG_REAL: d = v->real; break;
        default:
                order = exact ? str_cmp(v->text, o->text) : str_icmp(v->text, o->text);
                return order < 0 ? -1 : order > 0;
        }
        if (!o->number)
                return 2;
        return d < o->value ? -1 : d > o->value;
}

static bool in_range(const struct catalog_operand *o, const struct catalog_value *v)
{
        double d = v->type == CATALOG_INTEGER   ? (double)v->integer
                   : v->type == CATALOG_REAL    ? v->real
                   : v->type == CATALOG_BOOLEAN ? (double)v->boolean
                                                : NAN;

        if (v->type == CATALOG_TEXT && str_to_double(v->text, &d) != 0)
                return false;
        return d >= o->value && d <= o->upper;
}

static bool operand_equals(const struct catalog_operand *o, const struct catalog_value *v, bool exact)
{
        if (o->range)
                return in_range(o, v);
        if (o->pattern)
                return v->type == CATALOG_TEXT && pattern_matches(o->text, v->text, exact);
        return compare_value(o, v, exact) == 0;
}

static bool operand_holds(const struct catalog_condition *c, const struct catalog_operand *o,
                          const struct catalog_value *v)
{
        bool exact = c->key == CATALOG_NAME || c->key == CATALOG_URL;
        int order;

        switch (c->op) {
        case CATALOG_EQUAL:
        case CATALOG_UNEQUAL: return operand_equals(o, v, exact);
        case CATALOG_WITHIN:
        case CATALOG_OUTSIDE: return in_range(o, v);
        case CATALOG_CONTAINS:
        case CATALOG_LACKS: return v->type == CATALOG_TEXT && contains(v->text, o->text);
        default: order = compare_value(o, v, exact);
        }
        return order != 2 && (c->op == CATALOG_LESS      ? order < 0
                              : c->op == CATALOG_GREATER ? order > 0
                              : c->op == CATALOG_AT_MOST ? order <= 0
                                                         : order >= 0);
}

bool catalog_condition_holds(const struct catalog_condition *c, const struct catalog_value *v)
{
        bool negated = c->op == CATALOG_UNEQUAL || c->op == CATALOG_LACKS || c->op == CATALOG_OUTSIDE;

        for (size_t i = 0; i < c->operand_count; i++)
                if (operand_holds(c, &c->operands[i], v))
                        return !negated;
        return negated;
}
