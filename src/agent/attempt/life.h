/* life: moves attempts from one state to the next (model/attempt.h). */
#pragma once
#include "agent/model/attempt.h"

/* Functions by which transfers, containers and environments report their results. */
extern const struct attempt_news attempt_news;

struct attempt *attempt_new(struct queue *q, struct held_template *t, uint64_t request, uint32_t member,
                            uint32_t fence);
void attempt_free(struct attempt *at);
void attempt_move(struct attempt *at, enum attempt_state to);
/* Reserves room for an attempt that waits for its gang's Go, so that it does not wait for room afterwards.
 */
void attempt_keep_room(struct attempt *at);
void attempt_schedule(struct agent *a);       /* starts the waiting attempts that fit */
void attempt_submit_step(struct attempt *at); /* submits the current step to the runner; RUNNING only */
/* Stops all work of other parts for the attempt: fetching, making, copying, sending. Nothing is reported. */
void attempt_stop_work(struct attempt *at);
void attempt_next_round(struct attempt *at);                  /* submits the same step again */
void attempt_step_over(struct attempt *at, enum run_why why); /* called when the current step has ended */
/* Gives the attempt back to the server's queue because its inputs cannot be had, through no fault of the
 * job. The attempt may be freed by the call. */
void attempt_give_back(struct attempt *at, const char *reason);
void attempt_lost(struct attempt *at,
                  const char *why);      /* finishes an attempt whose end is unknown, as lost */
void attempt_finish(struct attempt *at); /* moves to DONE; records the result and sends it */
void attempt_forget(struct attempt *at); /* frees it; the server has the result or wants none */
/* Frees the resources of an attempt if the event says that its last process has ended. Returns false for
 * other events. */
bool attempt_frees(struct agent *a, const struct run_event *e);
