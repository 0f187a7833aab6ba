#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/format/quantity.h"

static void reads_units(void **state)
{
        uint64_t v;

        (void)state;
        assert_int_equal(quantity_size(STR("1.5 GiB"), &v), 0);
        assert_true(v == 3ull << 29);
        assert_int_equal(quantity_size(STR("7"), &v), 0);
        assert_int_equal(v, 7);
        assert_int_equal(quantity_size(STR("2t"), &v), 0);
        assert_true(v == 2ull << 40);
        assert_int_equal(quantity_size(STR("4GB"), &v), 0);
        assert_true(v == 4ull << 30);
        assert_int_equal(quantity_duration(STR("90"), &v), 0);
        assert_int_equal(v, 90000);
        assert_int_equal(quantity_duration(STR("250ms"), &v), 0);
        assert_int_equal(v, 250);
        assert_int_equal(quantity_duration(STR("2d"), &v), 0);
        assert_int_equal(v, 2 * 86400000);
        assert_int_equal(quantity_thousandths(STR("1.5"), &v), 0);
        assert_int_equal(v, 1500);
        assert_int_equal(quantity_count(STR("12"), &v), 0);
        assert_int_equal(v, 12);
}

static void refuses(void **state)
{
        static const char *const bad[] = {"", "GiB", "1 XiB", "-1", "1.2.3", "1 GiB x", "0x10", "inf"};
        uint64_t v = 42;

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                assert_int_equal(quantity_size(str_of(bad[i]), &v), -EINVAL);
        assert_int_equal(quantity_duration(STR("5 KiB"), &v), -EINVAL);
        assert_int_equal(quantity_size(STR("99999999TiB"), &v), -ERANGE);
        assert_int_equal(v, 42);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(reads_units), cmocka_unit_test(refuses)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
