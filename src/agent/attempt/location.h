/* location: tells the server where attempts are. */
#pragma once
#include "agent/model/attempt.h"

void attempt_location_tell(struct agent *a); /* every second */
/* Before its end is told: the path at other servers of one that failed there. */
void attempt_location_tell_end(const struct attempt *at);
