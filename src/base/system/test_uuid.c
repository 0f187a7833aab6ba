#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/uuid.h"

static void makes_valid_and_different(void **state)
{
        (void)state;
        char a[UUID_TEXT], b[UUID_TEXT];
        uuid_new(a);
        uuid_new(b);
        assert_true(uuid_valid(str_of(a)));
        assert_string_not_equal(a, b);
        assert_int_equal(a[14], '4');
}

static void refuses_others(void **state)
{
        (void)state;
        assert_true(uuid_valid(STR("01234567-89ab-cdef-0123-456789ABCDEF")));
        assert_false(uuid_valid(STR("01234567-89ab-cdef-0123-456789ABCDE")));
        assert_false(uuid_valid(STR("01234567-89ab-cdef-0123-456789ABCDEG")));
        assert_false(uuid_valid(STR("01234567089ab-cdef-0123-456789ABCDEF")));
        assert_false(uuid_valid(STR_NONE));
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(makes_valid_and_different),
                                           cmocka_unit_test(refuses_others)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
