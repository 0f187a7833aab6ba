/* eta_play: the queue, played forward, as eta.h tells it. For the files of core/ only. */
#pragma once
#include "core/eta_limit.h"
#include "core/eta_turn.h"

#define ETA_LANES_MAX 512u /* queues that are looked at; of more, every so manieth */
#define ETA_FITS_MAX  16u  /* queues that one class is placed on */

struct eta_fit { /* where a class can run */
        uint16_t lanes[ETA_FITS_MAX];
        size_t count;
};
struct eta_play {
        struct core *core;
        struct lane lanes[ETA_LANES_MAX];
        size_t lane_count;
        double scale;       /* queues that a lane stands for */
        double cpus, free;  /* of all queues */
        struct idmap *fits; /* class → struct eta_fit */
        struct eta_limits limits;
};

/* Plays the queue as it is now. What it finds stands in the turns, the caller's to free; *ret_count of them.
 * With `until`: only up to its turn, which is not taken. What is free then can be looked up until
 * eta_play_end. */
void eta_play_begin(struct core *c, struct eta_play *x);
size_t eta_play(struct eta_play *x, struct bucket *until, struct eta_turn **ret);
void eta_play_end(struct eta_play *x);

/* ---- for eta_set.c */
/* The rest of a bucket: one after the other at the rate at which its places become free, or its limits let
 * them, or its account's turn comes. */
void eta_play_rest(struct eta_play *x, const struct eta_fit *f, const struct eta_draws *d,
                   struct eta_turn *t);
/* ---- eta_set.c */
/* Sets: the first one starts when there is room for all of its jobs at a time; those behind it one after the
 * other. One for which there is never room starts nobody knows when. */
void eta_play_sets(struct eta_play *x, const struct eta_fit *f, const struct eta_draws *d,
                   struct eta_turn *t);
