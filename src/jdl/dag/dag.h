/* dag: a DAG file of HTCondor's DAGMan becomes one form: its nodes are rows of the parts, its arrows are
 * edges.
 *
 * Nodes with the same submit description, folder and retries are one part, whose items are their VARS; so a
 * graph of 100,000 nodes is read with a few submit files. A node's jobs have the attribute DAGNodeName. What
 * the language knows and Drover does not carry out is refused by its name, never passed over.
 *
 * Pure: files come through struct form_world.
 * Source: HTCondor manual 25.x, "Automated Workflows", and drover-dag(5) for what is different here.
 */
#pragma once
#include "jdl/condor/condor.h"
#include "jdl/form.h"

#define DAG_NODES_MAX   1000000u
#define DAG_TRIES_MAX   100u    /* retries of a node with scripts, each of which is a job of its own */
#define DAG_INCLUDE_MAX 20      /* files that include each other, or are spliced into each other */
#define DAG_FILES_MAX   100000u /* that are read, each as often as it is included or spliced */
#define DAG_ALONE_MAX   5000u   /* nodes whose description must be read for each of them */

struct dag_options {
        const struct condor_options *condor;
        /* Texts of rescue files, in the order in which they count: their DONE lines. */
        const struct str *rescues;
        const char *const *rescue_names;
        size_t rescue_count;
        const char *program; /* path of `drover`, for jobs of the graph that call it; NULL: there are none */
        uint64_t max_pre, max_post; /* scripts that run at once; 0: any number */
};
struct dag_save {
        char *node, *file;
};
/* Files that the DAG file asks for: somebody who waits for the graph writes them. NULL: none. */
struct dag_files {
        char *dot, *dot_include, *status, *jobstate;
        bool dot_update, dot_keep; /* at each change; under a new name beside those that are there */
        int64_t status_s;          /* at least between two of them */
        struct dag_save *saves;
        uint32_t save_count, save_cap;
};
void dag_files_deinit(struct dag_files *f);
struct dag_summary {
        uint64_t nodes, done, edges;
        struct dag_files files; /* dag_files_deinit, also after an error */
};

/* Parses text, which was read from `file`, and fills *ret, which the caller has initialised (form_init) and
 * deinitialises in any case. 0; or with err, which names file and line: -EINVAL, -E2BIG, or what
 * form_world.read_file returned; -ENOENT: all nodes are done. */
int dag_parse(const struct form_world *w, const char *file, struct str text, const struct dag_options *o,
              struct form *ret, struct dag_summary *ret_summary, struct err *err);
