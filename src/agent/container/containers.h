/* containers: the container engines of this machine and their images.
 *
 * An engine is asked once whether it works, which images it has, and which containers of an earlier agent
 * are left: containers of no attempt are removed. The server is told of its images like of contents of the
 * cache, so that a job goes where its image is. A missing image is pulled before the job starts, once for
 * all attempts that wait for it. If that fails for a temporary reason they are given back to the server, and
 * the pull is tried again after a pause; otherwise they are held. Images are never removed: that is the
 * administrator's task. Apptainer has no suitable image store; its images are files in the agent's folder
 * (container_keeps).
 *
 * A queue without `container` in its file uses the first engine that is found. Queues with the same settings
 * share an engine. A batch queue has an engine only if its file names one; the engine is not asked anything
 * then, because it is on the nodes.
 */
#pragma once
#include "agent/model/attempt.h"
#include "run/container/container.h"

struct engine;

void containers_close(struct agent *a); /* called when no attempt is left */
/* Sets q->engine, NULL if the queue has none. Returns 0, or -EINVAL with err. */
int containers_queue(struct queue *q, struct err *err);
/* Called when all attempts are known: removes containers of others. */
void containers_sweep(struct agent *a);

/* Returns the engine's host facts; NULL while it is not known to work. */
const struct container_host *engine_host(const struct engine *e);
/* Returns whether the engine's first check since the start of the agent is still under way. */
bool engine_is_asked(const struct engine *e);
bool engine_lists(
        const struct engine *e); /* returns whether its images are known, and pulled before they are needed */
const struct container_settings *engine_settings(const struct engine *e);
/* Append attributes of the queue's ad, and a condition on jobs (which may be empty). */
void engine_attributes(const struct engine *e, struct buf *out);
void engine_requirement(const struct engine *e, struct buf *out);

/* Makes the images of the attempt's steps available. Returns true if all are present. Returns false if some
 * are being pulled: news->stage is called when they are present, or the attempt is ended with the error. */
bool containers_want(struct attempt *at);
/* Ends the attempt's waiting for images; a pull for no other attempt is stopped. */
void containers_forget(struct attempt *at);
/* Appends a phrase that names what is being pulled for the attempt; *ret_since_ms: start (Unix). Returns
 * false if nothing is. */
bool containers_pulling(const struct attempt *at, struct buf *out, int64_t *ret_since_ms);
/* Records that an image cannot be pulled, for a temporary reason: the engine's queues take no jobs with it
 * during a pause; only none of this owner's if one of the owner's jobs reported it (owner NULL: the engine
 * did). `why` is for people. */
void containers_image_away(struct engine *e, const char *image, const char *owner, const char *why);
/* Called when an image that was present is missing: lists the engine's images again. */
void containers_image_gone(struct engine *e);
/* Ends and removes a container; `done`, if not NULL, is called after success or failure. */
void containers_remove(struct engine *e, const struct attempt *at, const char *name, void (*done)(void *arg),
                       void *arg);
void containers_remove_forget(struct engine *e, const void *arg); /* `done` will not be called */
/* Appends the environment of an attempt's engine. */
void containers_environment(const struct attempt *at, struct args *out);
/* Runs the engine with these arguments and passes its output to `done`; see command.h. With `users` it runs
 * as the user of the attempt; at NULL: as the agent's own user. */
struct command;
struct command *containers_ask(struct engine *e, const struct attempt *at, const struct args *words,
                               void (*done)(void *arg, int status, struct str out, struct str errors),
                               void *arg);
