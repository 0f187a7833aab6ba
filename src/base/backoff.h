/* backoff: how long to wait before the next try.
 *
 * Waits begin short, double up to a bound, and are spread at random, so that many who have lost the same
 * server at the same time do not come back at the same time.
 */
#pragma once
#include <stdint.h>

struct backoff {
        int64_t first_ms, most_ms;
        int64_t ms; /* in the middle of the next wait; 0: first_ms */
};
#define BACKOFF(first, most) ((struct backoff){(first), (most), 0})

/* Milliseconds to wait now: from half of to one and a half times what it is at this try. */
int64_t backoff_wait(struct backoff *b);
void backoff_reset(struct backoff *b); /* a try was good: the next wait is a first one */
