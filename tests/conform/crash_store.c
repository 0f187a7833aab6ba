/* Crashes and faults of the SQLite store.
 *
 * A child process appends batches and reports over a pipe each number that it was told is durable; it ends by
 * SIGKILL (before, or in the middle of, the n-th call that changes a file; or at any moment) or by a power
 * loss that keeps an arbitrary part of what was not flushed. Then the store is opened again: everything
 * acknowledged must be there, each batch whole or not at all. Faults are errors of the n-th write or flush
 * instead.
 *
 * What batch i holds follows from i alone: 1 + i % 5 records "<i> <number in the batch>", a history row of
 * member i, and the blob "last", which is i. So what is found can be checked without knowing what was done.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fault_vfs.h"
#include "store/store_sqlite.h"
#include "store_help.h"

#define BATCHES 12 /* of a child that is stopped at a chosen call */

static bool thorough; /* DROVER_CHECK_LONG */

struct fixture {
        char *folder, *path, *address;
};

static int setup(void **state)
{
        struct fixture *f = mem_new(struct fixture);
        struct buf b = {0};

        f->folder = temp_folder();
        buf_printf(&b, "%s/drover.db", f->folder);
        f->path = buf_take(&b);
        buf_printf(&b, "sqlite:%s", f->path);
        f->address = buf_take(&b);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        fault_arm(FAULT_NONE, 0, 0, 0);
        temp_folder_remove(f->folder);
        free(f->path);
        free(f->address);
        free(f);
        return 0;
}

static void begin_again(struct fixture *f)
{
        char *folder = mem_dupz(f->folder);

        temp_folder_remove(f->folder);
        f->folder = folder;
        assert_int_equal(mkdir(folder, 0700), 0);
}

/* ---- what the store holds ----------------------------------------------------------------------------- */

static struct store_batch *numbered_batch(unsigned i, size_t padding)
{
        struct store_batch *b = store_batch_new();
        char text[64];

        for (unsigned k = 0; k < 1 + i % 5; k++) {
                BUF_CLEANUP struct buf record = {0};

                buf_printf(&record, "%u %u ", i, k);
                while (record.n < padding)
                        buf_char(&record, (char)('a' + (record.n + i) % 26));
                store_batch_event(b, buf_view(&record));
        }
        snprintf(text, sizeof(text), "%u", i);
        store_batch_blob_put(b, STR("last"), str_of(text));
        store_batch_history(b, &(struct store_history){.request = 1,
                                                       .member = i,
                                                       .ended_ms = i,
                                                       .owner = STR("ann@local"),
                                                       .data = str_of(text)});
        return b;
}

static uint64_t seq_after(unsigned batches) /* number of the last record of so many batches */
{
        uint64_t seq = 0;

        for (unsigned i = 0; i < batches; i++)
                seq += 1 + i % 5;
        return seq;
}

struct found {
        unsigned batch, next; /* where the next record belongs */
        uint64_t seq;
        unsigned rows;
};

static void advance(struct found *c)
{
        c->seq++;
        if (++c->next == 1 + c->batch % 5) {
                c->next = 0;
                c->batch++;
        }
}

static int check_record(void *arg, uint64_t seq, struct str record, struct err *err)
{
        struct found *c = arg;
        char want[64];

        (void)err;
        for (bool cut = c->seq == 0; cut && c->seq < seq - 1;) /* the records before the first were cut */
                advance(c);
        snprintf(want, sizeof(want), "%u %u ", c->batch, c->next);
        if (seq != c->seq + 1 || !str_starts(record, str_of(want)))
                fail_msg("record %llu is \"" STR_FMT "\", not \"%s…\"", (unsigned long long)seq,
                         STR_ARG(str_head(record, 40)), want);
        advance(c);
        return 0;
}

static int check_row(void *arg, uint64_t row, const struct store_history *h)
{
        struct found *c = arg;

        (void)row;
        assert_int_equal(h->member, c->batch - 1 - c->rows);
        c->rows++;
        return 0;
}

/* Everything is whole, nothing acknowledged is missing. Returns how many batches there are. */
static unsigned check_store(struct store *s, uint64_t acknowledged)
{
        BUF_CLEANUP struct buf data = {0};
        struct found c = {0};
        struct err err = {0};
        uint64_t seq = 0;
        char want[64];

        if (store_scan(s, 1, check_record, &c, &err))
                fail_msg("%s", err.text);
        if (store_snapshot_get(s, &seq, &data, &err) == 0) {
                assert_true(data.n >= 100000);
                for (size_t i = 0; i < data.n; i++)
                        if (data.p[i] != (char)('a' + seq % 26))
                                fail_msg("the snapshot is torn");
                while (c.seq < seq) /* all records were cut */
                        advance(&c);
        }
        assert_int_equal(c.next, 0); /* no batch is torn */
        assert_int_equal(c.seq, seq_after(c.batch));
        assert_int_equal(store_last_seq(s), c.seq);
        if (c.seq < acknowledged)
                fail_msg("%llu was acknowledged, the last is %llu", (unsigned long long)acknowledged,
                         (unsigned long long)c.seq);
        assert_int_equal(store_history_query(s, &(struct store_query){0}, check_row, &c, &err), 0);
        assert_int_equal(c.rows, c.batch);
        if (c.batch > 0) {
                assert_int_equal(store_blob_get(s, STR("last"), &data, &err), 0);
                snprintf(want, sizeof(want), "%u", c.batch - 1);
                assert_string_equal(buf_z(&data), want);
        }
        return c.batch;
}

static struct store *open_store(const struct fixture *f, uint64_t *ret_term)
{
        struct err err = {0};
        struct store *s = NULL;

        if (store_open(f->address, &s, NULL, &err) || store_term_take(s, ret_term, &err))
                fail_msg("%s", err.text);
        return s;
}

static void check_reopened(const struct fixture *f, uint64_t acknowledged)
{
        uint64_t term, seq;
        struct store *s = open_store(f, &term);
        unsigned batches = check_store(s, acknowledged);

        /* And it goes on. */
        assert_int_equal(append_now(s, term, numbered_batch(batches, 0), &seq, NULL), STORE_DURABLE);
        assert_int_equal(seq, seq_after(batches + 1));
        store_close(s);
}

/* ---- the child ---------------------------------------------------------------------------------------- */

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
                        begin_again(f);
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
        stop_everywhere(*state, FAULT_KILL, thorough ? 1 : 5);
}

static void test_torn_write_at_every_call(void **state)
{
        stop_everywhere(*state, FAULT_TORN, thorough ? 1 : 7);
}

static void test_power_loss_at_every_call(void **state)
{
        stop_everywhere(*state, FAULT_POWER, thorough ? 1 : 5);
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
                begin_again(f);
                acknowledged = run_child(&c, 1000 + (seed >> 8) % 150000, &status);
                assert_true(WIFSIGNALED(status));
                check_reopened(f, acknowledged);
        }
}

/* ---- faults ------------------------------------------------------------------------------------------- */

/* The n-th write finds no space. The batch comes back, is appended again, and nothing else happened. */
static void test_no_space_at_every_write(void **state)
{
        struct fixture *f = *state;
        unsigned refused = 0;

        for (uint64_t at = 1;; at += thorough ? 1 : 2) {
                uint64_t term, last = 0;
                struct store *s;
                bool reached;

                if (at > 1)
                        begin_again(f);
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

        for (uint64_t at = 1;; at += thorough ? 1 : 2) {
                uint64_t term, acknowledged = 0, last;
                struct store *s;
                bool reached;
                int r = 0;

                if (at > 1)
                        begin_again(f);
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

                        begin_again(f);
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

/* ---- damage ------------------------------------------------------------------------------------------- */

static void fill_store(const struct fixture *f)
{
        MEM_CLEANUP char *snapshot = mem_alloc(200000);
        uint64_t term, seq = 0;
        struct store *s = open_store(f, &term);

        for (unsigned i = 0; i < 200; i++)
                assert_int_equal(append_now(s, term, numbered_batch(i, 100), &seq, NULL), STORE_DURABLE);
        memset(snapshot, (int)('a' + seq % 26), 200000); /* as check_store wants it */
        assert_int_equal(store_snapshot_put(s, term, seq, str_make(snapshot, 200000), 100, NULL), 0);
        store_close(s);
}

static void copy_bytes(const struct fixture *f, struct buf *out)
{
        FILE *from = fopen(f->path, "r");
        size_t n;

        assert_non_null(from);
        while ((n = fread(buf_room(out, 65536), 1, 65536, from)) > 0)
                out->n += n;
        fclose(from);
}

static void put_file(const struct fixture *f, struct str bytes)
{
        FILE *to = fopen(f->path, "w");

        assert_non_null(to);
        assert_int_equal(fwrite(bytes.p, 1, bytes.n, to), bytes.n);
        fclose(to);
}

static int ignore_record(void *arg, uint64_t seq, struct str record, struct err *err)
{
        struct found *c = arg;
        struct str word = record;

        (void)err;
        (void)seq;
        assert_true(str_word(&word, &word)); /* what is shown is what was written: it begins with a number */
        c->rows++;
        return 0;
}

static int ignore_row(void *arg, uint64_t row, const struct store_history *h)
{
        (void)arg;
        (void)row;
        assert_true(str_eq(h->owner, STR("ann@local")));
        return 0;
}

/* Reads all there is. 0, or the first failure, which must be STORE_CORRUPT with a text that helps. */
static int read_all(const struct fixture *f)
{
        BUF_CLEANUP struct buf data = {0};
        struct found c = {0};
        struct err err = {0};
        struct store *s = NULL;
        uint64_t seq;
        int r = store_open(f->address, &s, NULL, &err);

        if (r == 0)
                r = store_scan(s, 1, ignore_record, &c, &err);
        if (r == 0)
                r = store_snapshot_get(s, &seq, &data, &err);
        if (r == 0)
                r = store_blob_get(s, STR("last"), &data, &err);
        if (r == 0)
                r = store_history_query(s, &(struct store_query){.owner = STR("ann@local")}, ignore_row, NULL,
                                        &err);
        if (r && (r != STORE_CORRUPT || !strstr(err.text, f->path) || !strstr(err.text, "backup")))
                fail_msg("%d %s", r, err.text);
        store_close(s);
        return r;
}

static void test_flipped_bytes(void **state)
{
        struct fixture *f = *state;
        BUF_CLEANUP struct buf good = {0};
        unsigned seed = (unsigned)clock_mono_ns(), noticed = 0, rounds = thorough ? 2000 : 150;

        print_message("seed %u\n", seed);
        fill_store(f);
        assert_int_equal(read_all(f), 0);
        copy_bytes(f, &good);
        for (unsigned i = 0; i < rounds; i++) {
                BUF_CLEANUP struct buf bad = {0};

                seed = seed * 1664525u + 1013904223u;
                buf_str(&bad, buf_view(&good));
                bad.p[(seed >> 4) % bad.n] ^= (char)(1 + (seed >> 24) % 255);
                put_file(f, buf_view(&bad));
                noticed += read_all(f) == STORE_CORRUPT;
        }
        assert_true(noticed > rounds / 3); /* much of a database file is free space */
        put_file(f, buf_view(&good));
        assert_int_equal(read_all(f), 0);
}

static void test_truncated_file(void **state)
{
        struct fixture *f = *state;
        BUF_CLEANUP struct buf good = {0};
        struct err err = {0};
        struct store *s;

        fill_store(f);
        copy_bytes(f, &good);
        for (size_t n = 0; n < good.n; n = n * 2 + 50) {
                put_file(f, str_head(buf_view(&good), n));
                if (read_all(f) != STORE_CORRUPT)
                        fail_msg("%zu bytes of %zu were taken for the whole", n, good.n);
        }
        put_file(f, str_head(buf_view(&good), good.n - 1));
        assert_int_equal(read_all(f), STORE_CORRUPT);
        put_file(f,
                 STR("This is a text file, long enough to have been a database's header, had it been "
                     "one......."
                     "..................................................................................."));
        assert_int_equal(read_all(f), STORE_CORRUPT);
        /* Gone, but not its companions. */
        assert_int_equal(unlink(f->path), 0);
        assert_int_equal(store_open(f->address, &s, NULL, &err), STORE_CORRUPT);
        assert_non_null(strstr(err.text, "to begin with nothing, remove"));
        put_file(f, buf_view(&good));
        assert_int_equal(read_all(f), 0);
}

static void change(const struct fixture *f, const char *sql)
{
        sqlite3 *db;

        assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
}

/* Rows that went away or changed in ways that the database cannot notice. */
static void test_rows_that_changed(void **state)
{
        static const char *const changes[] = {
                "DELETE FROM log WHERE seq = 300",
                "DELETE FROM log WHERE seq = 101",
                "DELETE FROM log WHERE seq > 400",
                "UPDATE log SET record = (SELECT record FROM log WHERE seq = 300) WHERE seq = 301",
                "UPDATE log SET record = (SELECT record FROM log WHERE seq = 300), "
                "crc = (SELECT crc FROM log WHERE seq = 300) WHERE seq = 301",
                "UPDATE log SET record = 7 WHERE seq = 400",
                "UPDATE snapshot SET size = size - 1",
                "UPDATE snapshot_part SET data = zeroblob(length(data))",
                "DELETE FROM snapshot_part",
                "UPDATE blob SET data = x'31'",
                "UPDATE history SET exit_code = 1 WHERE id = 50",
                "DELETE FROM state",
                "DROP TABLE blob",
        };
        struct fixture *f = *state;
        BUF_CLEANUP struct buf good = {0};

        fill_store(f);
        copy_bytes(f, &good);
        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
                put_file(f, buf_view(&good));
                change(f, changes[i]);
                if (read_all(f) != STORE_CORRUPT)
                        fail_msg("not noticed: %s", changes[i]);
        }
}

/* A backup put in the place of a store that was closed: its log, which stays, is of no later pages. */
static void test_backup_put_back(void **state)
{
        struct fixture *f = *state;
        BUF_CLEANUP struct buf backup = {0};
        uint64_t term, seq = 0;
        struct store *s;

        fill_store(f);
        copy_bytes(f, &backup);
        s = open_store(f, &term);
        for (unsigned i = 200; i < 300; i++)
                assert_int_equal(append_now(s, term, numbered_batch(i, 100), &seq, NULL), STORE_DURABLE);
        store_close(s);
        put_file(f, buf_view(&backup));
        s = open_store(f, &term);
        assert_int_equal(check_store(s, 0), 200);
        store_close(s);
        check_reopened(f, seq_after(200));
}

static void test_another_programs_database(void **state)
{
        struct fixture *f = *state;
        struct err err = {0};
        struct store *s;

        change(f, "CREATE TABLE photographs (x)");
        assert_int_equal(store_open(f->address, &s, NULL, &err), STORE_CORRUPT);
        assert_non_null(strstr(err.text, "not of this program"));
}

static void test_a_newer_schema(void **state)
{
        struct fixture *f = *state;
        struct err err = {0};
        struct store *s;

        fill_store(f);
        change(f, "PRAGMA user_version = 99");
        assert_int_equal(store_open(f->address, &s, NULL, &err), STORE_TOO_NEW);
        assert_non_null(strstr(err.text, "99"));
}

static void test_files_are_private(void **state)
{
        static const char *const names[] = {"drover.db", "drover.db-wal", "drover.db.lock",
                                            "drover.db.reserve"};
        struct fixture *f = *state;
        uint64_t term;
        mode_t mask = umask(0);
        struct store *s = open_store(f, &term);
        struct stat st;

        umask(mask);
        for (size_t i = 0; i < 4; i++) {
                char path[256];

                snprintf(path, sizeof(path), "%s/%s", f->folder, names[i]);
                assert_int_equal(stat(path, &st), 0);
                assert_int_equal(st.st_mode & 0777, 0600);
        }
        assert_true(st.st_blocks * 512 >= 8 << 20); /* the reserve is really there */
        assert_int_equal(store_reserve_release(s), 0);
        assert_int_equal(stat(f->path, &st), 0);
        store_close(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(int argc, char **argv)
{
        const struct CMUnitTest crashes[] = {
                T(test_kill_at_every_call),
                T(test_torn_write_at_every_call),
                T(test_power_loss_at_every_call),
                T(test_kill_at_random),
        };
        const struct CMUnitTest faults[] = {
                T(test_no_space_at_every_write),
                T(test_order_on_a_full_disk),
                T(test_a_refused_batch_may_be_given_up),
                T(test_write_error_at_every_write),
                T(test_flush_error_at_every_flush),
                T(test_faults_while_opening),
                T(test_flush_error_in_a_checkpoint),
                T(test_flipped_bytes),
                T(test_truncated_file),
                T(test_rows_that_changed),
                T(test_backup_put_back),
                T(test_another_programs_database),
                T(test_a_newer_schema),
                T(test_files_are_private),
        };

        thorough = getenv("DROVER_CHECK_LONG") != NULL;
        /* Children install the faulty layer themselves: what looks at their work afterwards has none. */
        if (argc == 2 && strcmp(argv[1], "crashes") == 0)
                return cmocka_run_group_tests(crashes, NULL, NULL);
        if (argc == 2 && strcmp(argv[1], "faults") == 0) {
                fault_install();
                return cmocka_run_group_tests(faults, NULL, NULL);
        }
        fprintf(stderr, "usage: crash_store crashes|faults\n");
        return 2;
}
