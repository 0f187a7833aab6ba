/* backoff: exponential backoff with jitter between retries.
 *
 * Waits begin short, double up to a bound, and are spread at random, so that many clients that lose the same
 * server at the same time do not reconnect at the same time.
 */
#pragma once
#include <stdint.h>

struct backoff {
        int64_t first_ms, most_ms;
        int64_t ms; /* mean of the next wait; 0: first_ms */
};
#define BACKOFF(first, most) ((struct backoff){(first), (most), 0})

/* Returns the milliseconds to wait before this try, between 0.5 and 1.5 times the mean, and doubles the mean.
 */
int64_t backoff_wait(struct backoff *b);
void backoff_reset(struct backoff *b); /* a try succeeded: the next wait is first_ms again */
