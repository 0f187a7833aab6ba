#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "server/loop/allowance.h"

#define MS INT64_C(1000000)

static void test_what_is_spent_comes_back(void **state)
{
        struct allowances *a = allowances_new(50 * MS, 20 * MS);

        (void)state;
        assert_true(allowance_left(a, STR("mallory"), 1000));
        allowance_spend(a, STR("mallory"), 49 * MS);
        assert_true(allowance_left(a, STR("mallory"), 1000));
        allowance_spend(a, STR("mallory"), 41 * MS); /* a piece of work costs more than is left */
        assert_false(allowance_left(a, STR("mallory"), 1000));
        assert_true(allowance_left(a, STR("alice"), 1000));
        assert_false(allowance_left(a, STR("mallory"), 2900));
        assert_true(allowance_left(a, STR("mallory"), 3100));
        allowance_spend(a, STR("mallory"), 2 * MS);
        assert_false(allowance_left(a, STR("mallory"), 3100));
        assert_true(allowance_left(a, STR("mallory"), INT64_MAX / 2)); /* no more than the burst */
        allowance_spend(a, STR("mallory"), 50 * MS);
        assert_false(allowance_left(a, STR("mallory"), INT64_MAX / 2));
        allowances_free(a);
}

static void test_thousands_of_users(void **state)
{
        struct allowances *a = allowances_new(50 * MS, 20 * MS);
        char name[24];

        (void)state;
        assert_true(allowance_left(a, STR("mallory"), 0));
        allowance_spend(a, STR("mallory"), 1000 * MS);
        for (int i = 0; i < 20000; i++) {
                snprintf(name, sizeof(name), "user%d", i);
                assert_true(allowance_left(a, str_of(name), i));
        }
        assert_false(allowance_left(a, STR("mallory"), 20000)); /* is not forgotten among them */
        allowances_free(a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_spent_comes_back),
                cmocka_unit_test(test_thousands_of_users),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
