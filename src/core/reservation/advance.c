/* A record that moves to its next occurrence keeps its places, so queues point to it as long as it exists.
 * Starts of later occurrences are computed, never stored. */
#include "core/reservation/advance.h"

#include <errno.h>

#include "base/mem.h"
#include "base/pack.h"
#include "core/accounts/share.h"
#include "core/model/core_parts.h"

#define ORDER_VERSION 1

enum { FLAG_MAINTENANCE = 1, FLAG_EVICT = 2, FLAG_JOB = 4 };

void advances_init(struct core *c)
{
        c->advances = mem_new(struct advances);
}

static void advance_free(struct advance *a)
{
        free(a->owner);
        free(a->users);
        free(a->groups);
        free(a->account);
        free(a->reason);
        free(a->places);
        free(a);
}

void advances_deinit(struct core *c)
{
        while (c->advances->first) {
                struct advance *a = c->advances->first;

                c->advances->first = a->next;
                advance_free(a);
        }
        free(c->advances);
}

/* ---- orders */

static void make_pack(struct buf *out, const struct advance_order *o)
{
        pack_str(out, o->owner);
        pack_str(out, o->users);
        pack_str(out, o->groups);
        pack_str(out, o->account);
        pack_str(out, o->reason);
        pack_u64(out, (o->maintenance ? FLAG_MAINTENANCE : 0u) | (o->evict ? FLAG_EVICT : 0u) |
                              (o->request ? FLAG_JOB : 0u));
        if (o->request) {
                pack_u64(out, o->request);
                pack_u64(out, o->member);
                pack_u64(out, o->moves);
        }
        pack_i64(out, o->start_ms);
        pack_i64(out, o->end_ms);
        pack_i64(out, o->every_ms);
        pack_i64(out, o->until_ms);
        pack_u64(out, o->room_count);
        for (size_t i = 0; i < o->room_count; i++) {
                pack_str(out, o->rooms[i].agent);
                pack_str(out, o->rooms[i].queue);
                pack_i64(out, o->rooms[i].cpus);
                pack_i64(out, o->rooms[i].memory_mib);
        }
}

void advance_order_pack(struct buf *out, const struct advance_order *o)
{
        pack_u64(out, ORDER_VERSION);
        pack_u64(out, o->op);
        pack_u64(out, o->id);
        pack_u64(out, o->lien);
        pack_i64(out, o->amount);
        if (o->op == ADVANCE_MAKE) {
                make_pack(out, o);
        } else if (o->op == ADVANCE_END) {
                pack_str(out, o->who);
                pack_str(out, o->reason);
        }
}

static char *text_dup(struct str s)
{
        return s.n ? str_dupz(s) : NULL;
}

static struct advance *advance_unpack(struct core *c, struct unpack *u)
{
        struct advance *a = mem_new(struct advance);
        uint64_t flags;

        a->owner = str_dupz(unpack_str(u));
        a->users = text_dup(unpack_str(u));
        a->groups = text_dup(unpack_str(u));
        a->account = text_dup(unpack_str(u));
        a->reason = text_dup(unpack_str(u));
        flags = unpack_max(u, FLAG_MAINTENANCE | FLAG_EVICT | FLAG_JOB);
        a->maintenance = flags & FLAG_MAINTENANCE;
        a->evict = flags & FLAG_EVICT;
        a->made_ms = c->steady_ms;
        if (flags & FLAG_JOB) {
                const struct request *r = request_find(c, unpack_u64(u));

                a->request = r ? r->id : 0;
                a->member = (uint32_t)unpack_max(u, r ? r->count - 1 : 0);
                a->moves = (uint32_t)unpack_max(u, UINT32_MAX);
                u->bad |= !r;
        }
        a->start_ms = unpack_i64(u);
        a->end_ms = unpack_i64(u);
        a->every_ms = unpack_i64(u);
        a->until_ms = unpack_i64(u);
        u->bad |= a->start_ms < 0 || a->end_ms <= a->start_ms || a->end_ms - a->start_ms > ADVANCE_MS_MAX ||
                  a->every_ms < 0 || (a->every_ms && a->every_ms < a->end_ms - a->start_ms);
        a->place_count = unpack_max(u, ADVANCE_PLACES_MAX);
        u->bad |= a->request && a->place_count != 1;
        a->places = mem_array(NULL, a->place_count + 1, sizeof(*a->places));
        for (size_t i = 0; i < a->place_count && !u->bad; i++) {
                struct str agent = unpack_str(u), queue = unpack_str(u);
                struct advance_place *p = &a->places[i];

                *p = (struct advance_place){.of = a, .cpus = unpack_i64(u), .memory_mib = unpack_i64(u)};
                u->bad |= !agent.n || !queue.n || p->cpus < 0 || p->cpus > ADVANCE_NEED_MAX ||
                          p->memory_mib < 0 || p->memory_mib > ADVANCE_NEED_MAX;
                if (u->bad)
                        break;
                p->queue = queue_get(c, agent_get(c, agent), queue);
                p->queue->logged = true;
        }
        return a;
}

static void advance_add(struct core *c, struct advance *a)
{
        struct advance **at = &c->advances->first;

        while (*at)
                at = &(*at)->next;
        *at = a;
        c->advances->count++;
        c->advances->for_jobs += a->request != 0;
        c->advances->last_id = a->id;
        for (size_t i = 0; i < a->place_count; i++) {
                struct advance_place *p = &a->places[i];

                p->next = p->queue->advance;
                p->queue->advance = p;
        }
}

static void advance_remove(struct core *c, struct advance *a)
{
        struct advance **at = &c->advances->first;

        while (*at != a)
                at = &(*at)->next;
        *at = a->next;
        c->advances->count--;
        c->advances->for_jobs -= a->request != 0;
        for (size_t i = 0; i < a->place_count; i++) {
                struct advance_place **p = &a->places[i].queue->advance;

                while (*p != &a->places[i])
                        p = &(*p)->next;
                *p = a->places[i].next;
        }
        advance_free(a);
}

/* ---- reservations for jobs */

/* Writes a line into the log of the job that the reservation is for. */
static void job_says(struct core *c, const struct advance *a, int64_t at_ms, const char *what, struct str why)
{
        const struct queue *q = a->places[0].queue;
        struct request *r = request_find(c, a->request);
        struct job *j = request_job(r, a->member);
        struct event e = {.type = EVENT_ADVANCE, .at_ms = at_ms};
        BUF_CLEANUP struct buf text = {0};

        buf_printf(&text, "%s at %s of %s", what, q->name, q->agent->name);
        if (why.n)
                buf_printf(&text, ": " STR_FMT, STR_ARG(why));
        e.reason = buf_view(&text);
        if (j) {
                joblog_event(j, &e, NULL);
        } else {
                set_add(&e.members, a->member);
                joblog_event_of_all(r, &e, &e.members);
        }
        event_deinit(&e);
}

/* Returns whether the job may be reserved for: it is idle, and nothing is yet. */
static bool job_may(struct core *c, const struct advance *a)
{
        return request_state(request_find(c, a->request), a->member) == JOB_IDLE;
}

static void job_move(struct core *c, const struct advance *a, enum job_state to)
{
        request_reserve_move(request_find(c, a->request), a->member, to);
}

/* ---- applying orders */

static int apply_make(struct core *c, uint64_t id, uint64_t lien, int64_t at_ms, struct unpack *u)
{
        struct advance *a = advance_unpack(c, u);

        a->id = id;
        a->lien = lien;
        if (!unpack_done(u) || id <= c->advances->last_id || c->advances->count >= ADVANCES_MAX ||
            (a->request && !job_may(c, a))) {
                advance_free(a);
                return -EBADMSG;
        }
        advance_add(c, a);
        if (a->request) {
                job_move(c, a, JOB_RESERVED);
                job_says(c, a, at_ms, a->moves ? "moved" : "reserved", str_of(a->reason));
        }
        return 0;
}

static int apply_begin(struct core *c, struct advance *a, int64_t at_ms)
{
        if (a->request && (a->begun || request_state(request_find(c, a->request), a->member) != JOB_RESERVED))
                return -EBADMSG;
        a->begun = true;
        a->made_ms = c->steady_ms;
        if (a->request) {
                job_move(c, a, JOB_AUTHORISED);
                job_says(c, a, at_ms, "authorised", STR_NONE);
        }
        return 0;
}

/* The job has left idle if it has got its place, or was held or removed. */
static void apply_end(struct core *c, struct advance *a, int64_t at_ms, struct str why)
{
        struct request *r = a->request ? request_find(c, a->request) : NULL;

        if (r && set_has(&request_cold(r)->reserved, a->member))
                job_move(c, a, JOB_IDLE);
        if (r && why.n)
                job_says(c, a, at_ms, "released", why);
        advance_remove(c, a);
}

static int apply_change(struct core *c, enum advance_op op, struct advance *a, uint64_t lien, int64_t amount,
                        int64_t at_ms, struct unpack *u)
{
        struct str why;

        switch (op) {
        case ADVANCE_BEGIN: return apply_begin(c, a, at_ms);
        case ADVANCE_USE:
                if (amount < 0 || amount > INT64_MAX - a->used_ms)
                        return -EBADMSG;
                a->used_ms += amount;
                return 0;
        case ADVANCE_AGAIN:
                if (!a->every_ms || amount < 1 || amount > (INT64_MAX - a->end_ms) / a->every_ms)
                        return -EBADMSG;
                a->start_ms += a->every_ms * amount;
                a->end_ms += a->every_ms * amount;
                a->begun = false;
                a->used_ms = 0;
                a->lien = lien;
                return 0;
        case ADVANCE_END:
                unpack_str(u); /* who */
                why = unpack_str(u);
                if (u->bad)
                        return -EBADMSG;
                apply_end(c, a, at_ms, why);
                return 0;
        default: return -EBADMSG;
        }
}

int advance_apply(struct core *c, struct str record, int64_t at_ms, struct err *err)
{
        struct unpack u = unpack_from(record);
        uint64_t version = unpack_u64(&u), op = unpack_max(&u, ADVANCE_OPS - 1), id = unpack_u64(&u),
                 lien = unpack_u64(&u);
        int64_t amount = unpack_i64(&u);
        struct advance *a = advance_find(c, id);
        int r = -EBADMSG;

        if (version == ORDER_VERSION && op == ADVANCE_MAKE)
                r = apply_make(c, id, lien, at_ms, &u);
        else if (version == ORDER_VERSION && a && !u.bad)
                r = apply_change(c, (enum advance_op)op, a, lien, amount, at_ms, &u);
        return r ? err_set(err, r, "an order for a reservation is damaged") : 0;
}

/* ---- looking */

struct advance *advance_find(const struct core *c, uint64_t id)
{
        struct advance *a = id ? c->advances->first : NULL;

        while (a && a->id != id)
                a = a->next;
        return a;
}

struct advance *advance_for_job(const struct core *c, uint64_t request, uint32_t member)
{
        struct advance *a = c->advances->for_jobs ? c->advances->first : NULL;

        while (a && (a->request != request || a->member != member))
                a = a->next;
        return a;
}

bool advance_is_placing(const struct core *c, const struct advance *a)
{
        return a->request && a->request == c->advances->placing.request &&
               a->member >= c->advances->placing.first &&
               a->member - c->advances->placing.first < c->advances->placing.size;
}

bool advance_admits(const struct advance *a, struct str owner, struct str group)
{
        struct str rest = str_of(a->users ? a->users : ""), one;

        if (a->maintenance || a->request)
                return false;
        if (str_eqz(owner, a->owner))
                return true;
        while (rest.n && str_cut(&rest, ',', &one)) {
                MEM_CLEANUP char *pattern = str_dupz(str_trim(one));

                if (share_is_user(pattern, owner))
                        return true;
        }
        rest = str_of(a->groups ? a->groups : "");
        while (group.n && rest.n && str_cut(&rest, ',', &one))
                if (shares_group_within(str_trim(one), group))
                        return true;
        return false;
}

int64_t advance_start_at(const struct advance *a, int64_t at_ms)
{
        int64_t start_ms = a->start_ms;

        if (!a->every_ms || at_ms <= start_ms)
                return start_ms;
        if (a->until_ms && at_ms > a->until_ms)
                at_ms = a->until_ms > start_ms ? a->until_ms : start_ms;
        return start_ms + (at_ms - start_ms) / a->every_ms * a->every_ms;
}

bool advance_covers(const struct advance *a, int64_t at_ms)
{
        int64_t start_ms = advance_start_at(a, at_ms);

        return at_ms >= start_ms && at_ms - start_ms < a->end_ms - a->start_ms;
}

void advance_kept(const struct core *c, const struct queue *q, int64_t at_ms, const struct advance *except,
                  int64_t *ret_cpus, int64_t *ret_memory_mib)
{
        *ret_cpus = *ret_memory_mib = 0;
        for (const struct advance_place *p = q->advance; p; p = p->next)
                if (p->of != except && !advance_is_placing(c, p->of) && advance_covers(p->of, at_ms)) {
                        *ret_cpus += p->cpus;
                        *ret_memory_mib += p->memory_mib;
                }
}

const struct advance_place *advance_place_at(const struct queue *q, uint64_t id)
{
        const struct advance_place *p = id ? q->advance : NULL;

        while (p && p->of->id != id)
                p = p->next;
        return p;
}

uint64_t advance_of_job(const struct job *j)
{
        return request_part(j->request, j->member, NULL)->job_template->reservation;
}

/* ---- snapshots */

void advances_pack(const struct core *c, struct buf *out)
{
        pack_u64(out, c->advances->last_id);
        pack_u64(out, c->advances->count);
        for (const struct advance *a = c->advances->first; a; a = a->next) {
                struct advance_room *rooms = mem_array(NULL, a->place_count + 1, sizeof(*rooms));

                for (size_t i = 0; i < a->place_count; i++)
                        rooms[i] = (struct advance_room){str_of(a->places[i].queue->agent->name),
                                                         str_of(a->places[i].queue->name), a->places[i].cpus,
                                                         a->places[i].memory_mib};
                make_pack(out, &(struct advance_order){.owner = str_of(a->owner),
                                                       .users = str_of(a->users),
                                                       .groups = str_of(a->groups),
                                                       .account = str_of(a->account),
                                                       .reason = str_of(a->reason),
                                                       .maintenance = a->maintenance,
                                                       .evict = a->evict,
                                                       .start_ms = a->start_ms,
                                                       .end_ms = a->end_ms,
                                                       .every_ms = a->every_ms,
                                                       .until_ms = a->until_ms,
                                                       .request = a->request,
                                                       .member = a->member,
                                                       .moves = a->moves,
                                                       .rooms = rooms,
                                                       .room_count = a->place_count});
                pack_u64(out, a->id);
                pack_u64(out, a->lien);
                pack_u64(out, a->begun);
                pack_i64(out, a->used_ms);
                free(rooms);
        }
}

void advances_unpack(struct core *c, struct unpack *in)
{
        uint64_t last_id = unpack_u64(in);

        for (uint64_t n = unpack_max(in, ADVANCES_MAX); n > 0 && !in->bad; n--) {
                struct advance *a = advance_unpack(c, in);

                a->id = unpack_max(in, last_id);
                a->lien = unpack_u64(in);
                a->begun = unpack_max(in, 1);
                a->used_ms = unpack_i64(in);
                in->bad |= a->id <= c->advances->last_id;
                if (in->bad) {
                        advance_free(a);
                        break;
                }
                advance_add(c, a);
                if (!a->request || !job_may(c, a)) /* or the next order ends it: its job has left idle */
                        continue;
                job_move(c, a, JOB_RESERVED);
                if (a->begun)
                        job_move(c, a, JOB_AUTHORISED);
        }
        if (!in->bad)
                c->advances->last_id = last_id;
}

const char *advance_invariant(struct core *c)
{
        uint32_t n = 0;

        for (const struct advance *a = c->advances->first; a; a = a->next) {
                n++;
                for (size_t i = 0; i < a->place_count; i++) {
                        const struct advance_place *p = &a->places[i];
                        int64_t cpus = 0, memory_mib = 0;

                        if (advance_place_at(p->queue, a->id) != p)
                                return "an advance reservation is not known to its queue";
                        if (c->config.shadow)
                                continue;
                        for (const struct job *j = p->queue->attempts; j; j = j->next)
                                if (advance_of_job(j) == a->id) {
                                        cpus += j->cpus;
                                        memory_mib += (int64_t)j->memory_mib;
                                }
                        if (cpus > p->cpus || memory_mib > p->memory_mib)
                                return "the jobs of an advance reservation take more than it has";
                }
        }
        return n == c->advances->count ? NULL : "advance reservations are counted wrongly";
}
