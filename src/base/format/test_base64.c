#include "base/format/base64.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* RFC 4648, section 10. */
static const struct {
        const char *bytes, *text;
} vectors[] = {{"", ""},
               {"f", "Zg=="},
               {"fo", "Zm8="},
               {"foo", "Zm9v"},
               {"foob", "Zm9vYg=="},
               {"fooba", "Zm9vYmE="},
               {"foobar", "Zm9vYmFy"}};

static void vectors_of_the_standard(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
                BUF_CLEANUP struct buf text = {0}, bytes = {0};

                base64_encode(&text, str_of(vectors[i].bytes));
                assert_string_equal(buf_z(&text), vectors[i].text);
                assert_int_equal(base64_decode(&bytes, buf_view(&text)), 0);
                assert_string_equal(buf_z(&bytes), vectors[i].bytes);
        }
}

static void url_safe(void **state)
{
        static const struct str bad[] = {{"Zg==", 4}, {"Z", 1},   {"Zm8+", 4}, {"Zm8/", 4},
                                         {"Zh", 2},   {"Z\0", 2}, {"Zg Zg", 5}};
        BUF_CLEANUP struct buf text = {0}, bytes = {0};

        (void)state;
        for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
                struct str want = str_of(vectors[i].text);

                buf_reset(&text);
                buf_reset(&bytes);
                base64url_encode(&text, str_of(vectors[i].bytes));
                while (str_ends(want, STR("=")))
                        want.n--;
                assert_true(str_eq(buf_view(&text), want));
                assert_int_equal(base64url_decode(&bytes, buf_view(&text)), 0);
                assert_string_equal(buf_z(&bytes), vectors[i].bytes);
        }
        buf_reset(&text);
        buf_reset(&bytes);
        base64url_encode(&text, STR("\xfb\xff\xfe"));
        assert_string_equal(buf_z(&text), "-__-");
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                assert_int_equal(base64url_decode(&bytes, bad[i]), -EINVAL);
        assert_int_equal(bytes.n, 0);
}

static void every_byte_comes_back(void **state)
{
        BUF_CLEANUP struct buf bytes = {0}, text = {0}, back = {0};

        (void)state;
        for (unsigned i = 0; i < 256 * 3 + 1; i++)
                buf_char(&bytes, (char)(i * 7));
        base64_encode(&text, buf_view(&bytes));
        assert_int_equal(base64_decode(&back, buf_view(&text)), 0);
        assert_int_equal(back.n, bytes.n);
        assert_memory_equal(back.p, bytes.p, bytes.n);
}

static void what_is_none_is_refused_whole(void **state)
{
        static const char *const bad[] = {
                "Zg=", "Z", "Zg==Zg==", "Zh==", "Zm9=", "====", "Zg=a", "Zm9v\n", "Zm_v"};

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                BUF_CLEANUP struct buf out = {0};

                buf_addz(&out, "before");
                assert_int_equal(base64_decode(&out, str_of(bad[i])), -EINVAL);
                assert_string_equal(buf_z(&out), "before");
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(vectors_of_the_standard),
                cmocka_unit_test(url_safe),
                cmocka_unit_test(every_byte_comes_back),
                cmocka_unit_test(what_is_none_is_refused_whole),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
