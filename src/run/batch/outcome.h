/* outcome: how a task ended: by its script's word, else by the system's. */
#pragma once
#include "run/batch/batch.h"

struct batch;
struct task;

/* Looks at its files. True: how it ended is known, and told. reason: the system's, if it was asked. */
bool batch_see_end(struct batch *b, struct task *t, struct str reason);
/* The task is no longer in the system, or the system says that it has ended. Its script's word counts, if it
 * comes. */
void batch_settle(struct batch *b, struct task *t, enum batch_phase phase, struct str reason);
void batch_missing(struct batch *b, struct task *t); /* from the system's answer to a status query */
/* The task is back in the system's queue, after it had begun. */
void batch_put_back(struct batch *b, struct task *t, struct str reason);
