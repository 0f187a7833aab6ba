#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/loop/ids.h"

static void test_parse(void **state)
{
        IDS_CLEANUP struct ids ids = {0};
        struct err err;

        (void)state;
        assert_int_equal(ids_parse(&ids, STR("7, 8.42,9.0-99,7.3"), &err), 0);
        assert_int_equal(ids.count, 4);
        assert_int_equal(ids.items[0].request, 7);
        assert_false(ids.items[0].some);
        assert_true(ids.items[1].some);
        assert_true(set_has(&ids.items[1].members, 42));
        assert_int_equal(set_count(&ids.items[1].members), 1);
        assert_int_equal(set_count(&ids.items[2].members), 100);
}

static void test_merge(void **state)
{
        IDS_CLEANUP struct ids ids = {0};

        (void)state;
        assert_int_equal(ids_parse(&ids, STR("7.1,8,7.3-4,8.2"), NULL), 0);
        ids_merge(&ids);
        assert_int_equal(ids.count, 2);
        assert_int_equal(ids.items[0].request, 7);
        assert_true(ids.items[0].some);
        assert_int_equal(set_count(&ids.items[0].members), 3);
        assert_int_equal(ids.items[1].request, 8);
        assert_false(ids.items[1].some); /* all of it wins */
}

static void test_bad(void **state)
{
        static const char *const bad[] = {"",
                                          " ",
                                          "x",
                                          "0",
                                          "-1",
                                          "7.",
                                          "7.x",
                                          "7.5-3",
                                          ".4",
                                          "7,,8",
                                          "7.1.2",
                                          "+7",
                                          "7.-",
                                          "7.99999999999",
                                          "7.0-4294967294",
                                          "7.10000000",
                                          "18446744073709551616"};

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                IDS_CLEANUP struct ids ids = {0};
                struct err err = {0};

                assert_int_equal(ids_parse(&ids, str_of(bad[i]), &err), -EINVAL);
                assert_true(err.text[0]);
        }
}

static void test_job(void **state)
{
        uint64_t request = 0;
        uint32_t member = 0;

        (void)state;
        assert_int_equal(ids_parse_job(STR("7.42"), &request, &member), 0);
        assert_int_equal(request, 7);
        assert_int_equal(member, 42);
        assert_int_equal(ids_parse_job(STR("7"), &request, &member), -EINVAL);
        assert_int_equal(ids_parse_job(STR("7.0-9"), &request, &member), -EINVAL);
        assert_int_equal(ids_parse_job(STR("0.1"), &request, &member), -EINVAL);
        assert_int_equal(ids_parse_job(STR("7.4294967295"), &request, &member), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_merge),
                cmocka_unit_test(test_bad),
                cmocka_unit_test(test_job),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
