/* Runs real programs and checks their output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/fs.h"
#include "run/call/command.h"

struct answer {
        struct loop *loop;
        int status;
        size_t bytes;
        struct buf head, errors; /* head: of what it printed */
};

static void on_done(void *arg, int status, struct str out, struct str errors)
{
        struct answer *a = arg;

        a->status = status;
        a->bytes = out.n;
        buf_str(&a->head, str_head(out, out.n < 100 ? out.n : 100));
        buf_str(&a->errors, errors);
        loop_stop(a->loop);
}

static void deinit(struct answer *a)
{
        buf_deinit(&a->head);
        buf_deinit(&a->errors);
        loop_free(a->loop);
}

static void ask(struct answer *a, const char *script, struct str input, int64_t timeout_ms)
{
        ARGS_CLEANUP struct args argv = {0};

        *a = (struct answer){.loop = loop_new()};
        args_add(&argv, STR("/bin/sh"));
        args_add(&argv, STR("-c"));
        args_add(&argv, str_of(script));
        command_run(a->loop, &argv, NULL, input, timeout_ms, on_done, a);
        loop_run(a->loop);
}

static void what_it_prints(void **state)
{
        (void)state;
        struct answer a;
        ask(&a, "read x; echo \"$x\"; echo no >&2; exit 3", STR("in\n"), 20000);
        assert_true(WIFEXITED(a.status) && WEXITSTATUS(a.status) == 3);
        assert_string_equal(buf_z(&a.head), "in\n");
        assert_string_equal(buf_z(&a.errors), "no\n");
        deinit(&a);
        ask(&a, "exit 0", STR_NONE, 20000);
        assert_true(a.status == 0 && a.bytes == 0 && a.errors.n == 0);
        deinit(&a);
        ask(&a, "echo part; sleep 600", STR_NONE, 200);
        assert_int_equal(a.status, -1);
        assert_non_null(strstr(buf_z(&a.errors), "in time"));
        deinit(&a);
}

/* A truncated list is an error, since jobs missing from it would be taken for gone. */
static void too_much_is_no_answer(void **state)
{
        (void)state;
        struct answer a;
        ask(&a, "head -c 67108864 /dev/zero", STR_NONE, 60000);
        assert_true(a.status == 0 && a.bytes == COMMAND_OUTPUT_MAX);
        deinit(&a);
        ask(&a, "head -c 67108865 /dev/zero", STR_NONE, 60000);
        assert_int_equal(a.status, -1);
        assert_string_equal(buf_z(&a.errors), "it printed more than 64 MiB");
        deinit(&a);
}

/* The limit applies to the running command, to its children, and to processes that it leaves behind. */
static void what_prints_for_ever_is_ended(void **state)
{
        (void)state;
        struct answer a;
        ask(&a, "yes", STR_NONE, 600000);
        assert_int_equal(a.status, -1);
        assert_string_equal(buf_z(&a.errors), "it printed more than 64 MiB");
        deinit(&a);
        ask(&a, "yes >&2; true", STR_NONE, 600000);
        assert_int_equal(a.status, -1);
        deinit(&a);
        ask(&a, "(sleep 1; exec setsid yes) & echo $! >&2", STR_NONE, 600000);
        assert_int_equal(a.status, 0);
        char line[64];
        snprintf(line, sizeof(line), "/proc/" STR_FMT "/cmdline", STR_ARG(str_trim(buf_view(&a.errors))));
        for (bool left = true; left;) {
                BUF_CLEANUP struct buf words = {0};

                left = fs_read(AT_FDCWD, line, 100, &words, NULL) == 0 && words.n;
        }
        deinit(&a);
}

static void a_last_one_has_its_time(void **state)
{
        (void)state;
        struct args argv = {0};
        BUF_CLEANUP struct buf pid = {0};
        char name[] = "/tmp/drover-command-XXXXXX";
        int fd = mkstemp(name);
        assert_true(fd >= 0);
        args_add(&argv, STR("sh"));
        args_add(&argv, STR("-c"));
        args_add(&argv, STR("cat > \"$0\"; sleep 600 & echo $! >> \"$0\"; wait"));
        args_add(&argv, str_of(name));
        command_now(&argv, environ, STR("said\n"), 3000);
        assert_int_equal(fs_read(AT_FDCWD, name, 100, &pid, NULL), 0);
        assert_memory_equal(buf_z(&pid), "said\n", 5);
        char line[64];
        snprintf(line, sizeof(line), "/proc/" STR_FMT "/cmdline",
                 STR_ARG(str_trim(str_skip(buf_view(&pid), 5))));
        for (bool left = true; left;) { /* of a zombie it is empty */
                BUF_CLEANUP struct buf words = {0};

                left = fs_read(AT_FDCWD, line, 100, &words, NULL) == 0 && words.n;
        }
        args_deinit(&argv);
        unlink(name);
        close(fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_it_prints),
                cmocka_unit_test(too_much_is_no_answer),
                cmocka_unit_test(what_prints_for_ever_is_ended),
                cmocka_unit_test(a_last_one_has_its_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
