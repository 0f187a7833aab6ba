#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "catalog/column.h"

static void values_come_back(void **state)
{
        const struct catalog_value values[] = {
                {.type = CATALOG_TEXT, .text = STR("P04ik")},
                {.type = CATALOG_TEXT, .text = STR("")},
                {.type = CATALOG_INTEGER, .integer = INT64_MIN},
                {.type = CATALOG_INTEGER, .integer = 5},
                {.type = CATALOG_REAL, .real = -0.5},
                {.type = CATALOG_BOOLEAN, .boolean = true},
                {.type = CATALOG_BOOLEAN, .boolean = false},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
                BUF_CLEANUP struct buf b = {0};
                struct catalog_value v;

                column_value_pack(&b, &values[i]);
                assert_true(column_value_unpack(buf_view(&b), &v));
                assert_int_equal(v.type, values[i].type);
                if (v.type == CATALOG_TEXT)
                        assert_true(str_eq(v.text, values[i].text));
                else if (v.type == CATALOG_REAL)
                        assert_true(v.real == values[i].real);
                else if (v.type == CATALOG_BOOLEAN)
                        assert_int_equal(v.boolean, values[i].boolean);
                else
                        assert_int_equal(v.integer, values[i].integer);
        }
}

/* `distinct` values over all files, some of which have none; then values change, and old ones go. */
static void check(unsigned distinct)
{
        struct column a = {0}, b = {0};
        BUF_CLEANUP struct buf stored = {0}, again = {0};
        char text[32];

        for (unsigned i = 0; i < COLUMN_FILES; i++) {
                snprintf(text, sizeof(text), "value %u", i % distinct);
                if (i % 7)
                        column_set(&a, i, str_of(text));
        }
        assert_true(column_write(&a, &stored));
        assert_int_equal(column_read(&b, buf_view(&stored)), 0);
        for (unsigned i = 0; i < COLUMN_FILES; i++) {
                snprintf(text, sizeof(text), "value %u", i % distinct);
                assert_int_equal(b.codes[i] != 0, i % 7 != 0);
                if (b.codes[i])
                        assert_true(str_eqz(b.values[b.codes[i]], text));
        }
        for (unsigned i = 0; i < COLUMN_FILES; i++)
                if (i == 8)
                        column_set(&b, i, STR("new"));
                else
                        column_unset(&b, i);
        assert_true(column_write(&b, &again));
        column_deinit(&a);
        assert_int_equal(column_read(&a, buf_view(&again)), 0);
        assert_int_equal(a.count, 1);
        assert_true(str_eq(a.values[a.codes[8]], STR("new")));
        column_unset(&b, 8);
        assert_false(column_write(&b, &again));
        column_deinit(&a);
        column_deinit(&b);
}

static void columns_come_back(void **state)
{
        (void)state;
        check(1);
        check(200);
        check(256);
        check(300);
        check(COLUMN_FILES);
}

/* Every byte that is changed, and every cut, is found. */
static void damage_is_found(void **state)
{
        struct column a = {0}, b = {0};
        BUF_CLEANUP struct buf stored = {0};

        (void)state;
        column_set(&a, 0, STR("one"));
        column_set(&a, 4095, STR("two"));
        assert_true(column_write(&a, &stored));
        for (size_t i = 0; i < stored.n; i += i < 64 ? 1 : 97) {
                stored.p[i] ^= 0x10;
                assert_int_not_equal(column_read(&b, buf_view(&stored)), 0);
                stored.p[i] ^= 0x10;
                assert_int_not_equal(column_read(&b, str_head(buf_view(&stored), i)), 0);
        }
        assert_int_equal(column_read(&b, buf_view(&stored)), 0);
        column_deinit(&a);
        column_deinit(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(values_come_back),
                cmocka_unit_test(columns_come_back),
                cmocka_unit_test(damage_is_found),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
