#include "core/eta_lane.h"

#include "base/mem.h"
#include "core/state.h"

void lane_deinit(struct lane *l)
{
        ad_free(l->whole);
        free(l->steps);
        *l = (struct lane){0};
}

static int by_time(const void *x, const void *y)
{
        const struct lane_step *a = x, *b = y;

        return (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms);
}

/* Steps are what is free from then on: first the ends of attempts, each with what it gives back, then summed.
 */
void lane_init(struct core *c, struct lane *l, struct queue *q)
{
        int64_t now_free = q->offers ? q->cpus : 0, running = 0;
        size_t n = 1;

        *l = (struct lane){.queue = q};
        l->cap = (q->attempt_count < LANE_STEPS_MAX ? q->attempt_count : LANE_STEPS_MAX) + 1;
        l->steps = mem_array(NULL, l->cap, sizeof(*l->steps));
        for (const struct job *j = q->attempts; j; j = j->next) {
                const struct part *p = request_part(j->request, j->member, NULL);
                bool runs = job_state_runs(j->state) && j->started_ms < c->now_ms;

                running += j->cpus;
                if (n < l->cap)
                        l->steps[n++] = (struct lane_step){
                                c->now_ms + estimate_left_ms(c, p, q, runs ? c->now_ms - j->started_ms : 0),
                                j->cpus};
        }
        if (now_free < 0)
                now_free = 0;
        l->cpus = q->total_cpus < INT64_MAX ? q->total_cpus : now_free + running;
        if (now_free > l->cpus)
                now_free = l->cpus;
        l->steps[0] = (struct lane_step){c->now_ms, now_free};
        qsort(l->steps + 1, n - 1, sizeof(*l->steps), by_time);
        for (size_t i = 1; i < n; i++)
                l->steps[i].cpus += l->steps[i - 1].cpus;
        if (l->cpus < l->steps[n - 1].cpus)
                l->steps[n - 1].cpus = l->cpus;
        l->count = n;
}

int64_t lane_find(const struct lane *l, int64_t cpus, int64_t run_ms, size_t *ret_step)
{
        if (cpus > l->cpus)
                return 0;
        for (size_t i = 0; i < l->count; i++) {
                int64_t from = l->steps[i].at_ms > l->busy_ms ? l->steps[i].at_ms : l->busy_ms;
                size_t k = i;

                if (i + 1 < l->count && from >= l->steps[i + 1].at_ms)
                        continue;
                while (k < l->count && l->steps[k].cpus >= cpus && l->steps[k].at_ms < from + run_ms)
                        k++;
                if (k == l->count || l->steps[k].at_ms >= from + run_ms) {
                        if (k == i && l->steps[i].cpus < cpus)
                                continue; /* a run of no length */
                        *ret_step = i;
                        return from;
                }
                i = l->steps[k].cpus < cpus ? k : i;
        }
        return 0;
}

static size_t lane_split(struct lane *l, size_t after, int64_t at_ms)
{
        if (l->steps[after].at_ms == at_ms)
                return after;
        MEM_GROW(l->steps, l->cap, l->count + 1);
        memmove(l->steps + after + 2, l->steps + after + 1, (l->count - after - 1) * sizeof(*l->steps));
        l->steps[after + 1] = (struct lane_step){at_ms, l->steps[after].cpus};
        l->count++;
        return after + 1;
}

void lane_take(struct lane *l, size_t step, int64_t from, int64_t cpus, int64_t run_ms)
{
        size_t i = lane_split(l, step, from);

        if (l->count >= LANE_STEPS_MAX * 2) { /* too many to keep apart: it is taken whole */
                l->busy_ms = from + run_ms;
                return;
        }
        for (; i < l->count && l->steps[i].at_ms < from + run_ms; i++) {
                if (i + 1 == l->count || l->steps[i + 1].at_ms > from + run_ms)
                        lane_split(l, i, from + run_ms);
                l->steps[i].cpus -= cpus;
        }
}

int64_t lane_free(const struct lane *l, int64_t from, int64_t run_ms, size_t *ret_step)
{
        int64_t least = INT64_MAX;

        if (from < l->busy_ms)
                return 0;
        for (size_t i = 0; i < l->count; i++) {
                if (l->steps[i].at_ms <= from)
                        *ret_step = i;
                if ((i + 1 == l->count || l->steps[i + 1].at_ms > from) &&
                    l->steps[i].at_ms < from + run_ms && l->steps[i].cpus < least)
                        least = l->steps[i].cpus;
        }
        return least == INT64_MAX ? 0 : least;
}
