#include "core/forecast/eta.h"

#include "base/mem.h"
#include "base/pack.h"
#include "core/classes/job_class.h"
#include "core/estimate/busy.h"
#include "core/estimate/estimate.h"
#include "core/forecast/forecast.h"
#include "core/model/gang_rule.h"
#include "core/query.h"
#include "core/reservation/advance.h"

#define FRESH_MS    5000 /* time for which a result is used */
#define PAUSE_MS    200  /* a query about a new job starts a new simulation, but not more often than this */
#define TICK_MS     30000
#define GUESSES_MAX 4096u
#define ERRORS_MAX  500u
#define QUOTE_STEPS 256u
#define SLICE       10000u /* work of a simulation in one call, in tenths of microseconds */
#define STORE_SLICE 4000u  /* buckets that are updated in one call */

struct eta {
        int64_t made_ms; /* start of the simulation of the present results */
        uint32_t pass; /* number of the last simulation whose results the buckets have, or are being given */
        uint64_t filled;           /* core.buckets_filled when the simulation began */
        struct forecast *forecast; /* simulation in progress; NULL: none */
        uint64_t filled_before;    /* core.buckets_filled when it began */
        bool simulated;            /* its turns are complete */
        size_t told;               /* number of its turns whose results the buckets have */
        struct idmap *guesses;     /* request and member → predicted start */
        int64_t errors[ERRORS_MAX];
        uint64_t error_count;
};

static void forget_guesses(struct eta *e)
{
        void *value;

        for (size_t at = 0; e->guesses && idmap_next(e->guesses, &at, NULL, &value);)
                free(value);
        idmap_free(e->guesses);
        e->guesses = NULL;
}

void eta_free(struct eta *e)
{
        if (!e)
                return;
        forecast_free(e->forecast);
        forget_guesses(e);
        free(e);
}

static uint64_t last_of(const struct set *s)
{
        uint64_t first, end, last = 0;

        for (uint64_t at = 0; set_run(s, at, &first, &end); at = end)
                last = end - 1;
        return last;
}

static void guess_keep(struct eta *e, uint64_t key, int64_t start_ms)
{
        int64_t *when;

        if (e->guesses && idmap_count(e->guesses) >= GUESSES_MAX)
                forget_guesses(e);
        if (!e->guesses)
                e->guesses = idmap_new();
        if (idmap_get(e->guesses, key))
                return;
        when = mem_new(int64_t);
        *when = start_ms;
        idmap_put(e->guesses, key, when);
}

/* Remembers the first prediction for the bucket's last job. */
static void guess(struct eta *e, const struct bucket *b)
{
        uint64_t index = set_count(&b->idle) - 1;

        guess_keep(e, b->request->id << 32 | last_of(&b->idle),
                   b->eta_start_ms + (int64_t)((double)b->eta_step_ms * (double)index));
}

/* ---- simulation in slices */

static struct eta *eta_of(struct core *c)
{
        if (!c->eta) {
                c->eta = mem_new(struct eta);
                c->eta->made_ms = c->now_ms - TICK_MS;
        }
        return c->eta;
}

static void simulation_begin(struct core *c)
{
        struct eta *e = eta_of(c);

        if (e->forecast)
                return;
        e->forecast = forecast_new(c, NULL, false);
        e->filled_before = c->classes->buckets_filled;
        e->simulated = false;
        e->told = 0;
}

void eta_rekeyed(struct core *c)
{
        if (!c->eta)
                return;
        forecast_free(c->eta->forecast);
        c->eta->forecast = NULL;
}

static void tell_turn(struct eta *e, const struct eta_turn *t)
{
        struct bucket *b = t->bucket;
        bool first = b && b->eta_pass == 0;

        if (!b)
                return;
        b->eta_start_ms = t->start_ms;
        b->eta_step_ms = t->step_ms;
        b->eta_run_ms = t->run_ms;
        b->eta_known = t->start_ms ? (uint32_t)t->known : 0;
        b->eta_pass = e->pass + 1;
        if (first && set_count(&b->idle) &&
            set_count(&b->idle) <= b->eta_known) /* for its last job, which has no prediction yet */
                guess(e, b);
}

/* Runs a slice. Returns true if there is more. */
static bool simulation_advance(struct core *c)
{
        struct eta *e = c->eta;
        const struct eta_turns *t = &e->forecast->turns;

        if (core_rekey_slice(c))
                return true;
        if (!e->simulated) {
                e->simulated = !forecast_some(e->forecast, SLICE);
                return true;
        }
        for (unsigned n = 0; n < STORE_SLICE && e->told < t->count; n++)
                tell_turn(e, &t->v[e->told++]);
        if (e->told < t->count)
                return true;
        e->made_ms = e->forecast->now_ms;
        e->filled = e->filled_before;
        e->pass++;
        forecast_free(e->forecast);
        e->forecast = NULL;
        return false;
}

/* Returns whether the results are recent enough; a listing does not cause a simulation for each of its rows.
 */
static bool is_fresh(const struct core *c)
{
        const struct eta *e = c->eta;
        int64_t age = e && e->pass ? c->now_ms - e->made_ms : FRESH_MS;

        return age >= 0 && age < FRESH_MS && (age < PAUSE_MS || e->filled == c->classes->buckets_filled);
}

bool core_eta_some(struct core *c, uint32_t *look)
{
        struct eta *e = c->config.shadow ? NULL : eta_of(c);

        if (!e || (*look && e->pass >= *look))
                return false;
        if (!*look && is_fresh(c)) {
                *look = e->pass;
                return false;
        }
        if (!*look) /* the simulation in progress may have missed jobs that arrived since it began */
                *look = e->pass + (e->forecast && e->filled_before != c->classes->buckets_filled ? 2 : 1);
        simulation_begin(c);
        simulation_advance(c);
        return e->pass < *look;
}

/* Returns of how many of the bucket's jobs, from the first on, the start is known. */
static uint64_t known(const struct core *c, const struct bucket *b)
{
        return c->eta && b->eta_pass && b->eta_pass >= c->eta->pass ? b->eta_known : 0;
}

/* Returns whether a job that was assigned ahead waits at the agent for a processor. */
static bool waits_for_room(const struct job *j)
{
        int64_t taken = j->cpus;

        for (const struct job *other = j->queue->attempts; other; other = other->next)
                taken += job_state_runs(other->state) ? other->cpus : 0;
        return taken > j->queue->total_cpus;
}

int core_eta(struct core *c, uint64_t request, uint32_t member, struct core_eta *ret)
{
        struct request *r = request_find(c, request);
        struct estimate_bounds bounds;
        const struct part *p;
        const struct advance *meta;
        const struct job *j;
        struct bucket *b;
        uint64_t before;

        *ret = (struct core_eta){0};
        if (!r || member >= r->count)
                return CORE_UNKNOWN;
        j = request_job(r, member);
        p = request_part(r, member, NULL);
        if (j && j->queue && !job_state_runs(j->state) && (j->queue->wait_unknown || waits_for_room(j)))
                return 0;
        if (j && j->queue) {
                ret->start_ms =
                        job_state_runs(j->state) ? j->started_ms : c->now_ms + busy_queue_ms(c, j->queue);
                if (estimate_is_close(p)) {
                        estimate_ends(c, j, &bounds);
                        ret->end_ms = bounds.half_ms;
                        ret->end_most_ms = bounds.most_ms;
                }
                return 0;
        }
        b = request_bucket(c, r, member);
        if (c->config.shadow || !b || !b->job_class || !set_has(&b->idle, member))
                return 0;
        meta = b->job_class->job_template->meta.wanted ? advance_for_job(c, request, member) : NULL;
        before = set_count_range(&b->idle, 0, member);
        if (gang_class(b->job_class)) /* all members of a gang start with the first */
                before -= before % gang_size(request_part_at(r, b->part));
        if (!meta && before >= known(c, b))
                return 0;
        ret->start_ms =
                meta ? meta->start_ms : b->eta_start_ms + (int64_t)((double)b->eta_step_ms * (double)before);
        if (ret->start_ms < c->now_ms)
                ret->start_ms = c->now_ms;
        if (estimate_is_close(p)) {
                estimate_bounds(c, p, NULL, 0, &bounds);
                ret->end_ms = ret->start_ms + bounds.half_ms;
                ret->end_most_ms = ret->start_ms + bounds.most_ms;
        }
        return 0;
}

int core_eta_request(struct core *c, uint64_t request, struct core_eta *ret)
{
        struct request *r = request_find(c, request);
        struct estimate_bounds bounds = {0};
        const struct bucket *last_idle = NULL; /* whose last job ends after all others; NULL: it has begun */
        const struct job *last = NULL;
        bool blind = false;
        void *value;

        *ret = (struct core_eta){0};
        if (!r)
                return CORE_UNKNOWN;
        if (c->config.shadow)
                return 0;
        for (size_t at = 0; r->active && idmap_next(r->jobs, &at, NULL, &value);) {
                struct job *j = value;
                int64_t end = j->queue ? estimate_end_ms(c, j) : 0;

                if (end > ret->end_ms) {
                        ret->end_ms = end;
                        last = j;
                }
                blind |= end && !estimate_is_close(request_part(r, j->member, NULL));
        }
        for (size_t i = 0; i < r->bucket_count; i++) {
                const struct bucket *b = r->buckets[i];
                uint64_t n = set_count(&b->idle);
                int64_t end;

                if (n == 0)
                        continue;
                if (b->job_class->job_template->meta.wanted || !known(c, b)) {
                        *ret = (struct core_eta){0}; /* if one is unknown, the last start is unknown */
                        return 0;
                }
                end = b->eta_start_ms +
                      (int64_t)((double)b->eta_step_ms * (double)(n - 1) + (double)b->eta_run_ms);
                if (end > ret->end_ms) {
                        ret->end_ms = end;
                        last_idle = b;
                }
                if (!ret->start_ms || b->eta_start_ms < ret->start_ms)
                        ret->start_ms = b->eta_start_ms;
                blind |= n > known(c, b) || !estimate_is_close(request_part_at(r, b->part));
        }
        if (blind || !ret->end_ms) {
                ret->end_ms = 0;
                return 0;
        }
        if (last_idle) {
                estimate_bounds(c, request_part_at(r, last_idle->part), NULL, 0, &bounds);
                bounds.most_ms += ret->end_ms - (int64_t)last_idle->eta_run_ms;
        } else {
                estimate_ends(c, last, &bounds);
        }
        ret->end_most_ms = bounds.most_ms > ret->end_ms ? bounds.most_ms : ret->end_ms;
        return 0;
}

/* ---- errors of predictions */

void eta_started(struct core *c, const struct job *j)
{
        uint64_t key = j->request->id << 32 | j->member;
        int64_t *when = c->eta && c->eta->guesses ? idmap_take(c->eta->guesses, key) : NULL;

        if (!when)
                return;
        c->eta->errors[c->eta->error_count++ % ERRORS_MAX] =
                j->started_ms > *when ? j->started_ms - *when : *when - j->started_ms;
        free(when);
}

static int eta_by_number(const void *x, const void *y)
{
        int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

        return (a > b) - (a < b);
}

void core_eta_error(struct core *c, struct core_eta_error *ret)
{
        int64_t sorted[ERRORS_MAX];
        size_t n;

        *ret = (struct core_eta_error){.ends = c->estimates->ended};
        if (ret->ends > 0) {
                ret->by_half = c->estimates->by_half / ret->ends;
                ret->by_most = c->estimates->by_most / ret->ends;
        }
        if (!c->eta || c->eta->error_count == 0)
                return;
        n = c->eta->error_count < ERRORS_MAX ? c->eta->error_count : ERRORS_MAX;
        memcpy(sorted, c->eta->errors, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), eta_by_number);
        ret->count = c->eta->error_count;
        ret->median_ms = sorted[n / 2];
}

void eta_pack(const struct core *c, struct buf *out)
{
        const struct eta *e = c->eta;
        uint64_t n = !e ? 0 : e->error_count < ERRORS_MAX ? e->error_count : ERRORS_MAX, key;
        void *value;

        pack_u64(out, e ? e->error_count : 0);
        for (uint64_t i = 0; i < n; i++)
                pack_i64(out, e->errors[i]);
        pack_u64(out, e && e->guesses ? idmap_count(e->guesses) : 0);
        for (size_t at = 0; e && e->guesses && idmap_next(e->guesses, &at, &key, &value);) {
                pack_u64(out, key);
                pack_i64(out, *(int64_t *)value);
        }
}

/* No prediction exists yet, since a replay runs no simulation. */
void eta_unpack(struct core *c, struct unpack *in)
{
        struct eta *e = eta_of(c);
        uint64_t n;

        e->error_count = unpack_u64(in);
        n = e->error_count < ERRORS_MAX ? e->error_count : ERRORS_MAX;
        for (uint64_t i = 0; i < n; i++) {
                int64_t error_ms = unpack_i64(in);

                e->errors[i] = error_ms > 0 ? error_ms : 0;
        }
        for (n = unpack_max(in, GUESSES_MAX); n > 0 && !in->bad; n--) {
                uint64_t key = unpack_u64(in);
                int64_t when_ms = unpack_i64(in);
                const struct request *r = request_find(c, key >> 32);

                if (r && request_idle_has(r, (uint32_t)key))
                        guess_keep(e, key, when_ms);
        }
        if (in->bad)
                e->error_count = 0;
}

/* Makes predictions without requests, too; otherwise their errors would not be known. */
int64_t eta_tick(struct core *c)
{
        int64_t due;

        if (c->config.shadow)
                return INT64_MAX;
        due = eta_of(c)->made_ms + TICK_MS;
        if (c->now_ms >= due || c->eta->forecast) {
                simulation_begin(c);
                return simulation_advance(c) ? 0 : TICK_MS;
        }
        return due - c->now_ms;
}

/* ---- for a quote */

int64_t eta_quote_at(struct forecast *x, const struct bucket *b, const struct queue *q, int64_t cpus,
                     int64_t run_ms)
{
        struct core *c = x->core;
        int64_t from = b->job_class->not_before_ms > c->now_ms ? b->job_class->not_before_ms : c->now_ms, at;
        struct capacity_timeline one = {0};
        struct eta_draws d;

        eta_limits_draws(&x->limits, b, q, &d);
        for (size_t i = 0; i < x->timeline_count; i++)
                if (x->timelines[i].queue == q)
                        return eta_draws_find(&d, &x->timelines[i], from, cpus, run_ms);
        timeline_init(c, &one, (struct queue *)q, QUOTE_STEPS, x->guess); /* left out of the simulation */
        at = eta_draws_find(&d, &one, from, cpus, run_ms);
        timeline_deinit(&one);
        return at;
}

uint64_t eta_quote_room(struct forecast *x, const struct bucket *b, const struct queue *q)
{
        struct eta_draws d;

        eta_limits_draws(&x->limits, b, q, &d);
        return eta_draws_room(&d);
}

uint64_t eta_slots(const struct queue *q, int64_t cpus)
{
        int64_t all = q->total_cpus < INT64_MAX ? q->total_cpus : q->cpus > 0 ? q->cpus : 1;

        return cpus > 0 ? (uint64_t)(all / cpus) : (uint64_t)all;
}
