/* job: the states of a job, and the moves between them.
 *
 *                  submit
 *                    |            +----------------- release ------------------+
 *                    v            v                                            |
 *                  idle --match--> matched --accept--> staging --> running    held
 *                   ^ ^               |                   |         |  ^       ^
 *                   | +--refused,lost-+-------------------+---------+  |       |
 *                   |                                               suspended  |
 *                   +--- vacated, lost ---- vacating <-- hold, rm, vacate ------+
 *                                              |
 *                                              +--> completed, removed, held, idle
 *
 * A meta job (meta/meta.h) takes another way from idle to matched:
 *
 *                  idle --reserve--> reserved --authorise--> authorised --match--> matched
 *                   ^                  | ^  |                     |
 *                   +---- release -----+ +--+ move                |
 *                   +------------------- release -----------------+
 *
 * completed and removed are final: the job is in history.
 *
 * Guarantees: in matched, staging, running, suspended and vacating the job has exactly one attempt, at one
 * queue of one agent, with a fence that no other attempt of the job ever had; in every other state it has
 * none. A job that has had no attempt has no record: the sets of its request give its state. In reserved and
 * authorised the job has exactly one reservation (reservation/advance.h), in idle none; its record says idle
 * in all three, and request_state tells them apart.
 */
#pragma once
#include "base/sm.h"

/* Numbers are in the log, in snapshots and in history. 0, 2, 4 and 9 belonged to states that no job ever
 * entered, and are not given again. */
enum job_state {
        JOB_IDLE = 1,
        JOB_MATCHED = 3,
        JOB_STAGING = 5,
        JOB_RUNNING,
        JOB_SUSPENDED,
        JOB_VACATING,
        JOB_COMPLETED = 10,
        JOB_HELD,
        JOB_REMOVED,
        JOB_RESERVED,
        JOB_AUTHORISED, /* the place has room now, and the account can pay: the job is given to it */
        JOB_STATES
};
extern const struct sm job_states;

static inline const char *job_state_name(enum job_state s)
{
        return sm_state(&job_states, s);
}
/* Returns false if no state has this name. */
bool job_state_parse(const char *name, enum job_state *ret);
/* Returns whether a job in this state waits for a place. */
static inline bool job_state_is_idle(enum job_state s)
{
        return s == JOB_IDLE || s == JOB_RESERVED || s == JOB_AUTHORISED;
}
/* Returns whether a job in this state has an attempt. */
bool job_state_has_attempt(enum job_state s);
bool job_state_runs(enum job_state s); /* the attempt has started and not ended: what users call running */
/* HTCondor's JobStatus: 1 idle, 2 running, 3 removed, 4 completed, 5 held, 7 suspended. */
int job_state_status(enum job_state s);
