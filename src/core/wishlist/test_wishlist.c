/* Wished nodes, the machines started for them, and their cost; a replay gives the same. */
#include "core/test_story.h"

#include "core/model/core_parts.h"
#include "core/wishlist/wishlist.h"

#define AD "Cpus = 2; TotalCpus = 2; Memory = 4000; TotalMemory = 4000; Disk = 100000; "

struct cloud {
        struct plan_provisioner provisioner;
        struct str name;
        struct plan_shape shapes[2];
        struct wishlist_shape more[2];
        struct ad *ads[2];
        struct wishlist_settings s;
        struct wishlist w;
};

static void cloud_init(struct cloud *x, struct core *c)
{
        *x = (struct cloud){.provisioner = {10, 3600000, 60000, 120000}, .name = STR("cloud")};
        x->shapes[0] = (struct plan_shape){
                .name = STR("small"), .room = {2, 4000, 100000}, .price_micro = 1000000, .max = 9};
        x->shapes[1] = (struct plan_shape){
                .name = STR("arm"), .room = {8, 4000, 100000}, .price_micro = 1000000, .max = 9};
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(ad_parse(core_symbols(c),
                                          i ? STR("[ Arch = \"arm\"; Cpus = 8; Requirements = true ]")
                                            : STR("[ Arch = \"X86_64\"; Cpus = 2; Requirements = true ]"),
                                          CLASSAD_NEW, &x->ads[i], NULL),
                                 0);
                x->more[i] = (struct wishlist_shape){.provisioner = x->name, .ad = x->ads[i]};
        }
        x->s = (struct wishlist_settings){.plan = {.provisioners = &x->provisioner,
                                                   .provisioner_count = 1,
                                                   .shapes = x->shapes,
                                                   .shape_count = 2,
                                                   .rules = {.hour_micro = -1, .month_micro = -1}},
                                          .shapes = x->more,
                                          .provisioners = &x->name,
                                          .horizon_ms = 600000};
}

static void cloud_plan(struct cloud *x, struct core *c)
{
        wishlist_deinit(&x->w);
        wishlist_make(c, &x->s, &x->w);
}

static void cloud_deinit(struct cloud *x)
{
        wishlist_deinit(&x->w);
        ad_free(x->ads[0]);
        ad_free(x->ads[1]);
}

static struct node_instance instance(struct story *s, int64_t cost)
{
        return (struct node_instance){.provisioner = STR("cloud"),
                                      .shape = STR("small"),
                                      .launch = STR("l1"),
                                      .account = STR(""),
                                      .id = STR("i-1"),
                                      .price_micro = 1000000,
                                      .paid_until_ms = s->now + 3600000,
                                      .cost_micro = cost};
}

static void replays(struct story *s)
{
        BUF_CLEANUP struct buf here = {0}, there = {0}, again = {0};
        struct core *c = story_core(s, true), *d = story_core(s, true);

        for (size_t i = 0; i < s->log_count; i++)
                assert_int_equal(core_replay(c, buf_view(&s->log[i]), NULL), 0);
        core_snapshot(s->core, &here);
        core_snapshot(c, &there);
        assert_int_equal(here.n, there.n);
        assert_memory_equal(here.p, there.p, here.n);
        assert_int_equal(core_restore(d, buf_view(&here), NULL), 0);
        core_snapshot(d, &again);
        assert_int_equal(here.n, again.n);
        assert_memory_equal(here.p, again.p, here.n);
        core_clock(d, s->now, 1000);
        assert_int_equal(core_spent_micro(d), core_spent_micro(s->core));
        core_free(c);
        core_free(d);
}

/* Jobs go to the shapes that they suit; those of nobody's shape are left out. */
static void test_who_asks(void **state)
{
        struct story *s = *state;
        struct cloud x;

        story_submit(
                s, 4,
                (const char *const[]){"Requirements", "TARGET.Arch == \"X86_64\"", "RequestCpus", "1", NULL},
                NULL);
        story_submit(
                s, 3,
                (const char *const[]){"Requirements", "TARGET.Arch == \"arm\"", "RequestCpus", "8", NULL},
                NULL);
        story_submit(s, 5, (const char *const[]){"Requirements", "TARGET.Arch == \"vax\"", NULL}, NULL);
        cloud_init(&x, s->core);
        cloud_plan(&x, s->core);
        assert_int_equal(x.w.in.demand_count, 2);
        assert_int_equal(x.w.left_out, 5);
        assert_int_equal(x.w.plan.shapes[0].wished, 2);
        assert_int_equal(x.w.plan.shapes[1].wished, 3);
        x.s.wait_ms = 5000; /* they have only come */
        cloud_plan(&x, s->core);
        assert_int_equal(x.w.in.demand_count, 0);
        story_wait(s, 5000);
        cloud_plan(&x, s->core);
        assert_int_equal(x.w.in.demand_count, 2);
        cloud_deinit(&x);
}

/* Thousands of classes of one user, with expensive expressions, leave wishes for others. */
static void test_one_of_many_kinds(void **state)
{
        struct story *s = *state;
        static const char *const memory[] = {"1 + $(Process)", "901 + $(Process)", "1801 + $(Process)"};
        BUF_CLEANUP struct buf sum = {0};
        struct cloud x;
        uint64_t steps;

        s->owner = "mallory@local";
        for (size_t i = 0; i < 3; i++)
                story_submit(s, 900,
                             (const char *const[]){"Requirements", "true", "RequestCpus", "1",
                                                   "RequestMemory", memory[i], NULL},
                             NULL);
        cloud_init(&x, s->core);
        cloud_plan(&x, s->core);
        assert_int_equal(x.w.in.demand_count, WISHLIST_DEMANDS_MAX); /* nobody else wants any */
        s->owner = NULL;
        SUBMIT(1, "RequestCpus", "2");
        cloud_plan(&x, s->core);
        bool seen = false;
        for (size_t i = 0; i < x.w.in.demand_count; i++)
                seen |= str_eqz(x.w.who[i].owner, "ann@local");
        assert_true(seen);
        s->owner = "mallory@local";
        buf_addz(&sum, "sum({1");
        for (unsigned i = 0; i < 9000; i++)
                buf_addz(&sum, ",1");
        buf_addz(&sum, "}) + RequestMemory < 0");
        story_submit(s, 200,
                     (const char *const[]){"Requirements", buf_z(&sum), "RequestMemory", memory[0], NULL},
                     NULL);
        steps = s->core->eval.steps_all;
        cloud_plan(&x, s->core);
        assert_true(s->core->eval.steps_all - steps < 2 * WISHLIST_STEPS_OF_ONE);
        cloud_deinit(&x);
}

/* Jobs that want less than nothing, by an expression, make no room for others. */
static void test_less_than_nothing(void **state)
{
        struct story *s = *state;
        struct cloud x;

        s->owner = "mallory@local";
        story_submit(s, 2,
                     (const char *const[]){"Requirements", "TARGET.Arch == \"X86_64\"", "RequestCpus",
                                           "TARGET.Cpus - 1000", "RequestMemory", "-TARGET.Cpus", NULL},
                     NULL);
        s->owner = NULL;
        story_submit(
                s, 3,
                (const char *const[]){"Requirements", "TARGET.Arch == \"X86_64\"", "RequestCpus", "2", NULL},
                NULL);
        cloud_init(&x, s->core);
        cloud_plan(&x, s->core);
        assert_int_equal(x.w.left_out, 2);
        assert_int_equal(x.w.in.demand_count, 1);
        assert_int_equal(x.w.plan.shapes[0].wished, 3);
        cloud_deinit(&x);
}

/* Each state of a machine, and the plan's decision for it. */
static void test_a_life(void **state)
{
        struct story *s = *state;
        struct node_instance i = instance(s, 1000000), said;
        struct core_node n;
        struct cloud x;

        SUBMIT(2, "RequestCpus", "1");
        cloud_init(&x, s->core);
        x.shapes[1].max = 0;
        cloud_plan(&x, s->core);
        assert_int_equal(x.w.plan.shapes[0].wished, 1);
        assert_int_equal(core_node_launch(s->core, "n1", &i, NULL), 0);
        assert_int_equal(core_node_launch(s->core, "n1", &i, NULL), CORE_INVALID);
        assert_int_equal(core_spent_micro(s->core), 1000000);
        replays(s);
        cloud_plan(&x, s->core);
        assert_int_equal(x.w.plan.shapes[0].wished, 0);
        assert_int_equal(x.w.plan.demands[0].placed, 2);
        story_wait(s, 30000);
        story_offer(s, "n1", "[" AD "]", 2);
        assert_int_equal(core_node_get(s->core, "n1", &n), 0);
        assert_string_equal(n.state_name, "busy");
        assert_int_equal(n.boot_ms, 30000);
        cloud_plan(&x, s->core);
        assert_int_equal(x.w.shapes[0].boot_ms, 30000);
        assert_int_equal(x.w.nodes[0].idle_ms, -1);
        i.cost_micro = 500000;
        i.id = STR("i-2");
        assert_int_equal(core_node_instance(s->core, "n1", &i), 0);
        assert_int_equal(core_node_instance(s->core, "n2", &i), CORE_UNKNOWN);
        assert_int_equal(core_spent_micro(s->core), 1500000);
        assert_int_equal(core_node_get(s->core, "n1", &n), 0);
        said = n.instance;
        assert_true(str_eqz(said.id, "i-2"));
        replays(s);
        assert_true(story_result(s, "n1", 0, 1, 0));
        assert_true(story_result(s, "n1", 1, 1, 0));
        cloud_plan(&x, s->core);
        assert_int_equal(x.w.nodes[0].idle_ms, 0);
        story_wait(s, 3600000 - 30000 - 60000);
        cloud_plan(&x, s->core);
        assert_int_equal(x.w.plan.leaves[0], PLAN_LEAVES_IDLE);
        assert_string_equal(x.w.names[0], "n1");
        story_wait(s, 62ll * 86400000);
        assert_int_equal(core_spent_micro(s->core), 0); /* another month */
        cloud_deinit(&x);
}

/* A new machine is near the stores that others of its shape were near, also when they are gone; jobs of other
 * files are another group. */
static void test_files_and_links(void **state)
{
        struct story *s = *state;
        static const struct str prefix[] = {{"https://lab/", 12}, {"https://far/", 12}};
        const struct core_store stores[] = {{.urls = {STR("lab"), &prefix[0], 1}},
                                            {.urls = {STR("far"), &prefix[1], 1}}};
        const struct core_data data = {.stores = stores, .store_count = 2};
        const struct core_link near_lab[] = {{STR("lab"), 1000, 1000000000}, {STR("far"), 1000, 1000000}};
        struct node_instance i = instance(s, 0);
        struct cloud x;

        assert_int_equal(core_data_set(s->core, &data, NULL), 0);
        cloud_init(&x, s->core);
        x.shapes[1] = (struct plan_shape){
                .name = STR("arm"), .room = {2, 4000, 100000}, .price_micro = 1100000, .max = 9};
        assert_int_equal(core_node_launch(s->core, "n1", &i, NULL), 0);
        story_offer(s, "n1", "[" AD "]", 2);
        core_links(s->core, "n1", near_lab, 2);
        core_agent_away(s->core, "n1");
        SUBMIT(2, "Requirements", "true", "RequestCpus", "2", "TransferInput", "\"https://lab/a\"",
               "TransferInputSizes", "\"1000000000\"", "ExpectedRunTime", "60");
        SUBMIT(2, "Requirements", "true", "RequestCpus", "2", "TransferInput", "\"https://far/b\"",
               "TransferInputSizes", "\"1000000000\"", "ExpectedRunTime", "60");
        cloud_plan(&x, s->core);
        assert_int_equal(x.w.in.demand_count, 2);
        for (size_t k = 0; k < 2; k++) {
                bool lab = x.w.demands[k].fetch_ms[0] < 5000;

                assert_int_equal(x.w.demands[k].fetch_ms[0], lab ? 1001 : 1000001);
                assert_int_equal(x.w.demands[k].fetch_ms[1], 80050); /* nobody has measured its links */
                assert_int_equal(x.w.demands[k].run_ms, 60000);
        }
        assert_int_equal(x.w.plan.wish_count, 2);
        for (size_t k = 0; k < 2;
             k++) /* the small machine has the lab's files, the other one costs a little more */
                assert_int_equal(x.w.plan.wishes[k].shape,
                                 x.w.demands[x.w.plan.wishes[k].demand].fetch_ms[0] < 5000 ? 0 : 1);
        cloud_deinit(&x);
}

int main(void)
{
        const struct CMUnitTest tests[] = {STORY(test_who_asks), STORY(test_one_of_many_kinds),
                                           STORY(test_less_than_nothing), STORY(test_a_life),
                                           STORY(test_files_and_links)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
