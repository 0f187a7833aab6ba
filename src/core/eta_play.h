/* eta_play: the queue, played forward: what eta.c looks up. For the files of core/ only. */
#pragma once
#include "core/eta_lane.h"
#include "core/state.h"

#define ETA_LANES_MAX 512u /* queues that are looked at; of more, every so manieth */
#define ETA_FITS_MAX  16u  /* queues that one class is placed on */

struct eta_fit { /* where a class can run */
        const struct class *class;
        uint16_t lanes[ETA_FITS_MAX];
        size_t count;
};
struct eta_lanes {
        struct lane v[ETA_LANES_MAX];
        size_t count;
        double scale; /* queues that a lane stands for */
};

void eta_lanes_deinit(struct eta_lanes *e);
/* Plays the queue as it is now: writes into each waiting bucket when its jobs will start, and `pass`. Calls
 * fn for those that were never in a play before and have a time now. */
void eta_play(struct core *c, struct eta_lanes *e, uint32_t pass,
              void (*fn)(void *arg, const struct bucket *b), void *arg);

/* ---- eta_set.c */
/* Sets: the first one starts when there is room for all of its jobs at a time; those behind it one after the
 * other. One for which there is never room starts nobody knows when. */
void eta_play_sets(struct core *c, struct eta_lanes *e, struct bucket *b, const struct eta_fit *f);
/* The rest of a bucket: one after the other at the rate at which its places become free. */
void eta_follow(struct eta_lanes *e, const struct eta_fit *f, const struct part *p, struct bucket *b,
                uint64_t left, int64_t last);
