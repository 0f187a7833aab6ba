/* mounts: what a step's container shows of this machine: the sandbox, the folder and the program that the job
 * names, and parts of the sandbox under names of their own.
 *
 * Nothing of it is a folder of Drover's own (hidden.h), or shows one: hidden folders beneath a mounted one
 * are covered with empty ones, and the folders on the way to them are mounted once more, each onto itself, so
 * that no job can rename them (rename(2): EBUSY) and bring a hidden folder to where it is not covered.
 *
 * Everything is opened here and looked at by its descriptor. An engine opens the names once more; of podman's
 * containers drover-init (init.c) then compares what was mounted with what was looked at here.
 */
#pragma once
#include "agent/model/attempt.h"
#include "run/container/container.h"

#define MOUNT_VARIABLE "DROVER_MOUNT_"

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
