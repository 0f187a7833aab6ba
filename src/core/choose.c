/* A queue can be used when it has room, its agent runs this owner's jobs and is cleared for their data, and
 * both Requirements agree. Better is what the job ranks higher; of places that it ranks the same, the one of
 * least cost (cost.h) to the job that goes first; then the one with more free processors. */
#include "core/choose.h"

#include "classad/match.h"

static bool agree(struct core *c, const struct class *k, const struct queue *q)
{
        if (q->job_specific)
                return match_one_way(&c->eval, k->ad, q->ad);
        return match_ads(&c->eval, k->ad, q->ad) == MATCH_YES;
}

bool choose_fits(struct core *c, const struct class *k, const struct queue *q, struct need *ret_need)
{
        if (q->jobs_left == 0 || !queue_allows_owner(q, k->owner))
                return false;
        if (k->leaks || (k->labels & ~q->agent->cleared))
                return false;
        need_of(c, k, k->ad, q->ad, ret_need);
        return need_fits(ret_need, q) && agree(c, k, q);
}

static double cost_to_first(struct core *c, const struct class *k, const struct queue *q)
{
        const struct bucket *b = class_first_bucket(k);
        const struct part *p = &b->request->parts[b->part];
        struct core_cost cost;

        if (c->config.placement == CORE_PLACE_BLIND)
                return 0;
        cost_of(c, p, (uint32_t)set_first(&b->idle), q, &cost);
        if (c->config.placement == CORE_PLACE_CACHED)
                return -(double)cost.bytes_held;
        return (double)(cost.total_ms / 1000);
}

struct candidate choose_worth(struct core *c, const struct class *k, struct queue *q)
{
        return (struct candidate){
                .queue = q,
                .rank = k->has_rank ? match_rank(&c->eval, k->ad, q->ad) : 0,
                .cost = cost_to_first(c, k, q),
        };
}

static int better(const void *x, const void *y)
{
        const struct candidate *a = x, *b = y;

        if (a->rank != b->rank)
                return a->rank > b->rank ? -1 : 1;
        if (a->cost != b->cost)
                return a->cost < b->cost ? -1 : 1;
        return (a->queue->cpus < b->queue->cpus) - (a->queue->cpus > b->queue->cpus);
}

size_t choose_offers(struct core *c, const struct class *k, struct queue *const *offers, size_t count,
                     struct candidate *found)
{
        struct need need;
        size_t n = 0;

        for (size_t i = 0; i < count; i++)
                if (choose_fits(c, k, offers[i], &need))
                        found[n++] = choose_worth(c, k, offers[i]);
        eval_reset(&c->eval);
        if (n > 1)
                qsort(found, n, sizeof(*found), better);
        return n;
}
