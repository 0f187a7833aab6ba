/* learned: what the core has learned and no event says: how long programs run and how much they write, how
 * fast places are, how far expected starts were off. Without it a server that was restarted would have to
 * learn again all that stands before its newest snapshot, and of expected starts everything.
 *
 * The world keeps it from time to time, apart from the log: a little that is lost, or learned twice, harms
 * nobody. It is bounded: of very many programs those that ran most often are kept.
 */
#pragma once
#include "base/str.h"

struct buf;
struct core;
struct err;

/* Grows with what is learned: as long as it is the same nothing new needs to be kept. */
uint64_t core_learned_count(struct core *c);
void core_learned_pack(struct core *c, struct buf *out);
/* After the replay: takes what is better known there than by the replay. 0; CORE_DAMAGED with err, and
 * nothing is taken. */
int core_learned_unpack(struct core *c, struct str data, struct err *err);
