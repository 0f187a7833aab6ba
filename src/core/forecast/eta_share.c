/* All that get something have one level L: r = part * (L - base), where base, the level at which an account
 * begins to get anything, is lately / part - points. The r of those above their base add up to the pool.
 *
 * An account that has more than that now waits until enough of its running attempts have ended: `offset`,
 * the time in which the others catch up with it.
 */
#include "core/forecast/eta_share.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define FEW        64u
#define PHASES_MAX (2 * FEW)
#define CAP_ROUNDS 4

static int by_base(const void *x, const void *y)
{
        const struct eta_stream *a = *(struct eta_stream *const *)x, *b = *(struct eta_stream *const *)y;

        return (a->base > b->base) - (a->base < b->base);
}

/* Returns the stream's present level, with the processors that it has. */
static double level_now(const struct eta_stream *s)
{
        return s->base + s->now / s->part;
}

static int by_level(const void *x, const void *y)
{
        double a = level_now(*(struct eta_stream *const *)x), b = level_now(*(struct eta_stream *const *)y);

        return (a > b) - (a < b);
}

/* Computes how long each stream waits until those below it have caught up. */
static void find_offsets(struct eta_flow *f, double all, double idle, double run_ms)
{
        double parts = 0, level_parts = 0;

        qsort(f->order, f->count, sizeof(struct eta_stream *), by_level);
        for (size_t i = 0; i < f->count; i++) {
                struct eta_stream *s = f->order[i];
                double first = parts * level_now(s) - level_parts - idle;

                first = first < 0 ? 0 : first > all ? all : first;
                s->offset = first / all * run_ms;
                parts += s->part;
                level_parts += s->part * level_now(s);
        }
}

/* Finds the level at which the streams below their caps take all these processors. */
static void find_level(struct eta_flow *f, double all)
{
        double parts = 0, base_parts = 0, level = 0;

        for (size_t i = 0; i < f->count; i++) {
                struct eta_stream *s = f->order[i];

                if (s->left <= 0 || s->rate >= s->cap)
                        continue;
                if (parts > 0 && s->base >= level)
                        break;
                parts += s->part;
                base_parts += s->part * s->base;
                level = (all + base_parts) / parts;
        }
        for (size_t i = 0; i < f->count; i++) {
                struct eta_stream *s = f->order[i];

                if (s->left > 0 && s->rate < s->cap)
                        s->rate = s->base < level ? s->part * (level - s->base) : 0;
        }
}

/* Computes the rates of all streams with work left. */
static void find_rates(struct eta_flow *f, double all)
{
        for (size_t i = 0; i < f->count; i++)
                f->v[i].rate = 0;
        for (int round = 0; round < CAP_ROUNDS; round++) {
                double rest = all;
                bool over = false;

                for (size_t i = 0; i < f->count; i++)
                        if (f->v[i].left > 0 && f->v[i].rate >= f->v[i].cap)
                                rest -= f->v[i].rate;
                find_level(f, rest > 0 ? rest : 0);
                for (size_t i = 0; i < f->count; i++)
                        if (f->v[i].left > 0 && f->v[i].rate > f->v[i].cap) {
                                f->v[i].rate = f->v[i].cap;
                                over = true;
                        }
                if (!over)
                        return;
        }
}

/* Returns the length of the phase. With many streams several end together, to limit the number of phases. */
static double phase_ms(const struct eta_flow *f)
{
        double left = 0, rates = 0, first = INFINITY;

        for (size_t i = 0; i < f->count; i++) {
                const struct eta_stream *s = &f->v[i];

                left += s->left;
                rates += s->left > 0 ? s->rate : 0;
                if (s->left > 0 && s->rate > 0 && s->left / s->rate < first)
                        first = s->left / s->rate;
        }
        return f->count > FEW && rates > 0 && left / rates / 8 > first ? left / rates / 8 : first;
}

void eta_flow_begin(struct eta_flow *f, struct eta_stream *streams, size_t count, double all, double idle,
                    double run_ms)
{
        *f = (struct eta_flow){.v = streams,
                               .order = mem_array(NULL, count + 1, sizeof(struct eta_stream *)),
                               .count = count,
                               .all = all};
        for (size_t i = 0; i < count; i++) {
                struct eta_stream *s = &streams[i];

                s->base = s->lately / s->part - s->points;
                s->left = s->work;
                f->order[i] = s;
        }
        if (count > 0 && all > 0)
                find_offsets(f, all, idle, run_ms);
        if (count > 1)
                qsort(f->order, count, sizeof(struct eta_stream *), by_base);
}

bool eta_flow_step(struct eta_flow *f, eta_flow_fn *fn, void *arg)
{
        double ms;

        if (f->phase == PHASES_MAX || !(f->all > 0))
                return false;
        find_rates(f, f->all);
        ms = phase_ms(f);
        if (isinf(ms))
                return false;
        if (++f->phase == PHASES_MAX)
                ms = INFINITY;
        for (size_t i = 0; i < f->count; i++) {
                struct eta_stream *s = &f->v[i];

                if (s->left <= 0 || s->rate <= 0)
                        continue;
                s->left = s->rate * ms < s->left * (1 - 1e-9) ? s->left - s->rate * ms : 0;
                fn(arg, i, f->at_ms + s->offset, s->rate, s->work - s->left);
        }
        f->at_ms += ms;
        return true;
}

void eta_flow_end(struct eta_flow *f)
{
        free(f->order);
        f->order = NULL;
}
