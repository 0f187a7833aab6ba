/* Pages of usage are found some at a time, however many there are. */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "server/history/usage.h"

#define PAGES 2500

static struct server server;

static void appended(void *arg, int result, uint64_t last_seq, struct store_batch *batch,
                     const struct err *err)
{
        (void)last_seq, (void)err;
        store_batch_free(batch);
        assert_int_equal(result, STORE_DURABLE);
        sem_post(arg);
}

static void add_page(struct store_batch *b, unsigned month, unsigned request)
{
        char name[64];

        snprintf(name, sizeof(name), "usage/%06u/%020u.0000000000.0000000001", month, request);
        store_batch_blob_put(b, str_of(name), STR_NONE);
}

static int setup(void **state)
{
        struct store_batch *b = store_batch_new();
        uint64_t term;
        sem_t done;

        (void)state;
        assert_int_equal(store_open("memory:", &server.store, NULL, NULL), 0);
        assert_int_equal(store_term_take(server.store, &term, NULL), 0);
        for (unsigned i = 0; i < PAGES; i++)
                add_page(b, i < PAGES / 2 ? 202610 : 202611, i);
        add_page(b, 203001, 1);
        sem_init(&done, 0, 0);
        store_append(server.store, term, b, appended, &done);
        sem_wait(&done);
        sem_destroy(&done);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        store_close(server.store);
        return 0;
}

static void no_record(void *arg, const struct core_usage *u)
{
        (void)arg, (void)u;
        fail();
}

static int64_t day(unsigned days_of_2026)
{
        return (20454 + (int64_t)days_of_2026) * 86400000;
}

/* Returns how many pages are read. */
static unsigned pages(int64_t from_ms, int64_t to_ms, struct str after)
{
        struct usage_cursor c = {0};
        unsigned n = 0;

        assert_int_equal(usage_begin(&server, from_ms, to_ms, after, &c, NULL), 0);
        for (int r; (r = usage_next(&server, &c, no_record, NULL, NULL)) != 1; n++) {
                assert_int_equal(r, 0);
                assert_true(c.count <= USAGE_NAMES_MAX);
        }
        usage_end(&c);
        return n;
}

static void test_pages(void **state)
{
        (void)state;
        assert_int_equal(pages(0, 4000000000000, STR_NONE), PAGES + 1);
        assert_int_equal(pages(day(304), day(310), STR_NONE), PAGES / 2); /* of November, and of December */
        assert_int_equal(pages(day(273), day(274), STR_NONE), PAGES);     /* of October, and what was late */
        assert_int_equal(
                pages(0, 4000000000000, STR("usage/202611/00000000000000002490.0000000000.0000000001")), 10);
}

static void test_old_pages(void **state)
{
        struct usage_cursor c = {0};

        (void)state;
        assert_int_equal(usage_old_pages(&server, day(310), &c, NULL), 0);
        assert_int_equal(c.count, USAGE_NAMES_MAX);
        usage_end(&c);
        assert_int_equal(usage_old_pages(&server, day(273), &c, NULL), 0);
        assert_int_equal(c.count, 0);
        usage_end(&c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pages),
                cmocka_unit_test(test_old_pages),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
