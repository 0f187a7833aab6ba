/* Pools, and draws of jobs on them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/accounts/limit.h"

#include "base/buf.h"

static struct draws *parse(struct limits *l, const char *text)
{
        struct draws *d;
        struct err err;

        if (limits_parse(l, str_of(text), false, &d, &err))
                fail_msg("%s", err.text);
        return d;
}

static void test_text_is_made_canonical(void **state)
{
        struct limits *l = limits_new();
        struct draws *a = parse(l, "SW:2, db ,sw"), *b = parse(l, "db:1,sw:3"), *none = parse(l, " , ");

        (void)state;
        assert_string_equal(a->text, "db:1,sw:3");
        assert_ptr_equal(a, b);
        assert_null(none);
        draws_unref(l, a);
        draws_unref(l, b);
        draws_unref(l, none);
        limits_free(l);
}

static void test_what_is_no_limit_is_refused(void **state)
{
        static const char *const bad[] = {"a b", "sw:0", "sw:-1", "sw:x",    "sw:1.5",
                                          ":2",  ".x",   "x.",    "qos/high"};
        struct limits *l = limits_new();
        struct draws *d;
        struct buf many = {0};

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct err err = {{0}};

                assert_int_equal(limits_parse(l, str_of(bad[i]), false, &d, &err), -22);
                assert_true(err.text[0]);
        }
        for (unsigned i = 0; i <= LIMIT_DRAWS_MAX; i++)
                buf_printf(&many, "l%u,", i);
        assert_int_equal(limits_parse(l, buf_view(&many), false, &d, NULL), -7);
        assert_int_equal(limits_parse(l, STR("qos/high:1"), true, &d, NULL), 0);
        draws_unref(l, d);
        buf_deinit(&many);
        limits_free(l);
}

static void test_numbers_by_name_by_family_and_by_default(void **state)
{
        struct limits *l = limits_new();
        struct draws *d = parse(l, "large.a, sw, x");

        (void)state;
        assert_int_equal(draws_room(d, NULL), UINT32_MAX);
        limits_set(l, STR("large.*"), 3);
        limits_set(l, STR("default"), 7);
        limits_set(l, STR("SW"), 2);
        assert_int_equal(limits_get(l, STR("large.a"))->max, 3);
        assert_int_equal(limits_get(l, STR("large"))->max, 7);
        assert_int_equal(limits_get(l, STR("sw"))->max, 2);
        assert_int_equal(limits_get(l, STR("x"))->max, 7);
        assert_int_equal(limits_get(l, STR("qos/x"))->max, LIMIT_NONE);
        limits_set(l, STR("large.a"), 9);
        assert_int_equal(limits_get(l, STR("large.a"))->max, 9);
        assert_int_equal(limits_get(l, STR("large.b"))->max, 3);
        draws_unref(l, d);
        limits_free(l);
}

static void test_room_is_that_of_the_scarcest_pool(void **state)
{
        struct limits *l = limits_new();
        struct draws *d = parse(l, "sw:2,db"), *other = parse(l, "db:3");
        struct limit *which;

        (void)state;
        limits_set(l, STR("sw"), 5);
        limits_set(l, STR("db"), 4);
        assert_int_equal(draws_room(d, &which), 2);
        assert_string_equal(which->name, "sw");
        draws_take(other);
        assert_int_equal(draws_room(d, &which), 1);
        assert_string_equal(which->name, "db");
        draws_take(d);
        assert_int_equal(draws_room(d, &which), 0);
        assert_int_equal(limits_get(l, STR("sw"))->used, 2);
        limits_set(l, STR("db"), 1); /* fewer than are in use */
        assert_int_equal(draws_room(d, &which), 0);
        draws_give_back(d, NULL, NULL);
        draws_give_back(other, NULL, NULL);
        assert_int_equal(draws_room(d, &which), 1);
        draws_unref(l, d);
        draws_unref(l, other);
        limits_free(l);
}

static void on_woken(void *arg, struct limit_waiter *w)
{
        (void)w;
        ++*(unsigned *)arg;
}

static void test_the_number_of_one_pool(void **state)
{
        struct limits *l = limits_new();
        struct limit *x;
        struct draws *d;

        (void)state;
        limits_set(l, STR("lot/*"), 0);
        x = limits_get(l, STR("lot/a"));
        assert_int_equal(x->max, 0);
        limits_set_one(l, x, 5);
        limits_set(l, STR("other"), 1); /* numbers all pools anew */
        assert_int_equal(x->max, 5);
        assert_int_equal(limits_parse(l, STR("lot/a:3"), true, &d, NULL), 0);
        assert_int_equal(draws_room(d, NULL), 1);
        limits_unset(l, x); /* a job still names it */
        assert_int_equal(draws_room(d, NULL), 0);
        draws_unref(l, d);
        assert_null(limits_find(l, STR("lot/a")));
        limits_free(l);
}

static void test_who_waits_is_told_once(void **state)
{
        struct limits *l = limits_new();
        struct draws *d = parse(l, "sw");
        struct limit *sw = limits_get(l, STR("sw")), *db = limits_get(l, STR("db"));
        struct limit_waiter a = {0}, b = {0}, c = {0};
        unsigned woken = 0;

        (void)state;
        draws_take(d);
        draws_take(d);
        limit_wait(sw, &a);
        limit_wait(sw, &b);
        limit_wait(sw, &c);
        limit_wait(sw, &c);
        limit_wait(db, &b); /* in one line only */
        draws_give_back(d, on_woken, &woken);
        assert_int_equal(woken, 2);
        assert_null(a.limit);
        assert_ptr_equal(b.limit, db);
        draws_give_back(d, on_woken, &woken);
        assert_int_equal(woken, 2);
        limit_leave(&b);
        limit_leave(&b);
        assert_null(db->line);
        draws_unref(l, d);
        limits_free(l);
}

static void on_limit(void *arg, struct limit *x)
{
        buf_printf(arg, "%s %lld/%lld\n", x->name, (long long)x->used,
                   (long long)(x->max == LIMIT_NONE ? -1 : x->max));
}

static void test_listed_are_those_named_or_in_use(void **state)
{
        struct limits *l = limits_new();
        struct draws *d = parse(l, "x:4"), *idle = parse(l, "y");
        struct buf text = {0};

        (void)state;
        limits_set(l, STR("sw"), 5);
        limits_set(l, STR("default"), 8);
        draws_take(d);
        limits_each(l, on_limit, &text);
        assert_string_equal(buf_z(&text), "sw 0/5\nx 4/8\n");
        draws_give_back(d, NULL, NULL);
        draws_unref(l, d);
        draws_unref(l, idle);
        buf_deinit(&text);
        limits_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_text_is_made_canonical),
                cmocka_unit_test(test_what_is_no_limit_is_refused),
                cmocka_unit_test(test_numbers_by_name_by_family_and_by_default),
                cmocka_unit_test(test_room_is_that_of_the_scarcest_pool),
                cmocka_unit_test(test_the_number_of_one_pool),
                cmocka_unit_test(test_who_waits_is_told_once),
                cmocka_unit_test(test_listed_are_those_named_or_in_use),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
