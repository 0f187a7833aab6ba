/* Which place a job goes to, and which job a place gets, for the sake of files. */
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
#define TWO "[Cpus=2; TotalCpus=2; Memory=100; Disk=100]"

static void holds(struct core *c, const char *agent, const char *url, uint64_t bytes)
{
        core_agent_connected(c, agent);
        core_cache_delta(c, agent, &(struct core_file){own_id_of(url), bytes}, 1, NULL, 0, false);
}

static const char *const big[] = {"TransferInput", "\"http://a/big\"", "TransferInputSizes", "\"1000000000\"",
                                  NULL};
static const char *const own[] = {"~TransferInput", "\"http://a/$(f)\"", "TransferInputSizes",
                                  "\"1000000000\"", NULL};

static const char *const thrifty_reader[] = {"TransferInput",
                                             "\"http://a/big\"",
                                             "TransferInputSizes",
                                             "\"1000000000\"",
                                             "ExpectedRunTime",
                                             "3600",
                                             "PriceWeight",
                                             "60",
                                             NULL};

static void test_job_finds_its_files(void **state)
{
        struct core *c = *state;

        offer(c, "n1", AD);
        offer(c, "n2", AD);
        holds(c, "n2", "http://a/big", GB);
        submit(c, NULL, 1, big);
        expect_assigned(c, "n2/default 1 0\n");
}

/* Files that would come in no time are worth more than a free processor more. */
static void test_small_files_count(void **state)
{
        const char *const small[] = {"TransferInput", "\"http://a/small\"", "TransferInputSizes",
                                     "\"4000000\"", NULL};
        struct core *c = *state;

        offer(c, "n1", TWO);
        offer(c, "n2", AD);
        holds(c, "n2", "http://a/small", 4000000);
        submit(c, NULL, 1, small);
        expect_assigned(c, "n2/default 1 0\n");
}

/* 1 GB that must come outweighs ten files that are there. */
static void test_bytes_not_files(void **state)
{
        const char *const many[] = {"TransferInput", "\"http://a/1,http://a/2,http://a/3,http://a/big\"",
                                    "TransferInputSizes", "\"10,10,10,1000000000\"", NULL};
        struct core *c = *state;

        offer(c, "n1", AD);
        offer(c, "n2", AD);
        holds(c, "n1", "http://a/1", 10);
        holds(c, "n1", "http://a/2", 10);
        holds(c, "n1", "http://a/3", 10);
        holds(c, "n2", "http://a/big", GB);
        submit(c, NULL, 1, many);
        expect_assigned(c, "n2/default 1 0\n");
}

static void test_rank_goes_first(void **state)
{
        const char *const ranked[] = {"TransferInput",
                                      "\"http://a/big\"",
                                      "TransferInputSizes",
                                      "\"1000000000\"",
                                      "Rank",
                                      "TARGET.Name == \"n1\"",
                                      NULL};
        struct core *c = *state;

        offer(c, "n1", AD);
        offer(c, "n2", AD);
        holds(c, "n2", "http://a/big", GB);
        submit(c, NULL, 1, ranked);
        expect_assigned(c, "n1/default 1 0\n");
}

static void test_faster_link_and_cheaper_place(void **state)
{
        static const struct str prefix[] = {{"http://a/", 9}};
        const struct core_store stores[] = {{.urls = {STR("a"), prefix, 1}}};
        const struct core_data data = {.stores = stores, .store_count = 1};
        const struct core_link slow[] = {{STR("a"), 1000, 1000000}}, fast[] = {{STR("a"), 1000, 100000000}};
        const char *const thrifty[] = {"ExpectedRunTime", "3600", "PriceWeight", "3600", NULL};
        struct core *c = *state;

        assert_int_equal(core_data_set(c, &data, NULL), 0);
        offer(c, "n1", TWO);
        offer(c, "n2", AD);
        core_links(c, "n1", slow, 1);
        core_links(c, "n2", fast, 1);
        submit(c, NULL, 1, big);
        expect_assigned(c, "n2/default 1 0\n");
        offer(c, "n3", "[Cpus=8; Memory=100; Disk=100; Price=2.0]");
        submit(c, NULL, 1, thrifty);
        expect_assigned(c, "n1/default 2 0\n");
}

/* A place where a job would wait in a batch system's queue is farther away by that. */
static void test_queue_of_a_place(void **state)
{
        const char *const hour[] = {"ExpectedRunTime", "3600", NULL};
        struct core *c = *state;

        offer(c, "n1", "[Cpus=1; Memory=100; Disk=100; QueueWait=1200]");
        offer(c, "n2", "[Cpus=1; Memory=100; Disk=100; QueueWait=300]");
        submit(c, NULL, 2, hour);
        expect_assigned(c, "n2/default 1 0\nn1/default 1 1\n");
}

/* One offer, many jobs: those whose files are there, the one with most bytes first. */
static void test_place_gets_its_jobs(void **state)
{
        struct core *c = *state;

        holds(c, "n1", "http://a/d", GB);
        holds(c, "n1", "http://a/b", GB);
        submit(c, "a\nb\nc\nd\n", 4, own);
        offer(c, "n1", "[Cpus=3; TotalCpus=3; Memory=100; Disk=100]");
        expect_assigned(c, "n1/default 1 1,3\nn1/default 1 0\n");
}

/* Two offers at once: neither takes what the other one holds. */
static void test_places_leave_each_other_theirs(void **state)
{
        struct core *c = *state;

        submit(c, "a\nb\n", 2, own);
        offer(c, "n1", AD);
        offer(c, "n2", AD);
        holds(c, "n1", "http://a/b", GB);
        holds(c, "n2", "http://a/a", GB);
        expect_assigned(c, "n1/default 1 1\nn2/default 1 0\n");
}

/* A store that bears so many readers, whoever they are. */
static void test_store_concurrency(void **state)
{
        static const struct str prefix[] = {{"http://a/", 9}};
        const struct core_store stores[] = {{.urls = {STR("a"), prefix, 1}, .concurrency = 2}};
        const struct core_data data = {.stores = stores, .store_count = 1};
        const char *const none[] = {"Cmd", "\"x\"", NULL};
        struct core *c = *state;

        assert_int_equal(core_data_set(c, &data, NULL), 0);
        submit(c, "a\nb\nc\nd\n", 4, own);
        submit(c, NULL, 1, none);
        offer(c, "n1", "[Cpus=8; TotalCpus=8; Memory=100; Disk=100]");
        expect_assigned(c, "n1/default 1 0\nn1/default 1 1\nn1/default 2 0\n");
        started(c, "n1", 1, 0);
        ended(c, "n1", 1, 0);
        expect_assigned(c, "n1/default 1 2\n");
}

/* What `why` shows is what decides: the place of least total. */
struct least {
        int64_t seconds, of[6];
};

static void find_least(void *arg, const struct core_why *w)
{
        struct least *l = arg;

        assert_int_equal(w->verdict, CORE_FITS);
        l->of[w->agent[1] - '0'] = w->cost.total_ms / 1000;
        if (w->cost.total_ms / 1000 < l->seconds)
                l->seconds = w->cost.total_ms / 1000;
}

static void test_explanation_agrees(void **state)
{
        struct core *c = *state;
        uint64_t random = 7;

        for (int i = 0; i < 50; i++) {
                struct least least = {.seconds = INT64_MAX};
                char agent[3] = {0};

                for (int k = 0; k < 6; k++) {
                        char name[8], ad[80];
                        struct core_link link = {STR(""), 1000, 0, 0};

                        snprintf(name, sizeof(name), "n%d", k);
                        random = random * 6364136223846793005u + 1442695040888963407u;
                        link.bytes_per_s = 1000000 * (1 + (random >> 33) % 1000);
                        core_links(c, name, &link, 1);
                        snprintf(ad, sizeof(ad), "[Cpus=1; Memory=100; Disk=100; Price=%d]",
                                 (int)(random >> 40) % 9);
                        offer(c, name, ad);
                        if (random >> 50 & 1)
                                holds(c, name, "http://a/big", GB);
                        else
                                core_cache_delta(c, name, NULL, 0, NULL, 0, true);
                }
                submit(c, NULL, 1, thrifty_reader);
                assert_int_equal(core_why(c, core_request_last(c), 0, find_least, &least), 0);
                core_match(c);
                memcpy(agent, buf_z(&bare_assigned), 2);
                buf_reset(&bare_assigned);
                assert_int_equal(least.of[agent[1] - '0'], least.seconds);
                started(c, agent, core_request_last(c), 0);
                ended(c, agent, core_request_last(c), 0);
        }
}

/* The same between requests of one job each. */
static void test_requests_are_level(void **state)
{
        const char *const other[] = {"TransferInput", "\"http://a/other\"", "TransferInputSizes",
                                     "\"1000000000\"", NULL};
        struct core *c = *state;

        submit(c, NULL, 1, other);
        submit(c, NULL, 1, big);
        holds(c, "n1", "http://a/big", GB);
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 2 0\n");
        ended(c, "n1", 2, 0);
        pass_time(c, 3700000); /* but not for ever */
        submit(c, NULL, 1, big);
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 1 0\n");
}

static const char *const eight_gb[] = {"TransferInput",
                                       "\"http://a/big\"",
                                       "TransferInputSizes",
                                       "\"8000000000\"",
                                       "ExpectedRunTime",
                                       "10",
                                       NULL};

/* n1 holds 8 GB (640 s to fetch over the link that nobody measured) and is busy for 100 s more. */
static void wait_story(struct core *c)
{
        const char *const attributes[] = {"ExpectedRunTime", "200", NULL};

        submit(c, NULL, 1, attributes);
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        holds(c, "n1", "http://a/big", 8ull * GB);
        pass_time(c, 100000);
        submit(c, NULL, 3, eight_gb);
}

static void test_waits_for_a_better_place(void **state)
{
        struct core *c = *state;

        wait_story(c);
        offer(c, "n2", TWO);
        /* 100 s of waiting for one, 110 for the next, 120: all are better than 640 s. */
        expect_assigned(c, "");
        pass_time(c, 60000);
        expect_assigned(c, "");
        ended(c, "n1", 1, 0);
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 2 0\n");
}

static void test_waits_only_so_long(void **state)
{
        struct core *c = *state;

        wait_story(c);
        offer(c, "n2", TWO);
        expect_assigned(c, "");
        for (int i = 0; i < 29; i++) { /* the other job does not end, and is always about to */
                pass_time(c, 10000);
                expect_assigned(c, "");
        }
        pass_time(c, 10000);
        expect_assigned(c, "n2/default 2 0-1\n");
}

static void test_goes_when_the_better_place_does(void **state)
{
        struct core *c = *state;

        wait_story(c);
        offer(c, "n2", TWO);
        expect_assigned(c, "");
        core_agent_away(c, "n1");
        pass_time(c, 10000);
        expect_assigned(c, "n2/default 2 0-1\n");
}

static void removed(struct core *c, uint64_t request)
{
        struct core_command cmd = {.action = CORE_ACT_REMOVE, .request = request};
        uint64_t n;

        assert_int_equal(core_act(c, &cmd, &n, NULL), 0);
}

/* A job whose 2 GB take 160 s to fetch has waited for as long for the place that has them: it waits no more.
 */
static void test_waits_no_longer_than_it_saves(void **state)
{
        const char *const two_gb[] = {"TransferInput",
                                      "\"http://a/other\"",
                                      "TransferInputSizes",
                                      "\"2000000000\"",
                                      "ExpectedRunTime",
                                      "10",
                                      NULL};
        struct core *c = *state;

        wait_story(c);
        holds(c, "n1", "http://a/other", 2ull * GB);
        submit(c, NULL, 1, two_gb);
        removed(c, 2);
        offer(c, "n2", TWO);
        expect_assigned(c, "");
        for (int i = 0; i < 15; i++) { /* the other job does not end, and is always about to */
                pass_time(c, 10000);
                expect_assigned(c, "");
        }
        pass_time(c, 20000);
        expect_assigned(c, "n2/default 3 0\n");
}

/* A job of the same class that need not wait does not. */
static void test_waits_alone(void **state)
{
        const char *const needs_nothing[] = {"ExpectedRunTime", "10", NULL};
        struct core *c = *state;

        wait_story(c);
        offer(c, "n2", TWO);
        expect_assigned(c, "");
        submit(c, NULL, 1, needs_nothing);
        expect_assigned(c, "n2/default 3 0\n");
}

/* So with one that came before the offer did, behind as many that wait as are asked at a time. */
static void test_waits_no_longer_than_others(void **state)
{
        const char *const needs_nothing[] = {"ExpectedRunTime", "10", NULL};
        struct core *c = *state;

        wait_story(c);
        for (int i = 0; i < 15; i++)
                submit(c, NULL, 1, eight_gb);
        submit(c, NULL, 1, needs_nothing);
        offer(c, "n2", TWO);
        expect_assigned(c, "");
        removed(c, 2);
        expect_assigned(c, "n2/default 18 0\n");
}

/* n1 is busy for 100 s more, and gets in 8 s what n2, which is free, gets in 640: nobody holds it yet. */
static void near_story(struct core *c)
{
        const char *const attributes[] = {"ExpectedRunTime", "200", NULL};
        const struct core_link link = {STR(""), 1000, GB, 0};

        core_agent_connected(c, "n1");
        core_links(c, "n1", &link, 1);
        submit(c, NULL, 1, attributes);
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        pass_time(c, 100000);
}

static void test_waits_for_a_nearer_place(void **state)
{
        struct core *c = *state;

        near_story(c);
        submit(c, NULL, 1, eight_gb);
        offer(c, "n2", TWO);
        expect_assigned(c, "");
        ended(c, "n1", 1, 0);
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 2 0\n");
}

/* No run time is known. One job may fetch over the slow link; the next one does not share it. */
static void test_leaves_a_slow_link_to_one(void **state)
{
        const char *const unknown[] = {"~TransferInput", "\"http://a/$(f)\"", "TransferInputSizes",
                                       "\"8000000000\"", NULL};
        const char *const nothing[] = {NULL};
        const struct core_link fast = {STR(""), 1000, GB, 0}, slow = {STR(""), 1000, GB / 80, 0};
        struct core *c = *state;

        core_agent_connected(c, "n1");
        core_links(c, "n1", &fast, 1);
        core_agent_connected(c, "n2");
        core_links(c, "n2", &slow, 1);
        submit(c, NULL, 1, nothing);
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        pass_time(c, 100000);
        submit(c, "a\nb\n", 2, unknown);
        offer(c, "n2", TWO);
        expect_assigned(c, "n2/default 2 0\n");
        ended(c, "n1", 1, 0);
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 2 1\n");
}

/* A job that has left a free place to wait for this one gets it before a job whose files the place holds. */
static void test_who_waits_is_next(void **state)
{
        const char *const other[] = {"TransferInput",
                                     "\"http://a/other\"",
                                     "TransferInputSizes",
                                     "\"8000000000\"",
                                     "ExpectedRunTime",
                                     "10",
                                     NULL};
        struct core *c = *state;

        near_story(c);
        holds(c, "n1", "http://a/big", 8ull * GB);
        submit(c, NULL, 1, other);
        offer(c, "n2", TWO);
        expect_assigned(c, "");
        pass_time(c, 1000);
        submit(c, NULL, 1, eight_gb);
        expect_assigned(c, "");
        ended(c, "n1", 1, 0);
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 2 0\n");
}

static void test_author_does_not_wait(void **state)
{
        const char *const hurry[] = {"TransferInput",
                                     "\"http://a/big\"",
                                     "TransferInputSizes",
                                     "\"8000000000\"",
                                     "BetterPlaceWait",
                                     "0",
                                     NULL};
        struct core *c = *state;

        wait_story(c);
        submit(c, NULL, 1, hurry);
        offer(c, "n2", TWO);
        expect_assigned(c, "n2/default 3 0\n");
}

static void test_blind(void **state)
{
        struct core *c = *state;

        c->config.placement = CORE_PLACE_BLIND;
        offer(c, "n1", TWO);
        offer(c, "n2", AD);
        holds(c, "n2", "http://a/big", GB);
        submit(c, NULL, 1, big);
        expect_assigned(c, "n1/default 1 0\n");
}

/* The job's own policy comes before the server's also where members are chosen by the files at the place. */
static void test_members_by_the_jobs_policy(void **state)
{
        const char *const by_cost[] = {"~TransferInput",
                                       "\"http://a/$(f)\"",
                                       "TransferInputSizes",
                                       "\"1000000000\"",
                                       "PlacementPolicy",
                                       "\"cost\"",
                                       NULL},
                          *const blind[] = {"~TransferInput",
                                            "\"http://a/$(f)\"",
                                            "TransferInputSizes",
                                            "\"1000000000\"",
                                            "PlacementPolicy",
                                            "\"blind\"",
                                            NULL};
        struct core *c = *state;

        c->config.placement = CORE_PLACE_BLIND;
        holds(c, "n1", "http://a/y", GB);
        submit(c, "x\ny\nz\n", 3, by_cost);
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 1 1\n");
        c->config.placement = CORE_PLACE_COST;
        holds(c, "n2", "http://a/z", GB);
        submit(c, "w\nz\n", 2, blind);
        assert_int_equal(core_act(c, &(struct core_command){.action = CORE_ACT_REMOVE, .request = 1},
                                  &(uint64_t){0}, NULL),
                         0);
        offer(c, "n2", AD);
        expect_assigned(c, "n2/default 2 0\n");
}

/* Three jobs go to the places in their order, whatever these have free, and last to the one without. */
static void tried_in_order(struct core *c, const char *const *job)
{
        char want[64];

        offer(c, "n1", TWO);
        offer(c, "n2", "[Cpus=1; Memory=100; Disk=100; SearchOrder=2]");
        offer(c, "n3", "[Cpus=1; Memory=100; Disk=100; SearchOrder=1]");
        for (unsigned i = 0; i < 3; i++) {
                struct request *r = submit(c, NULL, 1, job);

                snprintf(want, sizeof(want), "n%u/default %llu 0\n", 3 - i, (unsigned long long)r->id);
                expect_assigned(c, want);
        }
        assert_null(core_check(c));
}

static void test_search_order(void **state)
{
        const char *const quick[] = {"ExpectedRunTime", "1", NULL};
        struct core *c = *state;

        tried_in_order(c, quick);
        assert_int_equal(c->data->ordered, 2);
        offer(c, "n2", AD);
        offer(c, "n3", "[Cpus=1; Memory=100; Disk=100; SearchOrder=70000]");
        assert_int_equal(c->data->ordered, 0);
}

static void test_search_order_alone(void **state)
{
        struct core *c = *state;

        c->config.placement = CORE_PLACE_BLIND;
        holds(c, "n1", "http://a/big", GB);
        tried_in_order(c, big);
}

/* Cost goes before order. */
static void test_order_within_a_cost(void **state)
{
        struct core *c = *state;

        offer(c, "n1", "[Cpus=1; Memory=100; Disk=100; SearchOrder=1]");
        offer(c, "n2", "[Cpus=1; Memory=100; Disk=100; SearchOrder=9]");
        holds(c, "n2", "http://a/big", GB);
        submit(c, NULL, 1, big);
        expect_assigned(c, "n2/default 1 0\n");
}

/* Nothing else counts: the place with the bytes, though the author pays dearly for it. */
static void test_cached_bytes(void **state)
{
        const char *const thrifty[] = {"TransferInput",
                                       "\"http://a/big\"",
                                       "TransferInputSizes",
                                       "\"1000\"",
                                       "ExpectedRunTime",
                                       "3600",
                                       "PriceWeight",
                                       "3600",
                                       NULL};
        struct core *c = *state;

        offer(c, "n1", "[Cpus=1; Memory=100; Disk=100; Price=1]");
        offer(c, "n2", AD);
        holds(c, "n1", "http://a/big", 1000);
        submit(c, NULL, 1, thrifty);
        expect_assigned(c, "n2/default 1 0\n");
        c->config.placement = CORE_PLACE_CACHED;
        offer(c, "n2", AD);
        submit(c, NULL, 1, thrifty);
        expect_assigned(c, "n1/default 2 0\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

/* A queue's wishes choose among jobs of one priority, the weightier wish first. */
static void test_wishes(void **state)
{
        static const char *const small[] = {"RequestMemory", "10", "ExpectedRunTime", "100", NULL};
        static const char *const large[] = {"RequestMemory", "90", "ExpectedRunTime", "100", NULL};
        static const char *const brief[] = {"RequestMemory", "20", "ExpectedRunTime", "5", NULL};
        static const char *const first[] = {
                "RequestMemory", "30", "ExpectedRunTime", "500", "JobPrio", "1", NULL};
        struct core *c = *state;
        struct core_offer o = {.agent = "n",
                               .queue = "q",
                               .serial = 1,
                               .ad = STR("[Cpus=1; Memory=100; Disk=100]"),
                               .jobs_max = 1,
                               .wishes = {CORE_WISH_LARGE_MEMORY}};

        test_submit(c, "ann@lab", 1, small);
        test_submit(c, "ann@lab", 2, large);
        test_submit(c, "ann@lab", 1, brief);
        test_submit(c, "ann@lab", 1, first);
        core_agent_connected(c, "n");
        assert_int_equal(core_offer(c, &o, NULL), 0);
        expect_assigned(c, "n/q 4 0\n"); /* priority is not theirs to choose */
        o.agent = "m";
        core_agent_connected(c, "m");
        assert_int_equal(core_offer(c, &o, NULL), 0);
        expect_assigned(c, "m/q 2 0\n");
        o.agent = "o";
        o.wishes[0] = CORE_WISH_SHORT_RUN;
        o.wishes[1] = CORE_WISH_LARGE_MEMORY;
        core_agent_connected(c, "o");
        assert_int_equal(core_offer(c, &o, NULL), 0);
        expect_assigned(c, "o/q 3 0\n");
        o.agent = "p";
        core_agent_connected(c, "p");
        assert_int_equal(core_offer(c, &o, NULL), 0);
        expect_assigned(c, "p/q 2 1\n"); /* as short as the other, and larger */
}

/* What was refused is there for other jobs at once; for such jobs, when the agent makes its next offer. */
static void test_a_refusal_uses_up_no_offer(void **state)
{
        static const char *const one[] = {"RequestMemory", "10", NULL};
        static const char *const other[] = {"RequestMemory", "20", NULL};
        struct core *c = *state;
        struct set first = {0};
        uint64_t r = test_submit(c, "ann@lab", 1, one);
        struct core_attempts a = {r, 1, &first};

        offer(c, "n", "[Cpus=1; Memory=100; Disk=100]");
        expect_assigned(c, "n/default 1 0\n");
        test_submit(c, "ann@lab", 1, other);
        expect_assigned(c, "");
        set_add(&first, 0);
        core_refused(c, "n", &a, STR("not today"), 0);
        expect_assigned(c, "n/default 2 0\n");
        assert_null(core_check(c));
        offer(c, "m", "[Cpus=1; Memory=100; Disk=100]");
        expect_assigned(c, "m/default 1 0\n");
        a.fence = 2;
        core_refused(c, "m", &a, STR("not here"), 0);
        expect_assigned(c, "");
        offer(c, "m", "[Cpus=1; Memory=100; Disk=100]");
        expect_assigned(c, "m/default 1 0\n");
        set_deinit(&first);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_job_finds_its_files),
                TEST(test_small_files_count),
                TEST(test_bytes_not_files),
                TEST(test_rank_goes_first),
                TEST(test_faster_link_and_cheaper_place),
                TEST(test_queue_of_a_place),
                TEST(test_place_gets_its_jobs),
                TEST(test_places_leave_each_other_theirs),
                TEST(test_store_concurrency),
                TEST(test_explanation_agrees),
                TEST(test_requests_are_level),
                TEST(test_waits_for_a_better_place),
                TEST(test_waits_only_so_long),
                TEST(test_goes_when_the_better_place_does),
                TEST(test_waits_no_longer_than_it_saves),
                TEST(test_waits_alone),
                TEST(test_waits_no_longer_than_others),
                TEST(test_waits_for_a_nearer_place),
                TEST(test_leaves_a_slow_link_to_one),
                TEST(test_who_waits_is_next),
                TEST(test_author_does_not_wait),
                TEST(test_blind),
                TEST(test_members_by_the_jobs_policy),
                TEST(test_search_order),
                TEST(test_search_order_alone),
                TEST(test_order_within_a_cost),
                TEST(test_cached_bytes),
                cmocka_unit_test_setup_teardown(test_wishes, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_a_refusal_uses_up_no_offer, bare_core, bare_core_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
