/* spread: the distribution of the ratio of actual to predicted run times; for core/ only.
 *
 * A histogram of ratios, in bins of a quarter of an octave, in which newer ratios weigh more: about the last
 * two thousand count. A new histogram starts with a faint prior, so that its quantiles are wide but not
 * absurd.
 */
#pragma once
#include <stdint.h>

#define SPREAD_BINS 96u /* from 2^-12 to 2^12 */

struct spread {
        uint32_t count;
        float unit; /* weight of the next ratio */
        float weight[SPREAD_BINS];
};

struct buf;
struct unpack;
void spread_init(struct spread *s);
/* A ratio that is not finite or not positive counts as the smallest. */
void spread_add(struct spread *s, double ratio);
/* Returns the ratio below which `part` (0 to 1) of the jobs end, among jobs that exceed `above` (0: all
 * jobs). The result is more than `above`: beyond all observations the chance of ending is taken to fall with
 * age, so that half of the jobs end before they are twice as old. */
double spread_quantile(const struct spread *s, double part, double above);
void spread_pack(const struct spread *s, struct buf *out);
/* Unpacks a spread if it has more ratios than this one; sets in->bad if it is invalid. */
void spread_unpack(struct spread *s, struct unpack *in);
