/* Places for calls that wait, on a server that has nothing but an empty core. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/clock.h"
#include "server/calls/waits.h"

static struct server *server;

static void nothing(struct server *s)
{
        (void)s;
}

static bool nobody(struct server *s)
{
        (void)s;
        return false;
}

static const struct turn_hooks hooks = {.slept = nothing, .ending = nothing, .awaited = nobody};

static int setup(void **state)
{
        (void)state;
        server = mem_new(struct server);
        server->loop = loop_new();
        server->core = core_new(&(struct core_config){0}, &(struct core_world){0});
        server->turn = turn_new(server, &hooks);
        server->waits = waits_new(server);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        waits_free(server->waits);
        turn_free(server->turn);
        core_free(server->core);
        loop_free(server->loop);
        free(server);
        return 0;
}

static void drop_call(struct task *t)
{
        call_free((struct call *)t);
}

static struct call *waiting_call(const char *who)
{
        struct call *c = mem_new(struct call);

        c->server = server;
        c->place = CALL_CORE;
        c->task.drop = drop_call;
        c->who = mem_dupz(who);
        return c;
}

/* One who waits as often as he can leaves room for the next one. */
static void test_waiting_is_shared(void **state)
{
        struct server *s = server;
        size_t n = 0;

        (void)state;
        while (waits_park(s, waiting_call("ann@local"), NULL, 60000, NULL))
                n++;
        assert_int_equal(n, WAITS_MAX / 2);
        assert_true(waits_park(s, waiting_call("bob@local"), NULL, 60000, NULL));
        assert_false(waits_park(s, waiting_call("ann@local"), NULL, 60000, NULL));
}

/* Who names many requests has as many places. */
static void test_requests_are_counted(void **state)
{
        struct server *s = server;
        struct ids ids = {0};
        size_t n = 0;

        (void)state;
        ids.count = WAITS_MAX / 8;
        ids.items = mem_zalloc(ids.count * sizeof(*ids.items));
        for (size_t i = 0; i < ids.count; i++)
                ids.items[i].request = i + 1;
        while (waits_park(s, waiting_call("ann@local"), &ids, 60000, NULL))
                n++;
        assert_int_equal(n, 4);
        assert_false(waits_park(s, waiting_call("ann@local"), NULL, 60000, NULL));
        assert_true(waits_park(s, waiting_call("bob@local"), &ids, 60000, NULL));
        free(ids.items);
}

static unsigned woken;

/* Takes longer than a slice. */
static void look_long(struct server *s, struct call *c)
{
        int64_t end_ns = clock_mono_ns() + 10000000;

        while (clock_mono_ns() < end_ns)
                ;
        woken++;
        call_free(c);
        if (woken == 3)
                loop_stop(s->loop);
}

/* Many that wait for one request are woken a few in a turn, so that other work goes in between. */
static void test_waking_in_slices(void **state)
{
        struct server *s = server;
        struct id id = {.request = 7};
        struct ids ids = {.items = &id, .count = 1};

        (void)state;
        woken = 0;
        for (int i = 0; i < 3; i++)
                assert_true(waits_park(s, waiting_call("ann@local"), &ids, 60000, look_long));
        waits_changed(s, 7);
        waits_flush(s);
        assert_int_equal(woken, 1);
        loop_run(s->loop);
        assert_int_equal(woken, 3);
}

/* So are those that wait for any record, each once for records that came together. */
static void test_waking_for_records_in_slices(void **state)
{
        struct server *s = server;

        (void)state;
        woken = 0;
        for (int i = 0; i < 3; i++)
                waits_park_durable(s, waiting_call("ann@local"), 60000, look_long);
        waits_durable(s);
        waits_durable(s);
        assert_int_equal(woken, 1);
        loop_run(s->loop);
        assert_int_equal(woken, 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_requests_are_counted, setup, teardown),
                cmocka_unit_test_setup_teardown(test_waking_in_slices, setup, teardown),
                cmocka_unit_test_setup_teardown(test_waking_for_records_in_slices, setup, teardown),
                cmocka_unit_test_setup_teardown(test_waiting_is_shared, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
