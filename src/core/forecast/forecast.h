/* forecast: the simulation of the queue that eta.h describes. For the files of core/ only. */
#pragma once
#include "core/forecast/capacity_timeline.h"
#include "core/forecast/eta_limit.h"
#include "core/forecast/eta_turn.h"

struct core_cost;
struct eta_moment;

#define ETA_TIMELINES_MAX 512u /* queues that are looked at; of more, every so manieth */
#define ETA_FITS_MAX      16u  /* queues that one class is placed on */

struct eta_fit { /* timelines at which a class can run */
        uint16_t timelines[ETA_FITS_MAX];
        size_t count;
};
struct forecast {
        struct core *core;
        struct forecast *next; /* in core->forecasts */
        int64_t now_ms;        /* time at which the simulation began */
        bool guess;
        struct capacity_timeline timelines[ETA_TIMELINES_MAX];
        size_t timeline_count;
        double scale;      /* number of queues that a timeline stands for */
        double cpus, free; /* sums over all queues */
        /* Processors that the jobs placed so far asked for, and those of jobs whose end is not known. */
        double asked, open;
        struct idmap *fits; /* serial of a class → struct eta_fit */
        struct eta_limits limits;
        struct eta_turns turns;
        struct bucket *until;
        /* forecast.c's own */
        int stage;
        struct queue **queues; /* queues that may have attempts */
        size_t queue_count, queue_cap, at;
        struct eta_moment *moments;
        size_t moment_count, exact;
        int64_t from_ms;
        unsigned cost; /* work of the current step */
};

/* Simulates the queue in slices, between which the world may change: queues, limits and requests are used as
 * they were when they were read. The results are in `turns`. With `until` the simulation stops before that
 * bucket's turn, and the free resources at that time can be looked up until forecast_free; the bucket's
 * class must stay, but need not have idle members.
 *
 * A job whose run time is not known (estimate_shown_ms) holds its place for ever, so that starts which would
 * depend on its end are not known either. With `guess`, for decisions, the time of other programs stands in.
 */
struct forecast *forecast_new(struct core *c, struct bucket *until, bool guess);
bool forecast_some(struct forecast *x,
                   unsigned budget);    /* budget: about tenths of microseconds; true: there is more */
void forecast_free(struct forecast *x); /* NULL is fine */
/* A bucket or request is removed: updates all simulations in progress. */
void forecast_bucket_gone(struct core *c, const struct bucket *b);
void forecast_request_gone(struct core *c, const struct request *r);
const char *forecast_invariant(const struct core *c); /* NULL: it holds; for core_check */

/* Returns how long a job of the part, with that cost at q, holds its place; TIMELINE_EVER: not known. The
 * cost's run time and price become those that the forecast uses. */
int64_t forecast_held_ms(const struct forecast *x, const struct part *p, const struct queue *q,
                         struct core_cost *cost);

/* ---- for eta_gang.c */
/* Predicts the rest of a bucket: one job after the other at the rate at which its places become free, its
 * limits allow, or its account has turns. */
void forecast_rest(struct forecast *x, const struct eta_fit *f, const struct eta_draws *d,
                   struct eta_turn *t);
/* ---- eta_gang.c */
/* Predicts sets: the first one starts when all of its jobs have room at one time, those behind it one after
 * the other. A set that never has room has no predicted start. */
void forecast_gangs(struct forecast *x, const struct eta_fit *f, const struct eta_draws *d,
                    struct eta_turn *t);
