/* forecast: the queue, played forward, as eta.h tells it. For the files of core/ only. */
#pragma once
#include "core/forecast/capacity_timeline.h"
#include "core/forecast/eta_limit.h"
#include "core/forecast/eta_turn.h"

struct eta_moment;

#define ETA_LANES_MAX 512u /* queues that are looked at; of more, every so manieth */
#define ETA_FITS_MAX  16u  /* queues that one class is placed on */

struct eta_fit { /* where a class can run */
        uint16_t timelines[ETA_FITS_MAX];
        size_t count;
};
struct forecast {
        struct core *core;
        struct forecast *next; /* of core->plays */
        int64_t now_ms;        /* when it began */
        struct capacity_timeline timelines[ETA_LANES_MAX];
        size_t timeline_count;
        double scale;       /* queues that a timeline stands for */
        double cpus, free;  /* of all queues */
        struct idmap *fits; /* class, by its serial → struct eta_fit */
        struct eta_limits limits;
        struct eta_turns turns;
        struct bucket *until;
        /* forecast.c's own */
        int stage;
        struct queue **queues; /* that may have attempts */
        size_t queue_count, queue_cap, at;
        struct eta_moment *moments;
        size_t moment_count, exact;
        int64_t from_ms;
        unsigned cost; /* of the step */
};

/* Plays the queue as it is now, in pieces, between which the world may go on: queues, limits and requests are
 * seen each as it was when it was looked at. What it finds stands in the turns. With `until`: only up to its
 * turn, which is not taken, and what is free then can be looked up until forecast_free; its class has to
 * stay, and need have no idle members. */
struct forecast *forecast_new(struct core *c, struct bucket *until);
bool forecast_some(struct forecast *x,
                   unsigned budget);    /* tenths of microseconds, about; true: there is more */
void forecast_free(struct forecast *x); /* NULL is fine */
/* For all that are under way. */
void forecast_bucket_gone(struct core *c, const struct bucket *b);
void forecast_request_gone(struct core *c, const struct request *r);
const char *forecast_invariant(const struct core *c); /* NULL: it holds; for core_check */

/* ---- for eta_gang.c */
/* The rest of a bucket: one after the other at the rate at which its places become free, or its limits let
 * them, or its account's turn comes. */
void forecast_rest(struct forecast *x, const struct eta_fit *f, const struct eta_draws *d,
                   struct eta_turn *t);
/* ---- eta_gang.c */
/* Sets: the first one starts when there is room for all of its jobs at a time; those behind it one after the
 * other. One for which there is never room starts nobody knows when. */
void forecast_gangs(struct forecast *x, const struct eta_fit *f, const struct eta_draws *d,
                    struct eta_turn *t);
