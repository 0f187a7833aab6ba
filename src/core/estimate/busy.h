/* busy: when a queue that has no room will have some; for the files of core/ only. */
#pragma once
#include "core/model/names.h"
#include <stddef.h>
#include <stdint.h>

#define BUSY_UNKNOWN INT64_MAX

/* Until `nth` attempts (0: the first) of this queue have ended, in milliseconds, by what jobs like them took;
 * not before its batch system would begin another one. With more asked than it has attempts, those that
 * follow them are counted too. BUSY_UNKNOWN: it has none. */
int64_t busy_wait_ms(struct core *c, struct queue *q, uint32_t nth);
/* Until the batch system behind the queue would begin a job that it is given now, as its ad's QueueWait has
 * it; 0: at once, or it has not said. */
int64_t busy_queue_ms(const struct core *c, const struct queue *q);
