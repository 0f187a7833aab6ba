/* Places by cost class: which ones are alike, and that the best one is found without asking all. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/test_help.h"

#define GB  1000000000u
#define AD  "[Cpus=1; TotalCpus=1; Memory=100; Disk=100]"
#define TEN "[Cpus=10; TotalCpus=10; Memory=1000; Disk=1000]"

static struct queue *queue_at(struct core *c, const char *agent)
{
        return agent_find(c, agent)->queues;
}

static void test_alike(void **state)
{
        struct core *c = *state;
        struct core_cost one, two;
        struct request *r = submit(c, NULL, 1, big_file_100_s);

        offer(c, "n1", AD);
        offer(c, "n2", AD);
        offer(c, "n3", AD);
        assert_ptr_equal(queue_at(c, "n1")->cost_class, queue_at(c, "n2")->cost_class);
        link_to(c, "n1", 1000, 100000000);
        link_to(c, "n2", 1000, 120000000);
        assert_ptr_equal(queue_at(c, "n1")->cost_class, queue_at(c, "n2")->cost_class);
        assert_ptr_not_equal(queue_at(c, "n1")->cost_class, queue_at(c, "n3")->cost_class);
        cost_of(c, &r->parts[0], 0, queue_at(c, "n1"), &one);
        cost_of(c, &r->parts[0], 0, queue_at(c, "n2"), &two);
        assert_int_equal(one.fetch_ms, two.fetch_ms);
        assert_in_range(one.fetch_ms, 8400, 9900); /* what both have measured */
        link_to(c, "n2", 1000, 20000000);
        assert_ptr_not_equal(queue_at(c, "n1")->cost_class, queue_at(c, "n2")->cost_class);
        offer(c, "n1", "[Cpus=1; TotalCpus=1; Memory=100; Disk=100; Speed=2.0]");
        offer(c, "n4", "[Cpus=1; TotalCpus=1; Memory=100; Disk=100; Price=2.0]");
        assert_ptr_not_equal(queue_at(c, "n3")->cost_class, queue_at(c, "n4")->cost_class);
        assert_int_equal(c->data->cost_class_count, 4);
        cost_of(c, &r->parts[0], 0, queue_at(c, "n1"), &one);
        assert_int_equal(one.run_ms, 50000);
        assert_null(core_check(c));
}

static void run_one(struct core *c, const char *agent, int64_t run_ms)
{
        const char *const program[] = {"Cmd", "\"/p\"", NULL};
        const struct request *r = submit(c, NULL, 1, program);
        BUF_CLEANUP struct buf want = {0};

        offer(c, agent, AD);
        buf_printf(&want, "%s/default %llu 0\n", agent, (unsigned long long)r->id);
        expect_assigned(c, buf_z(&want));
        started(c, agent, r->id, 0);
        pass_time(c, run_ms);
        ended(c, agent, r->id, 0);
}

/* Runs of a program whose time is anybody's guess do not make a place a slow one; a place that is slow is
 * found out. */
static void test_luck_is_no_pace(void **state)
{
        struct core *c = *state;
        uint32_t random = 1;

        for (unsigned i = 0; i < 100; i++) { /* from 2 to 256 s, by chance */
                random = random * 1664525u + 1013904223u;
                run_one(c, i % 2 ? "n2" : "n1", (int64_t)2000 << (random >> 29));
                assert_true(estimate_slowness(queue_at(c, "n1")) == 1);
                assert_ptr_equal(queue_at(c, "n1")->cost_class,
                                 agent_find(c, i ? "n2" : "n1")->queues->cost_class);
        }
        for (unsigned i = 0; i < 100; i++)
                run_one(c, i % 2 ? "n4" : "n3", i % 2 ? 90000 + i * 10 : 30000 + i * 10);
        assert_true(estimate_slowness(queue_at(c, "n4")) > 1.2 * estimate_slowness(queue_at(c, "n3")));
        assert_null(core_check(c));
}

/* No more than a few kinds of places are told apart: the rest goes where it fits best. */
static void test_many_profiles(void **state)
{
        struct core *c = *state;
        double price = 1;

        for (unsigned i = 0; i < 2 * COST_CLASSES_MAX; i++, price *= 1.03) {
                char name[8], ad[100];

                snprintf(name, sizeof(name), "n%u", i);
                snprintf(ad, sizeof(ad), "[Cpus=1; TotalCpus=1; Memory=100; Disk=100; Price=%f]", price);
                offer(c, name, ad);
        }
        assert_int_equal(c->data->cost_class_count, COST_CLASSES_MAX);
        for (unsigned i = 0; i < 2 * COST_CLASSES_MAX; i++) {
                char name[8];

                snprintf(name, sizeof(name), "n%u", i);
                offer(c, name, "[Cpus=1; TotalCpus=1; Memory=100; Disk=100; Price=1.0]");
        }
        assert_in_range(c->data->cost_class_count, 1, 3);
}

static uint64_t looks_for(struct core *c, const char *const *attributes, const char *assigned)
{
        uint64_t before = c->matching->looks;
        BUF_CLEANUP struct buf want = {0};

        submit(c, NULL, 1, attributes);
        buf_printf(&want, "%s/default %llu 0\n", assigned, (unsigned long long)core_request_last(c));
        expect_assigned(c, buf_z(&want));
        return c->matching->looks - before;
}

/* Three hundred places that wait: a job looks at a few of them, whether nobody holds its file, one does, or
 * all do. */
static void test_few_are_asked(void **state)
{
        const struct core_file file = {own_id_of("http://a/big"), GB};
        struct core *c = *state;
        char name[8];

        for (unsigned i = 0; i < 300; i++) {
                snprintf(name, sizeof(name), "n%u", i);
                offer(c, name, TEN);
                link_to(c, name, 1000, i % 10 == 3 ? 900000000 + i * 1000 : 40000000 + i * 1000);
        }
        core_match(c);
        c->config.check_choices = true;
        assert_in_range(looks_for(c, big_file_100_s, "n3"), 1, 30);
        core_cache_delta(c, "n77", &file, 1, NULL, 0, false);
        assert_in_range(looks_for(c, big_file_100_s, "n77"), 1, 30);
        for (unsigned i = 0; i < 300; i++) {
                snprintf(name, sizeof(name), "n%u", i);
                core_cache_delta(c, name, &file, 1, NULL, 0, false);
        }
        assert_in_range(looks_for(c, big_file_100_s, "n0"), 1, 30);
        assert_null(core_check(c));
}

/* What a request wanted is forgotten when it ends, however much it was. */
static void test_wanted_and_forgotten(void **state)
{
        const char *const own[] = {"~TransferInput", "\"http://a/$(Process)\"", NULL};
        const struct core_file file = {own_id_of("http://a/19999"), 1};
        struct core_command cmd = {.action = CORE_ACT_REMOVE};
        struct core *c = *state;
        struct request *r[2];
        uint64_t n, wanted = 0;

        core_agent_connected(c, "n1");
        for (int i = 0; i < 2; i++)
                r[i] = submit(c, NULL, 20000, own);
        while (core_tick(c) == 0)
                ;
        core_cache_delta(c, "n1", &file, 1, NULL, 0, false);
        for (int i = 0; i < 2; i++)
                assert_int_equal(set_count(locality_members(r[i]->parts[0].inputs, agent_find(c, "n1"))), 1);
        assert_null(core_check(c));
        for (cmd.request = 1; cmd.request <= 2; cmd.request++)
                assert_int_equal(core_act(c, &cmd, &n, NULL), 0);
        core_cache_delta(c, "n1", NULL, 0, NULL, 0, true);
        core_cache_delta(c, "n1", &file, 1, NULL, 0, false);
        while (core_tick(c) == 0)
                ;
        assert_null(core_check(c));
        for (size_t i = 0; i < 256; i++)
                wanted += c->data->wanted[i] ? idmap_count(c->data->wanted[i]) : 0;
        assert_int_equal(wanted, 0);
        assert_int_equal(c->data->locality_count, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_alike, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_luck_is_no_pace, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_many_profiles, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_few_are_asked, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_wanted_and_forgotten, bare_core, bare_core_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
