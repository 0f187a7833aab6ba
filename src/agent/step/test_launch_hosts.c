#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/step/launch_hosts.h"

static void expect(const char *machines, unsigned count, size_t nodes, bool shared, const char *text)
{
        BUF_CLEANUP struct buf out = {0};
        bool got;

        assert_int_equal(launch_hosts(str_of(machines), count, &out, &got), nodes);
        assert_string_equal(buf_z(&out), text);
        assert_int_equal(got, shared);
}

static void test_a_line_for_each_processor(void **s)
{
        (void)s;
        expect("alpha", 1, 1, false, "alpha\n");
        expect("alpha,beta.example.org", 2, 2, false, "alpha\nalpha\nbeta.example.org\nbeta.example.org\n");
}

static void test_each_name_is_one_nodes(void **s)
{
        (void)s;
        expect("a,b,a", 1, 3, true, "node-0-a\nb\nnode-2-a\n");
        expect("a.x,a.y,b", 1, 3, false, "node-0-a.x\nnode-1-a.y\nb\n");
        expect("a b,a:b", 1, 2, true, "node-0-a-b\nnode-1-a-b\n");
}

/* Launchers take the lines as words of their own. */
static void test_names_of_others_are_words(void **s)
{
        (void)s;
        expect("-x,a\nb slots=9, ,\xc3\xa9", 1, 4, false, "node-x\na-b-slots-9\nnode-\nnode--\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_line_for_each_processor),
                cmocka_unit_test(test_each_name_is_one_nodes),
                cmocka_unit_test(test_names_of_others_are_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
