#include "sim/world.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/map.h"
#include "core/query.h"
#include "store/store.h"

struct turn {
        struct store_batch *batch;
        struct sim_action *actions;
        size_t action_count, action_cap;
        uint64_t *answered; /* requests whose submit is answered when this is durable */
        size_t answered_count, answered_cap;
        uint64_t *ended; /* strict: keys of jobs that got their row */
        size_t ended_count, ended_cap;
};

struct sim_world {
        struct sim_world_config config;
        const struct sim_world_ops *ops;
        void *arg;
        int64_t now;
        struct core *core;
        struct store *store;
        uint64_t term;
        struct turn turn;
        uint64_t turns;
        struct turn *flying; /* not durable yet, in order */
        size_t flying_count, flying_cap;
        uint64_t rows;
        struct idmap *ended;    /* strict: jobs with a durable row */
        struct idmap *gangs;    /* strict: see check_gang */
        struct idmap *fences;   /* strict: the newest fence of each job, in the log and the turns */
        struct idmap *charged;  /* strict: the newest fence of each job that was charged, as in `fences` */
        struct idmap *answered; /* strict: request -> members + 1 */
        pthread_mutex_t lock;   /* protects the members below, which the store's thread writes */
        pthread_cond_t changed;
        uint64_t appended, durable;
        int failed;
        bool violated;
        struct err violation;
};

static uint64_t key(uint64_t request, uint64_t member)
{
        return request << 24 | member;
}

void sim_action_deinit(struct sim_action *a)
{
        free(a->agent);
        free(a->queue);
        set_deinit(&a->members);
}

void sim_world_violation(struct sim_world *w, const char *fmt, ...)
{
        va_list ap;

        if (w->violated)
                return;
        w->violated = true;
        va_start(ap, fmt);
        err_vset(&w->violation, 1, fmt, ap);
        va_end(ap);
}

const char *sim_world_violated(const struct sim_world *w)
{
        return w->violated ? w->violation.text : NULL;
}

/* ---- output of the core */
/* Checks that members matched as a gang get their go only when all of them were accepted. Kept for each
 * member: the fence, and 1 << 32 while it is not accepted. */
static void check_gang(struct sim_world *w, const struct event *e)
{
        const uintptr_t unheard = (uintptr_t)1 << 32;

        SET_FOREACH (&e->members, m) {
                uint64_t k = key(e->request, m);
                uintptr_t is = (uintptr_t)idmap_get(w->gangs, k);

                if (e->type == EVENT_GANG)
                        idmap_put(w->gangs, k, (void *)(e->fence | unheard));
                else if (e->type == EVENT_ACCEPTED && is == (e->fence | unheard))
                        idmap_put(w->gangs, k, (void *)(uintptr_t)e->fence);
                else if (e->type == EVENT_GO && is != e->fence)
                        sim_world_violation(w, "%" PRIu64 ".%" PRIu64 " may go, and was not accepted",
                                            e->request, m);
        }
}

/* Checks that an attempt is charged at most once. */
static void check_charge(struct sim_world *w, const struct event *e)
{
        struct bank_order o;

        if (bank_order_unpack(&o, e->values, NULL) != 0) {
                sim_world_violation(w, "an order to the bank does not unpack");
                return;
        }
        if (o.op == BANK_CHARGE && o.request)
                SET_FOREACH (&o.members, m) {
                        uint64_t k = key(o.request, m), was = (uint64_t)(uintptr_t)idmap_get(w->charged, k);

                        if (o.fence <= was)
                                sim_world_violation(w,
                                                    "attempt %u of %" PRIu64 ".%" PRIu64
                                                    " is charged after attempt %" PRIu64,
                                                    o.fence, o.request, m, was);
                        idmap_put(w->charged, k, (void *)(uintptr_t)o.fence);
                }
        bank_order_deinit(&o);
}

static void check_event(struct sim_world *w, const struct event *e)
{
        if (e->type == EVENT_BANK)
                check_charge(w, e);
        if (e->type == EVENT_GANG || e->type == EVENT_ACCEPTED || e->type == EVENT_GO)
                check_gang(w, e);
        if (e->type != EVENT_MATCHED && e->type != EVENT_EXITED)
                return;
        SET_FOREACH (&e->members, m) {
                uint64_t was = (uint64_t)(uintptr_t)idmap_get(w->fences, key(e->request, m));

                if (e->type == EVENT_EXITED && was != e->fence)
                        sim_world_violation(
                                w, "a result of %" PRIu64 ".%" PRIu64 " with the old fence %u was taken",
                                e->request, m, e->fence);
                if (e->type == EVENT_MATCHED && e->fence <= was)
                        sim_world_violation(w, "%" PRIu64 ".%" PRIu64 " got fence %u after %" PRIu64,
                                            e->request, m, e->fence, was);
                if (e->type == EVENT_MATCHED)
                        idmap_put(w->fences, key(e->request, m), (void *)(uintptr_t)e->fence);
        }
}

static void on_event(void *arg, const struct event *e)
{
        struct sim_world *w = arg;
        struct buf record BUF_CLEANUP = {0};

        event_pack(&record, e);
        store_batch_event(w->turn.batch, buf_view(&record));
        if (w->config.strict)
                check_event(w, e);
}

static void on_history(void *arg, const struct past_job *f)
{
        struct sim_world *w = arg;
        struct turn *t = &w->turn;

        store_batch_history(t->batch, f);
        MEM_GROW(t->ended, t->ended_cap, t->ended_count + 1);
        t->ended[t->ended_count++] = key(f->request, f->member);
}

static struct str record_name(char room[32], uint64_t request)
{
        return str_make(room, (size_t)snprintf(room, 32, "request/%" PRIu64, request));
}

static void on_keep(void *arg, uint64_t request, struct str record)
{
        struct sim_world *w = arg;
        char room[32];

        store_batch_blob_put(w->turn.batch, record_name(room, request), record);
}

static void on_forget(void *arg, uint64_t request)
{
        struct sim_world *w = arg;
        char room[32];

        store_batch_blob_delete(w->turn.batch, record_name(room, request));
}

static void wait_durable(struct sim_world *w, uint64_t behind)
{
        pthread_mutex_lock(&w->lock);
        while (w->durable + behind < w->appended)
                pthread_cond_wait(&w->changed, &w->lock);
        if (w->failed)
                sim_world_violation(w, "the store refused a batch: %d", w->failed);
        pthread_mutex_unlock(&w->lock);
}

static int on_load(void *arg, uint64_t request, struct buf *ret, struct err *err)
{
        struct sim_world *w = arg;
        char room[32];

        wait_durable(w, 0);
        return store_blob_get(w->store, record_name(room, request), ret, err);
}

static struct sim_action *action_add(struct sim_world *w, enum sim_action_kind kind, const char *agent,
                                     uint64_t request, uint32_t fence, const struct set *members)
{
        struct turn *t = &w->turn;
        struct sim_action *a;

        MEM_GROW(t->actions, t->action_cap, t->action_count + 1);
        a = &t->actions[t->action_count++];
        *a = (struct sim_action){.kind = kind,
                                 .agent = mem_dupz(agent),
                                 .request = request,
                                 .fence = fence,
                                 .session = w->ops->session(w->arg, agent),
                                 .turn = w->turns};
        set_copy(&a->members, members);
        return a;
}

void sim_world_say(struct sim_world *w, enum sim_action_kind kind, const char *agent, uint64_t request,
                   uint32_t fence, const struct set *members)
{
        action_add(w, kind, agent, request, fence, members);
}

static void on_assign(void *arg, const struct core_assignment *as)
{
        struct sim_action *a = action_add(arg, SIM_ASSIGN, as->agent, as->request, as->fence, as->members);

        a->queue = mem_dupz(as->queue);
        a->lease_ms = as->lease_ms;
        a->gang_first = as->gang_first;
        a->gang_size = as->gang_size;
}

static void on_go(void *arg, const char *agent, uint64_t request, uint32_t fence, const struct set *members)
{
        action_add(arg, SIM_GO, agent, request, fence, members);
}

static void on_control(void *arg, const char *agent, enum core_control what, uint64_t request, uint32_t fence,
                       const struct set *members)
{
        action_add(arg, SIM_CONTROL, agent, request, fence, members)->control = what;
}

static struct core *new_core(struct sim_world *w, bool shadow)
{
        struct core_world world = {.arg = w,
                                   .event = on_event,
                                   .history = on_history,
                                   .keep = on_keep,
                                   .forget = on_forget,
                                   .assign = on_assign,
                                   .control = on_control,
                                   .load = on_load,
                                   .go = on_go};
        struct core_config config = w->config.core;
        struct core *c;

        config.shadow = shadow;
        c = core_new(&config, &world);
        if (w->ops->settings)
                w->ops->settings(w->arg, c);
        core_clock(c, w->now, w->now);
        return c;
}

/* ---- turns */
static void turn_begin(struct turn *t)
{
        *t = (struct turn){.batch = store_batch_new()};
}

static void turn_drop(struct turn *t)
{
        store_batch_free(t->batch);
        for (size_t i = 0; i < t->action_count; i++)
                sim_action_deinit(&t->actions[i]);
        free(t->actions);
        free(t->answered);
        free(t->ended);
        *t = (struct turn){0};
}

void sim_world_answer(struct sim_world *w, uint64_t request)
{
        MEM_GROW(w->turn.answered, w->turn.answered_cap, w->turn.answered_count + 1);
        w->turn.answered[w->turn.answered_count++] = request;
}

void sim_world_turn(struct sim_world *w)
{
        core_match(w->core);
        MEM_GROW(w->flying, w->flying_cap, w->flying_count + 1);
        w->flying[w->flying_count++] = w->turn;
        turn_begin(&w->turn);
        w->turns++;
}

uint64_t sim_world_turns(const struct sim_world *w)
{
        return w->turns;
}

size_t sim_world_flying(const struct sim_world *w)
{
        return w->flying_count;
}

static void on_durable(void *arg, int result, uint64_t last_seq, struct store_batch *batch,
                       const struct err *err)
{
        struct sim_world *w = arg;

        (void)last_seq;
        (void)batch;
        (void)err;
        pthread_mutex_lock(&w->lock);
        w->durable++;
        if (result != STORE_DURABLE)
                w->failed = result;
        pthread_cond_signal(&w->changed);
        pthread_mutex_unlock(&w->lock);
}

static void note_durable(struct sim_world *w, const struct turn *t)
{
        for (size_t i = 0; i < t->ended_count; i++)
                if (idmap_put(w->ended, t->ended[i], w))
                        sim_world_violation(w, "%" PRIu64 ".%" PRIu64 " ended twice", t->ended[i] >> 24,
                                            t->ended[i] & 0xffffff);
        for (size_t i = 0; i < t->answered_count; i++) {
                struct core_request q = {.counts.jobs = 0};

                core_request_get(w->core, t->answered[i], &q);
                idmap_put(w->answered, t->answered[i], (void *)(uintptr_t)(q.counts.jobs + 1));
        }
}

/* The store's thread may be so far behind: what it was given comes back in order, and whoever reads it waits
 * (wait_durable). More would only fill memory with batches. */
#define BEHIND_MAX 10000u

void sim_world_commit(struct sim_world *w)
{
        struct turn t = w->flying[0];

        memmove(w->flying, w->flying + 1, --w->flying_count * sizeof(t));
        if (!store_batch_empty(t.batch)) {
                w->appended++;
                store_append(w->store, w->term, t.batch, on_durable, w);
                t.batch = NULL;
                wait_durable(w, BEHIND_MAX);
        }
        w->rows += t.ended_count;
        if (w->config.strict)
                note_durable(w, &t);
        for (size_t i = 0; i < t.action_count; i++)
                w->ops->leave(w->arg, &t.actions[i]);
        t.action_count = 0;
        turn_drop(&t);
}

/* ---- the server dies and comes back */
struct replay {
        struct sim_world *w;
        struct core *core;
        uint64_t snapshot_after;
        bool shadow;
};

static int replay_record(void *arg, uint64_t seq, struct str record, struct err *err)
{
        struct replay *x = arg;
        struct buf snapshot BUF_CLEANUP = {0};
        struct core *other;

        if (core_replay(x->core, record, err)) {
                sim_world_violation(x->w, "replay of record %" PRIu64 ": %s", seq, err->text);
                return 1;
        }
        if (seq != x->snapshot_after)
                return 0;
        other = new_core(x->w, x->shadow);
        core_snapshot(x->core, &snapshot);
        core_free(x->core);
        x->core = other;
        if (core_restore(other, buf_view(&snapshot), err)) {
                sim_world_violation(x->w, "restore after record %" PRIu64 ": %s", seq, err->text);
                return 1;
        }
        return 0;
}

static struct core *from_store(struct sim_world *w, bool shadow, uint64_t snapshot_after)
{
        struct replay x = {w, new_core(w, shadow), snapshot_after, shadow};
        struct err err;

        wait_durable(w, 0);
        if (store_scan(w->store, 1, replay_record, &x, &err))
                sim_world_violation(w, "the log cannot be read");
        return x.core;
}

static int note_fence(void *arg, uint64_t seq, struct str record, struct err *err)
{
        struct sim_world *w = arg;
        struct event e;

        if (event_unpack(&e, record, err)) {
                sim_world_violation(w, "record %" PRIu64 " does not unpack", seq);
                return 1;
        }
        if (e.type == EVENT_MATCHED) {
                SET_FOREACH (&e.members, m) {
                        idmap_put(w->fences, key(e.request, m), (void *)(uintptr_t)e.fence);
                }
        }
        if (e.type == EVENT_GANG || e.type == EVENT_ACCEPTED)
                check_gang(w, &e);
        if (e.type == EVENT_BANK)
                check_charge(w, &e);
        event_deinit(&e);
        return 0;
}

void sim_world_crash(struct sim_world *w, uint64_t snapshot_after)
{
        for (size_t i = 0; i < w->flying_count; i++)
                turn_drop(&w->flying[i]);
        w->flying_count = 0;
        turn_drop(&w->turn);
        turn_begin(&w->turn);
        core_free(w->core);
        wait_durable(w, 0);
        idmap_free(w->fences); /* assignments of the lost turns never left */
        w->fences = idmap_new();
        idmap_free(w->charged);
        w->charged = idmap_new();
        idmap_free(w->gangs);
        w->gangs = idmap_new();
        if (w->config.strict)
                store_scan(w->store, 1, note_fence, w, NULL);
        w->core = from_store(w, false, snapshot_after);
        core_ready(w->core);
}

void sim_world_compare(struct sim_world *w, bool shadow, uint64_t snapshot_after)
{
        struct core *other = from_store(w, shadow, snapshot_after);
        struct buf a BUF_CLEANUP = {0}, b BUF_CLEANUP = {0};

        core_snapshot(w->core, &a);
        core_snapshot(other, &b);
        if (!str_eq(buf_view(&a), buf_view(&b)))
                sim_world_violation(w, "the log gives another state than what is there (%zu and %zu bytes%s)",
                                    a.n, b.n, shadow ? ", shadow" : "");
        core_free(other);
}

/* ---- looking */
struct core *sim_world_core(struct sim_world *w)
{
        return w->core;
}

int64_t sim_world_now(const struct sim_world *w)
{
        return w->now;
}

void sim_world_go(struct sim_world *w, int64_t now_ms)
{
        if (now_ms > w->now)
                w->now = now_ms;
        core_clock(w->core, w->now, w->now);
}

uint64_t sim_world_records(struct sim_world *w)
{
        wait_durable(w, 0);
        return store_last_seq(w->store);
}

uint64_t sim_world_ended(const struct sim_world *w)
{
        return w->rows;
}

bool sim_world_has_ended(const struct sim_world *w, uint64_t request, uint32_t member)
{
        return idmap_get(w->ended, key(request, member)) != NULL;
}

void sim_world_check(struct sim_world *w)
{
        const char *bad = core_check(w->core);
        void *members;
        uint64_t id;

        if (bad)
                sim_world_violation(w, "%s", bad);
        for (size_t at = 0; idmap_next(w->answered, &at, &id, &members);) {
                struct core_request r;

                if (core_request_get(w->core, id, &r) || r.counts.jobs + 1 != (uint64_t)(uintptr_t)members)
                        sim_world_violation(w, "request %" PRIu64 " was acknowledged and is not there", id);
        }
}

/* ---- life */
int sim_world_new(const struct sim_world_config *config, const struct sim_world_ops *ops, void *arg,
                  struct sim_world **ret, struct err *err)
{
        struct sim_world *w = mem_new(struct sim_world);
        int r = store_open("memory:", &w->store, NULL, err);

        if (r == 0)
                r = store_term_take(w->store, &w->term, err);
        if (r) {
                store_close(w->store);
                free(w);
                return r < 0 ? r : -EIO;
        }
        w->config = *config;
        w->ops = ops;
        w->arg = arg;
        w->now = config->start_ms;
        w->ended = idmap_new();
        w->fences = idmap_new();
        w->charged = idmap_new();
        w->gangs = idmap_new();
        w->answered = idmap_new();
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->changed, NULL);
        turn_begin(&w->turn);
        w->core = new_core(w, false);
        *ret = w;
        return 0;
}

void sim_world_free(struct sim_world *w)
{
        if (!w)
                return;
        core_free(w->core);
        store_close(w->store);
        for (size_t i = 0; i < w->flying_count; i++)
                turn_drop(&w->flying[i]);
        free(w->flying);
        turn_drop(&w->turn);
        idmap_free(w->ended);
        idmap_free(w->fences);
        idmap_free(w->charged);
        idmap_free(w->gangs);
        idmap_free(w->answered);
        pthread_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->changed);
        free(w);
}
