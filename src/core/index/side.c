#include "core/index/side.h"

#include "base/mem.h"
#include "classad/print.h"
#include "core/model/core_parts.h"

/* Returns the name's place, or -1. */
static int index_names_find(const struct index_names *s, symbol name)
{
        for (unsigned i = 0; i < s->n; i++)
                if (s->v[i].name == name)
                        return (int)i;
        return -1;
}

/* Returns whether the name is present or can be added, and is stable. */
static bool index_names_use(struct symbols *symbols, struct index_names *s, symbol name, struct str who)
{
        int i = index_names_find(s, name);

        if (i >= 0)
                return !s->v[i].moving && !s->v[i].counted;
        if (!share_take(s->share, who))
                return false;
        symbols_keep(symbols, name); /* the symbol must outlive the ads that use it */
        s->v[s->n++] = (struct index_name){.name = name};
        return true;
}

void index_side_deinit(struct index_side *s)
{
        ad_free(s->ad);
        free(s->clauses);
        buf_deinit(&s->text);
        *s = (struct index_side){0};
}

/* Attributes that one clause uses. */
struct looks {
        struct core *core;
        const struct index_side_how *how;
        symbol own[INDEX_NAMES_MAX];
        symbol other[INDEX_NAMES_MAX];
        unsigned own_n, other_n;
        bool bad;
};

static void on_reference(void *arg, symbol name, bool target)
{
        struct looks *l = arg;
        unsigned *n = target ? &l->other_n : &l->own_n;
        index_moving_fn *moves = target ? l->how->other_moves : l->how->own_moves;

        if (*n == INDEX_NAMES_MAX || name == l->core->attr.Requirements || (moves && moves(l->core, name)))
                l->bad = true;
        else
                (target ? l->other : l->own)[(*n)++] = name;
}

static bool clause_looks(struct core *c, const struct expr *e, unsigned n, const struct ad *ad,
                         const struct index_side_how *how, struct looks *ret)
{
        struct expr_uses uses;

        *ret = (struct looks){.core = c, .how = how};
        expr_clause_references(e, n, ad, on_reference, ret, &uses);
        if (ret->bad || uses.uses_time || uses.uses_random || uses.uses_more || ret->other_n == 0)
                return false;
        for (unsigned i = 0; i < ret->other_n; i++)
                if (!index_names_use(c->symbols, how->other, ret->other[i], how->who))
                        return false;
        for (unsigned i = 0; how->own_is_shown && i < ret->own_n; i++)
                if (!index_names_use(c->symbols, how->own, ret->own[i], how->who))
                        return false;
        return true;
}

/* Clauses longer than this exclude nothing, since each side copies what it compares. */
#define SIDE_TEXT_MAX 4096u

static bool is_short(const struct core *c, const struct expr *e)
{
        struct buf BUF_CLEANUP text = {.max = SIDE_TEXT_MAX};
        struct value v;

        if (!e || (expr_literal(e, &v) && v.type != VALUE_STRING))
                return true;
        if (expr_literal(e, &v))
                return v.string.n <= SIDE_TEXT_MAX;
        expr_print(&text, e, c->symbols);
        return !text.overflow;
}

static bool all_short(const struct core *c, const struct ad *ad, const struct looks *l)
{
        for (unsigned i = 0; i < l->own_n; i++)
                if (!is_short(c, ad_find(ad, l->own[i])))
                        return false;
        return true;
}

static void copy_attribute(const struct ad *from, symbol name, struct ad *to)
{
        const struct expr *e = ad_find(from, name);

        if (e && !ad_find(to, name))
                ad_set_expr(to, name, e);
}

/* Makes the side's Requirements from the clauses that can be indexed. */
static void add_demands(struct core *c, const struct ad *ad, const struct index_side_how *how,
                        struct index_side *s)
{
        const struct expr *e = ad_find(ad, c->attr.Requirements);
        struct buf BUF_CLEANUP text = {0}, one = {.max = SIDE_TEXT_MAX};
        size_t cap = 0;

        for (unsigned n = 0; e && n < expr_clause_count(e) && text.n < SIDE_TEXT_MAX; n++) {
                struct looks l;
                struct index_clause clause = {0};

                if (!clause_looks(c, e, n, ad, how, &l) || !all_short(c, ad, &l))
                        continue;
                buf_reset(&one);
                expr_print_clause(&one, e, n, c->symbols);
                if (one.overflow)
                        continue;
                for (unsigned i = 0; i < l.own_n; i++)
                        copy_attribute(ad, l.own[i], s->ad);
                for (unsigned i = 0; i < l.other_n; i++)
                        clause.names |= 1ull << index_names_find(how->other, l.other[i]);
                buf_addz(&text, text.n ? " && (" : "(");
                buf_str(&text, buf_view(&one));
                buf_char(&text, ')');
                MEM_GROW(s->clauses, cap, s->clause_count + 1);
                s->clauses[s->clause_count++] = clause;
        }
        if (s->clause_count && ad_set_text(s->ad, c->attr.Requirements, buf_view(&text), NULL) != 0)
                s->clause_count = 0;
        e = ad_find(s->ad, c->attr.Requirements);
        if (s->clause_count &&
            expr_clause_count(e) != s->clause_count) /* constant folding removed a clause */
                s->clause_count = 0;
}

static void on_any(void *arg, symbol name, bool target)
{
        (void)name;
        (void)target;
        *(bool *)arg = true;
}

/* Returns whether the expression has the same value for every viewer at any time. */
static bool constant(const struct expr *e, const struct ad *ad)
{
        struct expr_uses uses;
        bool depends = false;

        expr_references(e, ad, on_any, &depends, &uses);
        return !depends && !uses.uses_time && !uses.uses_random && !uses.uses_more;
}

static void add_shown(const struct core *c, const struct ad *ad, const struct index_side_how *how,
                      struct index_side *s)
{
        for (unsigned i = 0; i < how->own->n; i++) {
                const struct index_name *name = &how->own->v[i];
                const struct expr *e = name->moving ? NULL : ad_find(ad, name->name);
                struct value v;

                if (name->moving)
                        continue;
                if (name->counted) {
                        s->known |= 1ull << i;
                        s->counted |= e ? 1ull << i : 0;
                        continue;
                }
                if ((e && !ad_literal(ad, name->name, &v) && !constant(e, ad)) || !is_short(c, e))
                        continue;
                copy_attribute(ad, name->name, s->ad);
                s->known |= 1ull << i;
        }
}

/* Adds resources of which a place must have some. A name that a clause also uses stays indexed for that. */
static void add_asked(struct core *c, const struct index_side_how *how, struct index_side *s)
{
        for (unsigned i = 0; how->asks && i < how->asks->count; i++) {
                symbol name = how->asks->v[i].name;
                int at = index_names_find(how->other, name);

                if (how->asks->v[i].n <= 0 ||
                    (at < 0 && !index_names_use(c->symbols, how->other, name, how->who)))
                        continue;
                if (at < 0) {
                        at = index_names_find(how->other, name);
                        how->other->v[at].counted = true;
                }
                if (how->other->v[at].counted)
                        s->counted |= 1ull << at;
        }
}

void index_side_make(struct core *c, const struct ad *ad, const struct index_side_how *how,
                     struct index_side *ret)
{
        struct index_side s = {.ad = ad_new(c->symbols), .labels = how->labels};

        if (how->demands)
                add_demands(c, ad, how, &s);
        add_shown(c, ad, how, &s);
        add_asked(c, how, &s);
        buf_printf(&s.text, "%llx %llx %llx %u ", (unsigned long long)s.labels, (unsigned long long)s.counted,
                   (unsigned long long)s.known, s.clause_count);
        ad_print(&s.text, s.ad, CLASSAD_NEW, false);
        *ret = s;
}

/* Limit of steps for all clauses of a side together, since a side is compared with all others in one go.
 * Clauses beyond the limit exclude nothing. Pairs that are evaluated later have all steps. */
#define SIDE_STEPS_MAX 200u

static bool agrees(struct core *c, const struct index_side *a, const struct index_side *b)
{
        const struct expr *e = a->clause_count ? ad_find(a->ad, c->attr.Requirements) : NULL;
        uint32_t steps_max = c->eval.steps_max;
        uint64_t overruns = c->eval.overruns;
        bool yes = true;

        c->eval.steps_max = SIDE_STEPS_MAX;
        eval_share(&c->eval);
        for (unsigned n = 0; yes && n < a->clause_count && c->eval.overruns == overruns; n++) {
                struct value v;

                if (a->clauses[n].names & ~b->known)
                        continue;
                eval_clause(&c->eval, e, n, a->ad, b->ad, &v);
                yes = value_is_true(&v) || c->eval.overruns != overruns;
        }
        eval_share_end(&c->eval);
        c->eval.steps_max = steps_max;
        return yes;
}

bool index_sides_meet(struct core *c, const struct index_side *job_class, const struct index_side *queue)
{
        bool yes = !(job_class->labels & ~queue->labels) &&
                   !(job_class->counted & queue->known & ~queue->counted) && agrees(c, job_class, queue) &&
                   agrees(c, queue, job_class);

        eval_reset(&c->eval);
        return yes;
}
