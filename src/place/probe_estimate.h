/* probe_estimate: how far a store is, from what has been measured.
 *
 * Latency comes from probes; bandwidth from the transfers of jobs, which cost nothing extra, or from a probe
 * where there have been none. Both are smoothed: a large transfer says more than a small one, and after an
 * hour of silence a new value counts nearly alone. Pure; times are milliseconds of any clock that does not
 * jump.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define PROBE_BYTES_MIN 65536u /* a smaller transfer says nothing of bandwidth */

enum probe_way { PROBE_IN, PROBE_OUT, PROBE_WAYS };
struct probe_estimate {
        uint64_t latency_us; /* 0: not known */
        uint64_t bytes_per_s[PROBE_WAYS];
        int64_t latency_ms, rate_ms[PROBE_WAYS]; /* when they were last measured; 0: never */
};

void probe_estimate_latency(struct probe_estimate *e, uint64_t us, int64_t now_ms);
void probe_estimate_rate(struct probe_estimate *e, enum probe_way way, uint64_t bytes, uint64_t took_us,
                         int64_t now_ms);
/* Has it changed by so much that who chooses places should know? */
bool probe_estimate_differs(const struct probe_estimate *e, const struct probe_estimate *told);
