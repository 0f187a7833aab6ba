/* movers: the worker processes that copy between URLs and files (drover-mover(8)).
 *
 * A transfer waits until fewer than `transfers` are under way, then goes to an idle mover or a new one. Each
 * mover belongs to one local user: with `users` in the agent's file, transfers for a job are done as the
 * job's user, in a process that the shepherd starts; the agent's own (checksums, probes, copies, files
 * shared by all jobs) are done as the agent. If a mover dies, is silent for too long or sends garbage, its
 * transfer is tried once more by another mover.
 *
 * The answer of a user's mover is not trusted. Its form, the number of packets and its time are bounded
 * here; a caller must not rely on it for anything that concerns other users. A user with many transfers that
 * never end does not delay others: with `users`, an owner without a running transfer may start one at once,
 * beyond `transfers`.
 */
#pragma once
#include "agent/model/agent.h"
#include "base/job/args.h"
#include "move/task.h"

struct move;
/* Called once, from the loop; the move is freed before the call. */
typedef void move_done_fn(void *arg, const struct move_answer *answer);

void movers_open(struct agent *a);
void movers_close(struct agent *a); /* no callback is called afterwards */
/* Starts a transfer. The task is copied, and the descriptor (-1: none) is duplicated. owner, user: the owner
 * and the local user of the job; NULL: a transfer of the agent's own. */
struct move *movers_start(struct agent *a, const struct move_task *task, int fd, const char *owner,
                          const char *user, move_done_fn *done, void *arg);
/* Copies the first `size` bytes of one file to another with the agent's rights, and computes their checksum.
 * Both descriptors are duplicated. */
struct move *movers_copy(struct agent *a, int from, int to, uint64_t size, const char *owner,
                         move_done_fn *done, void *arg);
void movers_cancel(struct move *m); /* done is not called */
/* Returns the number of transfers under way; *ret_waiting: number of transfers that wait. */
size_t movers_count(const struct agent *a, size_t *ret_waiting);
/* Appends the path and options of the mover's program, as the beginning of a command. */
void movers_command(const struct agent *a, struct args *argv);
/* Handles an event of the process runner. Returns false if the task is not a mover. */
bool movers_event(struct agent *a, const struct run_event *e);
