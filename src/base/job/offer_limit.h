/* offer_limit: the most that each queue of an agent may offer, as its token says: "Cpus=8,Memory=16384".
 * Names are those of numbers in the queue's ad, in any case, with the units that they have there. Pure. */
#pragma once
#include "base/str.h"

struct offer_limit {
        struct str name; /* borrowed from the text */
        int64_t most;
};
/* Takes the first limit off the text. Returns 0; 1 when the text is empty; -EINVAL when what comes first is
 * no NAME=NUMBER with a number from 0 to 2^53. */
int offer_limit_next(struct str *text, struct offer_limit *ret);
/* Returns whether all of the text is limits; an empty one is none. */
bool offer_limits_good(struct str text);
