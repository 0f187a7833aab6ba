/* follow: answers reads for a server that stands by: `droverd --follow`, a process that the standby runs
 * (mirror/standing.h).
 *
 * It opens the store for reading only, replays the log into a core of its own, and goes on with each new
 * record. It has no turn, takes no term and emits no event, so that it cannot change anything; the routes
 * marked `standby` are answered from its core and from the store, and each answer says how old it is. It
 * ends when it cannot go on (the records that it needs were cut, the store was replaced, another server
 * leads), and is started again; the server that stands by kills it before it leads. */
#pragma once
#include "server/loop/server.h"

/* Serves until a signal, or an error. Returns the exit code. */
int follow_serve(struct server *s);
/* On the leader, in its first turn: records where it is reached, for those that follow. */
void follow_record_leader(struct server *s, const char *api_tls);
