/* leases: renewals that the I/O thread acknowledges whatever the core thread is doing.
 *
 * The table has the sessions that the core has opened, each with the time at which its newest renewal was
 * received. The I/O thread records a renewal here and acknowledges it. The core asks for that time before
 * it ends the leases of an agent. The answer "nothing newer" and the end of acknowledgements in that session
 * are one step, so a lease that was acknowledged is never given away, and one that was given away is never
 * acknowledged: the session is then closed, and the agent greets again and learns which attempts are no
 * longer its own.
 *
 * Times are CLOCK_BOOTTIME milliseconds. Each call may be made on any thread.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct leases;
struct leases *leases_new(void);
void leases_free(struct leases *l); /* NULL is fine */

/* Renewals of this session are acknowledged from now on. The greeting counts as one. */
void leases_open(struct leases *l, uint64_t session, int64_t now_ms);
/* Renewals of this session are acknowledged no longer. Returns when the newest was received; 0: the session
 * was not open. */
int64_t leases_close(struct leases *l, uint64_t session);
/* A renewal was received. True: it counts, acknowledge it. False: the session is not open, and it must not be
 * acknowledged. */
bool leases_renew(struct leases *l, uint64_t session, int64_t now_ms);
/* Returns when the newest renewal was received if that is after `known_ms`. Otherwise closes the session and
 * returns known_ms: leases that are counted from known_ms may be ended. */
int64_t leases_take(struct leases *l, uint64_t session, int64_t known_ms);
