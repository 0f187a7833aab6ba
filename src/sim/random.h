/* random: pseudo-random numbers from a seed.
 *
 * xorshift64*: the same seed gives the same numbers on every machine, which is what makes a simulation
 * reproducible. Not for secrets.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct sim_random {
        uint64_t state;
};

void sim_random_seed(struct sim_random *r, uint64_t seed);
uint64_t sim_random_u64(struct sim_random *r);
unsigned sim_random_below(struct sim_random *r, unsigned n);                    /* [0, n); 0 when n is 0 */
bool sim_random_chance(struct sim_random *r, unsigned percent);                 /* true that often */
double sim_random_exponential(struct sim_random *r, double mean);               /* waiting times */
double sim_random_lognormal(struct sim_random *r, double median, double sigma); /* sizes and run times */
/* [0, n), small numbers more often: the k-th is about 1/(k+1) as likely as the first. 0 when n is 0. */
unsigned sim_random_popular(struct sim_random *r, unsigned n);
