/* sandbox: each attempt's own folder, STATE/jobs/REQUEST.MEMBER.FENCE, made when it is first needed. With
 * `users` the shepherd makes it for the job's user. */
#pragma once
#include "agent/model/attempt.h"

#define SANDBOX_OF_ENGINE "engine."   /* and "batch.": beside the sandboxes, folders of users */
#define SANDBOX_EMPTY     ".empty.%u" /* those that wait for attempts, from 0 on */

void sandbox_name(const struct attempt *at, char room[64]);
int sandbox_make(struct attempt *at); /* 0 or -errno */
/* Making and removing a folder and the files of two streams takes longer than all else that the agent does
 * for a short job. Where nothing is left of an attempt but such empty files, the next one is given the folder
 * as it is, if it is the same owner's. Never with `users`, and only after an attempt whose processes were all
 * in a control group: none of them is left that could have the folder open. May the attempt's be such a one?
 */
bool sandbox_may_recycle(const struct attempt *at);
/* True: it is one, and the attempt has it no more. Else files of streams that were left for that are removed.
 */
bool sandbox_recycle(struct attempt *at);
/* With `users`: the agent itself writes in it, too. */
bool sandbox_is_shared(const struct attempt *at);
