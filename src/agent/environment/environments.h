/* environments: folders of programs that jobs run with, made here of a file and kept for later jobs.
 *
 * A job names a file (Template.python_env; conda_env, when it is *.yml). What is in the file, by its
 * checksum, and the Python that makes it say which environment is meant. It is made once, by a child of the
 * shepherd, for all attempts that wait for it, and stays until room is needed: `environments` bytes, what was
 * used longest ago goes first, and none that a job uses. With `users` each user makes his
 * own, as himself, since making one runs code that the file's author chose.
 *
 * Environments cannot be moved, so one is made where it stays: jobs/env.NUMBER/env, a number that no other
 * one ever has. That it is whole is said by STATE/environments, which names it once all of it is on the disk;
 * what that file does not name is removed when the agent starts.
 *
 * What is here is told to the server like contents of the cache, by the name in base/environment.h.
 */
#pragma once
#include "agent/model/environment_asked.h"

struct environment;

void environments_open(struct agent *a); /* before the journal is read, after the queues */
/* The runners are closed, and no attempt is left. */
void environments_close(struct agent *a);
void environments_back(struct agent *a); /* the process runner is: what waits for it goes on */
/* For the queue's ad: what can be made here. */
void environments_attributes(const struct queue *q, struct buf *out);

/* The attempt's environment is its own from now on (at->environment.used). 0: it is here. 1: it is being made
 * of the file, which is in the cache; news->stage is called then, or news->staged with what is wrong. -EINVAL
 * with err.
 */
int environments_want(struct attempt *at, struct err *err);
/* After a restart: what the attempt runs in stays. */
void environments_adopt(struct attempt *at);
void environments_release(struct attempt *at); /* it may go now, as far as this attempt is concerned */
/* It does not wait for one any more. What is made for no other attempt is ended, with all that the making has
 * started: it would take the place's time and disk for a job that nobody wants, maybe for an hour. What was
 * made of it goes. */
void environments_forget(struct attempt *at);
/* What is being made for it, in words, appended; *ret_since_ms: since when (Unix). False: nothing. */
bool environments_making(const struct attempt *at, struct buf *out, int64_t *ret_since_ms);
/* Its folder, appended; *ret_kind says what is there. False: it has none. */
bool environments_path(const struct attempt *at, enum environment_kind *ret_kind, struct buf *out);

/* Is this folder of jobs/ one for an environment? If nobody knows it any more, it is removed. */
bool environments_folder(struct agent *a, const char *name);
