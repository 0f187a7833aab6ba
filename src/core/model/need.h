/* need: the resources that a job needs of a queue, and the free resources of a queue. For the files of core/
 * only.
 *
 * Cpus are processors, memory is in MiB, disk in KiB. Free resources may be negative if an agent reports less
 * than its jobs have been given.
 */
#pragma once
#include "core/model/amounts.h"
#include "core/model/names.h"

/* Upper bound of a quantity or price in an agent's ad. A larger one is taken for this, so that sums do not
 * overflow. */
#define OFFERED_MAX (1ll << 50)

struct need {
        int64_t cpus, memory_mib, disk_kib;
        struct amounts more; /* only the first `count` entries are set */
};

/* Computes what a job of the class needs at a place; `job` is the class's ad, or a member's own. */
void need_of(struct core *c, const struct job_class *k, const struct ad *job, const struct ad *place,
             struct need *ret);
bool need_same(const struct need *a, const struct need *b);
/* Returns whether no quantity is negative. A job with a negative one, by an expression, fits nowhere. */
bool need_is_possible(const struct need *n);
/* Returns whether one such job fits into what the queue has left. */
bool need_fits(struct core *c, const struct need *n, const struct queue *q);
/* Returns the number of such jobs that fit at once; UINT64_MAX: the need is empty. */
uint64_t need_count(struct core *c, const struct need *n, const struct queue *q);
/* Subtracts one job's need from the queue and updates its ad. The caller calls index_queue_changed after the
 * last of the jobs taken together. */
void need_take(struct core *c, const struct need *n, struct queue *q);

/* Adds the need of a refused attempt to what the queue has left. */
void need_return(struct core *c, const struct need *n, struct queue *q);

/* Sets the countable resources after an offer: the quantities of its ad, less those of attempts that are not
 * accepted yet. */
void need_read_resources(struct core *c, struct queue *q);
/* Counts the countable resources of a job's attempt as taken (sign 1), or, when the agent has accepted the
 * attempt, as not taken (-1). */
void need_count_taken(struct queue *q, const struct job *j, int sign);
