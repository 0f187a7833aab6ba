/* eta: predicts when each queued job starts and ends.
 *
 * The queue is simulated forward in slices, at intervals, and on request if the last result is older than a
 * few seconds; each part is used as it was when it was read. Running jobs end at their predicted times
 * (estimate.h). Idle jobs take free processors, and units of limits (eta_limit.h), in the order of their
 * turns (eta_turn.h): by their accounts' shares, then as the match would take them; a job that fits earlier
 * starts earlier. The first few jobs of each of the first buckets are placed one by one; the rest of a
 * bucket, and buckets far behind, follow at the rate at which places of that size become free, limits allow
 * or shares give. A job's time is derived from that of its bucket's first job and its position, so a query
 * is cheap.
 *
 * Ignored: jobs that arrive later, the decay of accounts' usage, reservations, and that shares apply to the
 * whole pool even where only some of its queues are wanted.
 *
 * The first prediction for some jobs of each bucket is kept and compared with their actual start; the median
 * of the differences is reported with every prediction.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eta;

struct forecast;
void eta_free(struct eta *e);     /* NULL is fine */
void eta_rekeyed(struct core *c); /* all jobs move to other buckets: starts again */
void eta_started(struct core *c, const struct job *j);
struct unpack;
/* learned.h: packs the errors, and the predictions of jobs that have not started. */
void eta_pack(const struct core *c, struct buf *out);
void eta_unpack(struct core *c, struct unpack *in);
int64_t eta_tick(struct core *c); /* milliseconds until the next call */
/* For a quote: returns when q has room for a job of the bucket that takes `cpus` processors for run_ms, in a
 * simulation that has reached the bucket's turn. 0: never. */
int64_t eta_quote_at(struct forecast *x, const struct bucket *b, const struct queue *q, int64_t cpus,
                     int64_t run_ms);
/* Returns how many jobs of the bucket their limits at q allow at once; UINT64_MAX: any number. */
uint64_t eta_quote_room(struct forecast *x, const struct bucket *b, const struct queue *q);
/* Returns how many jobs with `cpus` processors fit at the queue at once. */
uint64_t eta_slots(const struct queue *q, int64_t cpus);
