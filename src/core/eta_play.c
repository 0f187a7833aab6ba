/* Turns (eta_turn.h) are taken in their order: the first few jobs of a bucket are placed where and when there
 * is room; when the flow has come to those behind them, the rest takes a part of these places for as long as
 * it needs, so that other accounts' jobs still find the other part. Buckets far behind are not placed: they
 * follow at the rate of the flow.
 */
#include "core/eta_play.h"

#include <math.h>

#include "base/mem.h"
#include "classad/match.h"
#include "core/gang.h"

#define EXACT_MAX 300u /* buckets that are placed; those behind follow at the common rate */
#define STEPS_ALL 32768u
#define STEPS_MAX 2048u
#define STEPS_MIN 128u
#define FAR_MS    (365 * 86400000LL)

/* ---- what there is */

static int by_place(const void *x, const void *y)
{
        const struct queue *a = ((const struct lane *)x)->queue, *b = ((const struct lane *)y)->queue;
        int order = strcmp(a->agent->name, b->agent->name);

        return order ? order : strcmp(a->name, b->name);
}

static void make_lanes(struct eta_play *x)
{
        size_t all = 0, every, at = 0, steps;
        void *value;

        for (size_t i = 0; map_next(x->core->agents, &i, NULL, &value);)
                for (const struct queue *q = ((struct core_agent *)value)->queues; q; q = q->next)
                        all += q->agent->connected && q->ad;
        every = all / ETA_LANES_MAX + 1;
        steps = STEPS_ALL / (all / every + 1);
        steps = steps < STEPS_MIN ? STEPS_MIN : steps > STEPS_MAX ? STEPS_MAX : steps;
        for (size_t i = 0; map_next(x->core->agents, &i, NULL, &value);)
                for (struct queue *q = ((struct core_agent *)value)->queues; q; q = q->next)
                        if (q->agent->connected && q->ad && at++ % every == 0 &&
                            x->lane_count < ETA_LANES_MAX)
                                lane_init(x->core, &x->lanes[x->lane_count++], q, steps);
        if (x->lane_count > 1)
                qsort(x->lanes, x->lane_count, sizeof(*x->lanes), by_place);
        x->scale = x->lane_count ? (double)all / (double)x->lane_count : 1;
        for (size_t i = 0; i < x->lane_count; i++) {
                x->cpus += (double)x->lanes[i].cpus * x->scale;
                x->free += (double)x->lanes[i].steps[0].cpus * x->scale;
        }
}

void eta_play_begin(struct core *c, struct eta_play *x)
{
        *x = (struct eta_play){.core = c, .fits = idmap_new()};
        make_lanes(x);
        eta_limits_init(c, &x->limits);
}

void eta_play_end(struct eta_play *x)
{
        void *value;

        for (size_t i = 0; i < x->lane_count; i++)
                lane_deinit(&x->lanes[i]);
        for (size_t at = 0; idmap_next(x->fits, &at, NULL, &value);)
                free(value);
        idmap_free(x->fits);
        eta_limits_deinit(&x->limits);
}

bool eta_suits(struct core *c, const struct class *k, const struct queue *q, const struct ad *whole)
{
        bool yes;

        if (!queue_allows_owner(q, k->owner) || k->leaks || (k->labels & ~q->agent->cleared))
                return false;
        yes = match_one_way(&c->eval, k->ad, whole) &&
              (q->job_specific || match_one_way(&c->eval, whole, k->ad));
        eval_reset(&c->eval);
        return yes;
}

static const struct eta_fit *find_fit(struct eta_play *x, const struct class *k, int64_t cpus)
{
        struct eta_fit *f = idmap_get(x->fits, (uintptr_t)k);

        if (f)
                return f;
        f = mem_new(struct eta_fit);
        idmap_put(x->fits, (uintptr_t)k, f);
        for (size_t i = 0; i < x->lane_count && f->count < ETA_FITS_MAX; i++) {
                struct lane *l = &x->lanes[i];

                if (l->cpus < cpus)
                        continue;
                if (!l->whole)
                        l->whole = queue_whole_ad(x->core, l->queue);
                if (eta_suits(x->core, k, l->queue, l->whole))
                        f->lanes[f->count++] = (uint16_t)i;
        }
        return f;
}

/* ---- one job, and those behind it */

/* Places it where it ends soonest; when it starts, or 0. */
static int64_t place(struct eta_play *x, const struct eta_fit *f, const struct eta_draws *d,
                     const struct part *p, uint32_t member, struct eta_turn *t)
{
        const struct class *k = t->bucket->class;
        int64_t from = k->not_before_ms > x->core->now_ms ? k->not_before_ms : x->core->now_ms;
        int64_t best_end = INT64_MAX, best_at = 0;
        struct core_cost best = {0}, cost;
        struct lane *where = NULL;

        for (size_t i = 0; i < f->count; i++) {
                struct lane *l = &x->lanes[f->lanes[i]];
                int64_t at;

                cost_of(x->core, p, member, l->queue, &cost);
                at = eta_draws_find(d, l, from, p->template->cpus, cost_held_ms(&cost));
                if (at && at + cost.total_ms - cost.wait_ms < best_end) {
                        best_end = at + cost.total_ms - cost.wait_ms;
                        best_at = at;
                        where = l;
                        best = cost;
                }
        }
        if (!where)
                return 0;
        lane_take(where, best_at, p->template->cpus, cost_held_ms(&best));
        eta_draws_take(d, 1, best_at, cost_held_ms(&best));
        t->run_ms = (float)best.run_ms;
        return best_at + best.fetch_ms + best.image_ms;
}

/* So much of each of its queues is taken for so long. */
static void take_part(struct eta_play *x, const struct eta_fit *f, double part, int64_t from, int64_t ms)
{
        double carry = 0;

        for (size_t i = 0; i < f->count; i++) {
                struct lane *l = &x->lanes[f->lanes[i]];
                int64_t cpus;

                if (part > 0.99) {
                        l->busy_ms = l->busy_ms > from + ms ? l->busy_ms : from + ms;
                        continue;
                }
                carry += part * (double)l->cpus;
                cpus = (int64_t)carry;
                carry -= (double)cpus;
                if (cpus > 0)
                        lane_take(l, from, cpus, ms);
        }
}

void eta_play_rest(struct eta_play *x, const struct eta_fit *f, const struct eta_draws *d, struct eta_turn *t)
{
        const struct bucket *b = t->bucket;
        const struct part *p = &b->request->parts[b->part];
        double slots = 0, left = (double)(t->jobs - t->placed), at_once, limit = (double)eta_draws_room(d),
               ms;

        for (size_t i = 0; i < f->count; i++)
                slots += (double)eta_slots(x->lanes[f->lanes[i]].queue, p->template->cpus);
        if (f->count == ETA_FITS_MAX)
                slots *= (double)x->lane_count / ETA_FITS_MAX;
        slots = slots > 0 ? slots * x->scale : 1;
        at_once = limit < slots ? limit : slots;
        if (!isinf(t->end) && t->end > t->rest && left * t->run_ms / (t->end - t->rest) < at_once)
                at_once = left * t->run_ms / (t->end - t->rest);
        if (at_once < 0.001)
                at_once = 0.001;
        ms = left * t->run_ms / at_once;
        if (ms > (double)FAR_MS)
                ms = (double)FAR_MS;
        /* From the first one to the last one, or to the first one of the last set. */
        t->step_ms = (float)(((double)(t->last_ms - t->start_ms) + ms) /
                             (gang_class(b->class) ? left : (double)(t->jobs - 1)));
        take_part(x, f, at_once / slots, t->last_ms, (int64_t)ms);
        eta_draws_take(d, at_once < limit ? (uint64_t)ceil(at_once) : (uint64_t)limit, t->last_ms,
                       (int64_t)ms);
}

/* ---- turns */

static void draws_of(struct eta_play *x, const struct eta_fit *f, const struct eta_turn *t,
                     struct eta_draws *ret)
{
        eta_limits_draws(&x->limits, t->bucket, f->count ? x->lanes[f->lanes[0]].queue : NULL, ret);
}

static void play_first(struct eta_play *x, struct eta_turn *t)
{
        const struct bucket *b = t->bucket;
        const struct part *p = &b->request->parts[b->part];
        const struct eta_fit *f = find_fit(x, b->class, p->template->cpus);
        struct eta_draws d;

        draws_of(x, f, t, &d);
        if (gang_class(b->class)) {
                eta_play_sets(x, f, &d, t);
                return;
        }
        for (uint64_t m = set_first(&b->idle); t->placed < ETA_FIRST_FEW && m != SET_END;
             m = set_next(&b->idle, m + 1)) {
                int64_t at = place(x, f, &d, p, (uint32_t)m, t);

                if (!at)
                        return;
                t->placed++;
                if (!t->start_ms)
                        t->start_ms = at;
                t->last_ms = at > t->last_ms ? at : t->last_ms;
        }
        if (t->jobs > 1 && t->placed == t->jobs)
                t->step_ms = (float)(t->last_ms - t->start_ms) / (float)(t->jobs - 1);
}

static void play_rest(struct eta_play *x, struct eta_turn *t)
{
        const struct part *p = &t->bucket->request->parts[t->bucket->part];
        const struct eta_fit *f = find_fit(x, t->bucket->class, p->template->cpus);
        struct eta_draws d;

        if (t->placed < ETA_FIRST_FEW || t->placed >= t->jobs || gang_class(t->bucket->class))
                return;
        draws_of(x, f, t, &d);
        eta_play_rest(x, f, &d, t);
}

/* A bucket behind those that were placed: as long after the last of them as the flow says. */
static void play_far(struct eta_play *x, struct eta_turn *t, int64_t from, double before)
{
        const struct bucket *b = t->bucket;
        const struct part *p = &b->request->parts[b->part];
        int64_t run_ms = estimate_run_ms(x->core, p, NULL, NULL);
        struct eta_draws d;

        if (isinf(t->end))
                return;
        t->run_ms = (float)run_ms;
        t->start_ms = from + (int64_t)(t->start - before);
        t->step_ms = (float)((t->end - t->start) / (double)t->jobs);
        eta_limits_draws(&x->limits, b, NULL, &d);
        for (size_t i = 0; i < d.count; i++) { /* one after the other, in each limit */
                struct lane *pool = d.v[i].pool;
                int64_t at = lane_find(pool, t->start_ms, d.v[i].units, run_ms);
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

struct moment {
        double at;
        struct eta_turn *turn;
        bool rest;
};

static int by_moment(const void *x, const void *y)
{
        const struct moment *a = x, *b = y;

        if (a->at != b->at)
                return a->at < b->at ? -1 : 1;
        if (a->rest != b->rest)
                return a->rest ? 1 : -1;
        return (a->turn > b->turn) - (a->turn < b->turn);
}

size_t eta_play(struct eta_play *x, struct bucket *until, struct eta_turn **ret)
{
        struct moment moments[2 * EXACT_MAX] = {{0}};
        struct eta_turn *v;
        size_t n = eta_turns(x->core, x->cpus, x->free, until, &v), exact = n < EXACT_MAX ? n : EXACT_MAX;
        int64_t from = x->core->now_ms;

        for (size_t i = 0; i < exact; i++) {
                moments[2 * i] = (struct moment){v[i].start, &v[i], false};
                moments[2 * i + 1] = (struct moment){v[i].rest, &v[i], true};
        }
        if (exact)
                qsort(moments, 2 * exact, sizeof(*moments), by_moment);
        *ret = v;
        for (size_t i = 0; i < 2 * exact; i++) {
                struct eta_turn *t = moments[i].turn;

                if (until && t->bucket == until)
                        return n;
                if (moments[i].rest)
                        play_rest(x, t);
                else
                        play_first(x, t);
                from = t->start_ms > from ? t->start_ms : from;
        }
        for (size_t i = exact; i < n && (!until || v[i].bucket != until); i++)
                play_far(x, &v[i], from, v[exact].start);
        return n;
}
