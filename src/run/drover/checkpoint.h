/* checkpoint: brings checkpoints that the other server keeps here while the job runs there. */
#pragma once
#include "run/drover/tasks.h"

/* Takes the state of an IN task's job. Returns true if a checkpoint is being brought here or is looked for.
 */
bool remote_checkpoint_bring(struct remote_task *t, const json_t *job);
