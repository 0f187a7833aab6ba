/* Predictions of run times: by similarity, their errors, and the effect of age. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/estimate/likeness.h"
#include "core/test_help.h"

#define ONE "[Cpus=1; TotalCpus=1; Memory=100; Disk=100]"

/* ---- spread.h */
static void test_quantiles_follow_what_came(void **state)
{
        struct spread s;
        double before;

        (void)state;
        spread_init(&s);
        assert_true(spread_quantile(&s, 0.5, 0) > 0.8 && spread_quantile(&s, 0.5, 0) < 1.25);
        assert_true(spread_quantile(&s, 0.9, 0) > 2); /* nothing known is told as not sure */
        for (int i = 0; i < 4000; i++)
                spread_add(&s, i % 10 < 6 ? 1 : i % 10 < 9 ? 4 : 64);
        assert_true(spread_quantile(&s, 0.5, 0) >= 1 && spread_quantile(&s, 0.5, 0) < 1.2);
        assert_true(spread_quantile(&s, 0.8, 0) >= 4 && spread_quantile(&s, 0.8, 0) < 4.8);
        assert_true(spread_quantile(&s, 0.95, 0) >= 64 && spread_quantile(&s, 0.95, 0) < 77);
        /* Of those that came further than twice as long most end at four times, one in four at 64. */
        assert_true(spread_quantile(&s, 0.5, 2) >= 4 && spread_quantile(&s, 0.5, 2) < 4.8);
        assert_true(spread_quantile(&s, 0.9, 2) >= 64);
        before = 0;
        for (double part = 0.05; part < 1; part += 0.05) {
                assert_true(spread_quantile(&s, part, 0) >= before);
                assert_true(spread_quantile(&s, part, 3) >= 3);
                before = spread_quantile(&s, part, 0);
        }
}

/* Beyond all observations half of the jobs end before they are twice as old; and invalid ratios give a
 * finite number. */
static void test_beyond_what_came(void **state)
{
        struct spread s;

        (void)state;
        spread_init(&s);
        for (int i = 0; i < 100; i++)
                spread_add(&s, 1);
        assert_true(fabs(spread_quantile(&s, 0.5, 1000) - 2000) < 1);
        assert_true(fabs(spread_quantile(&s, 0.9, 1000) - 10000) < 1);
        spread_add(&s, NAN);
        spread_add(&s, INFINITY);
        spread_add(&s, -1);
        spread_add(&s, 0);
        for (double part = 0.1; part < 1; part += 0.1)
                assert_true(isfinite(spread_quantile(&s, part, 0)) &&
                            isfinite(spread_quantile(&s, part, 1e9)));
}

static void test_old_ones_fade(void **state)
{
        struct spread s;

        (void)state;
        spread_init(&s);
        for (int i = 0; i < 10000; i++)
                spread_add(&s, 8);
        for (int i = 0; i < 5000; i++)
                spread_add(&s, 1);
        assert_true(spread_quantile(&s, 0.85, 0) < 1.2);
        for (int i = 0; i < 100000; i++) /* weights grow without bound but for being scaled */
                spread_add(&s, 2);
        assert_true(spread_quantile(&s, 0.99, 0) < 2.4 && spread_quantile(&s, 0.01, 0) >= 2);
}

static void test_a_spread_is_packed(void **state)
{
        struct spread s, t;
        struct buf BUF_CLEANUP packed = {0}, bad = {0};
        struct unpack in;

        (void)state;
        spread_init(&s);
        spread_init(&t);
        for (int i = 0; i < 3000; i++)
                spread_add(&s, 1 + i % 5);
        spread_pack(&s, &packed);
        in = unpack_from(buf_view(&packed));
        spread_unpack(&t, &in);
        assert_true(unpack_done(&in) && t.count == 3000);
        for (double part = 0.1; part < 1; part += 0.1)
                assert_true(fabs(spread_quantile(&s, part, 0) - spread_quantile(&t, part, 0)) < 0.01);
        spread_add(&t, 1);
        in = unpack_from(buf_view(&packed)); /* it knows more by now */
        spread_unpack(&t, &in);
        assert_int_equal(t.count, 3001);
        pack_u64(&bad, 9999999);
        for (unsigned i = 0; i < SPREAD_BINS; i++)
                pack_u64(&bad, UINT64_MAX);
        in = unpack_from(buf_view(&bad));
        spread_unpack(&t, &in);
        assert_true(in.bad && t.count == 3001);
}

/* ---- likeness.h */
static uint64_t shape(const char *arguments)
{
        return likeness_add_arguments(LIKENESS_START, str_of(arguments));
}

static void test_arguments_have_a_shape(void **state)
{
        static const char *const alike[][2] = {
                {"-n a.csv", "-n b12.csv"},
                {"sort --threads=8 in/A.bam", "sort --threads=9 in/B.bam"},
                {"200", "250"},
                {"-x 1.5 S_01", "-x 1.7 S_99"},
        };
        static const char *const unlike[][2] = {
                {"1", "200"},
                {"sort a.bam", "index a.bam"},
                {"-n a.csv", "-r a.csv"},
                {"a.csv", "a.csv b.csv"},
                {"a.csv", "a.bam"},
                {"--threads=2", "--threads=64"},
                {"", "a.csv"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++)
                assert_int_equal(shape(alike[i][0]), shape(alike[i][1]));
        for (size_t i = 0; i < sizeof(unlike) / sizeof(unlike[0]); i++)
                assert_int_not_equal(shape(unlike[i][0]), shape(unlike[i][1]));
}

/* ---- what is expected */
static void run(struct core *c, const char *const *what, int64_t run_ms)
{
        uint64_t r = test_submit(c, "ann@lab", 1, what);

        offer(c, "n1", ONE);
        core_match(c);
        started(c, "n1", r, 0);
        pass_time(c, run_ms);
        ended(c, "n1", r, 0);
        buf_reset(&bare_assigned);
}

static int64_t expected_s(struct core *c, const char *const *what)
{
        uint64_t r = test_submit(c, "ann@lab", 1, what);
        struct core_command rm = {.action = CORE_ACT_REMOVE, .request = r};
        int64_t ms = estimate_run_ms(c, request_part(request_find(c, r), 0, NULL), NULL, NULL);
        uint64_t n;

        assert_int_equal(core_act(c, &rm, &n, NULL), 0);
        return ms / 1000;
}

static bool is_close(struct core *c, const char *const *what)
{
        uint64_t r = test_submit(c, "ann@lab", 1, what);
        struct core_command rm = {.action = CORE_ACT_REMOVE, .request = r};
        bool yes = estimate_is_close(request_part(request_find(c, r), 0, NULL));
        uint64_t n;

        assert_int_equal(core_act(c, &rm, &n, NULL), 0);
        return yes;
}

/* The median of the last five: one that took a day by mistake says little. */
static void test_one_odd_run_says_little(void **state)
{
        static const char *const job[] = {"Cmd", "\"sort\"", NULL};
        struct core *c = *state;

        for (int i = 0; i < 4; i++)
                run(c, job, 60000);
        run(c, job, 86400000);
        assert_int_equal(expected_s(c, job), 60);
        for (int i = 0; i < 3; i++)
                run(c, job, 300000);
        assert_int_equal(expected_s(c, job), 300);
}

/* `sleep 200` is not told the second that short sleeps took: nothing is told until one like it has run. */
static void test_other_arguments_are_another_job(void **state)
{
        static const char *const brief[] = {"Cmd", "\"sleep\"", "Args", "\"1\"", NULL},
                                 *const lengthy[] = {"Cmd", "\"sleep\"", "Args", "\"200\"", NULL};
        struct core *c = *state;

        for (int i = 0; i < 5; i++)
                run(c, brief, 1000);
        assert_true(is_close(c, brief));
        assert_false(is_close(c, lengthy));
        run(c, lengthy, 200000);
        assert_true(is_close(c, lengthy));
        assert_int_equal(expected_s(c, lengthy), 200);
        assert_int_equal(expected_s(c, brief), 1);
}

static void test_sizes_and_times_asked_for_tell(void **state)
{
        static const char *const small[] =
                {"Cmd", "\"sim\"", "TransferInput", "\"http://a/x\"", "TransferInputSizes", "\"3000\"", NULL},
                                 *const large[] = {"Cmd",
                                                   "\"sim\"",
                                                   "TransferInput",
                                                   "\"http://a/x\"",
                                                   "TransferInputSizes",
                                                   "\"1000000000\"",
                                                   NULL},
                                 *const other[] = {"Cmd",
                                                   "\"sim\"",
                                                   "TransferInput",
                                                   "\"http://a/x\"",
                                                   "TransferInputSizes",
                                                   "\"4000000000000\"",
                                                   NULL},
                                 *const asked[] = {"Cmd", "\"sim\"", "AllowedExecuteDuration", "50", NULL};
        struct core *c = *state;

        for (int i = 0; i < 3; i++) {
                run(c, small, 10000);
                run(c, large, 900000);
        }
        assert_int_equal(expected_s(c, small), 10);
        assert_int_equal(expected_s(c, large), 900);
        assert_int_equal(expected_s(c, other),
                         900); /* of the program, any size: the median of the last five */
        assert_int_equal(expected_s(c, asked), 50); /* no more than it may */
}

/* Bounds derive from the errors of predictions; the older a job is the more time it has left. */
static void test_bounds_hold(void **state)
{
        static const char *const job[] = {"Cmd", "\"mc\"", NULL};
        struct core *c = *state;
        struct core_eta_error e;
        uint32_t random = 7;
        int half = 0, most = 0, all = 0;

        for (int i = 0; i < 600; i++) {
                uint64_t r;
                struct estimate_bounds b, later;
                const struct part *p;
                int64_t ms;

                random = random * 1664525u + 1013904223u;
                ms = (int64_t)(10000 * exp2((double)(random >> 8) / 16777216 * 8)); /* 10 s to 43 min */
                r = test_submit(c, "ann@lab", 1, job);
                p = request_part(request_find(c, r), 0, NULL);
                estimate_bounds(c, p, NULL, 0, &b);
                assert_true(b.half_ms <= b.most_ms);
                estimate_bounds(c, p, NULL, b.most_ms + 1000, &later);
                assert_true(later.half_ms > b.most_ms && later.most_ms >= later.half_ms);
                assert_true(estimate_left_ms(c, p, NULL, b.most_ms * 2) > 0);
                if (i >= 100) {
                        all++;
                        half += ms <= b.half_ms;
                        most += ms <= b.most_ms;
                }
                offer(c, "n1", ONE);
                core_match(c);
                started(c, "n1", r, 0);
                pass_time(c, ms);
                ended(c, "n1", r, 0);
                buf_reset(&bare_assigned);
        }
        assert_in_range(half * 100 / all, 43, 57);
        assert_in_range(most * 100 / all, 84, 96);
        core_eta_error(c, &e);
        assert_true(e.ends > 200 && e.by_half > 0.4 && e.by_half < 0.6 && e.by_most > 0.8 && e.by_most <= 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_quantiles_follow_what_came),
                cmocka_unit_test(test_beyond_what_came),
                cmocka_unit_test(test_old_ones_fade),
                cmocka_unit_test(test_a_spread_is_packed),
                cmocka_unit_test(test_arguments_have_a_shape),
                TEST(test_one_odd_run_says_little),
                TEST(test_other_arguments_are_another_job),
                TEST(test_sizes_and_times_asked_for_tell),
                TEST(test_bounds_hold),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
