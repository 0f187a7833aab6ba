/* Errors under the SQLite store: the n-th write finds no space, or fails, or a flush does. What was
 * acknowledged stays, a batch that found no space can be appended again and nothing overtakes it, and after
 * any other error the store takes nothing more. Every n is tried. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "fault_vfs.h"
#include "numbered.h"
#include "store/store_sqlite.h"
#include "store_help.h"

/* The n-th write finds no space. The batch comes back, is appended again, and nothing else happened. */
static void test_no_space_at_every_write(void **state)
{
        struct fixture *f = *state;
        unsigned refused = 0;

        for (uint64_t at = 1;; at++) {
                uint64_t term, last = 0;
                struct store *s;
                bool reached;

                if (at > 1)
                        numbered_begin_again(f);
                s = open_store(f, &term);
                fault_arm(FAULT_NO_SPACE, at, 1, 0);
                for (unsigned i = 0; i < 6; i++) {
                        struct err err = {0};
                        int r = append_now(s, term, numbered_batch(i, 3000), &last, &err);

                        if (r == STORE_FULL) {
                                refused++;
                                assert_non_null(strstr(err.text, f->path));
                                r = append_now(s, term, numbered_batch(i, 3000), &last, &err);
                        }
                        if (r)
                                fail_msg("%d %s", r, err.text);
                        assert_int_equal(last, seq_after(i + 1));
                }
                reached = fault_reached();
                fault_arm(FAULT_NONE, 0, 0, 0);
                store_close(s);
                check_reopened(f, last);
                if (!reached)
                        break;
        }
        assert_true(refused >= 5);
}

/* A disk that is full for a while, with many batches on their way: they come back in order, and are taken
 * again in order only. */
static void test_order_on_a_full_disk(void **state)
{
        struct fixture *f = *state;
        struct store_batch *mine[20];
        struct waiter w;
        uint64_t term, last;
        struct store *s = open_store(f, &term);

        assert_int_equal(append_now(s, term, numbered_batch(0, 0), &last, NULL), STORE_DURABLE);
        fault_arm(FAULT_NO_SPACE, 1, 1000000, 0);
        waiter_init(&w);
        for (unsigned i = 0; i < 20; i++) {
                mine[i] = numbered_batch(1 + i, 0);
                waiter_append(&w, s, term, mine[i]);
        }
        waiter_wait(&w);
        assert_int_equal(w.returned_count, 20);
        for (unsigned i = 0; i < 20; i++)
                assert_ptr_equal(w.returned[i], mine[i]);
        /* Still full: the first again, and then room comes. The second is refused while the first waits. */
        w.returned_count = 0;
        waiter_append(&w, s, term, mine[0]);
        waiter_wait(&w);
        assert_int_equal(w.result, STORE_FULL);
        fault_arm(FAULT_NONE, 0, 0, 0);
        waiter_append(&w, s, term, mine[1]);
        waiter_wait(&w);
        assert_int_equal(w.result, STORE_FULL);
        assert_int_equal(store_last_seq(s), last);
        w.returned_count = 0;
        for (unsigned i = 0; i < 20; i++)
                if (i != 7)
                        waiter_append(&w, s, term, mine[i]);
        waiter_append(&w, s, term, numbered_batch(21, 0));
        waiter_wait(&w);
        /* Seven went in; the eighth is kept by us, so all behind it came back. */
        assert_int_equal(store_last_seq(s), seq_after(8));
        assert_int_equal(w.returned_count, 13);
        for (unsigned i = 8; i < 20; i++)
                assert_ptr_equal(w.returned[i - 8], mine[i]);
        waiter_append(&w, s, term, mine[7]);
        for (unsigned i = 0; i < 13; i++)
                waiter_append(&w, s, term, w.returned[i]);
        waiter_wait(&w);
        assert_int_equal(w.result, STORE_DURABLE);
        waiter_deinit(&w);
        store_close(s);
        check_reopened(f, seq_after(22));
}

/* A batch that is given up instead lets the next one in. */
static void test_a_refused_batch_may_be_given_up(void **state)
{
        struct fixture *f = *state;
        struct store_batch *first = numbered_batch(5, 0), *second = numbered_batch(0, 0);
        struct waiter w;
        uint64_t term;
        struct store *s = open_store(f, &term);

        fault_arm(FAULT_NO_SPACE, 1, 1000000, 0);
        waiter_init(&w);
        waiter_append(&w, s, term, first);
        waiter_append(&w, s, term, second);
        waiter_wait(&w);
        assert_int_equal(w.returned_count, 2);
        fault_arm(FAULT_NONE, 0, 0, 0);
        store_batch_free(first);
        waiter_append(&w, s, term, second);
        waiter_wait(&w);
        assert_int_equal(w.result, STORE_DURABLE);
        waiter_deinit(&w);
        store_close(s);
        check_reopened(f, seq_after(1));
}

/* The n-th write or flush fails for another reason: the store stops, and says so to everything that follows.
 */
static void fail_everywhere(struct fixture *f, enum fault_kind kind)
{
        unsigned failed = 0;

        for (uint64_t at = 1;; at++) {
                uint64_t term, acknowledged = 0, last;
                struct store *s;
                bool reached;
                int r = 0;

                if (at > 1)
                        numbered_begin_again(f);
                s = open_store(f, &term);
                fault_arm(kind, at, 1, 0);
                for (unsigned i = 0; i < 6 && r == 0; i++) {
                        struct err err = {0};

                        r = append_now(s, term, numbered_batch(i, 3000), &last, &err);
                        if (r == 0)
                                acknowledged = last;
                        else if (r != -EIO || !strstr(err.text, f->path))
                                fail_msg("%d %s", r, err.text);
                }
                reached = fault_reached();
                assert_int_equal(r, reached ? -EIO : 0);
                failed += reached;
                if (r) {
                        fault_arm(FAULT_NONE, 0, 0, 0);
                        assert_int_equal(append_now(s, term, numbered_batch(0, 0), &last, NULL), -EIO);
                        assert_int_equal(last, acknowledged);
                        assert_int_equal(store_snapshot_put(s, term, acknowledged, STR("x"), 0, NULL), -EIO);
                        assert_int_equal(store_term_take(s, &term, NULL), -EIO);
                }
                store_close(s);
                check_reopened(f, acknowledged);
                if (!reached)
                        break;
        }
        assert_true(failed >= 3);
}

static void test_write_error_at_every_write(void **state)
{
        fail_everywhere(*state, FAULT_WRITE_EIO);
}

static void test_flush_error_at_every_flush(void **state)
{
        fail_everywhere(*state, FAULT_FLUSH_EIO);
}

/* Opening and making a store under faults fails cleanly, and works afterwards. */
static void test_faults_while_opening(void **state)
{
        static const enum fault_kind kinds[] = {FAULT_NO_SPACE, FAULT_WRITE_EIO, FAULT_FLUSH_EIO};
        struct fixture *f = *state;

        for (size_t k = 0; k < 3; k++)
                for (uint64_t at = 1;; at++) {
                        struct store *s = NULL;
                        struct err err = {0};
                        bool reached;
                        int r;

                        numbered_begin_again(f);
                        fault_arm(kinds[k], at, 1, 0);
                        r = store_open(f->address, &s, NULL, &err);
                        reached = fault_reached();
                        fault_arm(FAULT_NONE, 0, 0, 0);
                        if (r)
                                assert_true(r < 0 && strstr(err.text, f->path));
                        else
                                store_close(s);
                        check_reopened(f, 0);
                        if (!reached)
                                break;
                }
}

/* An error of a checkpoint, which no commit sees, stops the store as well. */
static void test_flush_error_in_a_checkpoint(void **state)
{
        struct fixture *f = *state;
        uint64_t term, last = 0, acknowledged = 0;
        struct store *s;
        int r = 0;

        store_sqlite_checkpoint_frames = 30;
        s = open_store(f, &term);
        fault_arm(FAULT_WRITE_EIO, 1000000, 1, 0);
        for (unsigned i = 0; i < 300 && r == 0; i++) {
                if (i == 10)
                        fault_arm(FAULT_FLUSH_EIO, 40, 1, 0);
                r = append_now(s, term, numbered_batch(i, 2000), &last, NULL);
                if (r == 0)
                        acknowledged = last;
        }
        store_sqlite_checkpoint_frames = 2000;
        assert_true(fault_reached());
        assert_int_equal(r, -EIO);
        fault_arm(FAULT_NONE, 0, 0, 0);
        store_close(s);
        check_reopened(f, acknowledged);
}

/* Under constant load the write-ahead log begins anew again and again. */
static void test_log_stays_short(void **state)
{
        struct fixture *f = *state;
        BUF_CLEANUP struct buf wal = {0};
        struct waiter w;
        struct store *s;
        struct stat st;
        uint64_t term;

        store_sqlite_checkpoint_frames = 30;
        s = open_store(f, &term);
        waiter_init(&w);
        for (unsigned i = 0; i < 2000; i++) { /* 30 MB */
                waiter_append(&w, s, term, numbered_batch(i, 5000));
                if (i % 16 == 0)
                        waiter_wait(&w);
        }
        waiter_wait(&w);
        waiter_deinit(&w);
        buf_printf(&wal, "%s-wal", f->path);
        assert_int_equal(stat(buf_z(&wal), &st), 0);
        assert_true(st.st_size < 12 << 20);
        store_close(s);
        store_sqlite_checkpoint_frames = 2000;
        check_reopened(f, seq_after(2000));
}

#define T(f) cmocka_unit_test_setup_teardown(f, numbered_setup, numbered_teardown)
int main(void)
{
        const struct CMUnitTest tests[] = {
                T(test_no_space_at_every_write),         T(test_order_on_a_full_disk),
                T(test_a_refused_batch_may_be_given_up), T(test_write_error_at_every_write),
                T(test_flush_error_at_every_flush),      T(test_faults_while_opening),
                T(test_flush_error_in_a_checkpoint),     T(test_log_stays_short),
        };

        fault_install();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
