/* delay_scheduling: a job that could start here now, but would have its result sooner from a place that is
 * busy, waits for it; for the files of core/ only.
 *
 * Only so many jobs wait for a place as it will have room for before the other one would have been the
 * quicker: each keeps its place in that queue's line until it is given, or waits no more. No job waits longer
 * than the configuration and its author allow (BetterPlaceWait, in seconds).
 * The clock of a job starts when it is passed over for the first time.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

/* Should this member of the bucket be kept from q, which would take it now? */
bool delay_scheduling_waits(struct core *c, const struct job_class *k, const struct bucket *b,
                            uint32_t member, struct queue *q);
/* Has the bucket's first job been idle for so long that no other may go before it for its files' sake? */
bool delay_scheduling_is_late(const struct core *c, const struct bucket *b);
/* Has those that waited long enough matched again. Milliseconds until it wants to be called again. */
int64_t delay_scheduling_tick(struct core *c);
