/* mounts: the parts of this machine's file system that a step's container can see: the sandbox, the folder
 * and the program that the job names, and parts of the sandbox under other paths.
 *
 * No mount is, or contains, a folder of Drover's own (hidden.h): hidden folders below a mounted one are
 * covered with empty ones, and each folder on the path to them is also mounted onto itself, so that a job
 * cannot rename it (rename(2): EBUSY) to uncover a hidden folder.
 *
 * All mounts are opened here and checked by their descriptors. An engine opens the names again; in
 * containers of podman and docker drover-init (init.c) then compares the mounted files with those that were
 * checked here.
 */
#pragma once
#include "agent/model/attempt.h"
#include "run/container/container.h"

struct mounts { /* storage for what a container_job borrows */
        struct container_mount *more;
        size_t count;
        struct args covered;
        struct args seen; /* arguments of the engine that tell drover-init what was looked at */
};
void mounts_deinit(struct mounts *m);
/* Looks at what the job's container shows and sets job->mounts and job->covered. job->sandbox, target, cwd
 * and mount_program are set. Where the queue's jobs run on other machines a folder or program that is
 * missing here is no error. Returns 0; -EINVAL, or -errno of what cannot be opened, with err. */
int mounts_find(const struct attempt *at, struct container_job *job, struct mounts *m, struct err *err);
