#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#include "cli/slurm/moment.h"

#define NOW 1767225600 /* 2026-01-01T00:00:00 UTC, a Thursday */

static void limits_are_minutes_hours_and_days(void **state)
{
        static const struct {
                const char *text;
                int64_t s;
        } good[] = {{"90", 5400},
                    {"0", 0},
                    {"30:5", 1860},
                    {"1:30:00", 5400},
                    {"1:00:30", 3660},
                    {"2-12", 216000},
                    {"2-12:30", 217800},
                    {"2-12:30:15", 217860},
                    {"UNLIMITED", 0},
                    {"infinite", 0},
                    {"-1", 0}};
        static const char *const bad[] = {"",   "abc", "1:2:3:4",    "1-", "-5",
                                          "1h", "1.5", "5000000000", "1:", "2-1:2:3:4"};
        int64_t s;

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                if (moment_limit(str_of(good[i].text), &s) != 0)
                        fail_msg("%s was refused", good[i].text);
                assert_int_equal(s, good[i].s);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (moment_limit(str_of(bad[i]), &s) == 0)
                        fail_msg("%s was taken", bad[i]);
}

static void clock_times_are_read(void **state)
{
        static const struct {
                const char *text;
                int64_t after;
        } good[] = {{"now", 0},
                    {"now+1hour", 3600},
                    {"now+90", 90},
                    {"now + 2days", 172800},
                    {"now+1week", 604800},
                    {"now-5minutes", -300},
                    {"today", 0},
                    {"tomorrow", 86400},
                    {"midnight", 0},
                    {"noon", 43200},
                    {"teatime", 57600},
                    {"16:00", 57600},
                    {"4:00PM", 57600},
                    {"12:30am", 1800},
                    {"2026-01-02", 86400},
                    {"2026-01-02T10:00", 122400},
                    {"2026-01-02T10:00:05", 122405},
                    {"0102", 86400},
                    {"010226", 86400},
                    {"1/2", 86400},
                    {"01/02/26-10:00", 122400},
                    {"01.02.26", 86400}};
        static const char *const bad[] = {"",           "never",        "25:00", "now+",  "now+3fortnights",
                                          "2026-13-01", "2026-01-02X1", "1/",    "13:61", "0pm:1",
                                          "2026-1-2"};
        int64_t s;

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                if (moment_read(str_of(good[i].text), NOW, &s) != 0)
                        fail_msg("%s was refused", good[i].text);
                if (s - NOW != good[i].after)
                        fail_msg("%s: %lld", good[i].text, (long long)(s - NOW));
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (moment_read(str_of(bad[i]), NOW, &s) == 0)
                        fail_msg("%s was taken", bad[i]);
}

static void a_time_of_day_that_has_passed_is_tomorrows(void **state)
{
        int64_t s;

        (void)state;
        assert_int_equal(moment_read(STR("10:00"), NOW + 43200, &s), 0);
        assert_int_equal(s, NOW + 86400 + 36000);
}

static void times_are_printed(void **state)
{
        BUF_CLEANUP struct buf out = {0};

        (void)state;
        moment_short(&out, 3);
        buf_char(&out, ' ');
        moment_short(&out, 3723);
        buf_char(&out, ' ');
        moment_short(&out, 93784);
        buf_char(&out, ' ');
        moment_long(&out, 3);
        buf_char(&out, ' ');
        moment_long(&out, 93784);
        buf_char(&out, ' ');
        moment_date(&out, NOW, "N/A");
        buf_char(&out, ' ');
        moment_date(&out, 0, "N/A");
        assert_string_equal(buf_z(&out),
                            "0:03 1:02:03 1-02:03:04 00:00:03 1-02:03:04 2026-01-01T00:00:00 N/A");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(limits_are_minutes_hours_and_days),
                cmocka_unit_test(clock_times_are_read),
                cmocka_unit_test(a_time_of_day_that_has_passed_is_tomorrows),
                cmocka_unit_test(times_are_printed),
        };

        setenv("TZ", "UTC0", 1);
        tzset();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
