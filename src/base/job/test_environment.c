#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/job/environment.h"
#include "base/job/file_id.h"

static void test_files(void **state)
{
        (void)state;
        assert_true(environment_is_file(STR("environment.yml")));
        assert_true(environment_is_file(STR("/a/b.yaml")));
        assert_false(environment_is_file(STR("stats")));
        assert_false(environment_is_file(STR("/opt/envs/yml")));
        assert_false(environment_is_file(STR("")));
}

/* Both sides make the number of a file of it: it must be canonical as it stands. */
static void test_urls(void **state)
{
        unsigned char sum[32] = {0xab, 1};
        BUF_CLEANUP struct buf conda = {0}, python = {0}, canonical = {0};

        (void)state;
        environment_url(ENVIRONMENT_CONDA, sum, &conda);
        environment_url(ENVIRONMENT_PYTHON, sum, &python);
        assert_true(str_starts(buf_view(&conda), STR("environment://conda/ab01000000")));
        assert_true(str_starts(buf_view(&python), STR("environment://python/ab01")));
        assert_true(file_url(buf_view(&conda), NULL, 0, &canonical, NULL));
        assert_string_equal(buf_z(&canonical), buf_z(&conda));
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_urls)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
