/* attempts: what agents say of attempts, from their acceptance to their results. */
#pragma once
#include "base/str.h"
#include "core/model/names.h"

/* The attempt is gone, whyever: its job is idle again, or what was to become of it, or held (losses.h). */
enum loss_by {
        LOSS_BY_SILENCE,   /* its agent does not know it, or is not heard of */
        LOSS_BY_AGENT,     /* its agent says so */
        LOSS_BY_AGENT_RAN, /* likewise, and that it had begun to run */
        LOSS_BY_ORDER,     /* an admin says so: it counts for nobody */
};
void attempt_lose(struct core *c, struct job *j, struct str why, enum loss_by by);
