/* Predicted starts of jobs that wait for a unit of a limit, or for their account's turn. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/test_help.h"

#define FOUR "[Cpus=4; TotalCpus=4; Memory=100; Disk=100]"
#define ONE  "[Cpus=1; TotalCpus=1; Memory=100; Disk=100]"

static const char *const minute[] = {"ExpectedRunTime", "60", NULL};
static const char *const licensed[] = {"ExpectedRunTime", "60", "ConcurrencyLimits", "\"sw\"", NULL};

/* Seconds from now; -1: unknown. */
static int64_t start_of(struct core *c, uint64_t request, uint32_t member)
{
        struct core_eta e;

        eta_renew(c);
        assert_int_equal(core_eta(c, request, member, &e), 0);
        return e.start_ms ? (e.start_ms - c->now_ms) / 1000 : -1;
}

/* The one has the only unit for a minute: the next waits for it, beside free processors. */
static void test_named_limit(void **state)
{
        struct core *c = *state;

        core_limit_set(c, STR("sw"), 1);
        offer(c, "n1", FOUR);
        submit(c, NULL, 3, licensed);
        submit(c, NULL, 1, minute);
        expect_assigned(c, "n1/default 1 0\nn1/default 2 0\n");
        started(c, "n1", 1, 0);
        pass_time(c, 10000);
        assert_int_equal(start_of(c, 1, 1), 50);
        assert_int_equal(start_of(c, 1, 2), 110);
        submit(c, NULL, 1, minute);
        pass_time(c, 1000);
        assert_int_equal(start_of(c, 3, 0), 0);
}

/* The limit depends on the place, which is not known yet. */
static void test_limit_of_the_place(void **state)
{
        static const char *const its_own[] = {"ExpectedRunTime", "60", "ConcurrencyLimits", "TARGET.Licence",
                                              NULL};
        struct core *c = *state;

        core_limit_set(c, STR("sw"), 1);
        submit(c, NULL, 2, its_own);
        pass_time(c, 30000);
        assert_int_equal(start_of(c, 1, 0), -1);
        offer(c, "n1", "[Cpus=4; TotalCpus=4; Memory=100; Disk=100; Licence=\"sw\"]");
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        pass_time(c, 10000);
        assert_int_equal(start_of(c, 1, 1), 50);
}

static void test_no_unit_ever(void **state)
{
        struct core *c = *state;

        core_limit_set(c, STR("sw"), 0);
        offer(c, "n1", FOUR);
        submit(c, NULL, 1, licensed);
        expect_assigned(c, "");
        assert_int_equal(start_of(c, 1, 0), -1);
}

static void test_user_limit(void **state)
{
        struct core *c = *state;

        core_limit_set(c, STR("user/*"), 2);
        offer(c, "n1", FOUR);
        test_submit(c, "ann@lab", 5, minute);
        expect_assigned(c, "n1/default 1 0-1\n");
        started(c, "n1", 1, 0);
        started(c, "n1", 1, 1);
        test_submit(c, "bob@lab", 1, minute);
        pass_time(c, 10000);
        assert_int_equal(start_of(c, 1, 2), 50);
        assert_int_equal(start_of(c, 1, 4), 110);
        assert_int_equal(start_of(c, 2, 0), 0);
}

/* The limit on a request's active jobs. */
static void test_request_limit(void **state)
{
        static const char *const two[] = {"ExpectedRunTime", "60", "JobMaterializeLimit", "2", NULL};
        struct core *c = *state;

        offer(c, "n1", FOUR);
        submit(c, NULL, 4, two);
        expect_assigned(c, "n1/default 1 0-1\n");
        started(c, "n1", 1, 0);
        started(c, "n1", 1, 1);
        pass_time(c, 10000);
        assert_int_equal(start_of(c, 1, 2), 50);
}

/* A thousand jobs with two licences take two of four processors as long as needed, and leave the others to
 * jobs that need no licence. */
static void test_many_behind_a_limit(void **state)
{
        struct core *c = *state;

        core_limit_set(c, STR("sw"), 2);
        offer(c, "n1", "[Cpus=0; TotalCpus=4; Memory=100; Disk=100]");
        test_submit(c, "ann@lab", 1000, licensed);
        test_submit(c, "bob@lab", 1000, minute);
        offer(c, "n1", FOUR);
        pass_time(c, 6000);
        assert_in_range(start_of(c, 1, 999), 29000, 31000);
        assert_in_range(start_of(c, 2, 999), 29000, 31000);
        assert_int_equal(start_of(c, 2, 0), 0);
}

static void test_not_before_its_time(void **state)
{
        char at[32];
        const char *const later[] = {
                "ExpectedRunTime", "60", "DeferralTime", at, "DeferralWindow", "600", NULL};
        struct core *c = *state;

        snprintf(at, sizeof(at), "%lld", (long long)c->now_ms / 1000 + 3600);
        offer(c, "n1", FOUR);
        submit(c, NULL, 1, later);
        expect_assigned(c, "");
        assert_int_equal(start_of(c, 1, 0), 3600);
}

/* Sets draw for all of their jobs at once. */
static void test_sets_under_a_limit(void **state)
{
        static const char *const pairs[] = {"ExpectedRunTime",   "60",     "GangSize", "2",
                                            "ConcurrencyLimits", "\"sw\"", NULL};
        struct core *c = *state;

        core_limit_set(c, STR("sw"), 3);
        offer(c, "n1", FOUR);
        submit(c, NULL, 2, licensed);
        expect_assigned(c, "n1/default 1 0-1\n");
        started(c, "n1", 1, 0);
        started(c, "n1", 1, 1);
        submit(c, NULL, 2, pairs);
        pass_time(c, 10000);
        assert_int_equal(start_of(c, 2, 0), 50);
}

/* The second account does not wait for all jobs of the first: accounts take turns. */
static void test_turns(void **state)
{
        struct core *c = *state;

        offer(c, "n1", FOUR);
        test_submit(c, "ann@lab", 1004, minute);
        expect_assigned(c, "n1/default 1 0-3\n");
        for (uint32_t i = 0; i < 4; i++)
                started(c, "n1", 1, i);
        pass_time(c, 10000);
        assert_in_range(start_of(c, 1, 1003), 14800, 15200);
        test_submit(c, "bob@lab", 1, minute);
        pass_time(c, 1000);
        assert_int_equal(start_of(c, 2, 0), 49);
        test_submit(c, "cas@lab", 1000, minute);
        core_match(c);
        pass_time(c, 6000);
        assert_int_equal(start_of(c, 3, 0), 43);
        assert_in_range(start_of(c, 1, 1003), 29000, 31000); /* ann and cas have half of it each */
        assert_in_range(start_of(c, 3, 999), 29000, 31000);
}

/* An account that had the pool alone until now waits for the other. */
static void test_behind_on_share(void **state)
{
        static const char *const hours[] = {"ExpectedRunTime", "36000", NULL};
        struct core *c = *state;

        offer(c, "n1", ONE);
        test_submit(c, "ann@lab", 1, hours);
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        pass_time(c, 36000000);
        test_submit(c, "ann@lab", 3, minute);
        test_submit(c, "bob@lab", 3, minute);
        ended(c, "n1", 1, 0);
        offer(c, "n1", "[Cpus=0; TotalCpus=1; Memory=100; Disk=100]");
        expect_assigned(c, "");
        offer(c, "n1", ONE);
        pass_time(c, 6000);
        assert_in_range(start_of(c, 3, 0), 0, 1);
        assert_in_range(start_of(c, 3, 2), 120, 121);
        assert_in_range(start_of(c, 2, 0), 180, 181);
}

/* Shares are those of the settings. */
static void test_unlike_shares(void **state)
{
        const struct str ann = STR("ann@lab"), bob = STR("bob@lab");
        struct core *c = *state;

        assert_int_equal(core_account_set(c, STR("physics"), 3, &ann, 1, NULL), 0);
        assert_int_equal(core_account_set(c, STR("biology"), 1, &bob, 1, NULL), 0);
        offer(c, "n1", "[Cpus=0; TotalCpus=4; Memory=100; Disk=100]");
        test_submit(c, "ann@lab", 1000, minute);
        test_submit(c, "bob@lab", 1000, minute);
        core_match(c);
        offer(c, "n1", FOUR);
        pass_time(c, 6000);
        assert_in_range(start_of(c, 1, 999), 19000, 21000); /* three of four processors */
        assert_in_range(start_of(c, 2, 999), 29000, 31000); /* then bob has them all */
}

static void test_quality_of_service(void **state)
{
        static const char *const urgent[] = {"ExpectedRunTime", "60", "QoS", "\"urgent\"", NULL};
        struct core *c = *state;

        core_qos_set(c, STR("urgent"), 1000, NULL, 0);
        offer(c, "n1", ONE);
        test_submit(c, "ann@lab", 4, minute);
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        test_submit(c, "ann@lab", 1, urgent);
        pass_time(c, 1000);
        assert_int_equal(start_of(c, 2, 0), 59);
        assert_int_equal(start_of(c, 1, 1), 119);
}

static void on_place(void *arg, const struct core_quote_place *p)
{
        (void)arg, (void)p;
}

/* Seconds from the first start to the last end. */
static int64_t quote_jobs(struct core *c, const char *owner, const char *const *pairs, uint64_t jobs)
{
        struct submission s = {.owner = str_of(owner), .at_ms = c->now_ms};
        struct submission_part *p = submission_add_part(&s);
        struct core_quote q;

        p->rows = 1;
        p->steps = jobs;
        for (; *pairs; pairs += 2)
                submission_add_attribute(p, str_of(pairs[0]), str_of(pairs[1]), false);
        assert_int_equal(core_quote(c, &s, on_place, NULL, &q, NULL), 0);
        submission_deinit(&s);
        return (q.end_ms - q.start_ms) / 1000;
}

static int64_t quote_start(struct core *c, const char *owner, const char *const *pairs)
{
        struct submission s = {.owner = str_of(owner), .at_ms = c->now_ms};
        struct submission_part *p = submission_add_part(&s);
        struct core_quote q;

        p->rows = p->steps = 1;
        for (; *pairs; pairs += 2)
                submission_add_attribute(p, str_of(pairs[0]), str_of(pairs[1]), false);
        assert_int_equal(core_quote(c, &s, on_place, NULL, &q, NULL), 0);
        submission_deinit(&s);
        return q.start_ms ? (q.start_ms - c->now_ms) / 1000 : -1;
}

/* A quote waits for the same limits, and has the same turn, as the request would. */
static void test_quotes(void **state)
{
        struct core *c = *state;

        core_limit_set(c, STR("sw"), 1);
        offer(c, "n1", FOUR);
        test_submit(c, "ann@lab", 2, licensed);
        test_submit(c, "ann@lab", 1000, minute);
        expect_assigned(c, "n1/default 1 0\nn1/default 2 0-2\n");
        started(c, "n1", 1, 0);
        for (uint32_t i = 0; i < 3; i++)
                started(c, "n1", 2, i);
        pass_time(c, 10000);
        assert_int_equal(quote_start(c, "bob@lab", minute), 50);
        assert_in_range(quote_start(c, "bob@lab", licensed), 50, 110);
        assert_true(quote_start(c, "ann@lab", minute) > 10000);
        assert_int_equal(quote_jobs(c, "bob@lab", licensed, 10),
                         60 * 10); /* one at a time, on four processors */
        assert_null(core_check(c));
}

/* ---- the flow alone */

static void on_flow(void *arg, size_t stream, double at_ms, double rate, double done)
{
        struct buf *out = arg;

        buf_printf(out, "%zu at %.0f: %.2f to %.0f\n", stream, at_ms, rate, done);
}

static void expect_flow(struct eta_stream *v, size_t n, double idle, const char *text)
{
        struct buf out = {0};
        struct eta_flow f;

        eta_flow_begin(&f, v, n, 10, idle, 100);
        while (eta_flow_step(&f, on_flow, &out))
                ;
        eta_flow_end(&f);
        assert_string_equal(buf_z(&out), text);
        buf_deinit(&out);
}

static void test_flow(void **state)
{
        struct eta_stream even[] = {{.part = 0.5, .cap = INFINITY, .work = 1000},
                                    {.part = 0.5, .cap = INFINITY, .work = 500}};
        struct eta_stream had[] = {{.part = 0.5, .lately = 20, .cap = INFINITY, .work = 1000},
                                   {.part = 0.5, .cap = INFINITY, .work = 500}};
        struct eta_stream bound[] = {{.part = 0.5, .cap = 1, .work = 100},
                                     {.part = 0.5, .cap = INFINITY, .work = 900}};
        struct eta_stream has[] = {{.part = 0.5, .now = 10, .cap = INFINITY, .work = 500},
                                   {.part = 0.5, .cap = INFINITY, .work = 500}};
        struct eta_stream never[] = {{.part = 1, .cap = 0, .work = 1}};

        (void)state;
        expect_flow(even, 2, 10, "0 at 0: 5.00 to 500\n1 at 0: 5.00 to 500\n0 at 100: 10.00 to 1000\n");
        expect_flow(had, 2, 30, "1 at 0: 10.00 to 500\n0 at 50: 10.00 to 1000\n");
        expect_flow(bound, 2, 10, "0 at 0: 1.00 to 100\n1 at 0: 9.00 to 900\n");
        /* until the other has as many: all ten end in 100 ms, and are given to it */
        expect_flow(has, 2, 0, "0 at 100: 5.00 to 500\n1 at 0: 5.00 to 500\n");
        expect_flow(never, 1, 10, "");
        expect_flow(NULL, 0, 10, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_named_limit),
                TEST(test_limit_of_the_place),
                TEST(test_no_unit_ever),
                TEST(test_user_limit),
                TEST(test_request_limit),
                TEST(test_many_behind_a_limit),
                TEST(test_not_before_its_time),
                TEST(test_sets_under_a_limit),
                TEST(test_turns),
                TEST(test_behind_on_share),
                TEST(test_unlike_shares),
                TEST(test_quality_of_service),
                TEST(test_quotes),
                cmocka_unit_test(test_flow),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
