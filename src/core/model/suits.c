#include "core/model/suits.h"

#include "base/mem.h"
#include "classad/match.h"
#include "classad/print.h"
#include "core/model/core_parts.h"

struct ad *queue_whole_ad(struct core *c, const struct queue *q)
{
        const struct str total = STR("Total");
        struct ad *ad = ad_dup(q->ad);
        const struct expr *e;
        uint32_t at = 0;
        symbol name;

        while (ad_next(q->ad, &at, &name, &e)) {
                struct str text = symbols_name(c->symbols, name);
                symbol free_name =
                        str_istarts(text, total) ? symbols_find(c->symbols, str_skip(text, total.n)) : 0;
                struct value v, is;

                if (free_name && ad_literal(q->ad, name, &v) && v.type == VALUE_INTEGER &&
                    ad_literal(q->ad, free_name, &is) && is.type == VALUE_INTEGER)
                        ad_set_integer(ad, free_name, v.integer);
        }
        return ad;
}

static bool short_of(struct core *c, const struct ad *job, const struct ad *place, symbol request,
                     symbol have, int64_t missing, struct buf *clause, struct buf *value)
{
        int64_t want = missing, has = 0;

        eval_integer(&c->eval, job, place, request, &want);
        eval_integer(&c->eval, place, job, have, &has);
        if (want <= has && want >= 0)
                return false;
        buf_printf(clause, "TARGET." STR_FMT " >= " STR_FMT, STR_ARG(symbols_name(c->symbols, have)),
                   STR_ARG(symbols_name(c->symbols, request)));
        buf_printf(value, "%lld >= %lld", (long long)has, (long long)want);
        return true;
}

/* Finds the first clause of `my` that is not true against `other`; returns false if there is none. */
static bool refusal(struct core *c, const struct ad *my, const struct ad *other, struct buf *clause,
                    struct buf *value)
{
        unsigned clauses = 0;
        struct value v;
        int n = match_first_refusal(&c->eval, my, other, &clauses, &v);

        if (n < 0)
                return false;
        if (clauses == 0) {
                buf_addz(clause, "Requirements");
                buf_addz(value, "missing");
                return true;
        }
        expr_print_clause(clause, ad_find(my, c->attr.Requirements), (unsigned)n, c->symbols);
        value_print(value, &v);
        return true;
}

enum core_verdict suits_now(struct core *c, const struct ad *job, const struct ad *place, struct buf *clause,
                            struct buf *value)
{
        const struct attributes *a = &c->attr;
        struct amounts more;

        int64_t at;

        if (eval_integer(&c->eval, job, NULL, a->DeferralTime, &at) && at > c->now_ms / 1000) {
                buf_addz(clause, "time() >= DeferralTime");
                buf_printf(value, "%lld >= %lld", (long long)(c->now_ms / 1000), (long long)at);
                return CORE_JOB_REFUSES;
        }
        if (refusal(c, job, place, clause, value))
                return CORE_JOB_REFUSES;
        if (short_of(c, job, place, a->RequestCpus, a->Cpus, 1, clause, value) ||
            short_of(c, job, place, a->RequestMemory, a->Memory, 0, clause, value) ||
            short_of(c, job, place, a->RequestDisk, a->Disk, 0, clause, value))
                return CORE_JOB_REFUSES;
        amounts_names(c->symbols, job, &more);
        for (unsigned i = 0; i < more.count; i++)
                if (short_of(c, job, place, more.v[i].request, more.v[i].name, 0, clause, value))
                        return CORE_JOB_REFUSES;
        if (refusal(c, place, job, clause, value))
                return CORE_QUEUE_REFUSES;
        return CORE_FITS;
}

bool queue_would_take(struct core *c, const struct ad *job, const struct ad *place)
{
        struct buf BUF_CLEANUP clause = {0}, value = {0};

        return suits_now(c, job, place, &clause, &value) == CORE_FITS;
}

bool suits_class(struct core *c, const struct job_class *k, const struct queue *q, const struct ad *whole)
{
        bool yes;

        if (!queue_allows_owner(q, k->owner) || k->leaks || (k->labels & ~q->agent->cleared))
                return false;
        yes = match_one_way(&c->eval, k->ad, whole) &&
              (q->job_specific || match_one_way(&c->eval, whole, k->ad));
        eval_reset(&c->eval);
        return yes;
}

bool queue_is_place_for(struct core *c, const struct queue *q, const struct ad *job)
{
        struct str runner;

        return !q->ad || ad_find(job, c->attr.DapType) ||
               !eval_string(&c->eval, q->ad, NULL, c->attr.Runner, &runner) || !str_eqz(runner, "mover");
}
