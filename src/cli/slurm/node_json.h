/* node_json: nodes and partitions as JSON, with the keys of Slurm's v0.0.38.
 */
#pragma once
#include "cli/slurm/nodes.h"

/* Appends a node as an object. */
void node_json(const struct node *n, struct buf *out);
/* Appends the partition of that name as an object. */
void partition_json(const struct nodes *all, const char *name, struct buf *out);
