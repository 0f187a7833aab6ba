#include "sim/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "sim/run_state.h"

#define START_MS     1000000000000 /* the simulation's wall clock at the start */
#define LEASE_MS     2400000
#define TICK_MS      5000 /* while jobs wait */
#define TICK_IDLE_MS 600000
#define PROGRESS_NS  250000000
#define LOOK_EVERY   256u   /* turns between looks at the real clock and at memory */
#define LOST_MAX     10000u /* attempts, and ten for each job: with so many lost in a row, no job will end */
#define STUCK_LEASES 4      /* so many leases without anything but renewals, and nothing will come */

/* ---- timers */
static bool timer_before(const struct heap_node *x, const struct heap_node *y)
{
        const struct timer *a = container_of(x, const struct timer, node),
                           *b = container_of(y, const struct timer, node);

        return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

void run_timer_set(struct run *r, struct timer *t, int64_t at_ms)
{
        run_timer_stop(r, t);
        t->at_ms = at_ms;
        t->order = r->timer_order++;
        heap_put(&r->timers, &t->node);
}

void run_timer_stop(struct run *r, struct timer *t)
{
        heap_take(&r->timers, &t->node);
}

int64_t run_lease(const struct run *r)
{
        return r->o->lease_ms ? r->o->lease_ms : LEASE_MS;
}

static void renew_all(struct run *r)
{
        for (size_t i = 0; i < r->place_count; i++)
                if (r->places[i].up && !r->places[i].cut_until) {
                        core_renew(sim_world_core(r->world), r->places[i].name);
                        r->places[i].renewed = run_now(r);
                }
        run_timer_set(r, &r->renew, run_now(r) + run_lease(r) / 3);
}

static void ring(struct run *r, struct timer *t)
{
        switch (t->kind) {
        case TIMER_PIPE: run_pipe_timer(r, container_of(t, struct run_pipe, timer)); break;
        case TIMER_ATTEMPT: run_attempt_timer(r, container_of(t, struct attempt, timer)); break;
        case TIMER_PLACE: run_place_timer(r, container_of(t, struct place, timer)); break;
        case TIMER_CUT: run_cut_timer(r, container_of(t, struct place, cut)); break;
        case TIMER_RENEW: renew_all(r); break;
        case TIMER_OUTAGE: run_outage_timer(r, container_of(t, struct outage, timer)); break;
        case TIMER_PLAN: run_cloud_plan(r); break;
        case TIMER_TICK: break; /* the turn will tick: its timer is not set any more */
        }
}

/* ---- the world's end of the connections */
static unsigned run_session_of(void *arg, const char *agent)
{
        const struct run *r = arg;

        return ((const struct place *)map_get(r->places_by_name, str_of(agent)))->session;
}

static void run_on_leave(void *arg, struct sim_action *a)
{
        struct run *r = arg;

        run_place_take(r, map_get(r->places_by_name, str_of(a->agent)), a);
        sim_action_deinit(a);
}

static const struct sim_world_ops world_ops = {run_session_of, run_on_leave};

/* ---- making it */
/* Returns how many such jobs an agent of the cluster can run at once. */
static uint64_t run_room_of(const struct sim_cluster *c, const struct sim_job *j)
{
        uint64_t cpus = c->cpus / j->cpus, memory = j->memory_mib ? c->memory_mib / j->memory_mib : cpus;

        return cpus < memory ? cpus : memory;
}

static int check_fits(const struct run *r, struct err *err)
{
        for (size_t i = 0; i < r->w->job_count; i++) {
                const struct sim_job *j = &r->w->jobs[i];
                uint32_t cpus = 0;
                uint64_t memory = 0;
                uint64_t room = 0, needed = j->gang ? j->gang : 1;

                for (size_t k = 0; k < r->site->count && room < needed; k++) {
                        const struct sim_cluster *c = &r->site->clusters[k];

                        cpus = c->cpus > cpus ? c->cpus : cpus;
                        memory = c->memory_mib > memory ? c->memory_mib : memory;
                        room += c->agents * run_room_of(c, j);
                }
                if (room == 0)
                        return err_set(
                                err, -EINVAL,
                                "job %zu needs %u processors and %u MiB, and no agent has that: the largest "
                                "have %u and %" PRIu64 " (see --cpus and --site)",
                                i + 1, j->cpus, j->memory_mib, cpus, memory);
                if (room < needed)
                        return err_set(err, -EINVAL,
                                       "%" PRIu64
                                       " jobs like job %zu start together, and all agents have room for "
                                       "%" PRIu64 " at once (see --gang-size and --agents)",
                                       needed, i + 1, room);
        }
        return 0;
}

static int tell_stores(struct run *r, struct err *err)
{
        size_t n = r->site->count;
        struct core_store *stores = mem_zalloc(n * sizeof(*stores));
        struct str *prefixes = mem_zalloc(n * sizeof(*prefixes));
        char(*texts)[48] = mem_zalloc(n * sizeof(*texts));
        char(*names)[16] = mem_zalloc(n * sizeof(*names));
        struct core_data data = {.stores = stores, .store_count = n};
        int e;

        for (size_t k = 0; k < n; k++) {
                snprintf(names[k], sizeof(names[k]), "store%zu", k);
                snprintf(texts[k], sizeof(texts[k]), "https://store%zu.sim/", k);
                prefixes[k] = str_of(texts[k]);
                stores[k].urls = (struct store_urls){str_of(names[k]), &prefixes[k], 1};
        }
        e = core_data_set(sim_world_core(r->world), &data, err);
        free(stores);
        free(prefixes);
        free(texts);
        free(names);
        return e;
}

static void number_files(struct run *r)
{
        r->file_ids = mem_array(NULL, r->w->file_count + 1, sizeof(*r->file_ids));
        for (size_t i = 0; i < r->w->file_count; i++) {
                char url[64];

                run_file_url(r->w->files[i].cluster, (uint32_t)i, url, sizeof(url));
                r->file_ids[i] = file_id(str_of(url)); /* it is in canonical form already */
        }
}

static void make_pipes(struct run *r)
{
        r->pipes = mem_zalloc(r->site->count * r->site->count * sizeof(*r->pipes));
        for (size_t i = 0; i < r->site->count; i++)
                for (size_t k = 0; k < r->site->count; k++) {
                        struct run_pipe *p = &r->pipes[i * r->site->count + k];

                        p->timer.kind = TIMER_PIPE;
                        sim_pipe_init(&p->pipe, &r->site->clusters[i].links[k]);
                }
}

static int make_world(struct run *r, struct err *err)
{
        const struct sim_world_config config = {.core = {.lease_ms = run_lease(r),
                                                         .keep_finished = 1000,
                                                         .keep_finished_ms = 60000,
                                                         .placement = r->o->placement,
                                                         .periodic_ms = 86400000,
                                                         .better_wait_ms = r->o->better_wait_ms,
                                                         .reserve_after_ms = r->o->reserve_after_ms,
                                                         .reserve_idle = r->o->reserve_idle,
                                                         .max_lost = UINT32_MAX, /* every job ends */
                                                         .lost_pause_ms = -1,
                                                         .keep_lossy_nodes = true,
                                                         .seed = r->o->seed},
                                                .start_ms = START_MS};
        int e = check_fits(r, err);

        if (e == 0)
                e = sim_world_new(&config, &world_ops, r, &r->world, err);
        if (e == 0)
                e = tell_stores(r, err);
        if (e)
                return e;
        sim_random_seed(&r->random, r->o->seed);
        r->timers.before = timer_before;
        r->renew.kind = TIMER_RENEW;
        r->tick.kind = TIMER_TICK;
        r->times = mem_array(NULL, r->w->job_count + 1, sizeof(*r->times));
        r->lost_at = mem_zalloc((r->w->job_count + 1) * sizeof(*r->lost_at));
        r->waits = mem_array(NULL, r->w->job_count + 1, sizeof(*r->waits));
        for (size_t i = 0; i < r->w->job_count; i++) {
                r->times[i] = (struct sim_times){.submitted = -1, .started = -1, .ended = -1};
                r->waits[i] = r->w->jobs[i].waits;
        }
        if (r->o->guesses)
                r->guesses = sim_guesses_new(r->w, r->site);
        number_files(r);
        make_pipes(r);
        run_places_make(r);
        for (size_t i = 0; i < r->place_count; i++)
                if (!run_place_is_cloud(&r->places[i]))
                        run_place_start(r, &r->places[i]);
        run_cloud_make(r);
        run_outages_make(r, START_MS);
        renew_all(r);
        return 0;
}

static void run_clean(struct run *r)
{
        run_cloud_free(r);
        if (r->places)
                run_places_free(r);
        for (size_t i = 0; r->pipes && i < r->site->count * r->site->count; i++)
                sim_pipe_deinit(&r->pipes[i].pipe);
        free(r->pipes);
        free(r->outages);
        heap_deinit(&r->timers);
        free(r->times);
        free(r->waits);
        free(r->lost_at);
        free(r->file_ids);
        free(r->first_of);
        free(r->asked);
        free(r->gangs);
        sim_guesses_free(r->guesses);
        sim_world_free(r->world);
}

/* ---- what is submitted by the clock, in its order */
struct arrivals {
        uint32_t *jobs;
        size_t count, next;
};

static const struct sim_workload *sorted_workload; /* qsort has no argument to hand on */

static int run_by_submission(const void *x, const void *y)
{
        uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
        int64_t m = sorted_workload->jobs[a].submit_ms, n = sorted_workload->jobs[b].submit_ms;

        return m != n ? (m > n) - (m < n) : (a > b) - (a < b);
}

static void arrivals_init(struct arrivals *a, const struct sim_workload *w)
{
        *a = (struct arrivals){.jobs = mem_array(NULL, w->job_count + 1, sizeof(*a->jobs))};
        for (size_t i = 0; i < w->job_count; i++)
                if (w->jobs[i].together && !w->jobs[i].waits)
                        a->jobs[a->count++] = (uint32_t)i;
        sorted_workload = w;
        qsort(a->jobs, a->count, sizeof(*a->jobs), run_by_submission);
}

static int64_t arrivals_next(const struct arrivals *a, const struct sim_workload *w)
{
        return a->next < a->count ? START_MS + w->jobs[a->jobs[a->next]].submit_ms : SIM_NEVER;
}

/* ---- the course of it */
static uint64_t resident_bytes(void)
{
        struct buf text BUF_CLEANUP = {0};
        struct str rest, word = STR_NONE;
        uint64_t pages;

        if (fs_read(AT_FDCWD, "/proc/self/statm", 4096, &text, NULL))
                return 0;
        rest = buf_view(&text);
        for (int i = 0; i < 2; i++) /* the second number is the resident size */
                if (!str_word(&rest, &word))
                        return 0;
        if (str_to_u64(word, &pages))
                return 0;
        return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What time alone does. The core asks to be called every second at least, for what it tidies; nobody waits
 * for that here. */
static void tick(struct run *r)
{
        int64_t wait_ms = core_tick(sim_world_core(r->world));

        if (wait_ms >= 1000)
                wait_ms = r->waiting ? TICK_MS : TICK_IDLE_MS;
        run_timer_set(r, &r->tick, run_now(r) + (wait_ms < 1 ? 1 : wait_ms));
}

static void turn(struct run *r)
{
        int64_t from;

        if (!r->tick.node.place || (r->waiting && r->tick.at_ms > run_now(r) + TICK_MS))
                tick(r);
        run_places_tell(r);
        do {
                r->again = false;
                from = clock_mono_ns();
                sim_world_turn(r->world);
                r->m->match_s += (double)(clock_mono_ns() - from) / 1e9;
                while (sim_world_flying(r->world))
                        sim_world_commit(r->world);
        } while (r->again);
        run_gangs_look(r);
}

/* Asks for the expected times of the first job of each request submitted in this turn. */
static void guess_first_jobs(struct run *r)
{
        for (size_t i = 0; i < r->asked_count; i++)
                sim_guess(r->guesses, r->first_of[r->asked[i]], sim_world_core(r->world), r->asked[i], 0);
        r->asked_count = 0;
}

struct look {
        uint64_t turns, begun_bytes;
        int64_t shown_ns;
};

static void look_at_places(struct run *r, struct look *l)
{
        int64_t now = clock_mono_ns();
        uint64_t bytes;

        sim_measure_sample(r->m, run_now(r) - START_MS, r->waiting);
        if (l->turns++ % LOOK_EVERY)
                return;
        bytes = resident_bytes();
        if (bytes > l->begun_bytes && bytes - l->begun_bytes > r->m->memory_bytes)
                r->m->memory_bytes = bytes - l->begun_bytes;
        if (r->o->progress && now - l->shown_ns > PROGRESS_NS) {
                struct sim_progress p = {r->ended, r->w->job_count, r->waiting, run_now(r) - START_MS};

                l->shown_ns = now;
                r->o->progress(r->o->arg, &p);
        }
}

struct lost {
        uint64_t ended, lost; /* when a job has ended last */
        uint64_t too_many;    /* attempts that were lost since, when it has become hopeless */
};

static bool only_lost(const struct run *r, struct lost *l)
{
        if (r->ended != l->ended)
                *l = (struct lost){r->ended, r->m->lost, 0};
        if (r->m->lost - l->lost > LOST_MAX + 10 * r->w->job_count)
                l->too_many = r->m->lost - l->lost;
        return l->too_many > 0;
}

static int run_play(struct run *r, struct err *err)
{
        struct arrivals arrivals;
        struct look l = {.turns = 0};
        struct lost lost = {.ended = 0};
        int64_t moved_ms = run_now(r); /* when something happened that was not a clock's doing */
        uint64_t done = 0;

        malloc_trim(0); /* memory that an earlier run freed must count as new if this run uses it */
        l.begun_bytes = resident_bytes();
        arrivals_init(&arrivals, r->w);
        turn(r);
        while (r->ended < r->w->job_count && !sim_world_violated(r->world)) {
                struct heap_node *first = heap_first(&r->timers);
                int64_t next = container_of(first, struct timer, node)->at_ms,
                        arrive = arrivals_next(&arrivals, r->w);

                next = arrive < next ? arrive : next;
                sim_world_go(r->world, next);
                while (arrivals_next(&arrivals, r->w) <= next)
                        run_submit(r, arrivals.jobs[arrivals.next++]);
                while ((first = heap_first(&r->timers)) &&
                       container_of(first, struct timer, node)->at_ms <= next) {
                        struct timer *t = container_of(first, struct timer, node);

                        run_timer_stop(r, t);
                        ring(r, t);
                }
                turn(r);
                guess_first_jobs(r);
                look_at_places(r, &l);
                if (r->m->decisions + r->ended + arrivals.next != done || arrive != SIM_NEVER || r->held ||
                    r->outages_on) {
                        done = r->m->decisions + r->ended + arrivals.next;
                        moved_ms = next;
                }
                if (next - moved_ms > STUCK_LEASES * run_lease(r) || only_lost(r, &lost))
                        break;
        }
        free(arrivals.jobs);
        if (lost.too_many)
                return err_set(err, 1,
                               "the agents fail so often that of the last %" PRIu64
                               " attempts at a job none came to its end: see --mtbf and --repair",
                               lost.too_many);
        if (sim_world_violated(r->world))
                return err_set(err, 1, "%s", sim_world_violated(r->world));
        if (r->ended < r->w->job_count)
                return err_set(
                        err, 1, "%" PRIu64 " of %zu jobs never started, %s", r->w->job_count - r->ended,
                        r->w->job_count,
                        r->cloud && (r->site->budget.month_micro >= 0 || r->site->budget.hour_micro >= 0)
                                ? "because the budget allows no more nodes"
                                : "though agents are free");
        return 0;
}

static void give_times(const struct run *r)
{
        for (size_t i = 0; r->o->times && i < r->w->job_count; i++) {
                r->o->times[i] = r->times[i];
                r->o->times[i].submitted -= START_MS;
                r->o->times[i].started -= START_MS;
                r->o->times[i].ended -= START_MS;
        }
}

int sim_run(const struct sim_run_options *o, struct sim_measures *ret, struct err *err)
{
        struct sim_measures m = {.jobs = 0};
        struct run r = {.o = o, .w = o->workload, .site = o->site, .m = &m};
        int64_t from = clock_mono_ns();
        int e = make_world(&r, err);

        if (e == 0)
                e = run_play(&r, err);
        if (e == 0) {
                give_times(&r);
                run_cloud_end(&r, run_now(&r) - START_MS);
                if (m.recovered)
                        m.recovery_s /= (double)m.recovered;
                sim_measure_jobs(&m, o->workload, r.times, sim_site_cpus(o->site), r.used_cpu_s);
                m.energy_j += sim_site_idle_watts(o->site) * m.makespan_s;
                if (r.guesses)
                        sim_guesses_measure(r.guesses, r.times, &m.guesses);
                m.wall_s = (double)(clock_mono_ns() - from) / 1e9;
                *ret = m;
        } else {
                sim_measures_deinit(&m);
        }
        run_clean(&r);
        return e;
}
