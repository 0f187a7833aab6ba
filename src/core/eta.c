#include "core/eta.h"

#include "base/mem.h"
#include "classad/match.h"
#include "core/gang.h"
#include "core/order.h"
#include "core/state.h"

#define LANES_MAX   512u /* queues that are looked at; of more, every so manieth */
#define FITS_MAX    16u  /* queues that one class is placed on */
#define STEPS_MAX   256u /* changes of what a queue has free that are kept apart */
#define EXACT_MAX   300u /* buckets that are placed; those behind follow at the common rate */
#define BUCKETS_MAX 20000u
#define SET_TIMES   512u /* at which room for a set is looked for */
#define FIRST_FEW   4u   /* jobs of a bucket that are placed one by one */
#define FRESH_MS    5000 /* a guess serves for so long */
#define PAUSE_MS    200  /* a job that was not there yet has it made anew, but not more often than this */
#define TICK_MS     30000
#define GUESSES_MAX 4096u
#define ERRORS_MAX  500u
#define FAR_MS      (365 * 86400000LL)

struct step { /* from then on so many processors are free */
        int64_t at_ms, cpus;
};
struct lane { /* a queue, as it will be */
        struct queue *queue;
        struct ad *whole;
        int64_t cpus;    /* of its own, or what it has free where it does not say */
        int64_t busy_ms; /* taken by what follows at a rate, until then */
        struct step *steps;
        size_t count, cap;
};
struct fit { /* where a class can run */
        const struct class *class;
        uint16_t lanes[FITS_MAX];
        size_t count;
};

struct eta {
        struct lane lanes[LANES_MAX];
        size_t lane_count;
        double scale; /* queues that a lane stands for */
        int64_t made_ms;
        uint32_t pass;
        struct idmap *guesses; /* request and member → when it was expected to start */
        int64_t errors[ERRORS_MAX];
        uint64_t error_count;
};

static void lane_deinit(struct lane *l)
{
        ad_free(l->whole);
        free(l->steps);
        *l = (struct lane){0};
}

static void forget_guesses(struct eta *e)
{
        void *value;

        for (size_t at = 0; e->guesses && idmap_next(e->guesses, &at, NULL, &value);)
                free(value);
        idmap_free(e->guesses);
        e->guesses = NULL;
}

static void forget_lanes(struct eta *e)
{
        for (size_t i = 0; i < e->lane_count; i++)
                lane_deinit(&e->lanes[i]);
        e->lane_count = 0;
}

void eta_free(struct eta *e)
{
        if (!e)
                return;
        forget_lanes(e);
        forget_guesses(e);
        free(e);
}

/* ---- a queue, as it will be */

static int by_time(const void *x, const void *y)
{
        const struct step *a = x, *b = y;

        return (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms);
}

/* Steps are what is free from then on: first the ends of attempts, each with what it gives back, then summed.
 */
static void lane_init(struct core *c, struct lane *l, struct queue *q)
{
        int64_t now_free = q->offers ? q->cpus : 0, running = 0;
        size_t n = 1;

        *l = (struct lane){.queue = q};
        l->cap = (q->attempt_count < STEPS_MAX ? q->attempt_count : STEPS_MAX) + 1;
        l->steps = mem_array(NULL, l->cap, sizeof(*l->steps));
        for (const struct job *j = q->attempts; j; j = j->next) {
                const struct part *p = request_part(j->request, j->member, NULL);
                bool runs = job_state_runs(j->state) && j->started_ms < c->now_ms;

                running += j->cpus;
                if (n < l->cap)
                        l->steps[n++] = (struct step){
                                c->now_ms + estimate_left_ms(c, p, q, runs ? c->now_ms - j->started_ms : 0),
                                j->cpus};
        }
        if (now_free < 0)
                now_free = 0;
        l->cpus = q->total_cpus < INT64_MAX ? q->total_cpus : now_free + running;
        if (now_free > l->cpus)
                now_free = l->cpus;
        l->steps[0] = (struct step){c->now_ms, now_free};
        qsort(l->steps + 1, n - 1, sizeof(*l->steps), by_time);
        for (size_t i = 1; i < n; i++)
                l->steps[i].cpus += l->steps[i - 1].cpus;
        if (l->cpus < l->steps[n - 1].cpus)
                l->steps[n - 1].cpus = l->cpus;
        l->count = n;
}

/* When so many processors are free for so long; 0: never. */
static int64_t lane_find(const struct lane *l, int64_t cpus, int64_t run_ms, size_t *ret_step)
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
        l->steps[after + 1] = (struct step){at_ms, l->steps[after].cpus};
        l->count++;
        return after + 1;
}

static void lane_take(struct lane *l, size_t step, int64_t from, int64_t cpus, int64_t run_ms)
{
        size_t i = lane_split(l, step, from);

        if (l->count >= STEPS_MAX * 2) { /* too many to keep apart: it is taken whole */
                l->busy_ms = from + run_ms;
                return;
        }
        for (; i < l->count && l->steps[i].at_ms < from + run_ms; i++) {
                if (i + 1 == l->count || l->steps[i + 1].at_ms > from + run_ms)
                        lane_split(l, i, from + run_ms);
                l->steps[i].cpus -= cpus;
        }
}

/* ---- the queue, played forward */

static void make_lanes(struct core *c, struct eta *e)
{
        size_t agents, all = 0, every, at = 0;
        struct core_agent **sorted = agents_sorted(c, &agents);

        forget_lanes(e);
        for (size_t i = 0; i < agents; i++)
                for (struct queue *q = sorted[i]->queues; q; q = q->next)
                        all += sorted[i]->connected && q->ad;
        every = all / LANES_MAX + 1;
        for (size_t i = 0; i < agents; i++)
                for (struct queue *q = sorted[i]->queues; q; q = q->next)
                        if (sorted[i]->connected && q->ad && at++ % every == 0 && e->lane_count < LANES_MAX)
                                lane_init(c, &e->lanes[e->lane_count++], q);
        e->scale = e->lane_count ? (double)all / (double)e->lane_count : 1;
        free(sorted);
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

static void find_fits(struct core *c, struct eta *e, const struct class *k, int64_t cpus, struct fit *f)
{
        *f = (struct fit){.class = k};
        for (size_t i = 0; i < e->lane_count && f->count < FITS_MAX; i++) {
                struct lane *l = &e->lanes[i];

                if (l->cpus < cpus)
                        continue;
                if (!l->whole)
                        l->whole = queue_whole_ad(c, l->queue);
                if (eta_suits(c, k, l->queue, l->whole))
                        f->lanes[f->count++] = (uint16_t)i;
        }
}

/* Places one job where it ends soonest; when it starts, or 0. */
static int64_t place(struct core *c, struct eta *e, const struct fit *f, const struct part *p,
                     uint32_t member, int64_t *ret_run_ms)
{
        struct lane *best = NULL;
        size_t best_step = 0, step = 0;
        int64_t best_end = INT64_MAX, best_at = 0;
        struct core_cost best_cost = {0}, cost;

        for (size_t i = 0; i < f->count; i++) {
                struct lane *l = &e->lanes[f->lanes[i]];
                int64_t at;

                cost_of(c, p, member, l->queue, &cost);
                at = lane_find(l, p->template->cpus, cost.total_ms - cost.price_ms, &step);
                if (at && at + cost.total_ms < best_end) {
                        best_end = at + cost.total_ms;
                        best_at = at;
                        best = l;
                        best_step = step;
                        best_cost = cost;
                }
        }
        if (!best)
                return 0;
        lane_take(best, best_step, best_at, p->template->cpus, best_cost.total_ms - best_cost.price_ms);
        *ret_run_ms = best_cost.run_ms;
        return best_at + best_cost.fetch_ms + best_cost.image_ms;
}

/* The rest of a bucket: one after the other at the rate at which its places become free. */
static void follow(struct eta *e, const struct fit *f, const struct part *p, struct bucket *b, uint64_t left,
                   int64_t last)
{
        uint64_t slots = 0;

        for (size_t i = 0; i < f->count; i++)
                slots += eta_slots(e->lanes[f->lanes[i]].queue, p->template->cpus);
        if (f->count == FITS_MAX)
                slots = (uint64_t)((double)slots * (double)e->lane_count / FITS_MAX);
        slots = (uint64_t)((double)slots * e->scale);
        b->eta_step_ms = b->eta_run_ms / (float)(slots ? slots : 1);
        for (size_t i = 0; i < f->count; i++) {
                struct lane *l = &e->lanes[f->lanes[i]];
                int64_t until = last + (int64_t)((double)b->eta_step_ms * (double)left);

                if (l->busy_ms < until)
                        l->busy_ms = until < last + FAR_MS ? until : last + FAR_MS;
        }
}

static uint64_t last_of(const struct set *s)
{
        uint64_t first, end, last = 0;

        for (uint64_t at = 0; set_run(s, at, &first, &end); at = end)
                last = end - 1;
        return last;
}

static void guess(struct eta *e, const struct bucket *b, uint64_t index, uint64_t member)
{
        uint64_t key = b->request->id << 32 | member;
        int64_t *when;

        if (e->guesses && idmap_count(e->guesses) >= GUESSES_MAX)
                forget_guesses(e);
        if (!e->guesses)
                e->guesses = idmap_new();
        if (idmap_get(e->guesses, key))
                return;
        when = mem_new(int64_t);
        *when = b->eta_start_ms + (int64_t)((double)b->eta_step_ms * (double)index);
        idmap_put(e->guesses, key, when);
}

/* Of the queues that fit those that count together for a set, and have most room for its jobs. */
static void best_company(struct core *c, const struct eta *e, const struct class *k, int64_t cpus,
                         const struct fit *all, struct fit *ret, uint64_t *ret_slots)
{
        *ret_slots = 0;
        for (size_t i = 0; i < all->count; i++) {
                struct buf BUF_CLEANUP name = {.max = 1024}, other = {.max = 1024};
                struct fit some = {.class = k};
                uint64_t slots = 0;

                if (!gang_company(c, k, e->lanes[all->lanes[i]].queue, &name))
                        continue;
                for (size_t j = 0; j < all->count; j++) {
                        const struct queue *q = e->lanes[all->lanes[j]].queue;

                        buf_reset(&other);
                        if (!gang_company(c, k, q, &other) || !str_eq(buf_view(&name), buf_view(&other)))
                                continue;
                        some.lanes[some.count++] = all->lanes[j];
                        slots += eta_slots(q, cpus);
                }
                if (slots > *ret_slots) {
                        *ret_slots = slots;
                        *ret = some;
                }
        }
        eval_reset(&c->eval);
}

/* The processors that are free all the time from `from` on for so long; *ret_step: where that begins. */
static int64_t lane_free(const struct lane *l, int64_t from, int64_t run_ms, size_t *ret_step)
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

/* Takes room for so many jobs at once, from then on; false, and nothing is taken: there is not so much. */
static bool take_set(struct eta *e, const struct fit *f, uint64_t size, int64_t cpus, int64_t from,
                     int64_t run_ms)
{
        uint64_t room = 0;
        size_t step = 0;

        for (size_t i = 0; i < f->count; i++)
                room += (uint64_t)(lane_free(&e->lanes[f->lanes[i]], from, run_ms, &step) / cpus);
        if (room < size)
                return false;
        for (size_t i = 0; i < f->count && size > 0; i++) {
                struct lane *l = &e->lanes[f->lanes[i]];
                uint64_t here = (uint64_t)(lane_free(l, from, run_ms, &step) / cpus);

                here = here < size ? here : size;
                if (here)
                        lane_take(l, step, from, cpus * (int64_t)here, run_ms);
                size -= here;
        }
        return true;
}

static int by_number(const void *x, const void *y)
{
        int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

        return (a > b) - (a < b);
}

/* When something becomes free at one of the queues. */
static size_t set_times(const struct core *c, const struct eta *e, const struct fit *f,
                        int64_t times[SET_TIMES])
{
        size_t n = 0;

        times[n++] = c->now_ms;
        for (size_t i = 0; i < f->count; i++) {
                const struct lane *l = &e->lanes[f->lanes[i]];

                if (n < SET_TIMES && l->busy_ms > c->now_ms)
                        times[n++] = l->busy_ms;
                for (size_t k = 0; k < l->count && n < SET_TIMES; k++)
                        times[n++] = l->steps[k].at_ms;
        }
        qsort(times, n, sizeof(*times), by_number);
        return n;
}

/* Sets: the first one starts when there is room for all of its jobs at a time; those behind it one after the
 * other. One for which there is never room starts nobody knows when. */
static void play_sets(struct core *c, struct eta *e, struct bucket *b, const struct fit *f)
{
        const struct part *p = &b->request->parts[b->part];
        uint64_t size = gang_size(p), n = set_count(&b->idle), slots;
        int64_t times[SET_TIMES], cpus = p->template->cpus > 0 ? p->template->cpus : 1, all_ms;
        struct core_cost cost;
        struct fit some;
        size_t count;

        best_company(c, e, b->class, cpus, f, &some, &slots);
        if (slots < size)
                return;
        cost_of(c, p, (uint32_t)set_first(&b->idle), e->lanes[some.lanes[0]].queue, &cost);
        all_ms = cost.total_ms - cost.price_ms;
        b->eta_run_ms = (float)cost.run_ms;
        count = set_times(c, e, &some, times);
        for (size_t i = 0; i < count && !b->eta_start_ms; i++)
                if (take_set(e, &some, size, cpus, times[i], all_ms))
                        b->eta_start_ms = times[i] + cost.fetch_ms + cost.image_ms;
        if (b->eta_start_ms && n > size)
                follow(e, &some, p, b, n - size, b->eta_start_ms);
}

static void play_bucket(struct core *c, struct eta *e, struct bucket *b, struct fit *f)
{
        const struct part *p = &b->request->parts[b->part];
        uint64_t n = set_count(&b->idle), placed = 0;
        int64_t at = 0, last = 0, run_ms = 0;

        if (f->class != b->class)
                find_fits(c, e, b->class, p->template->cpus, f);
        b->eta_start_ms = 0;
        b->eta_step_ms = 0;
        if (gang_class(b->class)) {
                play_sets(c, e, b, f);
                return;
        }
        for (uint64_t m = set_first(&b->idle); placed < FIRST_FEW && m != SET_END; placed++) {
                at = place(c, e, f, p, (uint32_t)m, &run_ms);
                b->eta_run_ms = (float)run_ms;
                if (!at)
                        return;
                if (!b->eta_start_ms)
                        b->eta_start_ms = at;
                last = at > last ? at : last;
                m = set_next(&b->idle, m + 1);
        }
        if (n > placed)
                follow(e, f, p, b, n - placed, last);
        else if (n > 1)
                b->eta_step_ms = (float)(last - b->eta_start_ms) / (float)(n - 1);
}

/* A bucket behind those that were placed: as long as the processors need for all before it. */
static void play_far(struct core *c, struct bucket *b, int64_t from, double *work_ms, double cpus)
{
        const struct part *p = &b->request->parts[b->part];
        double own;

        own = (double)estimate_run_ms(c, p, NULL, NULL);
        b->eta_run_ms = (float)own;
        own *= (double)p->template->cpus;
        b->eta_start_ms = cpus > 0 ? from + (int64_t)(*work_ms / cpus) : 0;
        b->eta_step_ms = cpus > 0 ? (float)(own / cpus) : 0;
        *work_ms += own * (double)set_count(&b->idle);
}

static int by_order(const void *x, const void *y)
{
        const struct bucket *a = *(struct bucket *const *)x, *b = *(struct bucket *const *)y;

        return order_bucket_before(a, b) ? -1 : order_bucket_before(b, a);
}

static size_t waiting_buckets(const struct core *c, struct bucket ***ret)
{
        struct bucket **v = NULL;
        size_t n = 0, cap = 0;

        for (struct request *r = c->first; r && n < BUCKETS_MAX; r = r->next)
                for (size_t i = 0; r->idle && i < r->bucket_count; i++)
                        if (r->buckets[i]->class && set_count(&r->buckets[i]->idle)) {
                                MEM_GROW(v, cap, n + 1);
                                v[n++] = r->buckets[i];
                        }
        if (n > 1)
                qsort(v, n, sizeof(struct bucket *), by_order);
        *ret = v;
        return n;
}

static void play(struct core *c)
{
        struct eta *e = c->eta ? c->eta : mem_new(struct eta);
        double work_ms = 0, cpus = 0;
        struct bucket **buckets;
        struct fit fit = {0};
        int64_t from;
        size_t n;

        c->eta = e;
        e->made_ms = from = c->now_ms;
        e->pass++;
        make_lanes(c, e);
        n = waiting_buckets(c, &buckets);
        for (size_t i = 0; i < n; i++) {
                struct bucket *b = buckets[i];
                bool first = b->eta_pass == 0;

                if (i == EXACT_MAX)
                        for (size_t k = 0; k < e->lane_count; k++)
                                cpus += (double)e->lanes[k].cpus * e->scale;
                if (i < EXACT_MAX) {
                        play_bucket(c, e, b, &fit);
                        from = b->eta_start_ms > from ? b->eta_start_ms : from;
                } else {
                        play_far(c, b, from, &work_ms, cpus);
                }
                b->eta_pass = e->pass;
                if (first && b->eta_start_ms)
                        guess(e, b, set_count(&b->idle) - 1, last_of(&b->idle));
        }
        free(buckets);
}

/* What a listing asks for again and again is not made anew for each of its rows. */
static void freshen(struct core *c, const struct bucket *b)
{
        int64_t age = c->eta ? c->now_ms - c->eta->made_ms : FRESH_MS;

        if (age < 0 || age >= FRESH_MS || (b && b->eta_pass != c->eta->pass && age >= PAUSE_MS))
                play(c);
}

static int64_t end_of_attempt(struct core *c, const struct job *j)
{
        const struct part *p = request_part(j->request, j->member, NULL);
        bool runs = job_state_runs(j->state) && j->started_ms < c->now_ms;

        return c->now_ms + estimate_left_ms(c, p, j->queue, runs ? c->now_ms - j->started_ms : 0);
}

int core_eta(struct core *c, uint64_t request, uint32_t member, struct core_eta *ret)
{
        struct request *r = request_find(c, request);
        const struct job *j;
        struct bucket *b;
        uint64_t before;

        *ret = (struct core_eta){0};
        if (!r || member >= r->count)
                return CORE_UNKNOWN;
        j = request_job(r, member);
        if (j && j->queue) {
                ret->start_ms = job_state_runs(j->state) ? j->started_ms : c->now_ms;
                ret->end_ms = end_of_attempt(c, j);
                return 0;
        }
        b = request_bucket(c, r, member);
        if (c->config.shadow || !b || !b->class || !set_has(&b->idle, member))
                return 0;
        freshen(c, b);
        if (b->eta_pass != c->eta->pass || !b->eta_start_ms)
                return 0;
        before = set_count_range(&b->idle, 0, member);
        if (gang_class(b->class)) /* all of its set start when the first does */
                before -= before % gang_size(&r->parts[b->part]);
        ret->start_ms = b->eta_start_ms + (int64_t)((double)b->eta_step_ms * (double)before);
        if (ret->start_ms < c->now_ms)
                ret->start_ms = c->now_ms;
        ret->end_ms = ret->start_ms + (int64_t)b->eta_run_ms;
        return 0;
}

int core_eta_request(struct core *c, uint64_t request, struct core_eta *ret)
{
        struct request *r = request_find(c, request);
        void *value;

        *ret = (struct core_eta){0};
        if (!r)
                return CORE_UNKNOWN;
        if (c->config.shadow)
                return 0;
        for (size_t at = 0; r->active && idmap_next(r->jobs, &at, NULL, &value);) {
                const struct job *j = value;
                int64_t end = j->queue ? end_of_attempt(c, j) : 0;

                ret->end_ms = end > ret->end_ms ? end : ret->end_ms;
        }
        for (size_t i = 0; i < r->bucket_count; i++) {
                const struct bucket *b = r->buckets[i];
                uint64_t n = set_count(&b->idle);
                int64_t end;

                if (n == 0)
                        continue;
                freshen(c, b);
                if (b->eta_pass != c->eta->pass || !b->eta_start_ms) {
                        *ret = (struct core_eta){0}; /* one that nobody knows of is the last */
                        return 0;
                }
                end = b->eta_start_ms +
                      (int64_t)((double)b->eta_step_ms * (double)(n - 1) + (double)b->eta_run_ms);
                ret->end_ms = end > ret->end_ms ? end : ret->end_ms;
                if (!ret->start_ms || b->eta_start_ms < ret->start_ms)
                        ret->start_ms = b->eta_start_ms;
        }
        return 0;
}

/* ---- how good they were */

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

void core_eta_error(struct core *c, struct core_eta_error *ret)
{
        int64_t sorted[ERRORS_MAX];
        size_t n;

        *ret = (struct core_eta_error){0};
        if (!c->eta || c->eta->error_count == 0)
                return;
        n = c->eta->error_count < ERRORS_MAX ? c->eta->error_count : ERRORS_MAX;
        memcpy(sorted, c->eta->errors, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), by_number);
        ret->count = c->eta->error_count;
        ret->median_ms = sorted[n / 2];
}

/* Guesses are made while nobody asks, too: else nothing could be said of how good they are. */
int64_t eta_tick(struct core *c)
{
        int64_t due;

        if (c->config.shadow)
                return INT64_MAX;
        due = c->eta ? c->eta->made_ms + TICK_MS : c->now_ms;
        if (c->now_ms >= due) {
                play(c);
                due = c->now_ms + TICK_MS;
        }
        return due - c->now_ms;
}

/* ---- for a quote */

int64_t eta_at(struct core *c, const struct queue *q, int64_t cpus, int64_t run_ms)
{
        struct lane one = {0};
        int64_t at = 0;
        size_t step;

        freshen(c, NULL);
        for (size_t i = 0; i < c->eta->lane_count; i++)
                if (c->eta->lanes[i].queue == q)
                        return lane_find(&c->eta->lanes[i], cpus, run_ms, &step);
        lane_init(c, &one, (struct queue *)q); /* it was left out of the play */
        at = lane_find(&one, cpus, run_ms, &step);
        lane_deinit(&one);
        return at;
}

uint64_t eta_slots(const struct queue *q, int64_t cpus)
{
        int64_t all = q->total_cpus < INT64_MAX ? q->total_cpus : q->cpus > 0 ? q->cpus : 1;

        return cpus > 0 ? (uint64_t)(all / cpus) : (uint64_t)all;
}
