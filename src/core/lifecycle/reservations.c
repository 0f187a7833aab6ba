/* Room for a reservation depends on other reservations, not on running jobs: a place is suitable if the
 * amounts reserved at the beginning of the new period, and at each beginning within it, leave enough. The sum
 * of reserved amounts can grow only at such beginnings.
 */
#include "core/lifecycle/reservations.h"

#include <errno.h>
#include <math.h>

#include "bank/bank.h"
#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/billing/billing.h"
#include "core/events/apply.h"
#include "core/fairness/charge.h"
#include "core/gang/reserve.h"
#include "core/lifecycle/attempts.h"
#include "core/lifecycle/policy.h"
#include "core/model/core_parts.h"
#include "core/model/pending_match.h"
#include "core/model/suits.h"

#define LOOK_MS         1000
#define EVICT_SLICE     200u
#define WHERE_STEPS_MAX 500000u  /* for the condition, over all places */
#define COMPARED_MAX    5000000u /* reservations that are compared with a new one */
#define AHEAD_MAX       (10 * ADVANCE_MS_MAX)

static void reservations_order_emit(struct core *c, const struct advance_order *o)
{
        BUF_CLEANUP struct buf record = {0};
        struct event e = {.type = EVENT_ADVANCE};

        advance_order_pack(&record, o);
        e.values = buf_view(&record);
        core_emit(c, &e, NULL);
}

static void places_look_again(struct core *c, const struct advance *a)
{
        for (size_t i = 0; i < a->place_count; i++) {
                struct queue *q = a->places[i].queue;

                if (q->offers && q->jobs_left > 0)
                        queue_look_again(c, q);
        }
}

/* ---- suitable places */

static bool is_named(const struct core_reserve *r, const struct queue *q)
{
        for (size_t i = 0; i < r->place_count; i++)
                if (billing_place_fits(r->places[i], q))
                        return true;
        return r->place_count == 0;
}

static bool is_wanted(struct core *c, const struct core_reserve *r, const struct queue *q)
{
        struct value v;
        struct ad *whole;
        bool yes = true;

        if (!q->ad || q->total_cpus == INT64_MAX || q->total_cpus <= 0 || !is_named(r, q))
                return false;
        if (!r->where)
                return true;
        whole = queue_whole_ad(c, q);
        eval_expr(&c->eval, r->where, whole, NULL, &v);
        yes = v.type == VALUE_BOOLEAN && v.boolean;
        ad_free(whole);
        eval_reset(&c->eval);
        return yes;
}

static int64_t memory_of(const struct queue *q)
{
        return q->total_memory_mib == INT64_MAX ? 0 : q->total_memory_mib;
}

static void room_of(const struct core_reserve *r, const struct queue *q, struct advance_room *ret)
{
        *ret = (struct advance_room){str_of(q->agent->name), str_of(q->name), r->cpus, r->memory_mib};
        if (!ret->cpus || r->maintenance)
                ret->cpus = q->total_cpus;
        if (r->maintenance)
                ret->memory_mib = memory_of(q);
        else if (!ret->memory_mib && ret->cpus <= q->total_cpus)
                ret->memory_mib = (int64_t)((double)memory_of(q) / (double)q->total_cpus * (double)ret->cpus);
}

/* A new reservation's room at one queue. */
struct look {
        const struct core *core;
        struct advance_room room;
        bool whole;      /* the queue has to be free of others, but those for jobs, which move away */
        bool job;        /* the room is for a job: a queue that does not say how much memory it has will do */
        unsigned others; /* reservations at the queue */
        uint64_t *compared; /* counts reservations that were looked at, of all queues */
};

/* Returns whether other reservations leave this much room at this time. */
static bool is_left(const struct queue *q, const struct look *l, int64_t at_ms)
{
        int64_t cpus, memory_mib;

        *l->compared += l->others;
        if (*l->compared > COMPARED_MAX)
                return false;
        advance_kept(l->core, q, at_ms, NULL, &cpus, &memory_mib);
        for (const struct advance_place *p = l->whole ? q->advance : NULL; p; p = p->next)
                if (!p->of->request && advance_covers(p->of, at_ms))
                        return false;
        return l->whole || (l->room.cpus <= q->total_cpus - cpus &&
                            l->room.memory_mib <= (l->job ? q->total_memory_mib : memory_of(q)) - memory_mib);
}

/* Returns whether there is room at the beginning of the period, and at each beginning of another one within
 * it. */
static bool is_left_during(const struct queue *q, const struct look *l, int64_t start_ms, int64_t end_ms)
{
        if (!is_left(q, l, start_ms))
                return false;
        for (const struct advance_place *p = q->advance; p; p = p->next) {
                int64_t at_ms = advance_start_at(p->of, start_ms), next_ms;

                for (unsigned i = 0; i < CORE_RESERVE_TIMES && at_ms < end_ms; i++) {
                        if (at_ms > start_ms && !is_left(q, l, at_ms))
                                return false;
                        next_ms = p->of->every_ms ? at_ms + p->of->every_ms : INT64_MAX;
                        if (next_ms == INT64_MAX || advance_start_at(p->of, next_ms) != next_ms)
                                break;
                        at_ms = next_ms;
                }
        }
        return true;
}

static bool has_room(const struct core *c, const struct core_reserve *r, const struct queue *q,
                     uint64_t *compared)
{
        struct look l = {.core = c, .whole = r->maintenance, .compared = compared};
        int64_t start_ms = r->start_ms;

        room_of(r, q, &l.room);
        for (const struct advance_place *p = q->advance; p; p = p->next)
                l.others++;
        if (l.others >= ADVANCES_AT_QUEUE_MAX)
                return false;
        for (unsigned i = 0; i < CORE_RESERVE_TIMES; i++) {
                if (!is_left_during(q, &l, start_ms, start_ms + r->duration_ms))
                        return false;
                start_ms += r->every_ms;
                if (!r->every_ms || (r->until_ms && start_ms > r->until_ms))
                        break;
        }
        return true;
}

/* Reservations at one queue that those for jobs leave to others. */
#define LEFT_TO_OTHERS 8u

int64_t reservations_after(const struct core *c, const struct queue *q, const struct need *need,
                           int64_t at_ms, int64_t duration_ms)
{
        uint64_t compared = 0;
        struct look l = {.core = c, .job = true, .compared = &compared};

        l.room.cpus = need->cpus;
        l.room.memory_mib = need->memory_mib;
        for (const struct advance_place *p = q->advance; p; p = p->next)
                l.others += !advance_is_placing(c, p->of);
        if (l.others + LEFT_TO_OTHERS >= ADVANCES_AT_QUEUE_MAX)
                return INT64_MAX;
        for (unsigned i = 0; i <= ADVANCES_AT_QUEUE_MAX; i++) {
                int64_t next_ms = INT64_MAX;

                if (is_left_during(q, &l, at_ms, at_ms + duration_ms))
                        return at_ms;
                for (const struct advance_place *p = q->advance; p; p = p->next) {
                        int64_t end_ms = advance_start_at(p->of, at_ms) + p->of->end_ms - p->of->start_ms;

                        if (end_ms > at_ms && end_ms < next_ms)
                                next_ms = end_ms;
                }
                if (next_ms == INT64_MAX)
                        break;
                at_ms = next_ms;
        }
        return INT64_MAX;
}

struct found_place {
        struct queue *queue;
        int64_t busy_cpus; /* processors of running jobs */
};

/* Sorts emptier places first, so that the fewest jobs must end before the reservation; then by name. */
static int by_busy(const void *x, const void *y)
{
        const struct found_place *a = x, *b = y;
        int order = (a->busy_cpus > b->busy_cpus) - (a->busy_cpus < b->busy_cpus);

        if (!order)
                order = strcmp(a->queue->agent->name, b->queue->agent->name);
        return order ? order : strcmp(a->queue->name, b->queue->name);
}

/* Chooses rooms, in an array that the caller frees. Returns 0; CORE_INVALID with err. */
static int rooms_find(struct core *c, const struct core_reserve *r, struct advance_room **ret, size_t *ret_n,
                      struct err *err)
{
        uint64_t steps = c->eval.steps_all, compared = 0;
        struct found_place *found = NULL;
        size_t n = 0, cap = 0, matching = 0, want = r->nodes ? r->nodes : r->maintenance ? SIZE_MAX : 1;
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);)
                for (struct queue *q = ((struct core_agent *)value)->queues; q; q = q->next) {
                        int64_t cpus, memory_mib;

                        if (c->eval.steps_all - steps > WHERE_STEPS_MAX) {
                                free(found);
                                return err_set(
                                        err, CORE_INVALID,
                                        "the condition takes too long: make it simpler, or name places");
                        }
                        if (!is_wanted(c, r, q))
                                continue;
                        matching++;
                        if (!has_room(c, r, q, &compared))
                                continue;
                        reserve_free_now(c, q, &cpus, &memory_mib);
                        MEM_GROW(found, cap, n + 1);
                        found[n++] = (struct found_place){q, q->total_cpus - cpus};
                }
        if (compared > COMPARED_MAX) {
                free(found);
                return err_set(err, CORE_INVALID,
                               "there are too many reservations at these places to compare all times with: "
                               "name fewer places, or one that comes again fewer times");
        }
        if (n > 1)
                qsort(found, n, sizeof(*found), by_busy);
        if (n == 0 || (want != SIZE_MAX && n < want) || (want == SIZE_MAX && n < matching)) {
                free(found);
                if (matching == 0)
                        return err_set(err, CORE_INVALID,
                                       "no place that says how many processors it has matches: see drover "
                                       "nodes, and queues of drover agents");
                return err_set(err, CORE_INVALID,
                               "%zu places match, and %zu of them have so much room that is not reserved at "
                               "that time: %zu are needed",
                               matching, n, want == SIZE_MAX ? matching : want);
        }
        n = n < want ? n : want;
        if (n > ADVANCE_PLACES_MAX) {
                free(found);
                return err_set(err, CORE_INVALID, "a reservation has at most %u places", ADVANCE_PLACES_MAX);
        }
        *ret = mem_array(NULL, n + 1, sizeof(**ret));
        for (size_t i = 0; i < n; i++)
                room_of(r, found[i].queue, &(*ret)[i]);
        *ret_n = n;
        free(found);
        return 0;
}

/* ---- money */

/* Computes the price of the places for one occurrence. */
static int price_of(struct core *c, const struct core_reserve *r, const struct advance_room *rooms, size_t n,
                    int64_t *ret, struct err *err)
{
        *ret = 0;
        for (size_t i = 0; i < n; i++) {
                BUF_CLEANUP struct buf place = {0};
                struct core_bank_use use = {.account = r->account,
                                            .user = r->who,
                                            .cpus = rooms[i].cpus,
                                            .memory_mib = rooms[i].memory_mib,
                                            .duration_ms = r->duration_ms};
                int64_t amount;
                int e;

                buf_printf(&place, STR_FMT "/" STR_FMT, STR_ARG(rooms[i].agent), STR_ARG(rooms[i].queue));
                use.place = buf_view(&place);
                if (registry_ask_place(bank_machines(c->bank), use.place) == REGISTRY_INACTIVE)
                        return err_set(err, CORE_CONFLICT, STR_FMT " is inactive in the bank's register",
                                       STR_ARG(use.place));
                e = core_bank_price(c, &use, &amount, err);
                if (e)
                        return e;
                *ret += amount < BANK_AMOUNT_MAX - *ret ? amount : BANK_AMOUNT_MAX - *ret;
        }
        return 0;
}

static struct bank_order lien_order(struct str account, struct str who, int64_t amount, struct str why)
{
        return (struct bank_order){
                .op = BANK_LIEN, .account = account, .user = who, .who = who, .amount = amount, .why = why};
}

/* Makes the lien. Returns 0; CORE_CONFLICT with err: the account cannot pay. */
static int lien_make(struct core *c, struct str account, struct str who, int64_t amount, uint64_t id,
                     bool check_only, uint64_t *ret, struct err *err)
{
        BUF_CLEANUP struct buf why = {0};
        struct bank_order o;
        struct err text = {""};
        int e;

        *ret = 0;
        if (!account.n || amount == 0 || !billing_charges_reserved(c))
                return 0;
        buf_printf(&why, "reservation %llu", (unsigned long long)id);
        o = lien_order(account, who, amount, buf_view(&why));
        e = check_only ? bank_check(c->bank, &o, c->now_ms, &text) : core_bank_order(c, &o, ret, &text);
        return e ? err_set(err, CORE_CONFLICT, "the bank does not pay for it: %s", text.text) : 0;
}

/* Charges the part of the lien that corresponds to the time passed; all of it at the end. */
static void lien_settle(struct core *c, const struct advance *a)
{
        const struct bank_lien *l = a->lien ? bank_lien(c->bank, a->lien) : NULL;
        BUF_CLEANUP struct buf why = {0};
        int64_t passed_ms = c->now_ms - a->start_ms, all_ms = a->end_ms - a->start_ms;
        struct bank_order o = {.op = BANK_RELEASE, .id = a->lien};
        uint64_t made;

        if (!l)
                return;
        buf_printf(&why, "reservation %llu", (unsigned long long)a->id);
        o.why = buf_view(&why);
        if (a->begun && passed_ms > 0) {
                o.op = BANK_CHARGE;
                o.amount = passed_ms >= all_ms
                                   ? l->amount
                                   : (int64_t)ceil((double)l->amount * (double)passed_ms / (double)all_ms);
                o.amount = o.amount < l->amount ? o.amount : l->amount;
        }
        core_bank_order(c, &o, &made, NULL);
}

/* ---- commands */

static int sense(struct core *c, const struct core_reserve *r, struct err *err)
{
        if (r->duration_ms < 1000 || r->duration_ms > ADVANCE_MS_MAX)
                return err_set(err, CORE_INVALID, "a reservation lasts from a second to a year");
        if (r->start_ms + r->duration_ms <= c->now_ms)
                return err_set(err, CORE_INVALID, "that time is over already");
        if (r->start_ms > c->now_ms + AHEAD_MAX)
                return err_set(err, CORE_INVALID, "that is more than ten years ahead");
        if (r->every_ms && (r->every_ms < r->duration_ms || r->every_ms > ADVANCE_MS_MAX))
                return err_set(err, CORE_INVALID,
                               "it can come again after at least its own length, and within a year");
        if (r->until_ms && (!r->every_ms || r->until_ms < r->start_ms))
                return err_set(err, CORE_INVALID,
                               "\"until\" is for one that comes again, and not before it begins");
        if (r->cpus < 0 || r->memory_mib < 0 || r->nodes > ADVANCE_PLACES_MAX)
                return err_set(err, CORE_INVALID, "it can have up to %u places", ADVANCE_PLACES_MAX);
        if (r->maintenance && (r->users.n || r->groups.n || r->account.n))
                return err_set(err, CORE_INVALID,
                               "nobody uses a place that is maintained, and nobody pays for it");
        if (c->advances->count >= ADVANCES_MAX)
                return err_set(err, CORE_TOO_MANY, "there are %u reservations, which is the most",
                               ADVANCES_MAX);
        return 0;
}

int core_reserve(struct core *c, const struct core_reserve *from, bool check_only, uint64_t *ret_id,
                 struct err *err)
{
        struct core_reserve r = *from;
        struct advance_order o = {.op = ADVANCE_MAKE, .id = c->advances->last_id + 1};
        MEM_CLEANUP struct advance_room *rooms = NULL;
        int64_t price = 0;
        int e;

        if (!r.start_ms)
                r.start_ms = c->now_ms;
        e = sense(c, &r, err);
        if (!e)
                e = rooms_find(c, &r, &rooms, &o.room_count, err);
        if (!e && r.account.n && billing_charges_reserved(c))
                e = price_of(c, &r, rooms, o.room_count, &price, err);
        if (!e)
                e = lien_make(c, r.account, r.who, price, o.id, check_only, &o.lien, err);
        if (e)
                return e;
        *ret_id = o.id;
        if (check_only)
                return 0;
        o.rooms = rooms;
        o.owner = r.who;
        o.users = r.users;
        o.groups = r.groups;
        o.account = r.account;
        o.reason = r.reason;
        o.maintenance = r.maintenance;
        o.evict = r.evict;
        o.start_ms = r.start_ms;
        o.end_ms = r.start_ms + r.duration_ms;
        o.every_ms = r.every_ms;
        o.until_ms = r.until_ms;
        reservations_order_emit(c, &o);
        c->advances->due_ms = 0;
        return 0;
}

static void reservation_end(struct core *c, struct advance *a, struct str who, struct str reason)
{
        MEM_CLEANUP struct queue **queues = mem_array(NULL, a->place_count + 1, sizeof(struct queue *));
        size_t n = a->place_count;

        for (size_t i = 0; i < n; i++)
                queues[i] = a->places[i].queue;
        lien_settle(c, a);
        reservations_order_emit(
                c, &(struct advance_order){.op = ADVANCE_END, .id = a->id, .who = who, .reason = reason});
        for (size_t i = 0; i < n; i++)
                if (queues[i]->offers && queues[i]->jobs_left > 0)
                        queue_look_again(c, queues[i]);
        c->advances->due_ms = 0;
}

void reservations_make_for_job(struct core *c, const struct reservation_for_job *j)
{
        const struct advance_room room = {str_of(j->queue->agent->name), str_of(j->queue->name), j->need.cpus,
                                          j->need.memory_mib};

        reservations_order_emit(c, &(struct advance_order){.op = ADVANCE_MAKE,
                                                           .id = c->advances->last_id + 1,
                                                           .owner = str_of(request_owner(j->request)),
                                                           .reason = j->why,
                                                           .start_ms = j->start_ms,
                                                           .end_ms = j->end_ms,
                                                           .request = j->request->id,
                                                           .member = j->member,
                                                           .moves = j->moves,
                                                           .rooms = &room,
                                                           .room_count = 1});
        c->advances->due_ms = 0;
}

void reservations_begin_for_job(struct core *c, const struct advance *a)
{
        reservations_order_emit(c, &(struct advance_order){.op = ADVANCE_BEGIN, .id = a->id});
}

void reservations_end_for_job(struct core *c, struct advance *a, struct str why)
{
        reservation_end(c, a, STR("drover"), why);
}

/* Ends the reservations of all jobs that start together with the one that this is for. */
static void ends_together(struct core *c, uint64_t request, struct str who, struct str reason)
{
        for (struct advance *a = c->advances->first, *next; a; a = next) {
                next = a->next;
                if (a->request == request)
                        reservation_end(c, a, who, reason);
        }
}

int core_reserve_end(struct core *c, uint64_t id, struct str who, struct str reason, struct err *err)
{
        struct advance *a = advance_find(c, id);
        const struct request *r = a && a->request ? request_find(c, a->request) : NULL;

        if (!a)
                return err_set(err, CORE_UNKNOWN, "there is no reservation %llu", (unsigned long long)id);
        if (r && !reason.n)
                reason = STR("it was ended by hand");
        if (r && r->together)
                ends_together(c, r->id, who, reason);
        else
                reservation_end(c, a, who, reason);
        return 0;
}

const struct advance *core_reserved(const struct core *c, uint64_t id)
{
        return advance_find(c, id);
}

const struct advance *core_reserved_first(const struct core *c)
{
        return c->advances->first;
}

void core_reserved_where(const struct advance *a, size_t i, struct core_reserved_place *ret)
{
        const struct advance_place *p = &a->places[i];

        *ret = (struct core_reserved_place){.agent = p->queue->agent->name,
                                            .queue = p->queue->name,
                                            .cpus = p->cpus,
                                            .memory_mib = p->memory_mib};
}

void core_reserved_place(const struct advance *a, size_t i, struct core_reserved_place *ret)
{
        const struct advance_place *p = &a->places[i];

        core_reserved_where(a, i, ret);
        for (const struct job *j = p->queue->attempts; j; j = j->next)
                if (advance_of_job(j) == a->id) {
                        ret->used_cpus += j->cpus;
                        ret->attempts++;
                }
}

/* ---- jobs of reservations */

/* Returns the accounting group that the job names, if the settings or the bank list its owner there.
 * Otherwise a job may name any group, which proves nothing. */
static struct str group_proven(struct core *c, struct str owner, const struct ad *ad)
{
        struct str group = charge_group(c, ad), path;
        const struct bank_account *a = bank_account_above(c->bank, group);
        struct account *leaf = NULL;
        ptrdiff_t slash;

        if (a && bank_role_of(a, owner) != BANK_ROLE_NONE)
                return group;
        if (!group.n || shares_resolve(c->shares, owner, group, &leaf, NULL) != 0)
                return STR_NONE;
        path = str_of(leaf->path);
        slash = str_find(path, '/');
        return str_head(path, slash > 0 ? (size_t)slash : 0);
}

int reservations_check_part(struct core *c, struct str owner, const struct job_template *t, struct err *err)
{
        const struct advance *a;
        int e = 0;

        if (!ad_find(t->ad, c->attr.ReservationId) && !job_template_late_text(t, c->attr.ReservationId).n)
                return 0;
        if (!t->reservation)
                return err_set(err, -EINVAL,
                               "reservation: it is the number of a reservation, see drover reserve");
        a = advance_find(c, t->reservation);
        if (!a)
                e = err_set(err, -EINVAL, "there is no reservation %llu, or it is over",
                            (unsigned long long)t->reservation);
        else if (!advance_admits(a, owner, group_proven(c, owner, t->ad)))
                e = err_set(err, -EINVAL, STR_FMT " may not use the reservation %llu of %s", STR_ARG(owner),
                            (unsigned long long)a->id, a->owner);
        eval_reset(&c->eval);
        return e;
}

int core_job_reserved(struct core *c, uint64_t request, uint32_t member, struct err *ret_why)
{
        struct request *r = request_find(c, request);
        const struct bucket *b = r && member < r->count ? request_bucket(c, r, member) : NULL;
        uint64_t id =
                b && b->job_class && set_has(&b->idle, member) ? b->job_class->job_template->reservation : 0;
        const struct advance *a = advance_find(c, id);

        if (!a)
                return CORE_UNKNOWN;
        if (a->begun)
                err_set(ret_why, 0,
                        "It runs in the reservation %llu only, which ends in %lld s, and which has no room "
                        "for it now.",
                        (unsigned long long)id, (long long)((a->end_ms - c->now_ms) / 1000));
        else
                err_set(ret_why, 0, "It waits for the reservation %llu, which begins in %lld s.",
                        (unsigned long long)id, (long long)((a->start_ms - c->now_ms) / 1000));
        return 0;
}

void reservations_before(struct core *c, const struct event *e)
{
        const struct request *r;

        if ((e->type != EVENT_EXITED && e->type != EVENT_LOST && e->type != EVENT_REFUSED) ||
            c->advances->count == 0 || c->config.shadow)
                return;
        r = request_find(c, e->request);
        SET_FOREACH (&e->members, m) {
                const struct job *j = r ? request_job(r, (uint32_t)m) : NULL;
                const struct advance *a =
                        j && j->queue && j->fence == e->fence ? advance_find(c, advance_of_job(j)) : NULL;
                int64_t from_ms, to_ms;

                if (!a || !job_state_runs(j->state) || !j->started_ms)
                        continue;
                from_ms = j->started_ms > a->start_ms ? j->started_ms : a->start_ms;
                to_ms = c->now_ms < a->end_ms ? c->now_ms : a->end_ms;
                if (to_ms > from_ms)
                        reservations_order_emit(
                                c, &(struct advance_order){.op = ADVANCE_USE,
                                                           .id = a->id,
                                                           .amount = (to_ms - from_ms) * j->cpus});
        }
}

/* Holds jobs that wait for a reservation that is over. */
static void hold_left(struct core *c)
{
        void *value;

        for (size_t at = 0; map_next(c->classes->by_key, &at, NULL, &value);) {
                struct job_class *k = value;
                uint64_t id = k->job_template->reservation;
                struct err why;

                if (!id || k->idle == 0 || advance_find(c, id))
                        continue;
                err_set(&why, 0,
                        "its reservation %llu is over: name another one, or none (drover edit JOB "
                        "reservation=), and release it",
                        (unsigned long long)id);
                policy_hold_class(c, k, CORE_HOLD_RESERVATION, why.text);
        }
}

/* ---- by time */

/* Vacates running jobs that do not belong to the reservation until its room is free, the latest started
 * first. */
static void evict_at(struct core *c, const struct advance_place *p, unsigned *left)
{
        while (*left > 0) {
                int64_t cpus, memory_mib;
                struct job *last = NULL;

                cpus = p->queue->total_cpus;
                memory_mib = memory_of(p->queue);
                for (struct job *j = p->queue->attempts; j; j = j->next) {
                        if (advance_of_job(j) == p->of->id || j->state == JOB_VACATING)
                                continue;
                        cpus -= j->cpus;
                        memory_mib -= (int64_t)j->memory_mib;
                        if (!last || j->started_ms > last->started_ms)
                                last = j;
                }
                if (!last || (cpus >= p->cpus && memory_mib >= p->memory_mib))
                        return;
                --*left;
                attempt_vacate(c, last, "its place is reserved from now on");
        }
}

static void begin_or_end(struct core *c, struct advance *a)
{
        struct advance_order o = {.op = ADVANCE_AGAIN, .id = a->id, .amount = 1};
        struct err why = {""};
        bool again;

        if (!a->begun && !a->request && c->now_ms >= a->start_ms) {
                reservations_order_emit(c, &(struct advance_order){.op = ADVANCE_BEGIN, .id = a->id});
                places_look_again(c, a);
        }
        if (c->now_ms < a->end_ms)
                return;
        if (a->every_ms && c->now_ms - a->end_ms > a->every_ms) /* the server was down for an occurrence */
                o.amount += (c->now_ms - a->end_ms) / a->every_ms;
        again = a->every_ms && (!a->until_ms || a->start_ms + a->every_ms * o.amount <= a->until_ms);
        if (again && a->lien) {
                const struct bank_lien *l = bank_lien(c->bank, a->lien);
                int64_t amount = l ? l->amount : 0;

                lien_settle(c, a);
                again = lien_make(c, str_of(a->account), str_of(a->owner), amount, a->id, false, &o.lien,
                                  &why) == 0;
        }
        if (!again) {
                reservation_end(c, a, STR("drover"),
                                why.text[0] ? str_of(why.text) : STR("its time is over"));
                return;
        }
        reservations_order_emit(c, &o);
        places_look_again(c, a);
}

int64_t reservations_tick(struct core *c)
{
        unsigned left = EVICT_SLICE;
        int64_t next_ms = INT64_MAX;

        if (c->config.shadow || (c->advances->count == 0 && c->classes->reserving == 0))
                return INT64_MAX;
        if (c->steady_ms < c->advances->due_ms)
                return c->advances->due_ms - c->steady_ms;
        for (struct advance *a = c->advances->first, *after; a; a = after) {
                after = a->next;
                begin_or_end(c, a);
        }
        for (const struct advance *a = c->advances->first; a; a = a->next) {
                int64_t at_ms = a->begun || a->request ? a->end_ms : a->start_ms;

                for (size_t i = 0; a->begun && a->evict && i < a->place_count; i++)
                        evict_at(c, &a->places[i], &left);
                next_ms = at_ms - c->now_ms < next_ms ? at_ms - c->now_ms : next_ms;
        }
        if (c->classes->reserving > 0)
                hold_left(c);
        next_ms = next_ms < 0 ? 0 : next_ms < LOOK_MS ? next_ms : LOOK_MS;
        c->advances->due_ms = c->steady_ms + next_ms;
        return next_ms;
}
