/* busy: predicts when a full queue will have room; for the files of core/ only. */
#pragma once
#include "core/model/names.h"
#include <stddef.h>
#include <stdint.h>

#define BUSY_UNKNOWN INT64_MAX

/* Returns the milliseconds until the `nth` attempt (0: the first) of this queue is expected to end, by the
 * run times of similar jobs, but not before its batch system would begin another job. Beyond the attempts
 * that it has, their successors are counted too. BUSY_UNKNOWN: the queue has no attempts. */
int64_t busy_wait_ms(struct core *c, struct queue *q, uint32_t nth);
/* Returns the milliseconds until the batch system behind the queue would begin a new job, from QueueWait in
 * its ad; 0: at once, or not known. */
int64_t busy_queue_ms(const struct core *c, const struct queue *q);
