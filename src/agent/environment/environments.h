/* environments: folders of programs that jobs run with, made on this machine from a file and kept for later
 * jobs.
 *
 * A job names a file (Template.python_env; conda_env, if it is *.yml). The file's checksum and the Python
 * that makes the environment identify it. It is made once, by a child of the shepherd, for all attempts that
 * wait for it, and is kept until room is needed: at most `environments` bytes, the least recently used is
 * removed first, never one that a job uses. With `users` each user makes its own, as itself, because making
 * one runs code that the file's author chose.
 *
 * Environments cannot be moved, so one is made where it stays: jobs/env.NUMBER/env, with a number that is
 * never used again. STATE/environments names those that are complete and on the disk; all others are removed
 * when the agent starts.
 *
 * The server is told of environments like of contents of the cache, by the name in base/job/environment.h.
 */
#pragma once
#include "agent/model/environment_asked.h"

struct environment;

void environments_open(struct agent *a); /* called after the queues are opened, before the journal is read */
/* Called after the runners are closed, when no attempt is left. */
void environments_close(struct agent *a);
void environments_back(
        struct agent *a); /* called when the process runner is back: continues what waits for it */
/* Appends attributes of the queue's ad: which environments can be made here. */
void environments_attributes(const struct queue *q, struct buf *out);

/* Reserves the attempt's environment (at->environment.used). Returns 0 if it exists; 1 if it is being made
 * from the file, which is in the cache: news->stage is called then, or news->staged with the error; -EINVAL
 * with err. */
int environments_want(struct attempt *at, struct err *err);
/* After a restart: reserves the environment that the attempt runs in. */
void environments_adopt(struct attempt *at);
void environments_release(struct attempt *at); /* ends this attempt's reservation */
/* Ends the attempt's waiting. If no other attempt waits for the environment, its making is stopped with all
 * its processes, and its partial result removed. */
void environments_forget(struct attempt *at);
/* Appends a phrase that names what is being made for the attempt; *ret_since_ms: start (Unix). Returns false
 * if nothing is. */
bool environments_making(const struct attempt *at, struct buf *out, int64_t *ret_since_ms);
/* Appends the environment's folder; *ret_kind is its kind. Returns false if the attempt has none. */
bool environments_path(const struct attempt *at, enum environment_kind *ret_kind, struct buf *out);

/* Returns whether this folder of jobs/ belongs to an environment. Removes the folder if its environment is
 * unknown. */
bool environments_folder(struct agent *a, const char *name);
