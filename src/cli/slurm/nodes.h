/* nodes: agents and their queues as Slurm's nodes and partitions. Queues that only copy files are left out.
 */
#pragma once
#include "cli/terminal/cli.h"

#define NODES_MAX      10000
#define PARTITIONS_MAX 64 /* maximum number of partitions of a node */

enum node_state {
        NODE_ALLOCATED,
        NODE_MIXED,
        NODE_IDLE,
        NODE_DRAINING,
        NODE_DRAINED,
        NODE_DOWN,
        NODE_STATES
};
struct node {
        char *name, *host, *reason, *features, *program, *arch; /* may be NULL, except the first two */
        char *partitions[PARTITIONS_MAX];
        size_t partition_count;
        enum node_state state;
        int64_t cpus, free_cpus, memory_mib, free_memory_mib, disk_mib, gpus, running;
        double load;
};
struct nodes {
        struct node *items;
        size_t count, cap;
        char **partitions; /* all of them, each once */
        size_t partition_count, partition_cap;
};
#define NODES_CLEANUP __attribute__((cleanup(nodes_deinit)))
void nodes_deinit(struct nodes *n);
/* Reads the nodes from the server. Returns 0, or an exit code after an error was printed. */
int nodes_read(struct cli *cli, struct nodes *ret);

bool node_has(const struct node *n, const char *partition);
const char *node_state_name(enum node_state state);  /* "mixed" */
const char *node_state_short(enum node_state state); /* "mix" */
/* Returns whether the state is in a list of names, long or short. "drain" stands for both kinds of drained
 * states. */
bool node_state_in(enum node_state state, const char *list);
