/* outcome: decides how a task ended, by its script's report or else by the system's. */
#pragma once
#include "run/batch/batch.h"

struct batch;
struct task;

/* Reads the task's files. Returns true if its end is known and was reported. reason: the system's, empty if
 * it was not asked. */
bool batch_see_end(struct batch *b, struct task *t, struct str reason);
/* Handles a task that the system no longer lists or reports as ended. A report of its script takes
 * precedence, if it arrives in time. */
void batch_settle(struct batch *b, struct task *t, enum batch_phase phase, struct str reason);
void batch_missing(struct batch *b, struct task *t); /* a status answer does not have the task */
/* The task is waiting in the system's queue again after it had begun: the system has requeued it. */
void batch_put_back(struct batch *b, struct task *t, struct str reason);
