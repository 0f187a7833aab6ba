/* apply_private: what the files behind core_emit and core_replay share: apply.c, apply_attempt.c,
 * apply_waiting.c.
 *
 * Each apply_X() does what one event, or several of a kind, say to a request that is there. 0; or
 * CORE_DAMAGED, with err, for an event that cannot be: then the request may be changed in part, and nobody
 * goes on with it. */
#pragma once
#include "core/model/state.h"

int apply_matched(struct core *c, struct request *r, const struct event *e, struct err *err);
int apply_filled(struct request *r, const struct event *e, struct err *err);
int apply_set(struct request *r, const struct event *e, struct err *err); /* set, go */
int apply_attempt(struct core *c, struct request *r, const struct event *e, struct err *err);
/* Suspended, resumed, vacating: the attempt goes on, otherwise. */
int apply_control(struct core *c, struct request *r, const struct event *e, struct err *err);
int apply_checkpoint(struct request *r, const struct event *e, struct err *err);
int apply_waiting(struct core *c, struct request *r, const struct event *e, struct err *err);

/* Fills err with why the event cannot be; CORE_DAMAGED. */
int apply_damaged(struct err *err, const struct event *e, const char *what);
/* How an event changes a job's state; what it holds and counts for follows. The move must be allowed. */
void apply_move(struct core *c, struct job *j, enum job_state to, int64_t at_ms);
/* Why j is, or will be, held; the reason is copied. */
void apply_set_hold(struct job *j, int32_t code, int32_t subcode, struct str reason);
/* If all jobs of r have ended and are in history it is finished: remembered, to be forgotten later. */
void apply_finished_maybe(struct core *c, struct request *r, int64_t at_ms);
/* j has ended by e: its record goes, or it stays in the queue (leave.h). */
void apply_drop_or_leave(struct core *c, struct request *r, struct job *j, const struct event *e);
