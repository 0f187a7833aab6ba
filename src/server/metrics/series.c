#include "server/metrics/series.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

struct series {
        struct series_sample samples[SERIES_SAMPLES];
        size_t first, count;
        int64_t added_ms;
};

struct series *series_new(void)
{
        return mem_new(struct series);
}

void series_free(struct series *s)
{
        free(s);
}

bool series_due(const struct series *s, int64_t now_ms)
{
        return s->count == 0 || now_ms - s->added_ms >= SERIES_EVERY_MS;
}

void series_add(struct series *s, int64_t now_ms, const struct series_sample *sample)
{
        if (s->count == SERIES_SAMPLES)
                s->first = (s->first + 1) % SERIES_SAMPLES;
        else
                s->count++;
        s->samples[(s->first + s->count - 1) % SERIES_SAMPLES] = *sample;
        s->added_ms = now_ms;
}

size_t series_count(const struct series *s)
{
        return s->count;
}

const struct series_sample *series_at(const struct series *s, size_t n)
{
        assert(n < s->count);
        return &s->samples[(s->first + n) % SERIES_SAMPLES];
}
