/* snapshot: newer snapshots of the state, made beside the running server.
 *
 * A thread keeps nothing: for each snapshot it makes a shadow core, restores the newest snapshot, replays the
 * records after it up to the one it was told, and puts the result, which cuts the log. The live core never
 * pauses. Poked as records become durable; starts one after 200,000 records or 64 MiB of them. Core thread
 * only.
 */
#pragma once
#include "server/loop/server.h"

struct snapshots;
/* `seq`: the record that the newest snapshot stands after, 0 when there is none. */
struct snapshots *snapshots_new(struct server *s, uint64_t seq);
/* Whether the newest snapshot has the effect of this record. If not, one is made as soon as that can be. */
bool snapshot_covers(struct server *s, uint64_t seq);
void snapshot_poke(struct server *s, uint64_t durable_seq, size_t bytes); /* bytes: of the batch */
/* Waits for one that is being made; makes a last one when it is worthwhile. */
void snapshots_stop(struct snapshots *sn);
void snapshots_free(struct snapshots *sn); /* NULL is fine */
