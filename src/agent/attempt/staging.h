/* staging: prepares an attempt before it runs, one thing after the other. */
#pragma once
#include "agent/model/attempt.h"

void staging_begin(struct attempt *at); /* ATTEMPT_STAGING */
/* Continues the preparation after a wait. The attempt may be freed by the call. */
void staging_go_on(struct attempt *at);
/* Called when the inputs or credentials are in the sandbox, or (hold_code not 0) cannot be had. */
void staging_ended(struct attempt *at, int hold_code, const char *reason);
