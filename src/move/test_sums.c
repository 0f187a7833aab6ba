#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "move/sums.h"

static void check(const char *text, enum sum_type type, const char *hex)
{
        char ret[SUMS_TEXT];
        struct sums *s = sums_new(true, true);

        for (const char *p = text; *p; p++) /* in pieces */
                sums_add(s, p, 1);
        assert_true(sums_read(s, type, ret));
        assert_string_equal(ret, hex);
        sums_restart(s);
        sums_add(s, text, strlen(text));
        assert_true(sums_read(s, type, ret));
        assert_string_equal(ret, hex);
        sums_free(s);
}

/* Values from RFC 1321, FIPS 180-2, and zlib's adler32(). */
static void test_values(void **state)
{
        (void)state;
        check("", SUM_ADLER32, "00000001");
        check("Wikipedia", SUM_ADLER32, "11e60398");
        check("abc", SUM_MD5, "900150983cd24fb0d6963f7d28e17f72");
        check("abc", SUM_SHA256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* Sums that would overflow if they were not reduced. */
static void test_many_large_bytes(void **state)
{
        size_t n = 3u << 20;
        char ret[SUMS_TEXT];
        char *bytes = mem_alloc(n);
        uint64_t low = 1, high = 0;
        struct sums *s = sums_new(false, false);

        (void)state;
        memset(bytes, 0xff, n);
        for (size_t i = 0; i < n; i++) {
                low = (low + 0xff) % 65521;
                high = (high + low) % 65521;
        }
        sums_add(s, bytes, n);
        assert_true(sums_read(s, SUM_ADLER32, ret));
        assert_int_equal(strtoul(ret, NULL, 16), high << 16 | low);
        assert_false(sums_read(s, SUM_MD5, ret));
        assert_false(sums_read(s, SUM_SHA256, ret));
        sums_free(s);
        free(bytes);
}

static void test_parse(void **state)
{
        static const char *const wrong[] = {"",
                                            "md5",
                                            "md5:",
                                            "md5:12",
                                            "sha256:zz",
                                            "crc32:12345678",
                                            "adler32:123456789",
                                            "adler32:12g",
                                            "adler32:"};
        struct sum s = {SUM_NONE, "kept"};

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                assert_false(sum_parse(str_of(wrong[i]), &s));
                assert_string_equal(s.hex, "kept");
        }
        assert_true(sum_parse(STR(" adler32:2E1 "), &s)); /* some stores omit zeros */
        assert_int_equal(s.type, SUM_ADLER32);
        assert_string_equal(s.hex, "000002e1");
        assert_true(sum_parse(STR("MD5=900150983cd24fb0d6963f7d28e17f72"), &s));
        assert_int_equal(s.type, SUM_MD5);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_values),
                cmocka_unit_test(test_many_large_bytes),
                cmocka_unit_test(test_parse),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
