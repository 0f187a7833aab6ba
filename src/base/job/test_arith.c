#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/job/arith.h"

static void test_integers(void **state)
{
        static const struct {
                const char *text;
                int64_t value;
        } cases[] = {
                {"7", 7},      {" 3 + 1 ", 4},     {"2+3*4", 14}, {"(2+3)*4", 20},
                {"7/2", 3},    {"7%4", 3},         {"-5+2", -3},  {"--5", 5},
                {"10-4-3", 3}, {"2*(1+(3-1))", 6}, {"+8", 8},     {"-9223372036854775807", -INT64_MAX},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct arith v = {0};

                assert_int_equal(arith_eval(str_of(cases[i].text), &v, NULL), 0);
                assert_false(v.is_real);
                assert_int_equal(v.integer, cases[i].value);
        }
}

static void test_reals(void **state)
{
        struct arith v = {0};

        (void)state;
        assert_int_equal(arith_eval(STR("7 / 2.0"), &v, NULL), 0);
        assert_true(v.is_real);
        assert_true(v.real == 3.5);
        assert_int_equal(arith_eval(STR("-.5e1"), &v, NULL), 0);
        assert_true(v.real == -5.0);
}

static void test_wrong(void **state)
{
        static const char *const cases[] = {
                "",
                " ",
                "x",
                "1+",
                "(1",
                "1)",
                "1 2",
                "1/0",
                "1%0",
                "1.5%2",
                "9223372036854775808",
                "1e",
                ".",
                "*3",
                "9223372036854775807+1",
                "9223372036854775807*2",
                "(-9223372036854775807-1)/-1",
                "1/0.0",
                "-(-9223372036854775807-1)",
        };
        struct arith v = {.integer = 42};
        struct err err;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_int_equal(arith_eval(str_of(cases[i]), &v, &err), -EINVAL);
        assert_int_equal(v.integer, 42);
}

static void test_depth(void **state)
{
        BUF_CLEANUP struct buf text = {0};
        struct arith v;

        (void)state;
        for (int i = 0; i < 100000; i++)
                buf_char(&text, i % 2 ? '-' : '(');
        assert_int_equal(arith_eval(buf_view(&text), &v, NULL), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_integers),
                cmocka_unit_test(test_reals),
                cmocka_unit_test(test_wrong),
                cmocka_unit_test(test_depth),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
