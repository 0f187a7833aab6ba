#include "numbered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "fault_vfs.h"
#include "store_help.h"

int numbered_setup(void **state)
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

int numbered_teardown(void **state)
{
        struct fixture *f = *state;

        fault_arm(FAULT_NONE, 0, 0, 0);
        temp_folder_remove(f->folder);
        free(f->path);
        free(f->address);
        free(f);
        return 0;
}

void numbered_begin_again(struct fixture *f)
{
        char *folder = mem_dupz(f->folder);

        temp_folder_remove(f->folder);
        f->folder = folder;
        assert_int_equal(mkdir(folder, 0700), 0);
}

struct store_batch *numbered_batch(unsigned i, size_t padding)
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
        store_batch_history(b, &(struct past_job){.request = 1,
                                                  .member = i,
                                                  .ended_ms = i,
                                                  .owner = STR("ann@local"),
                                                  .data = str_of(text)});
        return b;
}

uint64_t seq_after(unsigned batches)
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

static int check_row(void *arg, uint64_t row, const struct past_job *h)
{
        struct found *c = arg;

        (void)row;
        assert_int_equal(h->member, c->batch - 1 - c->rows);
        c->rows++;
        return 0;
}

/* Everything is whole, nothing acknowledged is missing. Returns how many batches there are. */
unsigned check_store(struct store *s, uint64_t acknowledged)
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

struct store *open_store(const struct fixture *f, uint64_t *ret_term)
{
        struct err err = {0};
        struct store *s = NULL;

        if (store_open(f->address, &s, NULL, &err) || store_term_take(s, ret_term, &err))
                fail_msg("%s", err.text);
        return s;
}

void check_reopened(const struct fixture *f, uint64_t acknowledged)
{
        uint64_t term, seq;
        struct store *s = open_store(f, &term);
        unsigned batches = check_store(s, acknowledged);

        /* And it goes on. */
        assert_int_equal(append_now(s, term, numbered_batch(batches, 0), &seq, NULL), STORE_DURABLE);
        assert_int_equal(seq, seq_after(batches + 1));
        store_close(s);
}
