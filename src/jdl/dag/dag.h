/* dag: translates a DAG file of HTCondor's DAGMan to one form: its nodes are rows of the parts, its arrows
 * are edges.
 *
 * Nodes with the same submit description, folder and retries are one part, whose items are their VARS; so a
 * graph of 100,000 nodes is read with a few submit files. A node's jobs have the attribute DAGNodeName.
 * Statements that Drover does not support are refused by name.
 *
 * Pure: files come through struct form_world.
 * Source: HTCondor manual 25.x, "Automated Workflows"; drover-dag(5) lists the differences.
 */
#pragma once
#include "jdl/condor/condor.h"
#include "jdl/form/form.h"

#define DAG_NODES_MAX   1000000u
#define DAG_TRIES_MAX   100u    /* maximum retries of a node with scripts; each retry is a job of its own */
#define DAG_INCLUDE_MAX 20      /* maximum depth of includes and splices */
#define DAG_FILES_MAX   100000u /* maximum number of files read, counted at each include or splice */
#define DAG_RESCUE_MAX  999     /* highest number of a rescue file, as in DAGMan */
#define DAG_RESCUE_NAME "%s.rescue%03d" /* the DAG file, and the number */
#define DAG_ALONE_MAX   5000u /* maximum number of nodes whose description must be read separately */

struct dag_options {
        const struct condor_options *condor;
        /* Texts of rescue files, in the order in which their DONE lines apply. */
        const struct str *rescues;
        const char *const *rescue_names;
        size_t rescue_count;
        uint64_t max_pre, max_post; /* maximum number of scripts running at once; 0: any number */
        bool names;                 /* the summary has the nodes' names */
};
struct dag_save {
        char *node, *file;
};
/* Files about the graph that the DAG file asks for, written by the command that waits for it. NULL: none. */
struct dag_files {
        char *dot, *dot_include, *status, *jobstate;
        /* dot_update: rewritten at each change; dot_keep: under a new name, keeping older files */
        bool dot_update, dot_keep;
        int64_t status_s; /* minimum time between two updates */
        struct dag_save *saves;
        uint32_t save_count, save_cap;
};
void dag_files_deinit(struct dag_files *f);
struct dag_summary {
        uint64_t nodes, done, edges;
        struct buf names; /* of nodes that have jobs, also of those that are done, each with a line's end */
        struct dag_files files; /* as `names` to be released (dag_files_deinit), also after an error */
};

/* Parses text, which was read from `file`, and fills *ret, which the caller has initialised (form_init) and
 * deinitialises in any case. Returns 0; or with err, which names file and line: -EINVAL, -E2BIG, or the
 * error of form_world.read_file; -ENOENT: all nodes are done. */
int dag_parse(const struct form_world *w, const char *file, struct str text, const struct dag_options *o,
              struct form *ret, struct dag_summary *ret_summary, struct err *err);
