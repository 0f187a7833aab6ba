/* login_node: the login node on which a batch queue's commands run over SSH, and the files on it.
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
#include "run/batch/remote.h"

/* Returns 0 and *ret, which is NULL for a queue without `ssh`; or -EINVAL with err. */
int batch_login_node_open(struct batch *b, const struct runner_config *c, struct remote_files **ret,
                          struct err *err);
