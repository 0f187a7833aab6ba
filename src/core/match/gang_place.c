/* Places for gangs. A seat is a queue that could start some members at once; room for jobs that a queue would
 * only read ahead does not count, since the other members would wait for it. Seats are sorted by the
 * preference of the class. A company is the set of seats that one gang may use: one queue (node), the queues
 * of one group, or all. Nothing is dispatched before every member has a seat, so nothing has to be undone. */
#include "core/match/gang_place.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/u64.h"
#include "classad/print.h"
#include "core/billing/billing.h"
#include "core/events/apply.h"
#include "core/fairness/charge.h"
#include "core/fairness/order.h"
#include "core/gang/gang.h"
#include "core/gang/reserve.h"
#include "core/index/index.h"
#include "core/match/choose.h"
#include "core/match/dispatch.h"
#include "core/match/matching.h"
#include "core/match/overrun.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"
#include "core/model/pending_match.h"
#include "core/reservation/advance.h"

#define SEATS_MAX   5000u /* queues that are compared */
#define BUCKETS_MAX 8u
/* Looking at this many pairs postpones the class's next search by a millisecond, so that a gang that does not
 * fit takes a small part of the core's time however many offers change. */
#define LOOKS_MS     100u
#define MACHINES_MAX 65536u

/* A member, and the queue that it is to have. */
struct placing {
        struct bucket *bucket;
        uint32_t member;
        struct queue *queue;
};
struct seat {
        struct candidate at;
        struct need need;
        uint64_t most;
        size_t group; /* number of its group */
        uint64_t given;
};
struct seats {
        struct seat *v;
        size_t n, cap;
        struct map *groups; /* name → number + 1 */
        char **names;       /* of groups; owned */
        size_t group_count, group_cap;
};

/* Returns the number of members with this need that the queue could start at once, at most `most`. */
static uint64_t gang_room(struct core *c, const struct job_class *k, const struct queue *q,
                          const struct need *need, uint64_t most)
{
        int64_t cpus, memory_mib;
        uint64_t n;

        reserve_free_now(c, q, &cpus, &memory_mib);
        n = u64_min(need_count(c, need, q), u64_min(most, q->jobs_left));
        if (need->cpus > 0)
                n = u64_min(n, cpus > 0 ? (uint64_t)(cpus / need->cpus) : 0);
        if (need->memory_mib > 0)
                n = u64_min(n, memory_mib > 0 ? (uint64_t)(memory_mib / need->memory_mib) : 0);
        if (!reserve_may_keep(k, q))
                return n;
        while (n > 0 && !reserve_allows_all(c, k, q, need, n))
                n--;
        return n;
}

static size_t group_number(struct seats *s, struct str name)
{
        size_t at = (size_t)(uintptr_t)map_get(s->groups, name);

        if (at)
                return at - 1;
        MEM_GROW(s->names, s->group_cap, s->group_count + 1);
        s->names[s->group_count] = str_dupz(name);
        map_put(s->groups, name, (void *)(uintptr_t)++s->group_count);
        return s->group_count - 1;
}

static void seats_deinit(struct seats *s)
{
        for (size_t i = 0; i < s->group_count; i++)
                free(s->names[i]);
        free(s->names);
        map_free(s->groups);
        free(s->v);
}

static int compare_seats(const void *x, const void *y)
{
        const struct seat *a = x, *b = y;

        return choose_better(&a->at, &b->at);
}

/* Collects the queues that could start a member now. */
static void seats_find(struct core *c, struct job_class *k, uint64_t most, struct seats *s)
{
        struct index_offers w;
        struct queue *q;
        struct need need;

        *s = (struct seats){.groups = map_new()};
        index_offers_begin(&w, k);
        while (s->n < SEATS_MAX && (q = index_offers_next(&w)) != NULL) {
                uint64_t room = choose_fits(c, k, q, &need) ? gang_room(c, k, q, &need, most) : 0;
                struct buf BUF_CLEANUP company = {.max = 1024};

                if (room == 0 || !gang_company(c, k, q, &company))
                        continue;
                MEM_GROW(s->v, s->cap, s->n + 1);
                s->v[s->n++] = (struct seat){.at = choose_worth(c, k, q),
                                             .need = need,
                                             .most = room,
                                             .group = group_number(s, buf_view(&company))};
        }
        index_offers_end(&w);
        if (s->n > 1)
                qsort(s->v, s->n, sizeof(*s->v), compare_seats);
}

/* Updates the seats after a dispatch. */
static void seats_again(struct core *c, struct job_class *k, uint64_t most, struct seats *s)
{
        for (size_t i = 0; i < s->n; i++) {
                struct seat *at = &s->v[i];

                if (at->given)
                        at->most = choose_fits(c, k, at->at.queue, &at->need)
                                           ? gang_room(c, k, at->at.queue, &at->need, most)
                                           : 0;
                at->given = 0;
        }
}

/* Returns the number of the company with the best seat among those with enough room, else of the one with the
 * most room, and sets *ret_room to its room. */
static size_t best_company(const struct seats *s, uint64_t size, uint64_t *ret_room)
{
        uint64_t *room = mem_array(NULL, s->group_count + 1, sizeof(*room));
        size_t best = 0;

        memset(room, 0, (s->group_count + 1) * sizeof(*room));
        *ret_room = 0;
        for (size_t i = 0; i < s->n; i++)
                room[s->v[i].group] += s->v[i].most;
        for (size_t i = 0; i < s->n && *ret_room < size; i++)
                if (room[s->v[i].group] > *ret_room) {
                        best = s->v[i].group;
                        *ret_room = room[best];
                }
        free(room);
        return best;
}

/* ---- a gang for which there is room */

static uint32_t fence_of(const struct core *c, const struct request *r, const struct set *members)
{
        uint32_t fence = c->requests->fence_from ? c->requests->fence_from - 1 : 0;

        SET_FOREACH (members, m) {
                const struct job *j = request_job(r, (uint32_t)m);

                if (j && j->fence > fence)
                        fence = j->fence;
        }
        return fence + 1;
}

/* Seats take members of the bucket in order, each as many as it can. */
static void sit(struct seats *s, size_t company, struct bucket *b, const struct set *members,
                struct placing *where)
{
        uint64_t left = set_count(members), member = set_first(members);
        size_t n = 0;

        for (size_t i = 0; i < s->n && left > 0; i++) {
                if (s->v[i].group != company)
                        continue;
                s->v[i].given = u64_min(left, s->v[i].most);
                left -= s->v[i].given;
                for (uint64_t m = 0; m < s->v[i].given; m++) {
                        where[n++] = (struct placing){b, (uint32_t)member, s->v[i].at.queue};
                        member = set_next(members, member + 1);
                }
        }
}

static void name_machines(struct core *c, const struct placing *where, uint64_t n, struct buf *out)
{
        out->max = MACHINES_MAX;
        for (uint64_t i = 0; i < n; i++) {
                struct str machine = STR_NONE;

                if (!eval_string(&c->eval, where[i].queue->ad, NULL, c->attr.Machine, &machine) ||
                    str_find(machine, ',') >= 0)
                        machine = str_of(where[i].queue->agent->name);
                if (i)
                        buf_char(out, ',');
                buf_str(out, machine);
        }
        if (buf_check(out))
                buf_reset(out);
}

/* Takes the members' needs off their queues one after the other and puts them back, because a queue's
 * expressions may depend on what it has left. Returns NULL when all fit; else the queue that refuses its next
 * member, with the number that it took in *ret_took. */
static struct queue *gang_try(struct core *c, const struct placing *where, size_t count, uint64_t *ret_took)
{
        struct need *needs = mem_array(NULL, count, sizeof(*needs));
        struct queue *not_wanted = NULL;
        size_t n = 0;

        for (; n < count && !not_wanted; n += !not_wanted) {
                const struct placing *at = &where[n];

                if (choose_fits(c, at->bucket->job_class, at->queue, &needs[n]) &&
                    dispatch_wanted(c, at->bucket, at->member, at->queue))
                        need_take(c, &needs[n], at->queue);
                else
                        not_wanted = at->queue;
        }
        *ret_took = 0;
        while (n-- > 0) {
                *ret_took += where[n].queue == not_wanted;
                need_return(c, &needs[n], where[n].queue);
                index_queue_changed(c, where[n].queue);
        }
        free(needs);
        return not_wanted;
}

/* Returns how many of the following members are of one bucket and go to one queue. */
static size_t run_length(const struct placing *where, size_t count)
{
        size_t n = 1;

        while (n < count && where[n].queue == where[0].queue && where[n].bucket == where[0].bucket)
                n++;
        return n;
}

/* gang NULL: the members start one by one. */
static void give(struct core *c, const struct placing *where, size_t count, const struct dispatch_gang *gang)
{
        for (size_t at = 0, n; at < count; at += n) {
                struct bucket *b = where[at].bucket;
                struct set here = {0};

                n = run_length(where + at, count - at);
                for (size_t i = 0; i < n; i++)
                        set_add(&here, where[at + i].member);
                dispatch_members(c, b->job_class, b, where[at].queue, &here, gang);
                set_deinit(&here);
        }
}

static void hand_out(struct core *c, struct request *r, uint32_t first, uint32_t size,
                     const struct placing *where, size_t count)
{
        struct buf BUF_CLEANUP machines = {0};
        struct dispatch_gang gang = {.first = first, .size = size};
        struct event e = {
                .type = EVENT_GANG, .request = r->id, .value = (int64_t)((uint64_t)first << 32 | size)};

        for (size_t i = 0; i < count; i++)
                set_add(&e.members, where[i].member);
        e.fence = gang.fence = fence_of(c, r, &e.members);
        name_machines(c, where, count, &machines);
        gang.machines = buf_view(&machines);
        give(c, where, count, &gang);
        for (size_t i = 0; i < count;
             i++) { /* one that got no place after all has gang_settle free the others */
                const struct job *j = request_job(r, where[i].member);

                if (!j || !j->queue || j->fence != gang.fence)
                        set_remove(&e.members, where[i].member);
        }
        if (set_count(&e.members) > 0)
                core_emit(c, &e, NULL);
        event_deinit(&e);
}

/* Lowers the number of members that the queue can take. */
static void seat_less(struct seats *s, const struct queue *q, uint64_t most)
{
        for (size_t i = 0; i < s->n; i++) {
                if (s->v[i].at.queue == q)
                        s->v[i].most = most;
                s->v[i].given = 0;
        }
}

/* Returns whether limits have units, and accounts money, for all members at their places. */
static bool places_suffice(struct core *c, const struct placing *where, size_t n)
{
        struct job_class **classes = mem_array(NULL, n, sizeof(*classes));
        struct queue **queues = mem_array(NULL, n, sizeof(*queues));
        bool yes = true;

        for (size_t i = 0; i < n; i++) {
                classes[i] = where[i].bucket->job_class;
                queues[i] = where[i].queue;
        }
        for (size_t i = 0, same; i < n && yes; i += same) {
                for (same = 1; i + same < n && classes[i + same] == classes[i];)
                        same++;
                yes = dispatch_draws_suffice(c, classes[i], queues + i, same);
        }
        yes = yes && billing_suffices(c, classes, queues, n);
        free(classes);
        free(queues);
        return yes;
}

/* Dispatches the gang if there is room for all of it. */
static bool place_set(struct core *c, struct job_class *k, struct bucket *b, uint32_t first, uint32_t size,
                      const struct set *members, struct seats *s)
{
        uint64_t n = set_count(members), room, took;
        struct limit *shortest;
        struct placing *where;
        struct queue *not_wanted;
        bool placed = false;
        size_t company;

        if (!dispatch_room(b->request, (uint32_t)set_first(members), n - 1))
                return false;
        if (charge_room(k, k->draws, &shortest) < n) {
                limit_wait(shortest, &k->waits);
                return false;
        }
        where = mem_array(NULL, n, sizeof(*where));
        while (company = best_company(s, n, &room), room >= n && !placed) {
                sit(s, company, b, members, where);
                not_wanted = gang_try(c, where, n, &took);
                if (not_wanted) {
                        seat_less(s, not_wanted, took);
                        continue;
                }
                if (!places_suffice(c, where, n))
                        break;
                hand_out(c, b->request, first, size, where, n);
                placed = true;
        }
        free(where);
        return placed;
}

void gang_place(struct core *c, struct job_class *k)
{
        uint64_t looks = c->matching->looks;
        struct seats s;
        bool placed;

        if (k->met_at == c->pending->offers_new)
                return; /* no queue has more room for the class than at the last search */
        if (k->gang_due_ms && c->steady_ms < k->gang_due_ms)
                return; /* gang_tick wakes it */
        k->met_at = c->pending->offers_new;
        k->gang_due_ms = 0;
        seats_find(c, k, GANG_SIZE_MAX, &s);
        do {
                placed = false;
                for (size_t i = 0; k->idle && i < k->buckets.count && i < BUCKETS_MAX && !placed; i++) {
                        struct bucket *b = container_of(k->buckets.nodes[i], struct bucket, node);
                        struct set members = {0};
                        uint32_t first, size;

                        if (gang_next(b, 0, &first, &size, &members))
                                placed = place_set(c, k, b, first, size, &members, &s);
                        set_deinit(&members);
                }
                if (placed)
                        seats_again(c, k, GANG_SIZE_MAX, &s);
        } while (placed && k->idle && !order_turn_is_over(c, k) && !charge_must_wait(c, k));
        if (placed && k->idle)
                k->met_at = 0; /* the search ended early, so the next one must not be skipped */
        seats_deinit(&s);
        eval_reset(&c->eval);
        looks = (c->matching->looks - looks) / LOOKS_MS;
        if (looks && k->idle)
                k->gang_due_ms = c->steady_ms + (int64_t)looks;
}

/* ---- jobs with reservations of their own */

/* Returns the places that were reserved for the unit's members that have not ended, in an array that the
 * caller frees; NULL: not all of them can be dispatched now. */
static struct placing *reserved_places(struct core *c, struct request *r, uint32_t first, uint32_t size,
                                       size_t *ret_n)
{
        struct placing *where = mem_array(NULL, size, sizeof(*where));
        const struct request_cold *cold = request_cold(r);
        bool all = true;
        size_t n = 0;

        for (uint32_t m = first; m < first + size && all; m++) {
                const struct advance *a = advance_for_job(c, r->id, m);
                struct bucket *b = request_bucket(c, r, m);

                if (set_has(&cold->completed, m) || set_has(&cold->removed, m))
                        continue;
                all = a && b && b->job_class && set_has(&b->idle, m) && dispatch_room(r, m, size - 1);
                if (all)
                        where[n++] = (struct placing){b, m, a->places[0].queue};
        }
        *ret_n = n;
        if (all && n > 0)
                return where;
        free(where);
        return NULL;
}

static bool has_units(struct draws *const *all, size_t n, const struct limit *x)
{
        int64_t units = x->used;

        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; all[i] && k < all[i]->count; k++)
                        units += all[i]->v[k].limit == x ? all[i]->v[k].units : 0;
        return x->max == LIMIT_NONE || units <= x->max;
}

/* Returns whether limits have units for all members at once; of several classes, and at these places. */
static bool can_draw(struct core *c, const struct placing *where, size_t n)
{
        struct draws **all = mem_array(NULL, n, sizeof(*all));
        bool yes = true;
        size_t known = 0;

        for (; known < n && yes; known += yes) {
                const struct job_class *k = where[known].bucket->job_class;

                yes = limit_room(k->user) >= n &&
                      charge_draws(c, k, where[known].queue, &all[known], NULL) == 0;
        }
        for (size_t i = 0; i < known && yes; i++)
                for (size_t k = 0; all[i] && k < all[i]->count && yes; k++)
                        yes = has_units(all, known, all[i]->v[k].limit);
        for (size_t i = 0; i < known; i++)
                draws_unref(c->limits, all[i]);
        free(all);
        return yes;
}

/* Returns whether reservations of others allow all members at their places at once. */
static bool others_allow(struct core *c, const struct placing *where, size_t n)
{
        struct need *needs = mem_array(NULL, n, sizeof(*needs));
        bool yes = true;

        for (size_t i = 0; i < n && yes; i++) {
                struct job_class *k = where[i].bucket->job_class;
                uint64_t steps = core_steps(c);
                struct need all;

                need_of(c, k, k->ad, where[i].queue->ad, &needs[i]);
                overrun_charge(c, k, steps);
                all = needs[i];
                for (size_t b = 0; b < i; b++) {
                        if (where[b].queue != where[i].queue)
                                continue;
                        all.cpus += needs[b].cpus;
                        all.memory_mib += needs[b].memory_mib;
                }
                yes = !reserve_may_keep(k, where[i].queue) || reserve_allows(c, k, where[i].queue, &all);
        }
        free(needs);
        return yes;
}

bool gang_reserved(struct core *c, struct request *r, uint32_t first, uint32_t size, bool check_only)
{
        size_t n;
        struct placing *where;
        uint64_t took;
        bool yes;

        c->advances->placing.request = r->id;
        c->advances->placing.first = first;
        c->advances->placing.size = size;
        where = reserved_places(c, r, first, size, &n);
        yes = where && can_draw(c, where, n) && !gang_try(c, where, n, &took) && others_allow(c, where, n) &&
              places_suffice(c, where, n);
        if (yes && !check_only && r->together)
                hand_out(c, r, first, size, where, n);
        else if (yes && !check_only)
                give(c, where, n, NULL);
        c->advances->placing.request = 0;
        free(where);
        eval_reset(&c->eval);
        return yes;
}

void gang_place_authorised(struct core *c)
{
        const struct advance *a = c->advances->for_jobs ? c->advances->first : NULL;
        uint64_t together = 0; /* the last request whose parts were tried together */

        while (a) { /* dispatching a job ends its reservation */
                struct request *r = a->request && a->begun ? request_find(c, a->request) : NULL;
                uint64_t id = a->id;

                if (r && !r->together)
                        gang_reserved(c, r, a->member, 1, false);
                else if (r && r->id != together)
                        gang_reserved(c, r, 0, r->count, false);
                together = r && r->together ? r->id : together;
                for (a = c->advances->first; a && a->id <= id;)
                        a = a->next;
        }
}

uint64_t gang_most_now(struct core *c, struct job_class *k, struct buf *where)
{
        struct seats s;
        uint64_t most;
        size_t company;

        seats_find(c, k, GANG_SIZE_MAX, &s);
        company = best_company(&s, UINT64_MAX, &most);
        if (most)
                buf_addz(where, s.names[company]);
        seats_deinit(&s);
        eval_reset(&c->eval);
        return most;
}
