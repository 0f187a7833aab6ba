/* A file that an agent holds counts for those whose jobs its cache would give it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/test_help.h"

#define GB      1000000000u
#define FILE_AT "https://web.org/f"
#define TEN     "[Cpus=10; TotalCpus=10; Memory=1000; Disk=1000]"

static const struct str lab_prefix[] = {{"https://se.lab/", 15}, {"root://se.lab/", 14}};
static const char *for_urls; /* what the credential "grid" is for; NULL: there is none */
static uint64_t asked_of;    /* the request that asked for it last, if it came from another server */

static void on_credential(void *arg, uint64_t request, struct str owner, bool handed_on,
                          struct file_credential *ret)
{
        (void)arg;
        asked_of = handed_on ? request : 0;
        if (for_urls && str_eqz(ret->name, "grid") && str_eqz(owner, "ann@lab"))
                ret->urls = str_of(for_urls);
}

static int setup(void **state)
{
        const struct core_store store = {.urls = {STR("lab"), lab_prefix, 2}};
        const struct core_data data = {.stores = &store, .store_count = 1};
        struct core *c;

        bare_core(state);
        c = *state;
        c->world.credential = on_credential;
        for_urls = NULL;
        asked_of = 0;
        assert_int_equal(core_data_set(c, &data, NULL), 0);
        offer(c, "n1", TEN);
        link_to(c, "n1", 2000, 100000000);
        return 0;
}

static struct request *reads(struct core *c, const char *owner, const char *url, const char *credentials,
                             const struct submission_origin *origin)
{
        static unsigned char serial = 100;
        struct submission s = {.owner = str_of(owner), .at_ms = 1700000000000, .uuid = {1, ++serial}};
        struct submission_part *p = submission_add_part(&s);
        BUF_CLEANUP struct buf list = {0}, names = {0};
        struct err err = {""};
        bool existing;
        uint64_t id;

        if (origin)
                s.origin = *origin;
        buf_printf(&list, "\"%s\"", url);
        buf_printf(&names, "\"%s\"", credentials);
        submission_add_attribute(p, STR("TransferInput"), buf_view(&list), false);
        submission_add_attribute(p, STR("TransferInputSizes"), STR("\"1000000000\""), false);
        submission_add_attribute(p, STR("ExpectedRunTime"), STR("100"), false);
        if (*credentials)
                submission_add_attribute(p, STR("DroverCredentials"), buf_view(&names), false);
        p->rows = p->steps = 1;
        if (core_submit(c, &s, false, &id, &existing, &err) != 0)
                fail_msg("%s", err.text);
        submission_deinit(&s);
        return request_find(c, id);
}

/* The agent n1 keeps it under this key, and nothing else. */
static void keeps(struct core *c, const char *key)
{
        core_cache_delta(c, "n1", &(struct core_file){id_of(key), GB}, 1, NULL, 0, true);
}

static bool held(struct core *c, const struct request *r)
{
        struct core_cost cost;

        cost_of(c, &r->parts[0], 0, agent_find(c, "n1")->queues, &cost);
        assert_int_equal(cost.bytes_in, GB);
        assert_true(cost.bytes_held == 0 || cost.bytes_held == GB);
        assert_true((cost.fetch_ms == 0) == (cost.bytes_held == GB));
        return cost.bytes_held == GB;
}

static void test_owners(void **state)
{
        struct core *c = *state;
        const struct request *ann = reads(c, "ann@lab", FILE_AT, "", NULL),
                             *bob = reads(c, "bob@lab", FILE_AT, "", NULL),
                             *ann_user = reads(c, "ann@lab", "https://me@se.lab/f", "", NULL);

        keeps(c, "ann%40lab\n" FILE_AT);
        assert_true(held(c, ann));
        assert_false(held(c, bob));
        keeps(c, "bob%40lab\n" FILE_AT);
        assert_false(held(c, ann));
        assert_true(held(c, bob));
        keeps(c, "ann%40lab\nhttps://me@se.lab/f");
        assert_true(held(c, ann_user));
}

/* Files of a store are the same for all owners. */
static void test_stores(void **state)
{
        struct core *c = *state;
        const struct request *ann = reads(c, "ann@lab", "root://SE.lab//f", "", NULL),
                             *bob = reads(c, "bob@lab", "https://se.lab/f", "grid", NULL);

        keeps(c, "https://se.lab/f");
        assert_true(held(c, ann) && held(c, bob));
}

/* Many owners behind another server are one owner here. */
static void test_handed_on(void **state)
{
        const struct submission_origin anns = {.servers = STR("u1 u2"),
                                               .owner = STR("ann@far"),
                                               .job = STR("7.1")},
                                       bobs = {.servers = STR("u1"),
                                               .owner = STR("bob@far"),
                                               .job = STR("8.1")};
        struct core *c = *state;
        const struct request *ann = reads(c, "pilot@lab", FILE_AT, "grid", &anns),
                             *bob = reads(c, "pilot@lab", FILE_AT, "", &bobs);

        keeps(c, "pilot%40lab u1 ann%40far\n" FILE_AT);
        assert_true(held(c, ann));
        assert_false(held(c, bob));
        assert_int_equal(asked_of, ann->id);
}

/* Returns in how many slices. */
static unsigned renumber(struct core *c, uint64_t request)
{
        uint32_t part = 0;
        unsigned slices = 1;

        for (; core_request_credentials(c, request, &part); slices++)
                assert_null(core_check(c));
        return slices;
}

/* With a credential a file is identified by its owner and the credential's name; if the credential is for
 * another place the files are different ones. */
static void test_credentials(void **state)
{
        struct core *c = *state;
        const struct request *with = reads(c, "ann@lab", "https://se.lab/f", "other grid", NULL),
                             *without = reads(c, "ann@lab", "https://se.lab/f", "", NULL),
                             *bob = reads(c, "bob@lab", "https://se.lab/f", "grid", NULL);

        keeps(c, "https://se.lab/f");
        assert_true(held(c, with) && held(c, without) && held(c, bob));
        for_urls = "https://web.org/ root://se.lab/"; /* the other way */
        for (uint64_t id = 0; (id = core_request_next(c, id)) != 0;)
                renumber(c, id);
        assert_true(!held(c, with) && held(c, without) && held(c, bob));
        keeps(c, "ann%40lab\tgrid\nhttps://se.lab/f");
        assert_true(held(c, with) && !held(c, without) && !held(c, bob));
        assert_null(core_check(c));
}

/* A transfer for one owner counts for no other; and its load ends, even if its number has changed. */
static void test_coming(void **state)
{
        struct core *c = *state;
        const struct request *ann = reads(c, "ann@lab", FILE_AT, "grid", NULL);
        const struct core_agent *n1 = agent_find(c, "n1");

        expect_assigned(c, "n1/default 1 0\n");
        assert_true(inflight_to(n1, id_of("ann%40lab\n" FILE_AT)));
        assert_false(inflight_to(n1, id_of("bob%40lab\n" FILE_AT)));
        for_urls = "https://web.org/";
        renumber(c, ann->id);
        assert_int_equal(idmap_count(c->data->inflight), 0);
        assert_null(core_check(c));
        started(c, "n1", 1, 0);
        ended(c, "n1", 1, 0);
        assert_null(core_check(c));
}

/* Rows that come in slices are of the same owner. */
static void test_rows(void **state)
{
        const char *const attributes[] = {"~TransferInput", "\"https://web.org/$(f)\"", NULL};
        struct core *c = *state;
        BUF_CLEANUP struct buf items = {0};
        const struct set *near;
        struct request *r;

        for (unsigned i = 0; i < 3000; i++)
                buf_printf(&items, "%u\n", i);
        core_cache_delta(c, "n1", &(struct core_file){own_id_of("https://web.org/2999"), 1}, 1, NULL, 0,
                         false);
        core_cache_delta(c, "n1", &(struct core_file){id_of("https://web.org/7"), 1}, 1, NULL, 0, false);
        r = submit(c, buf_z(&items), 3000, attributes);
        while (core_tick(c) == 0)
                ;
        near = locality_members(r->parts[0].inputs, agent_find(c, "n1"));
        assert_true(near && set_count(near) == 1 && set_has(near, 2999));
        assert_null(core_check(c));
}

/* Engines share images among owners; images are reported by their plain name, also where a store has them.
 */
static void test_images(void **state)
{
        const char *const images[] = {"docker://docker.io/library/alpine:3", "https://se.lab/a.sif",
                                      "root://se.lab/a.sif", "oras://web.org/a"};
        struct core *c = *state;

        for (size_t i = 0; i < sizeof(images) / sizeof(*images); i++) {
                BUF_CLEANUP struct buf text = {0};
                const char *attributes[] = {"ContainerImage", NULL, NULL};
                struct request *r;

                buf_printf(&text, "\"%s\"", images[i]);
                attributes[1] = buf_z(&text);
                r = submit(c, NULL, 1, attributes);
                keeps(c, images[i]);
                assert_int_equal(inputs_held(c, r->parts[0].inputs, 0, agent_find(c, "n1")), GB);
        }
}

/* Long lists are numbered anew in slices: seven of a MiB held the core for a second. */
static void test_many_lists(void **state)
{
        struct core *c = *state;
        struct submission s = {.owner = STR("ann@lab"), .at_ms = 1700000000000, .uuid = {7}};
        BUF_CLEANUP struct buf list = {0};
        bool existing;
        uint64_t id;

        buf_addz(&list, "\"a");
        for (unsigned i = 0; i < 5000; i++)
                buf_printf(&list, ",https://se.lab/%u", i);
        buf_char(&list, '"');
        for (unsigned i = 0; i < 40; i++) {
                struct submission_part *p = submission_add_part(&s);

                submission_add_attribute(p, STR("TransferInput"), buf_view(&list), false);
                submission_add_attribute(p, STR("DroverCredentials"), STR("\"grid\""), false);
                p->rows = p->steps = 1;
        }
        assert_int_equal(core_submit(c, &s, false, &id, &existing, NULL), 0);
        submission_deinit(&s);
        assert_in_range(renumber(c, id), 8, 40);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_owners, setup, bare_core_free),
                cmocka_unit_test_setup_teardown(test_stores, setup, bare_core_free),
                cmocka_unit_test_setup_teardown(test_handed_on, setup, bare_core_free),
                cmocka_unit_test_setup_teardown(test_credentials, setup, bare_core_free),
                cmocka_unit_test_setup_teardown(test_coming, setup, bare_core_free),
                cmocka_unit_test_setup_teardown(test_rows, setup, bare_core_free),
                cmocka_unit_test_setup_teardown(test_images, setup, bare_core_free),
                cmocka_unit_test_setup_teardown(test_many_lists, setup, bare_core_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
