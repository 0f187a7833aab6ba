#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/ancestry.h"

static bool is_pid(void *arg, pid_t pid, const char *comm)
{
        (void)comm;
        return pid == *(pid_t *)arg;
}

static bool is_named(void *arg, pid_t pid, const char *comm)
{
        (void)pid;
        return !strcmp(comm, arg);
}

/* A process that has left its session, and whose parents have ended; it ends with `hold`. */
static pid_t daemon_of_ours(int hold[2])
{
        int told[2];
        pid_t pid = -1;

        assert_int_equal(pipe(told) | pipe(hold), 0);
        if (fork() == 0) {
                char byte;

                setsid();
                if (fork() != 0)
                        _exit(0);
                prctl(PR_SET_NAME, "a) S 1 (b");
                pid = getpid();
                close(hold[1]);
                if (write(told[1], &pid, sizeof(pid)) != sizeof(pid) || read(hold[0], &byte, 1) != 0)
                        _exit(1);
                _exit(0);
        }
        assert_true(wait(NULL) > 0);
        assert_int_equal(read(told[0], &pid, sizeof(pid)), sizeof(pid));
        close(told[0]);
        close(told[1]);
        close(hold[0]);
        return pid;
}

static void test_subreaper(void **arg)
{
        (void)arg;
        int hold[2];
        pid_t self = getpid(), other = fork();
        if (other == 0)
                for (;;)
                        pause();
        assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
        assert_int_equal(prctl(PR_SET_NAME, "odd ) 1 ( name"), 0);
        pid_t left = daemon_of_ours(hold);
        assert_int_equal(ancestry_find(left, is_pid, &self), 1);
        assert_int_equal(ancestry_find(left, is_named, (void *)"odd ) 1 ( name"), 1);
        assert_int_equal(ancestry_find(left, is_pid, &other), 0);
        assert_int_equal(ancestry_find(left, is_pid, &left), 0); /* it is not its own ancestor */
        close(hold[1]);
        assert_int_equal(waitpid(left, NULL, 0), left);
        assert_int_equal(ancestry_find(left, is_pid, &self), -ESRCH);
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
}

static bool never(void *arg, pid_t pid, const char *comm)
{
        (void)arg, (void)pid, (void)comm;
        return false;
}

/* So many processes, each the child of the one before. The last one's number goes to `told`, and they end
 * with `hold`. */
static void chain(int depth, int told, int hold)
{
        pid_t pid = 0;
        char byte;

        while (--depth > 0 && (pid = fork()) == 0)
                ;
        if (depth == 0 && (pid = getpid()) > 0 && write(told, &pid, sizeof(pid)) != sizeof(pid))
                _exit(1);
        _exit(pid < 0 || read(hold, &byte, 1) != 0);
}

static void test_too_deep(void **arg)
{
        (void)arg;
        int told[2], hold[2];
        pid_t pid = -1, first, self = getpid();
        assert_int_equal(pipe(told) | pipe(hold), 0);
        first = fork();
        if (first == 0) {
                close(hold[1]);
                chain(270, told[1], hold[0]);
        }
        assert_int_equal(read(told[0], &pid, sizeof(pid)), sizeof(pid));
        assert_int_equal(ancestry_find(pid, never, NULL), -ELOOP);
        assert_int_equal(ancestry_find(pid, is_pid, &self), -ELOOP);
        assert_int_equal(ancestry_find(first, is_pid, &self), 1);
        close(hold[1]);
        assert_int_equal(waitpid(first, NULL, 0), first);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_subreaper), cmocka_unit_test(test_too_deep)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
