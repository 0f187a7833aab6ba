/* eta: when each queued job is expected to start and to end.
 *
 * Now and then, and when somebody asks and what is known is older than a few seconds, the queue is played
 * forward, in slices, as it was when each part of it was looked at: running jobs end when they are expected
 * to (estimate.h), and the idle ones take the free processors, and the units of limits (eta_limit.h), in the
 * order in which their turns come (eta_turn.h): by their accounts' shares, then as the match would take them;
 * a job that fits earlier goes earlier. The first few jobs of each of the first buckets are placed one by
 * one; the rest of a bucket, and buckets far behind, follow at the rate at which places of that size become
 * free, limits allow or shares give. A job's time is that of the first of its bucket and its place behind it,
 * so asking is cheap.
 *
 * Not known are: who will come later, that what an account had of late fades, reservations, and that shares
 * are of the whole pool even where only some of its queues are wanted.
 *
 * Of some jobs of each bucket the first guess is remembered; when they start it is compared, and the median
 * of the differences is told with every guess.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eta;

struct forecast;
void eta_free(struct eta *e);     /* NULL is fine */
void eta_rekeyed(struct core *c); /* all jobs come into other buckets: it begins anew */
void eta_started(struct core *c, const struct job *j);
struct unpack;
/* learned.h: the errors, and the guesses that wait for their jobs to start. */
void eta_pack(const struct core *c, struct buf *out);
void eta_unpack(struct core *c, struct unpack *in);
int64_t eta_tick(struct core *c); /* milliseconds until it wants to be called again */
/* For a quote, of the queue played forward until it is the turn of this bucket: when q would then have room
 * for a job of the bucket that takes so many processors for so long. 0: never. */
int64_t eta_quote_at(struct forecast *x, const struct bucket *b, const struct queue *q, int64_t cpus,
                     int64_t run_ms);
/* How many of its jobs limits allow at once, of those that it draws there; UINT64_MAX: any number. */
uint64_t eta_quote_room(struct forecast *x, const struct bucket *b, const struct queue *q);
/* How many such jobs fit there at once. */
uint64_t eta_slots(const struct queue *q, int64_t cpus);
