/* containers: the container engines of this machine, and the images they keep.
 *
 * An engine is asked once whether it works, which images it has, and which containers of an earlier life are
 * left: those that are no attempt's are removed. What it has is told to the server like the contents of the
 * cache, so that a job goes where its image is. An image that a job needs and that is not here is pulled
 * before the job starts, once for all that wait for it. When that fails for a reason that passes they are
 * given back, and it is tried again after a pause; else they are held. Images are never removed: that is the
 * admin's. Apptainer has no store of its own that would do; its images are files in the agent's folder
 * (container_keeps).
 *
 * A queue without `container` in its file has the first engine that is found. Queues with the same settings
 * share an engine. A batch queue has one only where its file names it; nothing is asked of it then, because
 * it is on the nodes.
 */
#pragma once
#include "agent/model/attempt.h"
#include "run/container/container.h"

struct engine;

void containers_close(struct agent *a); /* no attempt is left */
/* Gives the queue its engine: q->engine, or NULL. 0, or -EINVAL with err. */
int containers_queue(struct queue *q, struct err *err);
/* All attempts are known: what is left of others goes. */
void containers_sweep(struct agent *a);

/* NULL while it is not known to work. */
const struct container_host *engine_host(const struct engine *e);
bool engine_lists(const struct engine *e); /* are its images known, and fetched before they are needed? */
const struct container_settings *engine_settings(const struct engine *e);
/* For the queue's ad: its attributes, and a condition on jobs (maybe none). */
void engine_attributes(const struct engine *e, struct buf *out);
void engine_requirement(const struct engine *e, struct buf *out);

/* Sees to the images of the attempt's steps. True: all are there. False: news->stage is called when they are,
 * or the attempt has ended or does with what is wrong. */
bool containers_want(struct attempt *at);
/* It does not wait for an image any more; what is fetched for no other attempt is ended. */
void containers_forget(struct attempt *at);
/* What is being fetched for it, in words, appended; *ret_since_ms: since when (Unix). False: nothing. */
bool containers_pulling(const struct attempt *at, struct buf *out, int64_t *ret_since_ms);
/* It could not be fetched, for a reason that passes: until a pause is over the queues of the engine take no
 * jobs with it; none of this owner's, if it is one of his jobs that says it (NULL: the engine did). `why` is
 * for people. */
void containers_image_away(struct engine *e, const char *image, const char *owner, const char *why);
/* It was here, and is not: what there is, is asked again. */
void containers_image_gone(struct engine *e);
/* Ends and removes a container; `done`, if not NULL, is called when that was done or has failed. */
void containers_remove(struct engine *e, const struct attempt *at, const char *name, void (*done)(void *arg),
                       void *arg);
void containers_remove_forget(struct engine *e, const void *arg); /* done is not called */
/* What the engine of an attempt has in its environment. */
void containers_environment(const struct attempt *at, struct args *out);
/* Runs the engine, with `users` as the user of the attempt (NULL: as ourselves), with these words for what it
 * prints; see command.h. */
struct command;
struct command *containers_ask(struct engine *e, const struct attempt *at, const struct args *words,
                               void (*done)(void *arg, int status, struct str out, struct str errors),
                               void *arg);
