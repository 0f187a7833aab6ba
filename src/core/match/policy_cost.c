/* Policies that look at a job's data, or at nothing: Drover's own cost, and those that it is compared with.
 * The search order decides between places of equal cost. */
#include "core/data/cost.h"
#include "core/match/choose.h"
#include "core/match/policy.h"
#include "core/model/agent.h"

static double cost_total(struct core *c, const struct part *p, uint32_t member, const struct queue *q)
{
        struct core_cost cost;

        cost_of(c, p, member, q, &cost);
        return (double)cost.total_ms + choose_order(q->search_order);
}

static double cost_order(struct core *c, const struct part *p, uint32_t member, const struct queue *q)
{
        (void)c;
        (void)p;
        (void)member;
        return choose_order(q->search_order);
}

static double cost_cached(struct core *c, const struct part *p, uint32_t member, const struct queue *q)
{
        struct core_cost cost;

        cost_of(c, p, member, q, &cost);
        return (cost.down ? (double)cost.total_ms : -(double)cost.bytes_held) + choose_order(q->search_order);
}

const struct policy policy_cost = {CORE_PLACE_COST, .by_files = true, .by_links = true, .cost = cost_total};
const struct policy policy_blind = {CORE_PLACE_BLIND, .cost = cost_order};
const struct policy policy_fifo = {CORE_PLACE_FIFO, .by_links = true, .cost = cost_total};
const struct policy policy_cached = {CORE_PLACE_CACHED, .by_files = true, .cost = cost_cached};
