/* The PostgreSQL store on bad days: the line cut at any byte of what goes either way, so that commits are
 * lost with and without their answers; a line that is silent and comes alive again; the process killed; a
 * database that is full, is damaged, is not ours, or has lost what was acknowledged. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "numbered.h"
#include "postgres_help.h"
#include "store/store_postgres.h"
#include "store_help.h"

#define BATCHES 10

static bool thorough; /* DROVER_CHECK_LONG */

static int setup(void **state)
{
        struct fixture *f = mem_new(struct fixture);

        f->folder = temp_folder();
        f->address = postgres_new_address();
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        temp_folder_remove(f->folder);
        free(f->address);
        free(f);
        return 0;
}

static void expect_open(const char *address, const struct store_place *place, int result, const char *text)
{
        struct err err = {0};
        struct store *s = NULL;
        int r = store_open_at(address, place, &s, NULL, &err);

        if (r != result || (text && !strstr(err.text, text)))
                fail_msg("%d \"%s\", not %d \"%s\"", r, err.text, result, text);
        if (r == 0)
                store_close(s);
}

/* ---- the line */

/* All batches through the line, with a snapshot. A store that could not be opened is opened again: nobody has
 * been told anything yet. */
static void run_through(const char *address)
{
        MEM_CLEANUP char *snapshot = mem_alloc(700000);
        struct waiter w;
        uint64_t term = 0, seq;
        struct err err = {0};
        struct store *s;

        for (int i = 0;; i++) {
                if (store_open(address, &s, NULL, &err) == 0)
                        break;
                if (i == 3)
                        fail_msg("%s", err.text);
        }
        if (store_term_take(s, &term, &err))
                fail_msg("%s", err.text);
        waiter_init(&w);
        for (unsigned i = 0; i < BATCHES; i++) {
                waiter_append(&w, s, term, numbered_batch(i, 0));
                if (i % 4 < 2)
                        waiter_wait(&w);
                if (i != BATCHES - 3)
                        continue;
                waiter_wait(&w);
                seq = store_last_seq(s);
                memset(snapshot, (int)('a' + seq % 26), 700000);
                if (store_snapshot_put(s, term, seq, str_make(snapshot, 700000), seq - 2, &err))
                        fail_msg("%s", err.text);
        }
        waiter_wait(&w);
        if (w.result != STORE_DURABLE)
                fail_msg("%d %s", w.result, w.err.text);
        assert_int_equal(w.last_seq, seq_after(BATCHES));
        assert_false(w.disorder);
        waiter_deinit(&w);
        store_close(s);
}

/* Cuts the line behind so many bytes, oftener and oftener, up to all that an undisturbed run sends. */
static void cut_everywhere(struct fixture *f, bool from_server, unsigned points)
{
        struct line *l = line_new();
        char *through = line_address(l, f->address);
        unsigned cuts = 0;
        size_t all;

        run_through(through);
        all = line_bytes(l, from_server);
        for (unsigned i = 1; i <= points; i++) {
                struct fixture one = {.address = postgres_new_address()};
                char *cut = line_address(l, one.address);

                line_cut_after(l, from_server, all * i / points - (i == points));
                run_through(cut);
                cuts = line_cuts(l);
                line_cut_after(l, from_server, 0);
                check_reopened(&one, seq_after(BATCHES));
                free(cut);
                free(one.address);
        }
        assert_true(cuts >= points * 3 / 4);
        line_free(l);
        free(through);
}

/* Statements reach PostgreSQL in part, or all of them but the commit. */
static void test_cut_on_the_way_there(void **state)
{
        cut_everywhere(*state, false, thorough ? 400 : 40);
}

/* Commits are durable and their answers lost. */
static void test_cut_on_the_way_back(void **state)
{
        cut_everywhere(*state, true, thorough ? 400 : 60);
}

/* A line that is silent is given up. When it comes alive again the server process behind it commits what it
 * was sent, before or after the same was sent again: the batch is in once. */
static void test_silent_line(void **state)
{
        struct fixture *f = *state;
        struct line *l = line_new();
        char *through = line_address(l, f->address);
        struct fixture by_line = {.address = through};
        struct waiter w;
        struct store *s;
        uint64_t term;

        s = open_store(&by_line, &term);
        waiter_init(&w);
        for (unsigned i = 0; i < 5; i++) {
                waiter_append(&w, s, term, numbered_batch(i * 2, 0));
                waiter_wait(&w);
                store_postgres_silence_ms = 300;
                line_freeze(l, true);
                waiter_append(&w, s, term, numbered_batch(i * 2 + 1, 0));
                nanosleep(&(struct timespec){.tv_sec = 2}, NULL); /* longer than it is borne */
                line_freeze(l, false);
                waiter_wait(&w);
                store_postgres_silence_ms = 60000;
                assert_int_equal(w.result, STORE_DURABLE);
        }
        assert_int_equal(check_store(s, w.last_seq), 10);
        waiter_deinit(&w);
        store_close(s);
        check_reopened(f, seq_after(10));
        line_free(l);
        free(through);
}

/* ---- the process is killed */

static void report(void *arg, int result, uint64_t last_seq, struct store_batch *batch, const struct err *err)
{
        (void)batch;
        (void)err;
        if (result != STORE_DURABLE || write(*(int *)arg, &last_seq, sizeof(last_seq)) != sizeof(last_seq))
                _exit(3);
}

static void append_for_ever(const char *address, int to)
{
        struct store *s;
        uint64_t term;
        unsigned have = 0;

        if (store_open(address, &s, NULL, NULL) || store_term_take(s, &term, NULL))
                _exit(4);
        while (seq_after(have) < store_last_seq(s))
                have++;
        for (unsigned i = have;; i++) {
                store_append(s, term, numbered_batch(i, 200), report, &to);
                while (i % 7 == 0 && store_last_seq(s) < seq_after(i + 1))
                        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        }
}

static void test_kill_at_random(void **state)
{
        struct fixture *f = *state;
        unsigned seed = (unsigned)clock_mono_ns();

        print_message("seed %u\n", seed);
        srand(seed);
        for (int i = 0; i < (thorough ? 100 : 8); i++) {
                uint64_t seq, acknowledged = 0;
                int ends[2], status;
                pid_t pid;

                assert_int_equal(pipe(ends), 0);
                pid = fork();
                assert_true(pid >= 0);
                if (pid == 0) {
                        close(ends[0]);
                        append_for_ever(f->address, ends[1]);
                }
                close(ends[1]);
                assert_int_equal(read(ends[0], &seq, sizeof(seq)), sizeof(seq)); /* it is under way */
                nanosleep(&(struct timespec){.tv_nsec = rand() % 100000000}, NULL);
                kill(pid, SIGKILL);
                for (acknowledged = seq; read(ends[0], &seq, sizeof(seq)) == sizeof(seq);)
                        acknowledged = seq;
                close(ends[0]);
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_int_equal(WTERMSIG(status), SIGKILL);
                check_reopened(f, acknowledged);
        }
}

/* ---- what the database says */

static void test_newer_term_fences(void **state)
{
        struct fixture *f = *state;
        struct err err = {0};
        struct store *s;
        uint64_t term, last = 0;

        s = open_store(f, &term);
        append_now(s, term, numbered_batch(0, 0), NULL, NULL);
        postgres_sql(f->address, "UPDATE drover_state SET term = term + 1"); /* as another server does */
        assert_int_equal(append_now(s, term, numbered_batch(1, 0), &last, &err), STORE_STALE_TERM);
        assert_int_equal(last, seq_after(1));
        assert_int_equal(store_snapshot_put(s, term, 1, STR("old"), 0, NULL), STORE_STALE_TERM);
        assert_int_equal(append_now(s, term, numbered_batch(1, 0), &last, &err), STORE_STALE_TERM);
        store_close(s);
        check_reopened(f, seq_after(1));
}

/* What does not fit is handed back, and goes in when there is room. */
static void test_full(void **state)
{
        static const char *const states[] = {"disk_full", "read_only_sql_transaction", "out_of_memory"};
        struct fixture *f = *state;
        struct store *s;
        uint64_t term;

        s = open_store(f, &term);
        append_now(s, term, numbered_batch(0, 0), NULL, NULL);
        for (unsigned i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
                struct waiter w;
                char sql[300];

                snprintf(
                        sql, sizeof(sql),
                        "CREATE OR REPLACE FUNCTION full_now() RETURNS trigger LANGUAGE plpgsql AS"
                        " $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '%s'; END $$;"
                        "CREATE TRIGGER full_now BEFORE INSERT ON drover_history EXECUTE FUNCTION full_now()",
                        states[i]);
                postgres_sql(f->address, sql);
                waiter_init(&w);
                waiter_append(&w, s, term, numbered_batch(i + 1, 0));
                waiter_wait(&w);
                assert_int_equal(w.result, STORE_FULL);
                assert_non_null(strstr(w.err.text, "no room"));
                assert_int_equal(store_last_seq(s), seq_after(i + 1));
                postgres_sql(f->address, "DROP TRIGGER full_now ON drover_history");
                waiter_append(&w, s, term, w.returned[0]);
                waiter_wait(&w);
                assert_int_equal(w.result, STORE_DURABLE);
                waiter_deinit(&w);
        }
        assert_int_equal(check_store(s, seq_after(4)), 4);
        store_close(s);
}

/* A statement that is cancelled, and a session that is ended, are done again. */
static void test_ended_by_an_administrator(void **state)
{
        struct fixture *f = *state;
        struct waiter w;
        struct store *s;
        uint64_t term;

        s = open_store(f, &term);
        waiter_init(&w);
        for (unsigned i = 0; i < 100; i++) {
                waiter_append(&w, s, term, numbered_batch(i, 0));
                if (i % 10 == 5)
                        postgres_sql(f->address,
                                     i % 20 == 5 ? "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                                   " WHERE application_name LIKE 'droverd on %'"
                                                 : "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
                                                   " WHERE application_name LIKE 'droverd on %'");
        }
        waiter_wait(&w);
        assert_int_equal(w.result, STORE_DURABLE);
        waiter_deinit(&w);
        assert_int_equal(check_store(s, seq_after(100)), 100);
        store_close(s);
}

static int pass(void *arg, uint64_t seq, struct str record, struct err *err)
{
        (void)arg;
        (void)seq;
        (void)record;
        (void)err;
        return 0;
}

static void expect_scan(struct store *s, int result, const char *text)
{
        struct err err = {0};

        assert_int_equal(store_scan(s, 1, pass, NULL, &err), result);
        if (!strstr(err.text, text))
                fail_msg("%s", err.text);
}

static void test_damage_is_named(void **state)
{
        static const struct {
                const char *sql, *text;
        } cases[] = {
                {"UPDATE drover_log SET record = 'other' WHERE seq = 2", "the checksum of record 2 is wrong"},
                {"UPDATE drover_log SET seq = 1000 WHERE seq = 2", "record 2 is missing"},
                {"DELETE FROM drover_log WHERE seq = 2", "record 2 is missing"},
                {"DELETE FROM drover_state", "drover_state is empty"},
                {"DROP TABLE drover_log", "drover_log"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct fixture f = {.address = postgres_new_address()};
                struct store *s;
                uint64_t term;

                s = open_store(&f, &term);
                append_now(s, term, batch_of("r", 1, 5), NULL, NULL);
                postgres_sql(f.address, cases[i].sql);
                expect_scan(s, STORE_CORRUPT, cases[i].text);
                store_close(s);
                free(f.address);
        }
}

static void test_what_is_not_ours(void **state)
{
        static const struct {
                const char *sql, *text;
                int result;
        } cases[] = {
                {"UPDATE drover_state SET version = 1000", "made by a newer version", STORE_TOO_NEW},
                {"DELETE FROM drover_state", "drover_state has 0 rows", STORE_CORRUPT},
                {"DROP TABLE drover_state", "but no drover_state", STORE_CORRUPT},
                {"ALTER TABLE drover_state DROP COLUMN number", "\"number\" does not exist", STORE_CORRUPT},
                {"DROP TABLE drover_state; CREATE TABLE drover_state (a int)", "does not exist",
                 STORE_CORRUPT},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char *address = postgres_new_address();

                expect_open(address, &(struct store_place){0}, 0, NULL);
                postgres_sql(address, cases[i].sql);
                expect_open(address, &(struct store_place){0}, cases[i].result, cases[i].text);
                free(address);
        }
}

static char *address_of(const char *user, const char *database, const char *more)
{
        struct buf b = {0};

        buf_printf(&b, "postgresql://%s@/%s?host=%s%s", user, database, getenv("DROVER_TEST_POSTGRES"), more);
        return buf_take(&b);
}

static void test_addresses(void **state)
{
        struct fixture *f = *state;
        struct {
                char *address;
                int result;
                const char *text;
        } cases[] = {
                {mem_dupz("postgresql://ann:secret@[x/y"), -EINVAL, "not a valid postgresql:// URI"},
                {mem_dupz("postgresql://ann:secret@/y?sslmode=perhaps&host=/nowhere"), -ENOTCONN, "sslmode"},
                {mem_dupz("postgresql://postgres@/test?host=/nowhere"), -ENOTCONN, "/nowhere"},
                {address_of("postgres", "nosuch", ""), -ENOTCONN, "\"nosuch\" does not exist"},
                {address_of("nobody_here", "test", ""), -ENOTCONN, "\"nobody_here\" does not exist"},
                {address_of("postgres", "test", "&options=-csearch_path%3Dnosuch"), -ENOENT, "has no schema"},
                {address_of("stranger", "test", "&options=-csearch_path%3Dpublic"), -EACCES, "permission"},
        };

        postgres_sql(f->address, "DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN");
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct err err = {0};
                struct store *s;
                int r = store_open(cases[i].address, &s, NULL, &err);

                if (r != cases[i].result || !strstr(err.text, cases[i].text) || strstr(err.text, "secret"))
                        fail_msg("%s: %d \"%s\"", cases[i].address, r, err.text);
                free(cases[i].address);
        }
}

static char *beside(const struct fixture *f, const char *name)
{
        struct buf b = {0};

        buf_printf(&b, "%s/%s", f->folder, name);
        return buf_take(&b);
}

/* A folder knows its log, and a log is nobody else's. */
static void test_whose_log_it_is(void **state)
{
        struct fixture *f = *state;
        MEM_CLEANUP char *one = beside(f, "one"), *two = beside(f, "two"), *id = beside(f, "one.id");
        MEM_CLEANUP char *other = postgres_new_address();
        struct store_place at_one = {.beside = one}, at_two = {.beside = two};
        struct store *s;
        uint64_t term;

        assert_int_equal(store_open_at(f->address, &at_one, &s, NULL, NULL), 0);
        assert_int_equal(store_term_take(s, &term, NULL), 0);
        append_now(s, term, numbered_batch(0, 0), NULL, NULL);
        store_close(s);
        expect_open(f->address, &at_one, 0, NULL);
        expect_open(f->address, &at_two, STORE_FOREIGN, "two.id does not say that it is this one's");
        expect_open(other, &at_two, 0, NULL);
        expect_open(f->address, &at_two, STORE_FOREIGN, "is the log of another server");
        expect_open(other, &at_one, STORE_FOREIGN, "one.id");
        assert_int_equal(unlink(id), 0);
        expect_open(f->address, &at_one, STORE_FOREIGN, "one.id does not say");
}

/* A database that ends before what was acknowledged is refused, while it is used and when it is opened. */
static void test_lost_records(void **state)
{
        struct fixture *f = *state;
        MEM_CLEANUP char *one = beside(f, "one"), *mark = beside(f, "one.mark");
        struct store_place at_one = {.beside = one};
        struct err err = {0};
        struct store *s;
        uint64_t term;

        assert_int_equal(store_open_at(f->address, &at_one, &s, NULL, NULL), 0);
        assert_false(store_lost(s));
        assert_int_equal(store_term_take(s, &term, NULL), 0);
        append_now(s, term, batch_of("r", 1, 5), NULL, NULL);
        append_now(s, term, batch_of("r", 6, 1), NULL, NULL);
        postgres_sql(f->address, "DELETE FROM drover_log WHERE seq = 6;"
                                 "UPDATE drover_state SET number = number - 1;"
                                 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                 " WHERE application_name LIKE 'droverd on %'");
        assert_int_equal(append_now(s, term, batch_of("r", 7, 1), NULL, &err), STORE_CORRUPT);
        if (!strstr(err.text, "ends with record 5, and 6 was durable in it"))
                fail_msg("%s", err.text);
        store_close(s);
        expect_open(f->address, &at_one, STORE_CORRUPT, "ends with record 5, and 6 was durable in it");
        assert_int_equal(unlink(mark), 0);
        assert_int_equal(store_open_at(f->address, &at_one, &s, NULL, NULL), 0);
        assert_true(store_lost(s));
        assert_int_equal(store_term_take(s, &term, NULL), 0);
        assert_int_equal(append_now(s, term, batch_of("r", 6, 1), NULL, NULL), STORE_DURABLE);
        store_close(s);
        expect_open(f->address, &at_one, 0, NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_cut_on_the_way_there, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cut_on_the_way_back, setup, teardown),
                cmocka_unit_test_setup_teardown(test_silent_line, setup, teardown),
                cmocka_unit_test_setup_teardown(test_kill_at_random, setup, teardown),
                cmocka_unit_test_setup_teardown(test_newer_term_fences, setup, teardown),
                cmocka_unit_test_setup_teardown(test_full, setup, teardown),
                cmocka_unit_test_setup_teardown(test_ended_by_an_administrator, setup, teardown),
                cmocka_unit_test(test_damage_is_named),
                cmocka_unit_test(test_what_is_not_ours),
                cmocka_unit_test_setup_teardown(test_addresses, setup, teardown),
                cmocka_unit_test_setup_teardown(test_whose_log_it_is, setup, teardown),
                cmocka_unit_test_setup_teardown(test_lost_records, setup, teardown),
        };

        thorough = getenv("DROVER_CHECK_LONG") != NULL;
        return cmocka_run_group_tests_name("postgresql", tests, NULL, NULL);
}
