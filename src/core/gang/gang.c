/* Implements gangs. No record is kept of a gang except fields of its attempts: gang_settle counts the states
 * of its members and emits the missing events. */
#include "core/gang/gang.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/mem.h"
#include "classad/print.h"
#include "core/classes/job_class.h"
#include "core/events/apply.h"
#include "core/model/gang_rule.h"
#include "core/model/pending_match.h"

struct gangs {
        struct idmap *waiting; /* gang that waits for Go → since when; NULL: none */
        struct idmap *todo;    /* gangs that have changed; NULL: none */
};

#define GANGS_TRIED 64u /* most gangs examined of one bucket, when members are held or stopping */

/* ---- gangs to examine */

static uint64_t key_of(uint64_t request, uint32_t first)
{
        return request << 32 | first;
}

static void look_at(struct core *c, const struct request *r, uint32_t first)
{
        if (!c->gangs->todo)
                c->gangs->todo = idmap_new();
        idmap_put(c->gangs->todo, key_of(r->id, first), c);
}

static void look_at_members(struct core *c, const struct request *r, const struct set *members)
{
        uint32_t first, size;

        for (uint64_t m = set_first(members); m != SET_END;) {
                const struct part *p = request_part(r, (uint32_t)m, NULL);

                if (gang_of(r, (uint32_t)m, &first, &size)) {
                        look_at(c, r, first);
                        m = set_next(members, (uint64_t)first + size);
                } else {
                        m = set_next(members, (uint64_t)p->first + p->count);
                }
        }
}

void gang_event(struct core *c, const struct event *e)
{
        struct request *r = request_find(c, e->request);

        if (!r || !r->has_gangs)
                return;
        switch (e->type) {
        case EVENT_GANG:
                if (!c->gangs->waiting)
                        c->gangs->waiting = idmap_new();
                idmap_put(c->gangs->waiting, key_of(r->id, (uint32_t)(e->value >> 32)),
                          (void *)(uintptr_t)c->steady_ms);
                break;
        case EVENT_ACCEPTED:
        case EVENT_REFUSED:
        case EVENT_STARTED:
        case EVENT_EXITED:
        case EVENT_LOST:
        case EVENT_VACATING: look_at_members(c, r, &e->members); break;
        case EVENT_REMOVED:
                if (set_count(&e->members) < r->count)
                        look_at_members(c, r, &e->members);
                break;
        default: break;
        }
}

void gang_ready(struct core *c)
{
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);)
                for (struct queue *q = ((struct core_agent *)value)->queues; q; q = q->next)
                        for (struct job *j = q->attempts; j; j = j->next) {
                                if (!j->gang_size || !j->request->has_gangs)
                                        continue;
                                look_at(c, j->request, j->gang_first);
                                if (!j->gang_goes) {
                                        if (!c->gangs->waiting)
                                                c->gangs->waiting = idmap_new();
                                        idmap_put(c->gangs->waiting, key_of(j->request->id, j->gang_first),
                                                  (void *)(uintptr_t)c->steady_ms);
                                }
                        }
}

void gang_init(struct core *c)
{
        c->gangs = mem_new(struct gangs);
}

void gang_deinit(struct core *c)
{
        idmap_free(c->gangs->waiting);
        idmap_free(c->gangs->todo);
        free(c->gangs);
}

/* ---- states of members */

void gang_look_deinit(struct gang *g)
{
        set_deinit(&g->waits);
        set_deinit(&g->runs);
        set_deinit(&g->stops);
        set_deinit(&g->idle);
        set_deinit(&g->held);
}

static void add_attempt(struct gang *g, const struct job *j)
{
        if (j->state == JOB_VACATING) {
                if (j->goal == JOB_REMOVED)
                        g->removed = true;
                else if (j->goal != JOB_COMPLETED)
                        set_add(&g->stops, j->member);
        } else if (j->gang_size && !j->gang_goes) {
                set_add(&g->waits, j->member);
                g->accepted &= j->accepted;
                g->fence = j->fence;
        } else {
                set_add(&g->runs, j->member);
        }
}

void gang_look(struct request *r, uint32_t first, struct gang *g)
{
        const struct part *p = request_part(r, first, NULL);
        uint32_t size = 0, at = first;

        gang_of(r, first, &at, &size);
        *g = (struct gang){
                .request = r, .first = at, .size = size, .first_ends = p->job_template->gang.first_ends};
        g->accepted = true;
        g->first_over = set_has(&request_cold(r)->completed, at);
        for (uint32_t m = at; m < at + size; m++) {
                const struct job *j = request_job(r, m);
                enum job_state s = request_state(r, m);

                if (j && j->queue)
                        add_attempt(g, j);
                else if (s == JOB_HELD)
                        set_add(&g->held, m);
                else if (s == JOB_REMOVED)
                        g->removed = true;
                else if (s != JOB_COMPLETED)
                        set_add(&g->idle, m);
        }
}

/* ---- missing events */

/* Calls fn for each group of members with one agent and fence. */
static void each_agent(struct core *c, const struct request *r, const struct set *members,
                       void (*fn)(struct core *c, const char *agent, uint64_t request, uint32_t fence,
                                  const struct set *same, enum core_control what),
                       enum core_control what)
{
        struct set left = {0};

        set_copy(&left, members);
        while (set_count(&left)) {
                const struct job *lead = request_job(r, (uint32_t)set_first(&left));
                struct set same = {0};

                SET_FOREACH (&left, m) {
                        const struct job *j = request_job(r, (uint32_t)m);

                        if (j->queue->agent == lead->queue->agent && j->fence == lead->fence)
                                set_add(&same, (uint32_t)m);
                }
                fn(c, lead->queue->agent->name, r->id, lead->fence, &same, what);
                set_remove_all(&left, &same);
                set_deinit(&same);
        }
        set_deinit(&left);
}

static void say_control(struct core *c, const char *agent, uint64_t request, uint32_t fence,
                        const struct set *same, enum core_control what)
{
        c->world.control(c->world.arg, agent, what, request, fence, same);
}

static void say_go(struct core *c, const char *agent, uint64_t request, uint32_t fence,
                   const struct set *same, enum core_control what)
{
        (void)what;
        if (c->world.go)
                c->world.go(c->world.arg, agent, request, fence, same);
}

static void emit(struct core *c, const struct gang *g, enum event_type type, const struct set *members,
                 enum job_state next, const char *reason)
{
        struct event e = {.type = type,
                          .request = g->request->id,
                          .members = *members,
                          .fence = g->fence,
                          .next = next,
                          .reason = str_of(reason)};

        if (set_count(members))
                core_emit(c, &e, NULL);
}

/* Frees the waiting members at once, since none of them has run. */
static void free_waiting(struct core *c, struct gang *g, const char *why)
{
        if (set_count(&g->waits) == 0)
                return;
        each_agent(c, g->request, &g->waits, say_control, CORE_VACATE);
        emit(c, g, EVENT_LOST, &g->waits, JOB_IDLE, why);
        set_add_all(&g->idle, &g->waits);
        set_deinit(&g->waits);
}

static void stop_members(struct core *c, const struct gang *g, const struct set *members, enum job_state next,
                         const char *why)
{
        if (set_count(members) == 0)
                return;
        emit(c, g, EVENT_VACATING, members, next, why);
        each_agent(c, g->request, members, say_control, core_control_of_goal(next));
}

static void end_all(struct core *c, struct gang *g, enum job_state next, const char *why)
{
        struct set rest = {0};

        free_waiting(c, g, why);
        stop_members(c, g, &g->runs, next, why);
        stop_members(c, g, &g->stops, next, why);
        set_copy(&rest, &g->idle);
        set_add_all(&rest, &g->held);
        emit(c, g, EVENT_REMOVED, &rest, JOB_REMOVED, why);
        set_deinit(&rest);
}

/* Names a member that blocks the others: "7.3 of its gang is held". */
static void name_blocker(const struct gang *g, char *text, size_t n)
{
        const struct set *which = set_count(&g->held)    ? &g->held
                                  : set_count(&g->stops) ? &g->stops
                                                         : &g->idle;
        uint32_t m = (uint32_t)set_first(which);

        snprintf(text, n, "job %llu.%u of its gang %s", (unsigned long long)g->request->id, m,
                 which == &g->held    ? "is held"
                 : which == &g->stops ? "was stopped"
                                      : "runs no more");
}

static void settle_gang(struct core *c, struct gang *g)
{
        char why[96];

        if (g->first_ends && g->first_over) {
                end_all(c, g, JOB_COMPLETED, "the first job of its gang has ended");
        } else if (g->removed) {
                end_all(c, g, JOB_REMOVED, "a job of its gang was removed");
        } else if (set_count(&g->idle) || set_count(&g->held) || set_count(&g->stops)) {
                name_blocker(g, why, sizeof(why));
                free_waiting(c, g, why);
                stop_members(c, g, &g->runs, JOB_IDLE, why);
        } else if (set_count(&g->waits) && g->accepted) {
                emit(c, g, EVENT_GO, &g->waits, 0, "");
                each_agent(c, g->request, &g->waits, say_go, CORE_VACATE);
        }
}

static struct request *take_todo(struct core *c, uint32_t *ret_first)
{
        size_t at = 0;
        uint64_t key;
        void *value;

        if (!idmap_next(c->gangs->todo, &at, &key, &value))
                return NULL;
        idmap_take(c->gangs->todo, key);
        *ret_first = (uint32_t)key;
        return request_find(c, key >> 32);
}

void gang_settle(struct core *c)
{
        while (c->gangs->todo && idmap_count(c->gangs->todo)) {
                uint32_t first;
                struct request *r = take_todo(c, &first);
                struct gang g;

                if (!r || !r->parts || first >= r->count)
                        continue;
                gang_look(r, first, &g);
                settle_gang(c, &g);
                gang_look_deinit(&g);
        }
        idmap_free(c->gangs->todo);
        c->gangs->todo = NULL;
}

/* ---- gangs that wait for Go */

/* Returns whether the gang may still wait. */
static bool may_wait(struct core *c, uint64_t key, int64_t since, int64_t *ret_left)
{
        struct request *r = request_find(c, key >> 32);
        struct gang g;
        bool waits;

        if (!r || !r->parts)
                return false;
        gang_look(r, (uint32_t)key, &g);
        waits = set_count(&g.waits) > 0;
        if (waits && c->steady_ms - since >= c->config.gang_wait_ms) {
                free_waiting(c, &g, "not all jobs of its gang were accepted in time");
                waits = false;
        } else if (waits && since + c->config.gang_wait_ms - c->steady_ms < *ret_left) {
                *ret_left = since + c->config.gang_wait_ms - c->steady_ms;
        }
        gang_look_deinit(&g);
        return waits;
}

int64_t gang_tick(struct core *c)
{
        uint64_t *over = NULL, key;
        size_t n = 0, cap = 0;
        int64_t left = INT64_MAX;
        void *since;

        for (size_t at = 0; c->gangs->waiting && idmap_next(c->gangs->waiting, &at, &key, &since);)
                if (!may_wait(c, key, (int64_t)(uintptr_t)since, &left)) {
                        MEM_GROW(over, cap, n + 1);
                        over[n++] = key;
                }
        for (size_t i = 0; i < n; i++)
                idmap_take(c->gangs->waiting, over[i]);
        free(over);
        for (struct job_class *k = c->classes->apart; k; k = k->apart_next) {
                if (!k->gang_due_ms)
                        continue;
                if (c->steady_ms >= k->gang_due_ms) {
                        k->gang_due_ms = 0;
                        job_class_look_again(c, k);
                        left = 0;
                } else if (k->gang_due_ms - c->steady_ms < left) {
                        left = k->gang_due_ms - c->steady_ms;
                }
        }
        return left;
}

void gang_inventory(struct core *c, const char *agent, const struct core_attempts *has,
                    const struct set *mine)
{
        struct request *r = request_find(c, has->request);
        struct set go = {0};

        if (!r || !r->has_gangs || set_count(mine) == 0)
                return;
        SET_FOREACH (mine, m) {
                const struct job *j = request_job(r, (uint32_t)m);

                if (j && j->queue && j->gang_goes && j->state == JOB_STAGING)
                        set_add(&go, (uint32_t)m);
        }
        if (set_count(&go))
                say_go(c, agent, r->id, has->fence, &go, CORE_VACATE);
        set_deinit(&go);
}

void gang_agent_away(struct core *c, const struct core_agent *a)
{
        uint64_t *keys = NULL;
        size_t n = 0, cap = 0;

        for (const struct queue *q = a->queues; q; q = q->next)
                for (const struct job *j = q->attempts; j; j = j->next)
                        if (j->gang_size && !j->gang_goes && j->request->has_gangs) {
                                MEM_GROW(keys, cap, n + 1);
                                keys[n++] = key_of(j->request->id, j->gang_first);
                        }
        for (size_t i = 0; i < n; i++) {
                struct gang g;

                gang_look(request_find(c, keys[i] >> 32), (uint32_t)keys[i], &g);
                free_waiting(c, &g, "the agent of a job of its gang is away");
                gang_look_deinit(&g);
        }
        free(keys);
}

/* ---- looking */

static const char *gang_complaint(struct request *r, uint32_t first)
{
        static char sentence[128];
        struct gang g;
        bool broken, mixed;

        gang_look(r, first, &g);
        broken = set_count(&g.idle) || set_count(&g.held) || set_count(&g.stops);
        mixed = set_count(&g.runs) && set_count(&g.waits);
        snprintf(sentence, sizeof(sentence),
                 "half of the gang %llu.%u runs (%llu run, %llu wait, %llu are idle, %llu held)",
                 (unsigned long long)r->id, first, (unsigned long long)set_count(&g.runs),
                 (unsigned long long)set_count(&g.waits), (unsigned long long)set_count(&g.idle),
                 (unsigned long long)set_count(&g.held));
        broken = (broken && (set_count(&g.runs) || set_count(&g.waits))) || mixed;
        gang_look_deinit(&g);
        return broken ? sentence : NULL;
}

static bool is_todo(const struct core *c, const struct request *r, uint32_t first)
{
        return c->gangs->todo && idmap_get(c->gangs->todo, key_of(r->id, first));
}

const char *gang_invariant(struct core *c)
{
        for (struct request *r = c->requests->first; r; r = r->next)
                for (size_t i = 0; r->has_gangs && r->active && i < r->part_count; i++) {
                        const struct part *p = &r->parts[i];
                        uint32_t size = r->together ? p->count : gang_size(p);

                        for (uint32_t at = p->first; size && at < p->first + p->count; at += size) {
                                const char *bad = gang_complaint(r, r->together ? 0 : at);

                                if (bad && !is_todo(c, r, r->together ? 0 : at))
                                        return bad;
                        }
                }
        return NULL;
}

static bool group_of(struct core *c, const struct job_class *k, const struct queue *q, struct buf *name)
{
        struct value v;

        eval_attr(&c->eval, q->ad, NULL, k->job_template->gang.by, &v);
        if (v.type == VALUE_UNDEFINED || v.type == VALUE_ERROR)
                return false;
        if (v.type == VALUE_STRING)
                buf_str(name, v.string);
        else
                value_print(name, &v);
        return true;
}

bool gang_company(struct core *c, const struct job_class *k, const struct queue *q, struct buf *name)
{
        switch (k->job_template->gang.within) {
        case GANG_ANYWHERE: break;
        case GANG_NODE: buf_printf(name, "%s@%s", q->name, q->agent->name); break;
        case GANG_GROUP: return group_of(c, k, q, name);
        }
        return true;
}

/* Collects the gang's members that are to be matched, all idle and of this bucket. False: some are not. */
static bool members_of(const struct bucket *b, uint32_t first, uint32_t size, struct set *ret)
{
        const struct request *r = b->request;

        for (uint32_t m = first; m < first + size; m++)
                if (set_has(&b->idle, m))
                        set_add(ret, m);
                else if (!set_has(&request_cold(r)->completed, m) && !set_has(&request_cold(r)->removed, m))
                        return false;
        return set_count(ret) > 0;
}

bool gang_next(const struct bucket *b, uint64_t from, uint32_t *ret_first, uint32_t *ret_size,
               struct set *ret)
{
        uint64_t m = set_next(&b->idle, from);

        for (unsigned tries = 0; m != SET_END && tries < GANGS_TRIED; tries++) {
                if (!gang_of(b->request, (uint32_t)m, ret_first, ret_size))
                        return false;
                if (members_of(b, *ret_first, *ret_size, ret))
                        return true;
                set_deinit(ret);
                m = set_next(&b->idle, (uint64_t)*ret_first + *ret_size);
        }
        return false;
}

uint64_t gang_first_size(const struct job_class *k)
{
        struct set members = {0};
        uint32_t first, size;
        uint64_t n = 0;

        if (gang_next(job_class_first_bucket(k), 0, &first, &size, &members))
                n = set_count(&members);
        set_deinit(&members);
        return n;
}
