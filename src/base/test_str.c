#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/str.h"

#define assert_str(s, z) assert_true(str_eqz((s), (z)))

static void compares(void **state)
{
        (void)state;
        assert_true(str_eq(STR("abc"), str_make("abcd", 3)));
        assert_false(str_eq(STR("abc"), STR("abd")));
        assert_false(str_eq(STR("abc"), STR("ab")));
        assert_true(str_eq(STR_NONE, STR("")));
        assert_true(str_ieq(STR("Request_CPUs"), STR("rEQUEST_cpuS")));
        assert_false(str_ieq(STR("a@"), STR("a`"))); /* these differ by the case bit, and are not letters */
        assert_false(str_ieq(STR("\xc4"), STR("\xe4")));
        assert_true(str_cmp(STR("ab"), STR("abc")) < 0);
        assert_true(str_cmp(STR("b"), STR("abc")) > 0);
        assert_true(str_cmp(STR("\xff"), STR("a")) > 0);
        assert_int_equal(str_cmp(STR_NONE, STR("")), 0);
        assert_true(str_icmp(STR("B"), STR("a")) > 0);
        assert_int_equal(str_icmp(STR("ABC"), STR("abc")), 0);
        assert_true(str_icmp(STR("ABC"), STR("abcd")) < 0);
        assert_true(str_starts(STR("abc"), STR("ab")));
        assert_false(str_starts(STR("a"), STR("ab")));
        assert_true(str_istarts(STR("ABc"), STR("ab")));
        assert_true(str_ends(STR("abc"), STR("bc")));
        assert_false(str_ends(STR("c"), STR("bc")));
        assert_true(str_ends(STR("c"), STR("")));
}

static void cuts(void **state)
{
        struct str rest = STR("a,,b,"), head;

        (void)state;
        assert_true(str_cut(&rest, ',', &head));
        assert_str(head, "a");
        assert_true(str_cut(&rest, ',', &head));
        assert_str(head, "");
        assert_true(str_cut(&rest, ',', &head));
        assert_str(head, "b");
        assert_true(str_cut(&rest, ',', &head));
        assert_str(head, "");
        assert_false(str_cut(&rest, ',', &head));
        rest = STR_NONE;
        assert_false(str_cut(&rest, ',', &head));
        rest = STR("");
        assert_true(str_cut(&rest, ',', &head));
        assert_false(str_cut(&rest, ',', &head));
}

static void words(void **state)
{
        struct str rest = STR(" one\ttwo\r\n"), word;

        (void)state;
        assert_true(str_word(&rest, &word));
        assert_str(word, "one");
        assert_true(str_word(&rest, &word));
        assert_str(word, "two");
        assert_false(str_word(&rest, &word));
        rest = STR_NONE;
        assert_false(str_word(&rest, &word));
}

static void looks(void **state)
{
        (void)state;
        assert_str(str_trim(STR(" \t a b \n")), "a b");
        assert_str(str_trim(STR(" \v\f ")), "");
        assert_str(str_trim(STR_NONE), "");
        assert_str(str_skip(STR("abc"), 2), "c");
        assert_str(str_skip(STR("abc"), 9), "");
        assert_str(str_head(STR("abc"), 2), "ab");
        assert_str(str_head(STR("abc"), 9), "abc");
        assert_int_equal(str_find(STR("abcb"), 'b'), 1);
        assert_int_equal(str_rfind(STR("abcb"), 'b'), 3);
        assert_int_equal(str_find(STR("abc"), 'x'), -1);
        assert_int_equal(str_find(STR_NONE, 'x'), -1);
        assert_int_equal(str_search(STR("abcbc"), STR("bc")), 1);
        assert_int_equal(str_search(STR("abc"), STR("")), 0);
        assert_int_equal(str_search(STR("abc"), STR("abcd")), -1);
}

static void integers(void **state)
{
        int64_t i = 5;
        uint64_t u = 5;

        (void)state;
        assert_int_equal(str_to_i64(STR("-9223372036854775808"), &i), 0);
        assert_true(i == INT64_MIN);
        assert_int_equal(str_to_i64(STR("+9223372036854775807"), &i), 0);
        assert_true(i == INT64_MAX);
        assert_int_equal(str_to_i64(STR("9223372036854775808"), &i), -ERANGE);
        assert_int_equal(str_to_i64(STR("-9223372036854775809"), &i), -ERANGE);
        assert_true(i == INT64_MAX); /* a failure writes nothing */
        assert_int_equal(str_to_u64(STR("18446744073709551615"), &u), 0);
        assert_true(u == UINT64_MAX);
        assert_int_equal(str_to_u64(STR("18446744073709551616"), &u), -ERANGE);
        static const char *const bad[] = {"", " 1", "1 ", "1x", "-", "+", "--1", "0x10", "1.0", "+-1"};
        for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
                assert_int_equal(str_to_i64(str_of(bad[k]), &i), -EINVAL);
        assert_int_equal(str_to_u64(STR("-1"), &u), -EINVAL);
}

static void reals(void **state)
{
        static const char *const bad[] = {"", " 1", "1 ", "1e", "1.5x", "e5"};
        double d = 0;

        (void)state;
        assert_int_equal(str_to_double(STR("1.5e3"), &d), 0);
        assert_true(d == 1500.0);
        assert_int_equal(str_to_double(str_make("2.25xyz", 4), &d), 0);
        assert_true(d == 2.25);
        assert_int_equal(str_to_double(STR("1e999"), &d), -ERANGE);
        assert_int_equal(str_to_double(STR("1e-999"), &d), 0); /* too small is nought */
        assert_true(d == 0.0);
        for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
                assert_int_equal(str_to_double(str_of(bad[k]), &d), -EINVAL);
}

static void distances(void **state)
{
        char text[66];

        (void)state;
        assert_int_equal(str_distance(STR("executable"), STR("executable"), 2), 0);
        assert_int_equal(str_distance(STR("Executable"), STR("executabel"), 2), 1); /* a swap */
        assert_int_equal(str_distance(STR("request_cpu"), STR("request_cpus"), 2), 1);
        assert_int_equal(str_distance(STR("kitten"), STR("sitting"), 3), 3);
        assert_int_equal(str_distance(STR("kitten"), STR("sitting"), 2), 3);
        assert_int_equal(str_distance(STR(""), STR("ab"), 2), 2);
        memset(text, 'a', sizeof(text));
        assert_int_equal(str_distance(str_make(text, 64), str_make(text, 64), 2), 0);
        assert_int_equal(str_distance(str_make(text, 65), str_make(text, 65), 2), 3);
}

static void copies(void **state)
{
        char *z = str_dupz(str_make("abcd", 2));

        (void)state;
        assert_string_equal(z, "ab");
        free(z);
        z = str_dupz(STR_NONE);
        assert_string_equal(z, "");
        free(z);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(compares),  cmocka_unit_test(cuts),     cmocka_unit_test(words),
                cmocka_unit_test(looks),     cmocka_unit_test(integers), cmocka_unit_test(reals),
                cmocka_unit_test(distances), cmocka_unit_test(copies),
        };

        return cmocka_run_group_tests_name("base/str", tests, NULL, NULL);
}
