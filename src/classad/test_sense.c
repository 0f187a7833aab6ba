/* Values that an attribute of a job cannot have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "classad/sense.h"

/* Why it cannot be; "" when it can. */
static const char *said(struct symbols *symbols, const char *attribute, const char *text)
{
        static struct err err;
        struct expr *x = NULL;

        err = (struct err){""};
        assert_int_equal(expr_parse(symbols, str_of(text), &x, NULL), 0);
        if (sense_check(str_of(attribute), x, &err) == 0)
                assert_string_equal(err.text, "");
        expr_free(x);
        return err.text;
}

static void test_literals(void **state)
{
        struct symbols *s = symbols_new();

        (void)state;
        assert_string_equal(said(s, "RequestCpus", "-1"), "-1 is not a number of 0 or more");
        assert_string_equal(said(s, "requestmemory", "-1"), "-1 is not a number of 0 or more (MiB)");
        assert_string_equal(said(s, "RequestGPUs", "\"two\""), "\"two\" is not a number of 0 or more");
        assert_string_equal(said(s, "RequestLicence", "-3"), "-3 is not a number of 0 or more");
        assert_string_equal(said(s, "ExpectedRunTime", "1e10"),
                            "1.000000000000000E+10 is not a number from 0 to 1000000000 (s)");
        assert_string_not_equal(said(s, "BetterPlaceWait", "-1"), "");
        assert_string_not_equal(said(s, "PriceWeight", "-0.5"), "");
        symbols_free(s);
}

static void test_what_has_a_sense(void **state)
{
        static const char *const fine[][2] = {
                {"RequestCpus", "0"},
                {"RequestMemory", "1.5"},
                {"RequestDisk", "undefined"},
                {"RequestCpus", "MY.Threads - 8"},
                {"RequestModel", "\"A100\""},
                {"ExpectedRunTime", "0"},
                {"PriceWeight", "0.25"},
                {"BetterPlaceWait", "1000000000"},
                {"JobPrio", "-5"},
                {"Rank", "-1"},
                {"ExpectedRunTime", "-1 * X"},
                {"TransferOutputSizeMB", "-1"},
        };
        struct symbols *s = symbols_new();

        (void)state;
        for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
                assert_string_equal(said(s, fine[i][0], fine[i][1]), "");
        symbols_free(s);
}

static int sizes(const char *of, const char *inputs)
{
        return sense_check_sizes(str_of(of), str_of(inputs), NULL);
}

static void test_sizes_go_by_the_list(void **state)
{
        (void)state;
        assert_int_equal(sizes("", ""), 0);
        assert_int_equal(sizes("1, 2", "a, b"), 0);
        assert_int_equal(sizes(",2", "a,b,c"), 0);
        assert_int_equal(sizes("1,,", "a"), 0); /* more, but no more sizes */
        assert_int_not_equal(sizes("abc", "a"), 0);
        assert_int_not_equal(sizes("-1", "a"), 0);
        assert_int_not_equal(sizes("1K", "a"), 0);
        assert_int_not_equal(sizes("1,2", "a"), 0);
        assert_int_not_equal(sizes("1", ""), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_literals),
                cmocka_unit_test(test_what_has_a_sense),
                cmocka_unit_test(test_sizes_go_by_the_list),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
