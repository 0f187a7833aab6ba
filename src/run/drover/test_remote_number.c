#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/drover/remote_number.h"

static void test_garbage(void **state)
{
        static const struct {
                const char *value;
                int64_t within; /* -10 to 1000 */
                uint64_t ms, of_seconds;
        } cases[] = {
                {"7", 7, 7, 7000},
                {"7.9", 7, 7, 7900},
                {"-3", -3, 0, 0},
                {"-3.5", -3, 0, 0},
                {"1e300", 1000, REMOTE_TIME_MAX, REMOTE_TIME_MAX},
                {"-1e300", -10, 0, 0},
                {"9223372036854775807", 1000, REMOTE_TIME_MAX, REMOTE_TIME_MAX},
                {"-9223372036854775808", -10, 0, 0},
                {"9.3e18", 1000, REMOTE_TIME_MAX, REMOTE_TIME_MAX},
                {"9223372036854775808.0", 1000, REMOTE_TIME_MAX, REMOTE_TIME_MAX},
                {"1e-300", 0, 0, 0},
                {"253402300800", 1000, 253402300800, REMOTE_TIME_MAX},
                {"\"12\"", 0, 0, 0},
                {"null", 0, 0, 0},
                {"[5]", 0, 0, 0},
                {"{\"x\": 5}", 0, 0, 0},
                {"true", 0, 0, 0},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                json_t *o = json_pack("{}"), *v = json_loads(cases[i].value, JSON_DECODE_ANY, NULL);

                assert_non_null(v);
                json_object_set_new(o, "n", v);
                assert_int_equal(remote_number_within(o, "n", -10, 1000), cases[i].within);
                assert_true(remote_number_within(o, "n", INT64_MIN, INT64_MAX) >= cases[i].within ||
                            cases[i].within == -10);
                assert_true(remote_number_time(o, "n", 1) == cases[i].ms);
                assert_true(remote_number_time(o, "n", 1000) == cases[i].of_seconds);
                assert_int_equal(remote_number_within(o, "not there", -10, 1000), 0);
                assert_int_equal(remote_number_within(o, "not there", 1, 64), 1);
                json_decref(o);
        }
        assert_int_equal(remote_number_within(NULL, "n", -10, 1000), 0);
        assert_true(remote_number_time(NULL, "n", 1) == 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_garbage)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
