/* life: the moves of attempts from one state to the next (model/attempt.h). */
#pragma once
#include "agent/model/attempt.h"

/* The functions by which transfers, containers and environments tell an attempt's life what came of their
 * work. */
extern const struct attempt_news attempt_news;

struct attempt *attempt_new(struct queue *q, struct template *t, uint64_t request, uint32_t member,
                            uint32_t fence);
void attempt_free(struct attempt *at);
void attempt_move(struct attempt *at, enum attempt_state to);
/* One that waits for its set's Go has its room from now on: it must not wait for that as well. */
void attempt_keep_room(struct attempt *at);
void attempt_schedule(struct agent *a);       /* starts what fits */
void attempt_submit_step(struct attempt *at); /* RUNNING: its current step goes to the runner */
/* What other parts do for it ends: fetching, making, copying, sending. Nobody is told. */
void attempt_stop_work(struct attempt *at);
void attempt_next_round(struct attempt *at);                  /* its step is submitted again */
void attempt_step_over(struct attempt *at, enum run_why why); /* the current step has ended */
/* Inputs do not come, for no fault of the job's: it goes back to the queue. The attempt may be gone then. */
void attempt_give_back(struct attempt *at, const char *reason);
void attempt_lost(struct attempt *at, const char *why); /* nobody knows what became of it: finished as lost */
void attempt_finish(struct attempt *at);                /* DONE: into the journal, and to the server */
void attempt_forget(struct attempt *at);                /* the server has the result, or wants none */
/* The event says that its last process has ended: its resources are free. False: it is no such event. */
bool attempt_frees(struct agent *a, const struct run_event *e);
