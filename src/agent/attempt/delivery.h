/* delivery: brings outputs of an attempt, or the files of its checkpoint, to their destinations, one way
 * after the other.
 *
 *   STAGING -> SENDING -> UPLOADING -> over
 *       \---------------^    ^ each may be the last, and may fail
 *
 * STAGING: outputs are moved out of the sandbox, or summed where they have to be sent. SENDING: to URLs.
 * UPLOADING: into the server's spool.
 */
#pragma once
#include "agent/model/attempt.h"

void delivery_begin(struct attempt *at); /* delivers the outputs; the attempt may be freed by the call */
/* Delivers the files of the attempt's checkpoint. carried: list of the files from the runner
 * (run_observer.checkpointed), borrowed; NULL: the checkpoint was made here. */
void delivery_checkpoint(struct attempt *at, const char *carried);
void delivery_forget(struct attempt *at); /* frees a delivery that was stopped */
/* Implementations of news->outputs and news->delivered. */
void delivery_outputs(struct attempt *at, struct outputs *outputs);
void delivery_part_over(struct attempt *at, int hold_code, const char *reason);
