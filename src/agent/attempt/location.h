/* location: tells the server where attempts are. */
#pragma once
#include "agent/model/attempt.h"

void attempt_location_tell(struct agent *a); /* called every second */
/* Called before the result is sent: tells the path at other servers of an attempt that failed there. */
void attempt_location_tell_end(const struct attempt *at);
