/* sessions: the files of tasks at a computing element that gives each job a folder of its own, reached by
 * HTTP.
 *
 * A job is submitted without its files, and does not run before they have arrived, so a submission whose
 * answer was lost never runs by itself. When the job's id is on disk, one file is sent: a script that unpacks
 * the sandbox and the scripts of the task behind it, runs them, and packs the sandbox again. Paths of the
 * agent's folder in scripts become paths of the job's folder. That archive is fetched when the system has
 * reported the end. The lease is sent to each job, and signals are, as files; both arrive only while
 * the node shares the folder with the element. A job is removed there when its task is forgotten.
 *
 * The element is trusted only about its own jobs: an archive is unpacked only below the sandbox of the job
 * that it was fetched from, by tar, and never larger than the disk has room.
 */
#pragma once
#include "run/batch/remote.h"

/* Returns 0 and *ret; or -EINVAL with err. */
int batch_sessions_open(struct batch *b, const struct runner_config *c, struct remote_files **ret,
                        struct err *err);
