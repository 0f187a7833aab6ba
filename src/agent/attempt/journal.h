/* journal: what a restart must know of attempts. */
#pragma once
#include "agent/model/attempt.h"
#include "wire/drover.pb-c.h"

int journal_open(struct agent *a, struct err *err); /* reads what was there: attempts and results */
void journal_close(struct agent *a);
/* All members of the group have an attempt. */
void journal_accepted(struct queue *q, struct template *t, const Drover__Group *g);
void journal_devices(const struct attempt *at); /* what it holds now */
void journal_result(struct attempt *at);
void journal_stopped(struct attempt *at); /* it runs, and ends with this agent */
void journal_gone(struct agent *a, uint64_t request, uint32_t member, uint32_t fence);
void journal_flush(struct agent *a);
