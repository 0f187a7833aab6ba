#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/client/ids.h"

static void takes_ids(void **state)
{
        struct id id;

        (void)state;
        assert_int_equal(id_parse(STR("7"), &id, NULL), 0);
        assert_true(id.whole && id.request == 7);
        assert_int_equal(id_parse(STR("7.42"), &id, NULL), 0);
        assert_true(!id.whole && id.request == 7 && id.first == 42 && id.last == 42);
        assert_int_equal(id_parse(STR("12.0-99"), &id, NULL), 0);
        assert_true(!id.whole && id.request == 12 && id.first == 0 && id.last == 99);
}

static void refuses_the_rest(void **state)
{
        static const char *const wrong[] = {"",
                                            "0",
                                            "x",
                                            "7.",
                                            ".7",
                                            "7.x",
                                            "7.1-",
                                            "7.-1",
                                            "7.9-3",
                                            "-7",
                                            "+7",
                                            "7-9",
                                            "7.1.2",
                                            "7.1-2-3",
                                            "7 ",
                                            "7.4294967296",
                                            "99999999999999999999"};
        struct id id;
        struct err err;

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                err.text[0] = '\0';
                assert_true(id_parse(str_of(wrong[i]), &id, &err) < 0);
                assert_true(err.text[0]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(takes_ids), cmocka_unit_test(refuses_the_rest)};

        return cmocka_run_group_tests_name("cli ids", tests, NULL, NULL);
}
