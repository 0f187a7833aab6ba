#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void sets(void **state)
{
        struct err e;

        (void)state;
        assert_int_equal(err_set(&e, -ENOENT, "no %s", "file"), -ENOENT);
        assert_string_equal(e.text, "no file");
        assert_int_equal(err_set(NULL, 7, "no %s", "file"), 7);
}

static void prefixes(void **state)
{
        struct err e;

        (void)state;
        err_set(&e, -EINVAL, "no value");
        assert_int_equal(err_prefix(&e, -EINVAL, "%s:%d", "a.sub", 3), -EINVAL);
        assert_string_equal(e.text, "a.sub:3: no value");
        assert_int_equal(err_prefix(NULL, -EINVAL, "x"), -EINVAL);
}

static void cuts(void **state)
{
        char text[2 * ERR_TEXT_MAX];
        struct err e;

        (void)state;
        memset(text, 'x', sizeof(text));
        text[sizeof(text) - 1] = '\0';
        err_set(&e, -1, "%s", text);
        assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
        err_prefix(&e, -1, "prefix");
        assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
        assert_memory_equal(e.text, "prefix: xxx", 11);
        err_prefix(&e, -1, "%s", text);
        assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sets),
                cmocka_unit_test(prefixes),
                cmocka_unit_test(cuts),
        };

        return cmocka_run_group_tests_name("base/err", tests, NULL, NULL);
}
