/* measure: the results of a run of the simulator.
 *
 * Wait is from submission until the job's program starts, staging included; turnaround until its result is
 * there. Slowdown is bounded: (end - submission) / max(run time, 10 s), at least 1, with the run time on a
 * processor of speed 1 (Feitelson, "Metrics for parallel job scheduling and their convergence", 2001).
 * Fairness is Jain's index over the users' mean slowdowns: 1 when all have the same, 1/n when one has all of
 * it.
 */
#pragma once
#include <stdint.h>

#include "sim/workload.h"

#define SIM_SIZES 4 /* 1, 2-8, 9-64, more processors */
extern const char *const sim_size_names[SIM_SIZES];

struct sim_times { /* of a job, milliseconds since the start; -1: not yet */
        int64_t submitted, started, ended;
        uint32_t cluster;  /* where it ran last */
        uint64_t bytes_in; /* bytes fetched for its last run, without files that other jobs fetched */
};
struct sim_spread {
        uint64_t count;
        double mean, median, p95, max; /* 0 if count is 0 */
};
struct sim_sample {
        int64_t at_ms;
        uint64_t waiting, moved_bytes;
};
/* Medians of |expected - actual|, see guess.h. */
struct sim_guess_errors {
        uint64_t count, unknown;     /* unknown: the core could not say */
        double wait_s, wait_usual_s; /* by the core; by the mean of the queue's last ten waits */
        double run_s, run_asked_s;   /* by the core; by what the user asked for */
        double end_s, end_usual_s;   /* by the core; by both of these */
        double run_two_s;            /* by the mean of the same user's last two jobs that had ended */
        double by_half, by_most; /* fractions of the jobs that ended by the time given for one half and for
                                    nine tenths */
};
struct sim_measures {
        uint64_t jobs;
        double makespan_s;
        struct sim_spread wait_s, wait_by_size_s[SIM_SIZES], turnaround_s, slowdown;
        double utilisation; /* fraction of all processors over the makespan on which programs ran */
        double fairness;
        uint64_t bytes_in, bytes_out, bytes_far,
                bytes_cached;     /* far: of in and out, over links to other
                                     clusters' stores; cached: needed and there */
        uint64_t decisions, lost; /* lost: attempts whose agent failed */
        double lost_cpu_s;
        double node_hours, cost; /* of agents; of those that come and go while they were there */
        uint64_t nodes_started, nodes_interrupted;
        uint64_t revoked;   /* of lost: attempts that would have gone on, but for their leases */
        double recovery_s;  /* mean time from the loss of a running attempt until the job runs again */
        uint64_t recovered; /* losses that this is the mean of */
        double energy_j;    /* of all processors over the makespan, also of agents that are away */
        uint64_t gangs, gangs_reserved,
                gangs_late;  /* gangs that started; gangs for which places were kept; of these, gangs that
                               started  after the time from which the places were kept */
        uint64_t backfilled; /* other jobs that were given places meanwhile */
        double *gang_waits;  /* owned; seconds from submission until the gang may start */
        size_t gang_wait_cap;
        struct sim_spread gang_wait_s;
        double match_s, wall_s; /* real time: in core_match; in total */
        uint64_t memory_bytes;  /* peak resident memory, less that at the start */
        struct sim_guess_errors guesses;
        struct sim_sample *samples; /* owned; one every sample_every_ms from 0 on, and one at the end */
        size_t sample_count, sample_cap;
        int64_t sample_every_ms;
        struct sim_sample seen; /* the last state passed to sim_measure_sample */
};
void sim_measures_deinit(struct sim_measures *m);
/* Computes the measures that follow from the times of all jobs; cpus is the number of the site's processors.
 */
void sim_measure_jobs(struct sim_measures *m, const struct sim_workload *w, const struct sim_times *times,
                      uint64_t cpus, double used_cpu_s);
/* Records the state from at_ms, which never decreases, until the next call. The state at each sample's time
 * is kept; when there are many samples, every other one is dropped and the interval doubles. */
void sim_measure_sample(struct sim_measures *m, int64_t at_ms, uint64_t waiting);
void sim_spread_of(double *values, size_t count, struct sim_spread *ret); /* sorts the values */
