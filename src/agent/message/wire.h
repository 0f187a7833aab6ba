/* wire: this part's structs as those of protobuf, for what sends messages (outbox) and receives them
 * (session). */
#pragma once
#include "agent/message/job_group.h"
#include "agent/message/job_result.h"
#include "base/arena.h"
#include "wire/drover.pb-c.h"

/* The message lives in the arena, and borrows the texts of `r`. */
Drover__JobResult *wire_job_result(const struct attempt_name *name, const struct job_result *r,
                                   struct arena *room);
/* The group's lists live in the arena; its texts are borrowed from the message. */
void wire_job_group(const Drover__Group *m, struct arena *room, struct job_group *ret);
