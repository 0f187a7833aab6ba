/* delivery: outputs of an attempt, or files of its checkpoint, to where they belong, one way after the other.
 *
 *   STAGING -> SENDING -> UPLOADING -> over
 *       \---------------^    ^ each may be the last, and may fail
 *
 * STAGING: they are brought out of the sandbox, or looked at where they have to be sent. SENDING: to URLs.
 * UPLOADING: into the server's spool.
 */
#pragma once
#include "agent/model/attempt.h"

void delivery_begin(struct attempt *at); /* of its outputs; the attempt may be gone then */
/* Delivers the files of the attempt's checkpoint. `carried`: the list of them that the runner gave
 * (checkpointed of run/runner.h), borrowed; NULL: the job made them here. */
void delivery_checkpoint(struct attempt *at, const char *carried);
void delivery_forget(struct attempt *at); /* what is known of one that is stopped */
/* news->outputs, news->delivered */
void delivery_outputs(struct attempt *at, struct outputs *outputs);
void delivery_part_over(struct attempt *at, int hold_code, const char *reason);
