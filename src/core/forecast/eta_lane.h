/* eta_lane: a queue as it will be, for the files of eta: the processors that are free from when on, as steps
 * in time. The units of a limit are counted in the same way (eta_limit.h). For the files of core/ only.
 *
 * Made in three calls: lane_begin, lane_ends for each attempt that will give something back, lane_ready. A
 * lane keeps a bounded number of steps; what comes late is put together, to the least that is free meanwhile.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct ad;
struct core;
struct job;
struct queue;

struct lane_step { /* from then on so many processors are free */
        int64_t at_ms, cpus;
};
struct lane {
        struct queue *queue; /* NULL: these are units of a limit */
        struct ad *whole;    /* owned; NULL until somebody needs it */
        int64_t cpus;        /* of its own, or what it has free where it does not say */
        int64_t busy_ms;     /* taken by what follows at a rate, until then */
        struct lane_step *steps;
        size_t count, cap, max;
};

/* `max`: steps that are kept; 16 and more. */
void lane_begin(struct lane *l, int64_t now_ms, int64_t free, size_t max);
void lane_ends(struct lane *l, int64_t at_ms, int64_t cpus);
void lane_ready(struct lane *l, int64_t all); /* never more than that is free */
/* A queue as it is now. Returns how many attempts it looked at. */
unsigned lane_init(struct core *c, struct lane *l, struct queue *q, size_t max);
void lane_deinit(struct lane *l);
/* When, from `from` on, so many processors are free for so long; 0: never. */
int64_t lane_find(const struct lane *l, int64_t from, int64_t cpus, int64_t run_ms);
/* The processors that are free all the time from `from` on for so long. */
int64_t lane_free(const struct lane *l, int64_t from, int64_t run_ms);
/* Takes them, or as many of them as are free. */
void lane_take(struct lane *l, int64_t from, int64_t cpus, int64_t run_ms);

/* The attempts of a queue, of very many the first LANE_ATTEMPTS_MAX in its list: each of these stands for
 * `times` of them. */
#define LANE_ATTEMPTS_MAX 4096u
struct lane_sample {
        const struct job *job; /* NULL: that was all */
        int64_t times;
        /* eta_lane.c's own */
        uint32_t at, all;
};
struct lane_sample lane_sample_of(const struct queue *q);
void lane_sample_next(struct lane_sample *s);
