/* sandbox: each attempt's own folder, STATE/jobs/REQUEST.MEMBER.FENCE, made when it is first needed. With
 * `users` the shepherd makes it for the job's user. */
#pragma once
#include "agent/model/attempt.h"

#define SANDBOX_OF_ENGINE "engine." /* and "batch.": beside the sandboxes, folders of users */

void sandbox_name(const struct attempt *at, char room[64]);
int sandbox_make(struct attempt *at); /* 0 or -errno */
/* With `users`: the agent itself writes in it, too. */
bool sandbox_is_shared(const struct attempt *at);
