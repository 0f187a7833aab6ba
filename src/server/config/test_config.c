#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/config/config.h"

static void test_file(void **state)
{
        struct config c = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(
                config_parse(&c, "f",
                             STR("domain: example.org\nlisten: ['0.0.0.0:7331', '[::]:7331']\n"
                                 "admins: ann@example.org\nlease: 10m\nkeep_finished: 2d\nlog_level: debug\n"
                                 "placement: blind\npage: yes\n"),
                             &err),
                0);
        assert_string_equal(c.domain, "example.org");
        assert_int_equal(c.listen.count, 2);
        assert_string_equal(c.listen.items[1], "[::]:7331");
        assert_int_equal(c.admins.count, 1);
        assert_true(c.page);
        assert_int_equal(c.lease_ms, 600000);
        assert_int_equal(c.keep_finished_ms, 2 * 86400000);
        assert_int_equal(c.log_level, LOG_DEBUG);
        assert_int_equal(c.placement, CORE_PLACE_BLIND);
        config_deinit(&c);
        assert_int_equal(config_parse(&c, "f", STR("placement: near\n"), &err), -EINVAL);
        assert_string_equal(err.text, "f:1: placement must be fifo, cost, blind, cached, passive, "
                                      "cluster_monitor or queue_monitor");
        config_deinit(&c);
}

static void test_store(void **state)
{
        static const struct {
                const char *text, *error;
        } wrong[] = {
                {"store: mysql://ann:secret@h/d\n", "f:1: the store is sqlite, or postgresql://"},
                {"store: /var/lib/x.db\n", "f:1: the store is sqlite, or postgresql://"},
                {"standby: 1s\n", "f:1: standby must be 2s or longer"},
                {"standby: soon\n", "f:1: "},
                {"mirror: yes\n", "f:1: mirror must be a map"},
                {"mirror: {listen: 'a:1'}\n", "f:1: mirror needs peer: HOST:PORT"},
                {"mirror: {listen: a, peer: 'b:1'}\n", "f:1: listen must be HOST:PORT"},
                {"mirror: {listen: 'a:1', peer: 'b:1', lease: 1ms}\n", "f:1: lease must be from 1s to 10min"},
                {"mirror: {listen: 'a:1', peer: 'b:1', takeover: maybe}\n",
                 "f:1: takeover must be automatic or manual"},
                {"mirror: {listen: 'a:1', peer: 'b:1', submits: some}\n",
                 "f:1: submits must be any or mirrored"},
        };
        struct config c = {0};
        struct err err = {0};

        (void)state;
        assert_null(config_postgres(&c));
        assert_int_equal(config_parse(&c, "f", STR("store: sqlite\n"), &err), 0);
        assert_null(config_postgres(&c));
        config_deinit(&c);
        assert_int_equal(config_parse(&c, "f",
                                      STR("store: postgresql://a@b,c/d?sslmode=verify-full\nstandby: 3s\n"),
                                      &err),
                         0);
        assert_string_equal(config_postgres(&c), "postgresql://a@b,c/d?sslmode=verify-full");
        assert_int_equal(c.standby_ms, 3000);
        config_deinit(&c);
        assert_int_equal(config_parse(&c, "f",
                                      STR("mirror: {listen: 'a:1', peer: 'b:2', lease: 5s, takeover: manual, "
                                          "submits: mirrored}\n"),
                                      &err),
                         0);
        assert_string_equal(c.mirror.peer, "b:2");
        assert_int_equal(c.mirror.lease_ms, 5000);
        assert_true(c.mirror.manual && c.mirror.all);
        config_deinit(&c);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                assert_int_equal(config_parse(&c, "f", str_of(wrong[i].text), &err), -EINVAL);
                assert_true(str_starts(str_of(err.text), str_of(wrong[i].error)));
                assert_null(strstr(err.text, "secret"));
                config_deinit(&c);
        }
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
                            "    labels: patient\n    concurrency: 8\n    capacity: 10G\n    file_size: 2G\n"
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
        assert_true(c.stores.stores[0].file_bytes == 2ull << 30);
        assert_int_equal(c.stores.label_count, 1);
        assert_true(str_eqz(c.stores.labels[0].agents[1], "ward-*"));
        assert_true(str_eqz(c.stores.labels[0].datasets[0], "https://far.org/cohort/"));
        assert_true(c.stores.labels[0].not_spooled);
        config_deinit(&c);
}

/* A typing error in a label keeps everybody away, so it is told. */
static void on_unclear(void *arg, struct str label, struct str store)
{
        buf_printf(arg, STR_FMT " of " STR_FMT "\n", STR_ARG(label), STR_ARG(store));
}

static void test_labels_of_nobody(void **state)
{
        BUF_CLEANUP struct buf found = {0};
        struct config c = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(config_parse(&c, "f",
                                      STR("stores:\n  lab: {urls: /lab, labels: [patient, patinet, trial]}\n"
                                          "clearance:\n  patient: {agents: n1}\n  trial: {spool: no}\n"),
                                      &err),
                         0);
        config_stores_unclear(&c.stores, on_unclear, &found);
        assert_string_equal(buf_z(&found), "patinet of lab\ntrial of lab\n");
        config_deinit(&c);
}

static void test_waits(void **state)
{
        struct config c = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(config_parse(&c, "f", STR("better_place_wait: 0\nreserve_after: 0\n"), &err), 0);
        assert_int_equal(c.better_wait_ms, -1);
        assert_int_equal(c.reserve_after_ms, -1);
        config_deinit(&c);
        assert_int_equal(config_parse(&c, "f", STR("better_place_wait: 2m\nreserve_idle: 7.5%\n"), &err), 0);
        assert_int_equal(c.better_wait_ms, 120000);
        assert_int_equal((int)(c.reserve_idle * 1000), 75);
        config_deinit(&c);
        assert_int_equal(config_parse(&c, "f", STR("reserve_idle: 0%\n"), &err), -EINVAL);
        config_deinit(&c);
        assert_int_equal(config_parse(&c, "f", STR("reserve_idle: 3\n"), &err), -EINVAL);
        config_deinit(&c);
}

static void test_users(void **state)
{
        struct config c = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(
                config_parse(&c, "f",
                             STR("users:\n  max_queued: 9\n  max_queued_bytes: 2M\n  max_spool: 20G\n"
                                 "  ann@local: {max_spool: 512K}\n"),
                             &err),
                0);
        assert_int_equal(c.limits.count, 2);
        assert_string_equal(c.limits.v[1].name, "queued_kib/*");
        assert_int_equal(c.limits.v[1].units, 2048);
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
                {"reservations: {users: [ann]}\n", "f:1"},
                {"reservations: {count: 0}\n", "f:1"},
                {"reservations: {cpu: 3}\n", "f:1"},
                {"credentials: {class: {a: 1}}\n", "f:1"},
                {"credentials:\n  users:\n    ann@lab: much\n", "f:3"},
                {"bank: {reserved: some}\n", "f:1"},
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
                {"clearance:\n  a:\n    agents: [n*1]\n", "f:3: 'n*1': a * stands at the end"},
                {"stores:\n  a:\n    urls: /d\n    labels: ['x,y']\n", "f:4"},
                {"stores:\n  a: {urls: /d}\n  b: {urls: [/e, /d/]}\n",
                 "f:3: b: 'file:///d/' is store a's already"},
                {"stores:\n  a:\n    urls: /d\n    concurrency: 0\n", "f:4: concurrency: must be 1 or more"},
                {"stores:\n  a:\n    urls: /d\n    capacity: 0\n", "f:4: capacity: must be 1 or more"},
                {"stores:\n  a:\n    urls: /d\n    file_size: 1G\n", "f:4: file_size: goes with capacity"},
                {"stores:\n  a:\n    urls: https://a/\n    probe: https://b/x\n",
                 "f:4: probe: must be the URL of a file of this store"},
                {"stores:\n  a:\n    urls: https://a/\n    probe: x\n", "f:4"},
                {"limits:\n  sw: 3\n  SW: 4\n", "f:3: 'SW' is set in line 2 already"},
                {"accounts:\n  a: {}\n  A: {}\n", "f:3: 'A' is set in line 2 already"},
                {"accounts:\n  a: {accounts: {b: {}, B: {}}}\n", "f:2"},
                {"accounts:\n  a: {shares: 1e10}\n", "f:2: shares must be more than 0 and at most"},
                {"priority:\n  age: 1e300\n", "f:2: age must be from"},
                {"qos:\n  u: {priority: -1e10}\n", "f:2: priority must be from"},
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
                cmocka_unit_test(test_file),
                cmocka_unit_test(test_store),
                cmocka_unit_test(test_empty),
                cmocka_unit_test(test_users),
                cmocka_unit_test(test_stores),
                cmocka_unit_test(test_waits),
                cmocka_unit_test(test_labels_of_nobody),
                cmocka_unit_test(test_bad),
                cmocka_unit_test(test_options_win),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
