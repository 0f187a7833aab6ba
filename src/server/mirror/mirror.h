/* mirror: another server that keeps a copy of this one's store and spool, and takes over when this one fails.
 *
 * Each of the two has its own SQLite store, and a port for the connection between them: HTTP over TLS with
 * the instance's authority, and a secret derived from the credential key; both have the same authority and
 * key. relation.h decides which of them leads. The leader sends each group of batches to the follower before
 * it commits the group (store_mirror), so that everything acknowledged is on both disks; the follower fetches
 * files of the spool before it accepts a group that names them. A follower that is new, or whose store has
 * diverged, copies the leader's database and spool.
 *
 * A leader that learns that it no longer leads exits, like one with a PostgreSQL store; the service manager
 * restarts it as a follower.
 *
 * The mirror has its own thread; data that it shares with the store's thread and others are protected by one
 * lock.
 */
#pragma once
#include "base/format/json.h"
#include "server/loop/server.h"

struct mirror;

/* Opens the mirror that the settings name; without one *ret is NULL. Returns 0, or an error with err. */
int mirror_open(struct server *s, struct mirror **ret, struct err *err);
/* Waits until this server leads; the store must not be open. `waiting` is called when that takes a while.
 * Returns 0, or an error with err. */
int mirror_lead(struct mirror *m, void (*waiting)(void), struct err *err);
/* What store_open_at is given; NULL for NULL. */
const struct store_mirror *mirror_store(const struct mirror *m);
/* The store is open, and has a snapshot after this record: the follower may fetch it. NULL: the store is
 * about to be closed. Any thread. Accepts m NULL. */
void mirror_serves(struct mirror *m, struct store *store, uint64_t snapshot);
/* With `orderly`, hands over to a follower that has all, once the store is closed. Accepts NULL. */
void mirror_close(struct mirror *m, bool orderly);

/* ---- any thread */
/* Returns whether what is committed now is at the follower too. NULL: false. */
bool mirror_is_joined(struct mirror *m);
uint64_t mirror_epoch(struct mirror *m); /* of this leadership; 0 for NULL */
const char *mirror_peer(const struct mirror *m);
/* Writes the members of GET /v1/server/mirror into an open object. */
void mirror_write(struct mirror *m, struct json *j);
/* An administrator says that the other server does not lead: this one does from now on, alone. force:
 * although it has not all that the leader had. Returns 0; or -EBUSY, -EALREADY or -ESTALE with err. */
int mirror_promote(struct mirror *m, bool force, struct err *err);
