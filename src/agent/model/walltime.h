/* walltime: the maximum run time of a job in a queue.
 *
 * The limit is the job's own, or the queue's setting. A batch system may have a limit that it does not
 * enforce at submission: a Slurm job that asks for more than its partition allows waits forever. If a runner
 * knows such a limit (run_capacity.walltime_max_ms), it is in the queue's ad, so that jobs that ask for more
 * go elsewhere, and it also applies to jobs without a limit. A job that names a partition or similar itself
 * has that partition's limit, which is unknown here.
 */
#pragma once
#include <stdint.h>

#include "agent/message/job_template.h"
#include "base/buf.h"

struct attempt;
struct queue;
struct run_capacity;

/* Returns the attempt's limit in milliseconds; 0: none except what the batch system enforces on its own. */
uint64_t walltime_of(const struct attempt *at);
/* Returns the limit of a job that asks for none. */
uint64_t walltime_of_queue(const struct queue *q, const struct run_capacity *has);
/* Returns the longest time that the batch system allows such a job; UINT64_MAX: no limit. */
uint64_t walltime_limit(const struct job_template *m, const struct run_capacity *has);
/* Appends the limit as an attribute of the queue's ad. walltime_requirement: the condition that keeps longer
 * jobs away. */
void walltime_attribute(const struct run_capacity *has, struct buf *out);
extern const char walltime_requirement[];
