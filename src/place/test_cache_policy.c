#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "place/cache_policy.h"

struct gone {
        uint64_t files[8];
        size_t count;
};

static void note(void *arg, uint64_t file, uint64_t bytes)
{
        struct gone *g = arg;

        (void)bytes;
        g->files[g->count++] = file;
}

static void the_least_recently_used_goes(void **state)
{
        struct cache_policy c;
        struct gone g = {.count = 0};

        (void)state;
        cache_policy_init(&c, 100);
        for (uint64_t file = 1; file <= 4; file++)
                assert_true(cache_policy_put(&c, file, 25, note, &g));
        assert_true(cache_policy_put(&c, 1, 25, note, &g)); /* used again */
        assert_int_equal(g.count, 0);
        assert_true(cache_policy_put(&c, 5, 50, note, &g));
        assert_int_equal(g.count, 2);
        assert_int_equal(g.files[0], 2);
        assert_int_equal(g.files[1], 3);
        assert_int_equal(c.use.bytes, 100);
        assert_true(cache_policy_has(&c, 1));
        g.count = 0;
        cache_policy_each(&c, note, &g);
        assert_int_equal(g.count, 3);
        assert_int_equal(g.files[0], 4);
        assert_int_equal(g.files[2], 5);
        cache_policy_deinit(&c);
}

static void what_a_job_uses_stays(void **state)
{
        struct cache_policy c;
        struct gone g = {.count = 0};

        (void)state;
        cache_policy_init(&c, 100);
        assert_true(cache_policy_put(&c, 1, 60, note, &g));
        assert_true(cache_policy_pin(&c, 1));
        assert_true(cache_policy_pin(&c, 1));
        assert_true(cache_policy_put(&c, 2, 40, note, &g));
        assert_false(cache_policy_put(&c, 3, 50, note, &g)); /* beside what is pinned there is no room */
        assert_int_equal(g.count, 0);
        assert_true(cache_policy_put(&c, 3, 30, note, &g));
        assert_int_equal(g.files[0], 2);
        cache_policy_unpin(&c, 1);
        assert_int_equal(c.pinned_bytes, 60);
        cache_policy_unpin(&c, 1);
        assert_int_equal(c.pinned_bytes, 0);
        assert_true(cache_policy_put(&c, 4, 100, note, &g));
        assert_int_equal(g.count, 3);
        assert_true(cache_policy_has(&c, 4));
        assert_int_equal(c.use.bytes, 100);
        cache_policy_deinit(&c);
}

static void what_never_fits_evicts_nothing(void **state)
{
        struct cache_policy c;

        (void)state;
        cache_policy_init(&c, 10);
        assert_true(cache_policy_put(&c, 1, 10, NULL, NULL));
        assert_false(cache_policy_put(&c, 2, 11, NULL, NULL));
        assert_true(cache_policy_has(&c, 1));
        assert_false(cache_policy_pin(&c, 2));
        cache_policy_deinit(&c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_least_recently_used_goes),
                cmocka_unit_test(what_a_job_uses_stays),
                cmocka_unit_test(what_never_fits_evicts_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
