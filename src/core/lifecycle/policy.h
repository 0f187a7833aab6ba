/* policy: what a job's own expressions decide: whether it runs again, is held or removed. */
#pragma once
#include "core/model/job.h"

struct core;
struct core_result;
struct job;
struct request;

struct exit_decision {
        enum job_state next;
        int32_t code, subcode;
        char reason[256];
};
void policy_exit(struct core *c, struct request *r, struct job *j, const struct core_result *result,
                 struct exit_decision *ret);
bool policy_periodic_step(struct core *c, unsigned budget); /* true: more to do in this round */
/* Holds the idle jobs whose outputs may not go where they are meant to, since the configuration has changed.
 */
void policy_hold_leaks(struct core *c);
