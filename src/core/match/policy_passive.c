/* SUMS's passive policy: places are tried in their search order, and those of the same order take turns.
 * Nothing is measured. */
#include "core/match/policy.h"
#include "core/model/agent.h"

static double passive_cost(struct core *c, const struct part *p, uint32_t member, const struct queue *q)
{
        (void)c;
        (void)p;
        (void)member;
        return q->search_order;
}

const struct policy policy_passive = {CORE_PLACE_PASSIVE, .spreads = true, .cost = passive_cost};
