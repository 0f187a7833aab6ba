/* snapshot: makes snapshots of the state while the server runs.
 *
 * For each snapshot a thread makes a second core, restores the newest snapshot into it, replays the later
 * records up to a given one, and stores the result, which allows the log to be cut. The live core never
 * pauses. A snapshot begins after 200,000 records or 64 MiB of records. Core thread only. */
#pragma once
#include "server/loop/server.h"

struct snapshots;
/* `seq`: the last record that the newest snapshot includes, 0 when there is no snapshot. */
struct snapshots *snapshots_new(struct server *s, uint64_t seq);
/* Returns whether the newest snapshot includes this record. If not, a snapshot is made as soon as
 * possible. */
bool snapshot_covers(struct server *s, uint64_t seq);
/* records became durable; bytes: of their batch */
void snapshot_poke(struct server *s, uint64_t durable_seq, size_t bytes);
/* Waits for a snapshot in progress, and makes a last one if there are enough records. */
void snapshots_stop(struct snapshots *sn);
void snapshots_free(struct snapshots *sn); /* accepts NULL */
