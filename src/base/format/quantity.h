/* quantity: numbers with a unit, as written in settings and options.
 *
 * Sizes in B, KiB, MiB, GiB, TiB (K and KB, M and MB, … are the same; without a unit: bytes); times in ms, s,
 * m, h, d (without one: seconds). Fractions are fine: 1.5GiB. Units are read without regard to case, white
 * space may stand before them. All: 0; -EINVAL when it is not such a text; -ERANGE above 9e18; nothing is
 * written then.
 */
#pragma once
#include "base/str.h"

int quantity_size(struct str text, uint64_t *ret_bytes);
int quantity_duration(struct str text, uint64_t *ret_ms);
int quantity_count(struct str text, uint64_t *ret);       /* 3; 1.5 is cut */
int quantity_thousandths(struct str text, uint64_t *ret); /* 1.5 is 1500 */
