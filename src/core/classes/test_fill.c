/* Values that a place fills in: for which members, and the result if there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/test_help.h"

#define PLACE "[Cpus = 4; Memory = 8000; Disk = 100; Arch = \"SPARC\"; Score = 2.5; "

static void expect_attribute(struct core *c, const struct request *r, uint32_t member, const char *name,
                             const char *text)
{
        struct ad *ad = core_job_ad(c, r->id, member);
        struct str value = STR_NONE;

        assert_true(eval_string(&c->eval, ad, NULL, symbols_intern(c->symbols, str_of(name)), &value));
        if (!str_eqz(value, text))
                fail_msg("%s is " STR_FMT ", not %s", name, STR_ARG(value), text);
        ad_free(ad);
}

static void test_one_group_has_one_set_of_values(void **state)
{
        struct core *c = *state;
        struct request *r = submit(c, NULL, 3,
                                   (const char *const[]){"Cmd", "\"x.$$(Arch)\"", "Args",
                                                         "\"$$(Cpus) $$(Site:far) $$(Score)\"", "RequestCpus",
                                                         "1", "~Out", "\"$(Process).$$(Arch)\"", NULL});

        offer(c, "n1", PLACE "]");
        expect_assigned(c, "n1/default 1 0-2 Arch=SPARC Cpus=1 Site:far=far Score=2.500000000000000E+00\n");
        expect_attribute(c, r, 1, "MATCH_Arch", "SPARC");
        expect_attribute(c, r, 1, "MATCH_EXP_Cmd", "x.SPARC");
        expect_attribute(c, r, 1, "MATCH_EXP_Args", "1 far 2.500000000000000E+00");
        expect_attribute(c, r, 1, "MATCH_EXP_Out", "1.SPARC");
        expect_attribute(c, r, 1, "Cmd", "x.$$(Arch)");
}

static void test_what_differs_by_job_is_given_apart(void **state)
{
        struct core *c = *state;

        submit(c, "a\nb\n", 2,
               (const char *const[]){
                       "~Args", "\"$$([strcat(TARGET.Arch, string(ProcId + 1))]) $$(None:$(f))\"", NULL});
        offer(c, "n1", PLACE "]");
        expect_assigned(c, "n1/default 1 0 [strcat(TARGET.Arch, string(ProcId + 1))]=SPARC1 None:a=a\n"
                           "n1/default 1 1 [strcat(TARGET.Arch, string(ProcId + 1))]=SPARC2 None:b=b\n");
}

static void test_references_in_items(void **state)
{
        struct core *c = *state;

        submit(c, "$$(Arch)\nplain\n", 2, (const char *const[]){"~Args", "\"$(f)\"", NULL});
        offer(c, "n1", PLACE "]");
        expect_assigned(c, "n1/default 1 0 Arch=SPARC\nn1/default 1 1\n");
}

static void test_without_a_value_all_are_held(void **state)
{
        struct core *c = *state;
        struct request *r = submit(c, NULL, 1000, (const char *const[]){"Args", "\"$$(Nothing)\"", NULL});
        struct core_job job;

        offer(c, "n1", PLACE "]");
        expect_assigned(c, "");
        assert_int_equal(core_job_get(c, r->id, 999, &job), 0);
        assert_int_equal(job.state, JOB_HELD);
        assert_int_equal(job.hold_code, 0);
        assert_true(str_starts(job.hold_reason, STR("Cannot expand $$ expression (Nothing): default@n1 ")));
        assert_int_equal(set_count(&request_cold(r)->held), 1000);
        assert_null(core_check(c));
}

static void test_without_a_value_for_one_that_one_is_held(void **state)
{
        struct core *c = *state;
        struct request *r =
                submit(c, "Arch\nNothing\nScore\n", 3, (const char *const[]){"~Args", "\"$$($(f))\"", NULL});

        offer(c, "n1", PLACE "]");
        expect_assigned(c, "n1/default 1 0 Arch=SPARC\nn1/default 1 2 Score=2.500000000000000E+00\n");
        assert_int_equal(request_state(r, 1), JOB_HELD);
        assert_null(core_check(c));
}

static void test_what_the_job_gets_of_a_resource(void **state)
{
        struct core *c = *state;

        submit(c, NULL, 1,
               (const char *const[]){"Args", "\"$$(GPUs) $$(Memory)\"", "RequestGPUs", "2", NULL});
        offer(c, "n1", PLACE "GPUs = 4]");
        expect_assigned(c, "n1/default 1 0 GPUs=2 Memory=8000\n");
}

/* An attribute of the place that is an expression may refer to the job. */
static void test_a_places_expression(void **state)
{
        struct core *c = *state;

        submit(c, NULL, 2, (const char *const[]){"Args", "\"$$(Port)\"", NULL});
        offer(c, "n1", PLACE "Port = 8000 + TARGET.ProcId]");
        expect_assigned(c, "n1/default 1 0 Port=8000\nn1/default 1 1 Port=8001\n");
}

static void test_the_next_place_fills_in_its_own(void **state)
{
        struct core *c = *state;
        struct request *r = submit(c, NULL, 1, (const char *const[]){"Args", "\"$$(Arch)\"", NULL});
        struct set one = {0};
        struct core_attempts a = {r->id, 1, &one};

        set_add(&one, 0);
        offer(c, "n1", PLACE "]");
        expect_assigned(c, "n1/default 1 0 Arch=SPARC\n");
        core_withdraw(c, "n1", "default");
        core_refused(c, "n1", &a, STR("no"), 0);
        expect_attribute(c, r, 0, "MATCH_Arch", "SPARC");
        offer(c, "n2", "[Cpus = 1; Arch = \"ARM\"]");
        expect_assigned(c, "n2/default 1 0 Arch=ARM\n");
        expect_attribute(c, r, 0, "MATCH_EXP_Args", "ARM");
        set_deinit(&one);
}

/* The values are in the log and in snapshots. */
static struct buf log_bytes[64];
static size_t log_count;
static struct buf stored;

static void keep_event(void *arg, const struct event *e)
{
        (void)arg;
        event_pack(&log_bytes[log_count++], e);
}
static void keep_record(void *arg, uint64_t request, struct str record)
{
        (void)arg, (void)request;
        buf_reset(&stored);
        buf_str(&stored, record);
}
static int load_record(void *arg, uint64_t request, struct buf *ret, struct err *err)
{
        (void)arg, (void)request, (void)err;
        buf_str(ret, buf_view(&stored));
        return 0;
}

static void test_a_restart_keeps_them(void **state)
{
        static const struct core_config config = {.lease_ms = 86400000}, shadow = {.shadow = true};
        const struct core_world world = {NULL,        keep_event,   bare_history, keep_record, bare_forget,
                                         bare_assign, bare_control, load_record,  NULL};
        struct core *c[3] = {core_new(&config, &world), core_new(&config, &world), core_new(&shadow, &world)};
        struct buf snapshot[3] = {{0}, {0}, {0}};
        struct request *r;
        size_t n;

        (void)state;
        core_clock(c[0], 1700000000000, 1000);
        r = submit(c[0], NULL, 2, (const char *const[]){"Args", "\"$$(Arch)\"", NULL});
        offer(c[0], "n1", PLACE "]");
        core_match(c[0]);
        buf_reset(&bare_assigned);
        n = log_count;
        for (int k = 1; k < 3; k++)
                for (size_t i = 0; i < n; i++)
                        assert_int_equal(core_replay(c[k], buf_view(&log_bytes[i]), NULL), 0);
        expect_attribute(c[1], r, 1, "MATCH_EXP_Args", "SPARC");
        for (int k = 0; k < 3; k++)
                core_snapshot(c[k], &snapshot[k]);
        assert_true(str_eq(buf_view(&snapshot[0]), buf_view(&snapshot[1])));
        assert_true(str_eq(buf_view(&snapshot[0]), buf_view(&snapshot[2])));
        core_free(c[1]);
        c[1] = core_new(&config, &world);
        core_clock(c[1], 1700000000000, 1000);
        assert_int_equal(core_restore(c[1], buf_view(&snapshot[2]), NULL), 0);
        expect_attribute(c[1], r, 0, "MATCH_EXP_Args", "SPARC");
        for (int k = 0; k < 3; k++) {
                buf_deinit(&snapshot[k]);
                core_free(c[k]);
        }
        for (size_t i = 0; i < log_count; i++)
                buf_deinit(&log_bytes[i]);
        buf_deinit(&stored);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_one_group_has_one_set_of_values),
                TEST(test_what_differs_by_job_is_given_apart),
                TEST(test_references_in_items),
                TEST(test_without_a_value_all_are_held),
                TEST(test_without_a_value_for_one_that_one_is_held),
                TEST(test_what_the_job_gets_of_a_resource),
                TEST(test_a_places_expression),
                TEST(test_the_next_place_fills_in_its_own),
                TEST(test_a_restart_keeps_them),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
