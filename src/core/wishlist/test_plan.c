/* Plans of nodes: wishes, drains, and reasons against more; and invariants of random plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/wishlist/plan.h"

#define HOUR 3600000
#define UNIT 1000000

static const struct plan_provisioner cloud = {
        .max = 10, .period_ms = HOUR, .stop_ms = 60000, .idle_ms = 120000};
static const struct plan_shape small = {.room = {2, 4096, 1 << 20}, .price_micro = UNIT, .max = 10},
                               large = {.room = {8, 16384, 1 << 20}, .price_micro = 3 * UNIT, .max = 10};
static const bool both[] = {true, true}, first[] = {true, false}, second[] = {false, true};

static struct plan_input input(const struct plan_shape *shapes, const struct plan_demand *d, size_t demands)
{
        return (struct plan_input){.provisioners = &cloud,
                                   .provisioner_count = 1,
                                   .shapes = shapes,
                                   .shape_count = 2,
                                   .demands = d,
                                   .demand_count = demands,
                                   .rules = {.hour_micro = -1, .month_micro = -1}};
}

static struct plan_demand demand(uint64_t slots, int64_t cpus, const bool *suits)
{
        return (struct plan_demand){.jobs = slots, .slots = slots, .need = {cpus, 100, 0}, .suits = suits};
}

/* One job takes the small shape, many the one that costs less for each of them. */
static void test_the_cheapest_for_the_jobs(void **state)
{
        const struct plan_shape shapes[] = {small, large};
        struct plan_demand d = demand(1, 1, both);
        struct plan_input in = input(shapes, &d, 1);
        struct plan p;

        (void)state;
        plan_make(&in, &p);
        assert_int_equal(p.shapes[0].wished, 1);
        assert_int_equal(p.shapes[1].why, PLAN_DEARER);
        assert_int_equal(p.demands[0].wished, 1);
        plan_deinit(&p);
        d = demand(17, 1, both);
        plan_make(&in, &p);
        assert_int_equal(p.shapes[1].wished, 2);
        assert_int_equal(p.shapes[0].wished, 1);
        assert_int_equal(p.demands[0].wished, 17);
        plan_deinit(&p);
}

/* A cheaper shape that is far from the files costs more for short jobs, and not for long ones. */
static void test_where_the_files_are(void **state)
{
        const struct plan_shape shapes[] = {
                small, {.room = {2, 4096, 1 << 20}, .price_micro = UNIT / 2, .max = 10, .boot_ms = 60000}};
        static const int64_t fetch_ms[] = {1000, 900000};
        struct plan_demand d = demand(4, 1, both);
        struct plan_input in = input(shapes, &d, 1);
        struct plan p;

        (void)state;
        d.jobs = 40;
        d.fetch_ms = fetch_ms;
        d.run_ms = 60000;
        plan_make(&in, &p);
        assert_int_equal(p.shapes[0].wished, 2);
        assert_int_equal(p.shapes[1].why, PLAN_DEARER);
        assert_int_equal(p.wishes[0].lasts_ms, 10 * 61000);
        plan_deinit(&p);
        d.run_ms = HOUR;
        plan_make(&in, &p);
        assert_int_equal(p.shapes[1].wished, 2);
        assert_int_equal(p.wishes[0].lasts_ms, 60000 + 10 * (HOUR + 900000));
        plan_deinit(&p);
        d.run_ms = 0; /* not known: an hour is assumed, and no end is told */
        plan_make(&in, &p);
        assert_int_equal(p.shapes[1].wished, 2);
        assert_int_equal(p.wishes[0].lasts_ms, 0);
        plan_deinit(&p);
}

/* Running and booting nodes are used first; a draining one is not. */
static void test_nodes_that_are_there(void **state)
{
        const struct plan_shape shapes[] = {small, large};
        struct plan_demand d = demand(5, 1, both);
        struct plan_node nodes[] = {
                {.shape = 0,
                 .state = PLAN_NODE_BOOTS,
                 .price_micro = UNIT,
                 .idle_ms = -1,
                 .paid_left_ms = HOUR},
                {.shape = 0,
                 .state = PLAN_NODE_RUNS,
                 .free = {1, 4096, 0},
                 .price_micro = UNIT,
                 .idle_ms = -1,
                 .paid_left_ms = HOUR},
                {.shape = 1, .state = PLAN_NODE_LEAVES, .price_micro = UNIT, .paid_left_ms = HOUR},
        };
        struct plan_input in = input(shapes, &d, 1);
        struct plan p;

        (void)state;
        in.nodes = nodes;
        in.node_count = 3;
        plan_make(&in, &p);
        assert_int_equal(p.demands[0].placed, 3);
        assert_int_equal(p.demands[0].wished, 2);
        assert_int_equal(p.shapes[0].wished, 1);
        plan_deinit(&p);
}

/* A shape without capacity is replaced by the next best; only jobs that need exactly that shape wait. */
static void test_a_closed_shape(void **state)
{
        struct plan_shape shapes[] = {small, large};
        struct plan_demand d[] = {demand(40, 1, first), demand(2, 1, both), demand(1, 1, second)};
        struct plan_input in = input(shapes, d, 3);
        struct plan p;

        (void)state;
        shapes[0].closed = "no capacity";
        plan_make(&in, &p);
        assert_int_equal(p.shapes[0].wished, 0);
        assert_int_equal(p.shapes[0].why, PLAN_CLOSED);
        assert_int_equal(p.demands[0].wished, 0);
        assert_int_equal(p.demands[0].why, PLAN_CLOSED);
        assert_int_equal(p.demands[1].wished, 2);
        assert_int_equal(p.demands[2].wished, 1);
        plan_deinit(&p);
}

/* Groups take turns when not all can have what they want. */
static void test_turns(void **state)
{
        struct plan_shape shapes[] = {small, large};
        struct plan_demand d[] = {demand(100, 2, first), demand(100, 8, second)};
        struct plan_input in = input(shapes, d, 2);
        struct plan p;

        (void)state;
        plan_make(&in, &p);
        assert_int_equal(p.shapes[0].wished, 5);
        assert_int_equal(p.shapes[1].wished, 5);
        assert_int_equal(p.demands[0].why, PLAN_PROVISIONER_MAX);
        plan_deinit(&p);
}

static void test_bounds(void **state)
{
        struct plan_shape shapes[] = {small, large};
        struct plan_demand d = demand(100, 2, first);
        struct plan_account physics = {STR("physics"), 3};
        struct plan_input in = input(shapes, &d, 1);
        struct plan p;

        (void)state;
        in.rules.hour_micro = 4 * UNIT;
        plan_make(&in, &p);
        assert_int_equal(p.shapes[0].wished, 4);
        assert_int_equal(p.demands[0].why, PLAN_HOUR);
        assert_int_equal(p.shapes[0].why, PLAN_HOUR);
        plan_deinit(&p);
        in.rules = (struct plan_rules){.hour_micro = -1, .month_micro = 10 * UNIT, .spent_micro = 8 * UNIT};
        plan_make(&in, &p);
        assert_int_equal(p.shapes[0].wished, 1);
        assert_int_equal(p.demands[0].why, PLAN_MONTH);
        plan_deinit(&p);
        in.rules = (struct plan_rules){.hour_micro = -1, .month_micro = -1};
        in.accounts = &physics;
        in.account_count = 1;
        d.account = STR("physics");
        plan_make(&in, &p);
        assert_int_equal(p.shapes[0].wished, 3);
        assert_int_equal(p.demands[0].why, PLAN_ACCOUNT_MAX);
        plan_deinit(&p);
        d.slots = 0;
        shapes[1].min = 2;
        plan_make(&in, &p);
        assert_int_equal(p.shapes[1].wished, 2);
        assert_int_equal(p.shapes[0].why, PLAN_NO_JOBS);
        plan_deinit(&p);
}

/* An idle node is drained at the end of its paid period if no jobs want it. */
static void test_idle_nodes(void **state)
{
        struct plan_shape shapes[] = {small, large};
        struct plan_demand d = demand(1, 1, first);
        struct plan_node node = {.shape = 0,
                                 .state = PLAN_NODE_RUNS,
                                 .free = small.room,
                                 .price_micro = UNIT,
                                 .idle_ms = 120000,
                                 .paid_left_ms = 60000};
        struct plan_input in = input(shapes, &d, 0);
        struct plan p;

        (void)state;
        in.nodes = &node;
        in.node_count = 1;
#define LEAVES(what)                                                                                         \
        do {                                                                                                 \
                plan_make(&in, &p);                                                                          \
                assert_int_equal(p.leaves[0], what);                                                         \
                plan_deinit(&p);                                                                             \
        } while (0)
        LEAVES(PLAN_LEAVES_IDLE);
        node.paid_left_ms = 60001;
        LEAVES(PLAN_STAYS);
        node.paid_left_ms = 0;
        node.idle_ms = 119999;
        LEAVES(PLAN_STAYS);
        node.idle_ms = 200000;
        in.demand_count = 1;
        LEAVES(PLAN_STAYS);
        in.demand_count = 0;
        shapes[0].min = 1;
        LEAVES(PLAN_STAYS);
        node.idle_ms = -1;
        in.rules.month_micro = 5 * UNIT;
        in.rules.spent_micro = 3 * UNIT + 1;
        LEAVES(PLAN_LEAVES_MONTH);
        in.rules.spent_micro = 3 * UNIT;
        LEAVES(PLAN_STAYS);
        node.state = PLAN_NODE_CLOSED; /* an admin has drained it; it costs nevertheless */
        LEAVES(PLAN_STAYS);
        in.rules.spent_micro = 3 * UNIT + 1;
        LEAVES(PLAN_LEAVES_MONTH);
        node.state = PLAN_NODE_LEAVES;
        LEAVES(PLAN_STAYS);
}

static uint64_t chance(uint64_t *seed, uint64_t below)
{
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        return (*seed >> 33) % below;
}

#define SHAPES  5
#define DEMANDS 6
#define NODES   8
struct game {
        struct plan_provisioner provisioners[2];
        struct plan_shape shapes[SHAPES];
        struct plan_node nodes[NODES];
        struct plan_demand demands[DEMANDS];
        bool suits[DEMANDS][SHAPES];
        struct plan_account account;
        struct plan_input in;
};

static void game_make(struct game *g, uint64_t seed)
{
        uint64_t *s = &seed;

        *g = (struct game){.account = {STR("a"), (uint32_t)chance(s, 6)}};
        for (size_t i = 0; i < 2; i++)
                g->provisioners[i] = (struct plan_provisioner){(uint32_t)chance(s, 12),
                                                               (int64_t)chance(s, HOUR) + 1000, 1000, 5000};
        for (size_t i = 0; i < SHAPES; i++)
                g->shapes[i] =
                        (struct plan_shape){.provisioner = chance(s, 2),
                                            .room = {(int64_t)chance(s, 9), (int64_t)chance(s, 9000), 1000},
                                            .price_micro = (int64_t)chance(s, 4 * UNIT),
                                            .min = (uint32_t)chance(s, 3),
                                            .max = (uint32_t)chance(s, 9),
                                            .closed = chance(s, 4) ? NULL : "closed"};
        for (size_t i = 0; i < NODES; i++) {
                size_t shape = chance(s, SHAPES);

                g->nodes[i] = (struct plan_node){.shape = shape,
                                                 .provisioner = g->shapes[shape].provisioner,
                                                 .state = (enum plan_node_state)chance(s, 4),
                                                 .free = {(int64_t)chance(s, 4), 2000, 500},
                                                 .account = chance(s, 2) ? STR("a") : STR(""),
                                                 .price_micro = g->shapes[shape].price_micro,
                                                 .idle_ms = (int64_t)chance(s, 9000) - 1,
                                                 .paid_left_ms = (int64_t)chance(s, 5000)};
        }
        for (size_t i = 0; i < DEMANDS; i++) {
                for (size_t k = 0; k < SHAPES; k++)
                        g->suits[i][k] = chance(s, 2);
                g->demands[i] =
                        (struct plan_demand){.jobs = 50,
                                             .slots = 1 + chance(s, 50),
                                             .need = {1 + (int64_t)chance(s, 4), (int64_t)chance(s, 2000), 0},
                                             .account = chance(s, 3) ? STR("b") : STR("a"),
                                             .suits = g->suits[i]};
        }
        g->in = (struct plan_input){.provisioners = g->provisioners,
                                    .provisioner_count = 2,
                                    .shapes = g->shapes,
                                    .shape_count = SHAPES,
                                    .nodes = g->nodes,
                                    .node_count = chance(s, NODES + 1),
                                    .demands = g->demands,
                                    .demand_count = chance(s, DEMANDS + 1),
                                    .accounts = &g->account,
                                    .account_count = 1,
                                    .rules = {.max = (uint32_t)chance(s, 20),
                                              .hour_micro = (int64_t)chance(s, 40 * UNIT) - UNIT,
                                              .month_micro = (int64_t)chance(s, 40 * UNIT) - UNIT,
                                              .spent_micro = (int64_t)chance(s, 20 * UNIT)}};
        g->in.rules.hour_micro = g->in.rules.hour_micro < 0 ? -1 : g->in.rules.hour_micro;
        g->in.rules.month_micro = g->in.rules.month_micro < 0 ? -1 : g->in.rules.month_micro;
}

/* Returns the plan's decision. */
struct after {
        uint32_t shapes[SHAPES], provisioners[2], account, all, wished;
        int64_t hour, spent, kept, paid;
};

static void add(struct after *a, const struct game *g, size_t shape, struct str account, uint32_t n)
{
        a->shapes[shape] += n;
        a->provisioners[g->shapes[shape].provisioner] += n;
        a->account += str_eqz(account, "a") ? n : 0;
        a->all += n;
        a->hour += g->shapes[shape].price_micro * n;
        a->kept += plan_period_micro(g->shapes[shape].price_micro,
                                     g->provisioners[g->shapes[shape].provisioner].period_ms) *
                   n;
}

static int64_t period(const struct game *g, size_t shape)
{
        return plan_period_micro(g->shapes[shape].price_micro,
                                 g->provisioners[g->shapes[shape].provisioner].period_ms);
}

static void after_plan(const struct game *g, const struct plan *p, struct after *a)
{
        *a = (struct after){.spent = g->in.rules.spent_micro};
        for (size_t i = 0; i < g->in.node_count; i++) {
                const struct plan_node *n = &g->nodes[i];

                add(a, g, n->shape, n->account, 1);
                if (n->state != PLAN_NODE_LEAVES && !p->leaves[i] && n->paid_left_ms <= 1000) {
                        a->spent += period(g, n->shape);
                        a->paid++;
                }
        }
        for (size_t i = 0; i < p->wish_count; i++) {
                const struct plan_wish *w = &p->wishes[i];

                add(a, g, w->shape, w->demand == PLAN_NONE ? STR("") : g->demands[w->demand].account,
                    w->nodes);
                a->wished += w->nodes;
                a->spent += period(g, w->shape) * w->nodes;
                a->paid += w->nodes;
        }
}

/* The plan exceeds no bound, and each rejected node has a bound as the reason. */
static void check(const struct game *g, const struct plan *p)
{
        struct after a;

        after_plan(g, p, &a);
        for (size_t i = 0; i < SHAPES; i++) {
                assert_true(p->shapes[i].wished == 0 || a.shapes[i] <= g->shapes[i].max);
                assert_true(p->shapes[i].wished == 0 || !g->shapes[i].closed);
                assert_true(p->shapes[i].wished == 0 ||
                            a.provisioners[g->shapes[i].provisioner] <=
                                    g->provisioners[g->shapes[i].provisioner].max);
        }
        assert_true(a.wished == 0 || g->in.rules.max == 0 || a.all <= g->in.rules.max);
        assert_true(a.wished == 0 || g->in.rules.hour_micro < 0 || a.hour <= g->in.rules.hour_micro);
        assert_true(a.paid == 0 || g->in.rules.month_micro < 0 ||
                    a.spent + a.kept <= g->in.rules.month_micro);
        for (size_t i = 0; i < g->in.demand_count; i++) {
                const struct plan_demand *d = &g->demands[i];

                assert_true(p->demands[i].placed + p->demands[i].wished <= d->slots);
                for (size_t k = 0; k < SHAPES && p->demands[i].placed + p->demands[i].wished < d->slots;
                     k++) {
                        const struct plan_shape *s = &g->shapes[k];

                        if (!d->suits[k] || plan_fits(&s->room, &d->need) == 0)
                                continue;
                        assert_true(s->closed || a.shapes[k] >= s->max ||
                                    a.provisioners[s->provisioner] >= g->provisioners[s->provisioner].max ||
                                    (str_eqz(d->account, "a") && a.account >= g->account.max) ||
                                    (g->in.rules.max && a.all >= g->in.rules.max) ||
                                    (g->in.rules.hour_micro >= 0 &&
                                     a.hour + s->price_micro > g->in.rules.hour_micro) ||
                                    (g->in.rules.month_micro >= 0 &&
                                     a.spent + a.kept + 2 * period(g, k) > g->in.rules.month_micro));
                }
        }
        for (size_t i = 0; i < g->in.node_count; i++)
                if (p->leaves[i] == PLAN_LEAVES_IDLE)
                        assert_true(g->nodes[i].state == PLAN_NODE_RUNS && g->nodes[i].idle_ms >= 5000);
}

static void test_by_chance(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 20000; seed++) {
                struct game g;
                struct plan p;

                game_make(&g, seed);
                plan_make(&g.in, &p);
                check(&g, &p);
                plan_deinit(&p);
        }
}

/* Without shared bounds the demand for one shape does not affect another. */
static void test_no_shape_holds_up_another(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 3000; seed++) {
                const struct plan_provisioner own[] = {{5, HOUR, 0, 0}, {5, HOUR, 0, 0}};
                struct plan_shape shapes[] = {small, large};
                uint64_t s = seed, some = 1 + chance(&s, 30), more = 1 + chance(&s, 60);
                struct plan_demand d[] = {demand(more, 1, second), demand(some, 1, first)};
                struct plan_input in = input(shapes, d, 2), alone;
                struct plan p, q;

                shapes[1].provisioner = 1;
                shapes[1].closed = chance(&s, 2) ? "no capacity" : NULL;
                in.provisioners = own;
                in.provisioner_count = 2;
                alone = in;
                alone.demands = d + 1;
                alone.demand_count = 1;
                plan_make(&in, &p);
                plan_make(&alone, &q);
                assert_int_equal(p.shapes[0].wished, q.shapes[0].wished);
                assert_int_equal(p.demands[1].wished, q.demands[0].wished);
                plan_deinit(&p);
                plan_deinit(&q);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_cheapest_for_the_jobs),
                cmocka_unit_test(test_where_the_files_are),
                cmocka_unit_test(test_nodes_that_are_there),
                cmocka_unit_test(test_a_closed_shape),
                cmocka_unit_test(test_turns),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_idle_nodes),
                cmocka_unit_test(test_by_chance),
                cmocka_unit_test(test_no_shape_holds_up_another),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
