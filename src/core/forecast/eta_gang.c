/* Predicts the starts of gangs. */
#include "base/mem.h"
#include "core/data/cost.h"
#include "core/forecast/eta.h"
#include "core/forecast/forecast.h"
#include "core/gang/gang.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"

#define GANG_TIMES 512u /* most times at which room for a gang is searched */

/* Finds, among the suitable queues, the company that has room for the most jobs of a gang. */
static void best_company(const struct forecast *x, const struct job_class *k, int64_t cpus,
                         const struct eta_fit *all, struct eta_fit *ret, uint64_t *ret_slots)
{
        *ret_slots = 0;
        for (size_t i = 0; i < all->count; i++) {
                struct buf BUF_CLEANUP name = {.max = 1024}, other = {.max = 1024};
                struct eta_fit some = {0};
                uint64_t slots = 0;

                if (!gang_company(x->core, k, x->timelines[all->timelines[i]].queue, &name))
                        continue;
                for (size_t j = 0; j < all->count; j++) {
                        const struct queue *q = x->timelines[all->timelines[j]].queue;

                        buf_reset(&other);
                        if (!gang_company(x->core, k, q, &other) ||
                            !str_eq(buf_view(&name), buf_view(&other)))
                                continue;
                        some.timelines[some.count++] = all->timelines[j];
                        slots += eta_slots(q, cpus);
                }
                if (slots > *ret_slots) {
                        *ret_slots = slots;
                        *ret = some;
                }
        }
        eval_reset(&x->core->eval);
}

/* Takes room, for held_ms, for `size` jobs at once; false: there is not enough for run_ms, and nothing is
 * taken. */
static bool take_set(struct forecast *x, const struct eta_fit *f, uint64_t size, int64_t cpus, int64_t from,
                     int64_t run_ms, int64_t held_ms)
{
        uint64_t room = 0;

        for (size_t i = 0; i < f->count; i++)
                room += (uint64_t)(timeline_free(&x->timelines[f->timelines[i]], from, run_ms) / cpus);
        if (room < size)
                return false;
        for (size_t i = 0; i < f->count && size > 0; i++) {
                struct capacity_timeline *l = &x->timelines[f->timelines[i]];
                uint64_t here = (uint64_t)(timeline_free(l, from, run_ms) / cpus);

                here = here < size ? here : size;
                if (here)
                        timeline_take(l, from, cpus * (int64_t)here, held_ms);
                size -= here;
        }
        return true;
}

static bool limits_allow(const struct eta_draws *d, uint64_t size, int64_t from, int64_t run_ms)
{
        for (size_t i = 0; i < d->count; i++)
                if (timeline_free(d->v[i].pool, from, run_ms) < d->v[i].units * (int64_t)size)
                        return false;
        return true;
}

static int eta_gang_by_number(const void *x, const void *y)
{
        int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

        return (a > b) - (a < b);
}

/* Lists the times at which something becomes free at one of the queues, or of the limits. */
static size_t set_times(const struct forecast *x, const struct eta_fit *f, const struct eta_draws *d,
                        int64_t times[GANG_TIMES])
{
        size_t n = 0;

        times[n++] = x->now_ms;
        for (size_t i = 0; i < f->count; i++) {
                const struct capacity_timeline *l = &x->timelines[f->timelines[i]];

                if (n < GANG_TIMES && l->busy_ms > x->now_ms)
                        times[n++] = l->busy_ms;
                for (size_t k = 0; k < l->count && n < GANG_TIMES; k++)
                        times[n++] = l->steps[k].at_ms;
        }
        for (size_t i = 0; i < d->count; i++)
                for (size_t k = 0; k < d->v[i].pool->count && n < GANG_TIMES; k++)
                        times[n++] = d->v[i].pool->steps[k].at_ms;
        qsort(times, n, sizeof(*times), eta_gang_by_number);
        return n;
}

void forecast_gangs(struct forecast *x, const struct eta_fit *f, const struct eta_draws *d,
                    struct eta_turn *t)
{
        const struct bucket *b = t->bucket;
        const struct part *p = request_part_at(b->request, b->part);
        int64_t times[GANG_TIMES], cpus = p->job_template->cpus > 0 ? p->job_template->cpus : 1, all_ms,
                                   held_ms;
        uint64_t size = gang_size(p), slots;
        struct core_cost cost;
        struct eta_fit some;
        size_t count;

        best_company(x, b->job_class, cpus, f, &some, &slots);
        if (slots < size || eta_draws_room(d) < size)
                return;
        cost_of(x->core, p, (uint32_t)set_first(&b->idle), x->timelines[some.timelines[0]].queue, &cost);
        if (cost.down)
                return;
        cost_without_traffic(&cost);
        held_ms = forecast_held_ms(x, p, x->timelines[some.timelines[0]].queue, &cost);
        all_ms = cost_held_ms(&cost);
        t->open = held_ms == TIMELINE_EVER;
        t->run_ms = (float)cost.run_ms;
        count = set_times(x, &some, d, times);
        for (size_t i = 0; i < count && !t->start_ms; i++)
                if (limits_allow(d, size, times[i], all_ms) &&
                    take_set(x, &some, size, cpus, times[i], all_ms, held_ms)) {
                        eta_draws_take(d, size, times[i], held_ms);
                        t->start_ms = t->last_ms = times[i] + cost_input_ms(&cost);
                        t->placed = t->known = size;
                }
        if (t->start_ms && t->jobs > size)
                forecast_rest(x, &some, d, t);
}
