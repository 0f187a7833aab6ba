/* learned: stores what the core has learned (core/learned.h) in the blob "server/learned": every ten
 * minutes if it has changed, and when the server stops. A killed server loses ten minutes at most. Core
 * thread only, within a turn. */
#pragma once
#include "server/loop/server.h"

/* after the replay; logs damaged data, which is then learned again */
void learned_restore(struct server *s);
void learned_tick(struct server *s);
void learned_keep(struct server *s); /* stores it now */
