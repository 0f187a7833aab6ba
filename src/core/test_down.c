/* Stores that do not answer: who is given what, why the others wait, and what wakes them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/test_help.h"

#define AD  "[Cpus=1; TotalCpus=1; Memory=100; Disk=100]"
#define TEN "[Cpus=10; TotalCpus=10; Memory=100; Disk=100]"

static const char *const from_a[] = {"TransferInput", "\"http://a/f\"", "TransferInputSizes", "\"1000000\"",
                                     NULL};
static const char *const from_b[] = {"TransferInput", "\"http://b/f\"", "TransferInputSizes", "\"1000000\"",
                                     NULL};
static const char *const to_a[] = {"OutputDestination", "\"http://a/out\"", NULL};
static const char *const none[] = {NULL};
static const char *const own[] = {"~TransferInput", "\"http://$(f)\"", "TransferInputSizes", "\"1000000\"",
                                  NULL};

static int two_stores(void **state)
{
        static const struct str a[] = {{"http://a/", 9}}, b[] = {{"http://b/", 9}};
        const struct core_store stores[] = {{.urls = {STR("a"), a, 1}}, {.urls = {STR("b"), b, 1}}};
        const struct core_data data = {.stores = stores, .store_count = 2};

        bare_core(state);
        return core_data_set(*state, &data, NULL);
}

static void link_down(struct core *c, const char *agent, const char *store, bool down)
{
        const struct core_link link = {.store = str_of(store),
                                       .latency_us = 1000,
                                       .bytes_per_s = 100000000,
                                       .down_ms = down ? c->now_ms - 5000 : 0,
                                       .down_why = STR("it is quiet there")};

        core_links(c, agent, &link, 1);
}

static void refused(struct core *c, const char *agent, uint64_t request, uint32_t member)
{
        struct set one = {0};
        struct core_attempts a = {request, request_job(request_find(c, request), member)->fence, &one};

        set_add(&one, member);
        core_accepted(c, agent, &a);
        core_refused(c, agent, &a, STR("store a does not answer"), 0);
        set_deinit(&one);
        assert_null(core_check(c));
}

static void on_down(void *arg, const struct core_store_down *d)
{
        struct buf *b = arg;

        buf_printf(b, STR_FMT ": %u of %u, %s since %lld: %s\n", STR_ARG(d->store), d->agents, d->of,
                   d->agent, (long long)d->since_ms, d->why);
}

static void expect_down(struct core *c, uint64_t request, const char *text)
{
        BUF_CLEANUP struct buf b = {0};

        assert_int_equal(core_job_stores_down(c, request, 0, on_down, &b), 0);
        assert_string_equal(buf_z(&b), text);
}

static void on_why(void *arg, const struct core_why *w)
{
        struct buf *b = arg;

        buf_printf(b, "%s %d " STR_FMT " " STR_FMT " %lld\n", w->agent, (int)w->verdict, STR_ARG(w->clause),
                   STR_ARG(w->value), (long long)w->since_ms);
}

/* Nobody is given it while the store is down; when it answers again the job starts, with no new offer. */
static void test_job_waits_for_its_store(void **state)
{
        struct core *c = *state;
        BUF_CLEANUP struct buf b = {0};

        offer(c, "n1", AD);
        link_down(c, "n1", "a", true);
        submit(c, NULL, 1, from_a);
        expect_assigned(c, "");
        expect_down(c, 1, "a: 1 of 1, n1 since 1699999995000: it is quiet there\n");
        core_why(c, 1, 0, on_why, &b);
        buf_printf(&b, "%d", (int)CORE_STORE_DOWN);
        assert_string_equal(buf_z(&b), "n1 9 a it is quiet there 1699999995000\n9");
        assert_null(core_check(c));
        link_down(c, "n1", "a", false);
        expect_assigned(c, "n1/default 1 0\n");
        expect_down(c, 1, "");
}

/* What it writes counts as what it reads; others are not in its way. */
static void test_others_go_on(void **state)
{
        struct core *c = *state;

        offer(c, "n1", TEN);
        link_down(c, "n1", "a", true);
        submit(c, NULL, 3, from_a);
        submit(c, NULL, 1, to_a);
        submit(c, NULL, 1, from_b);
        submit(c, NULL, 1, none);
        expect_assigned(c, "n1/default 3 0\nn1/default 4 0\n");
}

/* It goes where the store answers, however far that is; and where the file is held. */
static void test_it_goes_elsewhere(void **state)
{
        struct core *c = *state;

        offer(c, "n1", AD);
        offer(c, "n2", AD);
        offer(c, "n3", AD);
        link_down(c, "n1", "a", true);
        link_down(c, "n3", "a", true);
        core_links(c, "n2", &(struct core_link){STR("a"), 900000, 1000, 0}, 1);
        submit(c, NULL, 1, from_a);
        expect_assigned(c, "n2/default 1 0\n");
        core_cache_delta(c, "n3", &(struct core_file){id_of("http://a/f"), 1000000}, 1, NULL, 0, false);
        submit(c, NULL, 1, from_a);
        expect_assigned(c, "n3/default 2 0\n");
}

/* A copy that comes while jobs wait wakes them. One that turns out to be too old helps nobody, until the
 * store has answered. */
static void test_old_copies(void **state)
{
        struct core *c = *state;

        offer(c, "n1", TEN);
        link_down(c, "n1", "a", true);
        submit(c, NULL, 1, from_a);
        expect_assigned(c, "");
        core_cache_delta(c, "n1", &(struct core_file){id_of("http://a/f"), 1000000}, 1, NULL, 0, false);
        expect_assigned(c, "n1/default 1 0\n");
        refused(c, "n1", 1, 0);
        offer(c, "n1", TEN); /* which also connects it again: it tells anew what is down */
        link_down(c, "n1", "a", true);
        expect_assigned(c, "n1/default 1 0\n");
        refused(c, "n1", 1, 0);
        core_match(c);
        link_down(c, "n1", "a", true); /* with another word of it */
        expect_assigned(c, "");
        link_down(c, "n1", "a", false);
        expect_assigned(c, "n1/default 1 0\n");
}

/* Of jobs with files of their own those are given whose files can be had, though others stand before them. */
static void test_own_files(void **state)
{
        struct core *c = *state;

        offer(c, "n1", TEN);
        link_down(c, "n1", "a", true);
        core_cache_delta(c, "n1", &(struct core_file){id_of("http://a/3"), 1000000}, 1, NULL, 0, false);
        submit(c, "a/1\na/2\na/3\nb/1\na/4\nb/2\n", 6, own);
        expect_assigned(c, "n1/default 1 2\nn1/default 1 3,5\n");
        link_down(c, "n1", "a", false);
        expect_assigned(c, "n1/default 1 0-1,4\n");
}

/* However many requests of a class can go nowhere, the one that can is found. */
static void test_behind_many(void **state)
{
        struct core *c = *state;
        unsigned i;

        link_down(c, "n1", "a", true);
        for (i = 0; i < 1000; i++)
                assert_int_equal(test_submit(c, "ann@lab", 1, from_a), i + 1);
        assert_int_equal(test_submit(c, "ann@lab", 1, from_b), 1001);
        offer(c, "n1", AD);
        link_down(c, "n1", "a", true);
        core_match(c);
        for (i = 0; i < 20 && bare_assigned.n == 0; i++) {
                const struct core_offer o = {
                        .agent = "n1", .queue = "default", .serial = 2 + i, .ad = STR(AD), .jobs_max = 100};

                assert_int_equal(core_offer(c, &o, NULL), 0);
                core_match(c);
        }
        assert_string_equal(buf_z(&bare_assigned), "n1/default 1001 0\n");
        assert_null(core_check(c));
}

/* An agent that connects says again what it misses; the server remembers nothing of it. */
static void test_connecting_forgets(void **state)
{
        struct core *c = *state;

        offer(c, "n1", AD);
        link_down(c, "n1", "a", true);
        submit(c, NULL, 1, from_a);
        expect_assigned(c, "");
        core_agent_away(c, "n1");
        expect_down(c, 1, "");
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 1 0\n");
}

static void on_store(void *arg, const struct core_store_view *s)
{
        struct buf *b = arg;

        for (size_t i = 0; i < s->link_count; i++)
                buf_printf(b, STR_FMT " %s %lld %lld %s\n", STR_ARG(s->store->urls.name), s->links[i].agent,
                           (long long)s->links[i].measured_ms, (long long)s->links[i].down_ms,
                           s->links[i].down_why ? s->links[i].down_why : "-");
}

/* The list names who misses a store that it never measured, and how old what it measured is. */
static void test_the_list(void **state)
{
        struct core *c = *state;
        BUF_CLEANUP struct buf b = {0};
        const struct core_link never = {.store = STR("b"), .down_ms = 7, .down_why = STR("gone")},
                               old = {.store = STR("a"), .bytes_per_s = 5, .measured_ms = 1600000000000};

        core_links(c, "n1", &never, 1);
        core_links(c, "n1", &old, 1);
        link_down(c, "n2", "b", true);
        core_stores(c, on_store, &b);
        assert_string_equal(buf_z(&b), "a n1 1600000000000 0 -\n"
                                       "b n1 0 7 gone\n"
                                       "b n2 1700000000000 1699999995000 it is quiet there\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_job_waits_for_its_store, two_stores, bare_core_free),
                cmocka_unit_test_setup_teardown(test_others_go_on, two_stores, bare_core_free),
                cmocka_unit_test_setup_teardown(test_it_goes_elsewhere, two_stores, bare_core_free),
                cmocka_unit_test_setup_teardown(test_old_copies, two_stores, bare_core_free),
                cmocka_unit_test_setup_teardown(test_own_files, two_stores, bare_core_free),
                cmocka_unit_test_setup_teardown(test_behind_many, two_stores, bare_core_free),
                cmocka_unit_test_setup_teardown(test_connecting_forgets, two_stores, bare_core_free),
                cmocka_unit_test_setup_teardown(test_the_list, two_stores, bare_core_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
