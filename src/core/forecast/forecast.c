/* Turns (eta_turn.h) are processed in order: the first few jobs of a bucket are placed where and when there
 * is room. When the flow has come to the jobs behind them, the rest takes a part of these places for as long
 * as it needs, so that other accounts' jobs still find the other part. Buckets far behind are not placed:
 * they follow at the rate of the flow. */
#include "core/forecast/forecast.h"

#include <math.h>

#include "base/mem.h"
#include "classad/match.h"
#include "core/data/cost.h"
#include "core/estimate/estimate.h"
#include "core/forecast/eta.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"
#include "core/model/suits.h"

#define EXACT_MAX 300u /* buckets that are placed; those behind follow at the common rate */
#define STEPS_ALL 32768u
#define STEPS_MAX 2048u
#define STEPS_MIN 128u
#define FAR_MS    (365 * 86400000LL)
#define OPEN_MOST 0.1 /* see simulate_far */

/* ---- resources */

static int by_place(const void *x, const void *y)
{
        const struct queue *a = ((const struct capacity_timeline *)x)->queue,
                           *b = ((const struct capacity_timeline *)y)->queue;
        int order = strcmp(a->agent->name, b->agent->name);

        return order ? order : strcmp(a->name, b->name);
}

/* Lists the queues to simulate; agents and queues exist as long as the core. */
static void find_queues(struct forecast *x)
{
        size_t all = 0, every, at = 0;
        void *value;

        for (size_t i = 0; map_next(x->core->agents, &i, NULL, &value);)
                for (struct queue *q = ((struct core_agent *)value)->queues; q; q = q->next) {
                        bool usable = agent_takes_jobs(q->agent) && q->ad;

                        if (q->agent->refuses || (!usable && q->attempt_count == 0))
                                continue;
                        MEM_GROW(x->queues, x->queue_cap, x->queue_count + 1);
                        x->queues[x->queue_count++] = q;
                        all += usable;
                }
        every = all / ETA_TIMELINES_MAX + 1;
        for (size_t i = 0; i < x->queue_count && x->timeline_count < ETA_TIMELINES_MAX; i++)
                if (agent_takes_jobs(x->queues[i]->agent) && x->queues[i]->ad && at++ % every == 0)
                        x->timelines[x->timeline_count++].queue = x->queues[i];
        if (x->timeline_count > 1)
                qsort(x->timelines, x->timeline_count, sizeof(*x->timelines), by_place);
        x->scale = x->timeline_count ? (double)all / (double)x->timeline_count : 1;
}

static unsigned make_timeline(struct forecast *x)
{
        size_t steps = STEPS_ALL / (x->timeline_count + 1);
        struct capacity_timeline *l = &x->timelines[x->at++];
        unsigned n = timeline_init(x->core, l, l->queue,
                                   steps < STEPS_MIN   ? STEPS_MIN
                                   : steps > STEPS_MAX ? STEPS_MAX
                                                       : steps,
                                   x->guess);

        x->cpus += (double)l->cpus * x->scale;
        x->free += (double)l->steps[0].cpus * x->scale;
        return 10 + 3 * n;
}

/* Evaluation steps, each a tenth of a microsecond: places of a class whose expressions take longer are not
 * all examined. */
#define FIT_STEPS_MAX 50000u

static const struct eta_fit *find_fit(struct forecast *x, const struct job_class *k, int64_t cpus)
{
        struct eta_fit *f = idmap_get(x->fits, k->index.serial);
        uint64_t steps;

        if (f)
                return f;
        steps = x->core->eval.steps_all;
        f = mem_new(struct eta_fit);
        idmap_put(x->fits, k->index.serial, f);
        for (size_t i = 0; i < x->timeline_count && f->count < ETA_FITS_MAX &&
                           x->core->eval.steps_all - steps < FIT_STEPS_MAX;
             i++) {
                struct capacity_timeline *l = &x->timelines[i];

                if (l->cpus < cpus)
                        continue;
                x->cost += l->whole ? 5 : 100;
                if (!l->whole)
                        l->whole = queue_whole_ad(x->core, l->queue);
                if (suits_class(x->core, k, l->queue, l->whole))
                        f->timelines[f->count++] = (uint16_t)i;
        }
        x->cost += (unsigned)(x->core->eval.steps_all - steps);
        return f;
}

/* ---- placing a bucket */

int64_t forecast_held_ms(const struct forecast *x, const struct part *p, const struct queue *q,
                         struct core_cost *cost)
{
        if (x->guess)
                return cost_held_ms(cost);
        cost_set_run(p, q, estimate_shown_ms(x->core, p, estimate_slowness(q), &cost->run_known), cost);
        return cost->run_known ? cost_held_ms(cost) : TIMELINE_EVER;
}

/* Places a job where it ends soonest. Returns its start, or 0. */
static int64_t place(struct forecast *x, const struct eta_fit *f, const struct eta_draws *d,
                     const struct part *p, uint32_t member, struct eta_turn *t)
{
        const struct job_class *k = t->bucket->job_class;
        int64_t from = k->not_before_ms > x->now_ms ? k->not_before_ms : x->now_ms;
        int64_t best_end = INT64_MAX, best_at = 0, best_held = 0, held;
        uint64_t steps = core_steps(x->core);
        struct core_cost best = {0}, cost;
        struct capacity_timeline *where = NULL;

        for (size_t i = 0; i < f->count; i++) {
                struct capacity_timeline *l = &x->timelines[f->timelines[i]];
                int64_t at;

                x->cost += 10 + (unsigned)l->count / 10;
                cost_of(x->core, p, member, l->queue, &cost);
                if (cost.down)
                        continue; /* it is unknown when it will answer */
                cost_without_traffic(&cost);
                held = forecast_held_ms(x, p, l->queue, &cost);
                at = eta_draws_find(d, l, from, p->job_template->cpus, cost_held_ms(&cost));
                if (at && at + cost.total_ms - cost.wait_ms < best_end) {
                        best_end = at + cost.total_ms - cost.wait_ms;
                        best_at = at;
                        best_held = held;
                        where = l;
                        best = cost;
                }
        }
        x->cost += (unsigned)(core_steps(x->core) - steps);
        if (!where)
                return 0;
        timeline_take(where, best_at, p->job_template->cpus, best_held);
        eta_draws_take(d, 1, best_at, best_held);
        t->run_ms = (float)best.run_ms;
        t->open = best_held == TIMELINE_EVER;
        return best_at + cost_input_ms(&best);
}

/* Takes this fraction of each of its queues for `ms`, or for ever. */
static void take_part(struct forecast *x, const struct eta_fit *f, double part, int64_t from, int64_t ms)
{
        double carry = 0;

        for (size_t i = 0; i < f->count; i++) {
                struct capacity_timeline *l = &x->timelines[f->timelines[i]];
                int64_t cpus;

                if (part > 0.99) {
                        int64_t until = ms == TIMELINE_EVER ? ms : from + ms;

                        l->busy_ms = l->busy_ms > until ? l->busy_ms : until;
                        continue;
                }
                carry += part * (double)l->cpus;
                cpus = (int64_t)carry;
                carry -= (double)cpus;
                if (cpus > 0)
                        timeline_take(l, from, cpus, ms);
        }
}

/* Returns how many jobs can run at once, in the end, beside those whose end is not known. *ret_all: and in
 * place of these. */
static double slots_of(const struct forecast *x, const struct eta_fit *f, int64_t cpus, double *ret_all)
{
        double slots = 0, all = 0;

        for (size_t i = 0; i < f->count; i++) {
                const struct capacity_timeline *l = &x->timelines[f->timelines[i]];
                double here = (double)eta_slots(l->queue, cpus),
                       last = (double)l->steps[l->count - 1].cpus / (double)(cpus > 0 ? cpus : 1);

                all += here;
                if (l->busy_ms != TIMELINE_EVER)
                        slots += last < here ? last : here;
        }
        if (f->count == ETA_FITS_MAX) {
                slots *= (double)x->timeline_count / ETA_FITS_MAX;
                all *= (double)x->timeline_count / ETA_FITS_MAX;
        }
        *ret_all = all > 0 ? all * x->scale : 1;
        return slots * x->scale;
}

void forecast_rest(struct forecast *x, const struct eta_fit *f, const struct eta_draws *d, struct eta_turn *t)
{
        const struct bucket *b = t->bucket;
        const struct part *p = request_part_at(b->request, b->part);
        double left = (double)(t->jobs - t->placed), limit = (double)eta_draws_room(d), at_once, ms, all;
        double slots = slots_of(x, f, p->job_template->cpus, &all);
        int64_t held;

        if (slots < 1)
                return;
        at_once = limit < slots ? limit : slots;
        if (!isinf(t->end) && t->end > t->rest && left * t->run_ms / (t->end - t->rest) < at_once)
                at_once = left * t->run_ms / (t->end - t->rest);
        if (t->open && left < at_once)
                at_once = left;
        if (at_once < 0.001)
                at_once = 0.001;
        ms = left * t->run_ms / at_once;
        if (ms > (double)FAR_MS)
                ms = (double)FAR_MS;
        held = t->open ? TIMELINE_EVER : (int64_t)ms;
        /* From the first job to the last one, or to the first one of the last set. */
        t->step_ms = (float)(((double)(t->last_ms - t->start_ms) + ms) /
                             (gang_class(b->job_class) ? left : (double)(t->jobs - 1)));
        take_part(x, f, at_once / all, t->last_ms, held);
        eta_draws_take(d, at_once < limit ? (uint64_t)ceil(at_once) : (uint64_t)limit, t->last_ms, held);
        if (!t->open)
                t->known = t->jobs;
}

/* ---- turns */

static void draws_of(struct forecast *x, const struct eta_fit *f, const struct eta_turn *t,
                     struct eta_draws *ret)
{
        uint64_t steps = core_steps(x->core);

        eta_limits_draws(&x->limits, t->bucket, f->count ? x->timelines[f->timelines[0]].queue : NULL, ret);
        x->cost += (unsigned)(core_steps(x->core) - steps);
}

/* Counts the turn's processors, and whether they are ever free again. */
static void note_asked(struct forecast *x, const struct eta_turn *t, bool open)
{
        x->asked += t->cpus * (double)t->jobs;
        if (open)
                x->open += t->cpus * (double)t->jobs;
}

static void place_first_few(struct forecast *x, const struct eta_fit *f, const struct eta_draws *d,
                            struct eta_turn *t)
{
        const struct bucket *b = t->bucket;
        const struct part *p = request_part_at(b->request, b->part);

        for (uint64_t m = set_first(&b->idle); t->placed < ETA_FIRST_FEW && m != SET_END;
             m = set_next(&b->idle, m + 1)) {
                int64_t at = place(x, f, d, p, (uint32_t)m, t);

                if (!at)
                        return;
                t->known = ++t->placed;
                if (!t->start_ms)
                        t->start_ms = at;
                t->last_ms = at > t->last_ms ? at : t->last_ms;
        }
        if (t->jobs > 1 && t->placed == t->jobs)
                t->step_ms = (float)(t->last_ms - t->start_ms) / (float)(t->jobs - 1);
}

static void simulate_first(struct forecast *x, struct eta_turn *t)
{
        const struct bucket *b = t->bucket;
        const struct part *p = request_part_at(b->request, b->part);
        const struct eta_fit *f = find_fit(x, b->job_class, p->job_template->cpus);
        uint64_t idle = set_count(&b->idle);
        struct eta_draws d;

        t->jobs = idle < t->jobs ? idle : t->jobs; /* some have been matched since it began */
        if (t->jobs == 0)
                return;
        draws_of(x, f, t, &d);
        if (gang_class(b->job_class)) {
                x->cost += 5000;
                forecast_gangs(x, f, &d, t);
        } else {
                place_first_few(x, f, &d, t);
        }
        if (f->count && eta_draws_room(&d) > 0)
                note_asked(x, t, t->open || !t->start_ms);
}

static void simulate_rest(struct forecast *x, struct eta_turn *t)
{
        const struct part *p = request_part_at(t->bucket->request, t->bucket->part);
        const struct eta_fit *f = find_fit(x, t->bucket->job_class, p->job_template->cpus);
        struct eta_draws d;

        if (t->placed < ETA_FIRST_FEW || t->placed >= t->jobs || gang_class(t->bucket->job_class))
                return;
        draws_of(x, f, t, &d);
        forecast_rest(x, f, &d, t);
}

/* Predicts a bucket behind the placed ones: as long after the last of them as the flow says. The flow takes
 * guesses for unknown run times, so it is used only while most of the jobs before it have a known one. */
static void simulate_far(struct forecast *x, struct eta_turn *t, int64_t from, double before)
{
        const struct bucket *b = t->bucket;
        const struct part *p = request_part_at(b->request, b->part);
        bool known;
        int64_t run_ms = estimate_shown_ms(x->core, p, 1, &known);
        struct eta_draws d;

        if (isinf(t->end))
                return;
        note_asked(x, t, !known && !x->guess);
        if (x->open > OPEN_MOST * x->asked)
                return;
        t->run_ms = (float)run_ms;
        t->known = known || x->guess ? t->jobs : 1;
        t->start_ms = from + (int64_t)(t->start - before);
        t->step_ms = (float)((t->end - t->start) / (double)t->jobs);
        eta_limits_draws(&x->limits, b, NULL, &d);
        for (size_t i = 0; i < d.count; i++) { /* one after the other, in each limit */
                struct capacity_timeline *pool = d.v[i].pool;
                int64_t at = timeline_find(pool, t->start_ms, d.v[i].units, run_ms);
                double step = (double)run_ms * (double)d.v[i].units / (double)(pool->cpus ? pool->cpus : 1);

                if (!at) {
                        t->start_ms = 0;
                        return;
                }
                t->start_ms = at;
                t->step_ms = (float)step > t->step_ms ? (float)step : t->step_ms;
                pool->busy_ms = at + (int64_t)(step * (double)t->jobs);
        }
}

struct eta_moment {
        double at;
        struct eta_turn *turn;
        uint32_t nth; /* index of the turn in the order */
        bool rest;
};

static int by_moment(const void *x, const void *y)
{
        const struct eta_moment *a = x, *b = y;

        if (a->at != b->at)
                return a->at < b->at ? -1 : 1;
        if (a->rest != b->rest)
                return a->rest ? 1 : -1;
        return (a->nth > b->nth) - (a->nth < b->nth);
}

/* Lists the moments in order: the first few jobs of a bucket, and the rest, each have one. */
static void find_moments(struct forecast *x)
{
        struct eta_turns *t = &x->turns;

        x->exact = t->count < EXACT_MAX ? t->count : EXACT_MAX;
        x->moments = mem_array(NULL, 2 * x->exact + 1, sizeof(*x->moments));
        for (size_t i = 0; i < x->exact; i++) {
                struct eta_turn *e = &t->v[t->order[i]];

                x->moments[x->moment_count++] = (struct eta_moment){e->start, e, (uint32_t)i, false};
                x->moments[x->moment_count++] = (struct eta_moment){e->rest, e, (uint32_t)i, true};
        }
        if (x->moment_count)
                qsort(x->moments, x->moment_count, sizeof(*x->moments), by_moment);
        x->from_ms = x->now_ms;
}

static bool can_simulate(const struct eta_turn *t)
{
        return t->bucket && t->bucket->job_class;
}

/* ---- slices */

enum stage { QUEUES, TIMELINES, TURNS, LIMITS, EXACT, FAR, OVER };

static void enter(struct forecast *x, enum stage stage)
{
        x->stage = (int)stage;
        x->at = 0;
}

static void step_limits(struct forecast *x)
{
        bool some = x->turns.request_limits || limits_bind(x->core->limits);

        if (some && x->at < x->queue_count) {
                x->cost += 1 + 5 * eta_limits_note(&x->limits, x->queues[x->at++]);
                return;
        }
        eta_limits_ready(&x->limits);
        find_moments(x);
        enter(x, EXACT);
}

static void step_exact(struct forecast *x)
{
        struct eta_turn *t;

        if (x->at == x->moment_count) {
                enter(x, FAR);
                x->at = x->exact;
                return;
        }
        t = x->moments[x->at].turn;
        if (x->until && t->bucket == x->until) {
                enter(x, OVER);
                return;
        }
        if (can_simulate(t) && x->moments[x->at].rest)
                simulate_rest(x, t);
        else if (can_simulate(t))
                simulate_first(x, t);
        x->from_ms = t->start_ms > x->from_ms ? t->start_ms : x->from_ms;
        x->at++;
        x->cost += 20;
}

static void step_far(struct forecast *x)
{
        struct eta_turns *s = &x->turns;
        struct eta_turn *t = x->at < s->count ? &s->v[s->order[x->at++]] : NULL;

        x->cost += 5;
        if (!t || (x->until && t->bucket == x->until))
                enter(x, OVER);
        else if (can_simulate(t))
                simulate_far(x, t, x->from_ms, s->v[s->order[x->exact]].start);
}

static void forecast_step(struct forecast *x)
{
        switch ((enum stage)x->stage) {
        case QUEUES:
                find_queues(x);
                x->cost += (unsigned)x->queue_count;
                enter(x, TIMELINES);
                break;
        case TIMELINES:
                if (x->at < x->timeline_count)
                        x->cost += make_timeline(x);
                else
                        enter(x, TURNS);
                break;
        case TURNS: {
                unsigned cost = eta_turns_step(&x->turns, x->cpus, x->free);

                x->cost += cost;
                if (cost == 0)
                        enter(x, LIMITS);
                break;
        }
        case LIMITS: step_limits(x); break;
        case EXACT: step_exact(x); break;
        case FAR: step_far(x); break;
        case OVER: break;
        }
}

bool forecast_some(struct forecast *x, unsigned budget)
{
        for (x->cost = 0; x->cost < budget && x->stage != OVER;)
                forecast_step(x);
        return x->stage != OVER;
}

struct forecast *forecast_new(struct core *c, struct bucket *until, bool guess)
{
        struct forecast *x = mem_new(struct forecast);

        x->core = c;
        x->now_ms = c->now_ms;
        x->fits = idmap_new();
        x->until = until;
        x->guess = guess;
        eta_limits_init(c, &x->limits, guess);
        eta_turns_begin(&x->turns, c, until);
        x->next = c->forecasts;
        c->forecasts = x;
        return x;
}

void forecast_free(struct forecast *x)
{
        struct forecast **at;
        void *value;

        if (!x)
                return;
        for (at = &x->core->forecasts; *at != x; at = &(*at)->next)
                ;
        *at = x->next;
        for (size_t i = 0; i < x->timeline_count; i++)
                timeline_deinit(&x->timelines[i]);
        for (size_t i = 0; idmap_next(x->fits, &i, NULL, &value);)
                free(value);
        idmap_free(x->fits);
        eta_limits_deinit(&x->limits);
        eta_turns_end(&x->turns);
        free(x->queues);
        free(x->moments);
        free(x);
}

void forecast_bucket_gone(struct core *c, const struct bucket *b)
{
        for (struct forecast *x = c->forecasts; x; x = x->next)
                eta_turns_bucket_gone(&x->turns, b);
}

void forecast_request_gone(struct core *c, const struct request *r)
{
        for (struct forecast *x = c->forecasts; x; x = x->next)
                eta_turns_request_gone(&x->turns, r);
}

const char *forecast_invariant(const struct core *c)
{
        struct idmap *there = idmap_new();
        bool lost = false;

        for (struct request *r = c->forecasts ? c->requests->first : NULL; r; r = r->next)
                for (size_t i = 0; i < r->bucket_count; i++)
                        idmap_put(there, (uintptr_t)r->buckets[i], r);
        for (const struct forecast *x = c->forecasts; x; x = x->next)
                for (size_t i = x->until != NULL; i < x->turns.count; i++) {
                        const struct bucket *b = x->turns.v[i].bucket;

                        lost |= b && !idmap_get(there, (uintptr_t)b);
                }
        idmap_free(there);
        return lost ? "a bucket that is gone is still to come to its turn" : NULL;
}
