#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/client/srv.h"

#define HEAD     "\0\1\x81\x80\0\1\0\2\0\0\0\0"
#define QUESTION "\7_drover\4_tcp\3lab\0\0\x21\0\1"
#define RECORD   "\xc0\x0c\0\x21\0\1\0\0\0\x3c"
#define FIRST    RECORD "\0\x0a\0\5\0\7\x1c\xa4\1a\xc0\x19"
#define SECOND   RECORD "\0\x0d\0\1\0\0\0\x50\1b\1x\0\0\0"

static void records_are_read(void **state)
{
        struct srv_record r[SRV_RECORDS_MAX];

        (void)state;
        assert_int_equal(srv_parse(STR(HEAD QUESTION FIRST SECOND), r), 2);
        assert_string_equal(r[0].host, "a.lab");
        assert_int_equal(r[0].port, 7332);
        assert_int_equal(r[0].priority, 5);
        assert_int_equal(r[0].weight, 7);
        assert_string_equal(r[1].host, "b.x");
        /* cut anywhere, it is no answer, and nothing behind it is read */
        for (size_t n = 0; n < sizeof(HEAD QUESTION FIRST SECOND) - 1; n++)
                assert_int_equal(srv_parse(str_make(HEAD QUESTION FIRST SECOND, n), r), -EINVAL);
}

static void what_is_no_server_is_left_out(void **state)
{
        struct srv_record r[SRV_RECORDS_MAX];

        (void)state;
        /* the root, which says that there is no such service; a host that is none; port 0 */
        assert_int_equal(
                srv_parse(STR(HEAD QUESTION RECORD "\0\7\0\0\0\0\0\1\0" RECORD "\0\x0a\0\0\0\0\0\1\2a/\0"),
                          r),
                0);
        assert_int_equal(srv_parse(STR(HEAD QUESTION RECORD "\0\x0a\0\0\0\0\0\0\1ab\0" FIRST), r), 1);
        /* a name that points to itself */
        assert_int_equal(srv_parse(STR(HEAD QUESTION RECORD "\0\x08\0\0\0\0\0\1\xc0\x34" FIRST), r), 1);
}

static uint32_t first(void *arg, uint32_t below)
{
        *(uint32_t *)arg = below;
        return 0;
}

static uint32_t last(void *arg, uint32_t below)
{
        (void)arg;
        return below - 1;
}

static void the_order_is_by_priority_and_weight(void **state)
{
        struct srv_record r[] = {{.priority = 2, .host = "c"},
                                 {.priority = 1, .weight = 9, .host = "a"},
                                 {.priority = 1, .weight = 90, .host = "b"}};
        uint32_t below = 0;

        (void)state;
        srv_order(r, 3, last, NULL);
        assert_string_equal(r[0].host, "b");
        assert_string_equal(r[1].host, "a");
        assert_string_equal(r[2].host, "c");
        srv_order(r, 3, first, &below);
        assert_string_equal(r[0].host, "b");
        assert_int_equal(below, 1);
        assert_true(srv_is_domain(STR("lab.example.org")));
        assert_false(srv_is_domain(STR("localhost")));
        assert_false(srv_is_domain(STR("https://a.b")));
        assert_false(srv_is_domain(STR("a.b:1")));
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(records_are_read),
                                           cmocka_unit_test(what_is_no_server_is_left_out),
                                           cmocka_unit_test(the_order_is_by_priority_and_weight)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
