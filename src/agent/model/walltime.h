/* walltime: how long a job of a queue may run.
 *
 * A job says it itself, or has what the file gives its queue. A batch system has limits of its own, which it
 * may not refuse at the submit: a Slurm job that asks for more than its partition gives waits there for ever.
 * So where a runner knows such a limit (run_capacity.walltime_max_ms) the queue's ad has it, jobs that ask
 * for more go elsewhere, and those that ask for nothing are given no more. A job that names a partition or
 * the like itself has that one's limit, which nobody here knows.
 */
#pragma once
#include <stdint.h>

#include "agent/model/job_template.h"
#include "base/buf.h"

struct attempt;
struct queue;
struct run_capacity;

/* In milliseconds; 0: it has none but what the batch system keeps to itself. */
uint64_t walltime_of(const struct attempt *at);
/* The same of a job that says nothing at all. */
uint64_t walltime_of_queue(const struct queue *q, const struct run_capacity *has);
/* The longest that the system gives such a job; UINT64_MAX: any. */
uint64_t walltime_limit(const struct job_template *m, const struct run_capacity *has);
/* For the ad: what is known, and which jobs it keeps away. */
void walltime_attribute(const struct run_capacity *has, struct buf *out);
extern const char walltime_requirement[];
