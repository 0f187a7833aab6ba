/* limits: of memory, processors and disk, while an attempt runs. */
#pragma once
#include "agent/model/attempt.h"

void limits_prepare(struct attempt *at); /* takes a control group */
void limits_release(struct attempt *at);
void limits_usage(struct attempt *at); /* adds what the control group counted to the result */
/* The job's processes met the limit of their memory: one that failed did so for that. */
bool limits_oom(struct attempt *at);
/* The kernel has killed processes of it for their memory, whether its program noticed or not. */
bool limits_killed(struct attempt *at);
void limits_sample(struct agent *a); /* memory and disk of what runs, where no group limits it */
