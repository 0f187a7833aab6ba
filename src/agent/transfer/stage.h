/* stage: moves files of an attempt into its sandbox and out of it, and does other work in sandboxes with the
 * rights of the job's user.
 *
 * Small operations are done at once. Copies are done by worker threads, which see only a struct stage: paths
 * and a flag that cancels the work. With `users` a child process of the job's user does the work. Results
 * are reported through agent->news.
 */
#pragma once
#include "agent/config/users.h"
#include "agent/model/attempt.h"

void stage_workers_open(struct agent *a);
void stage_workers_close(struct agent *a);
void stage_tick(struct agent *a); /* called every second; stages without progress fail */
/* Returns why the queues are closed: a file system blocks worker threads. NULL: none is blocked. */
const char *stage_held(const struct agent *a);
/* Handles an event of the process runner. Returns false if the task does not belong to a stage. */
bool stage_event(struct agent *a, const struct run_event *e);
/* Returns a step number for the run_id of a task of the agent's own; no other task has it. */
uint32_t stage_task_step(struct agent *a);

/* Returns whether the job has input files of its own in its sandbox. */
bool stage_any_inputs(const struct attempt *at);
/* Copies the inputs, which are available locally, into the sandbox; then calls news->staged. */
void stage_in(struct attempt *at);
/* Delivers the outputs; then, perhaps before returning, calls news->delivered. */
void stage_out(struct attempt *at);
/* Sends the files of a checkpoint to the spool, then calls news->delivered. carried: see
 * run_observer.checkpointed; may be NULL. */
void stage_checkpoint(struct attempt *at, const char *carried);
void stage_cancel(struct attempt *at); /* cancels its work; nothing is reported */

/* With `users`: writes its credentials as its user, then calls news->staged when they are written for the
 * first time. */
void stage_credentials(struct attempt *at);
struct userlog_lines;
/* Returns whether the lines can be added at once, without waiting for a file system or for earlier lines of
 * the same owner. */
bool stage_log_is_quick(const struct agent *a, const char *owner, const char *path);
/* Has a worker add the lines to the log, or with `users` a child of this user; then calls userlog_written.
 */
void stage_log(struct agent *a, const struct userlog_lines *m, const struct users_entry *user);
struct file_request;
/* Has a worker do the file operation, or with `users` (else NULL) a child of this user; then calls
 * file_request_done. */
void stage_file_call(struct agent *a, const struct file_request *m, const struct users_entry *user);
/* With `users`: empties and removes a sandbox as the user that owns it. */
void stage_remove(struct agent *a, const char *name, uint64_t request, uint32_t member, uint32_t fence);
