/* checkpoint: jobs that write down how far they have come, and go on from there.
 *
 * A program says that it has made a checkpoint by ending in a way that its description names (HTCondor's
 * checkpoint_exit_code). Its files go to the server, and it is started again in place; should its attempt be
 * lost later, the next one finds them in its sandbox. It is asked for one by a signal, and before it is
 * vacated or held.
 *
 *   RUNNING --ends so--> saving --stored---> RUNNING: its next round, the same step is submitted again
 *                          \-----vacated--> DONE, with the checkpoint in the result
 *
 * One that another server has made, of a step that was handed on, is saved while the step goes on.
 *
 * While it is being saved the attempt is RUNNING, without a task (model/attempt.h).
 *
 * A step's task in a later round has a run_id of its own: step + STEPS_MAX * round.
 */
#pragma once
#include "agent/model/checkpointing.h"

/* The step has ended as one that made a checkpoint, or is vacated and what it leaves counts as one. */
bool checkpoint_made(const struct attempt *at, const struct step_result *r);
/* Is one being saved, of its own or of another server? */
bool checkpoint_under_way(const struct attempt *at);
void checkpoint_save(struct attempt *at);
/* Its files are in the spool, or (reason) cannot be. */
void checkpoint_saved(struct attempt *at, const char *reason);
/* One that another server has made of it is here, see run_observer.checkpointed: it goes to ours, while the
 * step goes on. */
void checkpoint_carried(struct attempt *at, const char *files);
void checkpoint_carry_stop(struct attempt *at); /* the step is over */
void checkpoint_ask(struct attempt *at);        /* by its signal, if it makes any */
void checkpoint_acked(struct attempt *at);
void checkpoint_greeted(struct agent *a); /* what was not acknowledged is sent again */
void checkpoint_outputs_drop(struct attempt *at);
