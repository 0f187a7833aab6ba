#include "base/system/backoff.h"

#include <sys/random.h>

int64_t backoff_wait(struct backoff *b)
{
        int64_t ms = b->ms ? b->ms : b->first_ms;
        uint32_t random;

        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
                random = 0;
        b->ms = ms * 2 > b->most_ms ? b->most_ms : ms * 2;
        return ms / 2 + (int64_t)(random % (uint64_t)(ms + 1));
}

void backoff_reset(struct backoff *b)
{
        b->ms = 0;
}
