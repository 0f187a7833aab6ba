/* Accounts, their users, and their charges. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/accounts/share.h"
#include "core/core.h"

#include "base/pack.h"

#define HOUR_MS 3600000ll
static const struct share_config config = {.half_life_ms = HOUR_MS};

static struct shares *make_groups(void)
{
        const struct str ann_bob[] = {STR("ann@local"), STR("bob@local")}, all[] = {STR("*@far.org")};
        struct shares *s = shares_new(&config);

        assert_int_equal(shares_set_group(s, STR("Physics"), 60, ann_bob, 2, NULL), 0);
        assert_int_equal(shares_set_group(s, STR("physics.cms"), 2, NULL, 0, NULL), 0);
        assert_int_equal(shares_set_group(s, STR("bio"), 40, ann_bob, 1, NULL), 0);
        assert_int_equal(shares_set_group(s, STR("guests"), 1, all, 1, NULL), 0);
        return s;
}

static const char *resolve(struct shares *s, const char *owner, const char *group)
{
        static struct err err;
        struct account *a;

        return shares_resolve(s, str_of(owner), str_of(group), &a, &err) ? err.text : a->path;
}

static void test_without_settings_each_user_has_a_leaf(void **state)
{
        struct shares *s = shares_new(&config);

        (void)state;
        assert_string_equal(resolve(s, "ann@local", ""), "/ann@local");
        assert_string_equal(resolve(s, "ann@local", "physics.ann"), "/ann@local");
        shares_free(s);
}

static void test_who_may_use_what(void **state)
{
        struct shares *s = make_groups();

        (void)state;
        assert_string_equal(resolve(s, "ann@local", ""), "physics/ann@local");
        assert_string_equal(resolve(s, "eve@local", ""), "/eve@local");
        assert_string_equal(resolve(s, "x@far.org", ""), "guests/x@far.org");
        assert_string_equal(resolve(s, "ann@local", "bio"), "bio/ann@local");
        assert_string_equal(resolve(s, "bob@local", "PHYSICS.CMS"), "physics.cms/bob@local");
        assert_string_equal(resolve(s, "eve@local", "nice-user.eve"), "nice-user/eve@local");
        assert_string_equal(resolve(s, "bob@local", "physics.cms.bob"), "physics.cms/bob@local");
        assert_non_null(strstr(resolve(s, "bob@local", "bio"), "bob@local may use physics, physics.cms"));
        assert_non_null(strstr(resolve(s, "bob@local", "chem"), "no such account"));
        assert_non_null(strstr(resolve(s, "eve@local", "bio"), "leave accounting_group out"));
        shares_free(s);
}

static void test_settings_that_make_no_sense(void **state)
{
        struct shares *s = shares_new(&config);

        (void)state;
        assert_int_not_equal(shares_set_group(s, STR("a..b"), 1, NULL, 0, NULL), 0);
        assert_int_not_equal(shares_set_group(s, STR("a/b"), 1, NULL, 0, NULL), 0);
        assert_int_not_equal(shares_set_group(s, STR("a.b.c.d.e.f.g.h.i"), 1, NULL, 0, NULL), 0);
        assert_int_not_equal(shares_set_group(s, STR("a"), 0, NULL, 0, NULL), 0);
        assert_int_not_equal(shares_set_group(s, STR("a"), NAN, NULL, 0, NULL), 0);
        shares_free(s);
}

static void test_usage_grows_and_halves(void **state)
{
        struct shares *s = make_groups();
        struct account *ann = shares_leaf(s, STR("physics/ann@local")),
                       *group = shares_find(s, STR("physics"));
        int64_t rate = shares_rate(s, 4, 0), t = 1700000000000;
        double mean_life_s = 3600 / M_LN2;

        (void)state;
        assert_int_equal(rate, 4000);
        account_begin(s, ann, rate, t);
        assert_true(fabs(account_usage(s, ann, t + 1000) - 4) < 0.01);
        /* Running on four processors for ever gives a mean of four. */
        assert_true(fabs(account_mean(s, ann, t + 1000 * HOUR_MS) - 4) < 1e-6);
        assert_true(fabs(account_mean(s, group, t + 1000 * HOUR_MS) - 4) < 1e-6);
        account_end(s, ann, rate, t + 1000 * HOUR_MS);
        assert_true(fabs(account_usage(s, ann, t + 1001 * HOUR_MS) - 2 * mean_life_s) < 1e-3);
        assert_true(fabs(account_usage(s, group, t + 1001 * HOUR_MS) - 2 * mean_life_s) < 1e-3);
        assert_int_equal(group->attempts, 0);
        assert_null(shares_check(s));
        shares_free(s);
}

static void test_memory_may_count(void **state)
{
        const struct share_config by_memory = {.memory_per_cpu_mib = 4096};
        struct shares *s = shares_new(&by_memory);

        (void)state;
        assert_int_equal(shares_rate(s, 1, 1024), 1000);
        assert_int_equal(shares_rate(s, 1, 8192), 2000);
        shares_free(s);
}

static void test_a_snapshot_gives_the_same_numbers(void **state)
{
        struct shares *s = make_groups(), *other = make_groups();
        struct account *ann = shares_leaf(s, STR("physics/ann@local")),
                       *bob = shares_leaf(s, STR("/bob@local"));
        struct buf a = {0}, b = {0};
        struct unpack in;
        int64_t t = 1700000000000;

        (void)state;
        account_begin(s, ann, 3000, t);
        account_begin(s, bob, 1000, t + 77);
        account_begin(s, ann, 1000, t + HOUR_MS / 3);
        account_end(s, ann, 3000, t + HOUR_MS);
        shares_pack(s, &a);
        in = unpack_from(buf_view(&a));
        shares_unpack(other, &in);
        assert_true(unpack_done(&in));
        account_resume(shares_leaf(other, STR("physics/ann@local")), 1000);
        account_resume(shares_leaf(other, STR("/bob@local")), 1000);
        shares_restored(other);
        account_end(s, ann, 1000, t + 5 * HOUR_MS);
        account_end(other, shares_leaf(other, STR("physics/ann@local")), 1000, t + 5 * HOUR_MS);
        buf_reset(&a);
        shares_pack(s, &a);
        shares_pack(other, &b);
        assert_true(str_eq(buf_view(&a), buf_view(&b)));
        assert_true(fabs(account_usage(s, shares_root(s), t + 6 * HOUR_MS) -
                         account_usage(other, shares_root(other), t + 6 * HOUR_MS)) < 1e-6);
        assert_null(shares_check(other));
        buf_deinit(&a);
        buf_deinit(&b);
        shares_free(s);
        shares_free(other);
}

static void test_steps_are_paid_back(void **state)
{
        struct shares *s = shares_new(&config);
        struct account *a;

        (void)state;
        assert_int_equal(shares_resolve(s, STR("ann@local"), STR_NONE, &a, NULL), 0);
        assert_true(account_may_evaluate(NULL, 0));
        account_evaluated(NULL, 0, 1000000);
        for (unsigned i = 0; i < 1000000; i++)
                account_evaluated(a, 5000, ACCOUNT_STEPS_FREE);
        assert_true(account_may_evaluate(a, 5000));
        account_evaluated(a, 5000, ACCOUNT_STEPS_FREE + 3 * ACCOUNT_STEPS + 1);
        assert_false(account_may_evaluate(a, 5999));
        assert_false(account_may_evaluate(a, 6999));
        assert_true(account_may_evaluate(a, 8000));
        account_evaluated(a, 6999, ACCOUNT_STEPS_FREE + 1);
        assert_false(account_may_evaluate(a, 7999));
        assert_true(account_may_evaluate(a, 8000));
        assert_true(account_may_evaluate(a, INT64_MAX));
        shares_free(s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_without_settings_each_user_has_a_leaf),
                cmocka_unit_test(test_who_may_use_what),
                cmocka_unit_test(test_settings_that_make_no_sense),
                cmocka_unit_test(test_usage_grows_and_halves),
                cmocka_unit_test(test_memory_may_count),
                cmocka_unit_test(test_a_snapshot_gives_the_same_numbers),
                cmocka_unit_test(test_steps_are_paid_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
