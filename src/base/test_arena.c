#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"

static void many(void **state)
{
        struct arena a = {0};
        char *p[500];

        (void)state;
        for (int round = 0; round < 3; round++) {
                for (size_t i = 0; i < 500; i++) {
                        p[i] = arena_alloc(&a, i);
                        assert_int_equal((uintptr_t)p[i] % 16, 0);
                        memset(p[i], (int)i, i);
                }
                for (size_t i = 0; i < 500; i++) /* none has been written over by a later one */
                        for (size_t k = 0; k < i; k++)
                                assert_int_equal((unsigned char)p[i][k], i & 0xff);
                arena_reset(&a);
                assert_int_equal(a.used, 0);
        }
        arena_deinit(&a);
}

static void large(void **state)
{
        struct arena a = {0};
        char *p = arena_alloc(&a, 5u << 20), *q;

        (void)state;
        memset(p, 1, 5u << 20);
        q = arena_alloc(&a, 1);
        *q = 2;
        assert_int_equal(p[(5u << 20) - 1], 1);
        arena_deinit(&a);
        assert_null(a.head);
}

static void limit(void **state)
{
        struct arena a = {.max = 64};

        (void)state;
        assert_non_null(arena_alloc(&a, 48));
        assert_null(arena_alloc(&a, 17));
        assert_non_null(arena_alloc(&a, 16));
        assert_null(arena_alloc(&a, 1));
        assert_null(arena_str(&a, STR("x")).p);
        arena_reset(&a);
        assert_non_null(arena_alloc(&a, 64));
        arena_deinit(&a);
        assert_int_equal(a.max, 64);
}

static void copies(void **state)
{
        struct arena a = {0};
        char text[] = "abc";
        struct str s = arena_str(&a, str_of(text));

        (void)state;
        text[0] = 'x';
        assert_string_equal(s.p, "abc");
        assert_string_equal(arena_dup(&a, "a\0b", 1), "a");
        s = arena_str(&a, STR_NONE);
        assert_string_equal(s.p, "");
        arena_deinit(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(many),
                cmocka_unit_test(large),
                cmocka_unit_test(limit),
                cmocka_unit_test(copies),
        };

        return cmocka_run_group_tests_name("base/arena", tests, NULL, NULL);
}
