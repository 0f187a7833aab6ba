/* lease_clock: until when an agent may run what it was given.
 *
 * The agent counts a lease from when it *sent* the renewal that the server acknowledged, on CLOCK_BOOTTIME;
 * the server from when it received it, plus a margin. So the agent's end comes first. One clock serves all
 * attempts of an agent, with the shortest term among them. Pure; times are CLOCK_BOOTTIME ms.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct lease_clock {
        int64_t from_ms;    /* when the newest acknowledged renewal was sent */
        int64_t term_ms;    /* shortest term of what is held; 0: nothing is held */
        uint64_t serial;    /* of the newest renewal sent */
        int64_t sent_ms[8]; /* when the last eight were sent, by serial % 8 */
};

#define LEASE_CLOCK_NEVER INT64_MAX

/* The session was greeted: hello_ms is when our Hello was sent, which counts as a renewal. */
void lease_clock_greeted(struct lease_clock *c, int64_t hello_ms);
uint64_t lease_clock_renewing(struct lease_clock *c, int64_t now_ms); /* a renewal is sent now; its serial */
/* The server has it. False when the serial is unknown or too old to count, or was sent when the lease was
 * over: what is held must end then, whatever the server says. */
bool lease_clock_renewed(struct lease_clock *c, uint64_t serial);
/* An attempt with this term was accepted. */
void lease_clock_hold(struct lease_clock *c, int64_t term_ms, int64_t now_ms);
void lease_clock_release_all(struct lease_clock *c);  /* nothing is held any more */
int64_t lease_clock_end(const struct lease_clock *c); /* LEASE_CLOCK_NEVER while nothing is held */
