/* remote: the login node on which a batch queue's commands run over SSH, and the files on it.
 *
 * With the setting `ssh` nothing of Drover is installed at the batch system. The queue's folder and the
 * sandboxes of its tasks are copied below the folder of the setting `ssh_folder` on the login node. The files
 * of a submission are copied before it is submitted; in its scripts the path of the agent's folder is
 * replaced by that of the copy. The files by which scripts report begin and end are polled every few seconds.
 * When a task has ended its sandbox is copied back, and only then is the file of its end created locally. All
 * other modules therefore see the same as on a shared file system, only later. Signals and the lease are
 * copied to the login node as files.
 *
 * The scripts' lease ends earlier than the agent's by the time that a renewal may take.
 *
 * The login node is trusted only about its own tasks: names in its answers are looked up among the requested
 * ones, and files are unpacked only below the requested sandboxes.
 */
#pragma once
#include "run/batch/batch.h"

struct batch;
struct remote_files;
struct submission;
struct task;

#define BATCH_REMOTE_LATE_MS 30000 /* how long telling of a lease may take, at most a quarter of it */

/* Returns 0 and *ret, which is NULL for a queue without `ssh`; or -EINVAL with err. */
int batch_remote_open(struct batch *b, const struct runner_config *c, struct remote_files **ret,
                      struct err *err);
/* Cancels transfers in progress and closes the connection. NULL is fine. */
void batch_remote_free(struct remote_files *r);
/* Rewrites the call's command to run at the login node. */
void batch_remote_wrap(const struct remote_files *r, const struct args *env, struct batch_call *call);
/* Looks for files at the login node and starts due transfers. Called on every tick. */
void batch_remote_look(struct batch *b);
/* Returns whether the submission's files are at the login node. If not, they are copied there, and
 * batch_submit_later is called when they have arrived. */
bool batch_remote_has(struct batch *b, struct submission *s);
/* Copies an order file of a sandbox, or the lease file, to the login node. */
void batch_remote_order(struct batch *b, const char *path);
void batch_remote_lease(struct batch *b, struct str text, int64_t timeout_ms);
/* Removes what the login node has of a task, or of a submission, that is forgotten. */
void batch_remote_forget_task(struct batch *b, const struct task *t);
void batch_remote_forget_submission(struct batch *b, const struct submission *s);
/* Returns whether the task's end may still be found at the login node: its files have not been brought here
 * since it went missing. Asks for them when a look has begun since then. */
bool batch_remote_may_tell(const struct batch *b, struct task *t);
