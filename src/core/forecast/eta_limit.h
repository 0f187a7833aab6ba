/* eta_limit: predicts when units of limits become free, as one timeline (capacity_timeline.h) for each limit
 * with a number. For the files of core/ only.
 *
 * Included are limits that jobs name, those of their stores and of their quality of service, the limit on
 * their owner's running jobs, and that on a request's active jobs. A job whose limits depend on the place is
 * assigned those of the first place that is asked for.
 */
#pragma once
#include "core/accounts/limit.h"
#include "core/model/names.h"

struct capacity_timeline;

#define ETA_DRAWS_MAX (LIMIT_DRAWS_MAX + 66 + 2) /* its own, stores and a quality; owner and request */

struct eta_limits {
        struct core *core;
        int64_t now_ms;
        bool guess;             /* as for timeline_init */
        bool ready;             /* all attempts have been noted */
        struct idmap *pools;    /* struct limit → struct timeline */
        struct idmap *requests; /* request → struct timeline */
        struct draws **held;    /* references that keep the limits alive while they have timelines */
        size_t held_count, held_cap;
};
struct eta_draw {
        struct capacity_timeline *pool;
        int64_t units;
};
struct eta_draws {
        struct eta_draw v[ETA_DRAWS_MAX];
        size_t count;
        bool never; /* the job's list of limits is invalid */
};

/* Build the timelines: eta_limits_init, eta_limits_note for each queue, then eta_limits_ready; the calls may
 * be spread over several turns. eta_limits_note records what the queue's attempts draw and will free, and
 * returns the number of attempts examined. */
void eta_limits_init(struct core *c, struct eta_limits *l, bool guess);
unsigned eta_limits_note(struct eta_limits *l, const struct queue *q);
void eta_limits_ready(struct eta_limits *l);
void eta_limits_deinit(struct eta_limits *l);
/* Computes what each job of the bucket draws at q from limits with a number. q NULL: without limits that
 * depend on the place. */
void eta_limits_draws(struct eta_limits *l, const struct bucket *b, const struct queue *q,
                      struct eta_draws *ret);
/* Returns how many jobs these draws allow at once; UINT64_MAX: any number. */
uint64_t eta_draws_room(const struct eta_draws *d);
/* Returns the earliest time from `from` on at which the timeline and all limits have room for a job; 0:
 * never. */
int64_t eta_draws_find(const struct eta_draws *d, const struct capacity_timeline *l, int64_t from,
                       int64_t cpus, int64_t run_ms);
/* Takes the units that `jobs` jobs draw at once, for run_ms. */
void eta_draws_take(const struct eta_draws *d, uint64_t jobs, int64_t from, int64_t run_ms);
