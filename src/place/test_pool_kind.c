#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "place/pool_kind.h"

static void test_literals_count(void **state)
{
        static const struct pool_kind_attribute v[] = {{"Arch", "\"aarch64\""},
                                                       {"HasDocker", "true"},
                                                       {"Envs", "{ \"a\", \"b\" }"},
                                                       {"Version", "12"}};
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        pool_kind_attributes(v, 4, &b);
        assert_string_equal(buf_z(&b),
                            "Arch = \"aarch64\"; HasDocker = true; Envs = { \"a\",\"b\" }; Version = 12; ");
}

/* The other server cannot set this queue's attributes, nor have expressions computed here. */
static void test_lies_do_not_count(void **state)
{
        static const struct pool_kind_attribute v[] = {
                {"AgentName", "\"root\""},
                {"requirements", "true"},
                {"DroverServer", "\"x\""},
                {"Cpus", "100000"},
                {"Open; Rank = 5", "1"},
                {"A", "1; Requirements = true"},
                {"B", "1 ]; [ C = 2"},
                {"D", "time()"},
                {"E", "TARGET.Owner"},
                {"F", "random(3)"},
                {"", "1"},
                {"1st", "1"},
        };
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        pool_kind_attributes(v, sizeof(v) / sizeof(*v), &b);
        assert_string_equal(buf_z(&b), "");
}

static void test_requirements_are_one_expression(void **state)
{
        BUF_CLEANUP struct buf good = {0}, bad = {0}, none = {0};

        (void)state;
        pool_kind_requirements("TARGET.RequestCpus <= MY.NodeCpus", &good);
        assert_string_equal(buf_z(&good), "TARGET.RequestCpus <= MY.NodeCpus");
        pool_kind_requirements("true) || (true", &bad);
        assert_string_equal(buf_z(&bad), "false");
        pool_kind_requirements(" ", &none);
        assert_int_equal(none.n, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_literals_count),
                cmocka_unit_test(test_lies_do_not_count),
                cmocka_unit_test(test_requirements_are_one_expression),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
