/* kill: ends attempts: killed, vacated, abandoned (model/attempt.h has the states). */
#pragma once
#include "agent/model/attempt.h"

/* Kills the program with a grace period and finishes the attempt with this outcome. An attempt that is being
 * delivered goes on, unless its outputs wait for a silent store. The attempt may be freed by the call. */
void attempt_kill(struct attempt *at, enum outcome outcome, uint64_t grace_ms, const char *reason,
                  uint32_t hold_code);
/* Ends the program and delivers its outputs as if it had ended by itself. An attempt whose program does not
 * run is killed; one that is being delivered goes on. `reason` is static. */
void attempt_end(struct attempt *at, const char *reason);
/* Stops the delivery at any stage. ATTEMPT_DELIVERING only. */
void attempt_stop_delivery(struct attempt *at, enum outcome outcome, const char *reason, uint32_t hold_code);
void attempt_abandon(struct attempt *at); /* stops it, delivers nothing, forgets it */

/* Asks the program to end within its time and returns true; returns false if the job keeps nothing when
 * vacated, so that the caller ends it at once. `reason` is static. */
bool attempt_vacate(struct attempt *at, const char *reason);
/* Called when the signal could not be delivered: the job does not run yet at the server that it was
 * delegated to. The signal waits there. */
void attempt_vacate_unheard(struct attempt *at);
void attempt_vacate_known(struct attempt *at); /* called when the runner is reachable again: does what was
                                                  requested meanwhile */
void attempt_kill_tick(struct agent *a);       /* ends attempts whose time to end by themselves is over */
/* Sends a signal to the program, which is resumed if it is suspended; 0: SIGTERM. */
void attempt_send_signal(struct attempt *at, int number);
