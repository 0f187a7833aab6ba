/* policy: what a job's own expressions decide: whether it runs again, is held or removed. */
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
        uint64_t request;          /* where the slice goes on; 0: not under way */
        uint64_t begun;            /* the request that `each` is of; 0: of none */
        struct set each;           /* its members that are looked at one by one, */
        uint64_t member;           /* of which those before this one were */
        uint64_t steps, steps_max; /* of the request under way: taken, and to be taken */
};
void policy_exit(struct core *c, struct request *r, struct job *j, const struct core_result *result,
                 struct exit_decision *ret);
bool policy_periodic_step(struct core *c, unsigned budget); /* true: more to do in this round */
/* Holds the idle jobs whose outputs may not go where they are meant to, since the configuration has changed.
 */
void policy_hold_leaks(struct core *c);
