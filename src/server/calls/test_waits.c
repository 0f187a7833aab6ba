/* Places for calls that wait, on a server that has nothing but a turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/calls/waits.h"

static struct server *server;

static int setup(void **state)
{
        (void)state;
        server = mem_new(struct server);
        server->loop = loop_new();
        server->turn = turn_new(server, NULL);
        server->waits = waits_new(server);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        waits_free(server->waits);
        turn_free(server->turn);
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_waiting_is_shared, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
