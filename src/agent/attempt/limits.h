/* limits: enforces limits of memory, processors and disk while an attempt runs, and measures its usage. */
#pragma once
#include "agent/model/attempt.h"

void limits_prepare(struct attempt *at); /* takes a control group */
void limits_release(struct attempt *at);
void limits_usage(struct attempt *at); /* adds the control group's usage and the energy to the result */
/* Returns whether the job's processes reached their memory limit, so that a failure counts as caused by it.
 */
bool limits_oom(struct attempt *at);
/* Returns whether the kernel killed processes of the job for lack of memory, whether or not its program
 * noticed. */
bool limits_killed(struct attempt *at);
/* Checks the memory of running attempts that no control group limits, and the disk of all. */
void limits_sample(struct agent *a);
