/* Whether a class was passed over is derived from what queues were given: each queue keeps the mark of the
 * class furthest back in the order that it was given to lately. A starving class before that mark was passed
 * over there; one behind everything that is matched waits for its turn, and gets no reservation. */
#include "core/gang/reserve.h"

#include <stdio.h>

#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/data/cost.h"
#include "core/estimate/estimate.h"
#include "core/fairness/charge.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"
#include "core/model/pending_match.h"
#include "core/model/precedence.h"
#include "core/model/suits.h"

#define STEP_MS        5000
#define AFTER_MS       60000
#define RESERVED_MAX   16u                 /* most reservations at a time */
#define CLASSES_STEP   4u                  /* most classes for which a place is searched in one step */
#define QUEUES_SLICE   500u                /* queues examined for one class in a step */
#define PLACES_TRIED   32u                 /* of these, queues evaluated in full */
#define STEPS_SLICE    50000u              /* steps of expressions after which fewer are examined */
#define IDLE           0.03                /* fraction of a queue's processors by which debt is repaid */
#define IDLE_MOST_MS   (6 * 3600 * 1000.0) /* most idle time of the whole queue for one reservation */
#define START_SLACK_MS 30000 /* from the match until a job's own time begins: accepting, staging */

int64_t reserve_after_ms(const struct core *c)
{
        return c->config.reserve_after_ms ? c->config.reserve_after_ms : AFTER_MS;
}

/* ---- predictions of free room */

struct ending {
        int64_t at_ms, cpus, memory_mib;
};

int64_t reserve_ends_ms(struct core *c, struct job *j)
{
        const struct part *p = request_part(j->request, j->member, NULL);

        if (!job_state_runs(j->state) || !j->started_ms)
                return c->now_ms + START_SLACK_MS +
                       (p->job_template->allowed_ms ? p->job_template->allowed_ms
                                                    : estimate_left_ms(c, p, j->queue, 0));
        if (p->job_template->allowed_ms)
                return j->started_ms + p->job_template->allowed_ms > c->now_ms
                               ? j->started_ms + p->job_template->allowed_ms
                               : c->now_ms;
        return estimate_end_ms(c, j);
}

static int reserve_by_time(const void *x, const void *y)
{
        const struct ending *a = x, *b = y;

        return (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms);
}

void reserve_free_at(struct core *c, const struct queue *q, int64_t at_ms, int64_t *ret_cpus,
                     int64_t *ret_memory_mib)
{
        *ret_cpus = q->total_cpus;
        *ret_memory_mib = q->total_memory_mib;
        for (struct job *j = q->attempts; j; j = j->next)
                if (at_ms == INT64_MIN || reserve_ends_ms(c, j) > at_ms) {
                        *ret_cpus -= j->cpus;
                        *ret_memory_mib -= (int64_t)j->memory_mib;
                }
}

void reserve_free_now(struct core *c, const struct queue *q, int64_t *ret_cpus, int64_t *ret_memory_mib)
{
        reserve_free_at(c, q, INT64_MIN, ret_cpus, ret_memory_mib);
}

int64_t reserve_room_ms(struct core *c, const struct queue *q, const struct need *need)
{
        struct ending *all;
        int64_t cpus, memory_mib, at_ms = c->now_ms;
        size_t n = 0;

        if (need->cpus > q->total_cpus || need->memory_mib > q->total_memory_mib ||
            q->total_cpus == INT64_MAX)
                return INT64_MAX;
        all = mem_array(NULL, q->attempt_count + 1, sizeof(*all));
        for (struct job *j = q->attempts; j; j = j->next)
                all[n++] = (struct ending){reserve_ends_ms(c, j), j->cpus, (int64_t)j->memory_mib};
        if (n > 1)
                qsort(all, n, sizeof(*all), reserve_by_time);
        reserve_free_at(c, q, INT64_MIN, &cpus, &memory_mib);
        for (size_t i = 0; i < n && (cpus < need->cpus || memory_mib < need->memory_mib); i++) {
                cpus += all[i].cpus;
                memory_mib += all[i].memory_mib;
                at_ms = all[i].at_ms;
        }
        free(all);
        return reserve_advance_after(c, q, at_ms, need);
}

/* ---- costs of reservations */

/* Returns whether an attempt without an allowed run time runs there. */
static bool is_guessed(const struct queue *q)
{
        for (const struct job *j = q->attempts; j; j = j->next)
                if (!request_part(j->request, j->member, NULL)->job_template->allowed_ms)
                        return true;
        return false;
}

static double idle_now_ms(struct core *c, const struct queue *q)
{
        int64_t cpus, memory_mib;

        if (!q->reserved || !q->reserved->keeps)
                return 0;
        reserve_free_at(c, q, INT64_MIN, &cpus, &memory_mib);
        return cpus > 0 ? (double)(c->steady_ms - q->reserve_owed_at_ms) * (double)cpus : 0;
}

static double owed_ms(struct core *c, const struct queue *q, double idle_ms)
{
        double share = c->config.reserve_idle > 0 ? c->config.reserve_idle : IDLE;
        double passed_ms = (double)(c->steady_ms - q->reserve_owed_at_ms);
        double owed = q->reserve_owed_ms + idle_ms - passed_ms * share * (double)q->total_cpus;

        return owed > 0 ? owed : 0;
}

static void settle_queue(struct core *c, struct queue *q)
{
        double idle_ms = idle_now_ms(c, q);
        bool owes = idle_ms > 0 && is_guessed(q);

        q->reserve_owed_ms = owed_ms(c, q, owes ? idle_ms : 0);
        q->reserve_owed_at_ms = c->steady_ms;
        if (!q->reserved)
                return;
        q->reserved->of->idle_ms += idle_ms;
        if (!owes)
                q->reserved->said_idle_ms += idle_ms;
}

static bool costs_too_much(struct core *c, struct reservation *r)
{
        bool yes = false;

        for (size_t i = 0; i < r->count; i++) {
                struct queue *q = r->places[i].queue;

                settle_queue(c, q);
                if (q->reserve_owed_ms + r->places[i].said_idle_ms <= IDLE_MOST_MS * (double)q->total_cpus)
                        continue;
                q->reserve_owed_ms += r->places[i].said_idle_ms;
                yes = true;
        }
        return yes;
}

/* ---- backfill */

/* Returns how long a job of the class will take at the queue. 0: unknown. */
static int64_t takes_ms(struct core *c, const struct job_class *k, const struct queue *q)
{
        const struct bucket *b = job_class_first_bucket(k);
        const struct part *p = request_part_at(b->request, b->part);

        return p->job_template->allowed_ms ? p->job_template->allowed_ms : estimate_run_ms(c, p, q, NULL);
}

bool reserve_may_keep(const struct job_class *k, const struct queue *q)
{
        return q->reserved || q->advance || k->job_template->reservation;
}

bool reserve_allows(struct core *c, const struct job_class *k, const struct queue *q, const struct need *need)
{
        struct reserved *r = q->reserved;
        int64_t cpus, memory_mib, ms;

        if (!reserve_advance_allows(c, k, q, need))
                return false;
        if (!r || k->job_template->reservation || k->job_template->meta.wanted)
                return true;
        reserve_free_at(c, q, INT64_MIN, &cpus, &memory_mib);
        if (cpus < need->cpus || memory_mib < need->memory_mib)
                return false; /* would not start at once: a queue's deliveries ahead of their turn are not
                                 room */
        if (r->of->job_class == k)
                return true;
        ms = takes_ms(c, k, q);
        if (ms && c->now_ms + START_SLACK_MS + ms <= r->of->start_ms)
                return true;
        reserve_free_at(c, q, r->of->start_ms, &cpus, &memory_mib);
        if (cpus - r->need.cpus >= need->cpus && memory_mib - r->need.memory_mib >= need->memory_mib)
                return true;
        r->keeps = true;
        return false;
}

bool reserve_allows_all(struct core *c, const struct job_class *k, const struct queue *q,
                        const struct need *need, uint64_t count)
{
        const struct need all = {.cpus = need->cpus * (int64_t)count,
                                 .memory_mib = need->memory_mib * (int64_t)count};

        return !reserve_may_keep(k, q) || reserve_allows(c, k, q, &all);
}

void reserve_attempt_ended(struct core *c, struct queue *q)
{
        if ((q->reserved || q->advance) && q->offers && q->jobs_left > 0)
                queue_look_again(c, q);
}

/* ---- making and ending them */

static void end_reservation(struct core *c, struct reservation *r)
{
        struct reservation **at = &c->reservations->first;

        while (*at != r)
                at = &(*at)->next;
        *at = r->next;
        c->reservations->count--;
        r->job_class->reserved = NULL;
        for (size_t i = 0; i < r->count; i++) {
                struct queue *q = r->places[i].queue;

                settle_queue(c, q);
                q->reserved = NULL;
                if (q->offers && q->jobs_left > 0)
                        queue_look_again(c, q);
        }
        free(r->places);
        free(r);
}

void reserve_given(struct core *c, struct job_class *k, struct queue *q)
{
        struct order_mark mark = order_mark_of(k);

        k->given_before_ms = k->given_ms;
        k->given_ms = c->steady_ms;
        if (k->reserved)
                end_reservation(c, k->reserved);
        if (!q->passed.account || c->steady_ms - q->passed_ms > reserve_after_ms(c) ||
            order_mark_before(c, &q->passed, &mark)) {
                q->passed = mark;
                q->passed_ms = c->steady_ms;
        }
}

void reserve_refused(struct job_class *k)
{
        if (k->given_before_ms && k->given_before_ms < k->given_ms)
                k->given_ms = k->given_before_ms;
}

void reserve_class_ready(struct core *c, struct job_class *k)
{
        k->given_ms = c->steady_ms;
}

void reserve_class_gone(struct core *c, struct job_class *k)
{
        if (k->reserved)
                end_reservation(c, k->reserved);
}

static bool is_hungry(struct core *c, const struct job_class *k)
{
        return !k->reserved && !k->job_template->meta.wanted &&
               account_may_evaluate(k->account, c->steady_ms) &&
               c->steady_ms - k->given_ms >= reserve_after_ms(c) &&
               k->reserve_round != c->reservations->round && charge_room(k, k->draws, NULL) > 0 &&
               !k->draws_bad;
}

/* Compares two classes: reservations go alternately to the next in the order and to the first submitted. */
static bool is_next(const struct core *c, const struct job_class *a, const struct job_class *b)
{
        int64_t x = job_class_first_bucket(a)->request->submitted_ms,
                y = job_class_first_bucket(b)->request->submitted_ms;

        return c->reservations->made % 2 || x == y ? order_class_before(a, b) : x < y;
}

/* Returns the starving class whose turn it is; NULL: none. */
static struct job_class *hungriest(struct core *c, const struct account *a)
{
        struct job_class *best = NULL;

        for (struct job_class *k = a->leaf ? a->classes : NULL; k; k = k->account_next)
                if (is_hungry(c, k) && (!best || is_next(c, k, best)))
                        best = k;
        for (const struct account *b = a->children; b; b = b->next) {
                struct job_class *k = b->ready ? hungriest(c, b) : NULL;

                if (k && (!best || is_next(c, k, best)))
                        best = k;
        }
        return best;
}

struct place {
        struct queue *queue;
        struct need need;
        int64_t start_ms;
};

static int by_start(const void *x, const void *y)
{
        const struct place *a = x, *b = y;

        if (a->start_ms != b->start_ms)
                return a->start_ms < b->start_ms ? -1 : 1;
        return strcmp(a->queue->agent->name, b->queue->agent->name);
}

bool reserve_may_use(struct core *c, const struct job_class *k, const struct queue *q)
{
        return !q->reserved && owed_ms(c, q, 0) == 0 && agent_takes_jobs(q->agent) && q->ad &&
               queue_allows_owner(q, k->owner) && !(k->labels & ~q->agent->cleared) &&
               cost_reaches_first(c, k, q);
}

bool reserve_was_passed(struct core *c, const struct job_class *k, const struct queue *q)
{
        struct order_mark mark = order_mark_of(k);

        return q->passed.account && c->steady_ms - q->passed_ms <= reserve_after_ms(c) &&
               order_mark_before(c, &mark, &q->passed);
}

static bool could_have_been(struct core *c, const struct job_class *k, const struct queue *q,
                            struct place *ret)
{
        if (!reserve_may_use(c, k, q) || !reserve_was_passed(c, k, q))
                return false;
        need_of(c, k, k->ad, q->ad, &ret->need);
        ret->start_ms = reserve_room_ms(c, q, &ret->need);
        ret->queue = (struct queue *)q;
        return ret->start_ms != INT64_MAX;
}

/* Makes the reservation; takes over `places`. */
static void make_reservation(struct core *c, struct job_class *k, struct reserved *places, size_t count,
                             int64_t start_ms)
{
        struct reservation *r = mem_new(struct reservation);

        *r = (struct reservation){.job_class = k,
                                  .places = places,
                                  .count = count,
                                  .start_ms = start_ms,
                                  .next = c->reservations->first};
        c->reservations->first = r;
        c->reservations->count++;
        c->reservations->made++;
        k->reserved = r;
        for (size_t i = 0; i < count; i++) {
                places[i].of = r;
                settle_queue(c, places[i].queue);
                places[i].queue->reserved = &places[i];
        }
}

static void reserve_at(struct core *c, struct job_class *k, const struct place *p)
{
        struct reserved *one = mem_new(struct reserved);

        *one = (struct reserved){.queue = p->queue, .need = p->need};
        make_reservation(c, k, one, 1, p->start_ms);
}

static void reserve_for_gang(struct core *c, struct job_class *k)
{
        struct reserved *places;
        int64_t start_ms;
        size_t count;

        if (reserve_gang_find(c, k, &places, &count, &start_ms))
                make_reservation(c, k, places, count, start_ms);
        k->reserve_round = c->reservations->round;
}

/* Searches a slice of the queues; the next step continues behind it. */
static void reserve_for(struct core *c, struct job_class *k)
{
        struct place *found = mem_array(NULL, QUEUES_SLICE, sizeof(*found));
        size_t at = c->reservations->at, n = 0;
        uint64_t steps = core_steps(c);
        unsigned looked = 0;
        void *value;

        while (looked < QUEUES_SLICE && core_steps(c) - steps < STEPS_SLICE) {
                if (!map_next(c->agents, &at, NULL, &value)) {
                        at = 0;
                        break;
                }
                for (struct queue *q = ((struct core_agent *)value)->queues; q && looked < QUEUES_SLICE;
                     q = q->next) {
                        looked++;
                        n += could_have_been(c, k, q, &found[n]);
                }
        }
        c->reservations->at = at;
        if (n > 1)
                qsort(found, n, sizeof(*found), by_start);
        for (size_t i = 0; i < n && i < PLACES_TRIED && core_steps(c) - steps < 2 * STEPS_SLICE; i++) {
                struct ad *whole = queue_whole_ad(c, found[i].queue);
                bool yes = queue_would_take(c, k->ad, whole);

                ad_free(whole);
                if (yes) {
                        reserve_at(c, k, &found[i]);
                        break;
                }
        }
        account_evaluated(k->account, c->steady_ms, core_steps(c) - steps);
        if (at == 0)
                k->reserve_round = c->reservations->round; /* all queues were examined: other classes' turn */
        eval_reset(&c->eval);
        free(found);
}

/* Returns when there is room at all its places. */
static int64_t start_of(struct core *c, const struct reservation *r)
{
        int64_t start_ms = c->now_ms;

        for (size_t i = 0; i < r->count; i++) {
                const struct queue *q = r->places[i].queue;
                int64_t at_ms =
                        agent_takes_jobs(q->agent) ? reserve_room_ms(c, q, &r->places[i].need) : INT64_MAX;

                start_ms = at_ms > start_ms ? at_ms : start_ms;
        }
        return start_ms;
}

int64_t reserve_step(struct core *c)
{
        struct job_class *k;

        if (c->config.shadow || c->config.reserve_after_ms < 0)
                return INT64_MAX;
        if (c->steady_ms < c->reservations->due_ms)
                return c->reservations->due_ms - c->steady_ms;
        c->reservations->due_ms =
                c->steady_ms + (reserve_after_ms(c) < STEP_MS ? reserve_after_ms(c) : STEP_MS);
        for (struct reservation *r = c->reservations->first, *next; r; r = next) {
                next = r->next;
                r->start_ms = start_of(c, r);
                if (r->start_ms == INT64_MAX || charge_room(r->job_class, r->job_class->draws, NULL) == 0 ||
                    costs_too_much(c, r))
                        end_reservation(c, r);
        }
        for (unsigned i = 0; i < CLASSES_STEP && c->reservations->count < RESERVED_MAX; i++) {
                k = hungriest(c, shares_root(c->shares));
                if (!k) {
                        c->reservations->round++; /* all classes have had their turn */
                        break;
                }
                if (gang_class(k))
                        reserve_for_gang(c, k);
                else
                        reserve_for(c, k);
        }
        return c->reservations->due_ms - c->steady_ms;
}

void reserve_init(struct core *c)
{
        c->reservations = mem_new(struct reservations);
        c->reservations->round = 1;
}

void reserve_deinit(struct core *c)
{
        while (c->reservations->first) {
                struct reservation *r = c->reservations->first;

                c->reservations->first = r->next;
                r->job_class->reserved = NULL;
                for (size_t i = 0; i < r->count; i++)
                        r->places[i].queue->reserved = NULL;
                free(r->places);
                free(r);
        }
        free(c->reservations);
}

const char *reserve_invariant(const struct core *c)
{
        uint32_t n = 0;

        for (const struct reservation *r = c->reservations->first; r; r = r->next) {
                n++;
                if (r->job_class->reserved != r || r->job_class->idle == 0)
                        return "a reservation is for a class that waits for nothing";
                for (size_t i = 0; i < r->count; i++)
                        if (r->places[i].queue->reserved != &r->places[i])
                                return "a reservation is not known to its queue";
        }
        return n == c->reservations->count ? NULL : "reservations are counted wrongly";
}

/* ---- looking */

/* Returns whether the member is the first one, or in the set that is first. */
static bool is_first(const struct request *r, const struct set *idle, uint32_t member)
{
        uint32_t first = (uint32_t)set_first(idle), begins = first, size = 1;

        gang_of(r, first, &begins, &size);
        return member >= begins && member - begins < size;
}

int core_job_reservation(struct core *c, uint64_t request, uint32_t member, struct core_reservation *ret)
{
        struct request *r = request_find(c, request);
        const struct bucket *b = r && member < r->count ? request_bucket(c, r, member) : NULL;
        const struct reservation *x =
                b && b->job_class && set_has(&b->idle, member) ? b->job_class->reserved : NULL;

        if (!x)
                return CORE_UNKNOWN;
        *ret = (struct core_reservation){
                .agent = x->places[0].queue->agent->name,
                .queue = x->places[0].queue->name,
                .queues = x->count,
                .start_ms = x->start_ms,
                .idle_ms = (int64_t)x->idle_ms,
                .first = job_class_first_bucket(b->job_class) == b && is_first(r, &b->idle, member),
        };
        return 0;
}
