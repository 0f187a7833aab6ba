/* learned: what the core has learned (core/learned.h) is kept in the store, blob "server/learned":
 * every ten minutes if there is something new, and when the server is stopped. One that is killed has
 * forgotten ten minutes at most. Core thread only, in a turn.
 */
#pragma once
#include "server/loop/server.h"

void learned_restore(struct server *s); /* after the replay; what is damaged is said, and learned again */
void learned_tick(struct server *s);
void learned_keep(struct server *s); /* now */
