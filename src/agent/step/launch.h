/* launch: the files and variables with which the program of a parallel job's node can start programs on the
 * other nodes: a list of the nodes, in the form of PBS_NODEFILE, in its sandbox (SANDBOX_HOSTS), and the
 * variables that make Open MPI and MPICH use this list, and drover-launch(8) instead of ssh.
 */
#pragma once
#include "agent/model/attempt.h"
#include "base/buf.h"

/* Returns whether the attempt's step has the list: it is a process of this machine, outside of a container,
 * of a parallel job of which all nodes have started together. */
bool launch_wanted(const struct attempt *at);
/* Writes the list. Returns 0, or -errno with err. */
int launch_write(const struct attempt *at, struct err *err);
/* Calls `set` with each variable. sandbox: its path for the program. */
void launch_variables(const struct attempt *at, const char *sandbox,
                      void (*set)(void *arg, const char *name, const char *value), void *arg);
