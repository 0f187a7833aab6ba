/* Stores, labels, caches and links, by the calls of data.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/test_help.h"

static const struct str lab_prefix[] = {{"https://se.lab/data/", 20}};
static const struct str far_prefix[] = {{"https://far.org/", 16}};
static const struct str secret[] = {{"patient", 7}};
static const struct str cleared[] = {{"n1", 2}, {"clinic-*", 8}};

static void configure(struct core *c)
{
        const struct core_store stores[] = {
                {.urls = {STR("lab"), lab_prefix, 1}, .labels = secret, .label_count = 1},
                {.urls = {STR("far"), far_prefix, 1}, .concurrency = 4},
        };
        const struct core_label labels[] = {{.name = STR("patient"), .agents = cleared, .agent_count = 2}};
        const struct core_data data = {stores, 2, labels, 1};

        assert_int_equal(core_data_set(c, &data, NULL), 0);
}

static void expect_cache(struct core *c, const char *agent, uint64_t files, uint64_t bytes)
{
        const struct agent_data *d = agent_find(c, agent)->data;

        assert_int_equal(idmap_count(d->held), files);
        assert_int_equal(d->bytes, bytes);
}

static void test_cache_deltas(void **state)
{
        struct core *c = *state;
        const struct core_file first[] = {{1, 100}, {2, 0}, {UINT64_MAX, 7}}, again[] = {{1, 150}, {3, 3}};
        const uint64_t gone[] = {2, 99};

        core_cache_delta(c, "n1", first, 3, NULL, 0, false);
        core_cache_delta(c, "n2", first, 1, NULL, 0, false);
        expect_cache(c, "n1", 3, 107);
        core_cache_delta(c, "n1", again, 2, gone, 2, false); /* a new size, a new file, one that goes */
        expect_cache(c, "n1", 3, 160);
        core_cache_delta(c, "n1", again + 1, 1, NULL, 0, true);
        expect_cache(c, "n1", 1, 3);
        expect_cache(c, "n2", 1, 100);
        core_cache_delta(c, "n1", NULL, 0, NULL, 0, true);
        expect_cache(c, "n1", 0, 0);
}

static void on_store(void *arg, const struct core_store_view *s)
{
        struct buf *b = arg;

        buf_printf(b, STR_FMT ":", STR_ARG(s->store->urls.name));
        for (size_t i = 0; i < s->link_count; i++)
                buf_printf(b, " %s %llu/%llu", s->links[i].agent, (unsigned long long)s->links[i].latency_us,
                           (unsigned long long)s->links[i].bytes_per_s);
        buf_char(b, '\n');
}

static void test_links(void **state)
{
        struct core *c = *state;
        const struct core_link n2[] = {{STR("far"), 9000, 1000}, {STR("unknown"), 1, 1}, {STR(""), 5, 5}};
        const struct core_link n1[] = {{STR("far"), 100, 5000}, {STR("lab"), 50, 90000}};
        BUF_CLEANUP struct buf b = {0};

        configure(c);
        core_links(c, "n2", n2, 3);
        core_links(c, "n1", n1, 1);
        core_links(c, "n1", n1 + 1, 1);
        core_stores(c, on_store, &b);
        assert_string_equal(buf_z(&b), "lab: n1 50/90000\nfar: n1 100/5000 n2 9000/1000\n");
        configure(c); /* numbers of stores may have changed: what was measured is measured again */
        buf_reset(&b);
        core_stores(c, on_store, &b);
        assert_string_equal(buf_z(&b), "lab:\nfar:\n");
}

static void test_clearance(void **state)
{
        struct core *c = *state;

        configure(c);
        assert_true(core_cleared(c, "n1", STR("patient")));
        assert_true(core_cleared(c, "clinic-7", STR("patient")));
        assert_false(core_cleared(c, "n10", STR("patient")));
        assert_false(core_cleared(c, "clinic", STR("patient")));
        assert_false(core_cleared(c, "n1", STR("other")));
        assert_true(core_cleared(c, "n1", STR("")));
        assert_false(core_cleared(c, "n2", STR("")));
}

static void test_too_many_labels(void **state)
{
        struct core *c = *state;
        struct core_label labels[CORE_LABELS_MAX + 1];
        char names[CORE_LABELS_MAX + 1][4];
        const struct core_data data = {.labels = labels, .label_count = CORE_LABELS_MAX + 1};
        struct err err;

        configure(c);
        for (size_t i = 0; i <= CORE_LABELS_MAX; i++) {
                snprintf(names[i], sizeof(names[i]), "l%zu", i);
                labels[i] = (struct core_label){.name = str_of(names[i])};
        }
        assert_int_equal(core_data_set(c, &data, &err), -E2BIG);
        assert_string_equal(err.text, "more than 64 labels");
        assert_true(core_cleared(c, "n1", STR("patient"))); /* as it was */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_cache_deltas, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_links, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_clearance, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_too_many_labels, bare_core, bare_core_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
