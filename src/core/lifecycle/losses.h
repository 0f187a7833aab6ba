/* losses: decides the consequences of a lost attempt for the job and for the node (model/losses.h has the
 * counters).
 *
 * A single loss only costs the job that attempt. A job that takes nodes down, or a node that loses its jobs,
 * is stopped by growing pauses, a maximum number of losses, running the job alone on a node, and draining the
 * node.
 */
#pragma once
#include "base/str.h"
#include "core/lifecycle/attempts.h"
#include "core/model/names.h"
#include <stdint.h>

/* The consequences of a loss, for its event. */
struct loss_decision {
        uint32_t next; /* enum job_state */
        int32_t code, subcode;
        char reason[512];
};
/* Decides what the loss of j's present attempt leads to. */
void losses_decide(struct core *c, const struct job *j, struct str why, enum loss_by by,
                   struct loss_decision *d);
/* Lets jobs and nodes take part again whose pause is over. Returns the milliseconds to the next end of a
 * pause; INT64_MAX: there is none. */
int64_t losses_tick(struct core *c);
