/* acts: the verbs that the batch system is given for its tasks: end, stop, continue, hold, release, nudge.
 */
#pragma once
#include "run/batch/batch.h"

struct acts;
struct batch;
struct submission;
struct task;

struct acts *batch_acts_new(void);
void batch_acts_free(struct acts *acts);
bool batch_acts_ask_soon(const struct batch *b); /* a verb waits for a status answer that names its task */
bool batch_has(const struct batch *b, enum batch_verb verb);
/* Records `native` as the system's id of the whole submission: its tasks become TASK_IN, and an end or hold
 * that waited for the id is requested. No effect if the id is known already or native is empty. */
void batch_native_known(struct batch *b, struct submission *s, struct str native);
/* Requests the verb for the task. A system that has lost its state hands out the same ids again, so the id
 * may belong to another job since the last answer that named it: the verb waits for the next status answer
 * that names the task, which is asked for soon. A nudge is harmless and goes with the next batch_acts_run.
 * No effect if the system lacks the verb or the task is not TASK_IN.
 *
 * At most 1 MiB of ids wait for the command of a user's verb. While they do, later ones are refused: holds,
 * stops and ends are requested again after a later status answer, and a nudge is left out. */
void batch_act(struct batch *b, struct task *t, enum batch_verb verb);
/* Requests the verb without waiting for an answer, for a task that is being forgotten or is not asked about
 * any more. */
void batch_act_unasked(struct batch *b, struct task *t, enum batch_verb verb);
/* A status answer was read: releases the verbs of the tasks that it named. */
void batch_acts_named(struct batch *b);
void batch_acts_run(struct batch *b);
/* Requests the verbs of failed commands again, once the system answers. */
void batch_acts_again(struct batch *b);
/* Runs the verb's pending commands and waits for them, for a minute in all; none with a map of users. */
void batch_act_now(struct batch *b, enum batch_verb verb);
