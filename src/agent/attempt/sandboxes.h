/* sandboxes: removes the folders of attempts that have ended. */
#pragma once
#include "agent/model/attempt.h"

void sandbox_remove(struct attempt *at);
void sandbox_remove_left(
        struct agent *a); /* removes sandboxes of DONE attempts, whose results are in the journal */
void sandbox_sweep(struct agent *a); /* removes sandboxes that belong to no attempt */
