#include "core/estimate/spread.h"

#include <math.h>

#include "base/pack.h"

#define PER_OCTAVE 4
#define LOWEST     -12.0  /* log2 of the smallest ratio */
#define MEMORY     2000.0 /* memory in ratios */
#define UNIT_MAX   1e6f
#define GUESS      2.0 /* weight of the prior, in ratios */
#define GUESS_BINS 16  /* bins of the prior on each side of 1: four octaves */

static double edge(unsigned bin)
{
        return LOWEST + (double)bin / PER_OCTAVE;
}

static unsigned bin_of(double ratio)
{
        double at = ratio > 0 ? (log2(ratio) - LOWEST) * PER_OCTAVE : 0;

        return !(at > 0) ? 0 : at >= SPREAD_BINS ? SPREAD_BINS - 1 : (unsigned)at;
}

void spread_init(struct spread *s)
{
        unsigned one = bin_of(1);

        *s = (struct spread){.unit = 1};
        for (unsigned i = one - GUESS_BINS; i < one + GUESS_BINS; i++) {
                unsigned far = i >= one ? i - one : one - 1 - i;

                s->weight[i] = (float)(GUESS * (GUESS_BINS - far) / (GUESS_BINS * (GUESS_BINS + 1)));
        }
}

void spread_add(struct spread *s, double ratio)
{
        s->unit *= 1 + 1 / MEMORY;
        s->weight[bin_of(ratio)] += s->unit;
        if (s->count < UINT32_MAX)
                s->count++;
        if (s->unit < UNIT_MAX)
                return;
        for (unsigned i = 0; i < SPREAD_BINS; i++)
                s->weight[i] /= s->unit;
        s->unit = 1;
}

/* Returns the part of the bin's weight that belongs to ratios above this one. */
static double weight_above(const struct spread *s, unsigned bin, double above)
{
        double from = above > 0 ? (log2(above) - edge(bin)) * PER_OCTAVE : 0;

        return (double)s->weight[bin] * (from <= 0 ? 1 : from >= 1 ? 0 : 1 - from);
}

double spread_quantile(const struct spread *s, double part, double above)
{
        unsigned first = above > 0 ? bin_of(above) : 0, i = first;
        double all = 0, below = 0, here = 0;

        for (unsigned k = first; k < SPREAD_BINS; k++)
                all += weight_above(s, k, above);
        if (all <= (double)s->unit / MEMORY)
                return above / (1 - part);
        for (; i < SPREAD_BINS; i++) {
                here = weight_above(s, i, above);
                if (here > 0 && below + here >= part * all)
                        break;
                below += here;
        }
        if (i == SPREAD_BINS)
                return exp2(edge(SPREAD_BINS));
        /* Ratios are taken to be spread evenly within a bin, and those of the age's bin to be at its upper
         * end. */
        return exp2(edge(i + 1) - (double)(below + here - part * all) / (double)s->weight[i] / PER_OCTAVE);
}

void spread_pack(const struct spread *s, struct buf *out)
{
        pack_u64(out, s->count);
        for (unsigned i = 0; s->count > 0 && i < SPREAD_BINS; i++) /* in ten-thousandths of a ratio */
                pack_u64(out, (uint64_t)(s->weight[i] / s->unit * 1e4F));
}

void spread_unpack(struct spread *s, struct unpack *in)
{
        struct spread new = {.count = (uint32_t)unpack_max(in, UINT32_MAX), .unit = 1};

        for (unsigned i = 0; new.count > 0 && i < SPREAD_BINS; i++)
                new.weight[i] = (float)unpack_max(in, (uint64_t)(1e4 * 10 * MEMORY)) / 1e4F;
        if (!in->bad && new.count > s->count)
                *s = new;
}
