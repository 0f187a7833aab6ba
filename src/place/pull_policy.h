/* pull_policy: limits how much an agent may ask for now.
 *
 * A site's administrator sets any combination of: a load target in percent of the processors (100 + x, x may
 * be without limit), a number of jobs per day, and budgets per day of cpu time, walltime and memory (memory
 * times time). Running jobs count against a budget with what they have used so far; a started job is never
 * stopped because of a budget. Days are those of UTC. Pure: the caller passes the time.
 *
 * As text: `load=150%,jobs/day=1000,cpu/day=20h,walltime/day=90m,memory/day=500GiBh`; `load=inf`.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define PULL_NO_LIMIT UINT64_MAX

struct pull_policy {
        uint64_t load_percent; /* PULL_NO_LIMIT: inf; default 100 */
        bool measured;         /* load=measured:150%: other work on the machine counts too */
        uint64_t jobs_per_day; /* PULL_NO_LIMIT: none; the same for the next ones */
        uint64_t cpu_ms_per_day;
        uint64_t walltime_ms_per_day;
        uint64_t memory_mib_s_per_day; /* MiB seconds */
};

struct pull_use {    /* use since the day began */
        int64_t day; /* days since 1970 */
        uint64_t jobs, cpu_ms, walltime_ms, memory_mib_s;
};

struct pull_now {
        uint64_t cpus_milli;      /* processors of the queue; 1000 is one */
        uint64_t committed_milli; /* requested by accepted jobs */
        uint64_t load_milli;      /* load average of the machine times 1000 */
        /* used so far by running jobs */
        uint64_t running_cpu_ms, running_walltime_ms, running_memory_mib_s;
};

struct pull_allowance {
        uint64_t cpus_milli; /* processors that may be offered; PULL_NO_LIMIT with load=inf */
        uint64_t jobs;       /* jobs that may be taken; PULL_NO_LIMIT: no limit */
        const char *closed;  /* NULL, or the reason why nothing may be taken: "jobs per day", …; static */
};

void pull_policy_default(struct pull_policy *p);
/* Sets the limits that the text names. Returns 0, or -EINVAL with err. */
int pull_policy_parse(struct str text, struct pull_policy *p, struct err *err);
void pull_policy_print(const struct pull_policy *p, struct buf *out); /* parses back to the same */
void pull_use_day(struct pull_use *u, int64_t now_s); /* resets the sums if a new day has begun */
void pull_use_started(struct pull_use *u);
void pull_use_ended(struct pull_use *u, uint64_t cpu_ms, uint64_t walltime_ms, uint64_t memory_bytes);
/* Computes what may be offered and taken now. If a daily limit is reached, both are 0 and ret->closed is set.
 */
void pull_policy_allows(const struct pull_policy *p, const struct pull_use *u, const struct pull_now *now,
                        struct pull_allowance *ret);
