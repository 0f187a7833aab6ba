/* policy: evaluates a job's own expressions: whether it runs again, is held or removed. */
#pragma once
#include "base/set.h"
#include "core/model/job.h"
#include "core/model/names.h"

struct core_result;

struct exit_decision {
        enum job_state next;
        int32_t code, subcode;
        char reason[256];
};
struct policies {
        int64_t due_ms;
        uint64_t request;          /* request at which the next slice continues; 0: no round in progress */
        uint64_t begun;            /* request to which `each` belongs; 0: none */
        struct set each;           /* members to be looked at one by one */
        uint64_t member;           /* next member of `each` */
        uint64_t steps, steps_max; /* steps of evaluation for the request in progress: taken, and allowed */
        uint64_t round;            /* number of rounds that have ended */
};
/* Decides the state of a job after the result of its attempt. */
void policy_exit(struct core *c, struct request *r, struct job *j, const struct core_result *result,
                 struct exit_decision *ret);
bool policy_periodic_step(struct core *c, unsigned budget); /* true: the round is not over */
/* Holds the idle jobs of the class. */
void policy_hold_class(struct core *c, struct job_class *k, int code, const char *reason);
/* Holds the idle jobs whose outputs may not go to their destination, after a change of the configuration. */
void policy_hold_leaks(struct core *c);
