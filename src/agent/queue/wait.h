/* wait: how long the batch system behind a queue would have one more job wait.
 *
 * The system itself is asked (runner.h, quote), about a job like the one that waits there longest, and only
 * while a job would not begin at once: at most once a minute, one question at a time, for each costs a
 * process there. What it says is the time at which such a job would begin; answers are smoothed, and between
 * them that time comes nearer. A system that cannot say is asked again after ten minutes; the ad says so
 * (QueueWaitUnknown), so that nobody takes it for "at once".
 */
#pragma once
#include "agent/model/queue.h"

/* Asks, if it is time. has: what the system has told of itself; like: what a job asks for where none is
 * there.
 */
void queue_wait_look(struct queue *q, const struct run_capacity *has, uint64_t like_cpus_milli,
                     uint64_t like_memory_bytes);
/* The answer of the queue's runner. */
void queue_wait_told(struct backend *b, const struct run_quote *e);
/* In seconds, rounded up to ten or to sixty, so that it does not differ with each look; 0: a job would begin
 * at once, or nobody knows. */
uint64_t queue_wait_s(const struct queue *q);
