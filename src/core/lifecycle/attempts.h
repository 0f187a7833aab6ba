/* attempts: agents' reports on attempts, from acceptance to result. */
#pragma once
#include "base/str.h"
#include "core/model/names.h"

/* Tells the agent to stop the attempt, which must not be stopping yet; the job then returns to the queue. */
void attempt_vacate(struct core *c, const struct job *j, const char *why);
/* Ends an attempt that is lost: its job becomes idle, or held (losses.h), or takes the state that vacating
 * was to lead to. */
enum loss_by {
        LOSS_BY_SILENCE,   /* the agent does not know the attempt, or is silent */
        LOSS_BY_AGENT,     /* the agent reports the loss */
        LOSS_BY_AGENT_RAN, /* the agent reports the loss after the start */
        LOSS_BY_ORDER,     /* an administrator reports the loss: not counted for job or node */
};
void attempt_lose(struct core *c, struct job *j, struct str why, enum loss_by by);
