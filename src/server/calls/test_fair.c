/* Who is next, where one user asks for a great deal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/calls/fair.h"

static struct server *server;
static struct buf order;
static unsigned freed;

static void receive(void *arg, struct mail *m)
{
        struct task *t = (struct task *)m;

        t->run(arg, t);
}

static void drop_call(struct task *t)
{
        freed++;
        call_free((struct call *)t);
}

static void drop_mail(struct mail *m)
{
        task_drop((struct task *)m);
}

static int setup(void **state)
{
        (void)state;
        server = mem_new(struct server);
        server->loop = loop_new();
        server->core_mail = mailbox_new(server->loop, receive, NULL, server);
        server->core_fair = fair_new(server, server_to_core);
        freed = 0;
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        mailbox_free(server->core_mail, drop_mail);
        fair_free(server->core_fair);
        loop_free(server->loop);
        free(server);
        buf_deinit(&order);
        return 0;
}

static struct call *call_of(const char *who)
{
        struct call *c = mem_new(struct call);

        c->server = server;
        c->who = mem_dupz(who);
        return c;
}

static void step(struct server *s, struct call *c)
{
        buf_addz(&order, c->who);
        call_free(c);
        if (order.n == 5)
                loop_stop(s->loop);
}

static void first_step(struct server *s, struct call *c)
{
        (void)s;
        buf_addz(&order, c->who);
        call_yield(c, step);
}

static void test_users_take_turns(void **state)
{
        (void)state;
        for (int i = 0; i < 3; i++)
                call_yield(call_of("a"), step);
        call_yield(call_of("b"), step);
        call_yield(call_of("c"), step);
        loop_run(server->loop);
        assert_string_equal(buf_z(&order), "abcaa");
}

/* A call of several steps is behind the other calls of its user. */
static void test_calls_of_a_user_take_turns(void **state)
{
        (void)state;
        call_yield(call_of("a"), first_step);
        call_yield(call_of("a"), first_step);
        call_yield(call_of("b"), step);
        loop_run(server->loop);
        assert_string_equal(buf_z(&order), "abaaa");
}

static void test_what_waits_is_dropped_at_the_end(void **state)
{
        struct call *c[3];

        (void)state;
        for (int i = 0; i < 3; i++) {
                c[i] = call_of(i < 2 ? "a" : "b");
                call_yield(c[i], step);
                c[i]->task.drop = drop_call;
        }
        mailbox_free(server->core_mail, drop_mail);
        assert_int_equal(freed, 2);
        fair_free(server->core_fair);
        assert_int_equal(freed, 3);
        server->core_mail = mailbox_new(server->loop, receive, NULL, server);
        server->core_fair = NULL;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_users_take_turns, setup, teardown),
                cmocka_unit_test_setup_teardown(test_calls_of_a_user_take_turns, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_waits_is_dropped_at_the_end, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
