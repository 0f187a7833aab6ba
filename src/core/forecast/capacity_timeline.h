/* capacity_timeline: the predicted number of free processors of a queue over time, as a step function. The
 * free units of a limit are represented in the same way (eta_limit.h). For the files of core/ only.
 *
 * Built by timeline_begin, timeline_ends for each attempt that will free something, and timeline_ready. A
 * timeline keeps a bounded number of steps; late steps are merged, with the minimum of what is free
 * meanwhile.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMELINE_EVER INT64_MAX /* a run time: it is not known when the job ends */

struct timeline_step { /* `cpus` processors are free from at_ms on */
        int64_t at_ms, cpus;
};
struct capacity_timeline {
        struct queue *queue; /* NULL: the units of a limit */
        struct ad *whole;    /* owned; made when it is needed, else NULL */
        int64_t cpus;        /* total processors, or the free ones if it does not report the total */
        int64_t busy_ms;     /* taken until then (TIMELINE_EVER: for ever) by jobs that follow at a rate */
        struct timeline_step *steps;
        size_t count, cap, max;
};

/* max: most steps that are kept, at least 16. */
void timeline_begin(struct capacity_timeline *l, int64_t now_ms, int64_t free, size_t max);
void timeline_ends(struct capacity_timeline *l, int64_t at_ms, int64_t cpus);
void timeline_ready(struct capacity_timeline *l, int64_t all); /* all: upper bound of what is free */
/* Builds the timeline of a queue from its present state. An attempt whose end is not known frees nothing;
 * with `guess` the time of other programs is used for it. Returns the number of attempts examined. */
unsigned timeline_init(struct core *c, struct capacity_timeline *l, struct queue *q, size_t max, bool guess);
void timeline_deinit(struct capacity_timeline *l);
/* Returns the earliest time from `from` on at which `cpus` processors are free for run_ms; 0: never. */
int64_t timeline_find(const struct capacity_timeline *l, int64_t from, int64_t cpus, int64_t run_ms);
/* Returns the number of processors that are free throughout run_ms from `from` on. */
int64_t timeline_free(const struct capacity_timeline *l, int64_t from, int64_t run_ms);
/* Takes `cpus` processors, or as many as are free; for ever if run_ms is TIMELINE_EVER. */
void timeline_take(struct capacity_timeline *l, int64_t from, int64_t cpus, int64_t run_ms);

/* Iterates over the attempts of a queue. Of more than LANE_ATTEMPTS_MAX only the first are visited, and each
 * stands for `times` attempts. */
#define LANE_ATTEMPTS_MAX 4096u
struct timeline_sample {
        struct job *job; /* NULL: no more */
        int64_t times;
        /* private to capacity_timeline.c */
        uint32_t at, all;
};
struct timeline_sample timeline_sample_of(const struct queue *q);
void timeline_sample_next(struct timeline_sample *s);
