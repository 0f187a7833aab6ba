#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "core/query.h"
#include "sim/game_state.h"

struct game_agent *game_agent_named(struct game *g, const char *name)
{
        for (unsigned i = 0; i < GAME_AGENTS; i++)
                if (strcmp(g->agents[i].name, name) == 0)
                        return &g->agents[i];
        abort();
}

void game_agents_make(struct game *g)
{
        for (unsigned i = 0; i < GAME_AGENTS; i++) {
                struct game_agent *a = &g->agents[i];

                snprintf(a->name, sizeof(a->name), "n%u", i);
                a->queue_count = 1 + game_below(g, GAME_QUEUES);
                a->black_hole = game_chance(g, 8);
                for (unsigned k = 0; k < a->queue_count; k++) {
                        a->queues[k].cpus = 2 + game_below(g, 16);
                        a->queues[k].memory = 200 + game_below(g, 2000);
                }
        }
}

void game_agents_free(struct game *g)
{
        for (unsigned i = 0; i < GAME_AGENTS; i++)
                free(g->agents[i].attempts);
        for (size_t i = 0; i < g->mail_count; i++)
                sim_action_deinit(&g->mail[i].action);
        free(g->mail);
}

/* ---- attempts */
static const char *const queue_names[GAME_QUEUES] = {"default", "again"};

static void attempt_free_room(struct game_agent *a, const struct attempt *t)
{
        a->queues[t->queue].busy_cpus -= t->cpus;
        a->queues[t->queue].busy_memory -= t->memory;
        a->queues[t->queue].offer_wanted = true;
}

static void attempt_forget(struct game_agent *a, size_t i)
{
        if (a->attempts[i].state != ATTEMPT_DONE)
                attempt_free_room(a, &a->attempts[i]);
        a->attempts[i] = a->attempts[--a->count];
}

static void attempt_done(struct game_agent *a, struct attempt *t, enum core_outcome outcome)
{
        t->state = ATTEMPT_DONE;
        t->outcome = outcome;
        attempt_free_room(a, t);
}

static int64_t asked(struct core *c, struct ad *ad, const char *name, int64_t otherwise)
{
        struct eval ev;
        int64_t n = otherwise;

        eval_init(&ev, 0, 0);
        eval_integer(&ev, ad, NULL, symbols_intern(core_symbols(c), str_of(name)), &n);
        eval_deinit(&ev);
        return n;
}

/* The units of "sw" that a job draws: "free, SW" is one, "sw:2,db.x" two. */
static unsigned licences_of(struct core *c, struct ad *ad)
{
        struct eval ev;
        struct str text = STR_NONE;
        unsigned n = 0;

        eval_init(&ev, 0, 0);
        if (eval_string(&ev, ad, NULL, symbols_intern(core_symbols(c), STR("ConcurrencyLimits")), &text))
                n = str_search(text, STR("sw:2")) >= 0
                            ? 2
                            : str_search(text, STR("sw")) >= 0 || str_search(text, STR("SW")) >= 0;
        eval_deinit(&ev);
        return n;
}

/* The files that the job reads. */
static unsigned game_agent_files_of(struct core *c, struct ad *ad)
{
        struct str list = STR_NONE, one;
        unsigned files = 0;
        struct eval ev;

        eval_init(&ev, 0, 0);
        eval_string(&ev, ad, NULL, symbols_intern(core_symbols(c), STR("TransferInput")), &list);
        while (list.n && str_cut(&list, ',', &one))
                for (unsigned i = 0; i < GAME_FILES; i++) {
                        char room[32];

                        if (str_eqz(one, game_file_url(i, room)))
                                files |= 1u << i;
                }
        eval_deinit(&ev);
        return files;
}

/* Returns those of the files that are at stores which do not answer the agent: held copies may be too old to
 * be used. */
static unsigned files_down(const struct game_agent *a, unsigned files)
{
        unsigned down = 0;

        for (unsigned i = 0; i < GAME_FILES; i++)
                if ((files >> i & 1) && a->down[i % GAME_STORES])
                        down |= 1u << i;
        return down;
}

/* A job must not be given where a store does not answer that it needs, once the server knows. While it does
 * not, nothing that is held of it comes or goes. */
static void check_down(struct game *g, const struct game_agent *a, const struct sim_action *as,
                       unsigned files)
{
        unsigned missed = files_down(a, files) & ~a->files;

        for (unsigned i = 0; i < GAME_FILES; i++)
                if ((missed >> i & 1) && as->turn >= a->down_turn[i % GAME_STORES])
                        sim_world_violation(g->world,
                                            "%s was given %" PRIu64 ", which reads f%u of a store "
                                            "that does not answer",
                                            a->name, as->request, i);
}

static void attempt_take(struct game *g, struct game_agent *a, const struct sim_action *as, uint32_t member)
{
        struct core *core = sim_world_core(g->world);
        int64_t now = sim_world_now(g->world);
        struct attempt t = {.request = as->request,
                            .member = member,
                            .fence = as->fence,
                            .lease_ms = (int64_t)as->lease_ms,
                            .lease_ends = a->renewed + (int64_t)as->lease_ms,
                            .ends = now + 1 + game_below(g, game_chance(g, 10) ? 5000 : 300),
                            .exit_code = game_chance(g, 15) ? 1 + (int)game_below(g, 3) : 0,
                            .poison = !as->gang_size && as->request % 13 == 5 && member == 0,
                            .waits = as->gang_size > 0};
        struct ad *ad = core_job_ad(core, as->request, member);
        struct game_queue *q;

        if (!ad) {
                sim_world_violation(g->world, "an assignment of a job that is not there");
                return;
        }
        t.cpus = (unsigned)asked(core, ad, "RequestCpus", 1);
        t.memory = (unsigned)asked(core, ad, "RequestMemory", 0);
        t.licences = licences_of(core, ad);
        t.files = game_agent_files_of(core, ad);
        ad_free(ad);
        check_down(g, a, as, t.files);
        while (t.queue + 1 < a->queue_count && strcmp(as->queue, queue_names[t.queue]) != 0)
                t.queue++;
        q = &a->queues[t.queue];
        q->busy_cpus += t.cpus;
        q->busy_memory += t.memory;
        if (q->busy_cpus > q->cpus || q->busy_memory > q->memory)
                sim_world_violation(g->world, "%s/%s was given more than it has: %u of %u cpus, %u of %u MiB",
                                    a->name, as->queue, q->busy_cpus, q->cpus, q->busy_memory, q->memory);
        MEM_GROW(a->attempts, a->cap, a->count + 1);
        a->attempts[a->count++] = t;
}

/* ---- messages from the agent */
static void game_agent_offer(struct game *g, struct game_agent *a, unsigned queue)
{
        struct game_queue *q = &a->queues[queue];
        char ad[256];
        struct core_offer o = {
                .agent = a->name, .queue = queue_names[queue], .serial = ++a->serial, .jobs_max = 100};

        snprintf(ad, sizeof(ad),
                 "[ Cpus = %u; Memory = %u; Disk = 1000000; TotalCpus = %u; TotalMemory = %u; Speed = %u; "
                 "Group = \"g%u\"; Requirements = TARGET.RequestCpus <= %u ]",
                 q->cpus - q->busy_cpus, q->memory - q->busy_memory, q->cpus, q->memory, game_speed(q),
                 (unsigned)(a - g->agents) % 2, q->cpus);
        o.ad = str_of(ad);
        q->offer_wanted = false;
        if (core_offer(sim_world_core(g->world), &o, NULL))
                sim_world_violation(g->world, "an offer was refused");
}

/* Reports the distances of the stores, and which of them do not answer. */
static void game_agent_tell_links(struct game *g, struct game_agent *a, bool all)
{
        struct core_link links[GAME_STORES] = {
                {STR("near"), 1000, 100000000ull << game_below(g, 3), 0},
                {STR("far"), 1000u << game_below(g, 8), 1000000ull * (1 + game_below(g, 50)), 0}};

        links[0].free_known = game_chance(g, 20);
        links[0].free_bytes = g->draining ? UINT64_MAX - 1 : (uint64_t)game_below(g, GAME_CAPACITY) << 20;
        for (unsigned i = 0; i < GAME_STORES; i++)
                if (a->down[i]) {
                        links[i].down_ms = sim_world_now(g->world);
                        links[i].down_why = STR("as the simulator wants it");
                        if (all)
                                a->down_turn[i] = sim_world_turns(g->world);
                }
        core_links(sim_world_core(g->world), a->name, links, GAME_STORES);
}

/* A store ceases to answer it, or answers again. */
static void store_turns(struct game *g, struct game_agent *a, unsigned store)
{
        a->down[store] = !a->down[store];
        GAME_TRACE(g, "store %u %s %s", store, a->down[store] ? "is silent for" : "answers", a->name);
        a->down_turn[store] = sim_world_turns(g->world);
        game_agent_tell_links(g, a, false);
}

/* Reports the held files and the distances of the stores: everything after a connection, else a change. */
static void tell_data(struct game *g, struct game_agent *a, bool all)
{
        struct core_file came[GAME_FILES];
        uint64_t went[GAME_FILES];
        size_t came_count = 0, went_count = 0;
        unsigned was = all ? 0 : a->files, change = game_below(g, GAME_FILES);

        if (!a->down[change % GAME_STORES])
                a->files ^= 1u << change;
        for (unsigned i = 0; i < GAME_FILES; i++) {
                char room[32];
                uint64_t id = file_id(str_of(game_file_url(i, room)));

                if ((a->files & ~was) >> i & 1)
                        came[came_count++] = (struct core_file){id, 1000000ull << i};
                if ((was & ~a->files) >> i & 1)
                        went[went_count++] = id;
        }
        core_cache_delta(sim_world_core(g->world), a->name, came, came_count, went, went_count, all);
        if (all || game_chance(g, 20))
                game_agent_tell_links(g, a, all);
}

static void report(struct game *g, const struct game_agent *a, const struct attempt *t)
{
        struct core_result r = {.request = t->request,
                                .member = t->member,
                                .fence = t->fence,
                                .outcome = t->outcome,
                                .exit_code = t->exit_code,
                                .started_ms = t->ends - 10,
                                .ended_ms = t->ends,
                                .bytes_out = game_chance(g, 5) ? UINT64_MAX : game_below(g, 9u << 20),
                                .bytes_freed = game_chance(g, 5) ? UINT64_MAX : game_below(g, 9u << 20),
                                .energy_uj = game_chance(g, 5) ? UINT64_MAX : t->member * 1000ull,
                                .hold_code = t->outcome == CORE_NOT_STARTED ? 6 : 0,
                                .reason = STR("as the simulator wants it")};
        struct set one = {0};

        if (core_result(sim_world_core(g->world), a->name, &r))
                g->counts.results++;
        else
                g->counts.refused_old++;
        set_add(&one, t->member);
        sim_world_say(g->world, SIM_ACK, a->name, t->request, t->fence, &one);
        set_deinit(&one);
}

struct stale_of {
        struct game *game;
        struct game_agent *agent;
};

static void on_stale(void *arg, uint64_t request, uint32_t fence, const struct set *members)
{
        struct stale_of *s = arg;

        sim_world_say(s->game->world, SIM_STALE, s->agent->name, request, fence, members);
}

static void connect(struct game *g, struct game_agent *a)
{
        struct core_attempts *has = mem_zalloc((a->count + 1) * sizeof(*has));
        struct set *sets = mem_zalloc((a->count + 1) * sizeof(*sets));
        struct core *core = sim_world_core(g->world);
        struct stale_of stale = {g, a};

        GAME_TRACE(g, "%s connects with %zu attempts", a->name, a->count);
        a->connected = true;
        a->session++;
        a->renewed = sim_world_now(g->world);
        core_agent_connected(core, a->name);
        for (size_t i = 0; i < a->count; i++) {
                set_add(&sets[i], a->attempts[i].member);
                has[i] = (struct core_attempts){a->attempts[i].request, a->attempts[i].fence, &sets[i]};
                a->attempts[i].lease_ends = a->renewed + a->attempts[i].lease_ms;
        }
        core_inventory(core, a->name, has, a->count, on_stale, &stale);
        for (size_t i = 0; i < a->count; i++) {
                set_deinit(&sets[i]);
                if (a->attempts[i].state == ATTEMPT_DONE)
                        report(g, a, &a->attempts[i]);
        }
        free(has);
        free(sets);
        tell_data(g, a, true);
        for (unsigned k = 0; k < a->queue_count; k++)
                game_agent_offer(g, a, k);
}

static void disconnect(struct game *g, struct game_agent *a)
{
        GAME_TRACE(g, "%s is disconnected", a->name);
        a->connected = false;
        core_agent_away(sim_world_core(g->world), a->name);
}

/* ---- messages to the agent */
static void take_assignment(struct game *g, struct game_agent *a, const struct sim_action *as)
{
        struct core *core = sim_world_core(g->world);
        struct core_attempts at = {as->request, as->fence, &as->members};

        GAME_TRACE(g, "%s is given %" PRIu64 " x%" PRIu64 " fence %u", a->name, as->request,
                   set_count(&as->members), as->fence);
        if (game_chance(g, 3)) {
                core_refused(core, a->name, &at, STR("not today"), game_chance(g, 20) ? 21 : 0);
                for (unsigned k = 0; k < a->queue_count; k++)
                        a->queues[k].offer_wanted = true;
                return;
        }
        SET_FOREACH (&as->members, m) {
                attempt_take(g, a, as, (uint32_t)m);
        }
        core_accepted(core, a->name, &at);
}

/* Vacates an attempt; one that waits for its gang has not run, and ends at once. */
static void vacate(struct game *g, struct game_agent *a, struct attempt *t)
{
        t->vacating = true;
        t->ends = sim_world_now(g->world) + game_below(g, 50);
        if (!t->waits)
                return;
        attempt_done(a, t, CORE_KILLED);
        report(g, a, t);
}

static void deliver(struct game *g, const struct sim_action *m)
{
        struct game_agent *a = game_agent_named(g, m->agent);

        if (!a->connected || a->session != m->session)
                return;
        if (m->kind == SIM_ASSIGN) {
                take_assignment(g, a, m);
                return;
        }
        for (size_t i = 0; i < a->count;) {
                struct attempt *t = &a->attempts[i];

                if (t->request != m->request || t->fence != m->fence || !set_has(&m->members, t->member)) {
                        i++;
                } else if (m->kind == SIM_ACK || m->kind == SIM_STALE) {
                        a->queues[t->queue].offer_wanted = true;
                        attempt_forget(a, i);
                } else {
                        if (m->kind == SIM_GO)
                                t->waits = false;
                        else if (t->state != ATTEMPT_DONE &&
                                 (m->control <= CORE_VACATE || m->control == CORE_END))
                                vacate(g, a, t);
                        i++;
                }
        }
}

void game_agents_deliver(struct game *g)
{
        for (size_t i = 0; i < g->mail_count;)
                if (g->mail[i].at <= sim_world_now(g->world)) {
                        struct sim_action m = g->mail[i].action;

                        memmove(g->mail + i, g->mail + i + 1, (--g->mail_count - i) * sizeof(*g->mail));
                        deliver(g, &m);
                        sim_action_deinit(&m);
                } else {
                        i++;
                }
}

void game_agents_cut(struct game *g)
{
        for (size_t i = 0; i < g->mail_count; i++)
                sim_action_deinit(&g->mail[i].action);
        g->mail_count = 0;
        for (unsigned i = 0; i < GAME_AGENTS; i++)
                g->agents[i].connected = false;
}

/* ---- its time */

/* An attempt whose inputs do not come goes back, and one whose copies are too old. */
static bool give_back(struct game *g, struct game_agent *a, struct attempt *t)
{
        unsigned down = files_down(a, t->files);
        struct set one = {0};
        struct core_attempts at = {t->request, t->fence, &one};

        if (!down || (!(down & ~a->files) && game_chance(g, 80)))
                return false;
        set_add(&one, t->member);
        GAME_TRACE(g, "%s gives back %" PRIu64 ".%u", a->name, t->request, t->member);
        core_refused(sim_world_core(g->world), a->name, &at, STR("a store does not answer"), 0);
        set_deinit(&one);
        g->counts.given_back++;
        t->gone = true; /* live() forgets it */
        return true;
}

/* The attempt's program sets an attribute or has a line for the log; an agent that lies reports so for an
 * attempt that it does not have. */
static void program_calls(struct game *g, struct game_agent *a, const struct attempt *t)
{
        struct core *core = sim_world_core(g->world);
        bool lies = game_chance(g, 20), log = game_chance(g, 30);
        const struct core_attempt at = {t->request, t->member, t->fence + (lies ? 1000000 : 0)};
        BUF_CLEANUP struct buf want = {0}, got = {0};
        struct err err;
        int r;

        buf_printf(&want, "%u", game_below(g, 1000));
        r = log ? core_chirp_remark(core, a->name, &at, buf_view(&want), &err)
                : core_chirp_set(core, a->name, &at, STR("GameStep"), buf_view(&want), &err);
        if (lies && r != CORE_UNKNOWN)
                sim_world_violation(g->world,
                                    "%s set something of %" PRIu64 ", of an attempt that it does not have",
                                    a->name, t->request);
        if (r || log)
                return;
        r = core_chirp_get(core, a->name, &at, STR("GameStep"), &got, &err);
        if (r || !str_eq(buf_view(&got), buf_view(&want)))
                sim_world_violation(g->world, "%" PRIu64 " has not what its program has set", t->request);
}

static void run_attempt(struct game *g, struct game_agent *a, struct attempt *t)
{
        struct set one = {0};
        struct core_attempts at = {t->request, t->fence, &one};

        if (t->state == ATTEMPT_DONE || t->waits)
                return;
        if (t->state == ATTEMPT_TAKEN && a->connected && give_back(g, a, t))
                return;
        if (t->state == ATTEMPT_TAKEN) {
                set_add(&one, t->member);
                t->state = ATTEMPT_RUNNING;
                if (a->connected && game_chance(g, 70))
                        core_started(sim_world_core(g->world), a->name, &at, sim_world_now(g->world));
                set_deinit(&one);
        }
        if (t->poison && !t->vacating && !g->draining) {
                a->dies = true;
                return;
        }
        if (a->black_hole && !t->vacating && !g->draining)
                t->ends = sim_world_now(g->world);
        if (a->connected && t->state == ATTEMPT_RUNNING && game_chance(g, 10))
                program_calls(g, a, t);
        if (t->ends > sim_world_now(g->world))
                return;
        attempt_done(a, t,
                     t->vacating                     ? CORE_KILLED
                     : game_chance(g, 2)             ? CORE_NOT_STARTED
                     : a->black_hole && !g->draining ? CORE_OUTCOME_LOST
                     : game_chance(g, 2)             ? CORE_OUTCOME_LOST
                                                     : CORE_EXITED);
        if (a->connected)
                report(g, a, t);
}

static void live(struct game *g, struct game_agent *a)
{
        int64_t now = sim_world_now(g->world);

        for (size_t i = 0; i < a->count; i++)
                run_attempt(g, a, &a->attempts[i]);
        if (a->connected && now - a->renewed > 500) {
                a->renewed = now;
                core_renew(sim_world_core(g->world), a->name);
                for (size_t i = 0; i < a->count; i++)
                        a->attempts[i].lease_ends = now + a->attempts[i].lease_ms;
        }
        /* An agent that cannot renew kills first; results of before the end it still has. */
        for (size_t i = 0; i < a->count;)
                if (a->attempts[i].gone ||
                    (a->attempts[i].state != ATTEMPT_DONE && a->attempts[i].lease_ends <= now))
                        attempt_forget(a, i);
                else
                        i++;
        for (unsigned i = 0; a->connected && i < GAME_STORES; i++)
                if (g->draining ? a->down[i] : game_chance(g, a->down[i] ? 5 : 1))
                        store_turns(g, a, i);
        if (a->connected && game_chance(g, 3))
                tell_data(g, a, false);
        for (unsigned k = 0; a->connected && k < a->queue_count; k++)
                if (a->queues[k].offer_wanted)
                        game_agent_offer(g, a, k);
}

void game_agents_step(struct game *g)
{
        for (unsigned i = 0; i < GAME_AGENTS; i++) {
                struct game_agent *a = &g->agents[i];

                if (a->connected && !g->draining && game_chance(g, 1))
                        disconnect(g, a);
                else if (!a->connected && !a->silent && game_chance(g, g->draining ? 50 : 10))
                        connect(g, a);
                if (a->dies || (!g->draining && game_below(g, 1000) < 3)) { /* its machine dies */
                        a->dies = false;
                        g->counts.losses++;
                        while (a->count)
                                attempt_forget(a, 0);
                        if (a->connected)
                                disconnect(g, a);
                }
                if (game_below(g, 1000) < 5)
                        a->silent = !a->silent && !g->draining;
                if (g->draining)
                        a->silent = false;
                live(g, a);
        }
}

void game_agents_check(struct game *g)
{
        struct idmap *alive = idmap_new();
        unsigned licences = 0;

        for (unsigned i = 0; i < GAME_AGENTS; i++)
                for (size_t k = 0; k < g->agents[i].count; k++) {
                        const struct attempt *t = &g->agents[i].attempts[k];

                        if (t->state == ATTEMPT_DONE || t->waits) /* without its gang's go it never runs */
                                continue;
                        licences += t->licences;
                        if (idmap_put(alive, t->request << 24 | t->member, g))
                                sim_world_violation(g->world, "%" PRIu64 ".%u is alive twice", t->request,
                                                    t->member);
                }
        if (licences > GAME_LICENCES)
                sim_world_violation(g->world, "%u units of sw are in use, and there are %u", licences,
                                    GAME_LICENCES);
        idmap_free(alive);
}
