/* stage: the files of an attempt into its sandbox, and out of it; and what else is done in sandboxes with the
 * rights of the job's user.
 *
 * Small things are done at once. Copies are done by threads, the workers, which see nothing but a struct
 * stage each: paths, and a word that it is not wanted any more. With `users` a child of the job's user does
 * the work. Who waits for it is told by agent->news.
 */
#pragma once
#include "agent/config/users.h"
#include "agent/model/attempt.h"

void stage_workers_open(struct agent *a);
void stage_workers_close(struct agent *a);
void stage_tick(struct agent *a); /* every second: what makes no progress fails */
/* Why the queues are closed: a file system holds workers. NULL: none is held. */
const char *stage_held(const struct agent *a);
/* True: the task was a stage's, not a job's. */
bool stage_event(struct agent *a, const struct run_event *e);
/* A run_id's step for a task of the agent's own, that no other task has. */
uint32_t stage_task_step(struct agent *a);

/* Does a job of this template have files of its own in its sandbox? */
bool stage_any_inputs(const struct attempt *at);
/* Copies the inputs, which are here, into the sandbox; news->staged tells the end. */
void stage_in(struct attempt *at);
/* Brings outputs to where they belong; news->delivered tells the end, perhaps at once. */
void stage_out(struct attempt *at);
/* The files of a checkpoint into the spool, and then news->delivered. `carried`: see
 * run_observer.checkpointed; or NULL. */
void stage_checkpoint(struct attempt *at, const char *carried);
void stage_cancel(struct attempt *at); /* what is under way for it ends, and nobody is told */

/* With `users`: writes its credentials as its user. The first time news->staged is called then. */
void stage_credentials(struct attempt *at);
struct userlog_lines;
/* May the lines be added at once, without waiting for a file system or for earlier lines of the owner's? */
bool stage_log_is_quick(const struct agent *a, const char *owner, const char *path);
/* Has a worker add the lines to the log, or, with `users`, a child as this user; then calls userlog_written.
 */
void stage_log(struct agent *a, const struct userlog_lines *m, const struct users_entry *user);
/* With `users`: empties and removes a sandbox, as the user whose it is. */
void stage_remove(struct agent *a, const char *name, uint64_t request, uint32_t member, uint32_t fence);
