/* study: the task of `drover sim`: a workload, a site, and the policies to compare on them. */
#pragma once
#include "cli/command/commands.h"
#include "cli/terminal/cli.h"
#include "sim/reference.h"
#include "sim/run.h"

#define STUDY_POLICIES 11u

/* A policy to compare: the core with a placement, or a reference scheduler. */
struct study_policy {
        const char *name;
        bool is_reference;
        enum core_placement placement;
        enum sim_reference reference;
};
struct study_result {
        const char *policy;
        struct sim_measures m;
        struct sim_times *times; /* times of each job, for study_write_jobs; NULL: not recorded */
};
struct study {
        struct sim_workload workload;
        struct sim_site site;
        const struct study_policy *policies[STUDY_POLICIES];
        size_t policy_count;
        uint64_t seed;
        uint32_t repeat; /* added to the seed; errors of a trace are printed with the first repeat only */
        int64_t lease_ms, better_wait_ms, reserve_after_ms;
        double reserve_idle;
        bool guesses;
        struct study_result results[STUDY_POLICIES];
        size_t result_count;
        struct buf title; /* description of the study, for people */
};
/* study_read.c: reads the study from the command line. Returns an exit code, after printing errors. */
int study_read(struct study *s, const struct options *o);
void study_deinit(struct study *s);

int cmd_sim_run(struct cli *cli, const struct options *o); /* sim.c; returns an exit code */

/* study_report.c */
void study_print_table(const struct cli *cli, const struct study *s);
void study_print_json(const struct study *s);
/* Checks before a long run that the file can be written. Returns an exit code. */
int study_file_check(const char *file);
int study_write_jobs(const struct study *s,
                     const char *file); /* writes CSV, a line for each job and policy; returns an exit code */
int study_plot(const struct study *s, const char *file); /* returns an exit code */

/* study_report.c, for study_gantt.c: chooses minutes, hours or days, by the longest run. */
double study_time_unit_ms(const struct study *s, const char **ret_label);
/* study_gantt.c: writes an SVG of the processors of each cluster that each job had over time. Needs the
 * times of the jobs. Returns an exit code. */
int study_gantt(const struct study *s, const char *file);

/* study_repeats.c: the same study with several seeds. */
struct study_repeats;
struct study_repeats *study_repeats_new(void);
void study_repeats_free(struct study_repeats *r);                       /* accepts NULL */
void study_repeats_add(struct study_repeats *r, const struct study *s); /* adds a study that has been run */
/* Prints means over the seeds, with 95 % confidence intervals. */
void study_repeats_print_table(const struct cli *cli, const struct study_repeats *r);
void study_repeats_print_json(const struct study_repeats *r);
