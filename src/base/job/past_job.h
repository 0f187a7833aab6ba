/* past_job: the history record of a job that is over. The core makes it (core_world.history), the store keeps
 * it as a row of history, and the server answers from it and from the record of the job's request, which has
 * the attributes that all jobs of a request share.
 *
 * Strings are borrowed, and valid for the time of the call that a past_job is passed to.
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
