#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "move/tuning.h"

static void words_are_read(void **state)
{
        struct tuning t;

        (void)state;
        assert_true(tuning_parse(STR("https://far.example.org/ streams=8 buffer=4M  block=1M"), &t));
        assert_string_equal(t.prefix, "https://far.example.org/");
        assert_true(t.streams == 8 && t.buffer == 4u << 20 && t.block == 1u << 20);
        free(t.prefix);
        assert_true(tuning_parse(STR("ftp:// streams=1"), &t));
        assert_true(t.streams == 1 && t.buffer == 0 && t.block == 0);
        free(t.prefix);
}

static void what_is_wrong_is_refused(void **state)
{
        static const char *const wrong[] = {"",
                                            "far streams=8",
                                            "https://a/ streams=0",
                                            "https://a/ streams=65",
                                            "https://a/ streams",
                                            "https://a/ streams=many",
                                            "https://a/ buffer=3G",
                                            "https://a/ block=1000",
                                            "https://a/ block=3M",
                                            "https://a/ other=1"};
        struct tuning t = {.streams = 7};

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_false(tuning_parse(str_of(wrong[i]), &t));
        assert_int_equal(t.streams, 7);
}

static void the_longest_prefix_counts(void **state)
{
        char all[] = "https://", one[] = "https://far/", deep[] = "https://far/deep/";
        const struct tuning list[] = {{.prefix = one}, {.prefix = deep}, {.prefix = all}};

        (void)state;
        assert_ptr_equal(tuning_of(list, 3, STR("https://far/deep/f")), &list[1]);
        assert_ptr_equal(tuning_of(list, 3, STR("HTTPS://far/f")), &list[0]);
        assert_ptr_equal(tuning_of(list, 3, STR("https://near/f")), &list[2]);
        assert_null(tuning_of(list, 3, STR("ftp://far/f")));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(words_are_read),
                cmocka_unit_test(what_is_wrong_is_refused),
                cmocka_unit_test(the_longest_prefix_counts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
