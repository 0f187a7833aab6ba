/* learned: statistics of the core that are not in events: run times and output sizes of programs, speeds of
 * places, errors of predicted starts. Without them a restarted server would lose everything learned before
 * its newest snapshot, and all prediction errors.
 *
 * The world stores them from time to time, separately from the log; losing or repeating a little is harmless.
 * Their size is bounded: if there are too many programs, those that ran most often are kept.
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
