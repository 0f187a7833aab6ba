/* staging: what comes before an attempt runs, one thing after the other. */
#pragma once
#include "agent/model/attempt.h"

void staging_begin(struct attempt *at); /* ATTEMPT_STAGING */
/* What it waited for is here: goes on with what comes next. The attempt may be gone then. */
void staging_go_on(struct attempt *at);
/* Its inputs or its credentials are in the sandbox; or (hold_code) something of it cannot be had. */
void staging_ended(struct attempt *at, int hold_code, const char *reason);
