/* game: a randomised test of the core with failures of every kind, decided by a seed.
 *
 * The seed decides what users, agents, the network, the clock and the disk do. Agents accept, refuse, run,
 * report, lose connections, forget all they have, and fall silent until their leases end; they keep results
 * until these are acknowledged as durable. The server crashes, and comes back from its log, at times through
 * a snapshot.
 *
 * After every step:
 *   - the core's own invariants hold (core_check);
 *   - no job is alive (accepted, lease not ended) at two agents, nor twice at one;
 *   - no agent was given more work than it has room for;
 *   - a reservation for a job is there as long as the job waits for its place, and no longer, and is made for
 *     parts that start together at one time or not at all; none of these runs alone;
 *   - no space of a store is oversold: lots, files and claims of running jobs fit into its capacity;
 *   - a result is taken only for the attempt that the log has as the job's newest;
 *   - every job has at most one row in history, and every request that was acknowledged is there.
 * At the end all jobs run to completion: each job of each request has exactly one row, and the state replayed
 * from the log equals the present state, byte for byte, both by the full core and by the shadow.
 *
 * The same seed and number of steps play the same game on every machine.
 */
#pragma once
#include <stdio.h>

#include "base/err.h"
#include "sim/random.h"

struct sim_game_options {
        uint64_t seed;
        unsigned steps; /* before all jobs run to completion */
        FILE *trace;    /* gets a line for every move; NULL: none */
};
struct sim_game_counts {
        uint64_t requests, ended, results, refused_old, given_back, restarts, losses, records;
        uint64_t claims, lots;           /* steps in which some space was claimed, or reserved */
        uint64_t reserved, moved, parts; /* reservations for jobs; of these, those that replaced another one,
                                            and those for parts that start together */
        unsigned steps;
};
/* 0; 1: an invariant does not hold, err says which, with seed and step; -errno: the world could not be made.
 * *ret is filled in either way. */
int sim_game_play(const struct sim_game_options *options, struct sim_game_counts *ret, struct err *err);
