/* sandboxes: removing the folders of attempts that are over. */
#pragma once
#include "agent/model/attempt.h"

void sandbox_remove(struct attempt *at);
void sandbox_remove_left(struct agent *a); /* of those that are done: the journal has their results */
void sandbox_sweep(struct agent *a);       /* removes those that are no attempt's */
