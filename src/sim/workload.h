/* workload: the jobs of a simulation, and the files that they read and write.
 *
 * Built by trace_swf.h, trace_workflow.h or generate.h, then only read. Jobs that were submitted together
 * are adjacent: the first has their number in `together`, the others 0; they differ in their files and run
 * times only. All of them have the same `gang`, of which their number is a multiple. A file is at a store of
 * the site (site.h); an output exists from the end of the job that makes it.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define SIM_NO_CLUSTER UINT32_MAX
#define SIM_JOBS_MAX   10000000u
#define SIM_FILES_MAX  20000000u

struct sim_file {
        uint64_t bytes;
        uint32_t cluster; /* at that cluster's store */
};
struct sim_span { /* of workload.refs */
        uint32_t first, count;
};
struct sim_job {
        int64_t submit_ms; /* since the start; a job with parents is submitted when the last of them has ended
                            */
        int64_t run_ms;    /* on a processor of speed 1 */
        uint32_t asked_s;  /* the run time that its user asked for; 0: none */
        uint32_t cpus, memory_mib;
        uint32_t user, program;
        uint32_t home; /* cluster at whose store its user's files are; outputs go there */
        uint32_t together;
        uint32_t gang;  /* number of the jobs submitted together that start at the same time, all or none; 0:
                           each starts   alone */
        uint32_t waits; /* number of its parents */
        struct sim_span inputs, outputs; /* files */
        struct sim_span children;        /* jobs that wait for it */
};
struct sim_workload {
        struct sim_job *jobs;
        size_t job_count, job_cap;
        struct sim_file *files;
        size_t file_count, file_cap;
        uint32_t *refs;
        size_t ref_count, ref_cap;
        uint32_t user_count, program_count;
        uint32_t widest; /* processors of the widest job */
};
void sim_workload_deinit(struct sim_workload *w);

struct sim_job *sim_workload_add_job(struct sim_workload *w); /* zeroed but for 1 processor and `together` */
uint32_t sim_workload_add_file(struct sim_workload *w, uint64_t bytes, uint32_t cluster);
/* Starts a span at the end of refs; sim_span_add goes on with the one begun last. */
struct sim_span sim_span_begin(const struct sim_workload *w);
void sim_span_add(struct sim_workload *w, struct sim_span *span, uint32_t ref);

void sim_workload_finish(struct sim_workload *w); /* counts users, programs and the widest */
