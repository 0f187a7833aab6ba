#include "place/probe_estimate.h"

#define OLD_MS      3600000
#define WEIGHS_HALF (8u << 20) /* size of a transfer that moves the estimate half of the way */
#define LEAST_US    100u

static uint64_t mixed(uint64_t old, uint64_t now, double weight)
{
        double v = (double)old * (1 - weight) + (double)now * weight;

        return v < 1 ? 1 : (uint64_t)(v + 0.5);
}

static double weight_of(double weight, int64_t last_ms, int64_t now_ms)
{
        if (!last_ms)
                return 1;
        return now_ms - last_ms > OLD_MS && weight < 0.9 ? 0.9 : weight;
}

void probe_estimate_latency(struct probe_estimate *e, uint64_t us, int64_t now_ms)
{
        e->latency_us = mixed(e->latency_us, us, weight_of(0.3, e->latency_ms, now_ms));
        e->latency_ms = now_ms;
}

void probe_estimate_rate(struct probe_estimate *e, enum probe_way way, uint64_t bytes, uint64_t took_us,
                         int64_t now_ms)
{
        if (bytes < PROBE_BYTES_MIN)
                return;
        /* the first answer takes its time on the thinnest and on the widest link */
        took_us = took_us > e->latency_us + LEAST_US ? took_us - e->latency_us : LEAST_US;
        double weight = (double)bytes / ((double)bytes + WEIGHS_HALF);
        if (weight < 0.1)
                weight = 0.1;
        uint64_t rate = (uint64_t)((double)bytes * 1e6 / (double)took_us);
        e->bytes_per_s[way] = mixed(e->bytes_per_s[way], rate, weight_of(weight, e->rate_ms[way], now_ms));
        e->rate_ms[way] = now_ms;
}

static bool far(uint64_t a, uint64_t b)
{
        uint64_t more = a > b ? a : b, less = a > b ? b : a;

        return more - less > more / 5;
}

bool probe_estimate_differs(const struct probe_estimate *e, const struct probe_estimate *told)
{
        return far(e->latency_us, told->latency_us) ||
               far(e->bytes_per_s[PROBE_IN], told->bytes_per_s[PROBE_IN]) ||
               far(e->bytes_per_s[PROBE_OUT], told->bytes_per_s[PROBE_OUT]);
}
