#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/share.h"

static size_t take_all(struct share *s, struct str holder)
{
        size_t n = 0;

        while (share_take(s, holder))
                n++;
        return n;
}

static void test_nobody_gets_all(void **state)
{
        struct share *s = share_new(100);

        (void)state;
        assert_int_equal(take_all(s, STR("ann")), 50);
        assert_int_equal(take_all(s, STR("bob")), 25);
        assert_int_equal(take_all(s, STR("eve")), 13); /* she may have as many as are free before each */
        assert_int_equal(take_all(s, STR("ann")), 0);
        assert_int_equal(share_taken(s), 88);
        for (int i = 0; i < 50; i++)
                share_give(s, STR("ann"));
        assert_int_equal(share_taken(s), 38);
        assert_int_equal(take_all(s, STR("ann")), 31);
        share_free(s);
}

static void test_few_places(void **state)
{
        struct share *s = share_new(1);

        (void)state;
        assert_true(share_take(s, STR("ann")));
        assert_false(share_take(s, STR("bob")));
        share_give(s, STR("ann"));
        assert_true(share_take(s, STR("bob")));
        share_free(s);
        s = share_new(0);
        assert_false(share_take(s, STR("ann")));
        share_free(s);
        share_free(NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nobody_gets_all),
                cmocka_unit_test(test_few_places),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
