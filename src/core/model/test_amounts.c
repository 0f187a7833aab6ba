/* Countable resources: GPUs, and other resources that a site counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/test_help.h"

static const char *const two_gpus[] = {"Requirements", "true", "RequestGPUs", "2", NULL};
static const char *const licence[] = {
        "Requirements", "true", "RequestLicence", "1", "RequestGPUs", "0", NULL};

static void test_text(void **state)
{
        struct symbols *symbols = symbols_new();
        struct buf BUF_CLEANUP out = {0};
        struct amounts a;

        (void)state;
        assert_int_equal(amounts_parse(symbols, STR("GPUs=2 Licence=1"), &a), 0);
        assert_int_equal(a.count, 2);
        amounts_print(&out, symbols, &a);
        assert_string_equal(buf_z(&out), "GPUs=2 Licence=1");
        assert_int_equal(amounts_parse(symbols, STR_NONE, &a), 0);
        assert_int_equal(a.count, 0);
        assert_int_equal(amounts_parse(symbols, STR("GPUs"), &a), -EBADMSG);
        assert_int_equal(amounts_parse(symbols, STR("GPUs=-1"), &a), -EBADMSG);
        assert_int_equal(amounts_parse(symbols, STR("a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1"), &a), -EBADMSG);
        assert_true(str_eqz(amounts_requested(STR("requestGPUs")), "GPUs"));
        assert_int_equal(amounts_requested(STR("RequestMemory")).n, 0);
        assert_int_equal(amounts_requested(STR("Request")).n, 0);
        symbols_free(symbols);
}

/* Jobs are dispatched only where the resource exists, up to its quantity, which an ended job returns. */
static void test_taken_and_returned(void **state)
{
        struct core *c = *state;
        struct core_job job;
        uint64_t r;

        offer(c, "plain", "[Cpus=64; Memory=1000; Disk=1000]");
        offer(c, "few", "[Cpus=64; Memory=1000; Disk=1000; GPUs=1]");
        r = test_submit(c, "ann@local", 9, two_gpus);
        expect_assigned(c, "");
        offer(c, "gpu", "[Cpus=64; Memory=1000; Disk=1000; GPUs=5; TotalGPUs=6]");
        expect_assigned(c, "gpu/default 1 0-1\n");
        assert_int_equal(core_job_get(c, r, 0, &job), 0);
        assert_string_equal(job.more, "GPUs=2");
        /* The agent made this offer before it knew of the attempts. */
        offer(c, "gpu", "[Cpus=64; Memory=1000; Disk=1000; GPUs=6; TotalGPUs=6]");
        expect_assigned(c, "gpu/default 1 2\n");
        started(c, "gpu", r, 0);
        started(c, "gpu", r, 1);
        started(c, "gpu", r, 2);
        assert_null(core_check(c));
        ended(c, "gpu", r, 0);
        offer(c, "gpu", "[Cpus=64; Memory=1000; Disk=1000; GPUs=2; TotalGPUs=6]");
        expect_assigned(c, "gpu/default 1 3\n");
        assert_null(core_check(c));
}

/* A job that waits for one resource does not block others, and a job without a request needs none. */
static void test_kinds(void **state)
{
        static const char *const both[] = {"Requirements",     "true", "RequestLicence", "2", "RequestGPUs",
                                           "TARGET.TotalGPUs", NULL};
        struct core *c = *state;

        test_submit(c, "ann@local", 1, two_gpus);
        test_submit(c, "ann@local", 2, licence);
        test_submit(c, "ann@local", 2, both);
        offer(c, "n", "[Cpus=4; Memory=100; Disk=100; Licence=3; TotalLicence=3; GPUs=1; TotalGPUs=1]");
        expect_assigned(c, "n/default 2 0-1\n");
        offer(c, "m", "[Cpus=4; Memory=100; Disk=100; Licence=3; TotalLicence=3; GPUs=1; TotalGPUs=1]");
        expect_assigned(c, "m/default 3 0\n");
}

static void tell(void *arg, const struct core_why *w)
{
        buf_printf(arg, "%s %d " STR_FMT " (" STR_FMT ")\n", w->agent, (int)w->verdict, STR_ARG(w->clause),
                   STR_ARG(w->value));
}

static void tell_change(void *arg, const struct core_change *x)
{
        buf_printf(arg, STR_FMT " %lld to %lld: %u of %u\n", STR_ARG(x->text), (long long)x->asked,
                   (long long)x->most, x->alone, x->refused);
}

static void test_why(void **state)
{
        struct core *c = *state;
        struct buf BUF_CLEANUP said = {0};
        uint64_t r = test_submit(c, "ann@local", 1, two_gpus);
        struct core_what_if *changes = core_what_if_new();
        struct core_walk *walk;

        offer(c, "one", "[Cpus=4; Memory=100; Disk=100; GPUs=0; TotalGPUs=1]");
        offer(c, "six", "[Cpus=4; Memory=100; Disk=100; GPUs=1; TotalGPUs=6]");
        expect_assigned(c, "");
        assert_int_equal(core_why(c, r, 0, tell, &said), 0);
        assert_string_equal(buf_z(&said), "one 2 TARGET.GPUs >= RequestGPUs (1 >= 2)\n"
                                          "six 1 TARGET.GPUs >= RequestGPUs (1 >= 2)\n");
        buf_reset(&said);
        walk = core_walk_new(c);
        assert_int_equal(core_what_if_look(c, changes, walk, 2, r, 0), 0);
        core_what_if_tell(changes, tell_change, &said);
        core_what_if_free(changes);
        core_walk_free(walk);
        assert_string_equal(buf_z(&said), "RequestGPUs 2 to 1: 1 of 1\n");
}

static void test_replay(void **state)
{
        struct core *c = *state, *again;
        struct buf BUF_CLEANUP before = {0}, after = {0};
        struct core_config config = {.shadow = true};
        struct core_world none = c->world;
        uint64_t r;

        offer(c, "gpu", "[Cpus=64; Memory=1000; Disk=1000; GPUs=5; TotalGPUs=6]");
        r = test_submit(c, "ann@local", 3, two_gpus);
        expect_assigned(c, "gpu/default 1 0-1\n");
        started(c, "gpu", r, 0);
        core_snapshot(c, &before);
        again = core_new(&config, &none);
        assert_int_equal(core_restore(again, buf_view(&before), NULL), 0);
        assert_null(core_check(again));
        assert_int_equal(agent_find(again, "gpu")->queues->resources[0].taken, 2);
        core_snapshot(again, &after);
        assert_true(str_eq(buf_view(&before), buf_view(&after)));
        core_free(again);
}

static void test_too_many(void **state)
{
        static const char *const many[] = {"Requirements", "true", "RequestA", "1", "RequestB", "1",
                                           "RequestC",     "1",    "RequestD", "1", "RequestE", "1",
                                           "RequestF",     "1",    "RequestG", "1", "RequestH", "1",
                                           "RequestI",     "1",    NULL};

        assert_int_equal(test_submit(*state, "ann@local", 1, many), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_text),
                cmocka_unit_test_setup_teardown(test_taken_and_returned, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_kinds, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_why, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_replay, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_too_many, bare_core, bare_core_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
