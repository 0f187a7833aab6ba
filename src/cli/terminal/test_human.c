#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "cli/terminal/human.h"

static void durations(void **state)
{
        static const struct {
                int64_t ms;
                const char *text;
        } rows[] = {{-5, "0s"},           {0, "0s"},
                    {120, "0.1s"},        {9999, "9.9s"},
                    {10000, "10s"},       {59999, "59s"},
                    {60000, "1:00"},      {3599000, "59:59"},
                    {3600000, "1:00:00"}, {86399000, "23:59:59"},
                    {86400000, "1d00h"},  {90000000000, "1041d16h"}};

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct buf b BUF_CLEANUP = {0};

                human_duration(&b, rows[i].ms);
                assert_string_equal(buf_z(&b), rows[i].text);
        }
}

static void ranges(void **state)
{
        static const struct {
                int64_t from_ms, to_ms;
                const char *text;
        } rows[] = {{60000, 125000, "1:00-2:05"},
                    {60000, 60999, "1:00"},
                    {60000, 0, "1:00"},
                    {-5, 3600000, "0s-1:00:00"}};

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct buf b BUF_CLEANUP = {0};

                buf_addz(&b, "END ");
                human_range(&b, rows[i].from_ms, rows[i].to_ms);
                assert_string_equal(buf_z(&b) + 4, rows[i].text);
        }
}

static void sizes(void **state)
{
        static const struct {
                int64_t bytes;
                const char *text;
        } rows[] = {{0, "0B"},
                    {1023, "1023B"},
                    {1024, "1K"},
                    {1536, "1.5K"},
                    {10 << 20, "10M"},
                    {(1 << 20) - 1, "1M"},
                    {INT64_C(3) << 40, "3T"}};

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct buf b BUF_CLEANUP = {0};

                human_bytes(&b, rows[i].bytes);
                assert_string_equal(buf_z(&b), rows[i].text);
        }
}

static void times(void **state)
{
        struct buf b BUF_CLEANUP = {0};
        int64_t now_ms = INT64_C(1763715600000); /* 2025-11-21 09:00 UTC */

        (void)state;
        setenv("TZ", "UTC", 1);
        tzset();
        human_time(&b, now_ms - 1000, now_ms);
        assert_string_equal(buf_z(&b), "08:59:59");
        buf_reset(&b);
        human_time(&b, now_ms - 86400000, now_ms);
        assert_string_equal(buf_z(&b), "11-20 09:00");
        buf_reset(&b);
        human_time(&b, now_ms - INT64_C(366) * 86400000, now_ms);
        assert_string_equal(buf_z(&b), "2024-11-20");
        buf_reset(&b);
        human_time(&b, 0, now_ms);
        assert_string_equal(buf_z(&b), "-");
}

/* What a user puts into a reason must not reach a terminal as a command to it. */
static void text_is_made_safe(void **state)
{
        struct buf b BUF_CLEANUP = {0};

        (void)state;
        human_safe(&b, STR("a\033[2Jb\nc\xc2\x9b"
                           "d\xc3\xa4"));
        assert_string_equal(buf_z(&b), "a?[2Jb c?d\xc3\xa4");
        assert_int_equal(human_width(buf_view(&b)), 11);
}

static void lengths_of_time(void **state)
{
        static const char *const no_clock[] = {"5:00",   "1:60:00",   "1:00:00:00", "1-",
                                               "1-2",    "x-1:00:00", ":::",        "1:00:0x",
                                               "-1:0:0", "1:00:00-2", "1:00:00:"};
        int64_t s = 0;
        struct err err;

        (void)state;
        assert_int_equal(human_to_seconds(STR("90"), &s, NULL), 0);
        assert_int_equal(s, 90);
        assert_int_equal(human_to_seconds(STR("1:30:00"), &s, NULL), 0);
        assert_int_equal(s, 5400);
        assert_int_equal(human_to_seconds(STR("2-00:00:01"), &s, NULL), 0);
        assert_int_equal(s, 2 * 86400 + 1);
        for (size_t i = 0; i < sizeof(no_clock) / sizeof(no_clock[0]); i++)
                assert_int_equal(human_to_seconds(str_of(no_clock[i]), &s, &err), -EINVAL);
        assert_int_equal(human_to_seconds(STR("1.5h"), &s, NULL), 0);
        assert_int_equal(s, 5400);
        assert_int_equal(human_to_seconds(STR("2d"), &s, NULL), 0);
        assert_int_equal(s, 172800);
        assert_true(human_to_seconds(STR(""), &s, &err) < 0);
        assert_true(human_to_seconds(STR("m"), &s, &err) < 0);
        assert_true(human_to_seconds(STR("-1"), &s, &err) < 0);
        assert_true(human_to_seconds(STR("nan"), &s, &err) < 0);
        assert_true(human_to_seconds(STR("1y"), &s, &err) < 0);
}

static void moments(void **state)
{
        int64_t now_ms = INT64_C(1763715600123); /* 2025-11-21 09:00 UTC */
        static const struct {
                const char *text;
                int64_t ms;
        } rows[] = {{"now", INT64_C(1763715600123)},
                    {"-1h", INT64_C(1763712000123)},
                    {"+2d", INT64_C(1763888400123)},
                    {"today", INT64_C(1763683200000)},
                    {"yesterday", INT64_C(1763596800000)},
                    {"08:30", INT64_C(1763713800000)},
                    {"23:59:59", INT64_C(1763769599000)},
                    {"2025-11-20", INT64_C(1763596800000)},
                    {"2025-11-20T12:00", INT64_C(1763640000000)},
                    {"1h", -1},
                    {"24:00", -1},
                    {"todays", -1},
                    {"", -1}};

        (void)state;
        setenv("TZ", "UTC", 1);
        tzset();
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                int64_t ms = -1;

                assert_int_equal(human_to_time(rows[i].text, now_ms, &ms, NULL) == 0, rows[i].ms >= 0);
                assert_int_equal(ms, rows[i].ms);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(durations),      cmocka_unit_test(ranges),
                cmocka_unit_test(moments),        cmocka_unit_test(sizes),
                cmocka_unit_test(times),          cmocka_unit_test(text_is_made_safe),
                cmocka_unit_test(lengths_of_time)};

        return cmocka_run_group_tests_name("cli human", tests, NULL, NULL);
}
