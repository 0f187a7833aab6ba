/* Crashes of the SQLite store.
 *
 * A child process appends batches and reports over a pipe each number that it was told is durable; it ends by
 * SIGKILL (before, or in the middle of, the n-th call that changes a file; or at any moment) or by a power
 * loss that keeps an arbitrary part of what was not flushed. Then the store is opened again: everything
 * acknowledged must be there, each batch whole or not at all. DROVER_CHECK_LONG=1 stops at every call, and
 * oftener at random. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "fault_vfs.h"
#include "numbered.h"
#include "store/store_sqlite.h"

#define BATCHES 12 /* of a child that is stopped at a chosen call */

static bool thorough; /* DROVER_CHECK_LONG */

struct child {
        const struct fixture *f;
        enum fault_kind kind;
        uint64_t at;
        unsigned seed;
        unsigned batches;
        size_t padding;
        int pipe;
};

static void report(void *arg, int result, uint64_t last_seq, struct store_batch *batch, const struct err *err)
{
        (void)batch;
        (void)err;
        if (result != STORE_DURABLE || write(*(int *)arg, &last_seq, sizeof(last_seq)) != sizeof(last_seq))
                _exit(3);
}

/* Appends alone, then several at a time; a snapshot in between. Exits 0 when nothing stopped it. */
static void child_main(const struct child *c)
{
        MEM_CLEANUP char *snapshot = mem_alloc(700000);
        struct store *s;
        uint64_t term;

        store_sqlite_checkpoint_frames = 30;
        fault_install();
        fault_arm(c->kind, c->at, 1, c->seed);
        if (store_open(c->f->address, &s, NULL, NULL) || store_term_take(s, &term, NULL))
                _exit(4);
        for (unsigned i = 0; i < c->batches; i++) {
                store_append(s, term, numbered_batch(i, c->padding), report, (void *)&c->pipe);
                if (i % 4 < 2)
                        while (store_last_seq(s) < seq_after(i + 1))
                                nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
                if (i % 16 == 9) {
                        uint64_t seq = store_last_seq(s);

                        memset(snapshot, (int)('a' + seq % 26), 700000);
                        if (store_snapshot_put(s, term, seq, str_make(snapshot, 700000), seq - seq % 3, NULL))
                                _exit(5);
                }
        }
        store_close(s);
        _exit(0);
}

/* Runs the child to its end; what it had acknowledged. kill_after_us: SIGKILL then; 0: never. */
static uint64_t run_child(struct child *c, long kill_after_us, int *ret_status)
{
        uint64_t seq, acknowledged = 0;
        int ends[2];
        pid_t pid;

        assert_int_equal(pipe(ends), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                close(ends[0]);
                c->pipe = ends[1];
                child_main(c);
        }
        close(ends[1]);
        if (kill_after_us) {
                nanosleep(&(struct timespec){.tv_sec = kill_after_us / 1000000,
                                             .tv_nsec = kill_after_us % 1000000 * 1000},
                          NULL);
                kill(pid, SIGKILL);
        }
        while (read(ends[0], &seq, sizeof(seq)) == sizeof(seq))
                acknowledged = seq;
        close(ends[0]);
        assert_int_equal(waitpid(pid, ret_status, 0), pid);
        return acknowledged;
}

/* Stops a child at every `stride`-th call that changes a file, until one gets to its end. */
static void stop_everywhere(struct fixture *f, enum fault_kind kind, unsigned stride)
{
        unsigned stopped = 0;

        for (uint64_t at = 1;; at += stride) {
                struct child c = {.f = f, .kind = kind, .at = at, .seed = (unsigned)at, .batches = BATCHES};
                uint64_t acknowledged;
                int status;

                if (at > 1)
                        numbered_begin_again(f);
                acknowledged = run_child(&c, 0, &status);
                if (WIFEXITED(status)) {
                        assert_int_equal(WEXITSTATUS(status), 0);
                        assert_int_equal(acknowledged, seq_after(BATCHES));
                        check_reopened(f, acknowledged);
                        break;
                }
                assert_int_equal(WTERMSIG(status), SIGKILL);
                stopped++;
                check_reopened(f, acknowledged);
        }
        assert_true(stopped >= 20);
}

static void test_kill_at_every_call(void **state)
{
        stop_everywhere(*state, FAULT_KILL, thorough ? 1 : 3);
}

static void test_torn_write_at_every_call(void **state)
{
        stop_everywhere(*state, FAULT_TORN, thorough ? 1 : 4);
}

static void test_power_loss_at_every_call(void **state)
{
        stop_everywhere(*state, FAULT_POWER, thorough ? 1 : 3);
}

/* The same folder through many crashes, at random moments of real load with checkpoints. */
static void test_kill_at_random(void **state)
{
        struct fixture *f = *state;
        unsigned seed = (unsigned)clock_mono_ns();

        print_message("seed %u\n", seed);
        for (int round = 0; round < (thorough ? 200 : 12); round++) {
                struct child c = {.f = f, .kind = FAULT_NONE, .batches = 100000, .padding = 500};
                uint64_t acknowledged;
                int status;

                seed = seed * 1664525u + 1013904223u;
                numbered_begin_again(f);
                acknowledged = run_child(&c, 1000 + (seed >> 8) % 150000, &status);
                assert_true(WIFSIGNALED(status));
                check_reopened(f, acknowledged);
        }
}

#define T(f) cmocka_unit_test_setup_teardown(f, numbered_setup, numbered_teardown)
int main(void)
{
        /* Children install the faulty layer themselves: what looks at their work afterwards has none. */
        const struct CMUnitTest tests[] = {
                T(test_kill_at_every_call),
                T(test_torn_write_at_every_call),
                T(test_power_loss_at_every_call),
                T(test_kill_at_random),
        };

        thorough = getenv("DROVER_CHECK_LONG") != NULL;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
