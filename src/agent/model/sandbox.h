/* sandbox: each attempt's own folder, STATE/jobs/REQUEST.MEMBER.FENCE, made when it is first needed. With
 * `users` the shepherd makes it for the job's user. */
#pragma once
#include "agent/model/attempt.h"

#define SANDBOX_OF_ENGINE "engine."   /* with "batch.": users' folders beside the sandboxes */
#define SANDBOX_EMPTY     ".empty.%u" /* empty sandboxes kept for reuse, numbered from 0 */

void sandbox_name(const struct attempt *at, char room[64]);
int sandbox_make(struct attempt *at); /* 0 or -errno */
/* Opens the folder, for the at-calls alone (O_PATH). Returns a descriptor, or -1. */
int sandbox_open(const struct attempt *at);
/* Opens a file of the sandbox for reading. The sandbox belongs to the job, which may have put anything there
 * under any name: only a regular file of the job's user is opened, no link is followed, and the call never
 * blocks. Returns a descriptor, or -1. */
int sandbox_open_file(const struct attempt *at, const char *name);
/* Returns whether the attempt's sandbox may be reused by a later attempt. Making and removing a folder and
 * two stream files takes longer than all else that the agent does for a short job, so an attempt that leaves
 * only such empty files passes its folder to the next attempt of the same owner. Never with `users`, and
 * only if all processes of the attempt were in a control group, so that none is left that could have the
 * folder open. */
bool sandbox_may_recycle(const struct attempt *at);
/* Takes the sandbox from the attempt for reuse and returns true, or removes stream files that were left for
 * that and returns false. */
bool sandbox_recycle(struct attempt *at);
/* With `users`: returns whether the agent itself may write in the sandbox. */
bool sandbox_is_shared(const struct attempt *at);
