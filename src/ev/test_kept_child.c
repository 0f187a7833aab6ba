#include "ev/kept_child.h"

#include <signal.h>
#include <sys/wait.h>

#include "ev/test_help.h"

struct kept_world {
        struct loop *loop;
        struct kept_child *k;
        int due, ended, failed, last;
        int leave_at; /* the end at which the loop is left */
        bool refuse;  /* it is not started */
};

static void on_due(void *arg)
{
        struct kept_world *w = arg;

        w->due++;
        if (w->refuse)
                kept_child_start_later(w->k);
        else
                kept_child_run(w->k);
}

static void on_ended(void *arg, int status, const struct err *why)
{
        struct kept_world *w = arg;

        w->ended++;
        w->failed += why != NULL;
        w->last = status;
        assert_false(kept_child_running(w->k));
        if (w->ended == w->leave_at)
                loop_stop(w->loop);
}

static const struct kept_child_ops ops = {on_due, on_ended};

static void world_run(struct kept_world *w, char *const *argv)
{
        w->loop = loop_new();
        w->k = kept_child_new(w->loop, argv, &ops, w);
        kept_child_start(w->k);
        help_run(w->loop);
}

static void world_end(struct kept_world *w)
{
        kept_child_free(w->k);
        loop_free(w->loop);
}

static void test_it_is_started_again(void **state)
{
        char *argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 3", NULL};
        struct kept_world w = {.leave_at = 2};

        (void)state;
        world_run(&w, argv);
        assert_int_equal(w.due, 2);
        assert_int_equal(w.failed, 0);
        assert_int_equal(WEXITSTATUS(w.last), 3);
        world_end(&w);
}

static void test_what_is_no_program_is_tried_again(void **state)
{
        char *argv[] = {(char *)"/no/such/program", NULL};
        struct kept_world w = {.leave_at = 2};

        (void)state;
        world_run(&w, argv);
        assert_int_equal(w.failed, 2);
        world_end(&w);
}

/* Pauses of 1, 2, 4 s, each between half and one and a half of that; an order to start ends them. */
static void test_what_cannot_be_started_is_due_after_pauses(void **state)
{
        char *argv[] = {(char *)"true", NULL};
        struct kept_world w = {.leave_at = 1, .refuse = true};

        (void)state;
        w.loop = loop_new();
        w.k = kept_child_new(w.loop, argv, &ops, &w);
        kept_child_start(w.k);
        help_run_ms(w.loop, 3600);
        assert_in_range(w.due, 2, 3);
        w.refuse = false;
        kept_child_start(w.k);
        help_run(w.loop);
        assert_int_equal(w.failed, 0);
        world_end(&w);
}

static void test_stopped_it_stays_so(void **state)
{
        char *argv[] = {(char *)"sleep", (char *)"600", NULL};
        struct kept_world w = {.leave_at = 1};

        (void)state;
        w.loop = loop_new();
        w.k = kept_child_new(w.loop, argv, &ops, &w);
        assert_true(kept_child_run(w.k));
        assert_true(kept_child_running(w.k));
        kept_child_stop(w.k);
        help_run(w.loop);
        assert_int_equal(WTERMSIG(w.last), SIGTERM);
        help_run_ms(w.loop, 2000); /* longer than the first pause */
        assert_int_equal(w.due, 0);
        assert_int_equal(w.ended, 1);
        w.leave_at = 2;
        kept_child_start(w.k);
        help_run_ms(w.loop, 300);
        assert_int_equal(w.due, 1);
        assert_true(kept_child_running(w.k));
        kept_child_kill(w.k);
        assert_false(kept_child_running(w.k));
        assert_int_equal(w.ended, 1);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no process is left, not even a dead one */
        world_end(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_it_is_started_again),
                                           cmocka_unit_test(test_what_is_no_program_is_tried_again),
                                           cmocka_unit_test(test_what_cannot_be_started_is_due_after_pauses),
                                           cmocka_unit_test(test_stopped_it_stays_so)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
