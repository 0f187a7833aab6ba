/* job: the states of a job, and the moves between them.
 *
 *                  submit
 *                    |            +----------------- release ------------------+
 *                    v            v                                            |
 *     waiting ---> idle --match--> matched --accept--> staging --> running    held
 *        ^          ^ ^               |                   |         |  ^       ^
 *        |          | +--refused,lost-+-------------------+---------+  |       |
 *        |          |                                               suspended  |
 *        |          +--- vacated, lost ---- vacating <-- hold, rm, vacate ------+
 *        |                                     |
 *     (dependency, data, time, space)          +--> completed, removed, held, idle
 *
 * reserved: a place in the future is kept for it. authorised: matched, and its lien is held by the bank.
 * finishing: the command has ended, its outputs are being delivered. completed and removed are final: the job
 * is in history.
 *
 * What is guaranteed: in matched, authorised, staging, running, suspended, vacating and finishing the job has
 * exactly one attempt, at one queue of one agent, with a fence that no other attempt of it ever had; in every
 * other state it has none. A job that never left idle or held by an attempt has no record: the sets of its
 * request tell.
 */
#pragma once
#include "base/sm.h"

enum job_state {
        JOB_WAITING,
        JOB_IDLE,
        JOB_RESERVED,
        JOB_MATCHED,
        JOB_AUTHORISED,
        JOB_STAGING,
        JOB_RUNNING,
        JOB_SUSPENDED,
        JOB_VACATING,
        JOB_FINISHING,
        JOB_COMPLETED,
        JOB_HELD,
        JOB_REMOVED,
        JOB_STATES
};
extern const struct sm job_states;

static inline const char *job_state_name(enum job_state s)
{
        return sm_state(&job_states, s);
}
bool job_state_parse(const char *name, enum job_state *ret);
bool job_state_has_attempt(enum job_state s);
bool job_state_runs(enum job_state s); /* it has been started, and has not ended: what people call running */
/* HTCondor's JobStatus: 1 idle, 2 running, 3 removed, 4 completed, 5 held, 7 suspended. */
int job_state_status(enum job_state s);
