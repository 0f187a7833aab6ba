/* dag_watch: keeps the files about a graph that its DAG file asks for up to date while the graph is waited
 * for. */
#pragma once
#include "base/buf.h"
#include "cli/terminal/cli.h"
#include "jdl/dag/dag.h"

/* Waits for request `id` like wait_for_jobs, with the same results. The files are written at each change,
 * and once more at the end. file: name of the DAG file, which they mention. If a file cannot be written,
 * that is printed once and the wait continues. */
int dag_watch(struct cli *cli, const char *id, const char *file, const struct dag_files *files);
/* Returns whether any of the files is asked for. */
bool dag_files_any(const struct dag_files *files);
/* Appends the rescue file of the nodes that were done when the point first started; NULL: of those that are
 * done now. */
struct dag_graph;
struct dag_point;
void dag_rescue_write(const struct dag_graph *g, const struct dag_point *before, struct buf *out);
/* Writes the next rescue file of a request that has failed, beside its DAG file, and prints its name; if it
 * cannot be written, that is printed. names: the nodes of the file, one on each line; those that the request
 * does not have were done before it. */
void dag_rescue_save(struct cli *cli, const char *id, const char *file, struct str names);
