/* What durability costs. Commits of one small record each: by SQLite itself on one connection, by
 * store_append one after the other, and with 64 on their way; history rows; scanning a long log. Each rate is
 * measured for a second or so, on $TMPDIR (or /var/tmp: it must be a real disk). Prints `name value unit
 * higher|lower` lines. */
#include <fcntl.h>
#include <semaphore.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "store/store.h"

#define RECORD  STR("an event of about the size of a submit of one job: seventy bytes or so")
#define RATE_NS 1500000000LL
#define ROUNDS  10
#define SCANNED 1000000

static void line(const char *name, double value, const char *unit, const char *better)
{
        printf("%s %.6g %s %s\n", name, value, unit, better);
        fflush(stdout);
}

static void must(int r, const char *what)
{
        if (r == 0)
                return;
        fprintf(stderr, "bench_store: %s: %d\n", what, r);
        exit(1);
}

/* The yardstick: the same settings, nothing but SQLite. */
struct plain {
        sqlite3 *db;
        sqlite3_stmt *begin, *insert, *commit;
};

static void plain_open(struct plain *p, const char *folder)
{
        BUF_CLEANUP struct buf path = {0};

        buf_printf(&path, "%s/plain.db", folder);
        must(sqlite3_open(buf_z(&path), &p->db), "open");
        must(sqlite3_exec(p->db,
                          "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                          "CREATE TABLE log (seq INTEGER PRIMARY KEY, crc INTEGER, record BLOB)",
                          NULL, NULL, NULL),
             "create");
        must(sqlite3_prepare_v2(p->db, "BEGIN IMMEDIATE", -1, &p->begin, NULL), "begin");
        must(sqlite3_prepare_v2(p->db, "INSERT INTO log (crc, record) VALUES (7, ?)", -1, &p->insert, NULL),
             "insert");
        must(sqlite3_prepare_v2(p->db, "COMMIT", -1, &p->commit, NULL), "commit");
}

static void plain_close(struct plain *p)
{
        sqlite3_finalize(p->begin);
        sqlite3_finalize(p->insert);
        sqlite3_finalize(p->commit);
        sqlite3_close(p->db);
}

static double plain_rate(struct plain *p, int64_t for_ns)
{
        int64_t start = clock_mono_ns(), n = 0;

        while (clock_mono_ns() - start < for_ns) {
                sqlite3_step(p->begin);
                sqlite3_reset(p->begin);
                sqlite3_bind_blob(p->insert, 1, RECORD.p, (int)RECORD.n, SQLITE_STATIC);
                sqlite3_step(p->insert);
                sqlite3_reset(p->insert);
                must(sqlite3_step(p->commit) != SQLITE_DONE, "commit");
                sqlite3_reset(p->commit);
                n++;
        }
        return (double)n * 1e9 / (double)(clock_mono_ns() - start);
}

struct load {
        struct store *s;
        uint64_t term;
        sem_t room;
        uint64_t done;
};

static void done(void *arg, int result, uint64_t last_seq, struct store_batch *batch, const struct err *err)
{
        struct load *l = arg;

        (void)last_seq;
        (void)batch;
        (void)err;
        must(result, "append");
        l->done++;
        sem_post(&l->room);
}

/* Appends with so many on their way at most. Batches a second. */
static double rate(struct load *l, unsigned outstanding, const struct past_job *history, int64_t for_ns)
{
        int64_t start = clock_mono_ns();

        sem_init(&l->room, 0, outstanding);
        l->done = 0;
        while (clock_mono_ns() - start < for_ns) {
                struct store_batch *b = store_batch_new();

                store_batch_event(b, RECORD);
                if (history)
                        store_batch_history(b, history);
                sem_wait(&l->room);
                store_append(l->s, l->term, b, done, l);
        }
        for (unsigned i = 0; i < outstanding; i++)
                sem_wait(&l->room);
        start = clock_mono_ns() - start;
        sem_destroy(&l->room);
        return (double)l->done * 1e9 / (double)start;
}

static int count(void *arg, uint64_t seq, struct str record, struct err *err)
{
        (void)seq;
        (void)err;
        *(uint64_t *)arg += record.n > 0;
        return 0;
}

static void bench_scan(struct load *l)
{
        uint64_t from = store_last_seq(l->s) + 1, seen = 0;
        int64_t start;

        sem_init(&l->room, 0, 0);
        for (unsigned i = 0; i < SCANNED / 10000; i++) {
                struct store_batch *b = store_batch_new();

                for (unsigned k = 0; k < 10000; k++)
                        store_batch_event(b, RECORD);
                store_append(l->s, l->term, b, done, l);
        }
        for (unsigned i = 0; i < SCANNED / 10000; i++)
                sem_wait(&l->room);
        sem_destroy(&l->room);
        start = clock_mono_ns();
        must(store_scan(l->s, from, count, &seen, NULL), "scan");
        must(seen != SCANNED, "count");
        line("store_scan_million_s", (double)(clock_mono_ns() - start) / 1e9, "s", "lower");
}

/* A million finished jobs: two owners, a thousand requests and one of 500,000. */
static void fill_history(struct load *l, struct str data)
{
        sem_init(&l->room, 0, 0);
        for (unsigned i = 0; i < SCANNED / 10000; i++) {
                struct store_batch *b = store_batch_new();

                for (uint32_t k = 0; k < 10000; k++) {
                        uint32_t n = i * 10000 + k;
                        struct past_job h = {.request = 1000000 + (n % 2 ? 0 : 1 + n / 1000),
                                             .member = n,
                                             .owner = n % 4 < 2 ? STR("bob@local") : STR("eve@local"),
                                             .ended_ms = 1800000000000 + n,
                                             .data = data};

                        store_batch_history(b, &h);
                }
                store_append(l->s, l->term, b, done, l);
        }
        for (unsigned i = 0; i < SCANNED / 10000; i++)
                sem_wait(&l->room);
        sem_destroy(&l->room);
}

static int three(void *arg, uint64_t row, const struct past_job *h)
{
        unsigned *left = arg;

        (void)row;
        (void)h;
        return --*left == 0;
}

static void bench_history(struct load *l, const char *name, struct store_query q)
{
        int64_t start = clock_mono_ns();
        unsigned left = 3;

        must(store_history_query(l->s, &q, three, &left, NULL) < 0, "history");
        must(left != 0, "rows of history");
        line(name, (double)(clock_mono_ns() - start) / 1e6, "ms", "lower");
}

int main(void)
{
        const char *base = getenv("TMPDIR");
        MEM_CLEANUP char *folder = NULL;
        BUF_CLEANUP struct buf text = {0};
        BUF_CLEANUP struct buf ad = {0};
        struct past_job h = {.request = 7, .owner = STR("ann@local"), .ended_ms = 1800000000000};
        struct load l = {0};
        double plain = 0, serial = 0;
        struct plain p;

        buf_printf(&text, "%s/drover-bench-XXXXXX", base && *base ? base : "/var/tmp");
        folder = buf_take(&text);
        must(mkdtemp(folder) == NULL, "folder");
        plain_open(&p, folder);
        buf_printf(&text, "sqlite:%s/drover.db", folder);
        must(store_open(buf_z(&text), &l.s, NULL, NULL), "store_open");
        must(store_term_take(l.s, &l.term, NULL), "term");
        for (int i = 0; i < ROUNDS;
             i++) { /* in turns, because the disk is not the same from second to second */
                plain += plain_rate(&p, RATE_NS / ROUNDS) / ROUNDS;
                serial += rate(&l, 1, NULL, RATE_NS / ROUNDS) / ROUNDS;
        }
        plain_close(&p);
        line("sqlite_commits_per_s", plain, "/s", "higher");
        line("store_serial_per_s", serial, "/s", "higher");
        line("store_serial_ratio", serial / plain, "ratio", "higher");
        line("store_64_per_s", rate(&l, 64, NULL, RATE_NS), "/s", "higher");
        line("store_1024_per_s", rate(&l, 1024, NULL, RATE_NS), "/s", "higher");
        while (ad.n < 1000)
                buf_addz(&ad, "RequestCpus = 1; ");
        h.data = buf_view(&ad);
        line("store_history_rows_per_s", rate(&l, 1024, &h, RATE_NS), "/s", "higher");
        bench_scan(&l);
        fill_history(&l, str_head(h.data, 300));
        bench_history(&l, "history_last_3_of_million_ms", (struct store_query){0});
        bench_history(&l, "history_last_3_of_owner_ms", (struct store_query){.owner = STR("bob@local")});
        bench_history(&l, "history_last_3_of_request_ms", (struct store_query){.request = 1000000});
        store_close(l.s);
        must(fs_remove_tree(AT_FDCWD, folder), "remove");
        return 0;
}
