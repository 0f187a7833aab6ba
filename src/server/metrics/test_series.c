#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/metrics/series.h"

static void test_a_day(void **state)
{
        struct series *s = series_new();
        int64_t now = 5000;

        (void)state;
        assert_int_equal(series_count(s), 0);
        assert_true(series_due(s, now));
        for (unsigned i = 0; i < SERIES_SAMPLES + 7; i++) {
                struct series_sample sample = {.at_ms = 1000 * i, .idle = i};

                assert_true(series_due(s, now));
                series_add(s, now, &sample);
                assert_false(series_due(s, now + SERIES_EVERY_MS - 1));
                assert_int_equal(series_at(s, series_count(s) - 1)->idle, i);
                now += SERIES_EVERY_MS;
        }
        assert_int_equal(series_count(s), SERIES_SAMPLES);
        for (unsigned i = 0; i < SERIES_SAMPLES; i++)
                assert_int_equal(series_at(s, i)->idle, i + 7);
        series_free(s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_day)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
