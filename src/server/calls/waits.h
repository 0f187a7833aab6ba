/* waits: calls that stay parked on the core thread until something changes.
 *
 * A parked call names requests, or waits for any record to become durable. It is woken at the end of the
 * turn in which one of its requests changed, or at its timeout; nothing polls. Waking runs a step of the
 * call on the core thread, which checks its condition and replies or parks again. Many calls are woken in
 * slices of 4 ms, in the order in which they became due, and other work of the core runs in between. */
#pragma once
#include "server/calls/call.h"
#include "server/loop/ids.h"

/* Limit on the requests that parked calls name (a call without any counts as one), shared between the
 * callers as base/share.h says. */
#define WAITS_MAX 20000

struct waits *waits_new(struct server *s);
void waits_free(struct waits *w); /* with all parked calls; accepts NULL */

/* Takes the call. ids NULL: only the timeout wakes it. Without a free place the call fails with 503, and
 * the result is false. */
bool waits_park(struct server *s, struct call *c, const struct ids *ids, int64_t timeout_ms, call_fn *woken);
/* Parks a call until records became durable, or the timeout. */
void waits_park_durable(struct server *s, struct call *c, int64_t timeout_ms, call_fn *woken);

/* tells that an event of this turn changed the request */
void waits_changed(struct server *s, uint64_t request);
void waits_flush(struct server *s);             /* at the end of a turn */
void waits_durable(struct server *s);           /* tells that more records are durable */
bool waits_any_durable(const struct server *s); /* returns whether a call waits for that */
