/* event: what runners tell of attempts' tasks. */
#pragma once
#include "agent/model/attempt.h"

extern const struct run_observer attempt_observer;        /* its arg is the backend */
void attempt_signal(struct attempt *at, unsigned number); /* to its program, once that runs */
/* Every second: what a runner that is silent has not begun in its time goes back. */
void attempt_tick(struct agent *a);
