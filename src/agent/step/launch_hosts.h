/* launch_hosts: the list of a parallel job's nodes that launchers of MPI read, in the form of PBS_NODEFILE.
 *
 * A line is a node's machine, or node-N-MACHINE where several nodes' machines have the same name up to its
 * first dot (Open MPI cuts names there), so that each name is one node's. There are as many lines of it as
 * the job has processors there. The machines' names are other agents' words: what is no host's name in them
 * is replaced.
 */
#pragma once
#include "base/buf.h"

/* Appends the list of `machines`, which are parted by commas, each `count` times. Returns the number of
 * nodes; *ret_shared is whether some are on one machine. */
size_t launch_hosts(struct str machines, unsigned count, struct buf *out, bool *ret_shared);
