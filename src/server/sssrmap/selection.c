/* Conditions are kept in their order, each with the parentheses before and behind it, and are evaluated by
 * recursive descent for each element; sssrmap_selection_new does that once without an element, and so finds
 * parentheses that do not fit. Elements that have to be sorted or grouped are kept: their texts in one
 * buffer, and for each element and field the place of its text. GroupBy sorts, too, so that a group's
 * elements stand together. */
#include "server/sssrmap/selection.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

#define GROUPS_MAX  16u /* open parentheses of a request */
#define VALUE_STEPS 20u /* for reading a value, in those of SSSRMAP_STEPS_MAX */

enum comparison { EQ, NE, LT, LE, GT, GE, MATCH };
enum operation { SHOW, SORT, TROS, COUNT, SUM, MAX, MIN, AVERAGE, GROUP_BY };

struct value {
        struct str text; /* p NULL: not there */
        bool is_number, is_integer, is_id;
        int64_t integer;
        long double number;   /* holds each int64_t */
        int64_t request, job; /* of an id; job -1: the request alone */
};

struct condition {
        unsigned field;
        enum comparison comparison;
        bool is_or, is_not;
        unsigned opens, closes;
        struct value value;
};

struct get {
        unsigned field;
        enum operation operation;
};

struct cell {
        uint32_t at, size; /* size UINT32_MAX: not there */
};

struct sssrmap_selection {
        const struct sssrmap_fields *fields;
        unsigned field_count;
        struct condition conditions[SSSRMAP_CONDITIONS_MAX];
        unsigned condition_count;
        struct get gets[SSSRMAP_OPERATORS_MAX]; /* those with an operation */
        unsigned get_count;
        uint32_t shown;       /* set of fields */
        bool keeps, computes; /* elements have to be kept; something is computed of them */
        uint64_t steps;
        size_t count;
        struct buf texts;
        struct cell *cells; /* field_count for each element */
        size_t rows, cell_cap;
};

/* ---- values */

static void read_number(struct value *v)
{
        double d;

        v->is_integer = str_to_i64(v->text, &v->integer) == 0;
        if (v->is_integer)
                v->number = v->integer;
        else if (str_to_double(v->text, &d) == 0 && isfinite(d))
                v->number = d;
        else
                return;
        v->is_number = true;
}

/* Reads a number as ids have it: equal ones have the same text. */
static bool read_id_number(struct str text, int64_t *ret)
{
        return text.n > 0 && text.p[0] >= '0' && text.p[0] <= '9' && (text.p[0] != '0' || text.n == 1) &&
               str_to_i64(text, ret) == 0;
}

static void read_id(struct value *v)
{
        ptrdiff_t dot = str_find(v->text, '.');

        v->job = -1;
        v->is_id = dot < 0 ? read_id_number(v->text, &v->request)
                           : read_id_number(str_head(v->text, (size_t)dot), &v->request) &&
                                     read_id_number(str_skip(v->text, (size_t)dot + 1), &v->job);
}

static struct value value_of(struct str text, enum sssrmap_kind kind)
{
        struct value v = {.text = text};

        if (!text.p || text.n == 0 || text.n > 40)
                return v;
        if (kind == SSSRMAP_NUMBER)
                read_number(&v);
        else if (kind == SSSRMAP_JOB_ID)
                read_id(&v);
        return v;
}

static int number_cmp(const struct value *a, const struct value *b)
{
        return (a->number > b->number) - (a->number < b->number);
}

static int id_cmp(const struct value *a, const struct value *b)
{
        if (a->request != b->request)
                return a->request < b->request ? -1 : 1;
        return (a->job > b->job) - (a->job < b->job);
}

/* A total order of the values of a field, as sorting needs: what is not there, numbers or ids, texts. */
static int value_order(const struct value *a, const struct value *b)
{
        int rank_a = !a->text.p                 ? 0
                     : a->is_number || a->is_id ? 1
                                                : 2,
            rank_b = !b->text.p                 ? 0
                     : b->is_number || b->is_id ? 1
                                                : 2,
            order;

        if (rank_a != rank_b)
                return rank_a - rank_b;
        if (rank_a == 0)
                return 0;
        order = rank_a == 2 ? 0 : a->is_id ? id_cmp(a, b) : number_cmp(a, b);
        return order != 0 ? order : str_cmp(a->text, b->text);
}

/* Compares a value with that of a condition, which may name less. */
static int condition_order(const struct value *v, const struct value *asked)
{
        if (v->is_number && asked->is_number)
                return number_cmp(v, asked);
        if (v->is_id && asked->is_id)
                return asked->job < 0 && v->request == asked->request ? 0 : id_cmp(v, asked);
        return str_cmp(v->text, asked->text);
}

/* Compares with a pattern, going back to the last * at most. */
static bool matches(struct str pattern, struct str text, uint64_t *steps)
{
        size_t p = 0, t = 0, star = SIZE_MAX, star_text = 0;

        while (t < text.n && *steps < SSSRMAP_STEPS_MAX) {
                ++*steps;
                if (p < pattern.n && pattern.p[p] == '*') {
                        star = p++;
                        star_text = t;
                } else if (p < pattern.n && (pattern.p[p] == '?' || pattern.p[p] == text.p[t])) {
                        p++;
                        t++;
                } else if (star != SIZE_MAX) {
                        p = star + 1;
                        t = ++star_text;
                } else {
                        return false;
                }
        }
        while (p < pattern.n && pattern.p[p] == '*')
                p++;
        return t == text.n && p == pattern.n;
}

/* ---- conditions */

struct evaluation {
        struct sssrmap_selection *s;
        const struct str *values; /* NULL: only the parentheses are looked at */
        unsigned at, opened, closes;
        bool bad;
};

static bool test(struct sssrmap_selection *s, const struct condition *c, struct str text)
{
        enum sssrmap_kind kind = s->fields->kinds[c->field];
        struct value v;
        int order;

        s->steps += 1 + text.n / 64;
        if (!text.p)
                return c->comparison == NE;
        if (kind == SSSRMAP_USER && str_find(c->value.text, '@') < 0 && str_find(text, '@') >= 0)
                text = str_head(text, (size_t)str_find(text, '@'));
        if (c->comparison == MATCH)
                return matches(c->value.text, text, &s->steps);
        v = value_of(text, kind);
        order = condition_order(&v, &c->value);
        switch (c->comparison) {
        case EQ: return order == 0;
        case NE: return order != 0;
        case LT: return order < 0;
        case LE: return order <= 0;
        case GT: return order > 0;
        default: return order >= 0;
        }
}

static bool eval_or(struct evaluation *e);

/* A condition or a group. Behind it, e->closes parentheses are still to be closed. */
static bool eval_term(struct evaluation *e)
{
        const struct condition *c = &e->s->conditions[e->at];
        bool is_not = c->is_not && e->opened == 0, v;

        if (e->opened < c->opens) {
                e->opened++;
                v = eval_or(e);
                if (e->closes == 0)
                        e->bad = true;
                else
                        e->closes--;
        } else {
                v = e->values && test(e->s, c, e->values[c->field]);
                e->closes = c->closes;
                e->opened = 0;
                e->at++;
        }
        return v != is_not;
}

static bool goes_on(const struct evaluation *e, bool is_or)
{
        return e->at < e->s->condition_count && e->closes == 0 && e->s->conditions[e->at].is_or == is_or;
}

static bool eval_and(struct evaluation *e)
{
        bool v = eval_term(e);

        while (goes_on(e, false))
                v = eval_term(e) && v;
        return v;
}

static bool eval_or(struct evaluation *e)
{
        bool v = eval_and(e);

        while (goes_on(e, true))
                v = eval_and(e) || v;
        return v;
}

static bool is_selected(struct sssrmap_selection *s, const struct str *values)
{
        struct evaluation e = {.s = s, .values = values};

        return s->condition_count == 0 || eval_or(&e);
}

static bool groups_fit(struct sssrmap_selection *s)
{
        struct evaluation e = {.s = s};

        eval_or(&e);
        return !e.bad && e.closes == 0 && e.at == s->condition_count;
}

/* ---- reading */

static bool field_find(const struct sssrmap_fields *fields, const char *name, unsigned *ret)
{
        for (unsigned i = 0; fields->names[i]; i++)
                if (strcmp(fields->names[i], name) == 0) {
                        *ret = i;
                        return true;
                }
        return false;
}

static int unknown_field(const struct sssrmap_message *m, const struct xml *x, struct err *err)
{
        return err_set(err, SSSRMAP_VALUE, "%s of %s takes no %.64s", m->action, m->object,
                       xml_get(x, "name"));
}

static enum comparison comparison_of(const char *op)
{
        static const struct {
                const char *name;
                enum comparison comparison;
        } names[] = {{"NE", NE}, {"LT", LT}, {"L", LT},  {"LE", LE},
                     {"GT", GT}, {"G", GT},  {"GE", GE}, {"Match", MATCH}};

        for (size_t i = 0; op && i < sizeof(names) / sizeof(names[0]); i++)
                if (strcmp(names[i].name, op) == 0)
                        return names[i].comparison;
        return EQ;
}

static int level_of(const struct xml *x)
{
        const char *text = xml_get(x, "group");

        text = text ? text : xml_get(x, "groups");
        return text ? (int)strtol(text, NULL, 10) : 0; /* of the form that the schema asks for */
}

static int condition_add(struct sssrmap_selection *s, const struct sssrmap_message *m, const struct xml *x,
                         struct err *err)
{
        const char *conj = xml_get(x, "conj");
        struct condition *c = &s->conditions[s->condition_count];
        int level = level_of(x);

        if (s->condition_count == SSSRMAP_CONDITIONS_MAX)
                return err_set(err, SSSRMAP_VALUE, "a request has at most %u conditions",
                               SSSRMAP_CONDITIONS_MAX);
        if (!field_find(s->fields, xml_get(x, "name"), &c->field))
                return unknown_field(m, x, err);
        c->comparison = comparison_of(xml_get(x, "op"));
        c->is_or = s->condition_count > 0 && conj && strncmp(conj, "Or", 2) == 0;
        c->is_not = conj && (strcmp(conj, "AndNot") == 0 || strcmp(conj, "OrNot") == 0);
        c->opens = level > 0 ? (unsigned)level : 0;
        c->closes = level < 0 ? (unsigned)-level : 0;
        c->value = value_of(xml_text(x), s->fields->kinds[c->field]);
        s->condition_count++;
        return 0;
}

static bool is_left_to_call(const struct sssrmap_message *m, const struct xml *x,
                            const char *const *parameters)
{
        if (sssrmap_is_condition(m, x))
                return false;
        while (*parameters && strcmp(*parameters, xml_get(x, "name")) != 0)
                parameters++;
        return *parameters;
}

static int read_conditions(struct sssrmap_selection *s, const struct sssrmap_message *m,
                           const char *const *parameters, struct err *err)
{
        unsigned opens = 0;
        int r = 0;

        if (!sssrmap_is_query(m))
                return 0;
        for (const struct xml *x = xml_child(m->request, "Where"); x && r == 0; x = xml_next(x, "Where"))
                if (!is_left_to_call(m, x, parameters))
                        r = condition_add(s, m, x, err);
        for (unsigned i = 0; i < s->condition_count; i++)
                opens += s->conditions[i].opens;
        if (r == 0 && (opens > GROUPS_MAX || (s->condition_count > 0 && !groups_fit(s))))
                r = err_set(err, SSSRMAP_VALUE,
                            "groups of conditions must be closed as often as they are opened, and %u may be "
                            "opened",
                            GROUPS_MAX);
        return r;
}

static enum operation operation_of(const char *op)
{
        static const char *const names[] = {"",    "Sort", "Tros",    "Count",  "Sum",
                                            "Max", "Min",  "Average", "GroupBy"};

        for (unsigned i = 1; op && i < sizeof(names) / sizeof(names[0]); i++)
                if (strcmp(names[i], op) == 0)
                        return (enum operation)i;
        return SHOW;
}

static bool is_sorting(enum operation o)
{
        return o == SORT || o == TROS;
}

static int get_add(struct sssrmap_selection *s, const struct sssrmap_message *m, const struct xml *x,
                   struct err *err)
{
        enum operation o = operation_of(xml_get(x, "op"));
        unsigned field;

        if (!field_find(s->fields, xml_get(x, "name"), &field))
                return unknown_field(m, x, err);
        s->shown |= 1u << field;
        if (o == SHOW)
                return 0;
        if (!sssrmap_is_query(m) || s->get_count == SSSRMAP_OPERATORS_MAX)
                return err_set(err, SSSRMAP_VALUE,
                               "operators of Get belong to queries, which have at most %u",
                               SSSRMAP_OPERATORS_MAX);
        s->gets[s->get_count++] = (struct get){field, o};
        s->keeps = true;
        s->computes |= !is_sorting(o);
        return 0;
}

static int read_gets(struct sssrmap_selection *s, const struct sssrmap_message *m, struct err *err)
{
        const struct xml *x = xml_child(m->request, "Get");
        bool plain = false;
        int r = 0;

        if (!x)
                s->shown = UINT32_MAX;
        for (; x && r == 0; x = xml_next(x, "Get")) {
                plain |= operation_of(xml_get(x, "op")) == SHOW;
                r = get_add(s, m, x, err);
        }
        for (unsigned i = 0; i < s->get_count; i++)
                plain |= is_sorting(s->gets[i].operation);
        if (r == 0 && s->computes && plain)
                r = err_set(
                        err, SSSRMAP_VALUE,
                        "beside Count, Sum, Max, Min, Average and GroupBy, each Get must have one of them");
        return r;
}

int sssrmap_selection_new(const struct sssrmap_message *m, const char *const *parameters,
                          const struct sssrmap_fields *fields, struct sssrmap_selection **ret,
                          struct err *err)
{
        struct sssrmap_selection *s = mem_new(struct sssrmap_selection);
        int r;

        s->fields = fields;
        while (fields->names[s->field_count])
                s->field_count++;
        r = read_conditions(s, m, parameters, err);
        if (r == 0)
                r = read_gets(s, m, err);
        if (r != 0)
                sssrmap_selection_free(s);
        else
                *ret = s;
        return r;
}

void sssrmap_selection_free(struct sssrmap_selection *s)
{
        if (!s)
                return;
        buf_deinit(&s->texts);
        free(s->cells);
        free(s);
}

/* ---- elements */

static void add_text(struct buf *out, const char *name, struct str text)
{
        buf_printf(out, "<%s>", name);
        xml_escape(out, text);
        buf_printf(out, "</%s>", name);
}

static void row_write(struct sssrmap_selection *s, const struct str *values, const char *element,
                      struct buf *out)
{
        s->count++;
        buf_printf(out, "<%s>", element);
        for (unsigned i = 0; i < s->field_count; i++)
                if (values[i].p && s->shown & 1u << i)
                        add_text(out, s->fields->names[i], values[i]);
        buf_printf(out, "</%s>", element);
}

static void row_keep(struct sssrmap_selection *s, const struct str *values)
{
        struct cell *row;

        MEM_GROW(s->cells, s->cell_cap, (s->rows + 1) * s->field_count);
        row = s->cells + s->rows++ * s->field_count;
        for (unsigned i = 0; i < s->field_count; i++) {
                row[i] =
                        (struct cell){(uint32_t)s->texts.n, values[i].p ? (uint32_t)values[i].n : UINT32_MAX};
                buf_str(&s->texts, values[i]);
        }
}

void sssrmap_selection_add(struct sssrmap_selection *s, const struct str *values, const char *element,
                           struct buf *out)
{
        if (s->steps >= SSSRMAP_STEPS_MAX || !is_selected(s, values))
                return;
        if (s->keeps)
                row_keep(s, values);
        else
                row_write(s, values, element, out);
}

static struct str cell_text(const struct sssrmap_selection *s, const struct cell *row, unsigned field)
{
        static const char empty[1];

        if (row[field].size == UINT32_MAX)
                return STR_NONE;
        return row[field].size ? str_make(s->texts.p + row[field].at, row[field].size) : str_make(empty, 0);
}

static int rows_cmp(const void *x, const void *y, void *arg)
{
        const struct sssrmap_selection *s = arg;
        const struct cell *a = x, *b = y;

        for (unsigned i = 0; i < s->get_count; i++) {
                const struct get *g = &s->gets[i];
                struct value v, w;
                int order;

                if (!is_sorting(g->operation) && g->operation != GROUP_BY)
                        continue;
                v = value_of(cell_text(s, a, g->field), s->fields->kinds[g->field]);
                w = value_of(cell_text(s, b, g->field), s->fields->kinds[g->field]);
                order = value_order(&v, &w);
                if (order != 0)
                        return g->operation == TROS ? -order : order;
        }
        return (a->at > b->at) - (a->at < b->at); /* the order in which they came */
}

/* What is computed of one field of a group. */
struct result {
        size_t count, numbers;
        bool integers;
        __int128 sum;
        long double real_sum;
        struct value least, most;
};

static struct result compute(const struct sssrmap_selection *s, unsigned field, size_t from, size_t to)
{
        struct result r = {.integers = true};

        for (size_t i = from; i < to; i++) {
                struct value v =
                        value_of(cell_text(s, s->cells + i * s->field_count, field), s->fields->kinds[field]);

                if (!v.text.p)
                        continue;
                if (r.count == 0 || value_order(&v, &r.least) < 0)
                        r.least = v;
                if (r.count == 0 || value_order(&v, &r.most) > 0)
                        r.most = v;
                r.count++;
                r.numbers += v.is_number;
                r.integers &= !v.is_number || v.is_integer;
                r.sum += v.integer;
                r.real_sum += v.number;
        }
        return r;
}

static void add_result(const struct sssrmap_selection *s, const struct get *g, size_t from, size_t to,
                       struct buf *out)
{
        struct result r = compute(s, g->field, from, to);
        const char *name = s->fields->names[g->field];
        char text[40];

        if (g->operation == COUNT)
                snprintf(text, sizeof(text), "%zu", r.count);
        else if (g->operation == SUM && r.numbers && r.integers && r.sum <= INT64_MAX && r.sum >= INT64_MIN)
                snprintf(text, sizeof(text), "%" PRId64, (int64_t)r.sum);
        else if (g->operation == SUM && r.numbers)
                snprintf(text, sizeof(text), "%.15Lg", r.real_sum);
        else if (g->operation == AVERAGE && r.numbers)
                snprintf(text, sizeof(text), "%.15Lg", r.real_sum / (long double)r.numbers);
        else {
                struct str v = g->operation == MAX                               ? r.most.text
                               : g->operation == MIN || g->operation == GROUP_BY ? r.least.text
                                                                                 : STR_NONE;

                if (v.p)
                        add_text(out, name, v);
                return;
        }
        add_text(out, name, str_of(text));
}

/* Returns whether two elements that stand one behind the other are of one group. */
static bool same_group(const struct sssrmap_selection *s, const struct cell *a, const struct cell *b)
{
        for (unsigned i = 0; i < s->get_count; i++) {
                struct str x, y;

                if (s->gets[i].operation != GROUP_BY)
                        continue;
                x = cell_text(s, a, s->gets[i].field);
                y = cell_text(s, b, s->gets[i].field);
                if (!x.p != !y.p || !str_eq(x, y))
                        return false;
        }
        return true;
}

static void write_groups(struct sssrmap_selection *s, const char *element, struct buf *out)
{
        bool grouped = false;

        for (unsigned i = 0; i < s->get_count; i++)
                grouped |= s->gets[i].operation == GROUP_BY;
        for (size_t from = 0, to; from < s->rows || (from == 0 && !grouped); from = to) {
                for (to = from + 1; to < s->rows && same_group(s, s->cells + from * s->field_count,
                                                               s->cells + to * s->field_count);)
                        to++;
                s->count++;
                buf_printf(out, "<%s>", element);
                for (unsigned i = 0; i < s->get_count; i++)
                        add_result(s, &s->gets[i], from, to < s->rows ? to : s->rows, out);
                buf_printf(out, "</%s>", element);
        }
}

static void write_rows(struct sssrmap_selection *s, const char *element, struct buf *out)
{
        for (size_t i = 0; i < s->rows; i++) {
                struct str values[SSSRMAP_FIELDS_MAX];

                for (unsigned k = 0; k < s->field_count; k++)
                        values[k] = cell_text(s, s->cells + i * s->field_count, k);
                row_write(s, values, element, out);
        }
}

/* Returns what sorting and computing may take. */
static uint64_t steps_of_rows(const struct sssrmap_selection *s)
{
        uint64_t each = s->rows * VALUE_STEPS * s->get_count + s->texts.n / 64, times = 1;

        for (size_t n = s->rows; n > 1; n /= 2)
                times++;
        return each * times;
}

int sssrmap_selection_end(struct sssrmap_selection *s, const char *element, struct buf *out, size_t *ret,
                          struct err *err)
{
        s->steps += steps_of_rows(s);
        if (s->steps >= SSSRMAP_STEPS_MAX)
                return err_set(
                        err, SSSRMAP_FAILED,
                        "the conditions or operators are too expensive for so many elements: ask for fewer");
        if (s->rows)
                qsort_r(s->cells, s->rows, s->field_count * sizeof(*s->cells), rows_cmp, s);
        if (s->computes)
                write_groups(s, element, out);
        else
                write_rows(s, element, out);
        *ret = s->count;
        return 0;
}
