/* u64: minimum, maximum and saturating difference of unsigned amounts. */
#pragma once
#include <stdint.h>

static inline uint64_t u64_min(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

static inline uint64_t u64_max(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

static inline uint64_t u64_left(uint64_t total, uint64_t taken) /* 0 when more is taken than there is */
{
        return total > taken ? total - taken : 0;
}
