/* lease_clock: until when an agent may run its attempts.
 *
 * The agent counts a lease from the time at which it *sent* the renewal that the server acknowledged, on
 * CLOCK_BOOTTIME; the server from the time at which it received the renewal, plus a margin. The agent's
 * lease therefore ends first. One clock serves all attempts of an agent, with the shortest term among them.
 * Pure; times are CLOCK_BOOTTIME ms.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct lease_clock {
        int64_t from_ms;    /* time at which the newest acknowledged renewal was sent */
        int64_t term_ms;    /* shortest term of the held attempts; 0: none is held */
        uint64_t serial;    /* serial of the newest renewal sent */
        int64_t sent_ms[8]; /* times at which the last eight were sent, by serial % 8 */
};

#define LEASE_CLOCK_NEVER INT64_MAX

/* Called when the session is greeted. hello_ms: time at which our Hello was sent, which counts as a renewal.
 */
void lease_clock_greeted(struct lease_clock *c, int64_t hello_ms);
uint64_t lease_clock_renewing(struct lease_clock *c,
                              int64_t now_ms); /* called when a renewal is sent; returns its serial */
/* Called when the server acknowledges a renewal. Returns false if the serial is unknown or too old to count,
 * or the renewal was sent after the lease had ended: the held attempts must end then, whatever the server
 * says. */
bool lease_clock_renewed(struct lease_clock *c, uint64_t serial);
/* Called when an attempt with this term is accepted. */
void lease_clock_hold(struct lease_clock *c, int64_t term_ms, int64_t now_ms);
void lease_clock_release_all(struct lease_clock *c);  /* called when no attempt is held any more */
int64_t lease_clock_end(const struct lease_clock *c); /* LEASE_CLOCK_NEVER while nothing is held */
