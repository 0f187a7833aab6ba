/* checkpointing: the checkpoint settings of a template, and the files from which an attempt resumes.
 * attempt/checkpoint.h makes and saves checkpoints. */
#pragma once
#include "agent/model/attempt.h"

/* Returns whether the step ended in the way that its description names for a checkpoint. */
bool checkpoint_ended_so(const struct attempt *at, const struct step_result *r);
/* Returns whether the step ended so and its job came from another server, which keeps such a checkpoint
 * itself. The attempt ends with it at this agent. */
bool checkpoint_goes_home(const struct attempt *at, const struct step_result *r);
/* Fills in the settings for a runner that delegates the job. `files` keeps the list of names that *ret
 * borrows. Returns 0, or -EINVAL with err. */
int checkpoint_hop(const struct attempt *at, struct buf *files, struct run_checkpoints *ret, struct err *err);
/* Sets the files that the attempt resumes from: copies those that have a name and a checksum. */
void checkpoint_restore(struct attempt *at, const struct spool_ref *files, size_t count);
bool checkpoint_restores(
        const struct attempt *at,
        const char *name); /* returns whether the name in the sandbox is one of these files */
void checkpoint_free(struct attempt *at);
