/* A unit is what is placed at once: one meta job, or all jobs of a request whose parts start together. Units
 * are asked for one after the other; a round begins every few seconds, and at once when a job arrives.
 *
 * What a place's forecast says of the time ignores reservations, so each candidate's time is moved to where
 * other reservations leave room (reservations_after). The members of a unit choose one after the other, each
 * beside what those before it have chosen, and then all begin when the last of them can. */
#include "core/meta/meta.h"

#include <stdio.h>

#include "base/mem.h"
#include "core/billing/billing.h"
#include "core/data/cost.h"
#include "core/estimate/estimate.h"
#include "core/events/apply.h"
#include "core/forecast/quote.h"
#include "core/gang/reserve.h"
#include "core/index/index.h"
#include "core/lifecycle/reservations.h"
#include "core/match/choose.h"
#include "core/match/gang_place.h"
#include "core/model/core_parts.h"
#include "core/model/meta_rule.h"
#include "core/model/precedence.h"

#define LOOK_MS    2000    /* between the beginnings of two rounds */
#define PAUSE_MS   5000    /* before a reservation moves for the first time */
#define DOUBLE_MAX 7u      /* how often that time doubles */
#define AWAY_MS    30000   /* for which the agent of the reserved place may be away */
#define BEGIN_MS   30000   /* for which an authorised job may wait to be dispatched */
#define LENGTH_MS  3600000 /* of a reservation for a job of which nothing is known */
#define SLACK_MS   30000   /* by which a reservation is longer than the job */
#define GAIN       0.1     /* by which another place must be better */
#define TIME_MIN   1000.0  /* shorter times are compared as equal */
#define RESTS      4       /* looks take a fifth of the time at most: a long queue takes long to play */

struct place {
        struct queue *queue;
        struct need need;
        int64_t at_ms;   /* when it has room, without a look at reservations */
        int64_t held_ms; /* from then on to the result */
        double cost;
};

/* The places of one member. */
struct choice {
        uint32_t member;
        struct place *v;
        size_t n, cap;
};

struct look {
        uint64_t request; /* 0: none is in progress */
        uint32_t first, size;
        struct choice members[META_PARTS_MAX];
        size_t count, at;
        struct core_quoting *quoting; /* of the member `at` */
        unsigned would;               /* places that would take a member, whatever they cost */
        enum billing_answer unpaid;   /* the best answer of those that cannot be paid for */
        struct err why;               /* and its reason */
        double soonest_ms, cheapest;  /* over all members' places */
};

/* A unit whose place had room for it, and did not take it: nothing is reserved for it until a time, because
 * the room stands idle meanwhile. */
struct pause {
        int64_t until_ms; /* steady clock */
        unsigned count;
};

struct metas {
        struct look look;
        struct idmap *pauses; /* key_of a unit → struct pause; NULL: none */
        uint64_t at_request;  /* the unit that was looked at last in this round */
        uint32_t at_member;
        int64_t due_ms;   /* steady clock: the next round begins */
        int64_t begun_ms; /* steady clock: the look in progress, or the last one, began */
        int64_t next_ms;  /* steady clock: no look begins before */
};

/* Where the members of a unit go, and when; or where they are reserved for. */
struct plan {
        struct place *at[META_PARTS_MAX];
        int64_t start_ms;
        double ms, cost; /* ms: to the last result */
        bool there;      /* false: there is no such plan */
};

void meta_init(struct core *c)
{
        c->metas = mem_new(struct metas);
}

static void look_drop(struct core *c)
{
        struct look *l = &c->metas->look;

        core_quote_free(l->quoting);
        for (size_t i = 0; i < l->count; i++)
                free(l->members[i].v);
        *l = (struct look){.request = 0};
}

void meta_deinit(struct core *c)
{
        void *value;

        look_drop(c);
        for (size_t at = 0; c->metas->pauses && idmap_next(c->metas->pauses, &at, NULL, &value);)
                free(value);
        idmap_free(c->metas->pauses);
        free(c->metas);
        c->metas = NULL;
}

void meta_bucket_gone(struct core *c, const struct bucket *b)
{
        if (c->metas && b->request->id == c->metas->look.request)
                look_drop(c);
}

void meta_rekeyed(struct core *c)
{
        look_drop(c);
}

/* ---- units */

static uint64_t key_of(uint64_t request, uint32_t first)
{
        return request << 32 | first;
}

static bool is_paused(const struct core *c, uint64_t request, uint32_t first)
{
        const struct pause *p = c->metas->pauses ? idmap_get(c->metas->pauses, key_of(request, first)) : NULL;

        return p && p->until_ms > c->steady_ms;
}

static void pause_unit(struct core *c, uint64_t request, uint32_t first)
{
        struct metas *x = c->metas;
        struct pause *p;

        if (!x->pauses)
                x->pauses = idmap_new();
        p = idmap_get(x->pauses, key_of(request, first));
        if (!p) {
                p = mem_new(struct pause);
                idmap_put(x->pauses, key_of(request, first), p);
        }
        p->until_ms = c->steady_ms + ((int64_t)BEGIN_MS << (p->count < DOUBLE_MAX ? p->count : DOUBLE_MAX));
        p->count++;
}

/* The unit waits no more, or was changed. */
static void pause_over(struct core *c, uint64_t request, uint32_t first)
{
        if (c->metas->pauses)
                free(idmap_take(c->metas->pauses, key_of(request, first)));
}

/* Returns whether the member waits for a place, and for nothing else. */
static bool is_ready(struct core *c, const struct request *r, uint32_t member)
{
        const struct bucket *b = request_bucket(c, r, member);

        return b && b->job_class && set_has(&b->idle, member) && request_state(r, member) != JOB_AUTHORISED;
}

static bool has_ended(const struct request *r, uint32_t member)
{
        return set_has(&request_cold(r)->completed, member) || set_has(&request_cold(r)->removed, member);
}

static bool is_unit_ready(struct core *c, const struct request *r, uint32_t first, uint32_t size)
{
        for (uint32_t m = first; m < first + size; m++)
                if (!has_ended(r, m) && !is_ready(c, r, m))
                        return false;
        return true;
}

/* Finds the first unit behind the one that was looked at last. Returns false if there is none. */
static bool next_unit(struct core *c, uint64_t *ret_request, uint32_t *ret_member)
{
        const struct metas *x = c->metas;

        *ret_request = UINT64_MAX;
        *ret_member = 0;
        for (const struct job_class *k = c->classes->apart; k; k = k->apart_next)
                for (size_t i = 0; k->job_template->meta.wanted && i < k->buckets.count; i++) {
                        const struct bucket *b = container_of(k->buckets.nodes[i], struct bucket, node);
                        uint64_t id = b->request->id, m;

                        if (id < x->at_request || id > *ret_request)
                                continue;
                        m = set_next(&b->idle, id == x->at_request ? (uint64_t)x->at_member + 1 : 0);
                        if (b->request->together && id == x->at_request)
                                m = SET_END;
                        if (m != SET_END && (id < *ret_request || m < *ret_member)) {
                                *ret_request = id;
                                *ret_member = (uint32_t)m;
                        }
                }
        return *ret_request != UINT64_MAX;
}

static struct advance *reserved_of(struct core *c, const struct look *l, size_t i)
{
        return advance_for_job(c, l->request, l->members[i].member);
}

static void set_placing(struct core *c, uint64_t request, uint32_t first, uint32_t size)
{
        c->advances->placing.request = request;
        c->advances->placing.first = first;
        c->advances->placing.size = size;
}

/* Ends all reservations of the unit. why: for the jobs' logs; empty: none. */
static void release(struct core *c, const struct request *r, uint32_t first, uint32_t size, struct str why)
{
        for (uint32_t m = first; m < first + size; m++) {
                struct advance *a = advance_for_job(c, r->id, m);

                if (a)
                        reservations_end_for_job(c, a, why);
        }
}

/* Returns the units that the jobs of the request that have not ended draw of the limit together. */
static int64_t drawn_together(struct core *c, const struct request *r, const struct limit *x)
{
        int64_t units = 0;

        for (uint32_t m = 0; m < r->count; m++) {
                const struct bucket *b = request_bucket(c, r, m);
                const struct draws *d = b && b->job_class && !has_ended(r, m) ? b->job_class->draws : NULL;

                units += b && b->job_class && b->job_class->user == x && !has_ended(r, m);
                for (size_t i = 0; d && i < d->count; i++)
                        units += d->v[i].limit == x ? d->v[i].units : 0;
        }
        return units;
}

/* Returns a limit that has fewer units than jobs that start together draw of it; NULL: there is none. */
static const struct limit *limit_too_low(struct core *c, const struct request *r)
{
        for (uint32_t m = 0; r->together && m < r->count; m++) {
                const struct bucket *b = request_bucket(c, r, m);
                const struct job_class *k = b ? b->job_class : NULL;

                if (k && k->user->max != LIMIT_NONE && drawn_together(c, r, k->user) > k->user->max)
                        return k->user;
                for (size_t i = 0; k && k->draws && i < k->draws->count; i++) {
                        const struct limit *x = k->draws->v[i].limit;

                        if (x->max != LIMIT_NONE && drawn_together(c, r, x) > x->max)
                                return x;
                }
        }
        return NULL;
}

/* ---- asking the places */

/* The numbers are the job's own expressions, or an agent's. */
static bool can_be_reserved(const struct need *n)
{
        return n->cpus >= 0 && n->cpus <= ADVANCE_NEED_MAX && n->memory_mib >= 0 &&
               n->memory_mib <= ADVANCE_NEED_MAX;
}

static void on_place(void *arg, const struct core_quote_place *q)
{
        struct core *c = arg;
        struct look *l = &c->metas->look;
        struct choice *m = &l->members[l->at];
        struct request *r = request_find(c, l->request);
        struct job_class *k = request_bucket(c, r, m->member)->job_class;
        struct place p = {.queue = queue_find(c, q->why.agent, q->why.queue)};
        enum billing_answer answer;
        struct err why = {""};
        int64_t amount;
        uint64_t most;

        if (!p.queue || (q->why.verdict != CORE_FITS && q->why.verdict != CORE_BUSY) || q->why.cost.down)
                return;
        if (!q->quote.start_ms && !p.queue->wait_unknown)
                return; /* a limit leaves no unit for it there */
        l->would++;
        answer = core_bank_is_on(c) ? billing_ask(c, k, p.queue, &most, &why) : BILLING_YES;
        if (answer == BILLING_YES)
                answer = billing_quote(c, k, p.queue, &amount, NULL, &why);
        if (answer != BILLING_YES) {
                if (!l->why.text[0] || answer < l->unpaid) {
                        l->unpaid = answer;
                        l->why = why;
                }
                return;
        }
        need_of(c, k, k->ad, p.queue->ad, &p.need);
        if (!can_be_reserved(&p.need))
                return;
        p.at_ms = q->quote.start_ms ? q->quote.start_ms - cost_input_ms(&q->why.cost) : p.queue->begins_ms;
        p.at_ms = p.at_ms > c->now_ms ? p.at_ms : c->now_ms;
        if (p.at_ms - c->now_ms > ADVANCE_MS_MAX)
                return;
        p.held_ms = cost_held_ms(&q->why.cost);
        p.cost = amount > 0 ? (double)amount : q->why.cost.price;
        k->broke_at = 0; /* one place at least can be paid for */
        MEM_GROW(m->v, m->cap, m->n + 1);
        m->v[m->n++] = p;
}

static void look_begin(struct core *c, struct request *r, uint32_t member)
{
        struct look *l = &c->metas->look;

        c->metas->begun_ms = c->steady_ms;
        *l = (struct look){.request = r->id, .first = r->together ? 0 : member};
        l->size = r->together ? r->count : 1;
        for (uint32_t m = l->first; m < l->first + l->size; m++)
                if (!has_ended(r, m))
                        l->members[l->count++].member = m;
}

/* Asks some places. Returns whether there are more. */
static bool look_some(struct core *c)
{
        struct look *l = &c->metas->look;
        bool more;

        if (!l->quoting)
                l->quoting = core_quote_job_new(c, request_find(c, l->request), l->members[l->at].member);
        set_placing(c, l->request, l->first, l->size);
        more = core_quote_some(l->quoting, on_place, c);
        set_placing(c, 0, 0, 0);
        if (more)
                return true;
        core_quote_free(l->quoting);
        l->quoting = NULL;
        return ++l->at < l->count;
}

/* ---- choosing */

/* Returns for how long room is reserved for the member there; a longer job holds it as long as it runs. */
static int64_t length_ms(struct core *c, const struct request *r, uint32_t member, const struct place *p)
{
        const struct part *part = request_part(r, member, NULL);
        struct estimate_bounds b = {0};
        int64_t ms = part->job_template->allowed_ms;

        if (!ms)
                estimate_bounds(c, part, p->queue, 0, &b);
        ms = ms ? ms : b.most_ms;
        ms = ms ? ms : part->job_template->expected_ms;
        ms = ms ? ms : LENGTH_MS;
        return ms < ADVANCE_MS_MAX - SLACK_MS ? ms + SLACK_MS : ADVANCE_MS_MAX;
}

/* Computes what the first n members of the plan and p need of p's queue together. */
static void need_with(const struct plan *plan, size_t n, const struct place *p, struct need *ret)
{
        *ret = p->need;
        for (size_t i = 0; i < n; i++)
                if (plan->at[i]->queue == p->queue) {
                        ret->cpus += plan->at[i]->need.cpus;
                        ret->memory_mib += plan->at[i]->need.memory_mib;
                }
}

/* Returns when p has room for itself and the first n members of the plan. INT64_MAX: never. */
static int64_t room_at(struct core *c, const struct look *l, const struct plan *plan, size_t n,
                       const struct place *p, int64_t from_ms)
{
        const struct request *r = request_find(c, l->request);
        struct need need;
        int64_t room_ms;

        need_with(plan, n, p, &need);
        if (p->queue->total_cpus != INT64_MAX) {
                room_ms = reserve_room_ms(c, p->queue, &need);
                from_ms = room_ms > from_ms ? room_ms : from_ms;
        }
        if (from_ms == INT64_MAX)
                return from_ms;
        return reservations_after(c, p->queue, &need, from_ms, length_ms(c, r, l->members[n].member, p));
}

static double worth(double weight, double ms, double cost, double best_ms, double best_cost)
{
        ms = ms > TIME_MIN ? ms : TIME_MIN;
        best_ms = best_ms > TIME_MIN ? best_ms : TIME_MIN;
        return weight * ms / best_ms + (1 - weight) * (cost + 1) / (best_cost + 1);
}

/* Chooses a place for the n-th member beside those before it: the best by the job's preference, each measured
 * by the soonest result and the lowest cost that there are. Returns false if there is none. */
static bool choose(struct core *c, struct look *l, struct plan *plan, size_t n, double weight)
{
        struct choice *m = &l->members[n];
        int64_t *at_ms = mem_array(NULL, m->n + 1, sizeof(*at_ms));
        double soonest = 0, cheapest = 0, best = 0;
        int64_t found_ms = plan->start_ms;
        bool any = false;

        for (size_t i = 0; i < m->n; i++) {
                const struct place *p = &m->v[i];
                int64_t from_ms = p->at_ms > plan->start_ms ? p->at_ms : plan->start_ms;
                double ms;

                at_ms[i] = room_at(c, l, plan, n, p, from_ms);
                if (at_ms[i] == INT64_MAX)
                        continue;
                ms = (double)(at_ms[i] - c->now_ms + p->held_ms);
                soonest = !any || ms < soonest ? ms : soonest;
                cheapest = !any || p->cost < cheapest ? p->cost : cheapest;
                any = true;
        }
        plan->at[n] = NULL;
        for (size_t i = 0; i < m->n; i++) {
                struct place *p = &m->v[i];
                double value;

                if (at_ms[i] == INT64_MAX)
                        continue;
                value = worth(weight, (double)(at_ms[i] - c->now_ms + p->held_ms), p->cost, soonest,
                              cheapest);
                if (plan->at[n] && (value > best || (value == best && at_ms[i] >= found_ms)))
                        continue;
                best = value;
                found_ms = at_ms[i];
                plan->at[n] = p;
        }
        plan->start_ms = found_ms;
        free(at_ms);
        l->soonest_ms = soonest > l->soonest_ms ? soonest : l->soonest_ms;
        l->cheapest += cheapest;
        return any;
}

/* Moves the start to where all places have room at once. Returns false if there is no such time. */
static bool agree(struct core *c, const struct look *l, struct plan *plan)
{
        for (unsigned tries = 0; tries < META_PARTS_MAX; tries++) {
                int64_t before_ms = plan->start_ms;

                for (size_t i = 0; i < l->count; i++) {
                        int64_t at_ms = room_at(c, l, plan, i, plan->at[i], plan->start_ms);

                        if (at_ms == INT64_MAX)
                                return false;
                        plan->start_ms = at_ms;
                }
                if (plan->start_ms == before_ms)
                        return true;
        }
        return false;
}

static void add_up(struct core *c, const struct look *l, struct plan *plan)
{
        plan->ms = plan->cost = 0;
        for (size_t i = 0; i < l->count; i++) {
                double ms = (double)(plan->start_ms - c->now_ms + plan->at[i]->held_ms);

                plan->ms = ms > plan->ms ? ms : plan->ms;
                plan->cost += plan->at[i]->cost;
        }
}

static void plan_best(struct core *c, struct look *l, double weight, struct plan *ret)
{
        *ret = (struct plan){.start_ms = c->now_ms, .there = l->count > 0};
        for (size_t i = 0; i < l->count && ret->there; i++)
                ret->there = choose(c, l, ret, i, weight);
        ret->there = ret->there && agree(c, l, ret);
        if (ret->there)
                add_up(c, l, ret);
}

/* Describes what is reserved now as a plan. *ret_away: an agent of it is not there now, which may not last.
 */
static void plan_now(struct core *c, const struct look *l, struct plan *ret, bool *ret_away)
{
        *ret = (struct plan){.there = l->count > 0};
        *ret_away = false;
        for (size_t i = 0; i < l->count; i++) {
                const struct advance *a = reserved_of(c, l, i);
                const struct queue *q = a ? a->places[0].queue : NULL;

                for (size_t k = 0; q && k < l->members[i].n; k++)
                        if (l->members[i].v[k].queue == q)
                                ret->at[i] = &l->members[i].v[k];
                if (a && a->start_ms > ret->start_ms)
                        ret->start_ms = a->start_ms;
                *ret_away |= q && (!q->agent->connected || !q->ad);
                ret->there &= ret->at[i] != NULL;
        }
        for (size_t i = 0; i < l->count && ret->there; i++) {
                int64_t from_ms = ret->start_ms > c->now_ms ? ret->start_ms : c->now_ms, at_ms;

                if (from_ms < ret->at[i]->queue->begins_ms)
                        from_ms = ret->at[i]->queue->begins_ms;
                at_ms = room_at(c, l, ret, i, ret->at[i], from_ms);
                ret->there = at_ms != INT64_MAX;
                ret->start_ms = at_ms;
        }
        if (ret->there)
                add_up(c, l, ret);
}

static bool same_places(const struct look *l, const struct plan *a, const struct plan *b)
{
        for (size_t i = 0; i < l->count; i++)
                if (a->at[i]->queue != b->at[i]->queue)
                        return false;
        return true;
}

/* ---- reserving */

static void print_duration(struct buf *out, double ms)
{
        int64_t s = ms > 0 ? (int64_t)(ms / 1000 + 0.5) : 0;

        buf_printf(out, s < 120 ? "%lld s" : "%lld min", (long long)(s < 120 ? s : (s + 30) / 60));
}

/* Writes what the plan promises, as of now, beside the best that there is of each. */
static void print_why(struct core *c, const struct look *l, const struct plan *plan, double weight,
                      struct buf *out)
{
        bool priced = plan->cost > 0 || l->cheapest > 0;

        if (plan->start_ms <= c->now_ms) {
                buf_addz(out, "room at once");
        } else {
                buf_addz(out, "room in ");
                print_duration(out, (double)(plan->start_ms - c->now_ms));
        }
        buf_addz(out, ", the result in ");
        print_duration(out, plan->ms);
        if (priced)
                buf_printf(out, " for %.6g", plan->cost);
        buf_printf(out, "; of %u place%s that could run it the soonest has the result in ", l->would,
                   l->would == 1 ? "" : "s");
        print_duration(out, l->soonest_ms);
        if (priced)
                buf_printf(out, ", and the cheapest takes %.6g", l->cheapest);
        if (weight >= 1)
                buf_addz(out, " (prefer = time)");
        else if (weight <= 0)
                buf_addz(out, " (prefer = cost)");
        else
                buf_printf(out, " (prefer = %.3g)", weight);
}

/* Returns whether the owner, and everybody, may have so many more reservations. */
static bool may_reserve(const struct core *c, const struct request *r, size_t more)
{
        size_t own = more;

        if (c->advances->for_jobs + more > META_RESERVED_MAX || c->advances->count + more > ADVANCES_MAX)
                return false;
        for (const struct advance *a = c->advances->first; a; a = a->next)
                own += a->request && strcmp(a->owner, request_owner(r)) == 0;
        return own <= META_OWNER_MAX;
}

static void reserve(struct core *c, const struct look *l, const struct plan *plan, double weight)
{
        struct request *r = request_find(c, l->request);
        BUF_CLEANUP struct buf why = {.max = ADVANCE_TEXT_MAX};
        const struct advance *before = reserved_of(c, l, 0);
        uint32_t moves = before ? before->moves + 1 : 0;
        int64_t longest_ms = 0;

        if (!before && !may_reserve(c, r, l->count))
                return;
        for (size_t i = 0; i < l->count; i++) { /* all parts end at one time, too */
                int64_t ms = length_ms(c, r, l->members[i].member, plan->at[i]);

                longest_ms = ms > longest_ms ? ms : longest_ms;
        }
        print_why(c, l, plan, weight, &why);
        release(c, r, l->first, l->size, STR_NONE);
        for (size_t i = 0; i < l->count; i++) {
                uint32_t member = l->members[i].member;
                struct reservation_for_job j = {.request = r,
                                                .member = member,
                                                .moves = moves,
                                                .queue = plan->at[i]->queue,
                                                .need = plan->at[i]->need,
                                                .start_ms = plan->start_ms,
                                                .why = buf_view(&why)};

                j.end_ms = plan->start_ms + longest_ms;
                reservations_make_for_job(c, &j);
        }
}

/* Returns whether what is reserved is to be given up for the plan. */
static bool is_clearly_better(struct core *c, const struct look *l, const struct plan *plan,
                              const struct plan *now, double weight)
{
        const struct advance *a = reserved_of(c, l, 0);
        uint32_t doubles = a->moves < DOUBLE_MAX ? a->moves : DOUBLE_MAX;
        bool same = same_places(l, plan, now);

        if (same && plan->start_ms <= c->now_ms)
                return a->start_ms > c->now_ms;
        if (c->steady_ms - a->made_ms < (int64_t)PAUSE_MS << doubles)
                return false;
        if (plan->ms <= now->ms && plan->cost <= now->cost) { /* no worse, whatever is preferred */
                if (now->ms > plan->ms * (1 + GAIN) || now->cost > plan->cost * (1 + GAIN))
                        return true;
                /* Beside a result that takes very long, no wait for the start would count. */
                if (plan->start_ms <= c->now_ms && now->start_ms - c->now_ms > PAUSE_MS)
                        return true;
        }
        return worth(weight, now->ms, now->cost, plan->ms, plan->cost) > 1 + GAIN;
}

/* No place can be paid for: holds the jobs, as those are that find this out at a place (dispatch.c). */
static void hold_unpaid(struct core *c, const struct look *l)
{
        struct event e = {.type = EVENT_HELD,
                          .request = l->request,
                          .code = CORE_HOLD_BANK,
                          .reason = str_of(l->why.text)};

        for (size_t i = 0; i < l->count; i++)
                set_add(&e.members, l->members[i].member);
        core_emit(c, &e, NULL);
        event_deinit(&e);
}

/* All places were asked. Copies the look first, since events of its request drop it. */
static void decide(struct core *c)
{
        struct look l = c->metas->look;
        struct request *r = request_find(c, l.request);
        double weight = request_part(r, l.first, NULL)->job_template->meta.time;
        const struct advance *a = reserved_of(c, &l, 0);
        struct plan plan, now;
        bool away;

        c->metas->look = (struct look){.request = 0};
        set_placing(c, l.request, l.first, l.size);
        plan_best(c, &l, weight, &plan);
        plan_now(c, &l, &now, &away);
        set_placing(c, 0, 0, 0);
        if (!a && plan.there)
                reserve(c, &l, &plan, weight);
        else if (a && now.there && plan.there && is_clearly_better(c, &l, &plan, &now, weight))
                reserve(c, &l, &plan, weight);
        else if (a && !now.there && !(away && c->steady_ms - a->made_ms < AWAY_MS))
                plan.there ? reserve(c, &l, &plan, weight)
                           : release(c, r, l.first, l.size, STR("its place takes it no more"));
        if (l.would && !plan.there && !advance_for_job(c, l.request, l.members[0].member) && l.why.text[0] &&
            (l.unpaid == BILLING_NEVER || (l.unpaid == BILLING_SHORT && billing_holds(c))))
                hold_unpaid(c, &l);
        for (size_t i = 0; i < l.count; i++)
                free(l.members[i].v);
}

/* ---- what was reserved begins */

/* The unit's time has come: authorises it if it can be dispatched, and gives it up if it cannot be paid for.
 */
static void begin_unit(struct core *c, struct request *r, uint32_t first, uint32_t size)
{
        struct err why = {""};
        bool unpaid = false;

        if (!is_unit_ready(c, r, first, size))
                return;
        for (uint32_t m = first; m < first + size && core_bank_is_on(c); m++) {
                const struct advance *a = advance_for_job(c, r->id, m);
                uint64_t most;

                unpaid |= a && billing_ask(c, request_bucket(c, r, m)->job_class, a->places[0].queue, &most,
                                           &why) != BILLING_YES;
        }
        if (unpaid) {
                release(c, r, first, size,
                        why.text[0] ? str_of(why.text) : STR("its account cannot pay for it now"));
        } else if (gang_reserved(c, r, first, size, true)) {
                for (uint32_t m = first; m < first + size; m++) {
                        struct advance *a = advance_for_job(c, r->id, m);

                        if (a)
                                reservations_begin_for_job(c, a);
                }
        }
}

/* Returns whether the job may begin before its time at its place, which has room again: no job that could be
 * given to the place goes before it in the order. */
static bool has_turn(struct core *c, const struct request *r, uint32_t member, struct queue *q)
{
        const struct job_class *mine = request_bucket(c, r, member)->job_class;
        struct index_classes w;
        struct job_class *k;
        struct need need;
        bool yes = true;

        index_classes_begin(&w, c, q);
        while (yes && (k = index_classes_next(&w)) != NULL && order_class_before(k, mine))
                yes = !choose_fits(c, k, q, &need);
        index_classes_end(&w);
        return yes;
}

void meta_matching(struct core *c)
{
        const struct advance *a = c->advances->for_jobs ? c->advances->first : NULL;

        while (a) {
                bool may = a->request && !a->begun && a->places[0].queue->changed_at;
                struct request *r = may ? request_find(c, a->request) : NULL;
                uint64_t id = a->id;

                if (r && is_unit_ready(c, r, a->member, 1) && has_turn(c, r, a->member, a->places[0].queue))
                        begin_unit(c, r, r->together ? 0 : a->member, r->together ? r->count : 1);
                for (a = c->advances->first; a && a->id <= id;)
                        a = a->next;
        }
}

/* Returns whether room was kept for the unit for long enough that its places should have taken it: it was
 * authorised, or its time has come and there is room. */
static bool stands_idle(struct core *c, const struct request *r, uint32_t first, uint32_t size)
{
        bool yes = true;

        set_placing(c, r->id, first, size);
        for (uint32_t m = first; m < first + size && yes; m++) {
                const struct advance *a = advance_for_job(c, r->id, m);
                const struct queue *q = a ? a->places[0].queue : NULL;
                const struct need need = {.cpus = a ? a->places[0].cpus : 0,
                                          .memory_mib = a ? a->places[0].memory_mib : 0};

                if (a && a->begun)
                        yes = c->steady_ms - a->made_ms >= BEGIN_MS;
                else if (a)
                        yes = c->steady_ms - a->made_ms >= BEGIN_MS && c->now_ms - a->start_ms >= BEGIN_MS &&
                              q->agent->connected && reserve_room_ms(c, q, &need) <= c->now_ms;
        }
        set_placing(c, 0, 0, 0);
        return yes;
}

/* Looks at each reservation for a job, in the order of their numbers: what is done may end and make others.
 */
static void begin_all(struct core *c)
{
        const struct advance *a = c->advances->for_jobs ? c->advances->first : NULL;

        while (a) {
                struct request *r = a->request ? request_find(c, a->request) : NULL;
                uint32_t first = r && r->together ? 0 : a->member, size = r && r->together ? r->count : 1;
                uint64_t id = a->id;

                if (r && !a->begun && c->now_ms >= a->start_ms)
                        begin_unit(c, r, first, size);
                if (r && advance_find(c, id) && stands_idle(c, r, first, size)) {
                        pause_unit(c, r->id, first);
                        release(c, r, first, size, STR("its place has room, and did not take it"));
                }
                for (a = c->advances->first; a && a->id <= id;)
                        a = a->next;
        }
}

static int64_t next_start_ms(const struct core *c)
{
        int64_t wait_ms = INT64_MAX;

        for (const struct advance *a = c->advances->for_jobs ? c->advances->first : NULL; a; a = a->next)
                if (a->request && !a->begun && a->start_ms > c->now_ms && a->start_ms - c->now_ms < wait_ms)
                        wait_ms = a->start_ms - c->now_ms;
        return wait_ms;
}

int64_t meta_tick(struct core *c)
{
        struct metas *x = c->metas;
        struct request *r;
        uint64_t request;
        uint32_t member;
        int64_t wait_ms, due_ms;

        if (c->config.shadow || (!c->classes->apart && c->advances->for_jobs == 0))
                return INT64_MAX;
        begin_all(c);
        if (x->look.request) {
                if (look_some(c))
                        return 0;
                decide(c);
                x->next_ms = c->steady_ms + (c->steady_ms - x->begun_ms) * RESTS;
                return 0;
        }
        due_ms = x->due_ms > x->next_ms ? x->due_ms : x->next_ms;
        if (c->steady_ms < due_ms) {
                wait_ms = next_start_ms(c);
                return wait_ms < due_ms - c->steady_ms ? wait_ms : due_ms - c->steady_ms;
        }
        if (!next_unit(c, &request, &member)) {
                x->at_request = 0;
                x->at_member = 0;
                x->due_ms = c->steady_ms + LOOK_MS;
                return LOOK_MS;
        }
        x->at_request = request;
        x->at_member = member;
        r = request_find(c, request);
        if (is_unit_ready(c, r, r->together ? 0 : member, r->together ? r->count : 1) &&
            !limit_too_low(c, r) && !is_paused(c, request, r->together ? 0 : member))
                look_begin(c, r, member);
        return 0;
}

/* ---- events */

void meta_event(struct core *c, const struct event *e)
{
        const struct request *r;
        bool over = e->type == EVENT_HELD || e->type == EVENT_REMOVED || e->type == EVENT_SKIPPED ||
                    e->type == EVENT_EDITED;
        /* A part that was dispatched, and is taken back, since another one could not be. */
        bool back = e->type == EVENT_LOST || e->type == EVENT_REFUSED || e->type == EVENT_EXITED;

        if (!e->request || (!c->classes->apart && c->advances->for_jobs == 0))
                return;
        r = request_find(c, e->request);
        if (r && r->has_metas &&
            (e->type == EVENT_SUBMITTED || e->type == EVENT_RELEASED || e->type == EVENT_READY))
                c->metas->due_ms = 0;
        if (e->request == c->metas->look.request)
                look_drop(c);
        if (c->metas->pauses &&
            (e->type == EVENT_REMOVED || e->type == EVENT_STARTED || e->type == EVENT_EDITED)) {
                SET_FOREACH (&e->members, m)
                        pause_over(c, e->request, r && r->together ? 0 : (uint32_t)m);
        }
        if (c->advances->for_jobs == 0 || (!over && !back && e->type != EVENT_MATCHED))
                return;
        for (struct advance *a = c->advances->first, *next; a; a = next) {
                bool mine = a->request == e->request && set_has(&e->members, a->member);

                next = a->next;
                if (!mine && !(a->request == e->request && r->together && (over || back)))
                        continue;
                reservations_end_for_job(c, a,
                                         e->type == EVENT_EDITED ? STR("it was changed")
                                         : mine                  ? STR_NONE
                                                                 : STR("a job that starts with it does not"));
        }
}

void meta_ready(struct core *c)
{
        for (struct advance *a = c->advances->first; a; a = a->next)
                a->made_ms = c->steady_ms;
}

/* ---- looking */

const char *meta_invariant(struct core *c)
{
        static char sentence[128];
        uint64_t reserved = 0;

        for (const struct advance *a = c->advances->first; a; a = a->next) {
                const struct request *r = a->request ? request_find(c, a->request) : NULL;
                bool all = true;

                if (!a->request)
                        continue;
                reserved++;
                if (!r || !set_has(&request_cold(r)->reserved, a->member) ||
                    set_has(&request_cold(r)->authorised, a->member) != a->begun ||
                    !request_idle_has(r, a->member)) {
                        snprintf(sentence, sizeof(sentence), "a reservation has outlived its job %llu.%u",
                                 (unsigned long long)a->request, a->member);
                        return sentence;
                }
                for (uint32_t m = 0; r->together && m < r->count; m++) {
                        const struct advance *b = advance_for_job(c, r->id, m);

                        all &= has_ended(r, m) || job_state_has_attempt(request_state(r, m)) ||
                               (b && b->start_ms == a->start_ms && b->begun == a->begun);
                }
                if (!all) {
                        snprintf(sentence, sizeof(sentence),
                                 "room is reserved for a part of job %llu, and not for all at one time",
                                 (unsigned long long)r->id);
                        return sentence;
                }
        }
        for (const struct request *r = c->requests->first; r; r = r->next)
                reserved -= set_count(&request_cold(r)->reserved);
        return reserved ? "jobs with reservations are counted wrongly" : NULL;
}

bool core_part_is_meta(struct core *c, uint64_t request, uint32_t part)
{
        const struct request *r = request_find(c, request);
        const struct part *p = r ? request_part_at(r, part) : NULL;

        return p && p->job_template && p->job_template->meta.wanted;
}

int core_job_meta(struct core *c, uint64_t request, uint32_t member, struct core_meta *ret)
{
        const struct request *r = request_find(c, request);
        const struct part *p = r && member < r->count ? request_part(r, member, NULL) : NULL;
        const struct advance *a = p ? advance_for_job(c, request, member) : NULL;

        if (!p || !p->job_template || !p->job_template->meta.wanted || !request_idle_has(r, member))
                return CORE_UNKNOWN;
        *ret = (struct core_meta){.why = "",
                                  .waits = "",
                                  .time = p->job_template->meta.time,
                                  .parts = r->together ? r->count : 1,
                                  .reserved = a != NULL};
        if (a) {
                ret->id = a->id;
                ret->agent = a->places[0].queue->agent->name;
                ret->queue = a->places[0].queue->name;
                ret->start_ms = a->start_ms;
                ret->end_ms = a->end_ms;
                ret->moves = a->moves;
                ret->why = a->reason ? a->reason : "";
        } else if (!may_reserve(c, r, ret->parts)) {
                ret->waits = "there are as many reservations for jobs as its owner may have, or the server";
        } else if (is_paused(c, request, r->together ? 0 : member)) {
                ret->waits = "a place had room for it and did not take it, and after a pause another one is "
                             "sought";
        } else if (limit_too_low(c, r)) {
                ret->waits = "its jobs draw more of a limit together than there is: see drover limits";
        } else {
                ret->waits = "no place has been found for it yet";
        }
        return 0;
}
