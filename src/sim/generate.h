/* generate: workloads from a seed: jobs for measuring, and files for traces that have none.
 *
 * Sizes and run times are lognormal, as measured ones nearly are; files are read by popularity (the k-th most
 * popular about 1/k as often as the first).
 */
#pragma once
#include "sim/random.h"
#include "sim/workload.h"

struct sim_generate_options {
        uint64_t jobs;
        uint32_t classes;     /* kinds of jobs: each a request of its own, with its own size and program */
        uint32_t users;       /* that the classes are dealt to; 0: one for ten classes, at least one */
        uint32_t clusters;    /* files are spread over their stores */
        int64_t run_ms;       /* median */
        int64_t every_ms;     /* mean time between submissions of classes; 0: all at the start */
        uint64_t input_bytes; /* median of a file; 0: no files */
        uint32_t files;       /* that each class reads from, one a job; 0: a tenth of its jobs */
        uint32_t cpus_max;    /* jobs take a power of two up to it; 0: 1 */
        uint32_t sets; /* percent of the classes whose jobs start in sets of set_size. Then all users ask for
                          a run time, which is enough; and the number of jobs is rounded to whole sets */
        uint32_t set_size;
};
void sim_generate(struct sim_workload *w, const struct sim_generate_options *o, struct sim_random *random);

/* Gives each job of the workload that has no files a data set of its user's, and a result of a tenth of its
 * size. A user has `sets` sets at his home cluster's store; two jobs in three go on with the set of the one
 * before. */
void sim_generate_files(struct sim_workload *w, uint64_t median_bytes, uint32_t sets,
                        struct sim_random *random);
