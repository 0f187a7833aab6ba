#include "base/system/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t id)
{
        struct timespec t;

        clock_gettime(id, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_wall_ms(void)
{
        return read_ns(CLOCK_REALTIME) / 1000000;
}

int64_t clock_boot_ms(void)
{
        return read_ns(CLOCK_BOOTTIME) / 1000000;
}

int64_t clock_mono_ns(void)
{
        return read_ns(CLOCK_MONOTONIC);
}

int64_t clock_thread_ns(void)
{
        return read_ns(CLOCK_THREAD_CPUTIME_ID);
}
