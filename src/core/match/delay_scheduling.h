/* delay_scheduling: a job waits for a busy place when its result would come sooner from there than from a
 * place that is free now. For the files of core/ only.
 *
 * The number of jobs that wait for a place is bounded by the room that it will have before the free place
 * would have been quicker; each waiting job keeps its position in the queue's line until it is dispatched or
 * stops waiting. No job waits longer than the configuration and its author allow (BetterPlaceWait, in
 * seconds), nor longer than the wait can save. When a place becomes free is only a prediction; a job that has
 * waited for as long as its files take to arrive has lost at most twice the time of the better choice (the
 * ski-rental bound). The clock of a job starts when the job is passed over for the first time.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

/* Returns whether this member of the bucket should wait, although q could take it now. */
bool delay_scheduling_waits(struct core *c, struct job_class *k, const struct bucket *b, uint32_t member,
                            struct queue *q);
/* Returns how long a job of the part may wait; 0: not at all. */
int64_t delay_scheduling_longest_ms(const struct core *c, const struct part *p);
/* Returns whether the bucket's first job has been idle for so long that no job behind it may overtake it for
 * the sake of cached files. */
bool delay_scheduling_is_late(const struct core *c, const struct bucket *b);
/* Matches the jobs again that have waited long enough. Returns the milliseconds until the next call is due.
 */
int64_t delay_scheduling_tick(struct core *c);
