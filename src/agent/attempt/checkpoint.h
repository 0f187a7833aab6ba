/* checkpoint: saves jobs' checkpoints, and restarts jobs from them.
 *
 * A program reports a checkpoint by ending in a way that its description names (HTCondor's
 * checkpoint_exit_code). Its files are sent to the server, and it is started again in place; if its attempt
 * is lost later, the next attempt finds the files in its sandbox. A signal asks the program for a
 * checkpoint, also before it is vacated or held.
 *
 *   RUNNING --ends so--> saving --stored---> RUNNING: its next round, the same step is submitted again
 *                          \-----vacated--> DONE, with the checkpoint in the result
 *
 * The checkpoint that another server has made of a delegated step is saved while the step goes on.
 *
 * While a checkpoint is being saved the attempt is RUNNING without a task (model/attempt.h).
 *
 * The task of a step in a later round has a run_id of its own: step + STEPS_MAX * round.
 */
#pragma once
#include "agent/model/checkpointing.h"

/* Returns whether the step ended with a checkpoint, or was vacated and its files count as one. */
bool checkpoint_made(const struct attempt *at, const struct step_result *r);
/* Returns whether a checkpoint is being saved, made here or by another server. */
bool checkpoint_under_way(const struct attempt *at);
void checkpoint_save(struct attempt *at);
/* Called when the files are in the spool (reason NULL), or cannot be stored there, for this reason. */
void checkpoint_saved(struct attempt *at, const char *reason);
/* Saves a checkpoint that another server has made (run_observer.checkpointed), while the step goes on. */
void checkpoint_carried(struct attempt *at, const char *files);
void checkpoint_carry_stop(struct attempt *at); /* stops saving it, when the step has ended */
void checkpoint_ask(
        struct attempt *at); /* sends the signal that asks for a checkpoint, if the program makes any */
void checkpoint_acked(struct attempt *at);
void checkpoint_greeted(struct agent *a); /* sends unacknowledged checkpoints again */
void checkpoint_outputs_drop(struct attempt *at);
