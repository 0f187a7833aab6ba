/* walltime: how long a job of a queue may run.
 *
 * The limit is the job's own, or the one that the file gives to its queue. A batch system has limits of its
 * own, which it may not enforce at submission: a Slurm job that asks for more than its partition allows
 * waits there for ever. Where a runner knows such a limit (run_capacity.walltime_max_ms) the queue's ad has
 * it, jobs that ask for more go elsewhere, and jobs that ask for nothing get no more. A job that names a
 * partition or the like itself has that partition's limit, which is not known here.
 */
#pragma once
#include <stdint.h>

#include "agent/model/job_template.h"
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
