/* series: samples of the queue over the last day, for charts: one every 30 seconds since the server's
 * start, 2880 at most. Core thread. Samples are not kept over a restart. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERIES_EVERY_MS 30000
#define SERIES_SAMPLES  2880u

struct series_sample {
        int64_t at_ms;                      /* Unix milliseconds */
        uint64_t idle, running, held;       /* jobs in that state at that time */
        uint64_t submitted, matched, ended; /* jobs and attempts that have ended since the server's start */
        int64_t eta_error_ms;               /* median error of expected starts; -1: no job has started */
};

struct series;
struct series *series_new(void);
void series_free(struct series *s); /* accepts NULL */
/* Returns whether the next sample is due. now_ms is of a clock that nobody sets. */
bool series_due(const struct series *s, int64_t now_ms);
/* removes the oldest sample when the series is full */
void series_add(struct series *s, int64_t now_ms, const struct series_sample *sample);
size_t series_count(const struct series *s);
/* sample n, from the oldest; n < count */
const struct series_sample *series_at(const struct series *s, size_t n);
