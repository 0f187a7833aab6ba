#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sm.h"

enum door { OPEN, CLOSED, LOCKED };
static const char *const names[] = {"open", "closed", "locked"};
static const uint32_t moves[] = {SM_TO(CLOSED), SM_TO(OPEN) | SM_TO(LOCKED), SM_TO(CLOSED)};
static const struct sm door = {"door", names, moves, 3};

static void may(void **state)
{
        (void)state;
        assert_true(sm_may(&door, OPEN, CLOSED));
        assert_false(sm_may(&door, OPEN, LOCKED));
        assert_false(sm_may(&door, OPEN, OPEN));
        assert_false(sm_may(&door, 3, OPEN));
        assert_false(sm_may(&door, OPEN, 3));
        assert_false(sm_may(&door, OPEN, 99));
        sm_check(&door, CLOSED, LOCKED);
}

static void names_of_states(void **state)
{
        (void)state;
        assert_string_equal(sm_state(&door, LOCKED), "locked");
        assert_string_equal(sm_state(&door, 3), "?");
}

static void illegal_move_aborts(void **state)
{
        pid_t pid = fork();
        int status;

        (void)state;
        if (pid == 0) {
                signal(SIGABRT, SIG_DFL);
                close(STDERR_FILENO);
                sm_check(&door, LOCKED, OPEN);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(may),
                cmocka_unit_test(names_of_states),
                cmocka_unit_test(illegal_move_aborts),
        };

        return cmocka_run_group_tests_name("base/sm", tests, NULL, NULL);
}
