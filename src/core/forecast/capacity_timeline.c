#include "core/forecast/capacity_timeline.h"

#include "base/mem.h"
#include "core/estimate/busy.h"
#include "core/estimate/estimate.h"
#include "core/model/core_parts.h"

void timeline_deinit(struct capacity_timeline *l)
{
        ad_free(l->whole);
        free(l->steps);
        *l = (struct capacity_timeline){0};
}

static int by_time(const void *x, const void *y)
{
        const struct timeline_step *a = x, *b = y;

        return (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms);
}

void timeline_begin(struct capacity_timeline *l, int64_t now_ms, int64_t free, size_t max)
{
        *l = (struct capacity_timeline){.max = max};
        MEM_GROW(l->steps, l->cap, 1);
        l->steps[0] = (struct timeline_step){now_ms, free};
        l->count = 1;
}

void timeline_ends(struct capacity_timeline *l, int64_t at_ms, int64_t cpus)
{
        MEM_GROW(l->steps, l->cap, l->count + 1);
        l->steps[l->count++] = (struct timeline_step){at_ms, cpus};
}

/* Merges the later half of the steps in pairs: the time of the first, the lesser number of free processors.
 * The last step stays, since it has what is free in the end. */
static void timeline_thin(struct capacity_timeline *l)
{
        struct timeline_step last = l->steps[l->count - 1];
        size_t to = l->count / 2;

        for (size_t i = to; i + 1 < l->count; i += 2) {
                struct timeline_step s = l->steps[i];

                if (i + 2 < l->count && l->steps[i + 1].cpus < s.cpus)
                        s.cpus = l->steps[i + 1].cpus;
                l->steps[to++] = s;
        }
        l->steps[to++] = last;
        l->count = to;
}

/* Sums the steps, which until then hold what each end frees. */
void timeline_ready(struct capacity_timeline *l, int64_t all)
{
        int64_t free = l->steps[0].cpus;

        l->cpus = all;
        if (l->count > 2)
                qsort(l->steps + 1, l->count - 1, sizeof(*l->steps), by_time);
        for (size_t i = 0; i < l->count; i++) {
                free += i ? l->steps[i].cpus : 0;
                l->steps[i].cpus = free < all ? free : all;
        }
        while (l->count > l->max)
                timeline_thin(l);
}

static int64_t sample_times(const struct timeline_sample *s)
{
        uint64_t shown = s->all < LANE_ATTEMPTS_MAX ? s->all : LANE_ATTEMPTS_MAX;

        return shown ? (int64_t)((s->at + 1) * (uint64_t)s->all / shown - s->at * (uint64_t)s->all / shown)
                     : 0;
}

struct timeline_sample timeline_sample_of(const struct queue *q)
{
        struct timeline_sample s = {.job = q->attempts, .all = q->attempt_count};

        s.times = sample_times(&s);
        return s;
}

void timeline_sample_next(struct timeline_sample *s)
{
        s->job = ++s->at < LANE_ATTEMPTS_MAX ? s->job->next : NULL;
        s->times = sample_times(s);
}

unsigned timeline_init(struct core *c, struct capacity_timeline *l, struct queue *q, size_t max, bool guess)
{
        struct timeline_sample s = timeline_sample_of(q);
        int64_t now_free = q->offers && q->cpus > 0 ? q->cpus : 0, running = 0, end;

        timeline_begin(l, c->now_ms, now_free, max);
        l->busy_ms = q->begins_ms;
        l->queue = q;
        for (; s.job; timeline_sample_next(&s)) {
                running += s.job->cpus * s.times;
                end = estimate_forecast_end_ms(c, s.job, guess);
                if (!end && q->begins_ms) /* the batch system tells when it begins another one */
                        end = c->now_ms + busy_queue_ms(c, q);
                if (end)
                        timeline_ends(l, end, s.job->cpus * s.times);
        }
        if (q->total_cpus < INT64_MAX && l->steps[0].cpus > q->total_cpus - running)
                l->steps[0].cpus = q->total_cpus - running; /* some were accepted ahead of time */
        timeline_ready(l, q->total_cpus < INT64_MAX ? q->total_cpus : now_free + running);
        return s.at;
}

/* Returns the step that applies at that time, or the first. */
static size_t timeline_at(const struct capacity_timeline *l, int64_t at_ms)
{
        size_t from = 0, to = l->count;

        while (from + 1 < to) {
                size_t mid = from + (to - from) / 2;

                if (l->steps[mid].at_ms <= at_ms)
                        from = mid;
                else
                        to = mid;
        }
        return from;
}

int64_t timeline_find(const struct capacity_timeline *l, int64_t from, int64_t cpus, int64_t run_ms)
{
        int64_t at = from > l->busy_ms ? from : l->busy_ms;

        if (cpus > l->cpus || at == TIMELINE_EVER)
                return 0;
        for (size_t i = timeline_at(l, at); i < l->count; i++) {
                bool last = i + 1 == l->count;

                if (!last && l->steps[i + 1].at_ms <= at)
                        continue;
                if (l->steps[i].cpus >= cpus && (last || l->steps[i + 1].at_ms - at >= run_ms))
                        return at;
                if (l->steps[i].cpus < cpus && !last)
                        at = l->steps[i + 1].at_ms; /* it cannot begin before that step */
        }
        return 0;
}

static int64_t end_of(int64_t from, int64_t run_ms)
{
        return run_ms < TIMELINE_EVER - from ? from + run_ms : TIMELINE_EVER;
}

int64_t timeline_free(const struct capacity_timeline *l, int64_t from, int64_t run_ms)
{
        int64_t least = INT64_MAX, end = end_of(from, run_ms);

        if (from < l->busy_ms)
                return 0;
        for (size_t i = timeline_at(l, from); i < l->count && l->steps[i].at_ms < end; i++)
                if (l->steps[i].cpus < least)
                        least = l->steps[i].cpus;
        return least == INT64_MAX || least < 0 ? 0 : least;
}

static size_t timeline_split(struct capacity_timeline *l, size_t after, int64_t at_ms)
{
        if (l->steps[after].at_ms >= at_ms)
                return after;
        MEM_GROW(l->steps, l->cap, l->count + 1);
        memmove(l->steps + after + 2, l->steps + after + 1, (l->count - after - 1) * sizeof(*l->steps));
        l->steps[after + 1] = (struct timeline_step){at_ms, l->steps[after].cpus};
        l->count++;
        return after + 1;
}

void timeline_take(struct capacity_timeline *l, int64_t from, int64_t cpus, int64_t run_ms)
{
        int64_t end = end_of(from, run_ms);

        while (l->count > l->max * 2)
                timeline_thin(l);
        for (size_t i = timeline_split(l, timeline_at(l, from), from);
             i < l->count && l->steps[i].at_ms < end; i++) {
                int64_t free = l->steps[i].cpus;

                if (end < TIMELINE_EVER && (i + 1 == l->count || l->steps[i + 1].at_ms > end))
                        timeline_split(l, i, end);
                if (free > 0)
                        l->steps[i].cpus = free > cpus ? free - cpus : 0;
        }
}
