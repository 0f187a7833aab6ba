/* policy: placement policies, one struct of functions each: which of the places that can take a job gets it.
 * For the files of core/ only.
 *
 * A policy decides only between places that have room for the job now; no job is kept waiting by it. The one
 * of the server's settings (placement) holds for jobs that ask for none (PlacementPolicy). A job's Rank comes
 * before the policy.
 */
#pragma once
#include "core/core.h"
#include "core/model/names.h"

struct policy {
        enum core_placement placement; /* its name: core_placement_name */
        /* Jobs of one class are spread over the places: these are given small groups of jobs, each group to
         * the place that is best then, and of equal ones to the one that was given jobs longest ago. The cost
         * must not depend on the member, and must not fall when jobs are dispatched. */
        bool spreads;
        /* The files that a place holds make it better: jobs and members are chosen for a place by them. */
        bool by_files;
        bool by_links; /* the load of links, by files that are being fetched, makes places worse */
        /* Returns what a place costs a member (MEMBER_ANY: any); lower is better. Depends on the state of the
         * queue and its agent at that moment, and changes nothing. */
        double (*cost)(struct core *c, const struct part *p, uint32_t member, const struct queue *q);
};
extern const struct policy policy_cost, policy_blind, policy_fifo, policy_cached; /* policy_cost.c */
extern const struct policy policy_passive, policy_cluster, policy_queue;          /* a file each */

/* Returns the policy of this number. */
const struct policy *policy_get(enum core_placement p);
/* Returns the policy of a part's jobs, and of a class with idle jobs. */
const struct policy *policy_of(const struct core *c, const struct part *p);
const struct policy *policy_of_class(const struct core *c, const struct job_class *k);
/* Returns whether jobs of the class are chosen by files that places hold. */
bool policy_by_files(const struct core *c, const struct job_class *k);
