/* movers: the worker processes that copy between URLs and files (drover-mover(8)).
 *
 * A transfer waits until fewer than `transfers` are under way, then a mover does it: one that is idle, or a
 * new one. Each is of one local user: with `users` in the agent's file transfers for a job are done by its
 * user, in a process that the shepherd starts; what is the agent's own (checksums, probes, copies, what is
 * the same for all) is done as the agent. A mover that dies, says nothing for a while, or says what makes no
 * sense takes its transfer with it; another one tries it once more.
 *
 * What a user's mover answers is that user's word. It is bounded here in form, number of packets and time;
 * who asked believes nothing that matters to others. Nor does a user with many transfers that never end hold
 * up the next one: with `users` an owner of whom none is under way has his first one at once, beyond
 * `transfers`.
 */
#pragma once
#include "agent/model/agent.h"
#include "base/args.h"
#include "move/task.h"

struct move;
/* Called once, from the loop; the move is gone then. */
typedef void move_done_fn(void *arg, const struct move_answer *answer);

void movers_open(struct agent *a);
void movers_close(struct agent *a); /* callbacks are not called any more */
/* The task is copied and the descriptor (-1: none) doubled. owner: whose it is, user: as whom; NULL for the
 * agent's own. */
struct move *movers_start(struct agent *a, const struct move_task *task, int fd, const char *owner,
                          const char *user, move_done_fn *done, void *arg);
/* Copies the first `size` bytes of one file to another with the agent's rights, and sums them. Both
 * descriptors are doubled. */
struct move *movers_copy(struct agent *a, int from, int to, uint64_t size, const char *owner,
                         move_done_fn *done, void *arg);
void movers_cancel(struct move *m); /* done is not called */
/* The mover's program with its options: the beginning of a command of it. */
void movers_command(const struct agent *a, struct args *argv);
/* True: the task was a mover's. */
bool movers_event(struct agent *a, const struct run_event *e);
