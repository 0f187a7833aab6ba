/* bench: what the programs of this folder share: a world that keeps nothing, processor time, and lines that
 * tools/bench reads. */
#pragma once
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/core.h"

static inline void must(bool ok, const char *what)
{
        if (ok)
                return;
        fprintf(stderr, "bench: %s\n", what);
        exit(1);
}

static inline void world_history(void *arg, const struct past_job *f)
{
        (void)arg, (void)f;
}
static inline void world_keep(void *arg, uint64_t request, struct str record)
{
        (void)arg, (void)request, (void)record;
}
static inline void world_forget(void *arg, uint64_t request)
{
        (void)arg, (void)request;
}
static inline void world_control(void *arg, const char *agent, enum core_control what, uint64_t request,
                                 uint32_t fence, const struct set *members)
{
        (void)arg, (void)agent, (void)what, (void)request, (void)fence, (void)members;
}

/* Of this thread. */
static inline int64_t cpu_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int by_value(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

/* Sorts it. */
static inline double p99_us(int64_t *ns, size_t count)
{
        qsort(ns, count, sizeof(*ns), by_value);
        return (double)ns[count * 99 / 100] / 1000;
}

static inline void line(const char *what, const char *which, uint64_t n, double value, const char *unit,
                        const char *better)
{
        printf("%s_%s_%" PRIu64 " %.6g %s %s\n", what, which, n, value, unit, better);
        fflush(stdout);
}
