/* job_peer: finds out whether a process on this machine belongs to a job of Drover.
 *
 * A job's process has its user's uid, but may run anybody's program, so it must not act as the user. Such
 * a process is recognised by what it cannot remove: the control group of its job; or a shepherd among its
 * ancestors together with a mark of jobs (fewer rights than the shepherd, or the marker in its
 * environment). What the agent itself does for a user has neither mark. A server that itself runs inside a
 * job takes that job's processes for its users. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

/* Returns whether the process belongs to a job, or has ended before that could be found out. pidfd refers
 * to the process with the number pid, or is negative when it has ended. A process that /proc does not show
 * to the server does not count as a job's. */
bool job_peer_is(pid_t pid, int pidfd);
