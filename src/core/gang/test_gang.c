/* Gangs: which get places, how members affect each other, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/test_help.h"

#define AD(cpus, total, group)                                                                               \
        "[ Cpus = " #cpus "; Memory = 1000; Disk = 1000; TotalCpus = " #total                                \
        "; TotalMemory = 1000; Group = \"" group "\" ]"

static struct request *submit_gang(struct core *c, uint64_t jobs, const char *size, const char *within)
{
        return submit(
                c, NULL, jobs,
                (const char *const[]){"RequestCpus", "1", "GangSize", size, "GangWithin", within, NULL});
}

static void accept(struct core *c, const char *agent, uint64_t request, uint32_t fence, const char *members)
{
        struct set s = {0};
        struct core_attempts a = {request, fence, &s};

        assert_int_equal(set_parse(&s, str_of(members), 1000), 0);
        core_accepted(c, agent, &a);
        set_deinit(&s);
}

static void expect_went(struct core *c, const char *text)
{
        core_match(c);
        assert_string_equal(buf_z(&bare_went), text);
        buf_reset(&bare_went);
        assert_null(core_check(c));
}

static enum job_state state(const struct request *r, uint32_t member)
{
        return request_state(r, member);
}

static void result(struct core *c, const char *agent, uint64_t request, uint32_t member,
                   enum core_outcome outcome)
{
        const struct core_result r = {.request = request,
                                      .member = member,
                                      .fence = request_job(request_find(c, request), member)->fence,
                                      .outcome = outcome,
                                      .hold_code = outcome == CORE_NOT_STARTED ? 6 : 0};

        assert_true(core_result(c, agent, &r));
        core_match(c);
        assert_null(core_check(c));
}

static void test_all_or_none(void **s)
{
        struct core *c = *s;

        submit_gang(c, 3, "3", "\"anywhere\"");
        submit(c, NULL, 1, (const char *const[]){"RequestCpus", "1", NULL});
        offer(c, "n1", AD(2, 2, "a"));
        expect_assigned(c, "n1/default 2 0\n"); /* what is behind it goes meanwhile */
        offer(c, "n2", AD(2, 2, "a"));
        expect_assigned(c, "n2/default 1 0-1\nn1/default 1 2\n");
        accept(c, "n2", 1, 1, "0-1");
        expect_went(c, "");
        assert_int_equal(state(c->requests->first, 2), JOB_MATCHED);
        accept(c, "n1", 1, 1, "2");
        expect_went(c, "go n2 1 0-1 fence 1\ngo n1 1 2 fence 1\n");
        expect_went(c, "");
}

static void test_a_text_says_which_node(void **s)
{
        struct core *c = *s;
        BUF_CLEANUP struct buf b = {0};

        submit_gang(c, 6, "3", "\"anywhere\"");
        assert_int_equal(core_member_expand(c, 1, 4, STR("$(Node) of $(Process)"), &b), 0);
        assert_string_equal(buf_z(&b), "1 of 4");
        assert_int_equal(core_member_expand(c, 1, 6, STR("x"), &b), CORE_UNKNOWN);
}

static void test_one_queue_or_one_group(void **s)
{
        struct core *c = *s;

        submit_gang(c, 3, "3", "\"node\"");
        submit_gang(c, 3, "3", "\"group\"");
        offer(c, "n1", AD(2, 2, "a"));
        offer(c, "n2", AD(2, 2, "b"));
        expect_assigned(c, "");
        offer(c, "n3", AD(1, 1, "b"));
        expect_assigned(c, "n2/default 2 0-1\nn3/default 2 2\n");
        offer(c, "n4", AD(3, 3, "c"));
        expect_assigned(c, "n4/default 1 0-2\n");
}

/* A delivery ahead of its turn is not a place for a member that starts now. */
static void test_room_ahead_of_its_turn_does_not_count(void **s)
{
        struct core *c = *s;

        submit_gang(c, 3, "0", "\"node\"");
        offer(c, "n1", AD(6, 2, "a"));
        expect_assigned(c, "");
}

static void test_several_gangs(void **s)
{
        struct core *c = *s;

        submit_gang(c, 8, "2", "\"node\"");
        offer(c, "n1", AD(5, 5, "a"));
        offer(c, "n2", AD(3, 3, "a"));
        expect_assigned(c, "n1/default 1 0-1\nn1/default 1 2-3\nn2/default 1 4-5\n");
}

/* A queue whose answer for the next job depends on what it has left. */
static void test_places_are_tried_before_they_are_given(void **s)
{
        struct core *c = *s;

        submit(c, NULL, 4,
               (const char *const[]){"RequestCpus", "1", "GangSize", "4", "Requirements", "TARGET.Cpus > 2",
                                     NULL});
        offer(c, "n1", AD(4, 4, "a"));
        expect_assigned(c, "");
        offer(c, "n2", AD(4, 4, "a"));
        expect_assigned(c, "n1/default 1 0-1\nn2/default 1 2-3\n");
}

static void begin(struct core *c, struct request **ret)
{
        *ret = submit_gang(c, 3, "3", "\"anywhere\"");
        offer(c, "n1", AD(2, 2, "a"));
        offer(c, "n2", AD(1, 1, "a"));
        expect_assigned(c, "n1/default 1 0-1\nn2/default 1 2\n");
}

static void test_a_refusal_frees_all(void **s)
{
        struct core *c = *s;
        struct set one = {0};
        struct core_attempts a = {1, 1, &one};
        struct request *r;

        begin(c, &r);
        accept(c, "n1", 1, 1, "0-1");
        set_add(&one, 2);
        core_refused(c, "n2", &a, STR("busy"), 0);
        set_deinit(&one);
        expect_went(c, "");
        for (uint32_t m = 0; m < 3; m++)
                assert_int_equal(state(r, m), JOB_IDLE);
        accept(c, "n1", 1, 1, "0-1"); /* too late */
        offer(c, "n1", AD(2, 2, "a"));
        offer(c, "n2", AD(1, 1, "a"));
        expect_assigned(c, "n1/default 1 0-1\nn2/default 1 2\n");
        accept(c, "n1", 1, 2, "0-1");
        accept(c, "n2", 1, 2, "2");
        expect_went(c, "go n1 1 0-1 fence 2\ngo n2 1 2 fence 2\n");
        assert_int_equal(request_job(r, 0)->starts, 0);
}

static void test_who_does_not_answer_frees_all(void **s)
{
        struct core *c = *s;
        struct request *r;

        begin(c, &r);
        accept(c, "n1", 1, 1, "0-1");
        pass_time(c, c->config.gang_wait_ms - 1);
        assert_int_equal(state(r, 0), JOB_STAGING);
        core_agent_away(c, "n2");
        assert_int_equal(state(r, 0), JOB_IDLE);
        core_agent_connected(c, "n2");
        offer(c, "n1", AD(2, 2, "a"));
        offer(c, "n2", AD(1, 1, "a"));
        core_match(c);
        assert_int_equal(state(r, 0), JOB_MATCHED);
        pass_time(c, c->config.gang_wait_ms);
        assert_int_equal(state(r, 0), JOB_IDLE);
        assert_null(core_check(c));
}

static void go(struct core *c, struct request **ret)
{
        begin(c, ret);
        accept(c, "n1", 1, 1, "0-1");
        accept(c, "n2", 1, 1, "2");
        expect_went(c, "go n1 1 0-1 fence 1\ngo n2 1 2 fence 1\n");
        for (uint32_t m = 0; m < 3; m++)
                started(c, m == 2 ? "n2" : "n1", 1, m);
}

static void test_what_one_suffers_all_do(void **s)
{
        struct core *c = *s;
        struct request *r;
        struct core_gang gang;

        go(c, &r);
        result(c, "n2", 1, 2, CORE_OUTCOME_LOST);
        assert_int_equal(state(r, 2), JOB_IDLE);
        assert_int_equal(state(r, 0), JOB_VACATING);
        assert_int_equal(core_job_gang(c, 1, 2, &gang), 0);
        assert_true(gang.state == CORE_GANG_BLOCKED && gang.member == 0 && gang.blocked == JOB_VACATING);
        offer(c, "n2", AD(4, 4, "a"));
        expect_assigned(c, "");
        result(c, "n1", 1, 0, CORE_KILLED);
        expect_assigned(c, "");
        result(c, "n1", 1, 1, CORE_KILLED);
        expect_assigned(c, "n2/default 1 0-2\n");
        accept(c, "n2", 1, 2, "0-2");
        expect_went(c, "go n2 1 0-2 fence 2\n");
        for (uint32_t m = 0; m < 3; m++)
                started(c, "n2", 1, m);
        result(c, "n2", 1, 1, CORE_EXITED); /* the others go on, and once more without it */
        assert_int_equal(state(r, 0), JOB_RUNNING);
        result(c, "n2", 1, 0, CORE_NOT_STARTED);
        assert_int_equal(state(r, 0), JOB_HELD);
        assert_int_equal(state(r, 2), JOB_VACATING);
        result(c, "n2", 1, 2, CORE_KILLED);
        offer(c, "n2", AD(4, 4, "a"));
        expect_assigned(c, "");
        assert_int_equal(core_job_gang(c, 1, 2, &gang), 0);
        assert_true(gang.state == CORE_GANG_BLOCKED && gang.member == 0 && gang.left == 2);
}

static void test_commands_reach_the_whole_gang(void **s)
{
        struct core_command cmd = {.action = CORE_ACT_HOLD, .request = 1};
        struct core *c = *s;
        struct set one = {0};
        struct request *r;
        uint64_t n;

        r = submit_gang(c, 6, "3", "\"anywhere\"");
        set_add(&one, 4);
        cmd.members = &one;
        assert_int_equal(core_act(c, &cmd, &n, NULL), 0);
        assert_int_equal(n, 3);
        assert_int_equal(state(r, 3), JOB_HELD);
        assert_int_equal(state(r, 2), JOB_IDLE);
        cmd.action = CORE_ACT_REMOVE;
        assert_int_equal(core_act(c, &cmd, &n, NULL), 0);
        assert_int_equal(state(r, 5), JOB_REMOVED);
        offer(c, "n1", AD(9, 9, "a"));
        expect_assigned(c, "n1/default 1 0-2\n");
        accept(c, "n1", 1, 1, "0-2");
        expect_went(c, "go n1 1 0-2 fence 1\n");
        set_remove(&one, 4);
        set_add(&one, 0);
        assert_int_equal(core_act(c, &cmd, &n, NULL), 0);
        assert_int_equal(n, 3);
        set_deinit(&one);
}

static void test_the_first_ends_it(void **s)
{
        struct core *c = *s;
        struct request *r;

        r = submit(c, NULL, 3,
                   (const char *const[]){"RequestCpus", "1", "GangSize", "3", "JobUniverse", "11", NULL});
        offer(c, "n1", AD(3, 3, "a"));
        expect_assigned(c, "n1/default 1 0-2\n");
        accept(c, "n1", 1, 1, "0-2");
        expect_went(c, "go n1 1 0-2 fence 1\n");
        for (uint32_t m = 0; m < 3; m++)
                started(c, "n1", 1, m);
        result(c, "n1", 1, 1, CORE_EXITED);
        assert_int_equal(state(r, 2), JOB_RUNNING);
        result(c, "n1", 1, 0, CORE_EXITED);
        assert_int_equal(state(r, 2), JOB_VACATING);
        result(c, "n1", 1, 2, CORE_KILLED);
        assert_int_equal(state(r, 2), JOB_COMPLETED);
        assert_int_equal(set_count(&request_cold(r)->failed), 0);
        assert_true(request_cold(r)->finished_ms > 0);
}

static int look_for_node(struct core *c, const char *agent, uint32_t member, uint32_t fence, uint32_t node,
                         uint32_t *ret_member, const char **ret_agent)
{
        const struct core_attempt at = {1, member, fence};
        struct core_attempt found = {0};
        int r = core_launch_node(c, agent, &at, node, &found, ret_agent, NULL);

        *ret_member = found.member;
        return r;
}

/* A program of one node may start others on the nodes of its own gang, once they run. */
static void test_nodes_find_each_other(void **s)
{
        struct core *c = *s;
        const char *agent = NULL;
        uint32_t member;

        submit(c, NULL, 4,
               (const char *const[]){"RequestCpus", "1", "GangSize", "2", "JobUniverse", "11", NULL});
        offer(c, "n1", AD(1, 1, "a"));
        offer(c, "n2", AD(1, 1, "a"));
        expect_assigned(c, "n1/default 1 0\nn2/default 1 1\n");
        assert_true(core_launch_allowed(c, 1, 0));
        assert_false(core_launch_allowed(c, 2, 0));
        assert_int_equal(look_for_node(c, "n1", 0, 1, 1, &member, &agent), CORE_UNKNOWN);
        accept(c, "n1", 1, 1, "0");
        accept(c, "n2", 1, 1, "1");
        expect_went(c, "go n1 1 0 fence 1\ngo n2 1 1 fence 1\n");
        started(c, "n1", 1, 0);
        assert_int_equal(look_for_node(c, "n1", 0, 1, 1, &member, &agent), CORE_UNKNOWN);
        started(c, "n2", 1, 1);
        assert_int_equal(look_for_node(c, "n1", 0, 1, 1, &member, &agent), 0);
        assert_int_equal(member, 1);
        assert_string_equal(agent, "n2");
        assert_int_equal(look_for_node(c, "n2", 1, 1, 0, &member, &agent), 0);
        assert_string_equal(agent, "n1");
        assert_int_equal(look_for_node(c, "n1", 0, 1, 2, &member, &agent), CORE_INVALID);
        assert_int_equal(look_for_node(c, "n2", 0, 1, 1, &member, &agent), CORE_UNKNOWN); /* another's */
        assert_int_equal(look_for_node(c, "n1", 0, 2, 1, &member, &agent), CORE_UNKNOWN);
        assert_int_equal(look_for_node(c, "n1", 2, 1, 1, &member, &agent), CORE_UNKNOWN);
        assert_int_equal(look_for_node(c, "n1", 9999, 1, 1, &member, &agent), CORE_UNKNOWN);
        result(c, "n2", 1, 1, CORE_EXITED);
        assert_int_equal(look_for_node(c, "n1", 0, 1, 1, &member, &agent), CORE_UNKNOWN);
}

static void test_nodes_of_other_gangs_do_not(void **s)
{
        struct core *c = *s;
        const char *agent = NULL;
        uint32_t member;

        submit_gang(c, 2, "2", "\"node\"");
        offer(c, "n1", AD(2, 2, "a"));
        expect_assigned(c, "n1/default 1 0-1\n");
        accept(c, "n1", 1, 1, "0-1");
        expect_went(c, "go n1 1 0-1 fence 1\n");
        started(c, "n1", 1, 0);
        started(c, "n1", 1, 1);
        assert_false(core_launch_allowed(c, 1, 0));
        assert_int_equal(look_for_node(c, "n1", 0, 1, 1, &member, &agent), CORE_FORBIDDEN);
}

/* An agent that missed a message, or whose message was lost, is told again when it reconnects. */
static void test_an_inventory_says_it_again(void **s)
{
        struct core *c = *s;
        struct set two = {0}, one = {0};
        struct core_attempts a = {1, 1, &two}, b = {1, 1, &one};
        struct request *r;

        begin(c, &r);
        set_add_range(&two, 0, 2);
        set_add(&one, 2);
        core_inventory(c, "n1", &a, 1, NULL, NULL);
        expect_went(c, "");
        core_inventory(c, "n2", &b, 1, NULL, NULL);
        expect_went(c, "go n1 1 0-1 fence 1\ngo n2 1 2 fence 1\n");
        core_inventory(c, "n2", &b, 1, NULL, NULL);
        expect_went(c, "go n2 1 2 fence 1\n");
        started(c, "n2", 1, 2);
        core_inventory(c, "n2", &b, 1, NULL, NULL);
        expect_went(c, "");
        set_deinit(&two);
        set_deinit(&one);
}

static void test_limits_are_for_all_of_them(void **s)
{
        struct core *c = *s;

        core_limit_set(c, STR("sw"), 3);
        submit(c, NULL, 1, (const char *const[]){"RequestCpus", "1", "ConcurrencyLimits", "\"sw\"", NULL});
        submit(c, NULL, 3,
               (const char *const[]){"RequestCpus", "1", "ConcurrencyLimits", "\"sw\"", "GangSize", "3",
                                     NULL});
        offer(c, "n1", AD(9, 9, "a"));
        expect_assigned(c, "n1/default 1 0\n");
        accept(c, "n1", 1, 1, "0");
        ended(c, "n1", 1, 0);
        expect_assigned(c, "n1/default 2 0-2\n");
}

static void test_what_is_no_gang_is_refused(void **s)
{
        struct core *c = *s;
        struct err err;

        assert_int_not_equal(try_submit(c, NULL, 4, (const char *const[]){"GangSize", "3", NULL}, &err), 0);
        assert_non_null(strstr(err.text, "4 jobs are not gangs of 3"));
        assert_int_not_equal(try_submit(c, NULL, 4, (const char *const[]){"GangSize", "-1", NULL}, &err), 0);
        assert_int_not_equal(try_submit(c, NULL, 4, (const char *const[]){"GangSize", "20000", NULL}, &err),
                             0);
        assert_int_not_equal(
                try_submit(c, NULL, 4, (const char *const[]){"GangSize", "2", "GangWithin", "\"rack\"", NULL},
                           &err),
                0);
        assert_int_not_equal(
                try_submit(c, NULL, 4,
                           (const char *const[]){"GangSize", "2", "~RequestMemory", "$(Process) * 10", NULL},
                           &err),
                0);
        assert_non_null(strstr(err.text, "must be alike"));
        assert_int_equal(try_submit(c, NULL, 4,
                                    (const char *const[]){"GangSize", "2", "~Arguments", "\"$(Node)\"", NULL},
                                    &err),
                         0);
}

static void test_what_it_waits_for_is_told(void **s)
{
        struct core *c = *s;
        struct core_gang gang;

        submit_gang(c, 3, "3", "\"group\"");
        submit(c, NULL, 1, (const char *const[]){"RequestCpus", "1", NULL});
        offer(c, "n1", AD(1, 1, "a"));
        expect_assigned(c, "n1/default 2 0\n");
        offer(c, "n2", AD(2, 2, "a"));
        offer(c, "n3", AD(1, 1, "b"));
        expect_assigned(c, "");
        assert_int_equal(core_job_gang(c, 1, 1, &gang), 0);
        assert_true(gang.first == 0 && gang.size == 3 && gang.left == 3 && gang.state == CORE_GANG_WAITS);
        assert_true(gang.places == 2 && gang.places_ever == 3);
        assert_string_equal(gang.where, "a");
        assert_true(str_eqz(gang.group_by, "Group"));
        assert_int_equal(core_job_gang(c, 2, 0, &gang), CORE_UNKNOWN);
}

static void take_one(struct core *c, const char *agent, uint64_t request, uint32_t member)
{
        struct set one = {0};
        struct core_attempts a = {request, 1, &one};

        set_add(&one, member);
        core_accepted(c, agent, &a);
        set_deinit(&one);
        started(c, agent, request, member);
}

static void end_one(struct core *c, const char *agent, uint64_t request, uint32_t member)
{
        ended(c, agent, request, member);
        offer(c, agent, AD(1, 1, "a"));
}

static void wait_s(struct core *c, int64_t seconds)
{
        pass_time(c, seconds * 1000);
        core_match(c);
}

/* Places are reserved for a gang of three that small jobs would starve; jobs that end in time are backfilled.
 */
static void test_places_are_kept_for_a_gang(void **s)
{
        static const char *const ten[] = {"RequestCpus", "1", "AllowedExecuteDuration", "600", NULL};
        static const char *const brief[] = {"RequestCpus", "1", "AllowedExecuteDuration", "30", NULL};
        static const char *const agents[] = {"n1", "n2", "n3"};
        struct core *c = *s;
        struct core_reservation r;

        c->config.reserve_after_ms = 60000;
        submit(c, NULL, 3, ten);
        for (int i = 0; i < 3; i++)
                offer(c, agents[i], AD(1, 1, "a"));
        expect_assigned(c, "n1/default 1 0\nn2/default 1 1\nn3/default 1 2\n");
        for (uint32_t i = 0; i < 3; i++)
                take_one(c, agents[i], 1, i);
        submit(c, NULL, 3, (const char *const[]){"RequestCpus", "1", "GangSize", "3", "JobPrio", "5", NULL});
        submit(c, NULL, 9, ten);
        wait_s(c, 100);
        assert_int_equal(core_job_reservation(c, 2, 0, &r), CORE_UNKNOWN); /* nobody was given anything */
        end_one(c, "n1", 1, 0);
        expect_assigned(c, "n1/default 3 0\n");
        take_one(c, "n1", 3, 0);
        wait_s(c, 10);
        assert_int_equal(core_job_reservation(c, 2, 2, &r), 0);
        assert_true(r.first && r.queues == 3 && r.start_ms == c->now_ms + 590000);
        end_one(c, "n2", 1, 1);
        expect_assigned(c, ""); /* it would end too late */
        submit(c, NULL, 1, brief);
        expect_assigned(c, "n2/default 4 0\n");
        take_one(c, "n2", 4, 0);
        assert_null(core_check(c));
        end_one(c, "n3", 1, 2);
        end_one(c, "n2", 4, 0);
        expect_assigned(c, "");
        end_one(c, "n1", 3, 0);
        core_match(c);
        assert_true(str_starts(buf_view(&bare_assigned),
                               STR("n1/default 2 0\nn2/default 2 1\nn3/default 2 2\n")));
        buf_reset(&bare_assigned);
        assert_null(c->reservations->first);
}

/* Nothing is reserved if there is one agent too few. */
static void test_nothing_is_kept_for_what_never_fits(void **s)
{
        struct core *c = *s;
        struct core_reservation r;

        c->config.reserve_after_ms = 60000;
        submit_gang(c, 3, "3", "\"anywhere\"");
        submit(c, NULL, 9, (const char *const[]){"RequestCpus", "1", "AllowedExecuteDuration", "60", NULL});
        offer(c, "n1", AD(1, 1, "a"));
        offer(c, "n2", AD(1, 1, "a"));
        expect_assigned(c, "n1/default 2 0\nn2/default 2 1\n");
        take_one(c, "n1", 2, 0);
        wait_s(c, 60);
        end_one(c, "n1", 2, 0);
        expect_assigned(c, "n1/default 2 2\n");
        wait_s(c, 10);
        assert_int_equal(core_job_reservation(c, 1, 0, &r), CORE_UNKNOWN);
}

int main(void)
{
#define STORY(f) cmocka_unit_test_setup_teardown(f, bare_core, bare_core_free)
        const struct CMUnitTest tests[] = {
                STORY(test_all_or_none),
                STORY(test_a_text_says_which_node),
                STORY(test_one_queue_or_one_group),
                STORY(test_room_ahead_of_its_turn_does_not_count),
                STORY(test_several_gangs),
                STORY(test_places_are_tried_before_they_are_given),
                STORY(test_a_refusal_frees_all),
                STORY(test_who_does_not_answer_frees_all),
                STORY(test_what_one_suffers_all_do),
                STORY(test_commands_reach_the_whole_gang),
                STORY(test_the_first_ends_it),
                STORY(test_nodes_find_each_other),
                STORY(test_nodes_of_other_gangs_do_not),
                STORY(test_an_inventory_says_it_again),
                STORY(test_limits_are_for_all_of_them),
                STORY(test_what_is_no_gang_is_refused),
                STORY(test_what_it_waits_for_is_told),
                STORY(test_places_are_kept_for_a_gang),
                STORY(test_nothing_is_kept_for_what_never_fits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
