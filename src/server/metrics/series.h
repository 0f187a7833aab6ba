/* series: what the queue was like over the last day, for charts: a sample every half a minute since the
 * server's start, 2880 of them. Core thread; nothing of it is kept over a restart.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERIES_EVERY_MS 30000
#define SERIES_SAMPLES  2880u

struct series_sample {
        int64_t at_ms;                /* Unix milliseconds */
        uint64_t idle, running, held; /* jobs, then */
        uint64_t submitted, matched,
                ended;        /* jobs, and attempts that have ended by themselves, since the server's start */
        int64_t eta_error_ms; /* median error of expected starts; -1: none has started */
};

struct series;
struct series *series_new(void);
void series_free(struct series *s); /* NULL is fine */
/* Whether it is time for another sample; now_ms is of a clock that is never set. */
bool series_due(const struct series *s, int64_t now_ms);
void series_add(struct series *s, int64_t now_ms, const struct series_sample *sample); /* the oldest goes */
size_t series_count(const struct series *s);
const struct series_sample *series_at(const struct series *s, size_t n); /* from the oldest on; n < count */
