/* The core in a simulated world: a seed decides what users, agents, the network, the clock and the disk do.
 *
 *   sim_core [--seed N] [--seeds COUNT] [--steps N] [-v]
 *
 * The world is as the server is: what the core says in a turn is a batch; the batch becomes durable later,
 * and only then assignments and controls leave. A crash of the server loses batches that are not durable, and
 * every message under way; the core is made anew from the log. Agents accept, refuse, run, report, lose
 * connections, forget all they have, and fall silent until their leases end; they keep results until these
 * are acknowledged as durable.
 *
 * After every step:
 *   - the core's own invariants hold (core_check);
 *   - no job is alive (accepted, lease not ended) at two agents, nor twice at one;
 *   - no agent was given more than it has;
 *   - a result is taken only for the attempt that the log has as the job's newest;
 *   - every job has at most one row in history, and every request that was acknowledged is there.
 * At the end everything is let run out: each job of each request has exactly one row, and the state made from
 * the log is the state that is there, byte for byte, by the full core and by the shadow. A violation prints
 * the seed; the same seed plays the same game.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"
#include "core/core.h"

static bool verbose;
static uint64_t seed_now;
static unsigned step_now;

#define VIOLATION(...)                                                                                       \
        do {                                                                                                 \
                printf("seed %" PRIu64 " step %u: ", seed_now, step_now);                                    \
                printf(__VA_ARGS__);                                                                         \
                printf("\n");                                                                                \
                exit(1);                                                                                     \
        } while (0)
#define TRACE(...)                                                                                           \
        do {                                                                                                 \
                if (verbose) {                                                                               \
                        printf("%u t=%" PRId64 ": ", step_now, world.now);                                   \
                        printf(__VA_ARGS__);                                                                 \
                        printf("\n");                                                                        \
                }                                                                                            \
        } while (0)

/* ---- random numbers: xorshift64*, seeded */
static uint64_t random_state;
static uint64_t random_u64(void)
{
        random_state ^= random_state >> 12;
        random_state ^= random_state << 25;
        random_state ^= random_state >> 27;
        return random_state * 0x2545f4914f6cdd1du;
}
static unsigned below(unsigned n)
{
        return n ? (unsigned)(random_u64() >> 33) % n : 0;
}
static bool chance(unsigned percent)
{
        return below(100) < percent;
}

/* ---- what the world keeps */
enum action_kind { ASSIGN, CONTROL, ACK, STALE };
struct action {
        enum action_kind kind;
        char *agent, *queue;
        uint64_t request, lease_ms;
        uint32_t fence;
        struct set members;
        enum core_control control;
        unsigned session; /* of the agent, when it was said */
};
struct row {
        uint64_t request;
        uint32_t member;
};
struct batch { /* what one turn said */
        struct buf *records;
        size_t record_count, record_cap;
        struct row *rows;
        size_t row_count, row_cap;
        struct action *actions;
        size_t action_count, action_cap;
        uint64_t *acked; /* requests whose submit is answered when this is durable */
        size_t acked_count, acked_cap;
        struct {
                uint64_t id;
                struct buf record;
                bool forget;
        } * kept;
        size_t kept_count, kept_cap;
};
enum attempt_state { TAKEN, RUNNING, DONE };
struct attempt {
        uint64_t request;
        uint32_t member, fence;
        enum attempt_state state;
        bool told_started;
        int64_t ends, lease_ends, lease_ms;
        unsigned cpus, memory;
        enum core_outcome outcome;
        int exit_code;
        bool vacating;
};
#define AGENTS 6
struct sim_agent {
        char name[8];
        bool connected, silent;
        unsigned session;
        unsigned cpus, memory, busy_cpus, busy_memory;
        uint64_t serial;
        struct attempt *attempts;
        size_t count, cap;
        int64_t renewed;
        bool offer_wanted;
};
/* Messages to an agent that are under way. */
struct message {
        int64_t at;
        struct action action;
};

static struct world {
        int64_t now; /* one clock: ms */
        struct core *core;
        struct batch turn;
        struct batch *flying; /* not durable yet, in order */
        size_t flying_count, flying_cap;
        struct buf *log; /* durable records */
        size_t log_count, log_cap;
        struct idmap *history; /* request << 24 | member */
        struct idmap *fences;  /* the newest fence of each job in the durable log and the turns, same key */
        struct idmap *kept;    /* request -> struct buf * */
        struct idmap *acked;   /* request -> members + 1 */
        struct message *mail;
        size_t mail_count, mail_cap;
        struct sim_agent agents[AGENTS];
        bool draining;
        uint64_t results, refused_old, restarts, losses, commands;
} world;

static uint64_t key(uint64_t request, uint32_t member)
{
        return request << 24 | member;
}

/* ---- the core's world */
static void on_event(void *arg, const struct event *e)
{
        struct batch *b = &world.turn;

        (void)arg;
        MEM_GROW(b->records, b->record_cap, b->record_count + 1);
        b->records[b->record_count] = (struct buf){0};
        event_pack(&b->records[b->record_count++], e);
        if (e->type == EVENT_MATCHED) {
                SET_FOREACH (&e->members, m) {
                        uint64_t was =
                                (uint64_t)(uintptr_t)idmap_get(world.fences, key(e->request, (uint32_t)m));

                        if (e->fence <= was)
                                VIOLATION("%" PRIu64 ".%" PRIu64 " got fence %u after %" PRIu64, e->request,
                                          m, e->fence, was);
                        idmap_put(world.fences, key(e->request, (uint32_t)m), (void *)(uintptr_t)e->fence);
                }
        }
        if (e->type == EVENT_EXITED) {
                SET_FOREACH (&e->members, m) {
                        if ((uint64_t)(uintptr_t)idmap_get(world.fences, key(e->request, (uint32_t)m)) !=
                            e->fence)
                                VIOLATION("a result with the old fence %u was taken", e->fence);
                }
        }
}

static void on_history(void *arg, const struct core_finished *f)
{
        struct batch *b = &world.turn;

        (void)arg;
        MEM_GROW(b->rows, b->row_cap, b->row_count + 1);
        b->rows[b->row_count++] = (struct row){f->request, f->member};
}

static void on_keep(void *arg, uint64_t request, struct str record)
{
        struct batch *b = &world.turn;

        (void)arg;
        MEM_GROW(b->kept, b->kept_cap, b->kept_count + 1);
        memset(&b->kept[b->kept_count], 0, sizeof(*b->kept));
        b->kept[b->kept_count].id = request;
        buf_str(&b->kept[b->kept_count++].record, record);
}

static void on_forget(void *arg, uint64_t request)
{
        on_keep(arg, request, STR_NONE);
        world.turn.kept[world.turn.kept_count - 1].forget = true;
}

static int on_load(void *arg, uint64_t request, struct buf *ret, struct err *err)
{
        struct buf *b = idmap_get(world.kept, request);

        (void)arg;
        if (!b)
                return err_set(err, CORE_DAMAGED, "no record of request %" PRIu64, request);
        buf_str(ret, buf_view(b));
        return 0;
}

static struct sim_agent *agent_named(const char *name)
{
        for (unsigned i = 0; i < AGENTS; i++)
                if (strcmp(world.agents[i].name, name) == 0)
                        return &world.agents[i];
        abort();
}

static struct action *say(enum action_kind kind, const char *agent, uint64_t request, uint32_t fence,
                          const struct set *members)
{
        struct batch *b = &world.turn;
        struct action *a;

        MEM_GROW(b->actions, b->action_cap, b->action_count + 1);
        a = &b->actions[b->action_count++];
        *a = (struct action){.kind = kind,
                             .agent = mem_dupz(agent),
                             .request = request,
                             .fence = fence,
                             .session = agent_named(agent)->session};
        set_copy(&a->members, members);
        return a;
}

static void on_assign(void *arg, const struct core_assignment *as)
{
        struct action *a = say(ASSIGN, as->agent, as->request, as->fence, as->members);

        (void)arg;
        a->queue = mem_dupz(as->queue);
        a->lease_ms = as->lease_ms;
        TRACE("assign %" PRIu64 " x%" PRIu64 " fence %u to %s", as->request, set_count(as->members),
              as->fence, as->agent);
}

static void on_control(void *arg, const char *agent, enum core_control what, uint64_t request, uint32_t fence,
                       const struct set *members)
{
        (void)arg;
        say(CONTROL, agent, request, fence, members)->control = what;
}

static const struct core_world core_world = {
        .event = on_event,
        .history = on_history,
        .keep = on_keep,
        .forget = on_forget,
        .assign = on_assign,
        .control = on_control,
        .load = on_load,
};

/* ---- batches */
static void action_free(struct action *a)
{
        free(a->agent);
        free(a->queue);
        set_deinit(&a->members);
}

static void batch_free(struct batch *b)
{
        for (size_t i = 0; i < b->record_count; i++)
                buf_deinit(&b->records[i]);
        for (size_t i = 0; i < b->action_count; i++)
                action_free(&b->actions[i]);
        for (size_t i = 0; i < b->kept_count; i++)
                buf_deinit(&b->kept[i].record);
        free(b->records);
        free(b->rows);
        free(b->actions);
        free(b->acked);
        free(b->kept);
        *b = (struct batch){0};
}

static void end_turn(void)
{
        core_match(world.core);
        MEM_GROW(world.flying, world.flying_cap, world.flying_count + 1);
        world.flying[world.flying_count++] = world.turn;
        world.turn = (struct batch){0};
}

static void send(struct action *a)
{
        struct sim_agent *g = agent_named(a->agent);

        if (!g->connected || g->session != a->session) {
                action_free(a); /* the connection that it was meant for is gone */
                return;
        }
        MEM_GROW(world.mail, world.mail_cap, world.mail_count + 1);
        world.mail[world.mail_count++] = (struct message){world.now + below(20), *a};
}

static void keep(struct batch *b)
{
        for (size_t i = 0; i < b->kept_count; i++) {
                struct buf *old = idmap_take(world.kept, b->kept[i].id);

                if (old) {
                        buf_deinit(old);
                        free(old);
                }
                if (!b->kept[i].forget) {
                        struct buf *copy = mem_new(struct buf);
                        buf_str(copy, buf_view(&b->kept[i].record));
                        idmap_put(world.kept, b->kept[i].id, copy);
                }
        }
}

/* The oldest batch is durable now. */
static void commit_one(void)
{
        struct batch b = world.flying[0];

        memmove(world.flying, world.flying + 1, --world.flying_count * sizeof(b));
        for (size_t i = 0; i < b.record_count; i++) {
                MEM_GROW(world.log, world.log_cap, world.log_count + 1);
                world.log[world.log_count++] = b.records[i];
        }
        b.record_count = 0;
        keep(&b);
        for (size_t i = 0; i < b.row_count; i++)
                if (idmap_put(world.history, key(b.rows[i].request, b.rows[i].member), &world))
                        VIOLATION("%" PRIu64 ".%u ended twice", b.rows[i].request, b.rows[i].member);
        for (size_t i = 0; i < b.acked_count; i++) {
                struct core_request q = {.counts.jobs = 0};

                core_request_get(world.core, b.acked[i], &q);
                idmap_put(world.acked, b.acked[i], (void *)(uintptr_t)(q.counts.jobs + 1));
        }
        for (size_t i = 0; i < b.action_count; i++)
                send(&b.actions[i]);
        b.action_count = 0;
        batch_free(&b);
}

/* ---- the server dies and comes back */
static struct core *new_core(bool shadow)
{
        struct core_config config = {.lease_ms = 3000,
                                     .lease_margin_ms = 200,
                                     .periodic_ms = 500,
                                     .keep_finished_ms = 1000000000,
                                     .keep_finished = 1000000,
                                     .shadow = shadow};
        struct core *c = core_new(&config, &core_world);

        core_clock(c, world.now, world.now);
        return c;
}

static struct core *from_log(bool shadow)
{
        struct core *c = new_core(shadow);
        struct err err;
        size_t half = world.log_count ? below((unsigned)world.log_count) : 0;

        for (size_t i = 0; i < world.log_count; i++) {
                if (core_replay(c, buf_view(&world.log[i]), &err))
                        VIOLATION("replay of record %zu: %s", i, err.text);
                if (i == half && chance(50)) { /* through a snapshot */
                        struct buf snapshot = {0};
                        struct core *other = new_core(shadow);

                        core_snapshot(c, &snapshot);
                        if (core_restore(other, buf_view(&snapshot), &err))
                                VIOLATION("restore after record %zu: %s", i, err.text);
                        buf_deinit(&snapshot);
                        core_free(c);
                        c = other;
                }
        }
        return c;
}

static void drop_mail(void)
{
        for (size_t i = 0; i < world.mail_count; i++)
                action_free(&world.mail[i].action);
        world.mail_count = 0;
}

static void rebuild_fences(void)
{
        idmap_free(world.fences);
        world.fences = idmap_new();
        for (size_t i = 0; i < world.log_count; i++) {
                struct event e;

                if (event_unpack(&e, buf_view(&world.log[i]), NULL))
                        VIOLATION("record %zu does not unpack", i);
                if (e.type == EVENT_MATCHED) {
                        SET_FOREACH (&e.members, m) {
                                idmap_put(world.fences, key(e.request, (uint32_t)m),
                                          (void *)(uintptr_t)e.fence);
                        }
                }
                event_deinit(&e);
        }
}

static void crash_server(void)
{
        TRACE("the server dies with %zu batches not durable", world.flying_count);
        world.restarts++;
        for (size_t i = 0; i < world.flying_count; i++)
                batch_free(&world.flying[i]);
        world.flying_count = 0;
        batch_free(&world.turn);
        drop_mail();
        for (unsigned i = 0; i < AGENTS; i++)
                world.agents[i].connected = false;
        core_free(world.core);
        rebuild_fences();
        world.core = from_log(false);
        core_ready(world.core);
}

/* ---- agents */
static void forget_attempt(struct sim_agent *g, size_t i)
{
        if (g->attempts[i].state != DONE) {
                g->busy_cpus -= g->attempts[i].cpus;
                g->busy_memory -= g->attempts[i].memory;
        }
        g->attempts[i] = g->attempts[--g->count];
}

static void attempt_done(struct sim_agent *g, struct attempt *t, enum core_outcome outcome, int exit_code)
{
        t->state = DONE;
        t->outcome = outcome;
        t->exit_code = exit_code;
        g->busy_cpus -= t->cpus;
        g->busy_memory -= t->memory;
        g->offer_wanted = true;
}

static void offer(struct sim_agent *g)
{
        char ad[256];
        struct core_offer o = {.agent = g->name, .queue = "default", .serial = ++g->serial, .jobs_max = 100};

        snprintf(ad, sizeof(ad),
                 "[ Cpus = %u; Memory = %u; Disk = 1000000; TotalCpus = %u; TotalMemory = %u; Speed = %u; "
                 "Requirements = TARGET.RequestCpus <= %u ]",
                 g->cpus - g->busy_cpus, g->memory - g->busy_memory, g->cpus, g->memory, g->cpus % 3,
                 g->cpus);
        o.ad = str_of(ad);
        g->offer_wanted = false;
        if (core_offer(world.core, &o, NULL))
                VIOLATION("an offer was refused");
}

struct stale_list {
        struct sim_agent *agent;
};

static void on_stale(void *arg, uint64_t request, uint32_t fence, const struct set *members)
{
        say(STALE, ((struct stale_list *)arg)->agent->name, request, fence, members);
}

static void report(struct sim_agent *g, const struct attempt *t)
{
        struct core_result r = {.request = t->request,
                                .member = t->member,
                                .fence = t->fence,
                                .outcome = t->outcome,
                                .exit_code = t->exit_code,
                                .started_ms = t->ends - 10,
                                .ended_ms = t->ends,
                                .hold_code = t->outcome == CORE_NOT_STARTED ? 6 : 0,
                                .reason = STR("as the simulator wants it")};
        struct set one = {0};

        if (core_result(world.core, g->name, &r))
                world.results++;
        else
                world.refused_old++;
        set_add(&one, t->member);
        say(ACK, g->name, t->request, t->fence, &one);
        set_deinit(&one);
}

static void connect_agent(struct sim_agent *g)
{
        struct core_attempts *has = mem_zalloc((g->count + 1) * sizeof(*has));
        struct set *sets = mem_zalloc((g->count + 1) * sizeof(*sets));
        struct stale_list stale = {g};

        TRACE("%s connects with %zu attempts", g->name, g->count);
        g->connected = true;
        g->session++;
        g->renewed = world.now;
        core_agent_connected(world.core, g->name);
        for (size_t i = 0; i < g->count; i++) {
                set_add(&sets[i], g->attempts[i].member);
                has[i] = (struct core_attempts){g->attempts[i].request, g->attempts[i].fence, &sets[i]};
                g->attempts[i].lease_ends = world.now + g->attempts[i].lease_ms;
        }
        core_inventory(world.core, g->name, has, g->count, on_stale, &stale);
        for (size_t i = 0; i < g->count; i++) {
                set_deinit(&sets[i]);
                if (g->attempts[i].state == DONE)
                        report(g, &g->attempts[i]);
        }
        free(has);
        free(sets);
        offer(g);
}

static void disconnect_agent(struct sim_agent *g)
{
        TRACE("%s is disconnected", g->name);
        g->connected = false;
        core_agent_away(world.core, g->name);
}

static void take_assignment(struct sim_agent *g, const struct action *a)
{
        struct core_attempts at = {a->request, a->fence, &a->members};

        if (chance(3)) {
                core_refused(world.core, g->name, &at, STR("not today"), chance(20) ? 21 : 0);
                g->offer_wanted = true;
                return;
        }
        SET_FOREACH (&a->members, m) {
                struct attempt t = {.request = a->request,
                                    .member = (uint32_t)m,
                                    .fence = a->fence,
                                    .lease_ms = (int64_t)a->lease_ms,
                                    .lease_ends = g->renewed + (int64_t)a->lease_ms,
                                    .ends = world.now + 1 + below(chance(10) ? 5000 : 300),
                                    .exit_code = chance(15) ? 1 + (int)below(3) : 0};
                struct ad *ad = core_job_ad(world.core, a->request, (uint32_t)m);
                struct eval ev;
                int64_t cpus = 1, memory = 0;

                if (!ad)
                        VIOLATION("an assignment of a job that is not there");
                eval_init(&ev, 0, 0);
                eval_integer(&ev, ad, NULL, symbols_intern(core_symbols(world.core), STR("RequestCpus")),
                             &cpus);
                eval_integer(&ev, ad, NULL, symbols_intern(core_symbols(world.core), STR("RequestMemory")),
                             &memory);
                eval_deinit(&ev);
                ad_free(ad);
                t.cpus = (unsigned)cpus;
                t.memory = (unsigned)memory;
                g->busy_cpus += t.cpus;
                g->busy_memory += t.memory;
                if (g->busy_cpus > g->cpus || g->busy_memory > g->memory)
                        VIOLATION("%s was given more than it has: %u of %u cpus, %u of %u MiB", g->name,
                                  g->busy_cpus, g->cpus, g->busy_memory, g->memory);
                MEM_GROW(g->attempts, g->cap, g->count + 1);
                g->attempts[g->count++] = t;
        }
        core_accepted(world.core, g->name, &at);
}

static void deliver(struct action *a)
{
        struct sim_agent *g = agent_named(a->agent);

        if (!g->connected || g->session != a->session)
                return;
        if (a->kind == ASSIGN) {
                take_assignment(g, a);
                return;
        }
        for (size_t i = 0; i < g->count;) {
                struct attempt *t = &g->attempts[i];

                if (t->request != a->request || t->fence != a->fence || !set_has(&a->members, t->member)) {
                        i++;
                } else if (a->kind == ACK || a->kind == STALE) {
                        forget_attempt(g, i);
                        g->offer_wanted = true;
                } else {
                        if (t->state != DONE && a->control <= CORE_VACATE) {
                                t->vacating = true;
                                t->ends = world.now + below(50);
                        }
                        i++;
                }
        }
}

static void agent_step(struct sim_agent *g)
{
        for (size_t i = 0; i < g->count; i++) {
                struct attempt *t = &g->attempts[i];
                struct set one = {0};
                struct core_attempts at = {t->request, t->fence, &one};

                if (t->state == DONE)
                        continue;
                set_add(&one, t->member);
                if (t->state == TAKEN) {
                        t->state = RUNNING;
                        if (g->connected && chance(70))
                                core_started(world.core, g->name, &at, world.now);
                }
                set_deinit(&one);
                if (t->ends <= world.now) {
                        attempt_done(g, t,
                                     t->vacating ? CORE_KILLED
                                     : chance(2) ? CORE_NOT_STARTED
                                     : chance(2) ? CORE_OUTCOME_LOST
                                                 : CORE_EXITED,
                                     t->exit_code);
                        if (g->connected)
                                report(g, t);
                }
        }
        if (g->connected && world.now - g->renewed > 500) {
                g->renewed = world.now;
                core_renew(world.core, g->name);
                for (size_t i = 0; i < g->count; i++)
                        g->attempts[i].lease_ends = world.now + g->attempts[i].lease_ms;
        }
        /* An agent that cannot renew kills first; results of before the end it still has. */
        for (size_t i = 0; i < g->count;)
                if (g->attempts[i].state != DONE && g->attempts[i].lease_ends <= world.now)
                        forget_attempt(g, i);
                else
                        i++;
        if (g->connected && g->offer_wanted)
                offer(g);
}

/* ---- users */
static void add(struct submission_part *p, const char *name, const char *text)
{
        submission_add_attribute(p, str_of(name), str_of(text), strstr(text, "$(") != NULL);
}

static void submit(void)
{
        static const char *const requirements[] = {"TARGET.Cpus >= RequestCpus", "true", "TARGET.Speed > 0",
                                                   "TARGET.Memory > 100 && TARGET.Speed != 9"};
        struct submission s = {.owner = chance(50) ? STR("ann@local") : STR("bob@local"), .at_ms = world.now};
        struct buf items = {0};
        struct err err;
        uint64_t id;
        bool existing;
        unsigned parts = 1 + (chance(20) ? below(3) : 0);
        char memory[32], priority[32];

        for (int i = 0; i < 16; i++)
                s.uuid[i] = (unsigned char)random_u64();
        snprintf(memory, sizeof(memory), "%u", below(200));
        snprintf(priority, sizeof(priority), "%u", below(3));
        for (unsigned i = 0; i < 20; i++)
                buf_printf(&items, "%u\n", below(4) * 50);
        for (unsigned i = 0; i < parts; i++) {
                struct submission_part *p = submission_add_part(&s);

                add(p, "Cmd", "\"/bin/true\"");
                add(p, "Arguments", "\"$(Process)\"");
                add(p, "Requirements", requirements[below(4)]);
                add(p, "RequestCpus", chance(80) ? "1" : "2");
                add(p, "JobPrio", priority);
                if (chance(20))
                        add(p, "Rank", "TARGET.Speed");
                if (chance(30))
                        add(p, "OnExitRemove", "ExitCode == 0 || NumJobCompletions > 2");
                if (chance(10))
                        add(p, "OnExitHold", "ExitCode == 2");
                if (chance(10))
                        add(p, "PeriodicRelease", "NumJobStarts < 5");
                if (chance(5))
                        add(p, "PeriodicHold", "NumJobStarts > 3 && JobStatus == 1");
                if (chance(20)) {
                        submission_add_variable(p, STR("mem"));
                        p->items = buf_view(&items);
                        p->rows = 20;
                        add(p, "RequestMemory", "$(mem)");
                } else {
                        add(p, "RequestMemory", memory);
                        p->steps = 1 + below(chance(10) ? 2000 : 30);
                }
        }
        if (core_submit(world.core, &s, false, &id, &existing, &err))
                VIOLATION("a submit was refused: %s", err.text);
        MEM_GROW(world.turn.acked, world.turn.acked_cap, world.turn.acked_count + 1);
        world.turn.acked[world.turn.acked_count++] = id;
        submission_deinit(&s);
        buf_deinit(&items);
}

static void act(void)
{
        static const enum core_action actions[] = {CORE_ACT_HOLD,   CORE_ACT_RELEASE,  CORE_ACT_REMOVE,
                                                   CORE_ACT_VACATE, CORE_ACT_PRIORITY, CORE_ACT_RELEASE};
        uint64_t last = core_request_last(world.core), n;
        struct core_command cmd = {.action = actions[below(6)],
                                   .request = last ? 1 + below((unsigned)last) : 1,
                                   .reason = STR("because"),
                                   .value = below(5)};
        struct set some = {0};
        struct core_request r;

        world.commands++;
        if (cmd.action == CORE_ACT_REMOVE && chance(60))
                cmd.action = CORE_ACT_HOLD;
        if (core_request_get(world.core, cmd.request, &r) == 0 && chance(70)) {
                uint32_t from = below((unsigned)r.counts.jobs),
                         to = from + 1 + below((unsigned)(r.counts.jobs - from));
                set_add_range(&some, from, to);
                cmd.members = &some;
        }
        core_act(world.core, &cmd, &n, NULL);
        set_deinit(&some);
}

/* ---- the game */
static void check_agents(void)
{
        struct idmap *alive = idmap_new();

        for (unsigned i = 0; i < AGENTS; i++)
                for (size_t k = 0; k < world.agents[i].count; k++) {
                        const struct attempt *t = &world.agents[i].attempts[k];

                        if (t->state != DONE && idmap_put(alive, key(t->request, t->member), &world))
                                VIOLATION("%" PRIu64 ".%u is alive twice", t->request, t->member);
                }
        idmap_free(alive);
}

static void check_all(void)
{
        const char *bad = core_check(world.core);
        size_t at = 0;
        uint64_t id;
        void *members;

        if (bad)
                VIOLATION("%s", bad);
        check_agents();
        while (idmap_next(world.acked, &at, &id, &members)) {
                struct core_request r;

                if (core_request_get(world.core, id, &r) || r.counts.jobs + 1 != (uint64_t)(uintptr_t)members)
                        VIOLATION("request %" PRIu64 " was acknowledged and is not there", id);
        }
}

static void step(void)
{
        unsigned what = below(100);

        world.now += below(30);
        core_clock(world.core, world.now, world.now);
        if (!world.draining) {
                if (what < 4)
                        submit();
                else if (what < 10)
                        act();
                else if (what == 10 && chance(30)) {
                        crash_server();
                        return;
                }
        }
        for (size_t i = 0; i < world.mail_count;)
                if (world.mail[i].at <= world.now) {
                        struct action a = world.mail[i].action;

                        memmove(world.mail + i, world.mail + i + 1,
                                (--world.mail_count - i) * sizeof(*world.mail));
                        deliver(&a);
                        action_free(&a);
                } else {
                        i++;
                }
        for (unsigned i = 0; i < AGENTS; i++) {
                struct sim_agent *g = &world.agents[i];

                if (g->connected && !world.draining && chance(1))
                        disconnect_agent(g);
                else if (!g->connected && !g->silent && chance(world.draining ? 50 : 10))
                        connect_agent(g);
                if (!world.draining && below(1000) < 3) { /* its machine dies */
                        world.losses++;
                        while (g->count)
                                forget_attempt(g, 0);
                        if (g->connected)
                                disconnect_agent(g);
                }
                if (below(1000) < 5)
                        g->silent = !g->silent && !world.draining;
                if (world.draining)
                        g->silent = false;
                agent_step(g);
        }
        core_tick(world.core);
        if (world.draining) {
                for (uint64_t id = core_request_next(world.core, 0); id;
                     id = core_request_next(world.core, id)) {
                        struct core_command cmd = {
                                .action = CORE_ACT_RELEASE, .request = id, .reason = STR("end")};
                        uint64_t n;
                        core_act(world.core, &cmd, &n, NULL);
                }
        }
        end_turn();
        while (world.flying_count && (world.flying_count > 5 || chance(60)))
                commit_one();
}

static bool all_ended(void)
{
        struct core_counts n;

        core_totals(world.core, &n);
        return n.jobs == n.completed + n.removed;
}

static void compare(struct core *live, bool shadow)
{
        struct core *other = from_log(shadow);
        struct buf a = {0}, b = {0};

        core_snapshot(live, &a);
        core_snapshot(other, &b);
        if (!str_eq(buf_view(&a), buf_view(&b)))
                VIOLATION("the log gives another state than what is there (%zu and %zu bytes%s)", a.n, b.n,
                          shadow ? ", shadow" : "");
        buf_deinit(&a);
        buf_deinit(&b);
        core_free(other);
}

static void check_history(void)
{
        for (uint64_t id = core_request_next(world.core, 0); id; id = core_request_next(world.core, id)) {
                struct core_request r;

                core_request_get(world.core, id, &r);
                for (uint32_t m = 0; m < r.counts.jobs; m++)
                        if (!idmap_get(world.history, key(id, m)))
                                VIOLATION("%" PRIu64 ".%u ended without a row in history", id, m);
        }
}

static void play(uint64_t seed, unsigned steps)
{
        memset(&world, 0, sizeof(world));
        seed_now = seed;
        random_state = seed * 0x9e3779b97f4a7c15u + 1;
        world.now = 1000000;
        world.history = idmap_new();
        world.fences = idmap_new();
        world.kept = idmap_new();
        world.acked = idmap_new();
        world.core = new_core(false);
        for (unsigned i = 0; i < AGENTS; i++) {
                struct sim_agent *g = &world.agents[i];
                snprintf(g->name, sizeof(g->name), "n%u", i);
                g->cpus = 2 + below(16);
                g->memory = 200 + below(2000);
        }
        for (step_now = 0; step_now < steps; step_now++) {
                step();
                check_all();
        }
        world.draining = true;
        for (; !all_ended() || world.flying_count; step_now++) {
                step();
                if (step_now % 50 == 0)
                        check_all();
                if (step_now > steps + 400000)
                        VIOLATION("jobs that never end");
        }
        for (int i = 0; i < 50; i++) {
                core_tick(world.core);
                end_turn();
        }
        while (world.flying_count)
                commit_one();
        check_all();
        check_history();
        compare(world.core, false);
        compare(world.core, true);
        printf("seed %" PRIu64 ": %" PRIu64 " requests, %zu jobs ended, %" PRIu64 " results taken, %" PRIu64
               " refused as old, %" PRIu64 " server restarts, %" PRIu64 " agents lost, %zu records\n",
               seed, core_request_last(world.core), idmap_count(world.history), world.results,
               world.refused_old, world.restarts, world.losses, world.log_count);
}

static void clean(void)
{
        void *value;

        core_free(world.core);
        drop_mail();
        free(world.mail);
        free(world.flying);
        batch_free(&world.turn);
        for (size_t i = 0; i < world.log_count; i++)
                buf_deinit(&world.log[i]);
        free(world.log);
        for (size_t at = 0; idmap_next(world.kept, &at, NULL, &value);) {
                buf_deinit(value);
                free(value);
        }
        idmap_free(world.kept);
        idmap_free(world.history);
        idmap_free(world.fences);
        idmap_free(world.acked);
        for (unsigned i = 0; i < AGENTS; i++)
                free(world.agents[i].attempts);
}

int main(int argc, char **argv)
{
        uint64_t seed = 1, count = 1;
        unsigned steps = 2000;

        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "-v") == 0)
                        verbose = true;
                else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
                        seed = strtoull(argv[++i], NULL, 10);
                else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0)
                        count = strtoull(argv[++i], NULL, 10);
                else if (i + 1 < argc && strcmp(argv[i], "--steps") == 0)
                        steps = (unsigned)strtoul(argv[++i], NULL, 10);
                else {
                        fprintf(stderr, "usage: sim_core [--seed N] [--seeds COUNT] [--steps N] [-v]\n");
                        return 2;
                }
        }
        for (uint64_t i = 0; i < count; i++) {
                play(seed + i, steps);
                clean();
        }
        printf("%" PRIu64 " seeds passed\n", count);
        return 0;
}
