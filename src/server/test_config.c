#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/config.h"

static void test_file(void **state)
{
        struct config c = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(
                config_parse(&c, "f",
                             STR("domain: example.org\nlisten: ['0.0.0.0:7331', '[::]:7331']\n"
                                 "admins: ann@example.org\nlease: 10m\nkeep_finished: 2d\nlog_level: debug\n"
                                 "placement: blind\n"),
                             &err),
                0);
        assert_string_equal(c.domain, "example.org");
        assert_int_equal(c.listen.count, 2);
        assert_string_equal(c.listen.items[1], "[::]:7331");
        assert_int_equal(c.admins.count, 1);
        assert_int_equal(c.lease_ms, 600000);
        assert_int_equal(c.keep_finished_ms, 2 * 86400000);
        assert_int_equal(c.log_level, LOG_DEBUG);
        assert_int_equal(c.placement, CORE_PLACE_BLIND);
        config_deinit(&c);
        assert_int_equal(config_parse(&c, "f", STR("placement: near\n"), &err), -EINVAL);
        assert_string_equal(err.text, "f:1: placement must be cost, blind, fifo or cached");
        config_deinit(&c);
}

static void test_empty(void **state)
{
        struct config c = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(config_parse(&c, "f", STR("# nothing\n"), &err), 0);
        config_deinit(&c);
}

static void test_stores(void **state)
{
        struct config c = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(
                config_parse(
                        &c, "f",
                        STR("stores:\n  lab:\n    urls: [HTTPS://se.lab:443/data, root://se.lab//data/]\n"
                            "    labels: patient\n    concurrency: 8\n    capacity: 10G\n"
                            "  far: {urls: https://far.org/}\n"
                            "clearance:\n  patient:\n    agents: [n1, ward-*]\n"
                            "    datasets: https://far.org/cohort\n    spool: no\n"),
                        &err),
                0);
        assert_int_equal(c.stores.store_count, 2);
        assert_true(str_eqz(c.stores.stores[0].urls.name, "lab"));
        assert_true(str_eqz(c.stores.stores[0].urls.prefixes[0], "https://se.lab/data/"));
        assert_int_equal(c.stores.stores[0].urls.prefix_count, 2);
        assert_true(str_eqz(c.stores.stores[0].labels[0], "patient"));
        assert_int_equal(c.stores.stores[0].concurrency, 8);
        assert_true(c.stores.stores[0].capacity_bytes == 10ull << 30);
        assert_int_equal(c.stores.label_count, 1);
        assert_true(str_eqz(c.stores.labels[0].agents[1], "ward-*"));
        assert_true(str_eqz(c.stores.labels[0].datasets[0], "https://far.org/cohort/"));
        assert_true(c.stores.labels[0].not_spooled);
        config_deinit(&c);
}

static void test_users(void **state)
{
        struct config c = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(config_parse(&c, "f",
                                      STR("users:\n  max_queued: 9\n  max_spool: 20G\n"
                                          "  ann@local: {max_spool: 512K}\n"),
                                      &err),
                         0);
        assert_int_equal(c.limits.count, 1);
        assert_int_equal(c.limits.spool_count, 2);
        assert_string_equal(c.limits.spool[0].user, "*");
        assert_true(c.limits.spool[0].bytes == 20ull << 30);
        assert_string_equal(c.limits.spool[1].user, "ann@local");
        assert_int_equal(c.limits.spool[1].bytes, 512 << 10);
        config_deinit(&c);
        assert_int_equal(config_parse(&c, "f", STR("users:\n  max_spool: much\n"), &err), -EINVAL);
        assert_non_null(strstr(err.text, "f:2"));
        config_deinit(&c);
}

/* Each names the file and the line. */
static void test_bad(void **state)
{
        static const struct {
                const char *text, *where;
        } bad[] = {
                {"domain: x\nlisten_on: y\n", "f:2"},
                {"lease: soon\n", "f:1"},
                {"\nlog_level: loud\n", "f:2"},
                {"domain: [a, b]\n", "f:1"},
                {"- domain\n", "f"},
                {"domain: 'x\n", "f:"},
                {"admins: {a: b}\n", "f:1"},
                {"lease: 0s\n", "f:1"},
                {"stores:\n  lab:\n    url: x\n", "f:3"},
                {"stores:\n  lab:\n    labels: x\n", "f:2"},
                {"stores:\n  lab:\n    urls:\n     - data/x\n", "f:"},
                {"stores: [lab]\n", "f:1"},
                {"clearance:\n  a,b:\n    agents: x\n", "f:2"},
                {"clearance:\n  a:\n    spool: maybe\n", "f:3"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct config c = {0};
                struct err err = {0};

                assert_int_equal(config_parse(&c, "f", str_of(bad[i].text), &err), -EINVAL);
                if (strncmp(err.text, bad[i].where, strlen(bad[i].where)) != 0)
                        fail_msg("\"%s\" does not begin with %s", err.text, bad[i].where);
                config_deinit(&c);
        }
}

static void test_options_win(void **state)
{
        struct config c = {0};
        struct err err = {0};

        (void)state;
        c.domain = mem_dupz("given");
        assert_int_equal(config_parse(&c, "f", STR("domain: file\n"), &err), 0);
        assert_string_equal(c.domain, "given");
        config_deinit(&c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_file),  cmocka_unit_test(test_empty),
                cmocka_unit_test(test_users), cmocka_unit_test(test_stores),
                cmocka_unit_test(test_bad),   cmocka_unit_test(test_options_win),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
