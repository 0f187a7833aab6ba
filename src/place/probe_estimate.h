/* probe_estimate: estimates latency and bandwidth of a store from measurements.
 *
 * Latency comes from probes; bandwidth from the transfers of jobs, which cost nothing extra, or from a probe
 * if there were none. Both are smoothed: a large transfer has more weight than a small one, and after an
 * hour without measurements a new value has nearly all the weight. Pure; times are milliseconds of any clock
 * that does not jump.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define PROBE_BYTES_MIN 65536u /* smaller transfers are ignored for bandwidth */

enum probe_way { PROBE_IN, PROBE_OUT, PROBE_WAYS };
struct probe_estimate {
        uint64_t latency_us; /* 0: not known */
        uint64_t bytes_per_s[PROBE_WAYS];
        int64_t latency_ms, rate_ms[PROBE_WAYS]; /* times of the last measurements; 0: never */
};

void probe_estimate_latency(struct probe_estimate *e, uint64_t us, int64_t now_ms);
void probe_estimate_rate(struct probe_estimate *e, enum probe_way way, uint64_t bytes, uint64_t took_us,
                         int64_t now_ms);
/* Returns whether the estimate has changed so much that the server should be told. */
bool probe_estimate_differs(const struct probe_estimate *e, const struct probe_estimate *told);
