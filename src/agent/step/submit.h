/* submit: a step of an attempt, as its queue's runner is told of it. */
#pragma once
#include "agent/model/attempt.h"

/* Starts the attempt's current step. 0, or -EINVAL with err: it can never run as it is. */
int step_submit(struct attempt *at, struct err *err);
/* Asks the queue's runner when another one like it would begin. */
void step_quote(const struct attempt *at);
