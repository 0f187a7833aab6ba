#include "base/format/address_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_next(void **state)
{
        struct str list = STR(" https://a:1,https://b:2\n, unix:/tmp/a b, c,\tunix:/d ,"), one;
        const char *const all[] = {"https://a:1", "https://b:2", "unix:/tmp/a b, c", "unix:/d"};

        (void)state;
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                assert_true(address_list_next(&list, &one));
                assert_true(str_eqz(one, all[i]));
        }
        assert_false(address_list_next(&list, &one));
        list = STR(" , ");
        assert_false(address_list_next(&list, &one));
}

static void test_check(void **state)
{
        const char *const good[] = {"https://a:1", "https://[::1]:65535 https://b:2", "unix:/a b",
                                    "unix:/a,unix:/b"};
        const char *const bad[] = {
                "",
                " ",
                "a",
                "http://a:1",
                "https://a",
                "https://a:0",
                "https://:1",
                "https://a:65536",
                "https://a:1 b",
                "https://a:1/",
                "unix:a",
                "https://a:1 unix:/b",
                "x https://a:1",
                "unix:/1 unix:/2 unix:/3 unix:/4 unix:/5 unix:/6 unix:/7 unix:/8 unix:/9 unix:/10 unix:/11 "
                "unix:/12 unix:/13 unix:/14 unix:/15 unix:/16 unix:/17"};
        struct err err = {""};
        bool https;

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                assert_int_equal(address_list_check(str_of(good[i]), &https, &err), 0);
                assert_int_equal(https, *good[i] == 'h');
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_true(address_list_check(str_of(bad[i]), &https, &err) < 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_next), cmocka_unit_test(test_check)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
