/* losses: what becomes of a job whose attempt was lost, and of the node (model/losses.h counts).
 *
 * One attempt of a job that took down a node costs nothing but that attempt; the pauses, the limit and the
 * place alone are there so that neither a job that takes nodes down nor a node that takes jobs down can go on
 * without end.
 */
#pragma once
#include "base/str.h"
#include "core/lifecycle/attempts.h"
#include "core/model/names.h"
#include <stdint.h>

/* The loss of an attempt, for its event. */
struct loss_decision {
        uint32_t next; /* enum job_state */
        int32_t code, subcode;
        char reason[512];
};
void losses_decide(struct core *c, const struct job *j, struct str why, enum loss_by by,
                   struct loss_decision *d);
/* Jobs and nodes whose pause is over take part again. Milliseconds to the next, INT64_MAX: there is none. */
int64_t losses_tick(struct core *c);
