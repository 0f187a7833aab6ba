/* eta_lane: a queue as it will be, for eta.c: the processors that are free from when on, as steps in time.
 * For the files of core/ only.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct ad;
struct core;
struct queue;

#define LANE_STEPS_MAX 256u /* changes of what a queue has free that are kept apart */

struct lane_step { /* from then on so many processors are free */
        int64_t at_ms, cpus;
};
struct lane {
        struct queue *queue;
        struct ad *whole; /* owned; NULL until somebody needs it */
        int64_t cpus;     /* of its own, or what it has free where it does not say */
        int64_t busy_ms;  /* taken by what follows at a rate, until then */
        struct lane_step *steps;
        size_t count, cap;
};

void lane_init(struct core *c, struct lane *l, struct queue *q); /* as it is now */
void lane_deinit(struct lane *l);
/* When so many processors are free for so long, and the step in which that begins; 0: never. */
int64_t lane_find(const struct lane *l, int64_t cpus, int64_t run_ms, size_t *ret_step);
/* The processors that are free all the time from `from` on for so long; *ret_step: where that begins. */
int64_t lane_free(const struct lane *l, int64_t from, int64_t run_ms, size_t *ret_step);
/* Takes them; `step` as one of these told. */
void lane_take(struct lane *l, size_t step, int64_t from, int64_t cpus, int64_t run_ms);
