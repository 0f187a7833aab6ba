#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/job/args.h"

static void expect(const struct args *a, size_t n, const char *const *words)
{
        assert_int_equal(a->n, n);
        for (size_t i = 0; i < n; i++)
                assert_string_equal(a->v[i], words[i]);
        if (n)
                assert_null(a->v[n]);
}
#define EXPECT(a, ...)                                                                                       \
        expect((a), sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})

static void test_v1(void **state)
{
        ARGS_CLEANUP struct args a = {0};
        struct err err;

        (void)state;
        assert_int_equal(args_split_v1(&a, STR("  one \t'two three'  "), &err), 0);
        EXPECT(&a, "one", "'two", "three'");
        assert_int_equal(args_split_v1(&a, STR("   "), &err), 0);
        assert_int_equal(a.n, 3);
        assert_int_equal(args_split_v1(&a, STR("x\0y"), &err), -EINVAL);
        assert_int_equal(a.n, 3);
}

/* The examples of HTCondor's manual, condor_submit, "arguments". */
static void test_v2(void **state)
{
        ARGS_CLEANUP struct args a = {0}, b = {0}, c = {0}, d = {0};
        struct err err;

        (void)state;
        assert_int_equal(args_split_v2(&a, STR("3 simple arguments"), &err), 0);
        EXPECT(&a, "3", "simple", "arguments");
        assert_int_equal(args_split_v2(&b, STR("one 'two with spaces' 3"), &err), 0);
        EXPECT(&b, "one", "two with spaces", "3");
        assert_int_equal(args_split_v2(&c, STR("one \"two\" 'spacey ''quoted'' argument'"), &err), 0);
        EXPECT(&c, "one", "\"two\"", "spacey 'quoted' argument");
        assert_int_equal(args_split_v2(&d, STR("'' a''b pre' 'post ''''"), &err), 0);
        EXPECT(&d, "", "ab", "pre post", "'");
}

static void test_v2_unbalanced(void **state)
{
        ARGS_CLEANUP struct args a = {0};
        struct err err;

        (void)state;
        args_add(&a, STR("kept"));
        assert_int_equal(args_split_v2(&a, STR("x y 'open z"), &err), -EINVAL);
        assert_non_null(strstr(err.text, "'open z"));
        EXPECT(&a, "kept");
        assert_int_equal(args_split_v2(&a, STR("'"), NULL), -EINVAL);
}

static void test_unquote(void **state)
{
        BUF_CLEANUP struct buf out = {0};
        struct err err;

        (void)state;
        assert_int_equal(args_unquote_v2(STR(" \"a \"\"b\"\"\" "), &out, &err), 0);
        assert_string_equal(buf_z(&out), "a \"b\"");
        buf_reset(&out);
        assert_int_equal(args_unquote_v2(STR("\"\""), &out, &err), 0);
        assert_int_equal(out.n, 0);
        assert_int_equal(args_unquote_v2(STR("plain"), &out, &err), -EINVAL);
        assert_int_equal(args_unquote_v2(STR(""), &out, &err), -EINVAL);
        assert_int_equal(args_unquote_v2(STR("\"open"), &out, &err), -EINVAL);
        assert_int_equal(args_unquote_v2(STR("\"open\"\""), &out, &err), -EINVAL);
        assert_int_equal(args_unquote_v2(STR("\"a\" b"), &out, &err), -EINVAL);
}

static void test_environment(void **state)
{
        ARGS_CLEANUP struct args a = {0}, b = {0}, c = {0};
        struct err err;

        (void)state;
        assert_int_equal(args_env_v1(&a, STR("A=1; B=two words ;;C=x=y"), &err), 0);
        EXPECT(&a, "A=1", "B=two words ", "C=x=y");
        assert_int_equal(args_env_v1(&c, STR("|D=1;2|E=x"), &err), 0);
        EXPECT(&c, "D=1;2", "E=x");
        assert_int_equal(args_env_v1(&c, STR(">="), &err), -EINVAL);
        assert_int_equal(args_env_v1(&a, STR("D=1;oops"), &err), -EINVAL);
        assert_non_null(strstr(err.text, "oops"));
        assert_int_equal(a.n, 3);
        assert_int_equal(args_env_v2(&b, STR("one=1 two='a b' three= 'four=it''s'"), &err), 0);
        EXPECT(&b, "one=1", "two=a b", "three=", "four=it's");
        assert_int_equal(args_env_v2(&b, STR("one=2 two=3 one=4"), &err), 0);
        EXPECT(&b, "three=", "four=it's", "two=3", "one=4");
        assert_int_equal(args_env_v1(&a, STR("B=2;B=3"), &err), 0);
        EXPECT(&a, "A=1", "C=x=y", "B=3");
        assert_int_equal(args_env_v2(&b, STR("=x"), &err), -EINVAL);
        assert_int_equal(args_env_v2(&b, STR("a b"), &err), -EINVAL);
        assert_int_equal(b.n, 4);
}

static void test_join_splits_back(void **state)
{
        static const char *const words[] = {"plain", "",       "two words", "it's", "'",
                                            "''",    "a\tb\n", "\"x\"",     "\\"};
        ARGS_CLEANUP struct args a = {0}, b = {0};
        BUF_CLEANUP struct buf out = {0};

        (void)state;
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                args_add(&a, str_of(words[i]));
        args_join_v2(&out, &a);
        assert_int_equal(args_split_v2(&b, buf_view(&out), NULL), 0);
        expect(&b, sizeof(words) / sizeof(words[0]), words);
}

static void test_too_many(void **state)
{
        ARGS_CLEANUP struct args a = {0};
        BUF_CLEANUP struct buf text = {0};
        struct err err;

        (void)state;
        for (int i = 0; i < ARGS_MAX; i++)
                buf_addz(&text, "x ");
        assert_int_equal(args_split_v1(&a, buf_view(&text), &err), 0);
        assert_int_equal(a.n, ARGS_MAX);
        assert_int_equal(args_split_v2(&a, STR("y"), &err), -E2BIG);
        assert_int_equal(a.n, ARGS_MAX);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_v1),
                cmocka_unit_test(test_v2),
                cmocka_unit_test(test_v2_unbalanced),
                cmocka_unit_test(test_unquote),
                cmocka_unit_test(test_environment),
                cmocka_unit_test(test_join_splits_back),
                cmocka_unit_test(test_too_many),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
