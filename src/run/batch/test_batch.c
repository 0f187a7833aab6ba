/* The scripts are run, by /bin/sh. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/fs.h"
#include "run/batch/batch.h"

static char top[64], box[96], lease[96];

static int setup(void **state)
{
        (void)state;
        snprintf(top, sizeof(top), "/tmp/drover-batch-XXXXXX");
        assert_non_null(mkdtemp(top));
        snprintf(box, sizeof(box), "%s/it's a box", top);
        snprintf(lease, sizeof(lease), "%s/lease", top);
        assert_int_equal(mkdir(box, 0700), 0);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        return fs_remove_tree(AT_FDCWD, top);
}

static struct run_spec spec_of(char *const *argv, char *const *envp)
{
        return (struct run_spec){.id = {7, 42, 3, 0, 0},
                                 .job = "7.42",
                                 .sandbox = box,
                                 .path = argv[0],
                                 .argv = argv,
                                 .envp = envp,
                                 .stdout_path = "out",
                                 .stderr_path = "err",
                                 .cpus_milli = 1500};
}

static const char *energy; /* the command of the scripts that prints it */

static int run_script(const struct run_spec *s)
{
        BUF_CLEANUP struct buf script = {0}, path = {0}, command = {0};

        batch_script(s, "#SBATCH --mem=3M\n", &(struct batch_guard){lease, NULL, energy, 5}, &script);
        buf_printf(&path, "%s/script", top);
        assert_int_equal(fs_write(AT_FDCWD, buf_z(&path), buf_view(&script), 0700, false, NULL), 0);
        buf_printf(&command, "/bin/sh %s 2>>%s/complaints", buf_z(&path), top);
        int status = system(buf_z(&command));
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void assert_file(const char *folder, const char *name, const char *text)
{
        BUF_CLEANUP struct buf path = {0}, b = {0};

        buf_printf(&path, "%s/%s", folder, name);
        assert_int_equal(fs_read(AT_FDCWD, buf_z(&path), 65536, &b, NULL), 0);
        assert_string_equal(buf_z(&b), text);
}

static bool exists(const char *name)
{
        BUF_CLEANUP struct buf path = {0};

        buf_printf(&path, "%s/%s", box, name);
        return access(buf_z(&path), F_OK) == 0;
}

static void done(struct run_event *e)
{
        BUF_CLEANUP struct buf path = {0}, b = {0};

        *e = (struct run_event){0};
        buf_printf(&path, "%s/" BATCH_STEP ".0.done", box);
        assert_int_equal(fs_read(AT_FDCWD, buf_z(&path), 65536, &b, NULL), 0);
        assert_true(batch_script_done(buf_view(&b), e));
}

static void words_arrive_as_they_are(void **state)
{
        (void)state;
        char *argv[] = {(char *)"/usr/bin/printf",
                        (char *)"[%s]",
                        (char *)"it's",
                        (char *)"a\nb \"c\" $HOME `id` \\",
                        (char *)"",
                        (char *)"grün *",
                        NULL},
             *envp[] = {(char *)"A='x'\n$y", (char *)"not a name=1", (char *)"PATH=/usr/bin:/bin", NULL};
        struct run_spec s = spec_of(argv, envp);
        struct run_event e;
        assert_int_equal(run_script(&s), 0);
        assert_file(box, "out", "[it's][a\nb \"c\" $HOME `id` \\][][grün *]");
        assert_file(box, "err", "");
        done(&e);
        assert_true(e.state == RUN_ENDED && e.why == RUN_ITSELF && !e.signaled && e.exit_code == 0);
        assert_true(exists(BATCH_STEP ".0.began"));
        char *variable[] = {(char *)"/bin/sh", (char *)"-c", (char *)"printf %s \"$A\"; pwd", NULL};
        s = spec_of(variable, envp);
        s.id.step = 1;
        assert_int_equal(run_script(&s), 0);
        BUF_CLEANUP struct buf want = {0};
        buf_printf(&want, "'x'\n$y%s\n", box);
        assert_file(box, "out", buf_z(&want));
}

/* Names that the script has for itself, that shells have, and a PATH on which nothing is. */
static void variables_may_have_any_name(void **state)
{
        (void)state;
        static const char *const names[] = {
                "step",     "box",         "lease",   "host",   "serial", "every",  "grace",  "lease_s",
                "walltime", "often",       "end",     "age",    "child",  "guards", "status", "now",
                "born",     "child_born",  "script",  "list",   "n",      "part",   "same",   "orders",
                "secrets",  "guard",       "program", "clean",  "known",  "setsid", "why",    "signal",
                "order",    "environment", "IFS",     "CDPATH", "PATH"};
        size_t count = sizeof(names) / sizeof(*names);
        char *argv[] = {(char *)"/usr/bin/env", NULL}, *envp[64] = {NULL};
        BUF_CLEANUP struct buf out = {0}, path = {0};
        for (size_t i = 0; i < count; i++) {
                BUF_CLEANUP struct buf one = {0};

                buf_printf(&one, "%s=5 x", names[i]);
                envp[i] = buf_take(&one);
        }
        struct run_spec s = spec_of(argv, envp);
        struct run_event e;
        assert_int_equal(run_script(&s), 0);
        done(&e);
        assert_true(e.state == RUN_ENDED && e.why == RUN_ITSELF && e.exit_code == 0);
        buf_printf(&path, "%s/out", box);
        assert_int_equal(fs_read(AT_FDCWD, buf_z(&path), 65536, &out, NULL), 0);
        for (size_t i = 0; i < count; i++) {
                if (!strstr(buf_z(&out), envp[i]))
                        fail_msg("%s is not in %s", envp[i], buf_z(&out));
                free(envp[i]);
        }
        assert_file(box, "err", "");
}

/* The command that runs after the program has the job's variables, and nothing else of the job's. */
static void what_comes_after_has_its_variables(void **state)
{
        (void)state;
        char *argv[] = {(char *)"/bin/true", NULL}, *envp[] = {(char *)"step=7", NULL},
             *after[] = {(char *)"/bin/sh", (char *)"-c", (char *)"echo $step >after", NULL};
        struct run_spec s = spec_of(argv, envp);
        struct run_event e;
        s.after = after;
        assert_int_equal(run_script(&s), 0);
        done(&e);
        assert_file(box, "after", "7\n");
}

static void begins_once(void **state)
{
        (void)state;
        char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"echo again; exit 3", NULL};
        struct run_spec s = spec_of(argv, NULL);
        struct run_event e;
        s.flags = RUN_STDOUT_APPEND;
        assert_int_equal(run_script(&s), 3);
        assert_false(exists(BATCH_STEP ".0.again"));
        assert_int_equal(run_script(&s), 0);
        assert_true(exists(BATCH_STEP ".0.again"));
        assert_file(box, "out", "again\n");
        done(&e);
        assert_int_equal(e.exit_code, 3);
        /* and only where its folder is */
        char elsewhere[128];
        snprintf(elsewhere, sizeof(elsewhere), "%s/none", top);
        s.sandbox = elsewhere;
        assert_int_equal(run_script(&s), 74);
}

static mode_t mode_of(const char *name)
{
        BUF_CLEANUP struct buf path = {0};
        struct stat st;

        buf_printf(&path, "%s/%s", box, name);
        assert_int_equal(lstat(buf_z(&path), &st), 0);
        return st.st_mode & 0777;
}

/* The end file is readable by the agent whatever the user; files of the program have the site's umask. */
static void its_end_can_be_read(void **state)
{
        (void)state;
        char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"echo mine >made; exit 3", NULL};
        struct run_spec s = spec_of(argv, NULL);
        mode_t before = umask(077);
        int status = run_script(&s);
        umask(before);
        assert_int_equal(status, 3);
        assert_int_equal(mode_of(BATCH_STEP ".0.done"), 0644);
        assert_int_equal(mode_of("made"), 0600);
        assert_int_equal(mode_of("out"), 0600);
}

static void signals_and_children(void **state)
{
        (void)state;
        char *argv[] = {(char *)"/bin/sh", (char *)"-c",
                        (char *)"sleep 300 & echo $! >left; sleep 0.2; kill -SEGV $$", NULL};
        struct run_spec s = spec_of(argv, NULL);
        struct run_event e;
        run_script(&s);
        done(&e);
        assert_true(e.state == RUN_ENDED && e.signaled && e.exit_code == 11);
        BUF_CLEANUP struct buf path = {0}, pid = {0};
        buf_printf(&path, "%s/left", box);
        assert_int_equal(fs_read(AT_FDCWD, buf_z(&path), 64, &pid, NULL), 0);
        buf_reset(&path);
        buf_printf(&path, "/proc/%ld/stat", strtol(buf_z(&pid), NULL, 10));
        BUF_CLEANUP struct buf stat = {0};
        /* killed: gone, or not yet reaped by whoever inherits it */
        for (int i = 0; i < 500; i++) {
                buf_reset(&stat);
                if (fs_read(AT_FDCWD, buf_z(&path), 4096, &stat, NULL) < 0 || strstr(buf_z(&stat), ") Z"))
                        return;
                usleep(10000);
        }
        fail_msg("its child is left: %s", buf_z(&stat));
}

/* The program begins with all signals as they are by default, whatever the batch system's daemon ignores. */
static void ignored_signals(void **state)
{
        (void)state;
        char *argv[] = {
                (char *)"/bin/sh", (char *)"-c",
                (char *)"trap 'echo heard >>heard' HUP USR1 INT; kill -HUP $$; kill -USR1 $$; kill -INT "
                        "$$; kill -HUP $$; sleep 0; trap - HUP; kill -HUP $$",
                NULL};
        struct run_spec s = spec_of(argv, NULL);
        struct run_event e;
        signal(SIGHUP, SIG_IGN);
        signal(SIGUSR1, SIG_IGN);
        run_script(&s);
        signal(SIGHUP, SIG_DFL);
        signal(SIGUSR1, SIG_DFL);
        done(&e);
        assert_file(box, "heard", "heard\nheard\nheard\nheard\n");
        assert_true(e.state == RUN_ENDED && e.signaled && e.exit_code == SIGHUP);
}

static void ends_at_its_walltime(void **state)
{
        (void)state;
        char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"trap '' TERM; sleep 300; sleep 300", NULL};
        struct run_spec s = spec_of(argv, NULL);
        struct run_event e;
        s.walltime_ms = 300; /* a second */
        run_script(&s);
        done(&e);
        assert_true(e.state == RUN_ENDED && e.why == RUN_WALLTIME && e.signaled && e.exit_code == 9);
}

static void set_age(const char *path, time_t seconds)
{
        struct timespec times[2];

        times[0] = times[1] = (struct timespec){.tv_sec = time(NULL) - seconds};
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void ends_when_the_lease_grows_old(void **state)
{
        (void)state;
        char *argv[] = {(char *)"/bin/sleep", (char *)"300", NULL};
        struct run_spec s = spec_of(argv, NULL);
        struct run_event e;
        assert_int_equal(fs_write(AT_FDCWD, lease, STR("12.1 1\n"), 0600, false, NULL), 0);
        set_age(lease, -1000); /* it begins, however late */
        run_script(&s);
        done(&e);
        assert_true(e.state == RUN_ENDED && e.why == RUN_LEASE_ENDED && e.signaled && e.exit_code == 15);
}

/* A program ended by a SIGTERM, as the script sees it; `sleep 2` runs beside it. */
static enum run_why after_a_sigterm(const char *meanwhile)
{
        char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"kill -TERM $$", NULL};
        struct run_spec s = spec_of(argv, NULL);
        struct run_event e;
        BUF_CLEANUP struct buf path = {0}, text = {0}, dirs = {0};
        const char *before = getenv("PATH");
        char *kept = mem_dupz(before ? before : "/usr/bin:/bin");

        buf_printf(&text, "#!/bin/sh\n[ \"$1\" = 2 ] || exec /bin/sleep \"$@\"\n%s\n", meanwhile);
        buf_printf(&path, "%s/sleep", top);
        assert_int_equal(fs_write(AT_FDCWD, buf_z(&path), buf_view(&text), 0700, false, NULL), 0);
        buf_printf(&dirs, "%s:%s", top, kept);
        setenv("PATH", buf_z(&dirs), 1);
        run_script(&s);
        setenv("PATH", kept, 1);
        free(kept);
        done(&e);
        assert_true(e.state == RUN_ENDED);
        return e.why;
}

static void a_sigterm_of_its_own_may_come_later(void **state)
{
        (void)state;
        assert_int_equal(after_a_sigterm("kill -TERM $PPID"), RUN_KILLED);
}

static void a_program_may_end_by_a_sigterm(void **state)
{
        (void)state;
        assert_int_equal(after_a_sigterm(":"), RUN_ITSELF);
}

static void orders_are_obeyed_once(void **state)
{
        (void)state;
        /* it gives the orders itself, and nudges the script; the third is not for this step */
        char *argv[] = {
                (char *)"/bin/sh", (char *)"-c",
                (char *)"n=0; trap 'n=$((n+1)); echo usr1 >>heard' USR1; trap 'echo usr2 $n >>heard; exit 6' "
                        "USR2; order() { echo $2 >tmp; mv tmp .drover_step.$3.order.000000000000000$1; }; "
                        "order 1 USR1 0; kill -s URG $PPID; while [ $n = 0 ]; do sleep 0.02; done; "
                        "order 3 KILL 1; order 2 USR2 0; kill -s URG $PPID; while :; do sleep 0.02; done",
                NULL};
        struct run_spec s = spec_of(argv, NULL);
        struct run_event e;
        assert_int_equal(run_script(&s), 6);
        done(&e);
        assert_true(e.why == RUN_ITSELF && !e.signaled && e.exit_code == 6);
        assert_file(box, "heard", "usr1\nusr2 1\n");
        assert_false(exists(BATCH_STEP ".0.order.0000000000000001"));
        assert_true(exists(BATCH_STEP ".1.order.0000000000000003"));
}

/* A pid is reused by a process that began at another time. A process group may outlive its leader's pid. */
static void numbers_are_not_taken_for_their_owners(void **state)
{
        (void)state;
        char *argv[] = {(char *)"/bin/true", NULL};
        struct run_spec s = spec_of(argv, NULL);
        BUF_CLEANUP struct buf script = {0}, path = {0}, test = {0};
        batch_script(&s, "", &(struct batch_guard){lease, NULL, NULL, 5}, &script);
        struct str text = buf_view(&script);
        text = str_skip(text, (size_t)str_search(text, STR("same='")));
        buf_str(&test, str_head(text, (size_t)str_search(text, STR("}'\n")) + 3));
        buf_addz(&test, "eval \"$same\"\n"
                        "set -e\n"
                        "born $$\n"
                        "[ \"$born\" -gt 0 ]\n"
                        "is $$ \"$born\"\n"
                        "! is $$ $((born + 1))\n"
                        "is $$ ''\n"
                        "is 999999999 \"$born\"\n");
        buf_printf(&path, "%s/same", top);
        assert_int_equal(fs_write(AT_FDCWD, buf_z(&path), buf_view(&test), 0700, false, NULL), 0);
        buf_reset(&test);
        buf_printf(&test, "/bin/sh %s", buf_z(&path));
        assert_int_equal(system(buf_z(&test)), 0);
}

/* A script whose turn comes after the lease has ended. Times are those of the file system, which may be on
 * another machine. */
static void does_not_begin_when_the_lease_is_over(void **state)
{
        (void)state;
        char *argv[] = {(char *)"/bin/touch", (char *)"ran", NULL};
        struct run_spec s = spec_of(argv, NULL);
        struct run_event e;
        BUF_CLEANUP struct buf text = {0}, end = {0};
        assert_int_equal(batch_script_lease(1, 2, 60000, 5, &text), 44);
        assert_string_equal(buf_z(&text), "1.2 44\n5 5\n");
        assert_int_equal(fs_write(AT_FDCWD, lease, buf_view(&text), 0600, false, NULL), 0);
        set_age(lease, 44);
        run_script(&s);
        done(&e);
        assert_int_equal(e.state, RUN_LOST);
        assert_non_null(strstr(e.text, "lease"));
        assert_false(exists("ran"));
        /* a file that has the end's time is believed while there is time left */
        buf_printf(&end, "%s.end", lease);
        assert_int_equal(fs_write(AT_FDCWD, buf_z(&end), STR(""), 0600, false, NULL), 0);
        set_age(buf_z(&end), 1);
        s.id.step = 1;
        run_script(&s);
        assert_false(exists("ran"));
        set_age(buf_z(&end), -1000);
        s.id.step = 2;
        run_script(&s);
        assert_true(exists("ran"));
        buf_reset(&text);
        batch_script_lease(1, 2, 9000, 5, &text); /* a short one: all of it within, too */
        assert_string_equal(buf_z(&text), "1.2 5\n1 1\n");
}

static void says_what_it_cannot_start(void **state)
{
        (void)state;
        char *none[] = {(char *)"/no/such/program", NULL}, *cat[] = {(char *)"cat", NULL};
        struct run_spec s = spec_of(none, NULL);
        struct run_event e;
        run_script(&s);
        done(&e);
        assert_true(e.state == RUN_FAILED);
        assert_string_equal(e.what, "program");
        assert_int_equal(fs_remove_tree(AT_FDCWD, box), 0);
        assert_int_equal(mkdir(box, 0700), 0);
        s = spec_of(cat, NULL);
        s.stdin_path = "none";
        run_script(&s);
        done(&e);
        assert_string_equal(e.what, "stdin");
        assert_int_equal(fs_remove_tree(AT_FDCWD, box), 0);
        assert_int_equal(mkdir(box, 0700), 0);
        s = spec_of(cat, NULL);
        s.cwd = "/no/such/folder";
        run_script(&s);
        done(&e);
        assert_string_equal(e.what, "folder");
}

static void done_files_are_checked(void **state)
{
        (void)state;
        struct run_event e = {0};
        assert_true(batch_script_done(STR("ended 139 killed 1000 2500\n0m0.01s 0m0.02s\n1m2.500s 0m0.25s\n"),
                                      &e));
        assert_true(e.signaled && e.exit_code == 11 && e.why == RUN_KILLED);
        assert_int_equal(e.cpu_user_ms, 62500);
        assert_int_equal(e.cpu_system_ms, 250);
        e = (struct run_event){0};
        assert_true(batch_script_done(STR("ended 200 itself 1000 2500\n"), &e));
        assert_true(!e.signaled && e.exit_code == 200);
        e = (struct run_event){0};
        assert_true(batch_script_done(STR("0m0.01s 0m0.02s\n1m2.500s 0m0.25s\nended 0 walltime\n"), &e));
        assert_true(e.why == RUN_WALLTIME && e.cpu_user_ms == 62500 && e.cpu_system_ms == 250);
        static const char *const bad[] = {"",
                                          "\n",
                                          "ended",
                                          "ended 0\n",
                                          "ended 0 itself",
                                          "ended x itself 1 2\n",
                                          "failed moon\n",
                                          "0m0.01s 0m0.02s\n1m2.500s 0m0.25s\n",
                                          "0m0.01s 0m0.02s\n1m2.500s 0m0.25s\nended 0 itself",
                                          "gone 1 2 3 4\n"};
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                assert_false(batch_script_done(str_of(bad[i]), &e));
}

static void energy_is_what_the_system_says(void **state)
{
        (void)state;
        static const struct {
                const char *command;
                uint64_t uj;
        } cases[] = {{"echo 1234", 1234000000},
                     {"echo nothing of this kind", 0},
                     {"echo 1; echo 2", 0},
                     {"echo 18446744073709551614", 0}, /* Slurm's NO_VAL64 */
                     {"false", 0},
                     {"/nonexistent", 0}};
        char *argv[] = {(char *)"/bin/true", NULL}, *envp[] = {NULL};
        struct run_spec s = spec_of(argv, envp);
        struct run_event e;

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                BUF_CLEANUP struct buf command = {0};

                s.id.fence++;
                buf_printf(&command, "rm -f '%s/%s'*", top, "it'\\''s a box/.drover_step");
                assert_int_equal(system(buf_z(&command)), 0);
                energy = cases[i].command;
                assert_int_equal(run_script(&s), 0);
                energy = NULL;
                done(&e);
                assert_int_equal(e.energy_uj, cases[i].uj);
                assert_int_equal(e.state, RUN_ENDED);
                assert_int_equal(e.exit_code, 0);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(words_arrive_as_they_are, setup, teardown),
                cmocka_unit_test_setup_teardown(variables_may_have_any_name, setup, teardown),
                cmocka_unit_test_setup_teardown(what_comes_after_has_its_variables, setup, teardown),
                cmocka_unit_test_setup_teardown(begins_once, setup, teardown),
                cmocka_unit_test_setup_teardown(its_end_can_be_read, setup, teardown),
                cmocka_unit_test_setup_teardown(signals_and_children, setup, teardown),
                cmocka_unit_test_setup_teardown(ignored_signals, setup, teardown),
                cmocka_unit_test_setup_teardown(ends_at_its_walltime, setup, teardown),
                cmocka_unit_test_setup_teardown(ends_when_the_lease_grows_old, setup, teardown),
                cmocka_unit_test_setup_teardown(a_sigterm_of_its_own_may_come_later, setup, teardown),
                cmocka_unit_test_setup_teardown(a_program_may_end_by_a_sigterm, setup, teardown),
                cmocka_unit_test_setup_teardown(orders_are_obeyed_once, setup, teardown),
                cmocka_unit_test_setup_teardown(numbers_are_not_taken_for_their_owners, setup, teardown),
                cmocka_unit_test_setup_teardown(does_not_begin_when_the_lease_is_over, setup, teardown),
                cmocka_unit_test_setup_teardown(says_what_it_cannot_start, setup, teardown),
                cmocka_unit_test_setup_teardown(energy_is_what_the_system_says, setup, teardown),
                cmocka_unit_test(done_files_are_checked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
