/* spread: how many times as long as expected jobs ran; for core/ only.
 *
 * A histogram of ratios, a quarter of an octave wide each, in which newer ratios weigh more: about the last
 * two thousand count. A new one knows nothing and has a faint guess of its own, so that its quantiles are
 * wide and not absurd.
 */
#pragma once
#include <stdint.h>

#define SPREAD_BINS 96u /* from 2^-12 to 2^12 */

struct spread {
        uint32_t count;
        float unit; /* what the next ratio weighs */
        float weight[SPREAD_BINS];
};

struct buf;
struct unpack;
void spread_init(struct spread *s);
void spread_add(struct spread *s, double ratio); /* not finite, or 0 and less: taken for the smallest */
/* The ratio below which `part` (0 to 1) of the jobs end, of those that come to more than `above` (0: of all).
 * More than `above`: where nobody has come so far, as if the chance to end faded with age: half of the jobs
 * end before they are twice as old. */
double spread_quantile(const struct spread *s, double part, double above);
void spread_pack(const struct spread *s, struct buf *out);
/* Takes what is packed if that knows of more ratios; `in` is bad if it makes no sense. */
void spread_unpack(struct spread *s, struct unpack *in);
