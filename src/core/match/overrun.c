/* Both ads of a pair may have expressions, and each may refer to the other's. The culprit is found by
 * evaluating again with only the literals of the other side: what still takes too long is an ad's own doing.
 */
#include "core/match/overrun.h"

#include "base/mem.h"
#include "classad/match.h"
#include "core/accounts/share.h"
#include "core/classes/job_class.h"
#include "core/events/apply.h"
#include "core/match/matching.h"
#include "core/model/pending_match.h"

/* Steps beyond the ordinary ones that count as a look at another pair. */
#define LOOK_STEPS 2u

static struct ad *literals(const struct core *c, const struct ad *ad)
{
        struct ad *copy = ad_new(c->symbols);

        for (const struct ad *a = ad; a; a = ad_parent(a)) {
                const struct expr *e;
                struct value v;
                uint32_t at = 0;
                symbol name;

                while (ad_next(a, &at, &name, &e))
                        if (expr_literal(e, &v) && !ad_find_own(copy, name))
                                ad_set_expr(copy, name, e);
        }
        return copy;
}

/* Returns whether the expressions of `my` take too long, whatever those of the other ad are. */
static bool is_at_fault(struct core *c, const struct ad *my, const struct ad *other)
{
        const symbol more[] = {c->attr.RequestCpus, c->attr.RequestMemory, c->attr.RequestDisk,
                               c->attr.ConcurrencyLimits};
        uint64_t before = c->eval.overruns;
        struct ad *plain = literals(c, other);
        struct value v;

        match_one_way(&c->eval, my, plain);
        if (c->eval.overruns == before)
                match_rank(&c->eval, my, plain);
        for (size_t i = 0; c->eval.overruns == before && i < sizeof(more) / sizeof(more[0]); i++)
                eval_attr(&c->eval, my, plain, more[i], &v);
        ad_free(plain);
        return c->eval.overruns != before;
}

/* Returns whether the job caused the overrun: its expressions overrun alone, or the queue's overrun only
 * because of a value that the job has. */
static bool is_jobs_fault(struct core *c, const struct job_class *k, const struct queue *q)
{
        uint64_t before;

        if (is_at_fault(c, k->ad, q->ad))
                return true;
        if (is_at_fault(c, q->ad, k->ad))
                return false;
        before = c->eval.overruns;
        match_one_way(&c->eval, q->ad, k->ad);
        match_rank(&c->eval, q->ad, k->ad);
        return c->eval.overruns != before;
}

bool overrun_may_look(struct core *c, struct job_class *k)
{
        if (c->eval.arena.used > CORE_EVAL_BYTES_MAX)
                eval_reset(&c->eval);
        if (account_may_evaluate(k->account, c->steady_ms))
                return true;
        k->kept_back = c->matching->any_kept_back = true;
        return false;
}

void overrun_charge(struct core *c, struct job_class *k, uint64_t steps)
{
        uint64_t took = core_steps(c) - steps;

        if (took > OVERRUN_ORDINARY)
                c->matching->looks += (took - OVERRUN_ORDINARY) / LOOK_STEPS;
        account_evaluated(k->account, c->steady_ms, took);
}

void overrun_looked(struct core *c, struct job_class *k, struct queue *q, uint64_t steps, uint64_t overruns)
{
        overrun_charge(c, k, steps);
        if (c->eval.overruns == overruns || k->overrun || q->paused_until_ms > c->steady_ms)
                return;
        overrun_say(c, &k->overrun_why);
        if (is_jobs_fault(c, k, q)) {
                k->overrun = q;
                c->matching->any_overrun = true;
        } else {
                q->paused_until_ms = c->steady_ms + OVERRUN_PAUSE_MS;
        }
}

void overrun_say(const struct core *c, struct buf *out)
{
        const char *which = c->eval.limit_hit ? c->eval.limit_hit : "steps";

        buf_reset(out);
        if (strcmp(which, "steps") == 0)
                buf_printf(out, "past the limit of %u steps", CORE_EVAL_STEPS_MAX);
        else if (strcmp(which, "time") == 0)
                buf_addz(out, "past the limit of 50 ms");
        else if (strcmp(which, "memory") == 0)
                buf_printf(out, "past the limit of %u MiB", CORE_EVAL_BYTES_MAX >> 20);
        else
                buf_printf(out, "past the limit of %u nested references", CLASSAD_DEPTH_MAX);
}

struct to_hold {
        uint64_t request;
        struct set members;
        char *reason;
};

static char *reason_of(const struct job_class *k)
{
        BUF_CLEANUP struct buf text = {0};

        buf_printf(
                &text,
                "its Requirements, Rank or what it requests take too long: " STR_FMT
                ", asked at queue %s of agent %s. Submit it with a simpler one, or release it to try again",
                STR_ARG(buf_view(&k->overrun_why)), k->overrun->name, k->overrun->agent->name);
        return buf_take(&text);
}

static void hold(struct core *c)
{
        struct to_hold *all = NULL;
        size_t n = 0, cap = 0;
        void *value;

        for (struct request *r = c->requests->first; r; r = r->next)
                for (size_t i = 0; i < r->bucket_count; i++) {
                        struct bucket *b = r->buckets[i];

                        if (!b->job_class || !b->job_class->overrun || set_count(&b->idle) == 0)
                                continue;
                        MEM_GROW(all, cap, n + 1);
                        all[n] = (struct to_hold){.request = r->id, .reason = reason_of(b->job_class)};
                        set_copy(&all[n++].members, &b->idle);
                }
        for (size_t at = 0; map_next(c->classes->by_key, &at, NULL, &value);)
                ((struct job_class *)value)->overrun = NULL; /* evaluated again when the jobs are released */
        for (size_t i = 0; i < n; i++) {
                struct event e = {.type = EVENT_HELD,
                                  .request = all[i].request,
                                  .members = all[i].members,
                                  .code = CORE_HOLD_POLICY_UNDEFINED,
                                  .reason = str_of(all[i].reason)};

                core_emit(c, &e, NULL);
                event_deinit(&e);
                free(all[i].reason);
        }
        free(all);
}

void overrun_tick(struct core *c)
{
        void *value;

        if (c->matching->any_overrun)
                hold(c);
        c->matching->any_overrun = false;
        for (size_t at = 0; c->matching->any_kept_back && map_next(c->classes->by_key, &at, NULL, &value);) {
                struct job_class *k = value;

                if (k->kept_back)
                        job_class_look_again(c, k);
                k->kept_back = false;
        }
        c->matching->any_kept_back = false;
}
