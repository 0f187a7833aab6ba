/* Time goes from event to event: the submission of a job, the end of one. At each the scheduler looks at its
 * queue. */
#include "sim/reference.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/mem.h"
#include "base/system/clock.h"

#define HALF_LIFE_MS (7 * 86400000.0)
#define PROGRESS_NS  250000000
#define LOOK_EVERY   256u

struct room {
        int64_t cpus, memory_mib;
};

/* Free processors and memory of a place from a time on, until the next step. */
struct step {
        int64_t at_ms;
        struct room free;
};

struct place {
        struct room all, free;
        double speed, busy_extra_watts; /* of a processor that is busy, above those of an idle one */
        uint32_t cluster;
        struct running *running; /* a list */
        struct step *steps;      /* conservative: room that the plan leaves free */
        size_t step_count, step_cap;
};

struct running {
        struct heap_node node;
        int64_t end_ms, expected_ms;
        uint32_t job;
        struct place *place;
        struct running *next, *prev; /* at the place */
};

struct waiting {
        uint32_t job;
        bool started;
        struct place *place; /* conservative: where and when it is planned to start */
        int64_t start_ms;
};

struct user {
        double used; /* processor milliseconds, faded until used_at_ms */
        int64_t used_at_ms, cpus;
        uint32_t rank;
};

struct reference {
        const struct sim_reference_options *o;
        const struct sim_workload *w;
        struct place *places;
        size_t place_count;
        struct running *slots;
        struct heap ends;
        struct waiting *queue, *other; /* in its order; room for sorting */
        size_t queue_count;
        struct user *users;
        uint32_t *ranks; /* users, the one who had least first */
        struct sim_times *times;
        struct sim_measures *m;
        int64_t now_ms;
        uint64_t ended;
        double used_cpu_s;
};

static bool end_before(const struct heap_node *x, const struct heap_node *y)
{
        const struct running *a = container_of(x, const struct running, node),
                             *b = container_of(y, const struct running, node);

        return a->end_ms != b->end_ms ? a->end_ms < b->end_ms : a->job < b->job;
}

static struct room reference_room_of(const struct reference *r, uint32_t job)
{
        return (struct room){r->w->jobs[job].cpus, r->w->jobs[job].memory_mib};
}

static bool room_fits(struct room need, struct room have)
{
        return need.cpus <= have.cpus && need.memory_mib <= have.memory_mib;
}

static void add_room(struct room *to, struct room what, int sign)
{
        to->cpus += sign * what.cpus;
        to->memory_mib += sign * what.memory_mib;
}

static int64_t run_ms(const struct reference *r, uint32_t job, const struct place *p)
{
        return (int64_t)ceil((double)r->w->jobs[job].run_ms / p->speed);
}

static int64_t expected_ms(const struct reference *r, uint32_t job, const struct place *p)
{
        int64_t asked = (int64_t)r->w->jobs[job].asked_s * 1000, run = run_ms(r, job, p);

        return asked > run ? asked : run;
}

/* ---- users */
static double user_used(const struct user *u, int64_t now_ms)
{
        double passed = (double)(now_ms - u->used_at_ms);

        return u->used * exp2(-passed / HALF_LIFE_MS) + (double)u->cpus * passed;
}

static void user_takes(struct reference *r, uint32_t job, int sign)
{
        struct user *u = &r->users[r->w->jobs[job].user];

        u->used = user_used(u, r->now_ms);
        u->used_at_ms = r->now_ms;
        u->cpus += sign * (int64_t)r->w->jobs[job].cpus;
}

static int by_used(const void *x, const void *y, void *arg)
{
        const struct reference *r = arg;
        uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
        double m = user_used(&r->users[a], r->now_ms), n = user_used(&r->users[b], r->now_ms);

        return m != n ? (m > n) - (m < n) : (a > b) - (a < b);
}

/* Sorts the queue by the use of the jobs' users; the jobs of a user stay in their order. */
static void sort_by_use(struct reference *r)
{
        uint32_t n = r->w->user_count;
        size_t *at = mem_zalloc((n + 1) * sizeof(*at));
        struct waiting *sorted = r->other;

        for (uint32_t u = 0; u < n; u++)
                r->ranks[u] = u;
        qsort_r(r->ranks, n, sizeof(*r->ranks), by_used, r);
        for (uint32_t k = 0; k < n; k++)
                r->users[r->ranks[k]].rank = k;
        for (size_t i = 0; i < r->queue_count; i++)
                at[r->users[r->w->jobs[r->queue[i].job].user].rank + 1]++;
        for (uint32_t k = 0; k < n; k++)
                at[k + 1] += at[k];
        for (size_t i = 0; i < r->queue_count; i++)
                sorted[at[r->users[r->w->jobs[r->queue[i].job].user].rank]++] = r->queue[i];
        r->other = r->queue;
        r->queue = sorted;
        free(at);
}

/* ---- starts and ends */
static void start_job(struct reference *r, struct waiting *x, struct place *p)
{
        struct running *s = &r->slots[x->job];

        *s = (struct running){.job = x->job,
                              .place = p,
                              .end_ms = r->now_ms + run_ms(r, x->job, p),
                              .expected_ms = r->now_ms + expected_ms(r, x->job, p),
                              .next = p->running};
        if (p->running)
                p->running->prev = s;
        p->running = s;
        add_room(&p->free, reference_room_of(r, x->job), -1);
        heap_put(&r->ends, &s->node);
        r->times[x->job].started = r->now_ms;
        r->times[x->job].cluster = p->cluster;
        user_takes(r, x->job, 1);
        r->m->decisions++;
        x->started = true;
}

static void end_job(struct reference *r, struct running *s)
{
        struct place *p = s->place;

        heap_take(&r->ends, &s->node);
        if (s->prev)
                s->prev->next = s->next;
        else
                p->running = s->next;
        if (s->next)
                s->next->prev = s->prev;
        add_room(&p->free, reference_room_of(r, s->job), 1);
        r->times[s->job].ended = r->now_ms;
        user_takes(r, s->job, -1);
        r->used_cpu_s += (double)r->w->jobs[s->job].cpus * (double)run_ms(r, s->job, p) / 1000;
        r->m->energy_j +=
                p->busy_extra_watts * (double)r->w->jobs[s->job].cpus * (double)run_ms(r, s->job, p) / 1000;
        r->ended++;
}

/* The place that a job would start at now, other than `but`; NULL: none has room. */
static struct place *place_now(const struct reference *r, uint32_t job, const struct place *but)
{
        struct place *best = NULL;

        for (size_t i = 0; i < r->place_count; i++) {
                struct place *p = &r->places[i];

                if (p == but || !room_fits(reference_room_of(r, job), p->free))
                        continue;
                if (!best || p->speed > best->speed ||
                    (p->speed == best->speed && p->free.cpus < best->free.cpus))
                        best = p;
        }
        return best;
}

static void drop_started(struct reference *r)
{
        size_t n = 0;

        for (size_t i = 0; i < r->queue_count; i++)
                if (!r->queue[i].started)
                        r->queue[n++] = r->queue[i];
        r->queue_count = n;
}

/* ---- fcfs and easy */
struct shadow {
        struct place *place; /* where the first job that waits will start */
        int64_t at_ms;
        struct room extra; /* what is left there then */
};

static int by_expected(const void *x, const void *y)
{
        const struct running *a = *(struct running *const *)x, *b = *(struct running *const *)y;

        return (a->expected_ms > b->expected_ms) - (a->expected_ms < b->expected_ms);
}

/* Finds the time at which the place has room for the job, by the expected ends. */
static void shadow_at(const struct reference *r, uint32_t job, struct place *p, struct shadow *ret)
{
        struct running **ends = NULL;
        size_t count = 0, cap = 0;
        struct room have = p->free, need = reference_room_of(r, job);

        for (struct running *s = p->running; s; s = s->next) {
                MEM_GROW(ends, cap, count + 1);
                ends[count++] = s;
        }
        if (count)
                qsort(ends, count, sizeof(struct running *), by_expected);
        for (size_t i = 0; i < count && !room_fits(need, have); i++) {
                add_room(&have, reference_room_of(r, ends[i]->job), 1);
                ret->at_ms = ends[i]->expected_ms;
        }
        add_room(&have, need, -1);
        ret->place = p;
        ret->extra = have;
        free(ends);
}

static void reserve(const struct reference *r, uint32_t job, struct shadow *ret)
{
        struct shadow s = {.at_ms = r->now_ms};

        *ret = (struct shadow){.at_ms = INT64_MAX};
        for (size_t i = 0; i < r->place_count; i++) {
                if (!room_fits(reference_room_of(r, job), r->places[i].all))
                        continue;
                s.at_ms = r->now_ms;
                shadow_at(r, job, &r->places[i], &s);
                if (s.at_ms < ret->at_ms)
                        *ret = s;
        }
}

/* Starts the job if that does not delay the one with the reservation. */
static void backfill(struct reference *r, struct waiting *x, struct shadow *s)
{
        struct room need = reference_room_of(r, x->job);
        struct place *p = place_now(r, x->job, s->place);
        bool ends_before = r->now_ms + expected_ms(r, x->job, s->place) <= s->at_ms;

        if (!p && room_fits(need, s->place->free) && (ends_before || room_fits(need, s->extra))) {
                p = s->place;
                if (!ends_before)
                        add_room(&s->extra, need, -1);
        }
        if (p)
                start_job(r, x, p);
}

static bool any_free(const struct reference *r)
{
        for (size_t i = 0; i < r->place_count; i++)
                if (r->places[i].free.cpus > 0)
                        return true;
        return false;
}

static void pass_in_order(struct reference *r, bool may_backfill)
{
        struct shadow shadow;
        struct place *p;
        size_t i = 0;

        if (!any_free(r))
                return;
        for (; i < r->queue_count && (p = place_now(r, r->queue[i].job, NULL)); i++)
                start_job(r, &r->queue[i], p);
        if (may_backfill && i < r->queue_count) {
                reserve(r, r->queue[i].job, &shadow);
                for (i++; i < r->queue_count && any_free(r); i++)
                        backfill(r, &r->queue[i], &shadow);
        }
        drop_started(r);
}

/* ---- conservative */
static void plan_step(struct place *p, size_t at, int64_t at_ms, struct room room)
{
        MEM_GROW(p->steps, p->step_cap, p->step_count + 1);
        memmove(p->steps + at + 1, p->steps + at, (p->step_count - at) * sizeof(*p->steps));
        p->steps[at] = (struct step){at_ms, room};
        p->step_count++;
}

/* The step that begins at that time, which is made if there is none. */
static size_t plan_at(struct place *p, int64_t at_ms)
{
        size_t i = p->step_count;

        while (i > 0 && p->steps[i - 1].at_ms > at_ms)
                i--;
        if (i > 0 && p->steps[i - 1].at_ms == at_ms)
                return i - 1;
        plan_step(p, i, at_ms, p->steps[i - 1].free);
        return i;
}

static void plan_take(struct place *p, int64_t from_ms, int64_t to_ms, struct room need)
{
        size_t from = plan_at(p, from_ms), to = plan_at(p, to_ms);

        for (size_t i = from; i < to; i++)
                add_room(&p->steps[i].free, need, -1);
}

/* Returns the first time from which the place has room for the job's expected run time. */
static int64_t plan_find(const struct place *p, struct room need, int64_t length_ms)
{
        size_t from = 0;

        for (size_t i = 0; i < p->step_count; i++) {
                if (!room_fits(need, p->steps[i].free))
                        from = i + 1;
                else if (i + 1 == p->step_count || p->steps[i + 1].at_ms >= p->steps[from].at_ms + length_ms)
                        break;
        }
        return p->steps[from].at_ms;
}

static void plan_job(struct reference *r, struct waiting *x)
{
        x->start_ms = INT64_MAX;
        for (size_t i = 0; i < r->place_count; i++) {
                struct place *p = &r->places[i];
                int64_t at_ms;

                if (!room_fits(reference_room_of(r, x->job), p->all))
                        continue;
                at_ms = plan_find(p, reference_room_of(r, x->job), expected_ms(r, x->job, p));
                if (at_ms < x->start_ms || (at_ms == x->start_ms && p->speed > x->place->speed)) {
                        x->start_ms = at_ms;
                        x->place = p;
                }
        }
        plan_take(x->place, x->start_ms, x->start_ms + expected_ms(r, x->job, x->place),
                  reference_room_of(r, x->job));
}

/* Steps that are over; the first one left is of now. */
static void plan_go(struct reference *r)
{
        for (size_t i = 0; i < r->place_count; i++) {
                struct place *p = &r->places[i];
                size_t over = 0;

                while (over + 1 < p->step_count && p->steps[over + 1].at_ms <= r->now_ms)
                        over++;
                memmove(p->steps, p->steps + over, (p->step_count - over) * sizeof(*p->steps));
                p->step_count -= over;
                p->steps[0].at_ms = r->now_ms;
        }
}

static void plan_anew(struct reference *r)
{
        for (size_t i = 0; i < r->place_count; i++) {
                struct place *p = &r->places[i];

                p->step_count = 0;
                plan_step(p, 0, r->now_ms, p->all);
                for (struct running *s = p->running; s; s = s->next)
                        if (s->expected_ms > r->now_ms)
                                plan_take(p, r->now_ms, s->expected_ms, reference_room_of(r, s->job));
        }
        for (size_t i = 0; i < r->queue_count; i++)
                plan_job(r, &r->queue[i]);
}

static void pass_conservative(struct reference *r, bool early, size_t came)
{
        if (early)
                plan_anew(r);
        else
                plan_go(r);
        for (size_t i = r->queue_count - came; !early && i < r->queue_count; i++)
                plan_job(r, &r->queue[i]);
        for (size_t i = 0; i < r->queue_count; i++)
                if (r->queue[i].start_ms <= r->now_ms)
                        start_job(r, &r->queue[i], r->queue[i].place);
        drop_started(r);
}

/* ---- the course of it */
static int check_options(const struct sim_reference_options *o, struct err *err)
{
        for (size_t i = 0; i < o->workload->job_count; i++) {
                const struct sim_job *j = &o->workload->jobs[i];
                bool room = false;

                if (j->inputs.count || j->outputs.count || j->waits)
                        return err_set(err, -EINVAL,
                                       "it knows nothing of files and graphs of jobs; with --input 0 jobs "
                                       "have no files");
                if (j->gang)
                        return err_set(err, -EINVAL, "it knows nothing of jobs that start together");
                for (size_t k = 0; k < o->site->count && !room; k++)
                        room = o->site->clusters[k].cpus >= j->cpus &&
                               o->site->clusters[k].memory_mib >= j->memory_mib;
                if (!room)
                        return err_set(err, -EINVAL,
                                       "job %zu needs %u processors and %u MiB, and no agent has that", i + 1,
                                       j->cpus, j->memory_mib);
        }
        for (size_t k = 0; k < o->site->count; k++)
                if (o->site->clusters[k].mtbf_ms || o->site->clusters[k].start_delay_ms ||
                    o->site->clusters[k].outage_count)
                        return err_set(err, -EINVAL,
                                       "it knows nothing of failures, outages and delays of a start");
        return 0;
}

static const struct sim_workload *sorted_workload; /* qsort has no argument to hand on */

static int reference_by_submission(const void *x, const void *y)
{
        uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
        int64_t m = sorted_workload->jobs[a].submit_ms, n = sorted_workload->jobs[b].submit_ms;

        return m != n ? (m > n) - (m < n) : (a > b) - (a < b);
}

static uint32_t *arrivals_of(const struct sim_workload *w)
{
        uint32_t *jobs = mem_array(NULL, w->job_count + 1, sizeof(*jobs));

        for (size_t i = 0; i < w->job_count; i++)
                jobs[i] = (uint32_t)i;
        sorted_workload = w;
        qsort(jobs, w->job_count, sizeof(*jobs), reference_by_submission);
        /* Of those submitted together the first one has the time. */
        return jobs;
}

static void make_reservation(struct reference *r)
{
        size_t n = r->w->job_count, k = 0;

        r->ends.before = end_before;
        r->place_count = sim_site_agents(r->o->site);
        r->places = mem_zalloc(r->place_count * sizeof(*r->places));
        for (uint32_t c = 0; c < r->o->site->count; c++)
                for (uint32_t i = 0; i < r->o->site->clusters[c].agents; i++, k++) {
                        const struct sim_cluster *cluster = &r->o->site->clusters[c];

                        r->places[k] =
                                (struct place){.all = {cluster->cpus, (int64_t)cluster->memory_mib},
                                               .free = {cluster->cpus, (int64_t)cluster->memory_mib},
                                               .speed = cluster->speed,
                                               .busy_extra_watts = cluster->busy_watts - cluster->idle_watts,
                                               .cluster = c};
                        plan_step(&r->places[k], 0, 0, r->places[k].all);
                }
        r->slots = mem_zalloc((n + 1) * sizeof(*r->slots));
        r->queue = mem_array(NULL, n + 1, sizeof(*r->queue));
        r->other = mem_array(NULL, n + 1, sizeof(*r->other));
        r->users = mem_zalloc((r->w->user_count + 1) * sizeof(*r->users));
        r->ranks = mem_array(NULL, r->w->user_count + 1, sizeof(*r->ranks));
        r->times = r->o->times ? r->o->times : mem_array(NULL, n + 1, sizeof(*r->times));
}

static void reference_clean(struct reference *r)
{
        for (size_t i = 0; i < r->place_count; i++)
                free(r->places[i].steps);
        free(r->places);
        free(r->slots);
        free(r->queue);
        free(r->other);
        free(r->users);
        free(r->ranks);
        if (!r->o->times)
                free(r->times);
        heap_deinit(&r->ends);
}

static void pass(struct reference *r, bool early, size_t came)
{
        int64_t from = clock_mono_ns();

        switch (r->o->scheduler) {
        case SIM_FCFS: pass_in_order(r, false); break;
        case SIM_EASY: pass_in_order(r, true); break;
        case SIM_EASY_FAIRSHARE:
                sort_by_use(r);
                pass_in_order(r, true);
                break;
        case SIM_CONSERVATIVE: pass_conservative(r, early, came); break;
        }
        r->m->match_s += (double)(clock_mono_ns() - from) / 1e9;
}

/* Ends the jobs that end now. Returns whether one ended before its expected time. */
static bool end_all(struct reference *r)
{
        struct heap_node *first;
        bool early = false;

        while ((first = heap_first(&r->ends))) {
                struct running *s = container_of(first, struct running, node);

                if (s->end_ms > r->now_ms)
                        break;
                early |= s->end_ms < s->expected_ms;
                end_job(r, s);
        }
        return early;
}

static int64_t next_end(const struct reference *r)
{
        struct heap_node *first = heap_first(&r->ends);

        return first ? container_of(first, struct running, node)->end_ms : INT64_MAX;
}

static void show_progress(const struct reference *r, uint64_t *turns, int64_t *shown_ns)
{
        int64_t now = clock_mono_ns();

        sim_measure_sample(r->m, r->now_ms, r->queue_count);
        if ((*turns)++ % LOOK_EVERY || !r->o->progress || now - *shown_ns < PROGRESS_NS)
                return;
        *shown_ns = now;
        r->o->progress(r->o->arg,
                       &(struct sim_progress){r->ended, r->w->job_count, r->queue_count, r->now_ms});
}

static void reference_play(struct reference *r)
{
        uint32_t *arrivals = arrivals_of(r->w);
        size_t next = 0, n = r->w->job_count;
        int64_t shown_ns = 0;
        uint64_t turns = 0;

        while (r->ended < n) {
                size_t came = 0;
                bool early;

                r->now_ms = next < n ? r->w->jobs[arrivals[next]].submit_ms : INT64_MAX;
                if (next_end(r) < r->now_ms)
                        r->now_ms = next_end(r);
                early = end_all(r);
                for (; next < n && r->w->jobs[arrivals[next]].submit_ms <= r->now_ms; next++, came++) {
                        r->queue[r->queue_count++] = (struct waiting){.job = arrivals[next]};
                        r->times[arrivals[next]] =
                                (struct sim_times){.submitted = r->now_ms, .started = -1, .ended = -1};
                }
                pass(r, early, came);
                show_progress(r, &turns, &shown_ns);
        }
        free(arrivals);
}

int sim_reference_run(const struct sim_reference_options *o, struct sim_measures *ret, struct err *err)
{
        struct sim_measures m = {.jobs = 0};
        struct reference r = {.o = o, .w = o->workload, .m = &m};
        int64_t from = clock_mono_ns();
        int e = check_options(o, err);

        if (e != 0)
                return e;
        make_reservation(&r);
        reference_play(&r);
        sim_measure_jobs(&m, o->workload, r.times, sim_site_cpus(o->site), r.used_cpu_s);
        m.energy_j += sim_site_idle_watts(o->site) * m.makespan_s;
        m.node_hours = (double)sim_site_agents(o->site) * m.makespan_s / 3600; /* all are always there */
        m.cost = sim_site_price(o->site) * m.makespan_s / 3600;
        m.wall_s = (double)(clock_mono_ns() - from) / 1e9;
        reference_clean(&r);
        *ret = m;
        return 0;
}
