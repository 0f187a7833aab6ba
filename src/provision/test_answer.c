/* Answers of programs: what is too much of one counts as failed, and is not kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "provision/answer.h"

static enum provisioner_result result_of(struct str text, enum verb verb, size_t *ret_instances)
{
        struct reading r = {0};
        enum provisioner_result result;

        answer_read(&r, verb, 0, text, STR_NONE);
        result = r.a.result;
        *ret_instances = r.a.instance_count;
        reading_deinit(&r);
        return result;
}

static void add_times(struct buf *out, const char *text, size_t times)
{
        for (size_t i = 0; i < times; i++)
                buf_addz(out, text);
}

static void test_lists_have_an_end(void **state)
{
        static const char line[] = "{\"instance\":\"i\",\"tag\":\"t\"}\n", end[] = "{\"end\":true}\n";
        BUF_CLEANUP struct buf text = {0};
        size_t n;

        (void)state;
        add_times(&text, line, PROVISIONER_INSTANCES_MAX);
        buf_addz(&text, end);
        assert_int_equal(result_of(buf_view(&text), LIST, &n), PROVISIONER_DONE);
        assert_int_equal(n, PROVISIONER_INSTANCES_MAX);
        buf_reset(&text);
        add_times(&text, line, PROVISIONER_INSTANCES_MAX + 1); /* those that were left out would be gone */
        buf_addz(&text, end);
        assert_int_equal(result_of(buf_view(&text), LIST, &n), PROVISIONER_FAILED);
}

/* An object of two bytes takes hundreds. */
static void test_short_lines_and_long_ones(void **state)
{
        BUF_CLEANUP struct buf text = {0};
        size_t n;

        (void)state;
        add_times(&text, "{}\n", 1000000);
        assert_int_equal(result_of(buf_view(&text), DESCRIBE, &n), PROVISIONER_FAILED);
        buf_reset(&text);
        buf_addz(&text, "{\"x\":[{}");
        add_times(&text, ",{}", 1000000);
        buf_addz(&text, "]}\n");
        assert_int_equal(result_of(buf_view(&text), DESCRIBE, &n), PROVISIONER_FAILED);
        buf_reset(&text);
        add_times(&text, "\n", 9u << 20);
        assert_int_equal(result_of(buf_view(&text), DESCRIBE, &n), PROVISIONER_FAILED);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lists_have_an_end),
                cmocka_unit_test(test_short_lines_and_long_ones),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
