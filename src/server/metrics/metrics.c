#include "server/metrics/metrics.h"

#include <stdio.h>

#include "base/format/exposition.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/query.h"
#include "server/metrics/series.h"

#define CALLS_MAX 512 /* pairs of a route and a status */

/* Waits and runs take seconds to days; commits and calls take microseconds to seconds. */
static const struct exposition_bounds job_bounds = {
        14, {1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400, 43200, 86400, 259200, 604800}};
static const struct exposition_bounds call_bounds = {
        12, {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10}};

static const char *const outcomes[] = {[CORE_EXITED] = "exited",
                                       [CORE_NOT_STARTED] = "not_started",
                                       [CORE_STAGING_FAILED] = "staging_failed",
                                       [CORE_LIMIT_EXCEEDED] = "limit_exceeded",
                                       [CORE_KILLED] = "killed",
                                       [CORE_OUTCOME_LOST] = "lost"};
#define OUTCOMES (sizeof(outcomes) / sizeof(outcomes[0]))

/* Counts of the queues of one name, of all agents together. */
struct place_metrics {
        struct exposition_histogram wait, run;
        uint64_t ended[OUTCOMES];
        double cpu_s;
};
struct account_metrics {
        struct exposition_histogram wait, run;
        double cpu_s;
};
struct call_metrics {
        const char *method, *route;
        int status;
        uint64_t count;
};
struct route_metrics {
        const char *method, *route;
        struct exposition_histogram took;
};
struct metrics {
        int64_t started_ms;
        /* core thread */
        uint64_t members[EVENT_TYPES]; /* jobs that an event of this type was about */
        uint64_t submitted;
        uint64_t started;              /* attempts that were started */
        struct map *places, *accounts; /* struct place_metrics, struct account_metrics */
        struct exposition_histogram commit;
        uint64_t commit_bytes;
        struct series *series;
        /* I/O thread */
        struct call_metrics calls[CALLS_MAX];
        size_t call_count;
        struct route_metrics routes[CALLS_MAX];
        size_t route_count;
};

struct metrics *metrics_new(int64_t now_ms)
{
        struct metrics *m = mem_new(struct metrics);

        m->started_ms = now_ms;
        m->places = map_new();
        m->accounts = map_new();
        m->series = series_new();
        return m;
}

void metrics_free(struct metrics *m)
{
        if (!m)
                return;
        map_free_values(m->places);
        map_free_values(m->accounts);
        series_free(m->series);
        free(m);
}

/* Returns the value under a name, made if it is missing. Above METRICS_NAMES_MAX names it is the value of
 * METRICS_OTHER. */
static void *named(struct map *map, const char *name, size_t size)
{
        struct str key = str_of(name && *name ? name : METRICS_OTHER);
        void *v = map_get(map, key);

        if (!v && map_count(map) >= METRICS_NAMES_MAX) {
                key = STR(METRICS_OTHER);
                v = map_get(map, key);
        }
        if (!v) {
                v = mem_zalloc(size);
                map_put(map, key, v);
        }
        return v;
}

static struct place_metrics *place_of(struct metrics *m, const char *queue)
{
        return named(m->places, queue, sizeof(struct place_metrics));
}

static struct account_metrics *account_of(struct metrics *m, const char *account)
{
        return named(m->accounts, account, sizeof(struct account_metrics));
}

/* All members of the event are attempts in one state at one queue. The account is that of the first
 * member. */
static void count_start(struct metrics *m, const struct core_job *j, int64_t at_ms, uint64_t members)
{
        double wait_s = at_ms > j->submitted_ms ? (double)(at_ms - j->submitted_ms) / 1000 : 0;

        m->started += members;
        exposition_observe(&place_of(m, j->queue)->wait, &job_bounds, wait_s, members);
        exposition_observe(&account_of(m, j->account)->wait, &job_bounds, wait_s, members);
}

void metrics_event(struct metrics *m, struct core *c, const struct event *e)
{
        uint64_t members = set_count(&e->members);
        struct core_request r;
        struct core_job j;

        m->members[e->type] += members;
        if (e->type == EVENT_SUBMITTED && core_request_get(c, e->request, &r) == 0)
                m->submitted += r.counts.jobs;
        if (e->type == EVENT_STARTED && members &&
            core_job_get(c, e->request, (uint32_t)set_next(&e->members, 0), &j) == 0)
                count_start(m, &j, e->at_ms, members);
}

void metrics_result(struct metrics *m, struct core *c, const struct core_result *r)
{
        double cpu_s = (double)(r->cpu_user_ms + r->cpu_system_ms) / 1000;
        struct place_metrics *p;
        struct core_job j;

        if (core_job_get(c, r->request, r->member, &j) != 0)
                return;
        p = place_of(m, j.queue);
        if (r->outcome < OUTCOMES)
                p->ended[r->outcome]++;
        if (r->outcome == CORE_EXITED &&
            !job_state_runs(j.state)) /* a short job's start and end arrive together */
                count_start(m, &j, r->started_ms, 1);
        if (r->started_ms) {
                double run_s = (double)(r->ended_ms - r->started_ms) / 1000;

                exposition_observe(&p->run, &job_bounds, run_s, 1);
                exposition_observe(&account_of(m, j.account)->run, &job_bounds, run_s, 1);
        }
        if (cpu_s > 0) {
                p->cpu_s += cpu_s;
                account_of(m, j.account)->cpu_s += cpu_s;
        }
}

void metrics_tick(struct metrics *m, struct core *c, int64_t now_ms, int64_t wall_ms)
{
        struct core_counts n;
        struct core_eta_error eta;

        if (!series_due(m->series, now_ms))
                return;
        core_totals(c, &n);
        core_eta_error(c, &eta);
        series_add(m->series, now_ms,
                   &(struct series_sample){.at_ms = wall_ms,
                                           .idle = n.idle,
                                           .running = n.running,
                                           .held = n.held,
                                           .submitted = m->submitted,
                                           .matched = m->members[EVENT_MATCHED],
                                           .ended = m->members[EVENT_EXITED],
                                           .eta_error_ms = eta.count ? eta.median_ms : -1});
}

const struct series *metrics_series(const struct metrics *m)
{
        return m->series;
}

void metrics_commit(struct metrics *m, size_t bytes, int64_t took_ns)
{
        exposition_observe(&m->commit, &call_bounds, (double)took_ns / 1e9, 1);
        m->commit_bytes += bytes;
}

/* ---- text format */

static void metric_write(struct buf *out, const char *name, const char *type, const char *help, double value)
{
        exposition_family(out, name, type, help);
        exposition_value(out, name, NULL, value);
}

static void counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
        metric_write(out, name, "counter", help, (double)value);
}

struct row { /* an entry of one of the maps; `name` is zero-terminated */
        char name[256];
        void *value;
};

static bool next_row(const struct map *map, size_t *at, struct row *ret)
{
        struct str name;

        if (!map_next(map, at, &name, &ret->value))
                return false;
        snprintf(ret->name, sizeof(ret->name), STR_FMT, STR_ARG(name));
        return true;
}

static void write_places(const struct metrics *m, struct buf *out)
{
        struct row row;

        exposition_family(out, "drover_job_wait_seconds", "histogram",
                          "From the submit of a job to the start of each of its attempts, by queue.");
        for (size_t at = 0; next_row(m->places, &at, &row);)
                exposition_histogram(out, "drover_job_wait_seconds",
                                     (struct exposition_label[]){{"queue", row.name}, {NULL, NULL}},
                                     &job_bounds, &((struct place_metrics *)row.value)->wait);
        exposition_family(out, "drover_job_run_seconds", "histogram",
                          "How long attempts ran that told a result, by queue.");
        for (size_t at = 0; next_row(m->places, &at, &row);)
                exposition_histogram(out, "drover_job_run_seconds",
                                     (struct exposition_label[]){{"queue", row.name}, {NULL, NULL}},
                                     &job_bounds, &((struct place_metrics *)row.value)->run);
        exposition_family(out, "drover_attempts_ended_total", "counter",
                          "Attempts whose result was taken, by queue and by how they ended.");
        for (size_t at = 0; next_row(m->places, &at, &row);)
                for (size_t i = 0; i < OUTCOMES; i++)
                        if (outcomes[i])
                                exposition_value(out, "drover_attempts_ended_total",
                                                 (struct exposition_label[]){{"queue", row.name},
                                                                             {"outcome", outcomes[i]},
                                                                             {NULL, NULL}},
                                                 (double)((struct place_metrics *)row.value)->ended[i]);
        exposition_family(out, "drover_job_cpu_seconds_total", "counter",
                          "Processor time of attempts that have ended, by queue.");
        for (size_t at = 0; next_row(m->places, &at, &row);)
                exposition_value(out, "drover_job_cpu_seconds_total",
                                 (struct exposition_label[]){{"queue", row.name}, {NULL, NULL}},
                                 ((struct place_metrics *)row.value)->cpu_s);
}

static void write_accounts(const struct metrics *m, struct buf *out)
{
        struct row row;

        exposition_family(out, "drover_account_job_wait_seconds", "histogram",
                          "From the submit of a job to the start of each of its attempts, by account.");
        for (size_t at = 0; next_row(m->accounts, &at, &row);)
                exposition_histogram(out, "drover_account_job_wait_seconds",
                                     (struct exposition_label[]){{"account", row.name}, {NULL, NULL}},
                                     &job_bounds, &((struct account_metrics *)row.value)->wait);
        exposition_family(out, "drover_account_job_run_seconds", "histogram",
                          "How long attempts ran that told a result, by account.");
        for (size_t at = 0; next_row(m->accounts, &at, &row);)
                exposition_histogram(out, "drover_account_job_run_seconds",
                                     (struct exposition_label[]){{"account", row.name}, {NULL, NULL}},
                                     &job_bounds, &((struct account_metrics *)row.value)->run);
        exposition_family(out, "drover_account_job_cpu_seconds_total", "counter",
                          "Processor time of attempts that have ended, by account.");
        for (size_t at = 0; next_row(m->accounts, &at, &row);)
                exposition_value(out, "drover_account_job_cpu_seconds_total",
                                 (struct exposition_label[]){{"account", row.name}, {NULL, NULL}},
                                 ((struct account_metrics *)row.value)->cpu_s);
}

void metrics_write(const struct metrics *m, struct buf *out)
{
        counter(out, "drover_jobs_submitted_total", "Jobs accepted.", m->submitted);
        counter(out, "drover_jobs_matched_total", "Jobs given to a queue.", m->members[EVENT_MATCHED]);
        counter(out, "drover_jobs_refused_total", "Jobs that an agent did not take.",
                m->members[EVENT_REFUSED]);
        counter(out, "drover_attempts_started_total", "Attempts that have begun to run.", m->started);
        counter(out, "drover_attempts_lost_total",
                "Attempts that are gone without a result: their lease ended, or their agent does not know "
                "them.",
                m->members[EVENT_LOST]);
        counter(out, "drover_jobs_held_total", "Jobs that were held.", m->members[EVENT_HELD]);
        counter(out, "drover_jobs_removed_total", "Jobs that were removed.", m->members[EVENT_REMOVED]);
        write_places(m, out);
        write_accounts(m, out);
        metric_write(out, "process_start_time_seconds", "gauge", "When the server was started, in Unix time.",
                     (double)m->started_ms / 1000);
        exposition_family(out, "drover_store_commit_seconds", "histogram",
                          "From handing a batch of records to the store until it is durable.");
        exposition_histogram(out, "drover_store_commit_seconds", NULL, &call_bounds, &m->commit);
        counter(out, "drover_store_commit_bytes_total", "Bytes of the batches that are durable.",
                m->commit_bytes);
}

/* ---- calls of the API */

static struct route_metrics *route_of(struct metrics *m, const char *method, const char *route)
{
        for (size_t i = 0; i < m->route_count; i++)
                if (m->routes[i].route == route && m->routes[i].method == method)
                        return &m->routes[i];
        if (m->route_count == CALLS_MAX)
                return NULL;
        m->routes[m->route_count] = (struct route_metrics){.method = method, .route = route};
        return &m->routes[m->route_count++];
}

static struct call_metrics *call_of(struct metrics *m, const char *method, const char *route, int status)
{
        for (size_t i = 0; i < m->call_count; i++)
                if (m->calls[i].route == route && m->calls[i].method == method &&
                    m->calls[i].status == status)
                        return &m->calls[i];
        if (m->call_count == CALLS_MAX)
                return NULL;
        m->calls[m->call_count] = (struct call_metrics){.method = method, .route = route, .status = status};
        return &m->calls[m->call_count++];
}

void metrics_call(struct metrics *m, const char *method, const char *route, int status, int64_t took_ns)
{
        struct call_metrics *c = call_of(m, method, route, status);
        struct route_metrics *r = route_of(m, method, route);

        if (c)
                c->count++;
        if (r)
                exposition_observe(&r->took, &call_bounds, (double)took_ns / 1e9, 1);
}

void metrics_write_calls(const struct metrics *m, struct buf *out)
{
        exposition_family(out, "drover_http_requests_total", "counter",
                          "Calls of the API that were answered, by method, route and status.");
        for (size_t i = 0; i < m->call_count; i++) {
                const struct call_metrics *c = &m->calls[i];
                char status[16];

                snprintf(status, sizeof(status), "%d", c->status);
                exposition_value(
                        out, "drover_http_requests_total",
                        (struct exposition_label[]){
                                {"method", c->method}, {"route", c->route}, {"code", status}, {NULL, NULL}},
                        (double)c->count);
        }
        exposition_family(out, "drover_http_request_seconds", "histogram",
                          "From a call's head to its answer, by method and route; a wait lasts until what it "
                          "waits for.");
        for (size_t i = 0; i < m->route_count; i++)
                exposition_histogram(out, "drover_http_request_seconds",
                                     (struct exposition_label[]){{"method", m->routes[i].method},
                                                                 {"route", m->routes[i].route},
                                                                 {NULL, NULL}},
                                     &call_bounds, &m->routes[i].took);
}
