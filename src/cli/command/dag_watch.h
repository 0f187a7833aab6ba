/* dag_watch: the files about a graph that its DAG file asks for, kept up to date while somebody waits for it.
 */
#pragma once
#include "cli/terminal/cli.h"
#include "jdl/dag/dag.h"

/* Waits for request `id` like wait_for_jobs, with the same results; files are written at each change, and a
 * last time at the end. file: of the DAG, for what is said of it in them. A file that cannot be written is
 * named once, and the wait goes on. */
int dag_watch(struct cli *cli, const char *id, const char *file, const struct dag_files *files);
/* Any of them is asked for. */
bool dag_files_any(const struct dag_files *files);
/* Appends the rescue file of nodes that were done when the point first started; NULL: of those that are. */
struct dag_graph;
struct dag_point;
void dag_rescue_write(const struct dag_graph *g, const struct dag_point *before, struct buf *out);
