#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pack.h"

static const uint64_t numbers[] = {0,     1,          127,       128,        16383,
                                   16384, UINT32_MAX, INT64_MAX, 1ull << 63, UINT64_MAX};
#define N (sizeof(numbers) / sizeof(numbers[0]))

static void there_and_back(void **state)
{
        static const double reals[] = {0.0, -0.0, 1.5, -1e300, 5e-324, INFINITY};
        BUF_CLEANUP struct buf b = {0};
        struct unpack u;
        struct str s;

        (void)state;
        for (size_t i = 0; i < N; i++) {
                pack_u64(&b, numbers[i]);
                pack_i64(&b, (int64_t)numbers[i]);
        }
        for (size_t i = 0; i < 6; i++)
                pack_double(&b, reals[i]);
        pack_double(&b, NAN);
        pack_str(&b, str_make("a\0b", 3));
        pack_str(&b, STR_NONE);
        u = unpack_from(buf_view(&b));
        for (size_t i = 0; i < N; i++) {
                assert_true(unpack_u64(&u) == numbers[i]);
                assert_true(unpack_i64(&u) == (int64_t)numbers[i]);
        }
        for (size_t i = 0; i < 6; i++) {
                double d = unpack_double(&u);

                assert_memory_equal(&d, &reals[i], sizeof(d));
        }
        assert_true(isnan(unpack_double(&u)));
        s = unpack_str(&u);
        assert_int_equal(s.n, 3);
        assert_memory_equal(s.p, "a\0b", 3);
        assert_false(unpack_done(&u));
        assert_int_equal(unpack_str(&u).n, 0);
        assert_true(unpack_done(&u));
}

static void small_numbers_are_small(void **state)
{
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        pack_i64(&b, -1);
        assert_int_equal(b.n, 1);
        pack_u64(&b, 127);
        assert_int_equal(b.n, 2);
        buf_reset(&b);
        pack_u64(&b, UINT64_MAX);
        assert_int_equal(b.n, 10);
}

/* Whatever is cut off, the reader stays inside and says so. */
static void truncated(void **state)
{
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        pack_u64(&b, 300);
        pack_double(&b, 2.5);
        pack_str(&b, STR("hello"));
        for (size_t n = 0; n < b.n; n++) {
                char *exact = mem_dup(b.p, n); /* so that the sanitizer sees a step too far */
                char *copy = mem_realloc(exact, n);
                struct unpack u = unpack_from(str_make(copy, n));

                unpack_u64(&u);
                unpack_double(&u);
                unpack_str(&u);
                assert_true(u.bad);
                assert_false(unpack_done(&u));
                assert_true(unpack_u64(&u) == 0);
                assert_int_equal(unpack_str(&u).n, 0);
                free(copy);
        }
}

static void nonsense(void **state)
{
        struct unpack u = unpack_from(STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"));

        (void)state;
        unpack_u64(&u); /* a 65th bit */
        assert_true(u.bad);
        u = unpack_from(STR("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"));
        unpack_u64(&u); /* does not end */
        assert_true(u.bad);
        u = unpack_from(STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"));
        assert_null(unpack_str(&u).p); /* longer than memory */
        assert_true(u.bad);
        u = unpack_from(STR("\x05"));
        assert_int_equal(unpack_max(&u, 5), 5);
        assert_true(unpack_done(&u));
        u = unpack_from(STR("\x06"));
        assert_int_equal(unpack_max(&u, 5), 0);
        assert_true(u.bad);
}

static void crc(void **state)
{
        static const char text[] = "The quick brown fox jumps over the lazy dog, and then over another one.";
        uint32_t whole = pack_crc32c(0, text, sizeof(text));
        char zeros[32] = {0};

        (void)state;
        /* RFC 3720, appendix B.4 */
        assert_int_equal(pack_crc32c(0, zeros, 32), 0x8a9136aau);
        assert_int_equal(pack_crc32c(0, "123456789", 9), 0xe3069283u);
        assert_int_equal(pack_crc32c(pack_crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
        assert_int_equal(pack_crc32c(0, "", 0), 0);
        /* However it is cut. */
        for (size_t n = 0; n <= sizeof(text); n++) {
                uint32_t one = 0;

                for (size_t i = 0; i < n; i++)
                        one = pack_crc32c(one, text + i, 1);
                assert_int_equal(pack_crc32c(0, text, n), one);
                assert_int_equal(pack_crc32c(pack_crc32c(0, text, n), text + n, sizeof(text) - n), whole);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(there_and_back),
                cmocka_unit_test(small_numbers_are_small),
                cmocka_unit_test(truncated),
                cmocka_unit_test(nonsense),
                cmocka_unit_test(crc),
        };

        return cmocka_run_group_tests_name("base/pack", tests, NULL, NULL);
}
