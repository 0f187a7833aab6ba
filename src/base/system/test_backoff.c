#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/backoff.h"

static void waits_around(struct backoff *b, int64_t ms)
{
        int64_t wait = backoff_wait(b);

        assert_true(wait >= ms / 2 && wait <= ms / 2 + ms);
}

static void test_waits_grow(void **state)
{
        struct backoff b = BACKOFF(50, 300);

        (void)state;
        waits_around(&b, 50);
        waits_around(&b, 100);
        waits_around(&b, 200);
        waits_around(&b, 300);
        waits_around(&b, 300);
        backoff_reset(&b);
        waits_around(&b, 50);
}

static void test_waits_differ(void **state)
{
        int64_t least = INT64_MAX, most = 0;

        (void)state;
        for (int i = 0; i < 1000; i++) {
                struct backoff b = BACKOFF(1000, 1000);
                int64_t wait = backoff_wait(&b);

                least = wait < least ? wait : least;
                most = wait > most ? wait : most;
        }
        assert_true(least < 700 && most > 1300);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_waits_grow),
                cmocka_unit_test(test_waits_differ),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
