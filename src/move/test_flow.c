#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "move/flow.h"

#define SIZE   (8u << 20)
#define WINDOW (2u << 20)

struct getter { /* a process that gets */
        pid_t pid;
        bool died;
};

static int alive(void *arg)
{
        struct getter *g = arg;

        if (!g->died && g->pid > 0 && waitpid(g->pid, NULL, WNOHANG) == g->pid)
                g->died = true;
        return g->died ? -EPIPE : 0;
}

static unsigned char byte_at(uint64_t at)
{
        return (unsigned char)(at * 7 + at / 251);
}

static int write_all(struct flow *f, int fd, uint64_t upto)
{
        unsigned char block[65536];

        for (uint64_t at = 0; at < upto; at += sizeof(block)) {
                for (size_t i = 0; i < sizeof(block); i++)
                        block[i] = byte_at(at + i);
                if (pwrite(fd, block, sizeof(block), (off_t)at) != (ssize_t)sizeof(block))
                        return -EIO;
                int r = flow_wrote(f, at + sizeof(block), SIZE, NULL, NULL);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void finish(struct flow *f, enum move_status status)
{
        struct move_answer a = {.status = status, .size = SIZE, .error = EAGAIN};
        struct sums *s = sums_new(false, false);

        snprintf(a.text, sizeof(a.text), "as it was");
        flow_end(f, &a, s);
        sums_free(s);
}

/* All bytes arrive, the getter is at most a window ahead, and the last byte arrives after the verification.
 */
static void test_through(void **state)
{
        int fd = memfd_create("flow", MFD_CLOEXEC), go[2];
        struct flow *f = flow_new(fd, WINDOW);
        struct getter g = {0};
        uint64_t at = 0, size = 0;
        long n;
        struct stat st;

        (void)state;
        assert_int_equal(pipe(go), 0);
        g.pid = fork();
        if (g.pid == 0) {
                char c;

                if (write_all(f, fd, SIZE) == 0 && read(go[0], &c, 1) == 1)
                        finish(f, MOVE_DONE);
                _exit(0);
        }
        assert_int_equal(flow_size(f, &size, alive, &g), 0);
        assert_int_equal(size, SIZE);
        while (at < SIZE - 1) {
                unsigned char block[100000];

                n = flow_wait(f, at, sizeof(block), alive, &g);
                assert_true(n > 0);
                assert_true(flow_done(f) <= at + WINDOW + 65536);
                assert_int_equal(pread(fd, block, (size_t)n, (off_t)at), n);
                for (long i = 0; i < n; i++)
                        assert_int_equal(block[i], byte_at(at + (uint64_t)i));
                at += (uint64_t)n;
                flow_sent(f, at);
        }
        assert_int_equal(at, SIZE - 1); /* the putter waits there */
        assert_int_equal(write(go[1], "x", 1), 1);
        assert_int_equal(flow_wait(f, at, 10, alive, &g), 1);
        flow_sent(f, SIZE);
        assert_int_equal(flow_wait(f, SIZE, 10, alive, &g), 0);
        assert_int_equal(flow_wait(f, 0, 10, alive, &g), -ESTALE); /* given back to the disk */
        assert_int_equal(fstat(fd, &st), 0);
        assert_true((uint64_t)st.st_blocks * 512 < SIZE / 2);
        if (!g.died)
                waitpid(g.pid, NULL, 0);
        flow_free(f);
        close(fd);
        close(go[0]);
        close(go[1]);
}

static void test_getter_fails(void **state)
{
        int fd = memfd_create("flow", MFD_CLOEXEC);
        struct flow *f = flow_new(fd, WINDOW);
        struct getter g = {0};
        struct move_answer a;

        (void)state;
        assert_false(flow_ended(f, &a));
        g.pid = fork();
        if (g.pid == 0) {
                write_all(f, fd, WINDOW / 2);
                finish(f, MOVE_FAILED);
                _exit(0);
        }
        while (!flow_ended(f, &a))
                alive(&g);
        assert_int_equal(flow_wait(f, 0, 10, alive, &g), -EPIPE);
        assert_string_equal(a.text, "as it was");
        if (!g.died)
                waitpid(g.pid, NULL, 0);
        flow_free(f);
        close(fd);
}

/* The putter notices that a getter was killed. */
static void test_getter_dies(void **state)
{
        int fd = memfd_create("flow", MFD_CLOEXEC);
        struct flow *f = flow_new(fd, WINDOW);
        struct getter g = {0};

        (void)state;
        g.pid = fork();
        if (g.pid == 0)
                _exit(write_all(f, fd, WINDOW / 2));
        uint64_t at = 0, size;
        long n = 0;
        assert_int_equal(flow_size(f, &size, NULL, NULL), 0);
        while ((n = flow_wait(f, at, SIZE, alive, &g)) > 0)
                at += (uint64_t)n;
        assert_int_equal(n, -EPIPE);
        assert_true(g.died);
        flow_free(f);
        close(fd);
}

static void test_putter_gives_up(void **state)
{
        int fd = memfd_create("flow", MFD_CLOEXEC), status = 0;
        struct flow *f = flow_new(fd, WINDOW);
        struct getter g = {0};

        (void)state;
        g.pid = fork();
        if (g.pid == 0)
                _exit(write_all(f, fd, SIZE) == -ESTALE ? 7 : 0);
        assert_true(flow_wait(f, 0, 10, alive, &g) > 0);
        flow_stop(f);
        assert_int_equal(waitpid(g.pid, &status, 0), g.pid);
        assert_int_equal(WEXITSTATUS(status), 7);
        flow_free(f);
        close(fd);
}

/* Another version of the file must not be sent behind the beginning of the one before. */
static void test_begins_anew(void **state)
{
        int fd = memfd_create("flow", MFD_CLOEXEC);
        struct flow *f = flow_new(fd, WINDOW);

        (void)state;
        assert_int_equal(write_all(f, fd, 65536), 0);
        assert_int_equal(flow_restart(f), 0);
        assert_int_equal(write_all(f, fd, 65536), 0);
        assert_true(flow_wait(f, 0, 10, NULL, NULL) > 0);
        assert_int_equal(flow_restart(f), -ESTALE);
        flow_free(f);
        close(fd);
}

/* The getter ends, and is gone before it is looked at again: what it said counts. */
static int ends_and_dies(void *arg)
{
        finish(arg, MOVE_DONE);
        return -EPIPE;
}

static void test_a_getter_that_ends_while_it_is_waited_for(void **state)
{
        int fd = memfd_create("flow", MFD_CLOEXEC);
        struct flow *f = flow_new(fd, WINDOW);
        uint64_t size = 0;

        (void)state;
        assert_int_equal(flow_size(f, &size, ends_and_dies, f), 0);
        assert_int_equal(size, SIZE);
        flow_free(f);
        f = flow_new(fd, WINDOW);
        assert_int_equal(flow_wait(f, SIZE - 1, 10, ends_and_dies, f), 1);
        flow_free(f);
        close(fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_through),
                cmocka_unit_test(test_getter_fails),
                cmocka_unit_test(test_getter_dies),
                cmocka_unit_test(test_putter_gives_up),
                cmocka_unit_test(test_begins_anew),
                cmocka_unit_test(test_a_getter_that_ends_while_it_is_waited_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
