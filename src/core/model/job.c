#include "core/model/job.h"

#include <string.h>

static const char *const names[JOB_STATES] = {
        [JOB_IDLE] = "idle",
        [JOB_MATCHED] = "matched",
        [JOB_STAGING] = "staging",
        [JOB_RUNNING] = "running",
        [JOB_SUSPENDED] = "suspended",
        [JOB_VACATING] = "vacating",
        [JOB_COMPLETED] = "completed",
        [JOB_HELD] = "held",
        [JOB_REMOVED] = "removed",
        [JOB_RESERVED] = "reserved",
        [JOB_AUTHORISED] = "authorised",
};

#define ENDINGS (SM_TO(JOB_IDLE) | SM_TO(JOB_HELD) | SM_TO(JOB_COMPLETED) | SM_TO(JOB_REMOVED))

static const uint32_t moves[JOB_STATES] = {
        [JOB_IDLE] = SM_TO(JOB_RESERVED) | SM_TO(JOB_MATCHED) | SM_TO(JOB_HELD) | SM_TO(JOB_COMPLETED) |
                     SM_TO(JOB_REMOVED),
        [JOB_RESERVED] = SM_TO(JOB_RESERVED) | SM_TO(JOB_AUTHORISED) | ENDINGS,
        [JOB_AUTHORISED] = SM_TO(JOB_MATCHED) | ENDINGS,
        [JOB_MATCHED] = SM_TO(JOB_STAGING) | SM_TO(JOB_VACATING) | SM_TO(JOB_IDLE) | SM_TO(JOB_HELD),
        [JOB_STAGING] = SM_TO(JOB_RUNNING) | SM_TO(JOB_VACATING) | ENDINGS,
        [JOB_RUNNING] = SM_TO(JOB_SUSPENDED) | SM_TO(JOB_VACATING) | ENDINGS,
        [JOB_SUSPENDED] = SM_TO(JOB_RUNNING) | SM_TO(JOB_VACATING) | ENDINGS,
        [JOB_VACATING] = ENDINGS,
        [JOB_HELD] = SM_TO(JOB_IDLE) | SM_TO(JOB_COMPLETED) | SM_TO(JOB_REMOVED),
};

const struct sm job_states = {"job", names, moves, JOB_STATES};

bool job_state_parse(const char *name, enum job_state *ret)
{
        for (unsigned i = 0; i < JOB_STATES; i++)
                if (names[i] && strcmp(names[i], name) == 0) {
                        *ret = (enum job_state)i;
                        return true;
                }
        return false;
}

bool job_state_has_attempt(enum job_state s)
{
        return s == JOB_MATCHED || s == JOB_STAGING || job_state_runs(s);
}

bool job_state_runs(enum job_state s)
{
        return s == JOB_RUNNING || s == JOB_SUSPENDED || s == JOB_VACATING;
}

int job_state_status(enum job_state s)
{
        switch (s) {
        case JOB_IDLE:
        case JOB_RESERVED:
        case JOB_AUTHORISED:
        case JOB_MATCHED: return 1;
        case JOB_STAGING:
        case JOB_RUNNING:
        case JOB_VACATING: return 2;
        case JOB_REMOVED: return 3;
        case JOB_COMPLETED: return 4;
        case JOB_HELD: return 5;
        case JOB_SUSPENDED: return 7;
        case JOB_STATES: break;
        }
        return 0;
}
