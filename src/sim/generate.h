/* generate: random workloads from a seed: jobs for measurements, and files for traces that have none.
 *
 * Sizes and run times are lognormal, as measured ones nearly are; files are read by popularity (the k-th most
 * popular about 1/k as often as the first).
 */
#pragma once
#include "sim/random.h"
#include "sim/workload.h"

struct sim_generate_options {
        uint64_t jobs;
        uint32_t classes; /* kinds of jobs: each a request of its own, with its own size and program */
        uint32_t users;   /* users among whom the classes are divided; 0: one for ten classes, at least one */
        uint32_t clusters;    /* files are spread over their stores */
        int64_t run_ms;       /* median */
        int64_t every_ms;     /* mean time between submissions of classes; 0: all at the start */
        uint64_t input_bytes; /* median of a file; 0: no files */
        uint32_t files;       /* files of each class, of which a job reads one; 0: a tenth of its jobs */
        uint32_t cpus_max;    /* jobs take a power of two up to it; 0: 1 */
        uint32_t gangs; /* percent of the classes whose jobs start in gangs of gang_size. If not 0, all users
                          ask for a sufficient run time, and the number of jobs is rounded to whole gangs */
        uint32_t gang_size;
};
void sim_generate(struct sim_workload *w, const struct sim_generate_options *o, struct sim_random *random);

/* Gives each job of the workload that has no files a data set of its user's, and a result of a tenth of its
 * size. A user has `sets` data sets at his home cluster's store; two jobs in three read the set that the
 * previous one read. */
void sim_generate_files(struct sim_workload *w, uint64_t median_bytes, uint32_t sets,
                        struct sim_random *random);
