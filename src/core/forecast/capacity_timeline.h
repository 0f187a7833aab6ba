/* capacity_timeline: a queue as it will be, for the files of eta: the processors that are free from when on,
 * as steps in time. The units of a limit are counted in the same way (eta_limit.h). For the files of core/
 * only.
 *
 * Made in three calls: timeline_begin, timeline_ends for each attempt that will give something back,
 * timeline_ready. A timeline keeps a bounded number of steps; what comes late is put together, to the least
 * that is free meanwhile.
 */
#pragma once
#include "core/model/names.h"
#include <stddef.h>
#include <stdint.h>

struct timeline_step { /* from then on so many processors are free */
        int64_t at_ms, cpus;
};
struct capacity_timeline {
        struct queue *queue; /* NULL: these are units of a limit */
        struct ad *whole;    /* owned; NULL until somebody needs it */
        int64_t cpus;        /* of its own, or what it has free where it does not say */
        int64_t busy_ms;     /* taken by what follows at a rate, until then */
        struct timeline_step *steps;
        size_t count, cap, max;
};

/* `max`: steps that are kept; 16 and more. */
void timeline_begin(struct capacity_timeline *l, int64_t now_ms, int64_t free, size_t max);
void timeline_ends(struct capacity_timeline *l, int64_t at_ms, int64_t cpus);
void timeline_ready(struct capacity_timeline *l, int64_t all); /* never more than that is free */
/* A queue as it is now. Returns how many attempts it looked at. */
unsigned timeline_init(struct core *c, struct capacity_timeline *l, struct queue *q, size_t max);
void timeline_deinit(struct capacity_timeline *l);
/* When, from `from` on, so many processors are free for so long; 0: never. */
int64_t timeline_find(const struct capacity_timeline *l, int64_t from, int64_t cpus, int64_t run_ms);
/* The processors that are free all the time from `from` on for so long. */
int64_t timeline_free(const struct capacity_timeline *l, int64_t from, int64_t run_ms);
/* Takes them, or as many of them as are free. */
void timeline_take(struct capacity_timeline *l, int64_t from, int64_t cpus, int64_t run_ms);

/* The attempts of a queue, of very many the first LANE_ATTEMPTS_MAX in its list: each of these stands for
 * `times` of them. */
#define LANE_ATTEMPTS_MAX 4096u
struct timeline_sample {
        struct job *job; /* NULL: that was all */
        int64_t times;
        /* capacity_timeline.c's own */
        uint32_t at, all;
};
struct timeline_sample timeline_sample_of(const struct queue *q);
void timeline_sample_next(struct timeline_sample *s);
