#include "core/forecast/eta_limit.h"

#include "base/mem.h"
#include "core/estimate/estimate.h"
#include "core/fairness/charge.h"
#include "core/forecast/capacity_timeline.h"
#include "core/model/core_parts.h"

#define STEPS_MAX 256u
#define TRIES     32u /* tries to find a time at which all have room; after that the last time is used */

/* Returns the timeline of a limit. The units in use are those noted, plus `used`. */
static struct capacity_timeline *pool_get(struct eta_limits *l, struct idmap *in, uint64_t key, int64_t max,
                                          int64_t used)
{
        struct capacity_timeline *pool = idmap_get(in, key);

        if (pool)
                return pool;
        pool = mem_new(struct capacity_timeline);
        timeline_begin(pool, l->now_ms, max - used, STEPS_MAX);
        pool->cpus = max;
        idmap_put(in, key, pool);
        if (l->ready)
                timeline_ready(pool, max);
        return pool;
}

static struct capacity_timeline *pool_of(struct eta_limits *l, const struct limit *x)
{
        return x && x->max != LIMIT_NONE ? pool_get(l, l->pools, (uintptr_t)x, x->max, 0) : NULL;
}

/* Returns the timeline of a request's limit on active jobs. Some active jobs wait to run again, and take
 * nothing more when they do. */
static struct capacity_timeline *request_pool(struct eta_limits *l, const struct request *r,
                                              const struct part *p)
{
        uint64_t under_way = r->jobs ? idmap_count(r->jobs) - set_count(&request_cold(r)->left) : 0;
        uint64_t wait = under_way > r->active ? under_way - r->active : 0;

        if (!p->job_template || p->job_template->jobs_max == INT64_MAX)
                return NULL;
        return pool_get(l, l->requests, r->id, p->job_template->jobs_max, (int64_t)wait);
}

static void draw(struct capacity_timeline *pool, int64_t end_ms, int64_t units)
{
        if (!pool)
                return;
        pool->steps[0].cpus -= units;
        if (end_ms)
                timeline_ends(pool, end_ms, units);
}

/* Keeps a reference to the draws, so that their limits exist as long as their timelines. */
static void hold(struct eta_limits *l, struct draws *draws)
{
        MEM_GROW(l->held, l->held_cap, l->held_count + 1);
        l->held[l->held_count++] = draws;
}

static void note_attempt(struct eta_limits *l, struct job *j, int64_t times)
{
        struct request *r = j->request;
        int64_t end_ms = estimate_forecast_end_ms(l->core, j, l->guess);
        size_t known = idmap_count(l->pools);

        draw(pool_of(l, charge_user(r)), end_ms, times);
        draw(request_pool(l, r, request_part(r, j->member, NULL)), end_ms, times);
        for (size_t i = 0; j->draws && i < j->draws->count; i++)
                draw(pool_of(l, j->draws->v[i].limit), end_ms, times * j->draws->v[i].units);
        if (j->draws && idmap_count(l->pools) > known)
                hold(l, draws_ref(j->draws));
}

unsigned eta_limits_note(struct eta_limits *l, const struct queue *q)
{
        struct timeline_sample s = timeline_sample_of(q);

        for (; s.job; timeline_sample_next(&s))
                note_attempt(l, s.job, s.times);
        return s.at;
}

void eta_limits_ready(struct eta_limits *l)
{
        void *value;

        for (size_t at = 0; idmap_next(l->pools, &at, NULL, &value);)
                timeline_ready(value, ((struct capacity_timeline *)value)->cpus);
        for (size_t at = 0; idmap_next(l->requests, &at, NULL, &value);)
                timeline_ready(value, ((struct capacity_timeline *)value)->cpus);
        l->ready = true;
}

void eta_limits_init(struct core *c, struct eta_limits *l, bool guess)
{
        *l = (struct eta_limits){.core = c,
                                 .now_ms = c->now_ms,
                                 .guess = guess,
                                 .pools = idmap_new(),
                                 .requests = idmap_new()};
}

static void pools_free(struct idmap *pools)
{
        void *value;

        for (size_t at = 0; pools && idmap_next(pools, &at, NULL, &value);) {
                timeline_deinit(value);
                free(value);
        }
        idmap_free(pools);
}

void eta_limits_deinit(struct eta_limits *l)
{
        pools_free(l->pools);
        pools_free(l->requests);
        for (size_t i = 0; i < l->held_count; i++)
                draws_unref(l->core->limits, l->held[i]);
        free(l->held);
        *l = (struct eta_limits){0};
}

static void add_draw(struct eta_draws *d, struct capacity_timeline *pool, int64_t units)
{
        if (pool && d->count < ETA_DRAWS_MAX)
                d->v[d->count++] = (struct eta_draw){pool, units};
}

void eta_limits_draws(struct eta_limits *l, const struct bucket *b, const struct queue *q,
                      struct eta_draws *ret)
{
        struct core *c = l->core;
        const struct job_class *k = b->job_class;
        struct draws *draws = NULL;

        ret->count = 0; /* only the count: there are many buckets */
        ret->never = k->draws_bad;
        if ((q || !k->draws_vary) && charge_draws(c, k, q, &draws, NULL) != 0) {
                ret->never = true;
                return;
        }
        for (size_t i = 0; draws && i < draws->count; i++)
                add_draw(ret, pool_of(l, draws->v[i].limit), draws->v[i].units);
        add_draw(ret, pool_of(l, k->user), 1);
        add_draw(ret, request_pool(l, b->request, request_part_at(b->request, b->part)), 1);
        if (draws)
                hold(l, draws);
        eval_reset(&c->eval);
}

uint64_t eta_draws_room(const struct eta_draws *d)
{
        uint64_t room = UINT64_MAX;

        for (size_t i = 0; i < d->count; i++) {
                int64_t here = d->v[i].pool->cpus / d->v[i].units;

                if (here < 0)
                        here = 0;
                room = (uint64_t)here < room ? (uint64_t)here : room;
        }
        return d->never ? 0 : room;
}

int64_t eta_draws_find(const struct eta_draws *d, const struct capacity_timeline *l, int64_t from,
                       int64_t cpus, int64_t run_ms)
{
        int64_t at = from;

        for (unsigned tries = 0; tries < TRIES && !d->never; tries++) {
                int64_t first = at = timeline_find(l, at, cpus, run_ms);

                for (size_t i = 0; i < d->count && at; i++)
                        at = timeline_find(d->v[i].pool, at, d->v[i].units, run_ms);
                if (at == first) /* or never */
                        return at;
                if (!at)
                        return 0;
        }
        return d->never ? 0 : at;
}

void eta_draws_take(const struct eta_draws *d, uint64_t jobs, int64_t from, int64_t run_ms)
{
        for (size_t i = 0; i < d->count; i++)
                timeline_take(d->v[i].pool, from, d->v[i].units * (int64_t)jobs, run_ms);
}
