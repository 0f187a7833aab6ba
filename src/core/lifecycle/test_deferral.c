/* Jobs with a start time, and jobs that take too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/test_help.h"

#define PLACE "[Cpus = 4; Memory = 8000; Disk = 100]"

static int hold_code(struct core *c, const struct request *r, uint32_t member)
{
        struct core_job job;

        assert_int_equal(core_job_get(c, r->id, member, &job), 0);
        return job.state == JOB_HELD ? job.hold_code : -1;
}

static void see_deferred(void *arg, const struct core_why *w)
{
        *(int *)arg += w->verdict == CORE_JOB_REFUSES && str_eqz(w->clause, "time() >= DeferralTime");
}

/* The clock of the tests begins at 1700000000. */
static void test_not_before_its_time(void **state)
{
        struct core *c = *state;
        int refused = 0;

        offer(c, "n1", PLACE);
        submit(c, NULL, 2, (const char *const[]){"DeferralTime", "QDate + 60", NULL});
        submit(c, NULL, 1, (const char *const[]){"Args", "\"x\"", NULL});
        expect_assigned(c, "n1/default 2 0\n");
        pass_time(c, 59000);
        expect_assigned(c, "");
        core_why(c, 1, 0, see_deferred, &refused);
        assert_int_equal(refused, 1);
        pass_time(c, 1000);
        expect_assigned(c, "n1/default 1 0-1\n");
        assert_null(core_check(c));
}

static void test_a_missed_time_is_held(void **state)
{
        struct core *c = *state;
        struct request *r =
                submit(c, "1700000010\n1700000020\n", 2,
                       (const char *const[]){"~DeferralTime", "$(f)", "DeferralWindow", "5", NULL});

        pass_time(c, 25000);
        assert_int_equal(hold_code(c, r, 0), -1);
        pass_time(c, 1000);
        assert_int_equal(hold_code(c, r, 0), 20);
        offer(c, "n1", PLACE);
        expect_assigned(c, "n1/default 1 1\n");
        assert_null(core_check(c));
}

static void test_durations(void **state)
{
        struct core *c = *state;
        struct request *r =
                submit(c, "30\n900\n", 2, (const char *const[]){"~AllowedExecuteDuration", "$(f)", NULL});
        struct request *s = submit(c, NULL, 1, (const char *const[]){"AllowedJobDuration", "100", NULL});
        struct core_command suspend = {.action = CORE_ACT_SUSPEND, .request = r->id};
        uint64_t affected;

        offer(c, "n1", PLACE);
        core_match(c);
        started(c, "n1", r->id, 0);
        started(c, "n1", r->id, 1);
        started(c, "n1", s->id, 0);
        assert_int_equal(core_act(c, &suspend, &affected, NULL), 0); /* the duration goes on */
        pass_time(c, 25000);
        assert_int_equal(request_state(r, 0), JOB_SUSPENDED);
        pass_time(c, 25000);
        assert_int_equal(request_state(r, 0), JOB_VACATING);
        assert_int_equal(request_job(r, 0)->hold_code, 47);
        assert_int_equal(request_state(r, 1), JOB_SUSPENDED);
        assert_int_equal(request_state(s, 0), JOB_RUNNING);
        pass_time(c, 60000);
        assert_int_equal(request_state(s, 0), JOB_VACATING);
        assert_int_equal(request_job(s, 0)->goal, JOB_HELD);
        assert_int_equal(request_job(s, 0)->hold_code, 46);
        buf_reset(&bare_assigned);
}

static void test_periodic_vacate(void **state)
{
        struct core *c = *state;
        struct request *r =
                submit(c, NULL, 1,
                       (const char *const[]){"PeriodicVacate", "time() - JobCurrentStartDate > 60", NULL});

        offer(c, "n1", PLACE);
        core_match(c);
        started(c, "n1", r->id, 0);
        pass_time(c, 50000);
        assert_int_equal(request_state(r, 0), JOB_RUNNING);
        pass_time(c, 50000);
        assert_int_equal(request_state(r, 0), JOB_VACATING);
        assert_int_equal(request_job(r, 0)->goal, JOB_IDLE);
        buf_reset(&bare_assigned);
}

/* After a start from an older copy, waiting jobs of it are not dispatched for a while; new jobs are. */
static void test_what_may_run_unknown(void **state)
{
        struct core *c = *state;

        submit(c, NULL, 1, (const char *const[]){NULL});
        core_lost(c, 1, 60000);
        offer(c, "n1", PLACE);
        expect_assigned(c, "");
        assert_int_equal(core_lost_wait_ms(c, 1), 60000);
        assert_int_equal(core_lost_wait_ms(c, 2), 0);
        submit(c, NULL, 1, (const char *const[]){NULL}); /* like the one that waits */
        expect_assigned(c, "n1/default 2 0\n");
        submit(c, NULL, 1, (const char *const[]){"RequestMemory", "7", NULL});
        offer(c, "n1", PLACE);
        expect_assigned(c, "n1/default 3 0\n");
        offer(c, "n1", PLACE);
        pass_time(c, 59000);
        expect_assigned(c, "");
        pass_time(c, 1000);
        expect_assigned(c, "n1/default 1 0\n");
        assert_int_equal(core_lost_wait_ms(c, 1), 0);
        assert_null(core_check(c));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_not_before_its_time), TEST(test_a_missed_time_is_held), TEST(test_durations),
                TEST(test_periodic_vacate),     TEST(test_what_may_run_unknown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
