/* output: reads the output of a running job at the other server. */
#pragma once
#include "run/runner.h"

struct remote;
struct remote_task;

/* Asks for a task's output, as the function `output` of struct runner_kind does. */
int remote_output(struct remote *f, const struct remote_task *t, const struct run_output_question *q,
                  uint64_t number, run_output_fn *fn, void *arg);
void remote_outputs_drop(struct remote *f); /* cancels calls in progress */
