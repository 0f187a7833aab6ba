/* event: handles the runners' events about tasks. */
#pragma once
#include "agent/model/attempt.h"

extern const struct run_observer attempt_observer; /* `arg` of its calls is the backend */
/* Sends a signal to the program once it has run for a second, the time to set its handlers. */
void attempt_signal(struct attempt *at, unsigned number);
/* Called every second: sends signals that were kept, and gives back attempts that a silent runner has not
 * begun in time. */
void attempt_tick(struct agent *a);
