/* kill: attempts that are told to end: killed, vacated, abandoned (model/attempt.h has the states). */
#pragma once
#include "agent/model/attempt.h"

void attempt_kill(struct attempt *at, enum outcome outcome, uint64_t grace_ms, const char *reason,
                  uint32_t hold_code);
/* Delivers no more, whatever it is at. ATTEMPT_DELIVERING only. */
void attempt_stop_delivery(struct attempt *at, enum outcome outcome, const char *reason, uint32_t hold_code);
void attempt_abandon(struct attempt *at); /* stop, deliver nothing, forget */

/* True: it was asked to end, and has its time. False: it keeps nothing, end it. `reason` is static. */
bool attempt_vacate(struct attempt *at, const char *reason);
/* The signal that asks it to end waits with it: it does not run where it was handed on to. */
void attempt_vacate_unheard(struct attempt *at);
void attempt_vacate_known(struct attempt *at); /* its runner is back: what was said meanwhile is done */
void attempt_kill_tick(struct agent *a);       /* ends those whose time to end by themselves is over */
/* To its program, which is resumed if it is suspended; 0: SIGTERM. */
void attempt_send_signal(struct attempt *at, int number);
