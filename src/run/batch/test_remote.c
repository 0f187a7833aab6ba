/* Files that come back from another machine were written by a job, which may have tried to block others. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/fs.h"
#include "run/batch/remote.h"
#include "run/batch/state.h"

#define NOBODY 65534

static char top[64];

static int setup(void **state)
{
        (void)state;
        snprintf(top, sizeof(top), "/tmp/drover-remote-XXXXXX");
        return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
        (void)state;
        return fs_remove_tree(AT_FDCWD, top);
}

/* The mark's name is a pipe that an earlier step of the job has left there. The alarm ends the test. */
static void a_pipe_stops_nobody(void **state)
{
        struct task t = {.box = top};
        BUF_CLEANUP struct buf path = {0};

        (void)state;
        batch_step_path(&t, "again", &path);
        assert_int_equal(mkfifo(buf_z(&path), 0600), 0);
        alarm(10);
        batch_remote_mark(&t, "again", 1700000000);
        alarm(0);
}

static int run_shell(const char *script, const char *name)
{
        int status = -1;
        pid_t pid = fork();

        if (pid == 0) {
                if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
                        _exit(99);
                execl("/bin/sh", "sh", "-c", script, name, (char *)NULL);
                _exit(98);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Folders of mode 0 can be neither moved nor removed by who is not root. */
static void folders_that_nobody_may_enter(void **state)
{
        struct batch b = {.queue = (char *)"q", .fd = open(top, O_RDONLY | O_DIRECTORY)};
        BUF_CLEANUP struct buf script = {0};

        (void)state;
        if (geteuid() == 0)
                assert_int_equal(chown(top, NOBODY, NOBODY), 0);
        assert_int_equal(run_shell("mkdir -p \"$0/there/jobs/box/deep\" \"$0/batch.q\" \"$0/jobs\" && cd "
                                   "\"$0/there\" && "
                                   "echo x >jobs/box/deep/out && tar --mode=a-rwx -cf ../box.tar jobs/box",
                                   top),
                         0);
        batch_remote_unpack(&b, "cat \"$here/box.tar\"", "in", STR(" 'jobs/box'"), &script);
        assert_int_equal(run_shell(buf_z(&script), top), 0);
        assert_int_equal(run_shell("cat \"$0/jobs/box/deep/out\" && rm -rf \"$0/jobs/box\"", top), 0);
        assert_int_equal(run_shell("mkdir \"$0/batch.q/in\" && mkdir -m 0 \"$0/batch.q/in/left\"", top), 0);
        assert_int_equal(run_shell(buf_z(&script), top), 0);
        assert_int_equal(run_shell("[ ! -e \"$0/batch.q/in\" ] && cat \"$0/jobs/box/deep/out\"", top), 0);
        close(b.fd);
}

/* What was sent to a job first is sent, and its later signals leave no files behind. */
static void signals_that_nobody_takes(void **state)
{
        BUF_CLEANUP struct buf waiting = {0}, path = {0};
        unsigned taken = 0;
        int fd;

        (void)state;
        buf_printf(&path, "%s/step.0.order.0123456789abcdef", top);
        while (taken < 100000) {
                fd = open(buf_z(&path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
                assert_true(fd >= 0);
                close(fd);
                if (!batch_remote_add_order(&waiting, buf_z(&path)))
                        break;
                taken++;
        }
        assert_in_range(taken, 1000, 99999);
        assert_int_equal(access(buf_z(&path), F_OK), -1);
        assert_int_equal(waiting.n, taken * (path.n + 1));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_pipe_stops_nobody, setup, teardown),
                cmocka_unit_test_setup_teardown(folders_that_nobody_may_enter, setup, teardown),
                cmocka_unit_test_setup_teardown(signals_that_nobody_takes, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
