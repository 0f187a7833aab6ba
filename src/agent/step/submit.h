/* submit: submits a step of an attempt to its queue's runner. */
#pragma once
#include "agent/model/attempt.h"

/* Starts the attempt's current step. Returns 0, or -EINVAL with err: the step can never run. */
int step_submit(struct attempt *at, struct err *err);
/* Starts a command beside the program of the current step on this machine: as its user, in its folder,
 * environment and control group, with its containment or in its container. Its streams are the files
 * STEP_EXEC_OUT and STEP_EXEC_ERR of the sandbox, with the id's step in their names. Returns 0, or -EINVAL
 * with err. */
#define STEP_EXEC_OUT ".drover_exec.%08x.out"
#define STEP_EXEC_ERR ".drover_exec.%08x.err"
struct step_exec; /* agent/container/container_step.h */
int step_exec(struct attempt *at, struct run_id id, const struct step_exec *x, struct err *err);
/* Asks the queue's runner when another step like the attempt's would begin. */
void step_quote(const struct attempt *at);
