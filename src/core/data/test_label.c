/* Labels: which agents get jobs with labelled data, and where their outputs may go. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/test_help.h"

#define AD "[Cpus=4; TotalCpus=4; Memory=100; Disk=100]"

static const struct str clinic[] = {{"https://clinic/", 15}, {"root://clinic/", 14}};
static const struct str lab[] = {{"https://lab/", 12}};
static const struct str vault[] = {{"https://vault/", 14}};
static const struct str both_labels[] = {{"patient", 7}, {"trial", 5}};
static const struct str cohort[] = {{"https://lab/cohort/", 19}};
static const struct str cleared[] = {{"ward-*", 6}, {"n2", 2}};

static void configure(struct core *c)
{
        const struct core_store stores[] = {
                {.urls = {STR("clinic"), clinic, 2}, .labels = both_labels, .label_count = 1},
                {.urls = {STR("lab"), lab, 1}},
                {.urls = {STR("vault"), vault, 1}, .labels = both_labels, .label_count = 2},
        };
        const struct core_label labels[] = {
                {.name = STR("patient"), .agents = cleared, .agent_count = 2},
                {.name = STR("trial"),
                 .agents = cleared + 1,
                 .agent_count = 1,
                 .datasets = cohort,
                 .dataset_count = 1,
                 .not_spooled = true},
        };
        const struct core_data data = {stores, 3, labels, 2};

        assert_int_equal(core_data_set(c, &data, NULL), 0);
}

/* An agent's own claims of clearance have no effect, in any form. */
static void test_only_cleared_agents(void **state)
{
        const char *const job[] = {"TransferInput", "\"/etc/motd,root://Clinic:1094//scan\"", NULL};
        struct core *c = *state;

        configure(c);
        submit(c, NULL, 1, job);
        offer(c, "evil",
              "[Cpus=64; Memory=100; Disk=100; Clearance=\"patient\"; DataLabels=\"patient\"; "
              "Labels={\"patient\"}; Cleared=true; Name=\"ward-1\"; Machine=\"ward-1\"]");
        expect_assigned(c, "");
        offer(c, "ward-1", AD);
        expect_assigned(c, "ward-1/default 1 0\n");
}

static void on_why(void *arg, const struct core_why *w)
{
        buf_printf(arg, "%s %d " STR_FMT "\n", w->agent, w->verdict, STR_ARG(w->value));
}

static void test_why(void **state)
{
        const char *const job[] = {"TransferInput", "\"https://vault/x\"", "OutputDestination",
                                   "\"https://vault/out/\"", NULL};
        BUF_CLEANUP struct buf b = {0}, want = {0};
        struct core *c = *state;
        struct ad *ad;
        struct str labels;

        configure(c);
        submit(c, NULL, 1, job);
        offer(c, "n1", AD);
        offer(c, "ward-1", AD);
        assert_int_equal(core_why(c, 1, 0, on_why, &b), 0);
        buf_printf(&want, "n1 %d patient,trial\nward-1 %d trial\n", CORE_NOT_CLEARED, CORE_NOT_CLEARED);
        assert_string_equal(buf_z(&b), buf_z(&want));
        /* The job says which labels it has, for the next link of a delegation. */
        ad = core_job_ad(c, 1, 0);
        assert_true(eval_string(&c->eval, ad, NULL, c->attr.DataLabels, &labels));
        assert_true(str_eqz(labels, "patient,trial"));
        ad_free(ad);
}

/* Members differ in their inputs, and so in the agents that may run them. */
static void test_members_differ(void **state)
{
        const char *const job[] = {"~TransferInput", "\"https://$(f)\"", NULL};
        struct core *c = *state;

        configure(c);
        submit(c, "lab/a\nclinic/b\nlab/x/../cohort1\nlab/../clinic/c\nlab\n", 5, job);
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 1 0,2-4\n");
        offer(c, "ward-1", AD);
        expect_assigned(c, "ward-1/default 1 1\n");
}

/* An item that leaves the folder named by the template, or hides the path. */
static void test_no_way_around(void **state)
{
        const char *const job[] = {"~TransferInput", "\"https://lab/public/$(f)\"", "OutputDestination",
                                   "\"https://vault/\"", NULL};
        struct core *c = *state;

        configure(c);
        assert_false(label_differs(c, submit(c, "a\nb\n", 2, job)->parts)); /* looked at once for all */
        submit(c, "a\n../cohort/x\n%2e%2E/cohort/y\n..//%63ohort/z\n", 4, job);
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 1 0-1\nn1/default 2 0\n");
        offer(c, "n2", AD);
        expect_assigned(c, "n2/default 2 1-3\n");
}

static void expect_refused(struct core *c, const char *const *attributes, const char *items, uint64_t rows,
                           const char *why)
{
        struct err err = {""};

        assert_int_equal(try_submit(c, items, rows, attributes, &err), CORE_INVALID);
        assert_string_equal(err.text, why);
        assert_int_equal(core_request_next(c, 0), 0);
}

static void test_outputs(void **state)
{
        const char *const leak[] = {"TransferInput", "\"https://clinic/a\"", "OutputDestination",
                                    "\"https://lab/out\"", NULL};
        const char *const remap[] = {"TransferInput", "\"https://clinic/a\"", "TransferOutputRemaps",
                                     "\"a=b;c=https://lab/out/c\"", NULL};
        const char *const late[] = {"~TransferInput", "\"https://$(f)\"", "OutputDestination",
                                    "\"https://lab/\"", NULL};
        const char *const home[] = {"TransferInput", "\"https://lab/cohort/a\"", NULL};
        const char *const unknown[] = {"DataLabels", "\"secret\"", NULL};
        const char *const bare[] = {"DataLabels", "patient", NULL};
        const char *const late_bare[] = {"~DataLabels", "$(f)", NULL};
        const char *const said[] = {"DataLabels", "\"patient\"", "Out", "\"https://far/o\"", NULL};
        const char *const good[] = {"TransferInput",
                                    "\"https://clinic/a\"",
                                    "OutputDestination",
                                    "\"https://vault/out\"",
                                    "TransferOutputRemaps",
                                    "\"x=root://clinic//x\"",
                                    NULL};
        struct core *c = *state;

        configure(c);
        expect_refused(
                c, leak, NULL, 1,
                "its inputs carry the label 'patient', and https://lab/out, where an output goes, does "
                "not: choose a store that carries it");
        expect_refused(c, remap, NULL, 1,
                       "its inputs carry the label 'patient', and https://lab/out/c, where an output goes, "
                       "does not: choose a store that carries it");
        expect_refused(c, late, "lab/a\nclinic/b\n", 2,
                       "its inputs carry the label 'patient', and https://lab/, where an output goes, does "
                       "not: choose a store that carries it");
        expect_refused(c, home, NULL, 1,
                       "data with the label 'trial' may not come back to the server: give it an "
                       "OutputDestination that carries the label");
        expect_refused(c, unknown, NULL, 1, "DataLabels: no label 'secret' is configured at this server");
        expect_refused(c, bare, NULL, 1, "DataLabels is no text: labels stand in quotes, parted by commas");
        expect_refused(c, late_bare, "patient\ntrial\n", 2,
                       "DataLabels is no text: labels stand in quotes, parted by commas");
        expect_refused(c, said, NULL, 1,
                       "its inputs carry the label 'patient', and https://far/o, where an output goes, does "
                       "not: choose a store that carries it");
        submit(c, NULL, 1, good);
}

static void expect_held(struct core *c)
{
        struct core_job j;

        pass_time(c, 1000);
        assert_int_equal(core_job_get(c, 1, 0, &j), 0);
        assert_int_equal(j.state, JOB_HELD);
        assert_int_equal(j.hold_code, CORE_HOLD_OUTPUT);
        assert_true(str_starts(j.hold_reason, STR("its inputs carry the label 'patient'")));
}

/* Jobs accepted under another configuration are held, not run; and again when they are released. */
static void test_configuration_changes(void **state)
{
        const char *const job[] = {"TransferInput", "\"https://clinic/a\"", "OutputDestination",
                                   "\"https://lab/out\"", NULL};
        struct core *c = *state;
        const struct core_command release = {.action = CORE_ACT_RELEASE, .request = 1};
        uint64_t changed;

        submit(c, NULL, 1, job);
        configure(c);
        offer(c, "n2", AD);
        expect_assigned(c, "");
        expect_held(c);
        assert_int_equal(core_act(c, &release, &changed, NULL), 0);
        expect_held(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_only_cleared_agents), TEST(test_why),     TEST(test_members_differ),
                TEST(test_no_way_around),       TEST(test_outputs), TEST(test_configuration_changes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
