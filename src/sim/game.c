#include "sim/game.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/space.h"
#include "core/lifecycle/reservations.h"
#include "core/meta/meta.h"
#include "core/query.h"
#include "sim/game_state.h"

/* Number of steps at the end after which a job that has not ended counts as stuck. */
#define DRAIN_STEPS_MAX 400000u

/* ---- the world's end of the connections */
static unsigned game_session_of(void *arg, const char *agent)
{
        return game_agent_named(arg, agent)->session;
}

static void game_on_leave(void *arg, struct sim_action *a)
{
        struct game *g = arg;
        const struct game_agent *to = game_agent_named(g, a->agent);
        int64_t at;

        if (!to->connected || to->session != a->session) {
                sim_action_deinit(a); /* the connection that it was meant for is gone */
                return;
        }
        at = sim_world_now(g->world) + game_below(g, 20);
        for (size_t i = 0; i < g->mail_count; i++) /* one connection: nothing overtakes */
                if (strcmp(g->mail[i].action.agent, a->agent) == 0 && g->mail[i].at > at)
                        at = g->mail[i].at;
        MEM_GROW(g->mail, g->mail_cap, g->mail_count + 1);
        g->mail[g->mail_count++] = (struct message){at, *a};
}

const char *game_file_url(unsigned file, char room[32])
{
        snprintf(room, 32, "https://%s.sim/f%u", file % GAME_STORES ? "far" : "near", file);
        return room;
}

/* The server's settings: limits, and two stores. */
static void on_settings(void *arg, struct core *c)
{
        const struct str everybody = STR("*");
        const struct str near = STR("https://near.sim/"), far = STR("https://far.sim/");
        const struct game *g = arg;
        const struct core_store stores[] = {
                {.urls = {STR("near"), &near, 1},
                 .concurrency_in = g->space ? 6 : 2,
                 .capacity_bytes = g->space ? (uint64_t)GAME_CAPACITY << 20 : 0,
                 .file_bytes = 5u << 20},
                {.urls = {STR("far"), &far, 1}, .concurrency = 4, .concurrency_in = 3}};
        const struct core_data data = {.stores = stores, .store_count = 2};
        int r = core_data_set(c, &data, NULL);

        assert(r == 0);
        core_limit_set(c, STR("sw"), GAME_LICENCES);
        core_limit_set(c, STR("db.*"), 3);
        core_limit_set(c, STR("user/bob@local"), 20);
        core_limit_set(c, STR("qos/urgent"), 4);
        core_qos_set(c, STR("urgent"), 10, NULL, 0);
        core_account_set(c, STR("lab"), 3, &everybody, 1, NULL);
        core_account_set(c, STR("lab.night"), 1, NULL, 0, NULL);
        if (g->bank) {
                const struct core_bank_rate rates[] = {
                        {.account = STR("bob@local"), .charge = STR("WallSeconds * 50")},
                        {.charge = STR("Cpus * WallSeconds * 100 + 1")}};

                r = core_bank_set(c,
                                  &(struct core_bank){.hold = g->bank == GAME_HELD,
                                                      .stop = g->bank == GAME_HELD,
                                                      .charge_lost = g->bank == GAME_WAITS,
                                                      .charge_reserved = g->bank == GAME_HELD,
                                                      .lien_ms = 1000,
                                                      .rates = rates,
                                                      .rate_count = 2},
                                  NULL);
                assert(r == 0);
        }
}

static const struct sim_world_ops world_ops = {
        .session = game_session_of, .leave = game_on_leave, .settings = on_settings};

/* ---- the course of the game */
static uint64_t maybe_snapshot(struct game *g)
{
        uint64_t records = sim_world_records(g->world);

        return records && game_chance(g, 50) ? 1 + game_below(g, (unsigned)records) : 0;
}

static void crash(struct game *g)
{
        GAME_TRACE(g, "the server dies with %zu batches not durable", sim_world_flying(g->world));
        g->counts.restarts++;
        game_agents_cut(g);
        game_user_draft_drop(g);
        sim_world_crash(g->world, maybe_snapshot(g));
}

static void game_step(struct game *g)
{
        unsigned what = game_below(g, 100);

        sim_world_go(g->world, sim_world_now(g->world) + game_below(g, g->draining ? 200 : 30));
        if (!g->draining) {
                if (what < 4)
                        game_user_submit(g);
                else if (what < 10)
                        game_user_act(g);
                else if (what == 11)
                        game_user_order_node(g);
                else if (what == 10 && game_chance(g, 30)) {
                        crash(g);
                        return;
                }
        }
        if (g->bank && !g->draining && game_chance(g, 10))
                game_user_bank(g);
        if (g->reserves && !g->draining && game_chance(g, 2))
                game_user_reserve(g);
        game_user_draft(g);
        game_agents_deliver(g);
        game_agents_step(g);
        core_tick(sim_world_core(g->world));
        if (g->draining) {
                game_user_release_all(g);
                game_user_resume_all(g);
                game_user_reserve_end_all(g);
                if (g->space)
                        game_user_make_space(g);
        }
        sim_world_turn(g->world);
        while (sim_world_flying(g->world) && (sim_world_flying(g->world) > 5 || game_chance(g, 60)))
                sim_world_commit(g->world);
}

static void check_limit(void *arg, const struct core_limit *l)
{
        struct game *g = arg;

        if (str_starts(str_of(l->name), STR("space/")))
                return; /* its size also follows what the store says; check_space looks at it */
        if (l->max >= 0 && l->used > l->max)
                sim_world_violation(g->world, "%" PRId64 " of %" PRId64 " units of %s are in use", l->used,
                                    l->max, l->name);
}

/* Space is never oversold: lots, files and what running jobs may write fit into the store. */
static void check_space(struct game *g)
{
        struct space_view v;

        if (!g->space || !space_look(sim_world_core(g->world), 0, &v))
                return;
        if (v.reserved + v.files + v.claimed > v.capacity)
                sim_world_violation(g->world,
                                    "space is oversold: lots %" PRIu64 ", files %" PRIu64 ", claims %" PRIu64,
                                    v.reserved, v.files, v.claimed);
        if (v.claimed)
                g->counts.claims++;
        if (v.reserved)
                g->counts.lots++;
}

/* The core's own invariants say whether they are right. */
static void count_reserved(struct game *g)
{
        struct core *core = sim_world_core(g->world);
        struct core_meta m;

        for (const struct advance *a = core_reserved_first(core); a; a = a->next) {
                if (a->id <= g->advance_seen || !a->request)
                        continue;
                g->advance_seen = a->id;
                g->counts.reserved++;
                g->counts.moved += a->moves > 0;
                g->counts.parts += core_job_meta(core, a->request, a->member, &m) == 0 && m.parts > 1;
        }
}

static void check_game(struct game *g)
{
        count_reserved(g);
        check_space(g);
        core_limits(sim_world_core(g->world), check_limit, g);
        sim_world_check(g->world);
        game_agents_check(g);
}

static bool all_ended(struct game *g)
{
        struct core_counts n;

        core_totals(sim_world_core(g->world), &n);
        return n.jobs == n.completed + n.removed;
}

static void check_history(struct game *g)
{
        struct core *core = sim_world_core(g->world);

        for (uint64_t id = core_request_next(core, 0); id; id = core_request_next(core, id)) {
                struct core_request r;

                core_request_get(core, id, &r);
                for (uint32_t m = 0; m < r.counts.jobs; m++)
                        if (!sim_world_has_ended(g->world, id, m))
                                sim_world_violation(g->world, "%" PRIu64 ".%u ended without a row in history",
                                                    id, m);
        }
}

static void let_run_out(struct game *g, unsigned steps)
{
        g->draining = true;
        if (g->bank)
                game_user_bank(g); /* much money */
        for (; !sim_world_violated(g->world) && (!all_ended(g) || sim_world_flying(g->world)); g->step++) {
                game_step(g);
                if (g->step % 50 == 0)
                        check_game(g);
                if (g->step > steps + DRAIN_STEPS_MAX)
                        sim_world_violation(g->world, "jobs that never end");
        }
        for (int i = 0; i < 50; i++) {
                core_tick(sim_world_core(g->world));
                sim_world_turn(g->world);
        }
        while (sim_world_flying(g->world))
                sim_world_commit(g->world);
        check_game(g);
}

int sim_game_play(const struct sim_game_options *o, struct sim_game_counts *ret, struct err *err)
{
        const struct sim_world_config config = {.core = {.lease_ms = 3000,
                                                         .lease_margin_ms = 200,
                                                         .periodic_ms = 500,
                                                         .keep_finished_ms = 1000000000,
                                                         .keep_finished = 1000000,
                                                         .share = {.half_life_ms = 5000},
                                                         .reserve_after_ms = 400,
                                                         .gang_wait_ms = 1000,
                                                         .max_lost = 4,
                                                         .lost_pause_ms = 30,
                                                         .node_silent_ms = 6000,
                                                         .check_choices = true,
                                                         .rekey_slice = 2},
                                                .start_ms = 1000000,
                                                .strict = true};
        struct game g = {.trace = o->trace,
                         .bank = o->seed % 6 == 1   ? GAME_HELD
                                 : o->seed % 6 == 5 ? GAME_WAITS
                                                    : GAME_FREE,
                         .reserves = o->seed % 4 == 1,
                         .metas = o->seed % 5 < 2,
                         .space = o->seed % 3 == 2};
        int r = sim_world_new(&config, &world_ops, &g, &g.world, err);

        if (r)
                return r;
        sim_random_seed(&g.random, o->seed);
        game_agents_make(&g);
        if (g.bank)
                game_user_bank_begin(&g);
        for (; g.step < o->steps && !sim_world_violated(g.world); g.step++) {
                game_step(&g);
                check_game(&g);
        }
        if (!sim_world_violated(g.world))
                let_run_out(&g, o->steps);
        if (!sim_world_violated(g.world)) {
                check_history(&g);
                sim_world_compare(g.world, false, maybe_snapshot(&g));
                sim_world_compare(g.world, true, maybe_snapshot(&g));
        }
        if (sim_world_violated(g.world))
                r = err_set(err, 1, "seed %" PRIu64 ", step %u: %s", o->seed, g.step,
                            sim_world_violated(g.world));
        g.counts.steps = g.step;
        g.counts.requests = core_request_last(sim_world_core(g.world));
        g.counts.ended = sim_world_ended(g.world);
        g.counts.records = sim_world_records(g.world);
        *ret = g.counts;
        game_agents_free(&g);
        game_user_draft_drop(&g);
        sim_world_free(g.world);
        return r;
}
