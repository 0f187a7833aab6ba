/* run: simulates a workload on a site in virtual time, with the real core deciding.
 *
 * An agent that is given a job waits out its batch system's delay, fetches the inputs that it does not hold
 * (a file once, for all jobs that need it), runs the program for its time divided by the agent's speed, sends
 * the outputs to the store of the job's home, and reports. The job holds its processors from the assignment
 * until the report. A store's links are shared (pipe.h), caches are those of place/cache_policy.h. An
 * agent that fails loses its running jobs, keeps its cache, and comes back after its repair.
 *
 * Jobs of a gang hold their processors until the whole gang was accepted; when an agent fails, the others of
 * the gang stop, and the gang starts again.
 *
 * Decisions depend on the seed only; measured real time and memory vary.
 */
#pragma once
#include "core/core.h"
#include "sim/measure.h"
#include "sim/site.h"

struct sim_progress {
        uint64_t ended, jobs, waiting;
        int64_t now_ms; /* since the start */
};
struct sim_run_options {
        const struct sim_site *site; /* finished */
        const struct sim_workload *workload;
        enum core_placement placement;
        uint64_t seed;
        int64_t lease_ms;                         /* 0: 40 min, that of batch queues */
        int64_t better_wait_ms, reserve_after_ms; /* as in core_config */
        double reserve_idle;
        bool guesses;            /* measure expected starts and ends as well */
        struct sim_times *times; /* output, one for each job, written at the end; may be NULL */
        void (*progress)(void *arg, const struct sim_progress *p); /* a few times a second; may be NULL */
        void *arg;
};
/* Runs the simulation. 0; -EINVAL with err: a job fits nowhere; 1 with err: jobs never end, or an invariant
 * is broken. */
int sim_run(const struct sim_run_options *o, struct sim_measures *ret, struct err *err);
