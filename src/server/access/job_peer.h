/* job_peer: does a process on this machine belong to a job of Drover?
 *
 * A job's process has its user's uid, and is not its user: it may be anybody's program. It is known by what
 * it cannot shed: the control group of its job; or the shepherd above it, together with a mark that jobs have
 * and what the agent itself does for a user has not (fewer rights than the shepherd's, or the marker in its
 * environment). A server that itself runs inside a job takes that job's processes for its users.
 */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

/* pidfd: of the process that has the number pid, or negative when it has ended. True: it belongs to a job, or
 * has ended before that could be found out. A process that /proc does not show us counts as its user. */
bool job_peer_is(pid_t pid, int pidfd);
