/* reference: well-known schedulers on the same jobs and places, as a baseline for the core.
 *
 * - fcfs: jobs start in the order of their submission; the first one that does not fit blocks the others.
 * - easy: fcfs with backfilling: the first waiting job has a reservation, and jobs behind it may start if
 * they do not delay it (Lifka, "The ANL/IBM SP scheduling system", 1995).
 * - conservative: each job has a reservation, made at its submission; all are made anew, in order, when a job
 * ends before its time (Mu'alem and Feitelson, "Utilization, predictability, workloads, and user runtime
 * estimates", 2001).
 * - easy-fairshare: easy, in the order of the processor time that the jobs' users have had, which decays with
 * a half-life of a week.
 *
 * A job is expected to run as long as its user asked for, or as long as it does if that is longer. A job
 * without a requested time is expected to run exactly as long as it will: no real scheduler knows that, so
 * such a figure is a bound.
 *
 * These schedulers know processors and memory, and choose the fastest place that has room, among equals the
 * one with least room. Workloads and sites with files, graphs, gangs, failures or delays are refused.
 */
#pragma once
#include "base/err.h"
#include "sim/measure.h"
#include "sim/run.h"
#include "sim/site.h"

enum sim_reference { SIM_FCFS, SIM_EASY, SIM_CONSERVATIVE, SIM_EASY_FAIRSHARE };

struct sim_reference_options {
        const struct sim_site *site; /* finished */
        const struct sim_workload *workload;
        enum sim_reference scheduler;
        struct sim_times *times;                                   /* output, one for each job; may be NULL */
        void (*progress)(void *arg, const struct sim_progress *p); /* as in sim_run_options */
        void *arg;
};
/* Runs the scheduler. 0; -EINVAL with err: the workload or the site has something that it does not support,
 * or a job fits nowhere. */
int sim_reference_run(const struct sim_reference_options *o, struct sim_measures *ret, struct err *err);
