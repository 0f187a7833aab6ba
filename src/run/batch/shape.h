/* shape: how a task is distributed over the nodes of a batch system.
 *
 * A job's requests are totals; its attributes NodeCount and TasksPerNode give the number of nodes and of
 * processes per node. Without them a task has one process on one node.
 */
#pragma once
#include "run/batch/batch.h"

/* Each member is at least 1, except memory and GPUs, where 0 means that none was asked for. */
struct batch_shape {
        uint64_t nodes;
        uint64_t tasks;     /* processes that the system shall make room for on each node */
        uint64_t task_cpus; /* processors for each process */
        uint64_t node_mib;  /* memory on each node, MiB */
        uint64_t node_gpus;
};

/* Divides the task's resources by its nodes and processes, rounded up. */
struct batch_shape batch_shape_of(const struct run_spec *spec);
