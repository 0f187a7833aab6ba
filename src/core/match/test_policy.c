/* Placement policies: how the jobs of one request are given to the places that could all take them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/test_help.h"

#define AD "[Cpus=%u; TotalCpus=%u; Memory=10000; Disk=10000%s]"

static struct queue *place(struct core *c, const char *name, unsigned free, unsigned total, const char *more)
{
        char ad[128];

        snprintf(ad, sizeof(ad), AD, free, total, more);
        return offer(c, name, ad);
}

/* How many jobs each place has, in the order of the names: "4 3 3". */
static void expect_shares(struct core *c, const char *text)
{
        BUF_CLEANUP struct buf have = {0};
        size_t count;
        struct core_agent **agents;

        core_match(c);
        agents = agents_sorted(c, &count);
        for (size_t i = 0; i < count; i++)
                buf_printf(&have, "%s%u", i ? " " : "", agent_attempts(agents[i]));
        free(agents);
        assert_string_equal(buf_z(&have), text);
        assert_null(core_check(c));
}

static const char *const passive[] = {"PlacementPolicy", "\"passive\"", NULL},
                         *const cluster[] = {"PlacementPolicy", "\"cluster_monitor\"", NULL},
                         *const monitor[] = {"PlacementPolicy", "\"queue_monitor\"", NULL},
                         *const ranked[] = {"PlacementPolicy", "\"passive\"", "Rank",
                                            "ifThenElse(TARGET.Name == \"n3\", 1, 0)", NULL};

/* Equals take turns, and go on where an earlier request has ended. */
static void test_turns(void **state)
{
        struct core *c = *state;

        for (unsigned i = 0; i < 3; i++)
                place(c, (const char *[]){"n1", "n2", "n3"}[i], 90, 90, "");
        submit(c, NULL, 100, passive);
        expect_shares(c, "34 33 33");
        submit(c, NULL, 1, passive);
        submit(c, NULL, 1, passive);
        expect_shares(c, "34 34 34");
        submit(c, NULL, 2, passive);
        submit(c, NULL, 1, passive);
        expect_shares(c, "35 35 35");
}

/* A class that is given more groups than one pass takes goes on with the next. */
static void test_many(void **state)
{
        struct core *c = *state;

        for (unsigned i = 0; i < 400; i++) {
                char name[8];

                snprintf(name, sizeof(name), "n%03u", i);
                place(c, name, 60, 60, "");
        }
        submit(c, NULL, 20000, passive);
        assert_true(core_match(c)); /* there is more to do */
        while (core_match(c))
                ;
        for (unsigned i = 0; i < 400; i++) {
                char name[8];

                snprintf(name, sizeof(name), "n%03u", i);
                assert_in_range(agent_attempts(agent_find(c, name)), 44, 56);
        }
        assert_int_equal(request_find(c, 1)->active, 20000);
        assert_null(core_check(c));
}

/* One after the other in the search order, each until it has no room; equals in turn. */
static void test_search_order(void **state)
{
        struct core *c = *state;

        place(c, "n1", 4, 4, "; SearchOrder=2");
        place(c, "n2", 4, 4, "; SearchOrder=1");
        place(c, "n3", 4, 4, "; SearchOrder=2");
        place(c, "n4", 4, 4, "");
        submit(c, NULL, 3, passive);
        expect_shares(c, "0 3 0 0");
        submit(c, NULL, 5, passive);
        expect_shares(c, "2 4 2 0");
        submit(c, NULL, 6, passive);
        expect_shares(c, "4 4 4 2");
}

static void test_rank_goes_first(void **state)
{
        struct core *c = *state;

        place(c, "n1", 9, 9, "; SearchOrder=1");
        place(c, "n2", 9, 9, "; SearchOrder=1");
        place(c, "n3", 9, 9, "; SearchOrder=5");
        submit(c, NULL, 11, ranked);
        expect_shares(c, "1 1 9");
}

/* A policy that one request asks for is no other's, also where the jobs are the same otherwise. */
static void test_of_a_request(void **state)
{
        const char *const none[] = {NULL};
        struct core *c = *state;

        place(c, "n1", 60, 60, "");
        place(c, "n2", 40, 40, "");
        submit(c, NULL, 10, none); /* all to the place with most room */
        expect_shares(c, "10 0");
        submit(c, NULL, 10, passive);
        expect_shares(c, "15 5");
        c->config.placement = CORE_PLACE_PASSIVE;
        submit(c, NULL, 10, none);
        expect_shares(c, "20 10");
}

/* Clusters come to the same load: what is in use already counts. */
static void test_load_of_clusters(void **state)
{
        struct core *c = *state;

        place(c, "n1", 10, 100, ""); /* 90 in use by others */
        place(c, "n2", 100, 100, "");
        place(c, "n3", 50, 50, "");
        submit(c, NULL, 60, cluster);
        expect_shares(c, "0 40 20");
        submit(c, NULL, 75, cluster);
        expect_shares(c, "0 90 45");
        submit(c, NULL, 20, cluster);
        expect_shares(c, "8 98 49");
}

static void run_one(struct core *c, const char *agent, uint64_t request, uint32_t member, int64_t wait_ms)
{
        pass_time(c, wait_ms);
        started(c, agent, request, member);
        pass_time(c, 1000);
        ended(c, agent, request, member);
}

/* Jobs go where they have started soonest so far, until so many wait there that others are quicker. */
static void test_measured_waits(void **state)
{
        struct core *c = *state;
        struct queue *slow = place(c, "n1", 8, 8, ""), *quick = place(c, "n2", 8, 8, "");

        submit(c, NULL, 2, monitor);
        expect_shares(c, "1 1"); /* nothing is known of either */
        run_one(c, request_job(request_find(c, 1), 0)->queue == quick ? "n2" : "n1", 1, 0, 1000);
        run_one(c, request_job(request_find(c, 1), 1)->queue == quick ? "n2" : "n1", 1, 1, 1000);
        slow->measures = (struct queue_measures){.wait_ms = 60000, .gap_ms = 10000};
        quick->measures = (struct queue_measures){.wait_ms = 5000, .gap_ms = 20000};
        place(c, "n1", 8, 8, "");
        place(c, "n2", 8, 8, "");
        submit(c, NULL, 3, monitor);
        expect_shares(c, "0 3"); /* 5, 25 and 45 s; then 65 against 60 */
        submit(c, NULL, 1, monitor);
        expect_shares(c, "1 3");
        submit(c, NULL, 2, monitor);
        expect_shares(c, "2 4"); /* 65 against 70, then 85 against 70 */
}

/* What a monitor outside says of a queue's wait comes before what was measured. */
static void test_external_monitor(void **state)
{
        struct core *c = *state;
        struct queue *q = place(c, "n1", 8, 8, "; QueueWait=5");

        q->measures = (struct queue_measures){.wait_ms = 600000, .gap_ms = 1};
        place(c, "n2", 8, 8, "")->measures = (struct queue_measures){.wait_ms = 60000, .gap_ms = 1};
        submit(c, NULL, 4, monitor);
        expect_shares(c, "4 0");
}

/* The waits and the throughput that events tell of. */
static void test_measures(void **state)
{
        struct core *c = *state;
        struct queue *q = place(c, "n1", 8, 8, "");

        submit(c, NULL, 2, monitor);
        expect_shares(c, "2");
        assert_true(q->measures.wait_ms == 0);
        run_one(c, "n1", 1, 0, 30000);
        assert_true(q->measures.wait_ms == 30000 && q->measures.gap_ms == 0);
        run_one(c, "n1", 1, 1, 9000); /* it has waited for 40 s */
        assert_true(q->measures.wait_ms == 31000);
        assert_true(q->measures.gap_ms == 10000);
}

static void test_names(void **state)
{
        enum core_placement p;

        (void)state;
        for (int i = 0; i < CORE_PLACEMENTS; i++) {
                assert_int_equal(
                        core_placement_parse(str_of(core_placement_name((enum core_placement)i)), &p), 0);
                assert_int_equal(p, i);
                assert_int_equal(
                        core_placement_of_job(str_of(core_placement_name((enum core_placement)i)), &p),
                        i == CORE_PLACE_FIFO ? -EINVAL : 0);
        }
        assert_int_equal(core_placement_parse(STR("near"), &p), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_turns),          TEST(test_many),
                TEST(test_search_order),   TEST(test_rank_goes_first),
                TEST(test_of_a_request),   TEST(test_load_of_clusters),
                TEST(test_measured_waits), TEST(test_external_monitor),
                TEST(test_measures),       cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
