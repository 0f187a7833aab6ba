#include "base/job/offer_limit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_limits(void **state)
{
        struct str text = STR(" Cpus=8, Memory = 16384 ,gpus=0");
        struct offer_limit one;

        (void)state;
        assert_int_equal(offer_limit_next(&text, &one), 0);
        assert_true(str_eq(one.name, STR("Cpus")) && one.most == 8);
        assert_int_equal(offer_limit_next(&text, &one), 0);
        assert_true(str_eq(one.name, STR("Memory")) && one.most == 16384);
        assert_int_equal(offer_limit_next(&text, &one), 0);
        assert_true(str_eq(one.name, STR("gpus")) && one.most == 0);
        assert_int_equal(offer_limit_next(&text, &one), 1);
        assert_true(offer_limits_good(STR("")));
        assert_true(offer_limits_good(STR("A_1=9007199254740992")));
}

static void test_what_is_none(void **state)
{
        static const char *const bad[] = {"Cpus",
                                          "Cpus=",
                                          "=8",
                                          "Cpus=-1",
                                          "Cpus=8G",
                                          "Cpus=1.5",
                                          "1a=2",
                                          "a b=2",
                                          ",Cpus=8",
                                          "Cpus=8;Memory=2",
                                          "A=9007199254740993",
                                          "A=99999999999999999999",
                                          "Cpus=8=9"};
        struct offer_limit one;
        struct str text = STR("Cpus=x");

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                assert_false(offer_limits_good(str_of(bad[i])));
        assert_int_equal(offer_limit_next(&text, &one), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits),
                                           cmocka_unit_test(test_what_is_none)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
