/* Files being fetched by an agent attract jobs that read them, until they have arrived or the fetch has
 * failed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/test_help.h"

#define GB  1000000000u
#define TEN "[Cpus=10; TotalCpus=10; Memory=1000; Disk=1000]"

static void two_alike(struct core *c)
{
        c->config.check_choices = true;
        for (int i = 1; i <= 2; i++) {
                offer(c, i == 1 ? "n1" : "n2", TEN);
                link_to(c, i == 1 ? "n1" : "n2", 2000, 100000000);
        }
}

static int64_t fetch_ms(struct core *c, const struct request *r, const char *agent)
{
        struct core_cost cost;

        cost_of(c, &r->parts[0], 0, agent_find(c, agent)->queues, &cost);
        return cost.fetch_ms;
}

static bool comes(struct core *c, const char *agent)
{
        return inflight_to(agent_find(c, agent), own_id_of("http://a/big"));
}

/* The other place has more room, but would have to fetch it as well. */
static void test_same_place(void **state)
{
        const struct core_file file = {own_id_of("http://a/big"), GB};
        struct core *c = *state;
        struct request *r;

        two_alike(c);
        submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "n1/default 1 0\n");
        r = submit(c, NULL, 1, big_file_100_s);
        assert_true(comes(c, "n1"));
        assert_false(comes(c, "n2"));
        assert_int_equal(2 * fetch_ms(c, r, "n1"), fetch_ms(c, r, "n2"));
        expect_assigned(c, "n1/default 2 0\n");
        core_cache_delta(c, "n1", &file, 1, NULL, 0, false);
        assert_false(comes(c, "n1"));
        assert_int_equal(fetch_ms(c, r, "n1"), 0);
        assert_null(core_check(c));
        started(c, "n1", 1, 0);
        core_cache_delta(c, "n1", NULL, 0, &file.id, 1, false);
        ended(c, "n1", 1, 0);
        assert_false(comes(c, "n1"));
        assert_null(core_check(c));
        assert_false(c->matching->wrong_choice);
}

/* Half of a long way is longer than all of a short one. */
static void test_not_to_far_places(void **state)
{
        struct core *c = *state;

        c->config.check_choices = true;
        offer(c, "far", TEN);
        link_to(c, "far", 2000, 1000000);
        submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "far/default 1 0\n");
        assert_true(comes(c, "far"));
        offer(c, "near", TEN);
        link_to(c, "near", 2000, 100000000);
        submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "near/default 2 0\n");
        assert_false(c->matching->wrong_choice);
}

/* A file counts as being fetched as long as one of the attempts that wait for it exists. */
static void test_until_the_last_ends(void **state)
{
        struct core *c = *state;

        two_alike(c);
        for (int i = 0; i < 2; i++)
                submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "n1/default 1 0\nn1/default 2 0\n");
        for (uint64_t id = 1; id <= 2; id++) {
                started(c, "n1", id, 0);
                assert_true(comes(c, "n1"));
                ended(c, "n1", id, 0);
                assert_null(core_check(c));
        }
        assert_false(comes(c, "n1"));
        assert_int_equal(idmap_count(c->data->inflight), 0);
        submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "n2/default 3 0\n"); /* it has more room */
}

/* The configuration of stores changes while files are being fetched. */
static void test_read_anew(void **state)
{
        const struct str prefixes[] = {STR("http://b/"), STR("http://a/")};
        const struct core_store store = {.urls = {STR("lab"), prefixes, 2}};
        const struct core_data data = {.stores = &store, .store_count = 1};
        struct core *c = *state;

        two_alike(c);
        submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "n1/default 1 0\n");
        assert_int_equal(core_data_set(c, &data, NULL), 0);
        assert_null(core_check(c));
        started(c, "n1", 1, 0);
        ended(c, "n1", 1, 0);
        assert_int_equal(idmap_count(c->data->inflight), 0);
        assert_null(core_check(c));
}

#define SLOW 10000000 /* bytes per second: a GB takes 100 s */

static const char *const other_file_100_s[] = {"TransferInput",
                                               "\"http://a/other\"",
                                               "TransferInputSizes",
                                               "\"1000000000\"",
                                               "ExpectedRunTime",
                                               "100",
                                               NULL};

static int64_t link_ms(struct core *c, const struct request *r, const char *agent)
{
        struct core_cost cost;

        cost_of(c, &r->parts[0], 0, agent_find(c, agent)->queues, &cost);
        assert_int_equal(cost.total_ms,
                         cost.wait_ms + cost_input_ms(&cost) + cost.run_ms + cost.send_ms + cost.price_ms);
        return cost.link_ms;
}

/* Transfers to a place load the links of all places of its cost class. */
static void test_loads_the_link(void **state)
{
        const char *const small[] = {"TransferInput", "\"http://a/small\"", "TransferInputSizes",
                                     "\"10000000\"", NULL};
        const struct core_file file = {own_id_of("http://a/big"), GB};
        struct request *r, *s, *same;
        struct core *c = *state;

        two_alike(c);
        offer(c, "n3", TEN);
        link_to(c, "n3", 2000, SLOW);
        submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "n1/default 1 0\n");
        r = submit(c, NULL, 1, other_file_100_s);
        s = submit(c, NULL, 1, small);
        same = submit(c, NULL, 1, big_file_100_s);
        assert_int_equal(link_ms(c, r, "n1"), 5000); /* half of it has come */
        assert_int_equal(link_ms(c, r, "n2"), 5000); /* its link may be the same */
        assert_int_equal(link_ms(c, r, "n3"), 0);
        assert_int_equal(link_ms(c, s, "n2"), 50);   /* a hundredth of the other: it overtakes it */
        assert_int_equal(link_ms(c, same, "n1"), 0); /* it does not wait for itself */
        core_cache_delta(c, "n1", &file, 1, NULL, 0, false);
        assert_int_equal(link_ms(c, r, "n1"), 0);
        assert_int_equal(link_ms(c, r, "n2"), 0);
        assert_null(core_check(c));
}

/* The load follows the agent to another cost class. */
static void test_load_moves(void **state)
{
        struct core *c = *state;
        struct request *r;

        two_alike(c);
        submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "n1/default 1 0\n");
        r = submit(c, NULL, 1, other_file_100_s);
        link_to(c, "n1", 2000, SLOW);
        assert_int_equal(link_ms(c, r, "n1"), 50000);
        assert_int_equal(link_ms(c, r, "n2"), 0);
        assert_null(core_check(c));
        link_to(c, "n1", 2000, 100000000);
        assert_int_equal(link_ms(c, r, "n2"), 5000);
        assert_null(core_check(c));
        core_agent_away(c, "n1");
        started(c, "n1", 1, 0);
        ended(c, "n1", 1, 0);
        assert_int_equal(link_ms(c, r, "n2"), 0);
        assert_null(core_check(c));
}

/* A loaded link makes the other place the nearer one, though it is slower when both are free. */
static void test_spreads_over_links(void **state)
{
        const char *const own[] = {"~TransferInput",
                                   "\"http://a/$(f)\"",
                                   "TransferInputSizes",
                                   "\"1000000000\"",
                                   "ExpectedRunTime",
                                   "100",
                                   "BetterPlaceWait",
                                   "0",
                                   NULL};
        struct core *c = *state;

        c->config.check_choices = true;
        offer(c, "n1", TEN);
        link_to(c, "n1", 2000, 100000000);
        offer(c, "n2", TEN);
        link_to(c, "n2", 2000, 40000000);
        submit(c, "1\n2\n3\n4\n5\n6\n7\n8\n", 8, own);
        core_match(c);
        assert_true(agent_find(c, "n1")->queues->attempt_count >= 4);
        assert_in_range(agent_find(c, "n2")->queues->attempt_count, 2, 4);
        assert_int_equal(
                agent_find(c, "n1")->queues->attempt_count + agent_find(c, "n2")->queues->attempt_count, 8);
        assert_null(core_check(c));
        assert_false(c->matching->wrong_choice);
        buf_reset(&bare_assigned);
}

/* Both places have a load on their link, a file of the job's own that is being fetched, and that a distant
 * place holds: the cheaper one is chosen, in any order of examination. (Jobs may give different sizes for
 * one file; for the last job it is small.) */
static void cheaper_of_two(struct core *c, int cheap)
{
        const char *const to[][7] = {{"TransferInput", "\"http://a/big\"", "TransferInputSizes",
                                      "\"200000000\"", "Requirements", "TARGET.Id == 1", NULL},
                                     {"TransferInput", "\"http://a/big\"", "TransferInputSizes",
                                      "\"200000000\"", "Requirements", "TARGET.Id == 2", NULL}};
        const char *const both[] = {"TransferInput",
                                    "\"http://a/big,http://a/new\"",
                                    "TransferInputSizes",
                                    "\"1000,1000000000\"",
                                    "ExpectedRunTime",
                                    "3600",
                                    "PriceWeight",
                                    "0.1",
                                    NULL};
        const struct core_file held = {own_id_of("http://a/big"), 1000};

        c->config.check_choices = true;
        for (int i = 1; i <= 2; i++) {
                char name[3] = {'n', (char)('0' + i), 0}, ad[100];

                snprintf(ad, sizeof(ad), "[Cpus=10; TotalCpus=10; Memory=1000; Disk=1000; Id=%d; Price=%d]",
                         i, i == cheap ? 1 : 2);
                offer(c, name, ad);
                link_to(c, name, 2000, 100000000);
        }
        offer(c, "far", TEN);
        link_to(c, "far", 2000, SLOW);
        submit(c, NULL, 1, to[0]);
        submit(c, NULL, 1, to[1]);
        expect_assigned(c, "n1/default 1 0\nn2/default 2 0\n");
        core_cache_delta(c, "far", &held, 1, NULL, 0, false);
        submit(c, NULL, 1, both);
        expect_assigned(c, cheap == 1 ? "n1/default 3 0\n" : "n2/default 3 0\n");
        assert_false(c->matching->wrong_choice);
        assert_null(core_check(c));
}

static void test_its_own_file_is_no_load(void **state)
{
        cheaper_of_two(*state, 1);
}

static void test_nor_at_the_other_place(void **state)
{
        cheaper_of_two(*state, 2);
}

/* All jobs of a class with only one suitable place go there, whatever the load. */
static void test_nobody_is_left(void **state)
{
        const char *const own[] = {"~TransferInput", "\"http://a/$(f)\"", "TransferInputSizes",
                                   "\"1000000000\"", NULL};
        struct core *c = *state;

        submit(c, "1\n2\n3\n4\n5\n6\n7\n8\n", 8, own);
        core_match(c);
        offer(c, "n1", TEN);
        link_to(c, "n1", 2000, SLOW);
        core_match(c);
        assert_int_equal(agent_find(c, "n1")->queues->attempt_count, 8);
        buf_reset(&bare_assigned);
}

/* The far place would have the file later than the near one, which is busy and is already fetching it. */
static void test_waits_where_it_comes_to(void **state)
{
        const char *const brief[] = {"TransferInput",
                                     "\"http://a/big\"",
                                     "TransferInputSizes",
                                     "\"1000000000\"",
                                     "ExpectedRunTime",
                                     "10",
                                     NULL};
        struct core *c = *state;

        offer(c, "near", "[Cpus=1; TotalCpus=1; Memory=1000; Disk=1000]");
        link_to(c, "near", 2000, 100000000);
        offer(c, "far", TEN);
        link_to(c, "far", 2000, SLOW);
        submit(c, NULL, 2, brief);
        expect_assigned(c, "near/default 1 0\n");
        assert_null(core_check(c));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_same_place, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_not_to_far_places, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_until_the_last_ends, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_read_anew, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_loads_the_link, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_load_moves, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_spreads_over_links, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_its_own_file_is_no_load, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_nor_at_the_other_place, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_nobody_is_left, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_waits_where_it_comes_to, bare_core, bare_core_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
