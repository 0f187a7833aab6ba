/* event: handles the runners' events about tasks. */
#pragma once
#include "agent/model/attempt.h"

extern const struct run_observer attempt_observer;        /* `arg` of its calls is the backend */
void attempt_signal(struct attempt *at, unsigned number); /* sends a signal to the program, once it runs */
/* Called every second: gives back attempts that a silent runner has not begun in time. */
void attempt_tick(struct agent *a);
