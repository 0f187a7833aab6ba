/* eta_turn: which waiting buckets come to their turn when, for the files of eta. For the files of core/ only.
 */
#pragma once
#include "core/state.h"

#define ETA_FIRST_FEW 4u /* jobs of a bucket that are looked at one by one */

struct eta_turn { /* of a bucket */
        struct bucket *bucket;
        uint64_t jobs; /* that wait; of one that is only asked about, all of its part */
        /* In milliseconds from now, if all processors were alike and could run all jobs: when its first job
         * starts, the one behind the first few, and when all have been given what they need. INFINITY: never.
         */
        double start, rest, end;
        /* eta_turn.c's own */
        size_t stream;
        double own, standing, work, before;
        /* what eta_play.c found: when the first starts, Unix milliseconds (0: nobody knows), how much later
         * each behind it, and how long they run */
        int64_t start_ms;
        float step_ms, run_ms;
        int64_t last_ms; /* when the last of the first few starts */
        uint64_t placed;
};
/* All that wait, and `also` (NULL: none), in the order of their turns. `all` processors, of which `free` are.
 * The array is the caller's. */
size_t eta_turns(struct core *c, double all, double free, struct bucket *also, struct eta_turn **ret);
