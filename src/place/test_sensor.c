#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "classad/parse.h"
#include "place/sensor.h"

/* Lines and their attributes; NULL: the line is rejected. Any output can be parsed as an ad. */
static void lines_become_attributes(void **state)
{
        static const struct {
                const char *line, *is;
        } t[] = {
                {"Free = 12", "scratchFree = 12; "},
                {"Free=-3", "scratchFree = -3; "},
                {"Free = +3", "scratchFree = 3; "},
                {"Load = 0.25", "scratchLoad = 0.25; "},
                {"Load = 1e9", "scratchLoad = 1e9; "},
                {"Good = TRUE", "scratchGood = true; "},
                {"Say = \"it is full\"", "scratchSay = \"it is full\"; "},
                {"Say = it is full", "scratchSay = \"it is full\"; "},
                {"Say = 1.2.3", "scratchSay = \"1.2.3\"; "},
                {"Say = 0123", "scratchSay = \"0123\"; "},
                {"Say = 1e999", "scratchSay = \"1e999\"; "},
                {"Say = 99999999999999999999", "scratchSay = \"99999999999999999999\"; "},
                {"Say = \"a\"; Requirements = true; B = \"c\"",
                 "scratchSay = \"a\\\"; Requirements = true; B = \\\"c\"; "},
                {"Say = a\\", "scratchSay = \"a\\\\\"; "},
                {"Say = time() ]", "scratchSay = \"time() ]\"; "},
                {"Say =", NULL},
                {"= 7", NULL},
                {"no equals sign", NULL},
                {"Two Words = 7", NULL},
                {"7up = 7", NULL},
                {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz = 7", NULL},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
                struct buf BUF_CLEANUP out = {0}, ad = {0};
                struct symbols *symbols = symbols_new();
                struct ad *parsed = NULL;

                assert_int_equal(sensor_attribute("scratch", str_of(t[i].line), &out), t[i].is != NULL);
                assert_string_equal(buf_z(&out), t[i].is ? t[i].is : "");
                buf_printf(&ad, "[ %s ]", buf_z(&out));
                assert_int_equal(ad_parse(symbols, buf_view(&ad), CLASSAD_NEW, &parsed, NULL), 0);
                ad_free(parsed);
                symbols_free(symbols);
        }
}

static void a_text_has_a_bound(void **state)
{
        struct buf BUF_CLEANUP text = {0}, out = {0};
        size_t bad, n = 0;

        (void)state;
        buf_addz(&text, "# what it is\n\nA = 1\r\nwhat\n");
        for (int i = 0; i < 100; i++)
                buf_printf(&text, "B%d = %d\n", i, i);
        sensor_attributes("s", buf_view(&text), &out, &bad);
        for (size_t i = 0; i < out.n; i++)
                n += out.p[i] == ';';
        assert_int_equal(n, SENSOR_ATTRIBUTES_MAX);
        assert_int_equal(bad, 101 - SENSOR_ATTRIBUTES_MAX + 1);
        assert_true(str_starts(buf_view(&out), STR("sA = 1; sB0 = 0; ")));
}

/* Numbers are found behind texts, whatever these contain. */
static void test_numbers(void **state)
{
        BUF_CLEANUP struct buf out = {0};
        struct str rest, name;
        double value;
        size_t bad;

        (void)state;
        sensor_attributes("S",
                          STR("A = -1.5e2\nB = say \"x\"; SC = 7\nD = true\nE = \"\\\"\nF = 0\nG = false\n"),
                          &out, &bad);
        rest = buf_view(&out);
        assert_true(sensor_next_number(&rest, &name, &value));
        assert_true(str_eqz(name, "SA") && value > -151 && value < -149);
        assert_true(sensor_next_number(&rest, &name, &value));
        assert_true(str_eqz(name, "SD") && value > 0.5);
        assert_true(sensor_next_number(&rest, &name, &value));
        assert_true(str_eqz(name, "SF") && value < 0.5);
        assert_true(sensor_next_number(&rest, &name, &value));
        assert_true(str_eqz(name, "SG") && value < 0.5);
        assert_false(sensor_next_number(&rest, &name, &value));
        rest = STR_NONE;
        assert_false(sensor_next_number(&rest, &name, &value));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_become_attributes),
                cmocka_unit_test(a_text_has_a_bound),
                cmocka_unit_test(test_numbers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
