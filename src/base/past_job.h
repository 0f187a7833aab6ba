/* past_job: what is kept of a job that is over. The core makes it (core_world.history), the store keeps it as
 * a row of history, and the server's answers are made of it and of the record of the job's request, which has
 * what the jobs of a request have in common.
 *
 * Strings are borrowed: whoever is given a past_job has it for the call.
 */
#pragma once
#include <stdint.h>

#include "base/str.h"

struct past_job {
        uint64_t request;
        uint32_t member;
        uint32_t state; /* enum job_state of core/model/job.h at the end: completed or removed */
        int64_t submitted_ms, ended_ms; /* Unix milliseconds */
        int32_t exit_code;              /* of the job; -signal when a signal ended it */
        struct str owner;               /* name@domain */
        struct str data;                /* the attributes of its own, in new ClassAd syntax */
};
