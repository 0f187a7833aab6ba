#include "sim/random.h"

#include <math.h>

void sim_random_seed(struct sim_random *r, uint64_t seed)
{
        r->state = seed * 0x9e3779b97f4a7c15u + 1;
        if (r->state == 0) /* the one state that xorshift never leaves */
                r->state = 1;
}

uint64_t sim_random_u64(struct sim_random *r)
{
        r->state ^= r->state >> 12;
        r->state ^= r->state << 25;
        r->state ^= r->state >> 27;
        return r->state * 0x2545f4914f6cdd1du;
}

unsigned sim_random_below(struct sim_random *r, unsigned n)
{
        return n ? (unsigned)(sim_random_u64(r) >> 33) % n : 0;
}

bool sim_random_chance(struct sim_random *r, unsigned percent)
{
        return sim_random_below(r, 100) < percent;
}

/* (0, 1) */
static double sim_random_unit(struct sim_random *r)
{
        return ((double)(sim_random_u64(r) >> 11) + 0.5) / 9007199254740992.0;
}

double sim_random_exponential(struct sim_random *r, double mean)
{
        return -mean * log(sim_random_unit(r));
}

double sim_random_lognormal(struct sim_random *r, double median, double sigma)
{
        /* Box and Muller; the second number is not kept, so that a state is one word */
        double normal = sqrt(-2 * log(sim_random_unit(r))) * cos(6.283185307179586 * sim_random_unit(r));

        return median * exp(sigma * normal);
}

unsigned sim_random_popular(struct sim_random *r, unsigned n)
{
        /* the inverse of the integral of 1/x from 1 to n + 1 */
        double x = exp(sim_random_unit(r) * log((double)n + 1)) - 1;

        return n && x < n ? (unsigned)x : 0;
}
