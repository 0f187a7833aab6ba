#include "ev/loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "ev/test_help.h"

static struct buf order;

static int setup(void **state)
{
        *state = loop_new();
        return 0;
}

static int teardown(void **state)
{
        loop_free(*state);
        buf_deinit(&order);
        return 0;
}

static void note(void *arg)
{
        buf_addz(&order, arg);
}

static void stop(void *arg)
{
        loop_stop(arg);
}

static void timers_in_order(void **state)
{
        struct loop *l = *state;
        struct timer *t[5];
        int64_t before = clock_mono_ns();

        t[0] = timer_new(l, note, (void *)"c");
        t[1] = timer_new(l, note, (void *)"a");
        t[2] = timer_new(l, note, (void *)"b");
        t[3] = timer_new(l, note, (void *)"never");
        t[4] = timer_new(l, stop, l);
        timer_start(t[0], 30);
        timer_start(t[1], 10);
        timer_start(t[2], 5);
        timer_start(t[2], 20); /* moved */
        timer_start(t[3], 15);
        timer_stop(t[3]);
        timer_start(t[4], 40);
        assert_true(timer_running(t[0]));
        assert_false(timer_running(t[3]));
        help_run(l);
        assert_string_equal(buf_z(&order), "abc");
        assert_true(clock_mono_ns() - before >= 40000000); /* not early */
        assert_false(timer_running(t[0]));
        for (int i = 0; i < 5; i++)
                timer_free(t[i]);
}

static struct timer *counting;
static int counted;

static void count_to_three(void *arg)
{
        if (++counted < 3)
                timer_start(counting, 0);
        else
                loop_stop(arg);
}

static void timer_restarts_itself(void **state)
{
        counted = 0;
        counting = timer_new(*state, count_to_three, *state);
        timer_start(counting, 0);
        help_run(*state);
        assert_int_equal(counted, 3);
        timer_free(counting);
}

static void free_me(void *arg)
{
        timer_free(*(struct timer **)arg);
        *(struct timer **)arg = NULL;
}

static void timer_freed_by_itself(void **state)
{
        struct timer *t = timer_new(*state, free_me, &t);

        timer_start(t, 0);
        help_run_ms(*state, 10);
        assert_null(t);
}

static void long_callback(void *arg)
{
        usleep(60000);
        timer_start(arg, 30);
        counted = (int)(clock_mono_ns() / 1000000);
}

static int fired_at;
static void fired(void *arg)
{
        fired_at = (int)(clock_mono_ns() / 1000000);
        loop_stop(arg);
}

static void timers_count_from_when_they_are_started(void **state)
{
        struct timer *b = timer_new(*state, fired, *state), *a = timer_new(*state, long_callback, b);

        timer_start(a, 0);
        help_run(*state);
        assert_true(fired_at - counted >= 29);
        timer_free(a);
        timer_free(b);
}

static void defer_more(void *arg)
{
        struct loop *l = arg;

        buf_addz(&order, "1");
        loop_defer(l, note, (void *)"3");
        loop_defer(l, stop, l);
        loop_defer(l, note, (void *)"never");
        loop_defer_cancel(l, note, (void *)"never");
}

static void defer_now(void *arg)
{
        loop_defer(arg, defer_more, arg);
        loop_defer(arg, note, (void *)"2");
        buf_addz(&order, "0");
}

static void deferred_after_the_turn(void **state)
{
        struct timer *a = timer_new(*state, defer_now, *state), *b = timer_new(*state, note, (void *)"b");

        timer_start(a, 0);
        timer_start(b, 0);
        usleep(2000);
        help_run(*state);
        /* what is ready in a turn comes before what the turn deferred */
        assert_true(str_eqz(buf_view(&order), "0b123") || str_eqz(buf_view(&order), "b0123"));
        timer_free(a);
        timer_free(b);
}

static void *stop_thread(void *arg)
{
        usleep(20000);
        loop_stop(arg);
        return NULL;
}

static void stopped_by_another_thread(void **state)
{
        pthread_t t;

        loop_stop(*state); /* before it runs */
        help_run(*state);
        pthread_create(&t, NULL, stop_thread, *state);
        help_run(*state);
        pthread_join(t, NULL);
}

static struct watch *watched;
static int watch_whats[8], watch_calls;

static void readable(void *arg, int what)
{
        watch_whats[watch_calls++ % 8] = what;
        if (watch_calls == 2) /* level-triggered: called again although nothing was read */
                watch_set(watched, 0);
        (void)arg;
}

static void watches(void **state)
{
        int fds[2];

        assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
        watch_calls = 0;
        watched = watch_new(*state, fds[0], WATCH_READ, readable, NULL);
        help_run_ms(*state, 10);
        assert_int_equal(watch_calls, 0);
        assert_int_equal(write(fds[1], "x", 1), 1);
        help_run_ms(*state, 10);
        assert_int_equal(watch_calls, 2);
        assert_int_equal(watch_whats[0], WATCH_READ);
        watch_free(watched);
        watch_calls = 1;
        watched = watch_new(*state, fds[1], WATCH_WRITE, readable, NULL);
        help_run_ms(*state, 10);
        assert_int_equal(watch_whats[1], WATCH_WRITE);
        watch_free(watched);
        close(fds[0]);
        close(fds[1]);
}

static void signals(void **state)
{
        struct loop *other = loop_new();
        struct watch_signal *a = watch_signal_new(*state, SIGUSR1, note, (void *)"1");
        struct watch_signal *b =
                watch_signal_new(other, SIGUSR2, note, (void *)"2"); /* two loops may watch signals */

        raise(SIGUSR1);
        raise(SIGUSR2);
        assert_int_equal(order.n, 0); /* not in the handler */
        help_run_ms(*state, 10);
        assert_string_equal(buf_z(&order), "1");
        help_run_ms(other, 10);
        assert_string_equal(buf_z(&order), "12");
        watch_signal_free(a);
        watch_signal_free(b);
        loop_free(other);
        a = watch_signal_new(*state, SIGUSR1, note, (void *)"again");
        watch_signal_free(a);
}

/* Of two watches that are ready in the same turn, the first that is called frees the other, closes its
 * descriptor and makes a watch of a descriptor that is not ready. */
struct pair {
        struct loop *loop;
        struct watch *watches[2];
        int fds[2][2], calls;
};
static struct pair *pair;

static void pair_ready(void *arg, int what)
{
        int other = 1 - *(int *)arg;

        assert_int_equal(what, WATCH_READ);
        pair->calls++;
        watch_free(pair->watches[other]);
        close(pair->fds[other][0]);
        close(pair->fds[other][1]);
        assert_int_equal(pipe2(pair->fds[other], O_NONBLOCK | O_CLOEXEC), 0);
        pair->watches[other] = watch_new(pair->loop, pair->fds[other][0], WATCH_READ, pair_ready, NULL);
        watch_set(pair->watches[1 - other], 0);
}

static void watch_freed_while_it_is_ready(void **state)
{
        struct pair p = {.loop = *state};
        int numbers[2] = {0, 1};

        pair = &p;
        for (int i = 0; i < 2; i++) {
                assert_int_equal(pipe2(p.fds[i], O_NONBLOCK | O_CLOEXEC), 0);
                assert_int_equal(write(p.fds[i][1], "x", 1), 1);
                p.watches[i] = watch_new(p.loop, p.fds[i][0], WATCH_READ, pair_ready, &numbers[i]);
        }
        help_run_ms(p.loop, 10);
        assert_int_equal(p.calls, 1);
        for (int i = 0; i < 2; i++) {
                watch_free(p.watches[i]);
                close(p.fds[i][0]);
                close(p.fds[i][1]);
        }
}

/* A peer that is gone is told to whoever watches, for reading or for writing. */
static void watches_tell_the_end(void **state)
{
        int fds[2];

        for (int end = 0; end < 2; end++) {
                assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
                close(fds[1 - end]);
                watch_calls = 1; /* the second call makes it quiet */
                watched = watch_new(*state, fds[end], end ? WATCH_WRITE : WATCH_READ, readable, NULL);
                help_run_ms(*state, 10);
                assert_int_equal(watch_calls, 2);
                assert_int_equal(watch_whats[1], end ? WATCH_WRITE : WATCH_READ);
                watch_free(watched);
                close(fds[end]);
        }
}

#define MANY 40

struct many {
        struct loop *loop;
        struct watch *watches[MANY + 1];
        int fds[MANY + 1], called[MANY + 1]; /* when, from 1; 0: not yet */
        int calls, freed;
};
struct one_of_many {
        struct many *all;
        int number;
};

/* Takes a millisecond or longer. The first makes the last one ready, which does not yield. The fifth frees
 * the sixth. */
static void one_of_many_ready(void *arg, int what)
{
        struct one_of_many *o = arg;
        struct many *m = o->all;
        int64_t until_ns = clock_mono_ns() + 1000000;
        uint64_t n;

        assert_int_equal(what, WATCH_READ);
        assert_int_equal(m->called[o->number], 0);
        assert_int_equal(read(m->fds[o->number], &n, sizeof(n)), sizeof(n));
        m->called[o->number] = ++m->calls;
        if (m->calls == 1)
                assert_int_equal(write(m->fds[MANY], &(uint64_t){1}, sizeof(n)), sizeof(n));
        if (m->calls == MANY / 2) {
                for (int i = 0; i < MANY && m->freed < 0; i++)
                        if (!m->called[i])
                                m->freed = i;
                watch_free(m->watches[m->freed]);
        }
        while (clock_mono_ns() < until_ns)
                ;
        if (m->calls == MANY)
                loop_stop(m->loop);
}

static void watches_that_yield(void **state)
{
        struct many m = {.loop = *state, .freed = -1};
        struct one_of_many ones[MANY + 1];

        for (int i = 0; i <= MANY; i++) {
                ones[i] = (struct one_of_many){&m, i};
                m.fds[i] = eventfd(i < MANY, EFD_CLOEXEC);
                m.watches[i] = watch_new(m.loop, m.fds[i], WATCH_READ, one_of_many_ready, &ones[i]);
                if (i < MANY)
                        watch_yield(m.watches[i]);
        }
        help_run(m.loop);
        /* it came in the turn after that in which it got ready, before most of those that were ready before
         * it */
        assert_in_range(m.called[MANY], 2, 10);
        for (int i = 0; i < MANY; i++)
                assert_true((m.called[i] == 0) == (i == m.freed));
        help_run_ms(m.loop, 1);
        assert_int_equal(m.calls, MANY);
        for (int i = 0; i <= MANY; i++) {
                if (i != m.freed)
                        watch_free(m.watches[i]);
                close(m.fds[i]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(timers_in_order, setup, teardown),
                cmocka_unit_test_setup_teardown(timer_restarts_itself, setup, teardown),
                cmocka_unit_test_setup_teardown(timer_freed_by_itself, setup, teardown),
                cmocka_unit_test_setup_teardown(timers_count_from_when_they_are_started, setup, teardown),
                cmocka_unit_test_setup_teardown(deferred_after_the_turn, setup, teardown),
                cmocka_unit_test_setup_teardown(stopped_by_another_thread, setup, teardown),
                cmocka_unit_test_setup_teardown(watches, setup, teardown),
                cmocka_unit_test_setup_teardown(watch_freed_while_it_is_ready, setup, teardown),
                cmocka_unit_test_setup_teardown(watches_tell_the_end, setup, teardown),
                cmocka_unit_test_setup_teardown(signals, setup, teardown),
                cmocka_unit_test_setup_teardown(watches_that_yield, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
