/* journal: the file from which a restarted agent knows its attempts. */
#pragma once
#include "agent/message/job_group.h"
#include "agent/model/attempt.h"

int journal_open(struct agent *a, struct err *err); /* reads the attempts and results of an earlier agent */
void journal_close(struct agent *a);
/* Records accepted members; all members of the group have an attempt. */
void journal_accepted(struct queue *q, struct held_template *t, const struct job_group *g);
void journal_devices(const struct attempt *at); /* records the devices that the attempt holds now */
void journal_result(struct attempt *at);
void journal_stopped(
        struct attempt *at); /* records that the running attempt is ended together with this agent */
void journal_gone(struct agent *a, uint64_t request, uint32_t member, uint32_t fence);
void journal_flush(struct agent *a);
