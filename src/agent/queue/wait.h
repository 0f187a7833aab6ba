/* wait: estimates how long one more job would wait in the batch system behind a queue.
 *
 * The system itself is asked (runner.h, quote) about a job like the one that waits there longest, and only
 * while a job would not begin at once; at most one question a minute, one at a time, because each starts a
 * process there. The answer is the time at which such a job would begin; answers are smoothed, and between
 * them the remaining time shrinks. A system that cannot answer is asked again after ten minutes; the ad has
 * QueueWaitUnknown then, so that this is not taken for "at once".
 */
#pragma once
#include "agent/model/queue.h"

/* Asks the system if a question is due. has: facts about the system; like_…: request of the job to ask about
 * if no job waits there. */
void queue_wait_look(struct queue *q, const struct run_capacity *has, uint64_t like_cpus_milli,
                     uint64_t like_memory_bytes);
/* Called with the answer of the queue's runner. */
void queue_wait_told(struct backend *b, const struct run_quote *e);
/* Returns the wait in seconds, rounded up to tens or sixties so that it does not change all the time; 0:
 * none, or unknown. */
uint64_t queue_wait_s(const struct queue *q);
