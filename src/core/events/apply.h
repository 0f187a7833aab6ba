/* apply: applies events, which is the only way to change state that the log holds. */
#pragma once
#include "base/str.h"
#include "core/model/names.h"

/* Applies the event and tells the world. Returns 0. A submit may be refused: CORE_INVALID, CORE_DAMAGED or
 * the error of the world's `load`, with err. Any other event that cannot be applied is a bug, and aborts. */
int core_emit(struct core *c, struct event *e, struct err *err);

/* Sets the countable resources of the job's attempt from the event's text. Returns 0, or -EBADMSG. */
int job_set_more(struct core *c, struct job *j, struct str text);

/* Changes of the set `left` by events: j, whose attempt has ended, stays in the queue
 * (lifecycle/retention.h); and the member leaves the queue. */
void retention_stay(struct core *c, struct request *r, struct job *j);
void retention_go(struct core *c, struct request *r, uint32_t member);
