/* fair: calls of many users that want the same thread.
 *
 * Of each user one step at a time is with the thread. His others wait here, and follow when that one has run,
 * behind what others have asked for meanwhile. A user with a thousand calls makes the next one wait for one
 * step of his, and not for a thousand. Any thread may call all of this but fair_new and fair_free.
 */
#pragma once
#include "server/calls/call.h"

struct fair;
struct fair_user;
/* post: passes a task to the thread. */
struct fair *fair_new(struct server *s, void (*post)(struct server *s, struct task *t));
void fair_free(struct fair *f); /* drops the calls that wait, once nothing posts any more; NULL is fine */

/* Takes the call, whose step is set. It is posted with c->turn_of set, now or when it is its user's turn. */
void fair_post(struct fair *f, struct call *c);
/* The step of a call that was posted has run; `u` is what its turn_of was. */
void fair_done(struct fair_user *u);
