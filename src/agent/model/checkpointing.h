/* checkpointing: what a template says of checkpoints, and the files that an attempt goes on from. Making and
 * saving them is attempt/checkpoint.h. */
#pragma once
#include "agent/model/attempt.h"

/* The step has ended as its description says that one does which has made a checkpoint. */
bool checkpoint_ended_so(const struct attempt *at, const struct step_result *r);
/* It has ended so, and came from another server, which keeps what it makes by itself: to this one that is its
 * end. */
bool checkpoint_goes_home(const struct attempt *at, const struct step_result *r);
/* For a runner that hands it on. `files` is its own. 0, or -EINVAL. */
int checkpoint_hop(const struct attempt *at, struct buf *files, struct run_checkpoints *ret, struct err *err);
/* What it shall find: copies of those that have a name and a checksum. */
void checkpoint_restore(struct attempt *at, const struct spool_ref *files, size_t count);
bool checkpoint_restores(const struct attempt *at, const char *name); /* in the sandbox */
void checkpoint_free(struct attempt *at);
