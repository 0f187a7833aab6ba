/* Jobs that have ended and stay in the queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/test_help.h"

#include "base/pack.h"

#define PLACE "[Cpus = 99; Memory = 8000; Disk = 100]"

static struct request *run(struct core *c, uint64_t count, const char *const *attributes)
{
        struct request *r = submit(c, NULL, count, attributes);

        offer(c, "n1", PLACE);
        core_match(c);
        buf_reset(&bare_assigned);
        for (uint32_t m = 0; m < count; m++)
                started(c, "n1", r->id, m);
        return r;
}

static void end(struct core *c, const struct request *r, uint32_t member, int exit_code)
{
        const struct job *j = request_job(r, member);
        const struct core_result res = {.request = r->id,
                                        .member = member,
                                        .fence = j->fence,
                                        .exit_code = exit_code,
                                        .started_ms = j->started_ms,
                                        .ended_ms = c->now_ms};

        assert_true(core_result(c, "n1", &res));
        assert_null(core_check(c));
}

static uint64_t left(struct core *c, const struct request *r)
{
        struct core_request view;

        assert_null(core_check(c));
        assert_int_equal(core_request_get(c, r->id, &view), 0);
        assert_int_equal(view.counts.left, c->requests->left);
        return view.counts.left;
}

static uint64_t act_remove(struct core *c, const struct request *r, const struct set *members)
{
        uint64_t n;

        assert_int_equal(core_act(c,
                                  &(struct core_command){
                                          .action = CORE_ACT_REMOVE, .request = r->id, .members = members},
                                  &n, NULL),
                         0);
        return n;
}

static void test_until_its_time(void **state)
{
        struct core *c = *state;
        struct request *r =
                run(c, 2,
                    (const char *const[]){"LeaveJobInQueue", "JobStatus == 4 && time() - CompletionDate < 60",
                                          NULL});
        uint64_t id = r->id;

        end(c, r, 0, 0);
        pass_time(c, 30000);
        end(c, r, 1, 7);
        assert_int_equal(left(c, r), 2);
        assert_int_equal(request_state(r, 0), JOB_COMPLETED);
        assert_true(request_cold(r)->finished_ms > 0);
        pass_time(c, 20000);
        assert_int_equal(left(c, r), 2);
        pass_time(c, 20000);
        assert_int_equal(left(c, r), 1);
        pass_time(c, 100000);
        assert_int_equal(left(c, r), 0);
        assert_null(r->jobs);
        pass_time(c, 86400000);
        assert_null(request_find(c, id));
}

static void test_by_its_exit_code(void **state)
{
        struct core *c = *state;
        struct request *r = run(
                c, 3, (const char *const[]){"LeaveJobInQueue", "ExitCode != 0 && JobRunCount == 1", NULL});

        end(c, r, 0, 0);
        assert_int_equal(left(c, r), 0);
        end(c, r, 1, 7);
        assert_int_equal(left(c, r), 1);
        end(c, r, 2, 0);
        assert_int_equal(left(c, r), 1);
        assert_int_equal(act_remove(c, r, NULL), 1);
        assert_int_equal(left(c, r), 0);
        assert_int_equal(act_remove(c, r, NULL), 0);
}

/* Retained jobs are not forgotten, however old, and are not held, released or run again. */
static void test_for_ever(void **state)
{
        struct core *c = *state;
        struct request *r = run(c, 3, (const char *const[]){"LeaveJobInQueue", "true", NULL});
        struct set one = {0};
        uint64_t n;

        end(c, r, 0, 0);
        end(c, r, 1, 0);
        set_add(&one, 2);
        assert_int_equal(act_remove(c, r, &one), 1); /* member 2, which runs */
        assert_int_equal(left(c, r), 2);
        end(c, r, 2, 0);
        assert_int_equal(request_state(r, 2), JOB_REMOVED);
        assert_int_equal(left(c, r), 3);
        assert_int_equal(act_remove(c, r, &one), 1);
        assert_int_equal(left(c, r), 2);
        for (enum core_action a = CORE_ACT_HOLD; a <= CORE_ACT_PRIORITY; a++) {
                if (a == CORE_ACT_REMOVE)
                        continue;
                assert_int_equal(core_act(c, &(struct core_command){.action = a, .request = r->id}, &n, NULL),
                                 0);
                assert_int_equal(n, 0);
        }
        pass_time(c, 3 * 86400000ll);
        assert_int_equal(left(c, r), 2);
        set_deinit(&one);
}

static void test_those_that_never_started(void **state)
{
        struct core *c = *state;
        struct request *r = submit(c, NULL, 5000, (const char *const[]){"LeaveJobInQueue", "true", NULL});

        assert_int_equal(act_remove(c, r, NULL), 5000);
        pass_time(c, 1000);
        assert_int_equal(left(c, r), 0);
        assert_true(request_cold(r)->finished_ms > 0);
}

/* Many retained jobs leave in slices, and a tick in between does no harm. */
static void test_slices(void **state)
{
        struct core *c = *state;
        struct request *r = run(c, 90, (const char *const[]){"LeaveJobInQueue", "time() < 1700000100", NULL});
        struct request *s = submit(c, NULL, 1, (const char *const[]){"Args", "\"x\"", NULL});

        for (uint32_t m = 0; m < 90; m++)
                end(c, r, m, 0);
        offer(c, "n1", PLACE);
        expect_assigned(c, "n1/default 2 0\n");
        started(c, "n1", s->id, 0);
        end(c, s, 0, 0);
        assert_null(s->jobs);
        assert_int_equal(left(c, r), 90);
        core_clock(c, 1700000200000, c->steady_ms);
        core_tick(c);
        pass_time(c, 0);
        assert_int_equal(left(c, r), 0);
}

static struct buf events;

static void keep_event(void *arg, const struct event *e)
{
        BUF_CLEANUP struct buf one = {0};

        (void)arg;
        event_pack(&one, e);
        pack_str(&events, buf_view(&one));
}

/* A shadow, which has no expressions, reaches the same state from events and from a snapshot. */
static void test_replay(void **state)
{
        struct core *c = *state, *shadow, *restored;
        struct core_config config = {.shadow = true};
        BUF_CLEANUP struct buf mine = {0}, its = {0}, again = {0};
        struct unpack u;
        struct request *r;

        c->world.event = keep_event;
        r = run(c, 4, (const char *const[]){"LeaveJobInQueue", "ExitCode != 3", NULL});
        for (uint32_t m = 0; m < 4; m++)
                end(c, r, m, (int)m);
        assert_int_equal(left(c, r), 3);
        shadow = core_new(&config, &c->world);
        u = unpack_from(buf_view(&events));
        while (u.p < u.end) {
                struct err err = {""};

                if (core_replay(shadow, unpack_str(&u), &err) != 0)
                        fail_msg("%s", err.text);
        }
        assert_null(core_check(shadow));
        core_snapshot(c, &mine);
        core_snapshot(shadow, &its);
        assert_true(str_eq(buf_view(&mine), buf_view(&its)));
        restored = core_new(&config, &c->world);
        assert_int_equal(core_restore(restored, buf_view(&mine), NULL), 0);
        core_snapshot(restored, &again);
        assert_true(str_eq(buf_view(&mine), buf_view(&again)));
        assert_int_equal(restored->requests->left, 3);
        core_free(restored);
        core_free(shadow);
        buf_deinit(&events);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_until_its_time),           TEST(test_by_its_exit_code), TEST(test_for_ever),
                TEST(test_those_that_never_started), TEST(test_slices),           TEST(test_replay),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
