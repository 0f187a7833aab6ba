/* reference: schedulers that everybody knows, on the same jobs and places, to measure the core by.
 *
 *   fcfs             jobs start in the order of their submission; the first one that does not fit stops the
 * others easy             the same, but jobs behind the first one that waits may start if they do not delay
 * it: it has a reservation, the others none (Lifka, "The ANL/IBM SP scheduling system", 1995) conservative
 * each job has a reservation, made as it comes; all are made anew, in order, when a job ends before its time
 * (Mu'alem and Feitelson, "Utilization, predictability, workloads, and user runtime estimates", 2001)
 *   easy-fairshare   easy, in the order of what the jobs' users had of the processors; use fades by half in a
 * week
 *
 * A job is expected to run as long as its user asked for, or longer where it did. One whose user said nothing
 * is expected to run exactly as long as it will: no real scheduler knows that, so such a figure is a bound.
 *
 * They know processors and memory, and choose the fastest place that has room, of these the one with least
 * room. They know nothing of files, graphs, sets, failures and delays: workloads and sites with these are
 * refused.
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
        struct sim_times *times; /* of each job, written; NULL: nobody wants them */
        void (*progress)(void *arg, const struct sim_progress *p); /* as in sim_run_options */
        void *arg;
};
/* 0; -EINVAL with err: it knows nothing of something in the workload or the site, or a job fits nowhere. */
int sim_reference_run(const struct sim_reference_options *o, struct sim_measures *ret, struct err *err);
