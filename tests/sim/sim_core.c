/* Plays games of the core in a failing world (sim/game.h): one line a seed, and a seed that breaks an
 * invariant ends the program.
 *
 *   sim_core [--seed N] [--seeds COUNT] [--steps N] [-v]
 *
 * The same seed and steps play the same game again, here and as `drover sim --faults --seed N --steps N`.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "sim/game.h"

int main(int argc, char **argv)
{
        struct sim_game_options o = {.seed = 1, .steps = 2000};
        uint64_t count = 1;

        map_fix_order(); /* walks of maps decide, too: the same seed, the same game */
        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "-v") == 0)
                        o.trace = stdout;
                else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
                        o.seed = strtoull(argv[++i], NULL, 10);
                else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0)
                        count = strtoull(argv[++i], NULL, 10);
                else if (i + 1 < argc && strcmp(argv[i], "--steps") == 0)
                        o.steps = (unsigned)strtoul(argv[++i], NULL, 10);
                else {
                        fprintf(stderr, "usage: sim_core [--seed N] [--seeds COUNT] [--steps N] [-v]\n");
                        return 2;
                }
        }
        for (uint64_t i = 0; i < count; i++, o.seed++) {
                struct sim_game_counts n;
                struct err err;

                if (sim_game_play(&o, &n, &err)) {
                        printf("%s\n", err.text);
                        return 1;
                }
                printf("seed %" PRIu64 ": %" PRIu64 " requests, %" PRIu64 " jobs ended, %" PRIu64
                       " results taken, %" PRIu64 " refused as old, %" PRIu64 " given back, %" PRIu64
                       " server restarts, %" PRIu64 " agents lost, %" PRIu64
                       " records, space claimed in %" PRIu64 " and reserved in %" PRIu64
                       " of %u steps, %" PRIu64 " reservations for jobs, %" PRIu64
                       " of them moved and %" PRIu64 " for parts\n",
                       o.seed, n.requests, n.ended, n.results, n.refused_old, n.given_back, n.restarts,
                       n.losses, n.records, n.claims, n.lots, n.steps, n.reserved, n.moved, n.parts);
        }
        printf("%" PRIu64 " seeds passed\n", count);
        return 0;
}
