/* SUMS's policy by cluster monitor: jobs go to the cluster with the least load, so that clusters get the
 * percentages of jobs that bring them to the same load. A cluster is what an agent offers, on one machine or
 * from a batch system; its load is the part of its processors that are not free. */
#include "core/match/policy.h"
#include "core/model/agent.h"

static double cluster_cost(struct core *c, const struct part *p, uint32_t member, const struct queue *at)
{
        int64_t free = 0, all = 0;

        (void)c;
        (void)p;
        (void)member;
        for (const struct queue *q = at->agent->queues; q; q = q->next) {
                int64_t cpus = q->cpus > 0 ? q->cpus : 0;

                free += cpus;
                all += q->total_cpus == INT64_MAX ? cpus + q->attempt_count : q->total_cpus;
        }
        return all > free ? (double)(all - free) / (double)all : 0;
}

const struct policy policy_cluster = {CORE_PLACE_CLUSTER, .spreads = true, .cost = cluster_cost};
