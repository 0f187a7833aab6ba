#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/format/exposition.h"

static void test_a_value(void **state)
{
        BUF_CLEANUP struct buf out = {0};

        (void)state;
        exposition_family(&out, "a_total", "counter", "What it is.");
        exposition_value(&out, "a_total", NULL, 3);
        exposition_value(&out, "a_total",
                         (struct exposition_label[]){{"who", "x\"y\\z\nw"}, {"n", ""}, {NULL, NULL}}, 0.25);
        exposition_value(&out, "a_total", NULL, 1e18);
        assert_string_equal(buf_z(&out), "# HELP a_total What it is.\n# TYPE a_total counter\n"
                                         "a_total 3\n"
                                         "a_total{who=\"x\\\"y\\\\z\\nw\",n=\"\"} 0.25\n"
                                         "a_total 1e+18\n");
}

static void test_a_histogram_is_cumulative(void **state)
{
        static const struct exposition_bounds bounds = {2, {0.5, 10}};
        struct exposition_histogram h = {{0}, 0};
        BUF_CLEANUP struct buf out = {0};

        (void)state;
        exposition_observe(&h, &bounds, 0.5, 1); /* a bound is inside */
        exposition_observe(&h, &bounds, 3, 4);
        exposition_observe(&h, &bounds, 11, 1);
        exposition_observe(&h, &bounds, -7, 1); /* a clock that was set back */
        exposition_histogram(&out, "t", (struct exposition_label[]){{"q", "a"}, {NULL, NULL}}, &bounds, &h);
        assert_string_equal(buf_z(&out), "t_bucket{q=\"a\",le=\"0.5\"} 2\n"
                                         "t_bucket{q=\"a\",le=\"10\"} 6\n"
                                         "t_bucket{q=\"a\",le=\"+Inf\"} 7\n"
                                         "t_sum{q=\"a\"} 23.5\n"
                                         "t_count{q=\"a\"} 7\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_value),
                cmocka_unit_test(test_a_histogram_is_cumulative),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
