/* The conformance suite of the store: the same tests on every back end, named by the argument. What only a
 * store that survives its closing can show is skipped on the others. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>
#include <unistd.h>

#include "base/pack.h"
#include "postgres_help.h"
#include "store_help.h"

static const struct kind {
        const char *name;
        const char *prefix; /* of the address; NULL: postgres_new_address() */
        bool survives;
} kinds[] = {
        {"memory", "memory:", false},
        {"sqlite", "sqlite:", true},
        {"sqlite-exclusive", "sqlite-exclusive:", true},
        {"postgresql", NULL, true},
};
static const struct kind *kind;

struct fixture {
        char *folder, *address;
        struct store *s;
        uint64_t term;
};

static void start(struct fixture *f)
{
        struct err err = {0};
        bool network = true;
        int r = store_open(f->address, &f->s, &network, &err);

        if (r)
                fail_msg("%d %s", r, err.text);
        assert_false(network);
        assert_int_equal(store_term_take(f->s, &f->term, &err), 0);
}

static int setup(void **state)
{
        struct fixture *f = mem_new(struct fixture);
        struct buf b = {0};

        f->folder = temp_folder();
        if (kind->prefix)
                buf_addz(&b, kind->prefix);
        if (kind->prefix && kind->survives)
                buf_printf(&b, "%s/drover.db", f->folder);
        f->address = kind->prefix ? buf_take(&b) : postgres_new_address();
        start(f);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        store_close(f->s);
        temp_folder_remove(f->folder);
        free(f->address);
        free(f);
        return 0;
}

static void restart(struct fixture *f)
{
        store_close(f->s);
        start(f);
}

/* Scans and checks that records are "<word> <number>" with the number they have. */
struct expect {
        const char *word;
        uint64_t first, next;
};
static int expect_record(void *arg, uint64_t seq, struct str record, struct err *err)
{
        struct expect *e = arg;
        char want[64];

        (void)err;
        if (!e->first)
                e->first = e->next = seq;
        snprintf(want, sizeof(want), "%s %llu", e->word, (unsigned long long)seq);
        assert_int_equal(seq, e->next);
        assert_true(str_eqz(record, want));
        e->next++;
        return 0;
}

static uint64_t scan_count(struct store *s, const char *word, uint64_t from)
{
        struct expect e = {.word = word};
        struct err err = {0};

        assert_int_equal(store_scan(s, from, expect_record, &e, &err), 0);
        return e.next - e.first;
}

static void test_empty(void **state)
{
        struct fixture *f = *state;
        BUF_CLEANUP struct buf data = {0};
        uint64_t seq = 7;

        assert_int_equal(store_last_seq(f->s), 0);
        assert_int_equal(scan_count(f->s, "x", 1), 0);
        assert_int_equal(scan_count(f->s, "x", 0), 0);
        assert_int_equal(store_snapshot_get(f->s, &seq, &data, NULL), STORE_NOT_FOUND);
        assert_int_equal(seq, 7);
        assert_int_equal(store_blob_get(f->s, STR("none"), &data, NULL), STORE_NOT_FOUND);
}

static void test_append(void **state)
{
        struct fixture *f = *state;
        uint64_t last = 0;

        assert_int_equal(append_now(f->s, f->term, batch_of("r", 1, 3), &last, NULL), STORE_DURABLE);
        assert_int_equal(last, 3);
        assert_int_equal(append_now(f->s, f->term, batch_of("r", 4, 1), &last, NULL), STORE_DURABLE);
        assert_int_equal(last, 4);
        assert_int_equal(store_last_seq(f->s), 4);
        assert_int_equal(scan_count(f->s, "r", 1), 4);
        assert_int_equal(scan_count(f->s, "r", 3), 2);
        assert_int_equal(scan_count(f->s, "r", 5), 0);
        assert_int_equal(scan_count(f->s, "r", 500), 0);
        /* A batch without records is told the last number before it. */
        assert_int_equal(append_now(f->s, f->term, store_batch_new(), &last, NULL), STORE_DURABLE);
        assert_int_equal(last, 4);
}

static void test_batch_says_what_it_holds(void **state)
{
        struct store_batch *b = store_batch_new();
        size_t n;

        (void)state;
        assert_true(store_batch_empty(b));
        store_batch_event(b, STR("12345"));
        assert_false(store_batch_empty(b));
        n = store_batch_bytes(b);
        assert_true(n >= 5);
        store_batch_blob_delete(b, STR("x"));
        assert_true(store_batch_bytes(b) > n);
        store_batch_free(b);
        store_batch_free(NULL);
}

static void test_many_batches_keep_their_order(void **state)
{
        struct fixture *f = *state;
        struct waiter w;
        uint64_t next = 1;

        waiter_init(&w);
        for (unsigned i = 0; i < 2000; i++) {
                unsigned n = i % 4;

                waiter_append(&w, f->s, f->term, batch_of("m", next, n));
                next += n;
        }
        waiter_wait(&w);
        assert_int_equal(w.result, STORE_DURABLE);
        assert_false(w.disorder);
        assert_int_equal(w.last_seq, next - 1);
        assert_int_equal(scan_count(f->s, "m", 1), next - 1);
        waiter_deinit(&w);
}

static void test_records_may_hold_any_bytes(void **state)
{
        struct fixture *f = *state;
        struct store_batch *b = store_batch_new();
        BUF_CLEANUP struct buf big = {0};
        BUF_CLEANUP struct buf data = {0};

        for (int i = 0; i < 300000; i++)
                buf_char(&big, (char)(i * 7 + (i >> 8)));
        store_batch_event(b, STR_NONE);
        store_batch_event(b, buf_view(&big));
        store_batch_blob_put(b, STR("a\0b"), buf_view(&big));
        store_batch_blob_put(b, STR("empty"), STR_NONE);
        assert_int_equal(append_now(f->s, f->term, b, NULL, NULL), STORE_DURABLE);
        assert_int_equal(store_last_seq(f->s), 2);
        assert_int_equal(store_blob_get(f->s, STR("a\0b"), &data, NULL), 0);
        assert_true(str_eq(buf_view(&data), buf_view(&big)));
        assert_int_equal(store_blob_get(f->s, STR("a"), &data, NULL), STORE_NOT_FOUND);
        assert_int_equal(store_blob_get(f->s, STR("empty"), &data, NULL), 0);
        assert_int_equal(data.n, 0);
}

static int stop_at_three(void *arg, uint64_t seq, struct str record, struct err *err)
{
        (void)arg;
        (void)record;
        return seq == 3 ? err_set(err, 42, "three") : 0;
}

static void test_scan_returns_what_stopped_it(void **state)
{
        struct fixture *f = *state;
        struct err err = {0};

        append_now(f->s, f->term, batch_of("r", 1, 5), NULL, NULL);
        assert_int_equal(store_scan(f->s, 1, stop_at_three, NULL, &err), 42);
        assert_string_equal(err.text, "three");
}

static void test_old_term_is_refused(void **state)
{
        struct fixture *f = *state;
        uint64_t newer, last = 0;
        struct err err = {0};

        assert_int_equal(append_now(f->s, f->term, batch_of("t", 1, 1), NULL, NULL), STORE_DURABLE);
        assert_int_equal(store_term_take(f->s, &newer, NULL), 0);
        assert_true(newer > f->term);
        assert_int_equal(append_now(f->s, f->term, batch_of("t", 9, 9), &last, &err), STORE_STALE_TERM);
        assert_int_equal(last, 1);
        assert_true(err.text[0]);
        assert_int_equal(store_snapshot_put(f->s, f->term, 1, STR("old"), 0, NULL), STORE_STALE_TERM);
        assert_int_equal(append_now(f->s, newer, batch_of("t", 2, 1), NULL, NULL), STORE_DURABLE);
        assert_int_equal(scan_count(f->s, "t", 1), 2);
}

static void put_history(struct store_batch *b, uint64_t request, uint32_t member, const char *owner,
                        int64_t ended)
{
        char data[64];

        snprintf(data, sizeof(data), "[ job = \"%llu.%u\" ]", (unsigned long long)request, member);
        store_batch_history(b, &(struct past_job){.request = request,
                                                  .member = member,
                                                  .state = 4,
                                                  .submitted_ms = ended - 1000,
                                                  .ended_ms = ended,
                                                  .exit_code = member == 3 ? -9 : (int)member,
                                                  .owner = str_of(owner),
                                                  .data = str_of(data)});
}

struct rows {
        unsigned count, stop_after;
        uint64_t first, last; /* row ids */
        uint64_t member_sum;
};
static int count_row(void *arg, uint64_t row, const struct past_job *h)
{
        struct rows *c = arg;
        char data[64];

        snprintf(data, sizeof(data), "[ job = \"%llu.%u\" ]", (unsigned long long)h->request, h->member);
        assert_true(str_eqz(h->data, data));
        assert_int_equal(h->state, 4);
        assert_int_equal(h->exit_code, h->member == 3 ? -9 : (int)h->member);
        assert_int_equal(h->ended_ms - h->submitted_ms, 1000);
        if (!c->count)
                c->first = row;
        else
                assert_true(row < c->last);
        c->last = row;
        c->member_sum += h->member;
        return ++c->count == c->stop_after ? 5 : 0;
}

static unsigned count_rows(struct store *s, struct store_query q)
{
        struct rows c = {0};

        assert_int_equal(store_history_query(s, &q, count_row, &c, NULL), 0);
        return c.count;
}

static void test_history(void **state)
{
        struct fixture *f = *state;
        struct store_batch *b = store_batch_new();
        struct store_query page = {.owner = STR("b@x"), .limit = 7};
        struct rows c;
        unsigned seen = 0;

        for (uint32_t i = 0; i < 100; i++)
                put_history(b, 1 + i / 50, i % 50, i % 2 ? "a@x" : "b@x", 1000 + i * 10);
        assert_int_equal(append_now(f->s, f->term, b, NULL, NULL), STORE_DURABLE);

        assert_int_equal(count_rows(f->s, (struct store_query){0}), 100);
        assert_int_equal(count_rows(f->s, (struct store_query){.limit = 3}), 3);
        assert_int_equal(count_rows(f->s, (struct store_query){.request = 2}), 50);
        assert_int_equal(count_rows(f->s, (struct store_query){.request = 3}), 0);
        assert_int_equal(
                count_rows(f->s, (struct store_query){.request = 2, .has_member = true, .member = 0}), 1);
        assert_int_equal(count_rows(f->s, (struct store_query){.request = 2,
                                                               .has_member = true,
                                                               .member = 10,
                                                               .member_end = 25}),
                         15);
        assert_int_equal(count_rows(f->s, (struct store_query){.owner = STR("a@x")}), 50);
        assert_int_equal(count_rows(f->s, (struct store_query){.owner = STR("a")}), 0);
        assert_int_equal(count_rows(f->s, (struct store_query){.owner = STR("a@x"), .request = 1}), 25);
        do {
                c = (struct rows){0};
                assert_int_equal(store_history_query(f->s, &page, count_row, &c, NULL), 0);
                seen += c.count;
                page.before = c.last;
        } while (c.count == 7);
        assert_int_equal(seen, 50);
        c = (struct rows){.stop_after = 2};
        assert_int_equal(store_history_query(f->s, &(struct store_query){0}, count_row, &c, NULL), 5);
        assert_int_equal(c.count, 2);
}

static int take_row(void *arg, uint64_t row, const struct past_job *h)
{
        (void)h;
        *(uint64_t *)arg = row;
        return 0;
}

static uint64_t one_row(struct store *s, bool oldest)
{
        uint64_t row = 0;
        int r = store_history_query(s, &(struct store_query){.oldest = oldest, .limit = 1}, take_row, &row,
                                    NULL);

        assert_int_equal(r, 0);
        return row;
}

static void test_history_is_cut(void **state)
{
        struct fixture *f = *state;
        struct store_batch *b = store_batch_new();
        uint64_t first, last;

        for (uint32_t i = 0; i < 100; i++)
                put_history(b, 1 + i / 50, i % 50, i % 2 ? "a@x" : "b@x", 1000 + i * 10);
        assert_int_equal(append_now(f->s, f->term, b, NULL, NULL), STORE_DURABLE);
        first = one_row(f->s, true);
        last = one_row(f->s, false);
        assert_int_equal(last - first, 99);

        b = store_batch_new();
        store_batch_history_cut(b, first + 29);
        put_history(b, 3, 0, "a@x", 9000);
        assert_int_equal(append_now(f->s, f->term, b, NULL, NULL), STORE_DURABLE);
        assert_int_equal(one_row(f->s, true), first + 30);
        assert_int_equal(one_row(f->s, false), last + 1);
        assert_int_equal(count_rows(f->s, (struct store_query){0}), 71);
        assert_int_equal(count_rows(f->s, (struct store_query){.request = 1}), 20);
        assert_int_equal(count_rows(f->s, (struct store_query){.before = first + 40}), 10);
        assert_int_equal(count_rows(f->s, (struct store_query){.before = first + 10}), 0);
        assert_int_equal(count_rows(f->s, (struct store_query){.owner = STR("b@x")}), 35);

        b = store_batch_new();
        store_batch_history_cut(b, first + 10); /* gone already */
        assert_int_equal(append_now(f->s, f->term, b, NULL, NULL), STORE_DURABLE);
        assert_int_equal(count_rows(f->s, (struct store_query){0}), 71);
        b = store_batch_new();
        store_batch_history_cut(b, last + 1000);
        assert_int_equal(append_now(f->s, f->term, b, NULL, NULL), STORE_DURABLE);
        assert_int_equal(count_rows(f->s, (struct store_query){0}), 0);
}

static int add_name(void *arg, struct str name)
{
        buf_str(arg, name);
        buf_char(arg, ' ');
        return str_eqz(name, "stop/2") ? 3 : 0;
}

static void expect_blobs(struct store *s, struct str prefix, int result, const char *names)
{
        BUF_CLEANUP struct buf b = {0};

        assert_int_equal(store_blob_list(s, prefix, add_name, &b, NULL), result);
        assert_string_equal(buf_z(&b), names);
}

static void expect_blobs_from(struct store *s, struct str prefix, struct str from, const char *names)
{
        BUF_CLEANUP struct buf b = {0};

        assert_int_equal(store_blob_list_from(s, prefix, from, add_name, &b, NULL), 0);
        assert_string_equal(buf_z(&b), names);
}

static void test_blobs(void **state)
{
        struct fixture *f = *state;
        struct store_batch *b = store_batch_new();
        BUF_CLEANUP struct buf data = {0};

        store_batch_blob_put(b, STR("token/2"), STR("two"));
        store_batch_blob_put(b, STR("token/1"), STR("one"));
        store_batch_blob_put(b, STR("token0"), STR("beyond"));
        store_batch_blob_put(b, STR("stop/1"), STR(""));
        store_batch_blob_put(b, STR("stop/2"), STR(""));
        store_batch_blob_put(b, STR("stop/3"), STR(""));
        store_batch_blob_put(b, STR("token/2"), STR("two again"));
        store_batch_blob_delete(b, STR("absent"));
        assert_int_equal(append_now(f->s, f->term, b, NULL, NULL), STORE_DURABLE);
        expect_blobs(f->s, STR("token/"), 0, "token/1 token/2 ");
        expect_blobs(f->s, STR("none"), 0, "");
        expect_blobs(f->s, STR("stop/"), 3, "stop/1 stop/2 ");
        expect_blobs(f->s, STR_NONE, 3, "stop/1 stop/2 ");
        expect_blobs_from(f->s, STR("token/"), STR("token/1"), "token/1 token/2 ");
        expect_blobs_from(f->s, STR("token/"), STR("token/1\0"), "token/2 ");
        expect_blobs_from(f->s, STR("token/"), STR("token/3"), "");
        expect_blobs_from(f->s, STR("token/"), STR("a"), "token/1 token/2 ");
        assert_int_equal(store_blob_get(f->s, STR("token/2"), &data, NULL), 0);
        assert_string_equal(buf_z(&data), "two again");
        b = store_batch_new();
        store_batch_blob_delete(b, STR("token/1"));
        store_batch_blob_put(b, STR("token/2"), STR("2"));
        assert_int_equal(append_now(f->s, f->term, b, NULL, NULL), STORE_DURABLE);
        expect_blobs(f->s, STR("token"), 0, "token/2 token0 ");
        assert_int_equal(store_blob_get(f->s, STR("token/1"), &data, NULL), STORE_NOT_FOUND);
        assert_int_equal(store_blob_get(f->s, STR("token/2"), &data, NULL), 0);
        assert_string_equal(buf_z(&data), "2");
}

/* Blobs of a start: read in the order in which they were put, in another one, and with some that are not
 * there. */
static void test_blobs_in_order(void **state)
{
        static const unsigned orders[][8] = {{0, 1, 2, 3, 4, 5, 6, 7},
                                             {7, 6, 5, 4, 3, 2, 1, 0},
                                             {3, 3, 4, 2, 5, 9, 6, 7},
                                             {9, 0, 8, 1, 9, 2, 7, 7}};
        struct fixture *f = *state;
        struct store_batch *b = store_batch_new();
        BUF_CLEANUP struct buf data = {0}, name = {0}, big = {0};

        while (big.n < 100000)
                buf_addz(&big, "a long one ");
        for (unsigned i = 0; i < 8; i++) {
                buf_reset(&name);
                buf_printf(&name, "request/%u", i + 7); /* 7 to 14: not the order of their names */
                store_batch_blob_put(b, buf_view(&name), i == 4 ? buf_view(&big) : buf_view(&name));
                if (i == 2)
                        store_batch_blob_put(b, STR("between"), buf_view(&big));
        }
        assert_int_equal(append_now(f->s, f->term, b, NULL, NULL), STORE_DURABLE);
        b = store_batch_new();
        store_batch_blob_put(b, STR("request/8"), STR("again"));
        assert_int_equal(append_now(f->s, f->term, b, NULL, NULL), STORE_DURABLE);
        for (unsigned round = 0; round < 2; round++) { /* and again, without */
                if (round == 0)
                        store_blobs_begin(f->s);
                for (size_t k = 0; k < 32; k++) {
                        unsigned i = orders[k / 8][k % 8];

                        buf_reset(&name);
                        buf_printf(&name, "request/%u", i + 7);
                        assert_int_equal(store_blob_get(f->s, buf_view(&name), &data, NULL),
                                         i < 8 ? 0 : STORE_NOT_FOUND);
                        if (i == 1)
                                assert_string_equal(buf_z(&data), "again");
                        else if (i < 8)
                                assert_true(
                                        str_eq(buf_view(&data), i == 4 ? buf_view(&big) : buf_view(&name)));
                }
                if (round == 0)
                        store_blobs_end(f->s);
        }
        store_blobs_end(f->s); /* does nothing */
        b = store_batch_new();
        store_batch_blob_put(b, STR("request/7"), STR("later"));
        assert_int_equal(append_now(f->s, f->term, b, NULL, NULL), STORE_DURABLE);
        assert_int_equal(store_blob_get(f->s, STR("request/7"), &data, NULL), 0);
        assert_string_equal(buf_z(&data), "later");
}

static void fill(struct buf *b, size_t n, unsigned seed)
{
        while (b->n < n)
                buf_printf(b, "%u ", seed = seed * 1664525 + 1013904223);
        buf_truncate(b, n);
}

static void test_snapshots(void **state)
{
        struct fixture *f = *state;
        BUF_CLEANUP struct buf big = {0};
        BUF_CLEANUP struct buf data = {0};
        uint64_t seq = 0;

        append_now(f->s, f->term, batch_of("s", 1, 30), NULL, NULL);
        assert_int_equal(store_snapshot_put(f->s, f->term, 31, STR("ahead"), 0, NULL), -EINVAL);
        assert_int_equal(store_snapshot_put(f->s, f->term, 10, STR("cut too far"), 11, NULL), -EINVAL);
        assert_int_equal(store_snapshot_put(f->s, f->term, 10, STR("ten"), 5, NULL), 0);
        assert_int_equal(store_snapshot_get(f->s, &seq, &data, NULL), 0);
        assert_int_equal(seq, 10);
        assert_string_equal(buf_z(&data), "ten");
        assert_int_equal(scan_count(f->s, "s", 1), 25);
        assert_int_equal(scan_count(f->s, "s", 6), 25);
        assert_int_equal(scan_count(f->s, "s", 11), 20);

        fill(&big, 5000001, 1); /* many slices, and a last one that is not full */
        assert_int_equal(store_snapshot_put(f->s, f->term, 30, buf_view(&big), 30, NULL), 0);
        assert_int_equal(store_snapshot_get(f->s, &seq, &data, NULL), 0);
        assert_int_equal(seq, 30);
        assert_true(str_eq(buf_view(&data), buf_view(&big)));
        assert_int_equal(scan_count(f->s, "s", 1), 0);
        if (kind->survives)
                restart(f);
        else
                assert_int_equal(store_last_seq(f->s), 30);
        assert_int_equal(store_last_seq(f->s), 30); /* although no record is left */
        append_now(f->s, f->term, batch_of("s", 31, 1), &seq, NULL);
        assert_int_equal(seq, 31);
        assert_int_equal(scan_count(f->s, "s", 1), 1);
        assert_int_equal(store_snapshot_put(f->s, f->term, 31, STR_NONE, 0, NULL), 0);
        assert_int_equal(store_snapshot_get(f->s, &seq, &data, NULL), 0);
        assert_int_equal(seq, 31);
        assert_int_equal(data.n, 0);
}

static void test_appends_go_on_beside_a_snapshot(void **state)
{
        struct fixture *f = *state;
        BUF_CLEANUP struct buf big = {0};
        BUF_CLEANUP struct buf data = {0};
        struct waiter w;
        uint64_t seq;

        append_now(f->s, f->term, batch_of("a", 1, 10), NULL, NULL);
        fill(&big, 3000000, 2);
        waiter_init(&w);
        for (unsigned i = 0; i < 50; i++)
                waiter_append(&w, f->s, f->term, batch_of("a", 11 + i, 1));
        assert_int_equal(store_snapshot_put(f->s, f->term, 10, buf_view(&big), 10, NULL), 0);
        waiter_wait(&w);
        assert_int_equal(w.last_seq, 60);
        waiter_deinit(&w);
        assert_int_equal(scan_count(f->s, "a", 11), 50);
        assert_int_equal(store_snapshot_get(f->s, &seq, &data, NULL), 0);
        assert_int_equal(seq, 10);
        assert_true(str_eq(buf_view(&data), buf_view(&big)));
}

struct reading {
        struct store *s;
        atomic_bool stop;
        atomic_uint scans;
};
static void *read_always(void *arg)
{
        struct reading *rd = arg;
        uint64_t before = 0;

        while (!atomic_load(&rd->stop)) {
                uint64_t least = store_last_seq(rd->s), n = scan_count(rd->s, "c", 1);

                assert_true(n >= least && n >= before);
                before = n;
                atomic_fetch_add(&rd->scans, 1);
                /* a lock that is always held for reading may keep a writer out for ever */
                nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        return NULL;
}

static void test_readers_beside_appends(void **state)
{
        struct fixture *f = *state;
        struct reading rd = {.s = f->s};
        pthread_t threads[3];
        struct waiter w;

        for (int i = 0; i < 3; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, read_always, &rd), 0);
        waiter_init(&w);
        for (unsigned i = 0; i < 200 || (atomic_load(&rd.scans) < 10 && i < 5000); i++) {
                waiter_append(&w, f->s, f->term, batch_of("c", 1 + i, 1));
                if (i % 8 == 0)
                        waiter_wait(&w);
        }
        waiter_wait(&w);
        waiter_deinit(&w);
        atomic_store(&rd.stop, true);
        for (int i = 0; i < 3; i++)
                pthread_join(threads[i], NULL);
        assert_true(atomic_load(&rd.scans) >= 10);
}

/* Another process reads what this one writes; here it is another store of the same one. */
static void test_it_is_followed(void **state)
{
        struct fixture *f = *state;
        const struct store_place none = {0};
        BUF_CLEANUP struct buf data = {0};
        struct store_batch *b = batch_of("f", 1, 3);
        struct store *follower = NULL;
        struct err err = {0};
        uint64_t seq = 0;
        int r;

        store_batch_blob_put(b, STR("b"), STR("1"));
        append_now(f->s, f->term, b, NULL, NULL);
        r = store_follow(f->address, &none, &follower, &err);
        if (strcmp(kind->name, "sqlite") != 0 && strcmp(kind->name, "postgresql") != 0) {
                assert_int_equal(r, -ENOTSUP);
                return;
        }
        assert_int_equal(r, 0);
        assert_int_equal(store_follow_last(follower, &seq, &err), 0);
        assert_int_equal(seq, 3);
        assert_int_equal(scan_count(follower, "f", 1), 3);
        for (unsigned i = 0; i < 50; i++) {
                append_now(f->s, f->term, batch_of("f", 4 + i, 1), NULL, NULL);
                assert_int_equal(scan_count(follower, "f", 4 + i), 1);
        }
        assert_int_equal(store_blob_get(follower, STR("b"), &data, &err), 0);
        assert_string_equal(buf_z(&data), "1");
        assert_int_equal(store_snapshot_put(f->s, f->term, 53, STR("s"), 53, NULL), 0);
        assert_int_equal(store_snapshot_get(follower, &seq, &data, &err), 0);
        assert_int_equal(seq, 53);
        assert_int_equal(scan_count(follower, "f", 1), 0); /* cut: the last number tells */
        assert_int_equal(store_follow_last(follower, &seq, &err), 0);
        assert_int_equal(seq, 53);
        restart(f); /* its writer is not disturbed, and finds all */
        append_now(f->s, f->term, batch_of("f", 54, 1), NULL, NULL);
        assert_int_equal(scan_count(follower, "f", 54), 1);
        store_close(follower);
        restart(f);
        assert_int_equal(store_last_seq(f->s), 54);
        assert_int_equal(scan_count(f->s, "f", 54), 1);
}

static void test_what_is_not_there_is_not_followed(void **state)
{
        const struct store_place none = {0};
        char *folder = temp_folder();
        BUF_CLEANUP struct buf address = {0};
        struct store *follower = NULL;
        struct err err = {0};

        (void)state;
        buf_printf(&address, "sqlite:%s/none.db", folder);
        assert_int_equal(store_follow(buf_z(&address), &none, &follower, &err), -ENOENT);
        assert_null(follower);
        temp_folder_remove(folder);
}

static int read_inside(void *arg, uint64_t seq, struct str record, struct err *err)
{
        struct fixture *f = arg;
        BUF_CLEANUP struct buf data = {0};

        (void)seq;
        (void)record;
        assert_int_equal(store_blob_get(f->s, STR("b"), &data, err), 0);
        return data.n == 1 ? 0 : -1;
}

static void test_a_scan_may_read_other_things(void **state)
{
        struct fixture *f = *state;
        struct store_batch *b = batch_of("x", 1, 2);

        store_batch_blob_put(b, STR("b"), STR("1"));
        append_now(f->s, f->term, b, NULL, NULL);
        assert_int_equal(store_scan(f->s, 1, read_inside, f, NULL), 0);
}

static void test_survives(void **state)
{
        struct fixture *f = *state;
        struct store_batch *b;
        BUF_CLEANUP struct buf data = {0};
        uint64_t term = f->term, seq;

        if (!kind->survives) { /* what is in memory is its opener's alone */
                append_now(f->s, f->term, batch_of("v", 1, 9), NULL, NULL);
                restart(f);
                assert_int_equal(store_last_seq(f->s), 0);
                return;
        }
        b = batch_of("v", 1, 9);
        store_batch_blob_put(b, STR("blob"), STR("kept"));
        put_history(b, 1, 1, "a@x", 5000);
        append_now(f->s, f->term, b, NULL, NULL);
        assert_int_equal(store_snapshot_put(f->s, f->term, 4, STR("four"), 2, NULL), 0);
        restart(f);
        assert_true(f->term > term);
        assert_int_equal(store_last_seq(f->s), 9);
        assert_int_equal(scan_count(f->s, "v", 1), 7);
        assert_int_equal(count_rows(f->s, (struct store_query){0}), 1);
        assert_int_equal(store_blob_get(f->s, STR("blob"), &data, NULL), 0);
        assert_string_equal(buf_z(&data), "kept");
        assert_int_equal(store_snapshot_get(f->s, &seq, &data, NULL), 0);
        assert_int_equal(seq, 4);
        assert_int_equal(append_now(f->s, f->term, batch_of("v", 10, 1), &seq, NULL), STORE_DURABLE);
        assert_int_equal(seq, 10);
}

static void test_close_waits(void **state)
{
        struct fixture *f = *state;
        struct waiter w;

        waiter_init(&w);
        for (unsigned i = 0; i < 500; i++)
                waiter_append(&w, f->s, f->term, batch_of("w", 1 + i, 1));
        store_close(f->s);
        assert_int_equal(w.finished, 500);
        assert_int_equal(w.result, STORE_DURABLE);
        waiter_deinit(&w);
        start(f);
        if (kind->survives)
                assert_int_equal(scan_count(f->s, "w", 1), 500);
}

/* Another store that is given each group first. */
struct mirrored {
        struct store *copy;
        uint64_t term;
        unsigned groups, committed;
        bool refuses;
};

static int mirror_before(void *arg, const struct str *ops, size_t count, struct store_batch *add,
                         struct err *err)
{
        struct mirrored *m = arg;
        BUF_CLEANUP struct buf all = {0};
        struct store_batch *b;

        if (m->refuses)
                return err_set(err, -ECANCELED, "the mirror does not take it");
        store_batch_blob_put(add, STR("position"), STR("here"));
        store_batch_pack(add, &all);
        for (size_t i = 0; i < count; i++)
                buf_str(&all, ops[i]);
        assert_int_equal(store_batch_read(buf_view(&all), &b), 0);
        assert_int_equal(append_now(m->copy, m->term, b, NULL, NULL), STORE_DURABLE);
        m->groups++;
        return 0;
}

static void mirror_after(void *arg, bool committed)
{
        ((struct mirrored *)arg)->committed += committed;
}

static void test_a_mirror_has_all_first(void **state)
{
        struct fixture *f = *state;
        struct mirrored m = {0};
        const struct store_mirror hooks = {mirror_before, mirror_after, &m};
        const struct store_place place = {.mirror = &hooks};
        struct store_batch *b = batch_of("m", 1, 3);
        struct err err = {0};
        struct waiter w;

        store_close(f->s);
        assert_int_equal(store_open_at(f->address, &place, &f->s, NULL, &err), 0);
        assert_int_equal(store_term_take(f->s, &f->term, &err), 0);
        assert_int_equal(store_open("memory:", &m.copy, NULL, &err), 0);
        assert_int_equal(store_term_take(m.copy, &m.term, &err), 0);
        store_batch_blob_put(b, STR("token/1"), STR("one"));
        assert_int_equal(append_now(f->s, f->term, b, NULL, NULL), STORE_DURABLE);
        waiter_init(&w);
        for (unsigned i = 4; i <= 100; i++)
                waiter_append(&w, f->s, f->term, batch_of("m", i, 1));
        waiter_wait(&w);
        waiter_deinit(&w);
        assert_int_equal(scan_count(f->s, "m", 1), 100);
        assert_int_equal(scan_count(m.copy, "m", 1), 100);
        assert_true(m.groups > 0 && m.committed == m.groups);
        expect_blobs(f->s, STR_NONE, 0, "position token/1 ");
        expect_blobs(m.copy, STR_NONE, 0, "position token/1 ");
        m.refuses = true;
        assert_int_equal(append_now(f->s, f->term, batch_of("m", 101, 1), NULL, &err), -ECANCELED);
        m.refuses = false; /* what followed would not be what the mirror has */
        assert_int_equal(append_now(f->s, f->term, batch_of("m", 101, 1), NULL, &err), -ECANCELED);
        assert_string_equal(err.text, "the mirror does not take it");
        assert_int_equal(scan_count(f->s, "m", 1), 100);
        assert_int_equal(m.committed, m.groups);
        store_close(m.copy);
}

/* Whatever another server sends is looked at before it is taken for a batch. */
static void test_malformed_operations(void **state)
{
        struct store_batch *b = batch_of("x", 1, 2), *again;
        BUF_CLEANUP struct buf ops = {0}, wrong = {0};

        (void)state;
        store_batch_history(b, &(struct past_job){.request = 7, .owner = STR("ann@x"), .data = STR("d")});
        store_batch_blob_put(b, STR("n"), STR("v"));
        store_batch_blob_delete(b, STR("n"));
        store_batch_history_cut(b, 5);
        store_batch_pack(b, &ops);
        for (size_t n = 0; n < ops.n; n++) /* cut anywhere, it is the beginning of it or refused */
                if (store_batch_read(str_head(buf_view(&ops), n), &again) == 0)
                        store_batch_free(again);
        assert_int_equal(store_batch_read(buf_view(&ops), &again), 0);
        assert_int_equal(store_batch_bytes(again), ops.n);
        store_batch_free(again);
        assert_int_equal(store_batch_read(str_head(buf_view(&ops), ops.n - 1), &again), -EBADMSG);
        buf_str(&wrong, buf_view(&ops));
        pack_u64(&wrong, 99);
        assert_int_equal(store_batch_read(buf_view(&wrong), &again), -EBADMSG);
        store_batch_free(b);
}

static void test_second_open_is_refused(void **state)
{
        struct fixture *f = *state;
        struct err err = {0};
        struct store *other;
        char pid[32];

        if (!kind->survives) {
                assert_int_equal(store_open(f->address, &other, NULL, &err), 0);
                append_now(f->s, f->term, batch_of("v", 1, 9), NULL, NULL);
                assert_int_equal(store_last_seq(other), 0);
                store_close(other);
                return;
        }
        if (store_open(f->address, &other, NULL, &err) != STORE_LOCKED)
                fail_msg("%s", err.text);
        snprintf(pid, sizeof(pid), "process %ld:", (long)getpid());
        if (!strstr(err.text, pid))
                fail_msg("%s", err.text);
}

static void test_reserve(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(store_reserve_release(f->s), 0);
        assert_int_equal(store_reserve_release(f->s), 0);
        assert_int_equal(append_now(f->s, f->term, batch_of("r", 1, 1), NULL, NULL), STORE_DURABLE);
        assert_int_equal(store_reserve_take(f->s), 0);
        assert_int_equal(store_reserve_take(f->s), 0);
}

static void test_wrong_addresses(void **state)
{
        struct err err = {0};
        struct store *s;

        (void)state;
        assert_int_equal(store_open("paper:/x", &s, NULL, &err), -EINVAL);
        assert_non_null(strstr(err.text, "paper:/x"));
        assert_int_equal(store_open("sqlite:", &s, NULL, &err), -EINVAL);
        assert_int_equal(store_open("sqlite:/nonexistent/folder/x.db", &s, NULL, &err), -ENOENT);
        assert_non_null(strstr(err.text, "/nonexistent/folder/x.db"));
        assert_int_equal(store_open("memory:much", &s, NULL, &err), -EINVAL);
        store_close(NULL);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
                cmocka_unit_test_setup_teardown(test_append, setup, teardown),
                cmocka_unit_test(test_batch_says_what_it_holds),
                cmocka_unit_test_setup_teardown(test_many_batches_keep_their_order, setup, teardown),
                cmocka_unit_test_setup_teardown(test_records_may_hold_any_bytes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_scan_returns_what_stopped_it, setup, teardown),
                cmocka_unit_test_setup_teardown(test_old_term_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_history, setup, teardown),
                cmocka_unit_test_setup_teardown(test_history_is_cut, setup, teardown),
                cmocka_unit_test_setup_teardown(test_blobs, setup, teardown),
                cmocka_unit_test_setup_teardown(test_blobs_in_order, setup, teardown),
                cmocka_unit_test_setup_teardown(test_snapshots, setup, teardown),
                cmocka_unit_test_setup_teardown(test_appends_go_on_beside_a_snapshot, setup, teardown),
                cmocka_unit_test_setup_teardown(test_readers_beside_appends, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_scan_may_read_other_things, setup, teardown),
                cmocka_unit_test_setup_teardown(test_it_is_followed, setup, teardown),
                cmocka_unit_test(test_what_is_not_there_is_not_followed),
                cmocka_unit_test_setup_teardown(test_survives, setup, teardown),
                cmocka_unit_test_setup_teardown(test_close_waits, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_mirror_has_all_first, setup, teardown),
                cmocka_unit_test(test_malformed_operations),
                cmocka_unit_test_setup_teardown(test_second_open_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_reserve, setup, teardown),
                cmocka_unit_test(test_wrong_addresses),
        };

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (argc == 2 && strcmp(argv[1], kinds[i].name) == 0)
                        kind = &kinds[i];
        if (!kind) {
                fprintf(stderr, "usage: conform_store memory|sqlite|sqlite-exclusive|postgresql\n");
                return 2;
        }
        return cmocka_run_group_tests_name(kind->name, tests, NULL, NULL);
}
