/* waits: calls that stay parked on the core thread until something changes.
 *
 * A parked call names requests, or waits for any record to become durable; it is woken by the end of the turn
 * in which one of its requests changed, or when its time is up. Nothing polls. Waking runs a step of the call
 * on the core thread, which looks, and replies or parks again. Many calls are woken in slices of 4 ms, in the
 * order in which they became due, and the core's other work goes in between.
 */
#pragma once
#include "server/calls/call.h"
#include "server/loop/ids.h"

/* Requests that parked calls name (a call without any counts as one), shared among those who called as
 * base/share.h has it. */
#define WAITS_MAX 20000

struct waits *waits_new(struct server *s);
void waits_free(struct waits *w); /* with what is parked; NULL is fine */

/* Takes the call. ids NULL: only time wakes it. Without a place the call fails with 503, and it is
 * false. */
bool waits_park(struct server *s, struct call *c, const struct ids *ids, int64_t timeout_ms, call_fn *woken);
/* Woken when records became durable. */
void waits_park_durable(struct server *s, struct call *c, int64_t timeout_ms, call_fn *woken);

void waits_changed(struct server *s, uint64_t request); /* an event of this turn touched it */
void waits_flush(struct server *s);                     /* at the end of a turn */
void waits_durable(struct server *s);                   /* more records are on the disk */
