#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/format/json.h"

#define assert_json(b, z)                                                                                    \
        do {                                                                                                 \
                assert_string_equal(buf_z(b), z);                                                            \
                buf_reset(b);                                                                                \
        } while (0)

static void documents(void **state)
{
        BUF_CLEANUP struct buf b = {0};
        struct json j = {.out = &b};

        (void)state;
        json_open(&j, '{');
        json_kint(&j, "id", -7);
        json_key(&j, "list");
        json_open(&j, '[');
        json_open(&j, '{');
        json_close(&j, '}');
        json_open(&j, '[');
        json_close(&j, ']');
        json_uint(&j, UINT64_MAX);
        json_null(&j);
        json_close(&j, ']');
        json_kbool(&j, "ok", true);
        json_kstr(&j, "s", STR("x"));
        json_kstrz(&j, "z", NULL);
        json_key(&j, "raw");
        json_raw(&j, STR("[1,2]"));
        json_close(&j, '}');
        assert_json(&b, "{\"id\":-7,\"list\":[{},[],18446744073709551615,null],\"ok\":true,\"s\":\"x\","
                        "\"z\":null,\"raw\":[1,2]}");
}

static void escapes(void **state)
{
        static const struct {
                const char *in, *out;
        } cases[] = {
                {"a\"b\\c", "\"a\\\"b\\\\c\""},
                {"\n\t\r\x01\x1f\x7f", "\"\\n\\t\\u000d\\u0001\\u001f\\u007f\""},
                {"\xc2\x80 \xc2\x9b \xc2\xa0",
                 "\"\\u0080 \\u009b \xc2\xa0\""}, /* the other control characters */
                {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\""},
                {"\xff", "\"\xef\xbf\xbd\""},
                {"\xc3", "\"\xef\xbf\xbd\""},                                 /* cut short */
                {"\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* overlong */
                {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* a surrogate */
                {"\xf4\x90\x80\x80",
                 "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* past the end */
        };
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct json j = {.out = &b};

                json_strz(&j, cases[i].in);
                assert_json(&b, cases[i].out);
        }
        struct json j = {.out = &b};
        json_str(&j, str_make("a\0b", 3));
        json_str(&j, STR_NONE);
        assert_json(&b, "\"a\\u0000b\",\"\"");
}

static void reals(void **state)
{
        static const double in[] = {0.1, 1.0 / 3, 1e300, -2.5, 5e-324};
        BUF_CLEANUP struct buf b = {0};
        struct json j = {.out = &b};

        (void)state;
        json_double(&j, 0.1);
        json_double(&j, NAN);
        json_double(&j, -INFINITY);
        assert_json(&b, "0.1,null,null");
        for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
                j.comma = false;
                json_double(&j, in[i]);
                assert_true(strtod(buf_z(&b), NULL) == in[i]);
                buf_reset(&b);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(documents),
                cmocka_unit_test(escapes),
                cmocka_unit_test(reals),
        };

        return cmocka_run_group_tests_name("base/json", tests, NULL, NULL);
}
