#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/format/hex.h"

static void there_and_back(void **state)
{
        unsigned char all[256], back[256];
        char text[513];

        (void)state;
        for (unsigned i = 0; i < 256; i++)
                all[i] = (unsigned char)i;
        hex_print(text, all, 256);
        assert_int_equal(strlen(text), 512);
        assert_memory_equal(text, "000102", 6);
        assert_string_equal(text + 506, "fdfeff");
        assert_int_equal(hex_read(str_of(text), back, 256), 0);
        assert_memory_equal(all, back, 256);
        hex_print(text, all, 0);
        assert_string_equal(text, "");
        assert_int_equal(hex_read(STR(""), back, 0), 0);
}

static void reads_digits_only(void **state)
{
        unsigned char got[2] = {7, 7};

        (void)state;
        assert_int_equal(hex_read(STR("aBcD"), got, 2), 0);
        assert_int_equal(got[0], 0xab);
        assert_int_equal(got[1], 0xcd);
        static const char *const bad[] = {"", "abc", "abcde", "abcg", "ab d", "abc/", "abc:", "abc`", "@bcd"};
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                assert_int_equal(hex_read(str_of(bad[i]), got, 2), -EINVAL);
        assert_int_equal(got[0], 0xab); /* nothing was written */
        for (int c = -128; c < 128; c++) {
                const char *at = c ? strchr("0123456789abcdefABCDEF", c) : NULL;

                if (!at)
                        assert_int_equal(hex_digit((char)c), -1);
        }
}

static void uuids(void **state)
{
        char text[HEX_UUID];

        (void)state;
        hex_print_uuid(
                text,
                (const unsigned char *)"\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32\x10");
        assert_string_equal(text, "01234567-89ab-cdef-fedc-ba9876543210");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(there_and_back),
                cmocka_unit_test(reads_digits_only),
                cmocka_unit_test(uuids),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
