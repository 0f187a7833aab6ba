/* leases: acknowledges renewals on the I/O thread, also while the core thread is busy.
 *
 * The table has the sessions that the core has opened, each with the time at which its newest renewal was
 * received. The I/O thread records a renewal here and acknowledges it. The core asks for that time before
 * it ends the leases of an agent. The answer "nothing newer" and the end of acknowledgements for that
 * session are one atomic step. An acknowledged lease is therefore never given to another agent, and a
 * lease that was given away is never acknowledged: the session is then closed, and the agent connects
 * again and learns which attempts it has lost.
 *
 * Times are CLOCK_BOOTTIME milliseconds. All functions may be called from any thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct leases;
struct leases *leases_new(void);
void leases_free(struct leases *l); /* accepts NULL */

/* Renewals of this session are acknowledged from now on. The Hello counts as a renewal. */
void leases_open(struct leases *l, uint64_t session, int64_t now_ms);
/* Renewals of this session are no longer acknowledged. Returns when the newest was received; 0: the
 * session was not open. */
int64_t leases_close(struct leases *l, uint64_t session);
/* Records a renewal. Returns true if it must be acknowledged; false: the session is not open, and it must
 * not be acknowledged. */
bool leases_renew(struct leases *l, uint64_t session, int64_t now_ms);
/* Returns when the newest renewal was received if that is after `known_ms`. Otherwise closes the session and
 * returns known_ms: leases that are counted from known_ms may be ended. */
int64_t leases_take(struct leases *l, uint64_t session, int64_t known_ms);
