/* fair: the calls of many users share one thread.
 *
 * The thread has one step of each user at a time. The user's other calls wait here; the next one follows
 * when that step has run, after steps that other users have posted meanwhile. A new call therefore waits
 * for at most one step of each other user, however many calls these have. All functions may be called from
 * any thread, except fair_new and fair_free. */
#pragma once
#include "server/calls/call.h"

struct fair;
struct fair_user;
/* post: passes a task to the thread. */
struct fair *fair_new(struct server *s, void (*post)(struct server *s, struct task *t));
void fair_free(struct fair *f); /* drops the waiting calls; nothing may post any more. Accepts NULL */

/* Takes the call, whose step is set. The call is posted with c->turn_of set, at once or when it is the
 * user's turn. */
void fair_post(struct fair *f, struct call *c);
/* Tells that the step of a posted call has run. `u` is the value of its turn_of. */
void fair_done(struct fair_user *u);
