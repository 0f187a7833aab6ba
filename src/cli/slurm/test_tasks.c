#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/slurm/tasks.h"

static void expect(const char *text, const char *written, uint32_t at_once)
{
        TASKS_CLEANUP struct tasks t = {0};
        BUF_CLEANUP struct buf out = {0};
        struct err err = {""};

        assert_int_equal(tasks_read(str_of(text), &t, &err), 0);
        tasks_write(t.numbers, t.count, 0, &out);
        assert_string_equal(buf_z(&out), written);
        assert_int_equal(t.at_once, at_once);
}

static void lists_are_read_in_order(void **state)
{
        (void)state;
        expect("7", "7", 0);
        expect("1-100%5", "1-100", 5);
        expect("0-15:4", "0-12:4", 0);
        expect("5,3,1-2,3", "1-3,5", 0);
        expect("1-7:3,4", "1-7:3", 0);
        expect("0,9999999", "0,9999999", 0);
        expect("1-3%0", "1-3", 0);
}

static void what_is_no_list_is_refused(void **state)
{
        static const char *const bad[] = {"",      "a",     "5-1",  "1-",    "-1",       "1,,2",
                                          "1-3:0", "1-3%x", "1-3:", "1 - 3", "10000000", "1,",
                                          "1-2-3", "%5",    "1:2",  "0x1"};

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct tasks t = {0};
                struct err err = {""};

                if (tasks_read(str_of(bad[i]), &t, &err) == 0)
                        fail_msg("%s was taken", bad[i]);
                assert_true(*err.text);
                assert_null(t.numbers);
        }
}

static void steps_are_known(void **state)
{
        TASKS_CLEANUP struct tasks one = {0}, even = {0}, uneven = {0};

        (void)state;
        assert_int_equal(tasks_read(STR("4"), &one, NULL), 0);
        assert_int_equal(one.step, 1);
        assert_int_equal(tasks_read(STR("2,4,6"), &even, NULL), 0);
        assert_int_equal(even.step, 2);
        assert_int_equal(tasks_read(STR("1,2,4"), &uneven, NULL), 0);
        assert_int_equal(uneven.step, 0);
}

static void long_lists_are_cut_at_a_piece(void **state)
{
        static const uint32_t numbers[] = {100, 200, 301, 402};
        BUF_CLEANUP struct buf out = {0};

        (void)state;
        tasks_write(numbers, 4, 8, &out);
        assert_string_equal(buf_z(&out), "100,200,...");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_are_read_in_order),
                cmocka_unit_test(what_is_no_list_is_refused),
                cmocka_unit_test(steps_are_known),
                cmocka_unit_test(long_lists_are_cut_at_a_piece),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
