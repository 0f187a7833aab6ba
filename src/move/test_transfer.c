/* The conformance suite of movers, on files through curl (file://) and through a program ($TEST_MOVER,
 * copy://); and what only a program can do wrong. HTTP and FTP with real servers: tests/system/test_mover.py.
 */
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
#include <unistd.h>

#include "base/mem.h"
#include "base/system/fs.h"
#include "move/mover.h"

static char top[64], path[160];
static struct mover_config config;
static const char *scheme;

static const char *in_top(const char *name)
{
        snprintf(path, sizeof(path), "%s/%s", top, name);
        return path;
}

static void put_file(const char *name, const char *text)
{
        assert_int_equal(fs_write(AT_FDCWD, in_top(name), str_of(text), 0644, false, NULL), 0);
}

static void content(const char *name, const char *want)
{
        BUF_CLEANUP struct buf b = {0};

        assert_int_equal(fs_read(AT_FDCWD, in_top(name), 1 << 20, &b, NULL), 0);
        assert_string_equal(buf_z(&b), want);
}

static void run_url(struct move_task *t, const char *url, const char *local, struct move_answer *a)
{
        int fd = local ? open(in_top(local), O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

        t->url = mem_dupz(url);
        strcpy(t->tag, "1.2.3");
        transfer_run(&config, t, fd, a);
        if (fd >= 0)
                close(fd);
        move_task_deinit(t);
}

static void run(struct move_task *t, const char *name, const char *local, struct move_answer *a)
{
        BUF_CLEANUP struct buf url = {0};

        buf_printf(&url, "%s://%s/%s", scheme, top, name);
        run_url(t, buf_z(&url), local, a);
}

/* ---- every back end */

static void gets_and_tells_what_it_got(void)
{
        struct move_task t;
        struct move_answer a;
        static const unsigned char sum[4] = {0x2c, 0xf2, 0x4d, 0xba}; /* of "hello" */

        put_file("there", "hello");
        put_file("here", "something much longer that was here before");
        move_task_init(&t, MOVE_GET);
        run(&t, "there", "here", &a);
        assert_string_equal(a.text, "");
        assert_int_equal(a.status, MOVE_DONE);
        assert_true(a.size == 5 && a.moved == 5 && a.tries == 1 && a.facts.modified_s > 1600000000);
        assert_memory_equal(a.sha256, sum, 4);
        content("here", "hello");

        /* unchanged since: nothing is transferred */
        move_task_init(&t, MOVE_GET);
        t.known = true;
        t.facts = a.facts;
        run(&t, "there", "here", &a);
        assert_int_equal(a.status, MOVE_UNCHANGED);
        assert_true(a.moved == 0);
        content("here", ""); /* into another file than that of the copy */

        put_file("there", "hello again");
        move_task_init(&t, MOVE_GET);
        t.known = true;
        t.facts = a.facts;
        run(&t, "there", "here", &a);
        assert_int_equal(a.status, MOVE_DONE);
        content("here", "hello again");

        put_file("there", "");
        move_task_init(&t, MOVE_GET);
        run(&t, "there", "here", &a);
        assert_int_equal(a.status, MOVE_DONE);
        assert_true(a.size == 0);
        content("here", "");
}

static void does_not_keep_what_is_wrong(void)
{
        struct move_task t;
        struct move_answer a;

        put_file("there", "hello");
        move_task_init(&t, MOVE_GET);
        t.summed = true;
        t.tries = 2;
        run(&t, "there", "here", &a);
        assert_int_equal(a.status, MOVE_FAILED);
        assert_true(a.tries == 2 && a.moved == 10);
        assert_non_null(strstr(a.text, "checksum"));
        move_task_init(&t, MOVE_GET);
        t.size = 6;
        t.tries = 1;
        run(&t, "there", "here", &a);
        assert_int_equal(a.status, MOVE_FAILED);
        assert_non_null(strstr(a.text, "5 bytes, and should have 6"));
        move_task_init(&t, MOVE_GET);
        run(&t, "nothing-there", "here", &a);
        assert_int_equal(a.status, MOVE_FAILED);
        assert_true(a.tries == 1); /* a missing file is not requested again */
        assert_non_null(strstr(a.text, "nothing-there"));
}

static void puts_a_part_in_one_step(void)
{
        struct move_task t;
        struct move_answer a;

        put_file("here", "..hello....");
        put_file("sent", "before");
        move_task_init(&t, MOVE_PUT);
        t.at = 2;
        t.size = 5;
        run(&t, "sent", "here", &a);
        assert_string_equal(a.text, "");
        assert_true(a.status == MOVE_DONE && a.size == 5 && a.moved == 5);
        content("sent", "hello");
        assert_int_equal(access(in_top("sent.drover-1.2.3.tmp"), F_OK), -1);
        move_task_init(&t, MOVE_PUT);
        t.at = 2;
        t.size = 50;
        run(&t, "sent", "here", &a);
        assert_int_equal(a.status, MOVE_FAILED);
        content("sent", "hello");
        move_task_init(&t, MOVE_PUT);
        t.size = 5;
        run(&t, "no-such-folder/sent", "here", &a);
        assert_int_equal(a.status, MOVE_FAILED);
}

static void probes(void)
{
        struct move_task t;
        struct move_answer a;

        put_file("there", "hello");
        move_task_init(&t, MOVE_PROBE);
        run(&t, "there", NULL, &a);
        assert_int_equal(a.status, MOVE_DONE);
        assert_true(a.latency_us > 0 && a.moved == 0);
        assert_true(a.free_bytes == MOVE_SIZE_ANY);
        t.space = true;
        run(&t, "there", NULL, &a);
        assert_int_equal(a.status, MOVE_DONE);
        assert_true(a.free_bytes > 0 && a.free_bytes < 1ull << 60);
        run(&t, "not/there/yet", NULL, &a);
        assert_true(a.latency_us > 0);
}

static void conforms(void **state)
{
        static const char *const schemes[] = {"file", "copy"};

        (void)state;
        for (unsigned i = 0; i < 2; i++) {
                scheme = schemes[i];
                gets_and_tells_what_it_got();
                does_not_keep_what_is_wrong();
                puts_a_part_in_one_step();
                probes();
        }
}

/* ---- programs that do wrong */

static void bad_programs_harm_nobody(void **state)
{
        struct move_task t;
        struct move_answer a;

        (void)state;
        move_task_init(&t, MOVE_GET);
        t.tries = 2;
        run_url(&t, "bad://crash/", "here", &a);
        assert_true(a.status == MOVE_FAILED && a.tries == 2);
        assert_non_null(strstr(a.text, "ended without an answer (signal 6)"));
        move_task_init(&t, MOVE_GET);
        run_url(&t, "bad://chatter/", "here", &a);
        assert_true(a.status == MOVE_FAILED && a.tries == 1);
        assert_non_null(strstr(a.text, "this is no JSON"));
        move_task_init(&t, MOVE_GET);
        t.tries = 3;
        run_url(&t, "bad://again/", "here", &a);
        assert_true(a.status == MOVE_FAILED && a.tries == 3);
        assert_non_null(strstr(a.text, "the tape is not in yet (tried 3 times"));
        move_task_init(&t, MOVE_GET);
        t.limit_ms = 300;
        run_url(&t, "bad://silent/", "here", &a);
        assert_int_equal(a.status, MOVE_FAILED);
        move_task_init(&t, MOVE_GET);
        t.limit_ms = 300;
        /* closes its output, so that its end is not noticed there */
        run_url(&t, "bad://lingers/", "here", &a);
        assert_int_equal(a.status, MOVE_FAILED);
        move_task_init(&t, MOVE_GET);
        run_url(&t, "gone://x/", "here", &a);
        assert_non_null(strstr(a.text, "cannot be run"));
}

static void unknown_schemes_are_named(void **state)
{
        struct move_task t;
        struct move_answer a;

        (void)state;
        move_task_init(&t, MOVE_GET);
        run_url(&t, "gsiftp://host/x", "here", &a);
        assert_true(a.status == MOVE_FAILED && a.error == EPROTONOSUPPORT);
        assert_non_null(strstr(a.text, "gsiftp"));
}

static void checks_a_file(void **state)
{
        struct move_task t;
        struct move_answer a;
        static const unsigned char sum[4] = {0x2c, 0xf2, 0x4d, 0xba};

        (void)state;
        put_file("here", "hello");
        move_task_init(&t, MOVE_CHECK);
        run_url(&t, "", "here", &a);
        assert_int_equal(a.status, MOVE_DONE);
        assert_true(a.size == 5);
        assert_memory_equal(a.sha256, sum, 4);
}

/* At most the requested size is copied, even if the source grows; a short source fails at once. */
static void copies_what_somebody_else_brought(void **state)
{
        struct move_task t;
        struct move_answer a;
        BUF_CLEANUP struct buf name = {0};
        static const unsigned char sum[4] = {0x2c, 0xf2, 0x4d, 0xba};

        (void)state;
        put_file("brought", "hello, and more");
        put_file("here", "what was there");
        buf_printf(&name, "%s/brought", top);
        move_task_init(&t, MOVE_COPY);
        t.from = open(buf_z(&name), O_RDONLY | O_CLOEXEC);
        assert_true(t.from >= 0);
        t.size = 5;
        run_url(&t, "", "here", &a);
        assert_int_equal(a.status, MOVE_DONE);
        assert_true(a.size == 5);
        assert_memory_equal(a.sha256, sum, 4);
        buf_reset(&name);
        buf_printf(&name, "%s/here", top);
        BUF_CLEANUP struct buf copied = {0};
        assert_int_equal(fs_read(AT_FDCWD, buf_z(&name), 100, &copied, NULL), 0);
        assert_string_equal(buf_z(&copied), "hello");
        t.size = 16;
        run_url(&t, "", "here", &a);
        assert_true(a.status == MOVE_FAILED && a.error == ESTALE && a.tries == 1);
        close(t.from);
}

static int setup(void **state)
{
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        strncpy(top, "/tmp/drover-move-XXXXXX", sizeof(top) - 1);
        if (!mkdtemp(top) || !getenv("TEST_MOVER"))
                return -1;
        config.retry_ms = 1;
        for (unsigned i = 0; i < 2; i++) {
                buf_reset(&b);
                buf_printf(&b, "%s=%s", i ? "bad" : "copy", getenv("TEST_MOVER"));
                if (!mover_config_exec(&config, buf_z(&b)))
                        return -1;
        }
        return mover_config_exec(&config, "gone=/nowhere/to-be-found") ? 0 : -1;
}

static int teardown(void **state)
{
        (void)state;
        mover_config_deinit(&config);
        return fs_remove_tree(AT_FDCWD, top);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(conforms), cmocka_unit_test(bad_programs_harm_nobody),
                cmocka_unit_test(unknown_schemes_are_named), cmocka_unit_test(checks_a_file),
                cmocka_unit_test(copies_what_somebody_else_brought)};

        signal(SIGPIPE, SIG_IGN); /* like the program: a mover may end before it has read its task */
        return cmocka_run_group_tests(tests, setup, teardown);
}
