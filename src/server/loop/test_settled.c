/* Tests of the counts that a read of a request shows while commits are under way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "server/loop/settled.h"

static int setup(void **state)
{
        *state = settled_new();
        return 0;
}

static int teardown(void **state)
{
        settled_free(*state);
        return 0;
}

static struct core_request request(uint64_t id, uint64_t completed)
{
        return (struct core_request){.id = id, .counts = {.jobs = 100, .completed = completed}};
}

static void event(struct settled *x, uint64_t id, enum event_type type, uint64_t commit)
{
        settled_event(x, &(struct event){.type = type, .request = id}, commit, type == EVENT_STARTED);
}

/* Ends a turn, in which all requests have so many completed jobs. */
static void end_turn(struct settled *x, uint64_t completed, uint64_t durable)
{
        for (uint64_t id; (id = settled_next(x));) {
                struct core_request r = request(id, completed);

                settled_keep(x, &r, durable);
        }
}

/* Returns how many completed jobs a read shows at once, if the core has so many; -1: it waits. */
static int read_now(struct settled *x, uint64_t id, uint64_t completed, uint64_t durable)
{
        struct core_request r = request(id, completed);

        return settled_get(x, &r, durable) ? (int)r.counts.completed : -1;
}

static void test_unchanged(void **state)
{
        struct settled *x = *state;

        assert_int_equal(read_now(x, 1, 5, 0), 5);
        event(x, 2, EVENT_EXITED, 1);
        assert_int_equal(read_now(x, 1, 5, 0), 5);
        assert_int_equal(read_now(x, 2, 6, 1), 6);
        event(x, 1, EVENT_STARTED, 2); /* nothing waits for its record */
        assert_int_equal(read_now(x, 1, 5, 1), 5);
}

/* The first read waits; later ones are shown what was durable last. */
static void test_a_busy_request(void **state)
{
        struct settled *x = *state;

        event(x, 1, EVENT_EXITED, 1);
        assert_int_equal(read_now(x, 1, 1, 0), -1);
        end_turn(x, 1, 0);
        assert_int_equal(read_now(x, 1, 1, 0), -1);
        for (uint64_t n = 2; n < 100; n++) {
                event(x, 1, EVENT_EXITED, n);
                assert_int_equal(read_now(x, 1, n, n / 2), n / 2);
                end_turn(x, n, n / 2);
                assert_int_equal(read_now(x, 1, n, n / 2), n / 2);
        }
        assert_int_equal(read_now(x, 1, 99, 98), 98);
        assert_int_equal(read_now(x, 1, 99, 99), 99);
        /* it changes again after a while, and what was durable before is known */
        event(x, 1, EVENT_STARTED, 105);
        end_turn(x, 99, 104);
        event(x, 1, EVENT_EXITED, 105);
        assert_int_equal(read_now(x, 1, 100, 104), 99);
        end_turn(x, 100, 104);
        assert_int_equal(read_now(x, 1, 100, 104), 99);
        assert_int_equal(read_now(x, 1, 100, 105), 100);
}

/* A change of a request that its counts do not show is waited for, and so is a new request. */
static void test_other_changes(void **state)
{
        struct settled *x = *state;

        event(x, 1, EVENT_SUBMITTED, 1);
        end_turn(x, 0, 0);
        assert_int_equal(read_now(x, 1, 0, 0), -1);
        end_turn(x, 0, 0);
        event(x, 1, EVENT_EXITED, 2);
        end_turn(x, 1, 1);
        assert_int_equal(read_now(x, 1, 1, 1), 0);
        event(x, 1, EVENT_EDITED, 3);
        event(x, 1, EVENT_EXITED, 3);
        end_turn(x, 2, 1);
        assert_int_equal(read_now(x, 1, 2, 1), -1);
        assert_int_equal(read_now(x, 1, 2, 2), -1);
        event(x, 1, EVENT_EXITED, 4);
        end_turn(x, 3, 3);
        assert_int_equal(read_now(x, 1, 3, 3), 2);
}

/* Requests that are not read any more make room for others, also those that have changed in this turn. */
static void test_many_are_read(void **state)
{
        struct settled *x = *state;
        uint64_t n = SETTLED_READ_MAX + 10;

        for (uint64_t id = 1; id <= n; id++) {
                event(x, id, EVENT_EXITED, 1);
                assert_int_equal(read_now(x, id, 1, 0), -1);
        }
        end_turn(x, 1, 0);
        for (uint64_t id = 1; id <= n; id++)
                event(x, id, EVENT_EXITED, 2);
        end_turn(x, 2, 1);
        assert_int_equal(read_now(x, n, 2, 1), 1);
        assert_int_equal(read_now(x, 11, 2, 1), 1);
        assert_int_equal(read_now(x, 10, 2, 1), -1);
        assert_int_equal(read_now(x, 12, 2, 1), -1);
}

/* Failures that a graph handles are not counted in each turn. */
static void test_counts_that_take_long(void **state)
{
        struct settled *x = *state;
        struct core_request r = request(1, 0);

        event(x, 1, EVENT_EXITED, 1);
        assert_int_equal(read_now(x, 1, 1, 0), -1);
        assert_int_equal(settled_next(x), 1);
        r.handles = true;
        r.counts.failed = 1000000;
        settled_keep(x, &r, 0);
        event(x, 1, EVENT_EXITED, 2);
        assert_int_equal(settled_next(x), 0);
        assert_int_equal(read_now(x, 1, 2, 1), -1);
}

int main(void)
{
#define SETTLED(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                SETTLED(test_unchanged),     SETTLED(test_a_busy_request),        SETTLED(test_other_changes),
                SETTLED(test_many_are_read), SETTLED(test_counts_that_take_long),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
