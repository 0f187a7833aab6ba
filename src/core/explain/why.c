/* Explains why an idle job is not running: every queue is evaluated as in the match, first as it is now,
 * then as if it were empty. */
#include "core/explain/why.h"

#include "base/mem.h"
#include "classad/match.h"
#include "classad/print.h"
#include "core/billing/billing.h"
#include "core/classes/member_ad.h"
#include "core/data/cost.h"
#include "core/data/data_state.h"
#include "core/data/label.h"
#include "core/estimate/busy.h"
#include "core/gang/reserve.h"
#include "core/match/dispatch.h"
#include "core/match/policy.h"
#include "core/model/core_parts.h"
#include "core/model/suits.h"
#include "core/model/walk.h"

struct asking {
        const struct request *request;
        uint32_t member;
        uint64_t labels; /* labels of its data */
        const struct ad *ad;
};

/* Returns whether the queue's room is reserved for another job. */
static bool is_reserved(struct core *c, const struct asking *x, const struct queue *q)
{
        const struct bucket *b = request_bucket(c, x->request, x->member);
        struct need need;

        if (!b || !b->job_class || b->job_class->idle == 0 || !reserve_may_keep(b->job_class, q))
                return false;
        need_of(c, b->job_class, x->ad, q->ad, &need);
        return !reserve_allows(c, b->job_class, q, &need);
}

static bool is_closed_by_bank(struct core *c, const struct asking *x, const struct queue *q)
{
        const struct bucket *b = request_bucket(c, x->request, x->member);

        return b && b->job_class && billing_is_closed(c, b->job_class, q);
}

/* Returns whether the job must wait to be alone: a suspected job waits until nothing else runs there, and
 * others until it has ended. */
static bool must_be_alone(struct core *c, const struct asking *x, struct queue *q)
{
        if (q->agent == c->nodes.clearing.agent)
                return x->request->id != c->nodes.clearing.request || x->member != c->nodes.clearing.member ||
                       agent_attempts(q->agent) > 0;
        return q->agent->alone || (job_is_suspected(request_job(x->request, x->member)) &&
                                   queue_is_node(c, q) && agent_attempts(q->agent) > 0);
}

static bool store_is_down(struct core *c, const struct asking *x, const struct queue *q, struct core_why *w,
                          struct buf *clause, struct buf *value)
{
        size_t store = cost_store_down(c, request_part(x->request, x->member, NULL), x->member, q);
        const struct link *l = store == FILE_STORE_NONE ? NULL : agent_link_down(q->agent, store);

        if (!l)
                return false;
        w->verdict = CORE_STORE_DOWN;
        w->since_ms = l->down_ms;
        buf_str(clause, c->data->sites.stores[store].urls.name);
        buf_addz(value, l->down_why);
        return true;
}

static void compare(struct core *c, const struct asking *x, const struct queue *q, struct core_why *w)
{
        const struct part *p = request_part(x->request, x->member, NULL);

        w->policy = policy_of(c, p)->placement;
        w->turn = q->given_turn;
        w->rank = ad_find(x->ad, c->attr.Rank) ? match_rank(&c->eval, x->ad, q->ad) : 0;
        for (int i = 0; i < CORE_PLACEMENTS; i++)
                w->costs[i] = policy_get((enum core_placement)i)->cost(c, p, x->member, q);
}

static void ask_queue(struct core *c, const struct asking *x, struct queue *q, struct core_why *w,
                      struct buf *clause, struct buf *value)
{
        const struct request *r = x->request;
        const struct ad *job = x->ad;
        struct ad *whole;

        w->verdict = CORE_AWAY;
        if (!q->agent->connected || !q->ad)
                return;
        w->verdict = CORE_NOT_OFFERING;
        if (q->agent->refuses) {
                buf_addz(value, q->agent->refuses);
                return;
        }
        if (q->agent->losses.until_ms > c->steady_ms) {
                buf_printf(value, "jobs were lost there %u times in a row: it gets none for %lld s",
                           q->agent->losses.row,
                           (long long)(q->agent->losses.until_ms - c->steady_ms) / 1000 + 1);
                return;
        }
        w->verdict = CORE_UNREACHABLE;
        if (q->unreachable) {
                buf_addz(value, q->unreachable);
                return;
        }
        w->verdict = CORE_OWNER_REFUSED;
        if (!queue_allows_owner(q, request_owner(r))) {
                buf_str(value, queue_denies_owner(q, request_owner(r)));
                if (!value->n && q->closed)
                        buf_addz(value, q->closed);
                return;
        }
        w->verdict = CORE_NOT_CLEARED;
        if (x->labels & ~q->agent->cleared) {
                label_print(c, x->labels & ~q->agent->cleared, value);
                return;
        }
        w->verdict = CORE_NOT_OFFERING;
        if (q->closed && q->total_cpus == 0) { /* the queue has no resources that a job could ask for */
                buf_addz(value, q->closed);
                return;
        }
        if (q->paused_until_ms > c->steady_ms) {
                buf_addz(value, "its expressions take too long to evaluate");
                return;
        }
        whole = queue_whole_ad(c, q);
        w->verdict = suits_now(c, job, whole, clause, value);
        ad_free(whole);
        if (w->verdict != CORE_FITS)
                return;
        if (store_is_down(c, x, q, w, clause, value))
                return;
        if (is_closed_by_bank(c, x, q)) {
                w->verdict = CORE_NOT_OFFERING;
                buf_addz(value, "the bank's register of machines has it as inactive");
                return;
        }
        if (q->closed)
                buf_addz(value, q->closed);
        if (q->closed || (!q->offers && q->attempt_count == 0))
                w->verdict = CORE_NOT_OFFERING;
        else if (!dispatch_room(r, x->member, 0) || !q->offers || q->jobs_left == 0 ||
                 suits_now(c, job, q->ad, clause, value) != CORE_FITS)
                w->verdict = CORE_BUSY;
        if (w->verdict == CORE_FITS && (is_reserved(c, x, q) || must_be_alone(c, x, q)))
                w->verdict = CORE_BUSY;
        cost_of(c, request_part(r, x->member, NULL), x->member, q, &w->cost);
        if (w->verdict == CORE_FITS)
                compare(c, x, q, w);
        if (w->verdict == CORE_BUSY) {
                int64_t wait = busy_wait_ms(c, q, 0);

                cost_wait(&w->cost, wait == BUSY_UNKNOWN ? 0 : wait);
        }
}

void why_some(struct core *c, struct core_walk *w, unsigned queues, const struct request *r, uint32_t member,
              core_why_fn *fn, void *arg)
{
        struct asking x = {.request = r, .member = member};
        uint64_t steps = core_steps(c);
        struct queue *q;
        struct ad *job;

        label_of(c, r, request_part(r, member, NULL), member, &x.labels, NULL);
        x.ad = job = member_ad(c, r, member, request_job(r, member));
        for (; queues > 0 && walk_has_steps(c, steps, queues) && (q = walk_next(w)); queues--) {
                struct buf BUF_CLEANUP clause = {0}, text = {0};
                struct core_why why = {.agent = q->agent->name, .queue = q->name};

                if (!queue_is_place_for(c, q, job))
                        continue;
                ask_queue(c, &x, q, &why, &clause, &text);
                why.clause = buf_view(&clause);
                why.value = buf_view(&text);
                fn(arg, &why);
                eval_reset(&c->eval);
        }
        ad_free(job);
}

int core_why_some(struct core *c, struct core_walk *w, unsigned queues, uint64_t request, uint32_t member,
                  core_why_fn *fn, void *arg)
{
        const struct request *r = request_find(c, request);

        if (!r || member >= r->count)
                return CORE_UNKNOWN;
        why_some(c, w, queues, r, member, fn, arg);
        return 0;
}

int core_why(struct core *c, uint64_t request, uint32_t member, core_why_fn *fn, void *arg)
{
        struct core_walk *w = core_walk_new(c);
        int e = core_why_some(c, w, UINT32_MAX, request, member, fn, arg);

        core_walk_free(w);
        return e;
}
