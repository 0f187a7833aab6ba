/* apply: the only way to change what events change. */
#pragma once
#include "base/str.h"
#include "core/model/names.h"

/* Applies the event and tells it to the world. 0. A
 * submit may be refused: CORE_INVALID, CORE_DAMAGED or what the world's load returned, with err. Another
 * event that cannot be applied is a bug of ours, and aborts. */
int core_emit(struct core *c, struct event *e, struct err *err);

/* What its attempt takes of countable resources, as in the event. 0, -EBADMSG. */
int job_set_more(struct core *c, struct job *j, struct str text);

/* By an event: j, whose attempt is over, stays in the queue (lifecycle/retention.h); the member leaves it. */
void retention_stay(struct core *c, struct request *r, struct job *j);
void retention_go(struct core *c, struct request *r, uint32_t member);
