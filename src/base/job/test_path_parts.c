/* Parts of paths, by letters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/job/path_parts.h"

static void is(const char *letters, const char *path, const char *want)
{
        struct path_parts p = {0};
        struct str got;

        assert_true(path_parts_read(str_of(letters), &p));
        got = path_parts_select(&p, str_of(path));
        if (!str_eqz(got, want))
                fail_msg("%s of %s is " STR_FMT ", not %s", letters, path, STR_ARG(got), want);
}

static void test_parts(void **state)
{
        static const char path[] = "/tmp/run.d/simulate.tar.gz";

        (void)state;
        is("", path, path);
        is("p", path, "/tmp/run.d/");
        is("pb", path, "/tmp/run.d");
        is("d", path, "run.d/");
        is("db", path, "run.d");
        is("dd", path, "tmp/run.d/");
        is("ddd", path, "/tmp/run.d/");
        is("dddd", path, "/tmp/run.d/");
        is("n", path, "simulate.tar");
        is("x", path, ".gz");
        is("XB", path, "gz");
        is("nx", path, "simulate.tar.gz");
        is("pn", path, "/tmp/run.d/simulate.tar");
        is("dn", path, "run.d/simulate.tar");
        is("dnx", path, "run.d/simulate.tar.gz");
}

static void test_without(void **state)
{
        (void)state;
        is("p", "plain.c", "");
        is("d", "plain.c", "");
        is("pnx", "plain.c", "plain.c");
        is("x", "/a.d/plain", "");
        is("n", ".bashrc", ".bashrc");
        is("x", ".bashrc", "");
        is("nx", "", "");
        is("p", "/", "/");
        is("w", "a\\b.c", "a\\b.c");
        is("wn", "a\\b.c", "b");
}

static void test_letters(void **state)
{
        struct path_parts p = {0};

        (void)state;
        assert_true(path_parts_read(STR("ddfqau"), &p));
        assert_int_equal(p.parts, PATH_LAST_DIRS);
        assert_int_equal(p.dirs, 2);
        assert_true(p.full && p.quote && p.argument_quote && !p.bare);
        assert_int_equal(p.separator, '/');
        assert_false(path_parts_read(STR("pz"), &p));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parts),
                cmocka_unit_test(test_without),
                cmocka_unit_test(test_letters),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
