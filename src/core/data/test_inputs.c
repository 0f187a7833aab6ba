/* Members' inputs, where they are, and what fetching them costs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/test_help.h"

#include "base/job/environment.h"

static const struct str lab_prefix[] = {{"https://se.lab/", 15}, {"root://se.lab/", 14}};
static const struct str far_prefix[] = {{"https://far.org/", 16}};

static void configure(struct core *c)
{
        const struct core_store stores[] = {{.urls = {STR("lab"), lab_prefix, 2}},
                                            {.urls = {STR("far"), far_prefix, 1}}};
        const struct core_data data = {.stores = stores, .store_count = 2};

        assert_int_equal(core_data_set(c, &data, NULL), 0);
}

static bool print_file(void *arg, const struct input *f)
{
        buf_printf(arg, "%zu:%llu%s ", (size_t)f->store, (unsigned long long)f->bytes, f->image ? "i" : "");
        return true;
}

static void expect_files(struct core *c, const struct request *r, uint32_t member, const char *text)
{
        BUF_CLEANUP struct buf b = {0};

        inputs_each(c, r->parts[0].inputs, member, print_file, &b);
        assert_string_equal(buf_z(&b), text);
}

static void test_shared_and_own(void **state)
{
        struct core *c = *state;
        const char *const attributes[] = {"~TransferInput",
                                          "\"https://SE.lab/db, root://se.lab//in/$(f), /tmp/here\"",
                                          "TransferInputSizes",
                                          "\"1000,20\"",
                                          "ContainerImage",
                                          "\"alpine:3\"",
                                          NULL};
        struct request *r;

        configure(c);
        r = submit(c, "a\nb\nc\n", 3, attributes);
        expect_files(c, r, MEMBER_ANY, "0:1000 2:0i ");
        expect_files(c, r, 1, "0:1000 2:0i 0:20 ");
        /* The image's size is known once an agent has it. */
        core_cache_delta(c, "n1", &(struct core_file){id_of("docker://docker.io/library/alpine:3"), 7000}, 1,
                         NULL, 0, false);
        expect_files(c, r, 2, "0:1000 2:7000i 0:20 ");
        assert_int_equal(inputs_held(c, r->parts[0].inputs, 2, agent_find(c, "n1")), 7000);
}

static void expect_refused(struct core *c, const char *items, const char *const *attributes, const char *why)
{
        struct err err = {""};

        assert_int_not_equal(try_submit(c, items, 1, attributes, &err), 0);
        assert_non_null(strstr(err.text, why));
}

static void test_what_has_no_sense_is_refused(void **state)
{
        struct core *c = *state;
        struct value v;
        const struct request *r;

        expect_refused(c, NULL, (const char *const[]){"RequestCpus", "-1", NULL}, "RequestCpus: -1");
        expect_refused(c, "-2\n", (const char *const[]){"~RequestDisk", "$(f)", NULL},
                       "RequestDisk of job 0: -2");
        expect_refused(
                c, NULL,
                (const char *const[]){"TransferInput", "\"a,b\"", "TransferInputSizes", "\"1,2,3\"", NULL},
                "TransferInputSizes: there is a size 3");
        expect_refused(
                c, "abc\n",
                (const char *const[]){"TransferInput", "\"a,b\"", "~TransferInputSizes", "\"1,$(f)\"", NULL},
                "TransferInputSizes: 'abc'");
        submit(c, NULL, 1,
               (const char *const[]){"TransferInput", "strcat(\"a\", Suffix)", "TransferInputSizes",
                                     "\"1,2,3\"", NULL});
        submit(c, "x\n", 1,
               (const char *const[]){"~TransferInput", "strcat(\"$(f)\", Suffix)", "TransferInputSizes",
                                     "\"1,2,3\"", NULL});
        /* As a slot of HTCondor does it. */
        r = submit(c, NULL, 1, (const char *const[]){"RequestCpus", "0", NULL});
        assert_true(ad_literal(r->parts[0].job_template->ad, c->attr.RequestCpus, &v) && v.integer == 1);
        r = submit(c, "0\n", 1, (const char *const[]){"~RequestCpus", "$(f)", NULL});
        assert_int_equal(r->buckets[0]->job_class->cpus, 1);
}

static void test_one_job(void **state)
{
        struct core *c = *state;
        const char *const attributes[] = {"~TransferInput", "\"https://far.org/$(f),x.txt\"",
                                          "TransferInputSizeMB", "3", NULL};
        const char *const nothing[] = {"TransferInput", "\"x.txt,/home/ann/y\"", NULL};
        struct request *r;

        configure(c);
        r = submit(c, "a\n", 1, attributes);
        expect_files(c, r, MEMBER_ANY, "1:1572864 "); /* a job alone shares all with itself */
        r = submit(c, NULL, 1, nothing);
        assert_null(r->parts[0].inputs);
}

static void expect_near(struct core *c, const struct request *r, const char *agent, const char *members)
{
        BUF_CLEANUP struct buf b = {0};

        const struct set *near = locality_members(r->parts[0].inputs, agent_find(c, agent));

        if (near)
                set_print(&b, near);
        assert_string_equal(buf_z(&b), members);
}

static void test_near(void **state)
{
        struct core *c = *state;
        const char *const two[] = {"~TransferInput", "\"https://se.lab/$(f),https://far.org/$(Process)\"",
                                   NULL};
        struct request *r;
        uint64_t gone = id_of("https://se.lab/b");

        configure(c);
        r = submit(c, "a\nb\na\nb\nc\n", 5, two);
        core_cache_delta(c, "n1", &(struct core_file){id_of("https://se.lab/a"), 1}, 1, NULL, 0, false);
        expect_near(c, r, "n1", "0,2");
        core_cache_delta(c, "n1", &(struct core_file){gone, 1}, 1, NULL, 0, false);
        core_cache_delta(c, "n1", &(struct core_file){id_of("https://far.org/3"), 1}, 1, NULL, 0, false);
        expect_near(c, r, "n1", "0-3");
        core_cache_delta(c, "n1", NULL, 0, &gone, 1, false); /* member 3 has another file there */
        expect_near(c, r, "n1", "0,2-3");
        core_cache_delta(c, "n1", NULL, 0, NULL, 0, true);
        expect_near(c, r, "n1", "");
}

/* The rows of a large part come in slices; the result is the same as if they had come at once. */
static void test_large(void **state)
{
        struct core *c = *state;
        const char *const attributes[] = {"~TransferInput", "\"https://se.lab/$(f)\"", "~TransferInputSizes",
                                          "\"$INT(f)\"", NULL};
        BUF_CLEANUP struct buf items = {0};
        struct request *r;
        unsigned slices = 0;
        uint32_t n = 20000;

        configure(c);
        for (uint32_t i = 0; i < n; i++)
                buf_printf(&items, "%u\n", i);
        core_cache_delta(c, "n1", &(struct core_file){id_of("https://se.lab/19999"), 19999}, 1, NULL, 0,
                         false);
        r = submit(c, buf_z(&items), n, attributes);
        assert_null(locality_members(r->parts[0].inputs, agent_find(c, "n1")));
        expect_files(c, r, n - 1, "");
        while (core_tick(c) == 0)
                slices++;
        assert_in_range(slices, 10, 30);
        expect_files(c, r, n - 1, "0:19999 ");
        expect_near(c, r, "n1", "19999");
        /* A queued job with a file of its own stays under 100 bytes. */
        assert_in_range(core_bytes(c), n * 20, n * 50);
}

static void test_cost(void **state)
{
        struct core *c = *state;
        const char *const attributes[] = {"TransferInput",
                                          "\"https://se.lab/a,https://far.org/b\"",
                                          "TransferInputSizes",
                                          "\"1000000,5000000\"",
                                          "ExpectedRunTime",
                                          "3600",
                                          "PriceWeight",
                                          "60",
                                          "RequestCpus",
                                          "2",
                                          "TransferOutputSizeMB",
                                          "10",
                                          "OutputDestination",
                                          "\"https://far.org/out/\"",
                                          NULL};
        const struct core_link links[] = {{STR("lab"), 2000, 1000000}, {STR("far"), 100000, 500000, 250000}};
        struct core_cost cost;
        struct request *r;
        const struct queue *q;

        configure(c);
        r = submit(c, NULL, 1, attributes);
        q = offer(c, "n1", "[Cpus=4; Memory=100; Disk=100; Price=0.5]");
        cost_of(c, &r->parts[0], 0, q, &cost); /* nothing was measured */
        assert_int_equal(cost.fetch_ms, 2 * COST_LATENCY_US / 1000 + 6000000ull * 1000 / COST_BYTES_PER_S);
        core_links(c, "n1", links, 2);
        core_cache_delta(c, "n1", &(struct core_file){id_of("https://se.lab/a"), 1000000}, 1, NULL, 0, false);
        cost_of(c, &r->parts[0], 0, q, &cost);
        assert_int_equal(cost.bytes_in, 6000000);
        assert_int_equal(cost.bytes_held, 1000000);
        assert_int_equal(cost.bytes_out, 10 << 20);
        assert_int_equal(cost.fetch_ms, 10100);
        assert_int_equal(cost.run_ms, 3600000);
        assert_int_equal(cost.send_ms, 100 + (10 << 20) / 250);
        assert_true(cost.price > 0.999 && cost.price < 1.001);
        assert_int_equal(cost.price_ms, 60000);
        assert_int_equal(cost.total_ms, 10100 + 3600000 + 100 + (10 << 20) / 250 + 60000);
        core_cache_delta(c, "n1", &(struct core_file){id_of("https://far.org/b"), 5000000}, 1, NULL, 0,
                         false);
        cost_of(c, &r->parts[0], 0, q, &cost);
        assert_int_equal(cost.fetch_ms, 0);
}

/* An environment is identified by its file's content, not by its name, nor by the distance of the spool. */
static void test_environments(void **state)
{
        struct core *c = *state;
        struct submission s = {.owner = STR("ann@lab"), .at_ms = 1700000000000, .uuid = {0xee}};
        struct submission_part *p = submission_add_part(&s);
        struct submission_file *f = submission_add_file(&s);
        BUF_CLEANUP struct buf url = {0};
        struct core_cost cost;
        struct err err = {""};
        bool existing;
        uint64_t id;

        p->rows = p->steps = 1;
        *f = (struct submission_file){.name = STR("environment.yml"), .sha256 = {7}, .size = 99};
        *(f = submission_add_file(&s)) =
                (struct submission_file){.name = STR("requirements.txt"), .sha256 = {8}, .size = 99};
        submission_add_attribute(p, STR("PythonEnv"), STR("\"envs/requirements.txt\""), false);
        submission_add_attribute(p, STR("CondaEnv"), STR("\"stats\""), false); /* a name: nothing to make */
        if (core_submit(c, &s, false, &id, &existing, &err) != 0)
                fail_msg("%s", err.text);
        submission_deinit(&s);
        const struct request *r = request_find(c, id);
        const struct queue *q = offer(c, "n1", "[Cpus=4; Memory=100; Disk=100]");
        link_to(c, "n1", 1, 1ull << 40);
        cost_of(c, &r->parts[0], 0, q, &cost);
        assert_int_equal(cost.bytes_in, INPUT_ENVIRONMENT_BYTES);
        assert_int_equal(cost.environment_ms,
                         (INPUT_ENVIRONMENT_BYTES + COST_BYTES_PER_S / 20) * 1000 / COST_BYTES_PER_S);
        assert_int_equal(cost.total_ms, cost.environment_ms + cost.run_ms);
        environment_url(ENVIRONMENT_PYTHON, (unsigned char[32]){8}, &url);
        core_cache_delta(c, "n2", &(struct core_file){id_of(buf_z(&url)), 25000000}, 1, NULL, 0, false);
        cost_of(c, &r->parts[0], 0, q, &cost);
        assert_int_equal(cost.environment_ms, 2050); /* its size is known now */
        core_cache_delta(c, "n1", &(struct core_file){id_of(buf_z(&url)), 25000000}, 1, NULL, 0, false);
        cost_of(c, &r->parts[0], 0, q, &cost);
        assert_int_equal(cost.environment_ms, 0);
        assert_int_equal(cost.bytes_held, 25000000);
}

/* For any reports of agents in any order: both directions agree, and the sets equal newly made ones. */
static void test_caches_come_and_go(void **state)
{
        const char *const two[] = {"~TransferInput", "\"https://se.lab/$(f),https://far.org/$(Process)\"",
                                   NULL};
        struct core *c = *state;
        uint64_t random = 42;

        configure(c);
        submit(c, "a\nb\na\nc\nb\na\n", 6, two);
        for (int i = 0; i < 3000; i++) {
                static const char *const urls[] = {
                        "https://se.lab/a",  "https://se.lab/b",  "https://se.lab/c", "https://far.org/0",
                        "https://far.org/3", "https://far.org/5", "https://far.org/9"};
                char name[4];
                struct core_file f;

                random = random * 6364136223846793005u + 1442695040888963407u;
                snprintf(name, sizeof(name), "n%d", (int)(random >> 60 & 3));
                f = (struct core_file){id_of(urls[(random >> 33) % 7]), random >> 40 & 1023};
                switch (random >> 56 & 7) {
                case 0: core_cache_delta(c, name, &f, 1, NULL, 0, true); break;
                case 1:
                case 2:
                case 3: core_cache_delta(c, name, NULL, 0, &f.id, 1, false); break;
                default: core_cache_delta(c, name, &f, 1, &f.id, 1, false);
                }
                if (core_check(c))
                        fail_msg("after %d: %s", i, core_check(c));
        }
}

/* Many members want one file, and an agent reports it again and again: the core looks at some of them in a
 * call, and the sets are right when time has passed. */
static void test_a_file_of_many(void **state)
{
        struct core *c = *state;
        const char *const one[] = {"~TransferInput", "\"https://se.lab/$(f)\"", NULL};
        BUF_CLEANUP struct buf items = {0};
        struct core_file said[1000];
        struct request *r;
        uint64_t steps, most = 0;

        configure(c);
        for (unsigned i = 0; i < 100000; i++)
                buf_addz(&items, i % 2 ? "a\n" : "b\n");
        r = submit(c, buf_z(&items), 100000, one);
        while (core_tick(c) == 0)
                ;
        for (unsigned i = 0; i < 1000; i++)
                said[i] = (struct core_file){id_of(i % 2 ? "https://se.lab/a" : "https://se.lab/c"), i};
        for (unsigned i = 0; i < 1000; i++) {
                steps = c->data->locality_steps;
                core_cache_delta(c, "n1", said, i % 2 ? 1000 : 0, &said[1].id, 1, i % 3 == 0);
                steps = c->data->locality_steps - steps;
                most = steps > most ? steps : most;
        }
        assert_in_range(most, 1000, 25000);
        assert_in_range(c->data->locality_steps, 100000, 300000); /* no time has passed */
        core_cache_delta(c, "n1", said, 1000, NULL, 0, true);
        assert_null(core_check(c));
        for (unsigned i = 0; i < 1000; i++)
                pass_time(c, 10);
        assert_int_equal(set_count(locality_members(r->parts[0].inputs, agent_find(c, "n1"))), 50000);
        core_cache_delta(c, "n1", NULL, 0, NULL, 0, true);
        for (unsigned i = 0; i < 1000; i++)
                pass_time(c, 10);
        assert_null(locality_members(r->parts[0].inputs, agent_find(c, "n1")));
        assert_null(core_check(c));
}

/* Removing one of many parts that want a file takes no step for each of the others. */
static void test_a_file_of_many_parts(void **state)
{
        struct core *c = *state;
        const char *const one[] = {"~TransferInput", "\"https://se.lab/$(f)\"", NULL};
        struct request *all[200];
        uint64_t steps;

        configure(c);
        for (unsigned i = 0; i < 200; i++)
                all[i] = submit(c, "a\nb\n", 2, one);
        core_cache_delta(c, "n1", &(struct core_file){id_of("https://se.lab/a"), 1}, 1, NULL, 0, false);
        expect_near(c, all[199], "n1", "0");
        steps = c->data->locality_steps;
        for (unsigned i = 200; i > 0; i -= 2)
                request_data_free(c, all[i - 1]);
        assert_int_equal(c->data->locality_steps - steps, 200);
        assert_null(core_check(c));
        core_cache_delta(c, "n1", NULL, 0, NULL, 0, true);
        expect_near(c, all[0], "n1", "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_shared_and_own, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_what_has_no_sense_is_refused, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_one_job, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_near, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_large, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_caches_come_and_go, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_a_file_of_many, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_a_file_of_many_parts, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_cost, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_environments, bare_core, bare_core_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
