#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"

static void grows(void **state)
{
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        assert_string_equal(buf_z(&b), "");
        for (int i = 0; i < 1000; i++)
                buf_printf(&b, "%d,", i);
        assert_int_equal(b.n, 10 * 2 + 90 * 3 + 900 * 4);
        assert_memory_equal(b.p, "0,1,2,3,", 8);
        assert_int_equal(strlen(buf_z(&b)), b.n);
        assert_int_equal(buf_check(&b), 0);
}

static void limits(void **state)
{
        BUF_CLEANUP struct buf b;

        (void)state;
        buf_init(&b, 8);
        buf_addz(&b, "12345678");
        assert_int_equal(buf_check(&b), 0);
        buf_char(&b, '9');
        assert_int_equal(buf_check(&b), -EMSGSIZE);
        buf_reset(&b);
        buf_addz(&b, "1234567");
        buf_addz(&b, "89"); /* does not fit: dropped whole */
        buf_char(&b, '8');  /* would fit, but something is missing before it */
        assert_string_equal(buf_z(&b), "1234567");
        assert_int_equal(buf_check(&b), -EMSGSIZE);
        assert_null(buf_room(&b, 0));
        buf_reset(&b);
        assert_int_equal(buf_check(&b), 0);
        assert_null(buf_room(&b, SIZE_MAX));
}

static void long_printf(void **state)
{
        BUF_CLEANUP struct buf b = {0};
        char text[1000];

        (void)state;
        memset(text, 'x', sizeof(text));
        for (int n = 254; n < 259; n++) { /* around the size of the room on the stack */
                buf_reset(&b);
                buf_printf(&b, "%.*s", n, text);
                assert_int_equal(b.n, n);
                assert_memory_equal(b.p, text, (size_t)n);
        }
        b.max = 300;
        buf_reset(&b);
        buf_printf(&b, "%.*s", 301, text);
        assert_int_equal(b.n, 0);
        assert_int_equal(buf_check(&b), -EMSGSIZE);
}

static void consumes(void **state)
{
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        buf_addz(&b, "abcdef");
        buf_consume(&b, 2);
        assert_string_equal(buf_z(&b), "cdef");
        buf_truncate(&b, 3);
        assert_string_equal(buf_z(&b), "cde");
        buf_truncate(&b, 9);
        assert_string_equal(buf_z(&b), "cde");
        buf_consume(&b, 9);
        assert_string_equal(buf_z(&b), "");
}

static void takes(void **state)
{
        BUF_CLEANUP struct buf b = {.max = 10};
        char *p;

        (void)state;
        p = buf_take(&b);
        assert_string_equal(p, "");
        free(p);
        buf_add(&b, "a\0b", 3);
        p = buf_take(&b);
        assert_memory_equal(p, "a\0b", 4);
        free(p);
        assert_int_equal(b.n, 0);
        assert_int_equal(b.max, 10);
        assert_null(b.p);
}

static void characters(void **state)
{
        static const uint32_t all[] = {1,      0x7f,   0x80,   0x7ff,   0x800,
                                       0xd7ff, 0xe000, 0xfffd, 0x10000, 0x10ffff};
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        buf_utf8(&b, 0);
        assert_int_equal(b.n, 1);
        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
                buf_reset(&b);
                buf_utf8(&b, all[i]);
                assert_int_equal(b.n, all[i] < 0x80 ? 1 : all[i] < 0x800 ? 2 : all[i] < 0x10000 ? 3 : 4);
                assert_int_equal(str_utf8(buf_view(&b)), b.n);
        }
        buf_reset(&b);
        buf_utf8(&b, 0xe4);
        buf_utf8(&b, 0x20ac);
        buf_utf8(&b, 0x1f411);
        assert_string_equal(buf_z(&b), "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x91");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(grows),    cmocka_unit_test(limits), cmocka_unit_test(long_printf),
                cmocka_unit_test(consumes), cmocka_unit_test(takes),  cmocka_unit_test(characters),
        };

        return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
