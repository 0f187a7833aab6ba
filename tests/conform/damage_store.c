/* Damage to the SQLite store's file: bytes flipped, cut off, rows changed behind its back, another program's
 * file. Whatever is read is what was written, or STORE_CORRUPT with a text that says which file and what to
 * do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "numbered.h"
#include "store_help.h"

static bool thorough; /* DROVER_CHECK_LONG */

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
        struct str word = record;

        (void)err;
        (void)seq;
        assert_true(str_word(&word, &word)); /* what is shown is what was written: it begins with a number */
        ++*(unsigned *)arg;
        return 0;
}

static int ignore_row(void *arg, uint64_t row, const struct past_job *h)
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
        unsigned rows = 0;
        struct err err = {0};
        struct store *s = NULL;
        uint64_t seq;
        int r = store_open(f->address, &s, NULL, &err);

        if (r == 0)
                r = store_scan(s, 1, ignore_record, &rows, &err);
        if (r == 0)
                r = store_snapshot_get(s, &seq, &data, &err);
        if (r == 0)
                r = store_blob_get(s, STR("last"), &data, &err);
        if (r == STORE_NOT_FOUND) { /* the byte is one of its name, in the table or in the index */
                store_close(s);
                return STORE_CORRUPT;
        }
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

static void ignore_done(void *arg, int result, uint64_t last_seq, struct store_batch *batch,
                        const struct err *err)
{
        (void)arg;
        (void)last_seq;
        (void)batch;
        (void)err;
        if (result != STORE_DURABLE)
                abort();
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

/* A server that was killed leaves its newest records in the write-ahead log alone. */
static void fill_and_die(const struct fixture *f)
{
        pid_t pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0) {
                uint64_t term;
                struct store *s = open_store(f, &term);

                for (unsigned i = 0; i < 40; i++)
                        store_append(s, term, numbered_batch(i, 300), ignore_done, NULL);
                while (store_last_seq(s) < seq_after(40))
                        ;
                kill(getpid(), SIGKILL);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
}

static void test_lost_write_ahead_log(void **state)
{
        struct fixture *f = *state;
        BUF_CLEANUP struct buf log = {0};
        struct fixture wal = {.path = (char[256]){0}}, aside = {.path = (char[256]){0}};
        struct err err = {0};
        struct store *s;

        fill_and_die(f);
        snprintf(wal.path, 256, "%s-wal", f->path);
        snprintf(aside.path, 256, "%s.aside", f->path);
        copy_bytes(&wal, &log);
        for (unsigned damage = 0; damage < 3; damage++) {
                if (damage == 0)
                        assert_int_equal(rename(wal.path, aside.path), 0);
                else if (damage == 1)
                        put_file(&wal, str_head(buf_view(&log), 30000));
                else
                        log.p[5000] ^= 1;
                if (damage == 2)
                        put_file(&wal, buf_view(&log));
                assert_int_equal(store_open(f->address, &s, NULL, &err), STORE_CORRUPT);
                if (!strstr(err.text, "-wal") || !strstr(err.text, ".mark"))
                        fail_msg("%s", err.text);
        }
        log.p[5000] ^= 1;
        put_file(&wal, buf_view(&log));
        check_reopened(f, seq_after(40));
}

static void test_files_are_private(void **state)
{
        static const char *const names[] = {"drover.db", "drover.db-wal", "drover.db.lock",
                                            "drover.db.reserve", "drover.db.mark"};
        struct fixture *f = *state;
        uint64_t term;
        mode_t mask = umask(0);
        char reserve[256];
        struct store *s = open_store(f, &term);
        struct stat st;

        umask(mask);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                char path[256];

                snprintf(path, sizeof(path), "%s/%s", f->folder, names[i]);
                assert_int_equal(stat(path, &st), 0);
                assert_int_equal(st.st_mode & 0777, 0600);
        }
        snprintf(reserve, sizeof(reserve), "%s.reserve", f->path);
        assert_int_equal(stat(reserve, &st), 0);
        assert_true(st.st_blocks * 512 >= 8 << 20); /* the reserve is really there */
        assert_int_equal(store_reserve_release(s), 0);
        assert_int_equal(stat(f->path, &st), 0);
        store_close(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, numbered_setup, numbered_teardown)
int main(void)
{
        const struct CMUnitTest tests[] = {
                T(test_flipped_bytes),     T(test_truncated_file),    T(test_lost_write_ahead_log),
                T(test_rows_that_changed), T(test_backup_put_back),   T(test_another_programs_database),
                T(test_a_newer_schema),    T(test_files_are_private),
        };

        thorough = getenv("DROVER_CHECK_LONG") != NULL;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
