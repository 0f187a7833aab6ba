/* Files on their way to an agent draw jobs that read them, until they are there or will not come. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/coming.h"
#include "core/test_help.h"

#define GB  1000000000u
#define TEN "[Cpus=10; TotalCpus=10; Memory=1000; Disk=1000]"

static void two_alike(struct core *c)
{
        c->config.check_choices = true;
        for (int i = 1; i <= 2; i++) {
                offer(c, i == 1 ? "n1" : "n2", TEN);
                link_to(c, i == 1 ? "n1" : "n2", 2000, 100000000);
        }
}

static int64_t fetch_ms(struct core *c, const struct request *r, const char *agent)
{
        struct core_cost cost;

        cost_of(c, &r->parts[0], 0, agent_find(c, agent)->queues, &cost);
        return cost.fetch_ms;
}

static bool comes(struct core *c, const char *agent)
{
        return coming_to(agent_find(c, agent), id_of("http://a/big"));
}

/* The other place has more room, but would have to fetch it as well. */
static void test_same_place(void **state)
{
        const struct core_file file = {id_of("http://a/big"), GB};
        struct core *c = *state;
        struct request *r;

        two_alike(c);
        submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "n1/default 1 0\n");
        r = submit(c, NULL, 1, big_file_100_s);
        assert_true(comes(c, "n1"));
        assert_false(comes(c, "n2"));
        assert_int_equal(2 * fetch_ms(c, r, "n1"), fetch_ms(c, r, "n2"));
        expect_assigned(c, "n1/default 2 0\n");
        core_cache_delta(c, "n1", &file, 1, NULL, 0, false);
        assert_false(comes(c, "n1"));
        assert_int_equal(fetch_ms(c, r, "n1"), 0);
        assert_null(core_check(c));
        started(c, "n1", 1, 0);
        core_cache_delta(c, "n1", NULL, 0, &file.id, 1, false);
        ended(c, "n1", 1, 0);
        assert_false(comes(c, "n1"));
        assert_null(core_check(c));
        assert_false(c->wrong_choice);
}

/* Half of a long way is longer than all of a short one. */
static void test_not_to_far_places(void **state)
{
        struct core *c = *state;

        c->config.check_choices = true;
        offer(c, "far", TEN);
        link_to(c, "far", 2000, 1000000);
        submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "far/default 1 0\n");
        assert_true(comes(c, "far"));
        offer(c, "near", TEN);
        link_to(c, "near", 2000, 100000000);
        submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "near/default 2 0\n");
        assert_false(c->wrong_choice);
}

/* It comes as long as one of the attempts is there that it comes for. */
static void test_until_the_last_ends(void **state)
{
        struct core *c = *state;

        two_alike(c);
        for (int i = 0; i < 2; i++)
                submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "n1/default 1 0\nn1/default 2 0\n");
        for (uint64_t id = 1; id <= 2; id++) {
                started(c, "n1", id, 0);
                assert_true(comes(c, "n1"));
                ended(c, "n1", id, 0);
                assert_null(core_check(c));
        }
        assert_false(comes(c, "n1"));
        assert_int_equal(idmap_count(c->coming), 0);
        submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "n2/default 3 0\n"); /* it has more room */
}

/* The configuration changes what stores and files are while they are under way. */
static void test_read_anew(void **state)
{
        const struct str prefixes[] = {STR("http://b/"), STR("http://a/")};
        const struct core_store store = {.urls = {STR("lab"), prefixes, 2}};
        const struct core_data data = {.stores = &store, .store_count = 1};
        struct core *c = *state;

        two_alike(c);
        submit(c, NULL, 1, big_file_100_s);
        expect_assigned(c, "n1/default 1 0\n");
        assert_int_equal(core_data_set(c, &data, NULL), 0);
        assert_null(core_check(c));
        started(c, "n1", 1, 0);
        ended(c, "n1", 1, 0);
        assert_int_equal(idmap_count(c->coming), 0);
        assert_null(core_check(c));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_same_place, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_not_to_far_places, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_until_the_last_ends, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_read_anew, bare_core, bare_core_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
