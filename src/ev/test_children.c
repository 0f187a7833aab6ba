#include "ev/children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "ev/test_help.h"

struct world {
        struct loop *loop;
        int running, status[64], ended;
        struct child *last;
};

static void ended(void *arg, struct child *c, int status)
{
        struct world *w = arg;

        w->last = c;
        w->status[w->ended++] = status;
        if (--w->running == 0)
                loop_stop(w->loop);
}

static struct child *spawn(struct world *w, const char *script, struct child_spec *spec)
{
        char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
        struct child_spec plain = {.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
        struct child *c;
        struct err err;

        if (!spec)
                spec = &plain;
        spec->argv = argv;
        assert_int_equal(child_spawn(w->loop, spec, ended, w, &c, &err), 0);
        assert_true(child_pid(c) > 0);
        w->running++;
        return c;
}

static int setup(void **state)
{
        struct world *w = mem_new(struct world);

        w->loop = loop_new();
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        loop_free(w->loop);
        free(w);
        return 0;
}

static void exit_codes(void **state)
{
        struct world *w = *state;

        spawn(w, "exit 7", NULL);
        help_run(w->loop);
        assert_true(WIFEXITED(w->status[0]));
        assert_int_equal(WEXITSTATUS(w->status[0]), 7);
        spawn(w, "kill -USR1 $$", NULL);
        help_run(w->loop);
        assert_true(WIFSIGNALED(w->status[1]));
        assert_int_equal(WTERMSIG(w->status[1]), SIGUSR1);
}

static void killed(void **state)
{
        struct world *w = *state;
        struct child *c = spawn(w, "exec sleep 100", NULL);

        child_kill(c, SIGTERM);
        help_run(w->loop);
        assert_int_equal(WTERMSIG(w->status[0]), SIGTERM);
}

static void many(void **state)
{
        struct world *w = *state;
        long sum = 0;

        for (int i = 0; i < 40; i++) {
                char script[32];

                snprintf(script, sizeof(script), "exit %d", i);
                spawn(w, script, NULL);
        }
        help_run(w->loop);
        for (int i = 0; i < 40; i++)
                sum += WEXITSTATUS(w->status[i]);
        assert_int_equal(sum, 40 * 39 / 2);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombies */
}

static void cannot_start(void **state)
{
        struct world *w = *state;
        char *missing[] = {(char *)"/no/such/program", NULL}, *folder[] = {(char *)"/tmp", NULL},
             *nowhere[] = {(char *)"no-such-name", NULL};
        char **all[] = {missing, folder, nowhere};
        int expect[] = {-ENOENT, -EACCES, -ENOENT};
        struct child *c;
        struct err err;

        for (int i = 0; i < 3; i++) {
                struct child_spec spec = {.argv = all[i], .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};

                assert_int_equal(child_spawn(w->loop, &spec, ended, w, &c, &err), expect[i]);
                assert_non_null(strstr(err.text, all[i][0]));
        }
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
}

static void descriptors_and_environment(void **state)
{
        struct world *w = *state;
        int out[2], secret = open("/dev/null", O_RDONLY); /* by a library that does not know of O_CLOEXEC */
        char *envp[] = {(char *)"PATH=/usr/bin:/bin", (char *)"COLOUR=blue", NULL};
        struct child_spec spec = {.envp = envp, .stdin_fd = -1, .new_session = true};
        char got[256] = "";
        ssize_t n;

        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        spec.stdout_fd = out[1];
        spec.stderr_fd = out[1];
        spawn(w, "cat; echo $COLOUR $HOME; ls /proc/self/fd | wc -l; echo err >&2", &spec);
        close(out[1]);
        help_run(w->loop);
        n = read(out[0], got, sizeof(got) - 1);
        assert_true(n > 0);
        /* 0 1 2, and the one that ls has opened */
        assert_string_equal(got, "blue\n4\nerr\n");
        close(out[0]);
        close(secret);
}

static void signals_are_as_new(void **state)
{
        struct world *w = *state;
        sigset_t all, before;

        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        /* A shell starts what it puts into the background with these two ignored. */
        signal(SIGINT, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
        signal(SIGPIPE, SIG_IGN);
        /* 32 and 33 are glibc's own: its posix_spawn, which make uses, leaves them ignored for good. */
        spawn(w,
              "test $(grep -cE 'Sig(Blk|Ign):.00000000[08]0000000|Sig(Blk|Ign):.00000001[08]0000000'"
              " /proc/self/status) = 2",
              NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        help_run(w->loop);
        assert_int_equal(w->status[0], 0);
}

/* Gone, or a zombie that waits for whoever inherited it. */
static bool has_ended(pid_t pid)
{
        char path[64], line[256], state = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        f = fopen(path, "r");
        if (!f)
                return true;
        if (fgets(line, sizeof(line), f) && strrchr(line, ')'))
                state = strrchr(line, ')')[2];
        fclose(f);
        return state == 'Z' || state == 'X';
}

static void dies_with_its_parent(void **state)
{
        struct world *w = *state;
        pid_t parent, child = 0;
        int tell[2];

        assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
        parent = fork();
        if (parent == 0) {
                struct child_spec spec = {
                        .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .die_with_parent = true};

                child = child_pid(spawn(w, "exec sleep 100", &spec));
                _exit(write(tell[1], &child, sizeof(child)) != sizeof(child));
        }
        assert_int_equal(read(tell[0], &child, sizeof(child)), sizeof(child));
        assert_int_equal(waitpid(parent, NULL, 0), parent);
        for (int i = 0; i < 500 && !has_ended(child); i++)
                usleep(10000);
        assert_true(has_ended(child));
        close(tell[0]);
        close(tell[1]);
}

static void forgotten_is_reaped(void **state)
{
        struct world *w = *state;
        struct child *c = spawn(w, "exit 1", NULL), *still = spawn(w, "sleep 0.3", NULL);
        pid_t pid = child_pid(c);

        child_forget(c);
        child_forget(still); /* outlives the loop */
        help_run_ms(w->loop, 150);
        assert_int_equal(w->ended, 0);
        assert_int_equal(kill(pid, 0), -1);
        assert_int_equal(errno, ESRCH);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(exit_codes, setup, teardown),
                cmocka_unit_test_setup_teardown(killed, setup, teardown),
                cmocka_unit_test_setup_teardown(many, setup, teardown),
                cmocka_unit_test_setup_teardown(cannot_start, setup, teardown),
                cmocka_unit_test_setup_teardown(descriptors_and_environment, setup, teardown),
                cmocka_unit_test_setup_teardown(signals_are_as_new, setup, teardown),
                cmocka_unit_test_setup_teardown(dies_with_its_parent, setup, teardown),
                cmocka_unit_test_setup_teardown(forgotten_is_reaped, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
