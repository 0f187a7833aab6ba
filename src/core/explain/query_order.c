/* Queries about the order: each account's usage, how a job's place is computed, and which place it leaves to
 * others. */
#include "core/accounts/share.h"
#include "core/fairness/order.h"
#include "core/fairness/qos.h"
#include "core/match/delay_scheduling.h"
#include "core/model/core_parts.h"
#include "core/model/place_wait.h"
#include "core/model/precedence.h"
#include "core/query.h"

#define AHEAD_LOOKED_MAX 10000u /* most buckets examined, in a few milliseconds */

struct each {
        struct core *core;
        void (*fn)(void *arg, const struct core_account *a);
        void *arg;
};

static uint64_t waiting(const struct account *a)
{
        uint64_t n = 0;

        for (const struct job_class *k = a->leaf ? a->classes : NULL; k; k = k->account_next)
                n += k->idle;
        for (const struct account *b = a->children; b; b = b->next)
                n += waiting(b);
        return n;
}

static void on_account(void *arg, struct account *a)
{
        struct each *e = arg;
        const struct core *c = e->core;
        struct core_account view = {
                .path = a->path,
                .user = a->leaf,
                .shares = a->shares,
                .part = a->ready ? a->part : 0,
                .usage_s = account_usage(c->shares, a, c->now_ms),
                .mean_cpus = account_mean(c->shares, a, c->now_ms),
                .cpus = (double)a->rate / 1000,
                .running = a->attempts,
                .waiting = waiting(a),
        };

        if (a->named || view.running || view.waiting || view.usage_s >= 0.5)
                e->fn(e->arg, &view);
}

void core_accounts(struct core *c, void (*fn)(void *arg, const struct core_account *a), void *arg)
{
        struct each e = {c, fn, arg};

        c->fairness->stale = true; /* computed now, not as of the last second */
        order_refresh(c);
        shares_each(c->shares, on_account, &e);
}

/* ---- jobs ahead of a job */

struct ahead {
        const struct core *core;
        struct order_mark of;
        size_t left; /* buckets that may still be examined */
        bool too_many;
        uint64_t jobs;
};

static struct order_mark mark_of(const struct core *c, const struct bucket *b)
{
        return (struct order_mark){.account = b->job_class->account,
                                   .own = order_own_points(c, b),
                                   .points = b->points,
                                   .request = b->request->id,
                                   .priority = b->priority,
                                   .due_s = order_bucket_due_s(b),
                                   .part = b->part};
}

/* Counts jobs ahead in a heap. Buckets below another in the heap come after it, so the search ends at a
 * bucket that is behind. */
static void count_heap(struct ahead *x, const struct heap *h, size_t at)
{
        for (; at < h->count; at = 2 * at + 2) {
                const struct bucket *b = container_of(h->nodes[at], struct bucket, node);
                struct order_mark mark;

                x->too_many |= x->left == 0;
                if (x->too_many)
                        return;
                x->left--;
                mark = mark_of(x->core, b);
                if (!order_mark_before(x->core, &mark, &x->of))
                        return;
                x->jobs += set_count(&b->idle);
                count_heap(x, h, 2 * at + 1);
        }
}

static void count_accounts(struct ahead *x, const struct account *a)
{
        for (const struct job_class *k = a->leaf ? a->classes : NULL; k; k = k->account_next)
                count_heap(x, &k->buckets, 0);
        for (const struct account *b = a->children; b; b = b->next)
                if (b->ready)
                        count_accounts(x, b);
}

static void look_ahead(struct core *c, const struct bucket *b, uint32_t member, struct core_priority *ret)
{
        struct ahead x = {.core = c, .of = mark_of(c, b), .left = AHEAD_LOOKED_MAX};

        count_accounts(&x, shares_root(c->shares));
        ret->ahead = x.jobs + set_count_range(&b->idle, 0, member);
        ret->ahead_more = x.too_many;
}

int core_job_priority(struct core *c, uint64_t request, uint32_t member, struct core_priority *ret)
{
        struct request *r = request_find(c, request);
        const struct bucket *b = r && member < r->count ? request_bucket(c, r, member) : NULL;
        const struct order_weights *w = &c->config.weights;
        const struct account *a;

        if (!b || !b->job_class || !set_has(&b->idle, member))
                return CORE_UNKNOWN;
        c->fairness->stale = true;
        order_refresh(c);
        a = b->job_class->account;
        *ret = (struct core_priority){
                .account = a->path,
                .qos = b->job_class->qos ? b->job_class->qos->name : NULL,
                .job_prio = b->priority,
                .age_h = (double)(c->now_ms - r->submitted_ms) / 3600000,
                .cpus = (double)b->job_class->cpus,
                .qos_points = w->qos * (b->job_class->qos ? b->job_class->qos->priority : 0),
                .size_points = w->size * (double)b->job_class->cpus,
                .user_points = w->user * (double)b->priority,
                .credential = b->job_class->credential,
                .credential_points = w->credential * b->job_class->credential,
                .fair_share_points = a->points,
                .waiting_points = order_waited_points(c, a, b->priority, order_bucket_due_s(b)),
                .waiting_h = (double)(c->now_ms - (int64_t)order_bucket_due_s(b) * 1000) / 3600000,
                .part = a->part,
                .lately_cpus = a->lately,
                .now_cpus = (double)a->rate / 1000,
        };
        look_ahead(c, b, member, ret);
        ret->age_points = w->age * ret->age_h;
        ret->total = ret->qos_points + ret->size_points + ret->user_points + ret->age_points +
                     ret->credential_points + ret->fair_share_points + ret->waiting_points;
        return 0;
}

int core_job_better_place(struct core *c, uint64_t request, uint32_t member, struct core_better_place *ret)
{
        const struct request *r = request_find(c, request);
        const struct place_wait *w = r && member < r->count ? place_wait_of(r, member) : NULL;

        if (!w || !w->queue)
                return CORE_UNKNOWN;
        *ret = (struct core_better_place){
                .agent = w->queue->agent->name,
                .queue = w->queue->name,
                .waited_ms = c->steady_ms - w->since_ms,
                .longest_ms = delay_scheduling_longest_ms(c, request_part(r, member, NULL)),
        };
        return 0;
}
