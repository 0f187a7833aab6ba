/* The table of placement policies. */
#include "core/match/policy.h"

#include "core/data/data_state.h"
#include "core/model/core_parts.h"
#include "core/model/job_class.h"
#include "core/model/job_template.h"
#include "core/model/request.h"

static const struct policy *const policies[CORE_PLACEMENTS] = {
        [CORE_PLACE_COST] = &policy_cost,       [CORE_PLACE_BLIND] = &policy_blind,
        [CORE_PLACE_FIFO] = &policy_fifo,       [CORE_PLACE_CACHED] = &policy_cached,
        [CORE_PLACE_PASSIVE] = &policy_passive, [CORE_PLACE_CLUSTER] = &policy_cluster,
        [CORE_PLACE_QUEUE] = &policy_queue,
};

const struct policy *policy_get(enum core_placement p)
{
        return policies[p];
}

const struct policy *policy_of(const struct core *c, const struct part *p)
{
        return policies[p->job_template->placement >= 0 ? p->job_template->placement
                                                        : (int)c->config.placement];
}

bool policy_by_files(const struct core *c, const struct job_class *k)
{
        return c->data->files && policy_of_class(c, k)->by_files;
}

const struct policy *policy_of_class(const struct core *c, const struct job_class *k)
{
        int placement = k->job_template->placement; /* the same for all its jobs: it is in the class's key */

        return policies[placement >= 0 ? placement : (int)c->config.placement];
}
