/* study: what `drover sim` was asked for: a workload, a site, and the policies to compare on them. */
#pragma once
#include "cli/command/commands.h"
#include "cli/terminal/cli.h"
#include "sim/reference.h"
#include "sim/run.h"

#define STUDY_POLICIES 8u

/* A way to decide: the core with a placement, or a reference scheduler. */
struct study_policy {
        const char *name;
        bool is_reference;
        enum core_placement placement;
        enum sim_reference reference;
};
struct study_result {
        const char *policy;
        struct sim_measures m;
        struct sim_times *times; /* of each job, for study_write_jobs; NULL: nobody wants them */
};
struct study {
        struct sim_workload workload;
        struct sim_site site;
        const struct study_policy *policies[STUDY_POLICIES];
        size_t policy_count;
        uint64_t seed;
        int64_t lease_ms, better_wait_ms, reserve_after_ms;
        double reserve_idle;
        bool guesses;
        struct study_result results[STUDY_POLICIES];
        size_t result_count;
        struct buf title; /* what it is a study of, for people */
};
/* study_read.c: from the words of the call. An exit code; what is wrong was told. */
int study_read(struct study *s, const struct options *o);
void study_deinit(struct study *s);

int cmd_sim_run(struct cli *cli, const struct options *o); /* sim.c; an exit code */

/* study_report.c */
void study_print_table(const struct cli *cli, const struct study *s);
void study_print_json(const struct study *s);
/* Before a long run: could this file be written? An exit code. */
int study_file_check(const char *file);
int study_write_jobs(const struct study *s,
                     const char *file); /* CSV, a line for each job and policy; an exit code */
int study_plot(const struct study *s, const char *file); /* an exit code */
