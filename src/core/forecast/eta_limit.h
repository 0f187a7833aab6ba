/* eta_limit: what limits will still allow, for the files of eta: for each that has a number its units as they
 * become free, a timeline each (capacity_timeline.h). For the files of core/ only.
 *
 * Known are limits that jobs name, those of their stores and of their quality of service, the jobs that their
 * owner may have running, and those of the request that may be under way. One whose limits depend on the
 * place has those of the place that is asked for first.
 */
#pragma once
#include "core/accounts/limit.h"
#include "core/model/names.h"

struct capacity_timeline;

#define ETA_DRAWS_MAX (LIMIT_DRAWS_MAX + 66 + 2) /* its own, stores and a quality; owner and request */

struct eta_limits {
        struct core *core;
        int64_t now_ms;
        bool ready;             /* all attempts have been noted */
        struct idmap *pools;    /* struct limit → struct timeline */
        struct idmap *requests; /* request → struct timeline */
        struct draws **held;    /* so that no limit of these goes while its timeline is known */
        size_t held_count, held_cap;
};
struct eta_draw {
        struct capacity_timeline *pool;
        int64_t units;
};
struct eta_draws {
        struct eta_draw v[ETA_DRAWS_MAX];
        size_t count;
        bool never; /* what the job says is no list of limits */
};

/* As they are now, when eta_limits_note was called for each queue and then eta_limits_ready; the calls may
 * come in several turns. eta_limits_note: what the queue's attempts draw and will give back; returns how many
 * it looked at. */
void eta_limits_init(struct core *c, struct eta_limits *l);
unsigned eta_limits_note(struct eta_limits *l, const struct queue *q);
void eta_limits_ready(struct eta_limits *l);
void eta_limits_deinit(struct eta_limits *l);
/* What each job of the bucket draws at q of limits that have a number; q NULL: but for those that depend on
 * the place. */
void eta_limits_draws(struct eta_limits *l, const struct bucket *b, const struct queue *q,
                      struct eta_draws *ret);
/* How many of its jobs these allow at once, by themselves; UINT64_MAX: any number. */
uint64_t eta_draws_room(const struct eta_draws *d);
/* When, from `from` on, a job finds room in the timeline and in all limits; 0: never. */
int64_t eta_draws_find(const struct eta_draws *d, const struct capacity_timeline *l, int64_t from,
                       int64_t cpus, int64_t run_ms);
/* Takes what `jobs` of them draw at once, for so long. */
void eta_draws_take(const struct eta_draws *d, uint64_t jobs, int64_t from, int64_t run_ms);
