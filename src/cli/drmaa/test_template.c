#include "cli/drmaa/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/drmaa/drmaa.h"

#define NOON 1790000000 /* 2026-09-21 14:13:20 UTC */

static void test_times(void **state)
{
        static const struct {
                const char *text;
                int64_t want; /* from NOON */
        } good[] = {
                {"14:13:20", 0},
                {"14:13:21", 1},
                {"14:13", 86400 - 20}, /* it is over: tomorrow */
                {"22 14:13:20", 86400},
                {"20 14:13:20", 29 * 86400}, /* of the next month */
                {"09/22 14:13:20", 86400},
                {"2026/09/22 14:13:20", 86400},
                {"26/09/22 14:13:20", 86400},
                {"2026/09/20 14:13:20", -86400}, /* whoever names the year means it */
                {"2026/09/21 16:13:20 +02:00", 0},
                {"2026/09/21 16:13:20+02:00", 0},
                {"2026/09/21 12:13:20 -02:00", 0},
        };
        static const char *const bad[] = {
                "",    "14",         "24:00", "14:60", "2026/13/01 10:00", "2026/00/01 10:00",
                "now", "14:13 east", "14:13:"};
        int64_t got;

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                assert_true(job_template_time(good[i].text, NOON, &got));
                if (got != NOON + good[i].want)
                        fail_msg("%s: %ld", good[i].text, (long)(got - NOON));
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (job_template_time(bad[i], NOON, &got))
                        fail_msg("%s was taken", bad[i]);
        assert_true(job_template_duration("90", &got) && got == 90);
        assert_true(job_template_duration("1:30", &got) && got == 90);
        assert_true(job_template_duration("2:01:30", &got) && got == 7290);
        assert_false(job_template_duration("1:2:3:4", &got));
        assert_false(job_template_duration("1h", &got));
}

static void set(struct job_template *t, const char *name, const char *value)
{
        struct err err = {""};

        if (job_template_set(t, name, value, &err) != DRMAA_ERRNO_SUCCESS)
                fail_msg("%s = %s: %s", name, value, err.text);
}

static void check_text(const struct job_template *t, const struct bulk *bulk, const char *want)
{
        struct buf out BUF_CLEANUP = {0};
        struct err err = {""};

        if (job_template_write(t, bulk, NOON, &out, &err) != DRMAA_ERRNO_SUCCESS)
                fail_msg("%s", err.text);
        assert_string_equal(buf_z(&out), want);
}

static void test_submit_file(void **state)
{
        static const char *const argv[] = {"plain", "with blank", "$(Process) \"quoted\" it's", "", NULL};
        static const char *const env[] = {"A=1", "B=x y", NULL};
        struct job_template *t = job_template_new();

        (void)state;
        set(t, DRMAA_REMOTE_COMMAND, "/bin/echo");
        set(t, DRMAA_WD, "/tmp/" DRMAA_PLACEHOLDER_INCR);
        set(t, DRMAA_OUTPUT_PATH, "host:" DRMAA_PLACEHOLDER_WD "/out." DRMAA_PLACEHOLDER_INCR);
        set(t, DRMAA_JOIN_FILES, "y");
        set(t, DRMAA_JOB_NAME, "a name");
        set(t, DRMAA_JS_STATE, DRMAA_SUBMISSION_STATE_HOLD);
        set(t, DRMAA_WCT_HLIMIT, "1:00:00");
        set(t, DRMAA_DURATION_HLIMIT, "90");
        set(t, DRMAA_NATIVE_SPECIFICATION, "request_memory = 2G; +Group = \"a;b\"");
        assert_int_equal(job_template_set_all(t, DRMAA_V_ARGV, argv, NULL), DRMAA_ERRNO_SUCCESS);
        assert_int_equal(job_template_set_all(t, DRMAA_V_ENV, env, NULL), DRMAA_ERRNO_SUCCESS);
        check_text(t, &(struct bulk){.first = 3, .step = -2, .count = 2},
                   "initialdir = /tmp/$(drmaa_incr)\n"
                   "executable = /bin/echo\n"
                   "arguments = \"plain 'with blank' '$(DOLLAR)(Process) \"\"quoted\"\" it''s' ''\"\n"
                   "environment = \"A=1 'B=x y'\"\n"
                   "output = /tmp/$(drmaa_incr)/out.$(drmaa_incr)\n"
                   "error = /tmp/$(drmaa_incr)/out.$(drmaa_incr)\n"
                   "batch_name = a name\n"
                   "hold = true\n"
                   "allowed_execute_duration = 90\n"
                   "request_memory = 2G\n +Group = \"a;b\"\n"
                   "queue drmaa_incr in (3 1)\n");
        job_template_free(t);
}

static void test_what_is_refused(void **state)
{
        static const struct {
                const char *name, *value;
                int want;
        } cases[] = {
                {DRMAA_TRANSFER_FILES, "ieo", DRMAA_ERRNO_INVALID_ARGUMENT},
                {"no_such", "1", DRMAA_ERRNO_INVALID_ARGUMENT},
                {DRMAA_V_ARGV, "1", DRMAA_ERRNO_INVALID_ARGUMENT},
                {DRMAA_JS_STATE, "held", DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE},
                {DRMAA_JOIN_FILES, "yes", DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE},
                {DRMAA_OUTPUT_PATH, "/tmp/out", DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT},
                {DRMAA_START_TIME, "soon", DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT},
                {DRMAA_WCT_HLIMIT, "0", DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT},
                {DRMAA_JOB_NAME, "a\nqueue 100", DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT},
        };
        static const char *const env[] = {"NAMELESS", NULL};
        struct job_template *t = job_template_new();
        struct buf out BUF_CLEANUP = {0};
        struct err err = {""};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_int_equal(job_template_set(t, cases[i].name, cases[i].value, &err), cases[i].want);
        assert_int_equal(job_template_set_all(t, DRMAA_V_ENV, env, &err),
                         DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT);
        assert_int_equal(job_template_write(t, &(struct bulk){.one = true, .count = 1}, NOON, &out, &err),
                         DRMAA_ERRNO_DENIED_BY_DRM);
        set(t, DRMAA_REMOTE_COMMAND, "no-such-program");
        assert_int_equal(job_template_write(t, &(struct bulk){.one = true, .count = 1}, NOON, &out, &err),
                         DRMAA_ERRNO_DENIED_BY_DRM);
        set(t, DRMAA_REMOTE_COMMAND, "/bin/" DRMAA_PLACEHOLDER_INCR);
        assert_int_equal(job_template_write(t, &(struct bulk){.one = true, .count = 1}, NOON, &out, &err),
                         DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE);
        job_template_free(t);
}

/* A name that ends with a backslash does not take the next line, here a hold, with it. */
static void test_a_backslash_at_the_end(void **state)
{
        struct job_template *t = job_template_new();
        struct buf out BUF_CLEANUP = {0};
        struct err err = {""};

        (void)state;
        set(t, DRMAA_REMOTE_COMMAND, "/bin/true");
        set(t, DRMAA_JOB_NAME, "x\\");
        set(t, DRMAA_JS_STATE, DRMAA_SUBMISSION_STATE_HOLD);
        assert_int_equal(job_template_write(t, &(struct bulk){.one = true, .count = 1}, NOON, &out, &err), 0);
        assert_non_null(strstr(buf_z(&out), "\nbatch_name = x\\$(drmaa_nothing:)\nhold = true\n"));
        job_template_free(t);
}

/* A folder whose name is the placeholder of the folder's name. */
static void test_a_folder_that_stands_for_itself(void **state)
{
        char top[] = "/tmp/drover-template-XXXXXX", name[64];
        struct job_template *t = job_template_new();
        struct buf out BUF_CLEANUP = {0};
        struct err err = {""};

        (void)state;
        assert_non_null(mkdtemp(top));
        snprintf(name, sizeof(name), "%s/" DRMAA_PLACEHOLDER_WD, top);
        assert_int_equal(mkdir(name, 0700), 0);
        assert_int_equal(chdir(name), 0);
        set(t, DRMAA_REMOTE_COMMAND, "/bin/true");
        assert_int_equal(job_template_write(t, &(struct bulk){.one = true, .count = 1}, NOON, &out, &err),
                         DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE);
        assert_int_equal(chdir("/"), 0);
        assert_int_equal(rmdir(name), 0);
        assert_int_equal(rmdir(top), 0);
        job_template_free(t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_times),
                cmocka_unit_test(test_submit_file),
                cmocka_unit_test(test_what_is_refused),
                cmocka_unit_test(test_a_backslash_at_the_end),
                cmocka_unit_test(test_a_folder_that_stands_for_itself),
        };

        setenv("TZ", "UTC", 1);
        tzset();
        return cmocka_run_group_tests_name("cli drmaa template", tests, NULL, NULL);
}
