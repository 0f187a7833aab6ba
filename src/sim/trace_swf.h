/* trace_swf: workloads in the Standard Workload Format.
 *
 * One line a job, 18 numbers parted by white space, -1 for "not known"; lines that begin with ';' are the
 * header ("; MaxProcs: 240"). The format is that of the Parallel Workloads Archive (Chapin et al.,
 * "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", 1999, version 2.2). More fields
 * than 18, which some logs have, are left alone. Jobs that never ran (no run time, no processors) are counted
 * and left out. Times begin at the first job's submission.
 */
#pragma once
#include "sim/workload.h"

struct sim_swf_options {
        uint32_t cluster;   /* home of its jobs */
        uint64_t first_max; /* number of jobs to read; 0: all */
        double hurry;       /* factor by which submissions are sped up; 0: 1 */
};
struct sim_swf_header {
        uint32_t procs, nodes; /* MaxProcs, MaxNodes; 0: not given */
        uint64_t jobs, skipped;
        uint32_t widest;
};
/* Adds the jobs of a trace to the workload. 0; -EINVAL with err "NAME:LINE: ...": the jobs before that line
 * have been added. */
int sim_swf_read(struct sim_workload *w, const char *name, struct str text, const struct sim_swf_options *o,
                 struct sim_swf_header *ret, struct err *err);
