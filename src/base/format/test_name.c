#include "base/format/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_queue(void **state)
{
        const char *const good[] = {"default", "a", "gpu-2_x.y+z", "0"};
        const char *const bad[] = {"",    "a b", "a\nb", "a\n...\n005 (001.000.000) x",
                                   "a\"", "ä",   "a/b",  "a\x7f"};
        char room[NAME_QUEUE_MAX + 1];

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
                assert_true(name_is_queue(str_of(good[i])));
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_false(name_is_queue(str_of(bad[i])));
        assert_false(name_is_queue(str_make("a\0b", 3)));
        memset(room, 'a', sizeof(room));
        assert_true(name_is_queue(str_make(room, NAME_QUEUE_MAX)));
        assert_false(name_is_queue(str_make(room, NAME_QUEUE_MAX + 1)));
}

static void test_line(void **state)
{
        const char *const good[] = {"", "node1.example.org", "drover-agent 0.1.0", "Zürich", "a<b>\"c\""};
        const char *const bad[] = {"a\nb", "a\tb",  "\x1b[2J",  "a\x7f",
                                   "\xff", "a\xc3", "\xc2\x9b", "12345678901"};

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
                assert_true(name_is_line(str_of(good[i]), 20));
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_false(name_is_line(str_of(bad[i]), 10));
        assert_false(name_is_line(str_make("a\0b", 3), 10));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_queue),
                cmocka_unit_test(test_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
