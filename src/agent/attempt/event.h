/* event: what runners tell of attempts' tasks. */
#pragma once
#include "agent/model/attempt.h"

/* Tasks of a backend, and its coming and going: a run_events_fn. */
void attempt_events(void *backend, const struct run_event *events, size_t count);
void attempt_signal(struct attempt *at, unsigned number); /* to its program, once that runs */
/* Every second: what a runner that is silent has not begun in its time goes back. */
void attempt_tick(struct agent *a);
