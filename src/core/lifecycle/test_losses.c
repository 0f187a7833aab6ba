/* Attempts lost with their nodes: pauses, the limit, a node to itself, and nodes that fail every job. */
#include "core/test_story.h"

#include "core/model/core_parts.h"

#define AD "[Cpus = 4; TotalCpus = 4; Memory = 100]"

static void lose(struct story *s, const char *agent)
{
        core_agent_away(s->core, agent);
        core_agent_connected(s->core, agent);
        core_inventory(s->core, agent, NULL, 0, NULL, NULL);
}

static void one(struct story *s, const char *agent, uint64_t request, uint32_t member, uint32_t fence,
                bool starts)
{
        struct set set = {0};
        struct core_attempts a = {request, fence, &set};

        set_add(&set, member);
        core_accepted(s->core, agent, &a);
        if (starts)
                core_started(s->core, agent, &a, s->now);
        set_deinit(&set);
}

static enum job_state state_of(struct story *s, uint64_t request, uint32_t member)
{
        struct core_job j;

        assert_int_equal(core_job_get(s->core, request, member, &j), 0);
        return j.state;
}

static enum node_state node_state(struct story *s, const char *agent)
{
        struct core_node n;

        assert_int_equal(core_node_get(s->core, agent, &n), 0);
        return n.state;
}

static void hold(struct story *s, uint64_t request)
{
        struct core_command cmd = {.action = CORE_ACT_HOLD, .request = request};
        uint64_t n;

        assert_int_equal(core_act(s->core, &cmd, &n, NULL), 0);
}

static void tick(struct story *s, int64_t ms)
{
        story_wait(s, ms);
        while (core_tick(s->core) == 0)
                ;
        core_match(s->core);
}

/* Checks that a core which replays the log has the same state. */
static void replays(struct story *s)
{
        BUF_CLEANUP struct buf here = {0}, there = {0};
        struct core *c = story_core(s, true);

        for (size_t i = 0; i < s->log_count; i++)
                assert_int_equal(core_replay(c, buf_view(&s->log[i]), NULL), 0);
        core_snapshot(s->core, &here);
        core_snapshot(c, &there);
        assert_int_equal(here.n, there.n);
        assert_memory_equal(here.p, there.p, here.n);
        core_free(c);
}

/* The first loss costs nothing, each further one a longer pause, and the fifth holds the job. */
static void test_a_job_that_takes_its_node_down(void **state)
{
        struct story *s = *state;
        struct core_job_losses l;
        struct core_job j;

        SUBMIT(1, "RequestCpus", "1");
        for (uint32_t i = 0; i < 5; i++) {
                story_offer(s, "n1", AD, 4);
                if (i > 1) {
                        SAID(actions, "");
                        assert_int_equal(core_job_losses(s->core, 1, 0, &l), 0);
                        assert_int_equal(l.until_ms - s->now, 5000 << (i - 2));
                        tick(s, (5000 << (i - 2)) - 1);
                        SAID(actions, "");
                        tick(s, 1);
                }
                assert_int_equal(state_of(s, 1, 0), JOB_MATCHED);
                FORGET(actions);
                one(s, "n1", 1, 0, i + 1, i % 2);
                story_wait(s, 1);
                lose(s, "n1");
                assert_int_equal(state_of(s, 1, 0), i == 4 ? JOB_HELD : JOB_IDLE);
                replays(s);
        }
        assert_int_equal(core_job_get(s->core, 1, 0, &j), 0);
        assert_int_equal(j.hold_code, CORE_HOLD_LOST);
        assert_string_equal(
                j.hold_reason.p,
                "5 attempts in a row were lost at n1; the last one: the agent does not know this attempt");
        /* A released job is tried at once. */
        story_act(s, CORE_ACT_RELEASE, NULL, 0);
        tick(s, 80000);
        story_offer(s, "n1", AD, 4);
        assert_int_equal(state_of(s, 1, 0), JOB_MATCHED);
        replays(s);
}

/* The loss of an attempt that was only matched has no consequences, however often it happens. */
static void test_handed_out_only(void **state)
{
        struct story *s = *state;

        SUBMIT(1, "RequestCpus", "1");
        for (uint32_t i = 0; i < 12; i++) {
                story_offer(s, "n1", AD, 4);
                assert_int_equal(state_of(s, 1, 0), JOB_MATCHED);
                lose(s, "n1");
                assert_int_equal(state_of(s, 1, 0), JOB_IDLE);
        }
        replays(s);
}

/* A program that ends normally resets the count, so losses that are far apart do not add up. */
static void test_a_result_clears_the_count(void **state)
{
        struct story *s = *state;
        struct core_job_losses l;

        SUBMIT(1, "RequestCpus", "1", "OnExitRemove", "ExitCode == 0");
        story_offer(s, "n1", AD, 4);
        one(s, "n1", 1, 0, 1, true);
        lose(s, "n1");
        assert_int_equal(core_job_losses(s->core, 1, 0, &l), 0);
        assert_int_equal(l.lost, 1);
        story_offer(s, "n1", AD, 4);
        one(s, "n1", 1, 0, 2, true);
        assert_true(story_result(s, "n1", 0, 2, 7));
        assert_int_equal(state_of(s, 1, 0), JOB_IDLE);
        assert_int_equal(core_job_losses(s->core, 1, 0, &l), CORE_UNKNOWN);
        replays(s);
}

/* After losses at three different nodes the job runs only on an empty node, and no other job joins it. */
static void test_a_suspected_job_runs_alone(void **state)
{
        static const char *const nodes[] = {"n1", "n2", "n3"};
        struct story *s = *state;
        struct core_job_losses l;

        SUBMIT(1, "RequestCpus", "1");
        for (uint32_t i = 0; i < 3; i++) {
                story_offer(s, nodes[i], AD, 4);
                assert_int_equal(state_of(s, 1, 0), JOB_MATCHED);
                one(s, nodes[i], 1, 0, i + 1, true);
                lose(s, nodes[i]);
                story_offer(s, nodes[i], AD, 0);
                core_agent_away(s->core, nodes[i]);
                tick(s, 20000);
        }
        assert_int_equal(core_job_losses(s->core, 1, 0, &l), 0);
        assert_true(l.suspected && l.node_count == 3);
        SUBMIT(3, "RequestCpus", "1", "JobPrio", "7");
        FORGET(actions);
        story_offer(s, "n4", AD, 2);
        SAID(actions, "assign n4 q 2 0-1 f1\n");
        story_offer(s, "n4", AD, 2);
        assert_int_equal(state_of(s, 1, 0), JOB_IDLE);
        story_offer(s, "n5", AD, 4);
        FORGET(actions);
        tick(s, 1);
        replays(s);
}

/* If no node is ever empty, one is emptied for the job after a minute, and later jobs wait. */
static void test_a_suspected_job_gets_a_node(void **state)
{
        static const char *const nodes[] = {"n1", "n2", "n3"};
        struct core_result r = {.request = 2, .fence = 1, .outcome = CORE_EXITED};
        struct story *s = *state;

        SUBMIT(1, "RequestCpus", "1");
        for (uint32_t i = 0; i < 3; i++) {
                story_offer(s, nodes[i], AD, 4);
                one(s, nodes[i], 1, 0, i + 1, true);
                lose(s, nodes[i]);
                story_offer(s, nodes[i], AD, 0);
                core_agent_away(s->core, nodes[i]);
                tick(s, 20000);
        }
        SUBMIT(1, "RequestCpus", "1", "JobPrio", "9");
        story_offer(s, "n4", AD, 1);
        assert_int_equal(state_of(s, 2, 0), JOB_MATCHED);
        one(s, "n4", 2, 0, 1, true);
        tick(s, 60000);
        story_offer(s, "n4", AD, 3);
        tick(s, 1);
        assert_int_equal(state_of(s, 1, 0), JOB_IDLE);
        SUBMIT(1, "RequestCpus", "1", "Rank", "7");
        story_offer(s, "n4", AD, 3);
        tick(s, 1);
        assert_int_equal(state_of(s, 3, 0), JOB_IDLE);
        assert_true(core_result(s->core, "n4", &r));
        story_offer(s, "n4", AD, 4);
        tick(s, 1);
        assert_int_equal(state_of(s, 1, 0), JOB_MATCHED);
        assert_int_equal(state_of(s, 3, 0), JOB_IDLE);
        one(s, "n4", 1, 0, 4, true);
        assert_true(story_result(s, "n4", 0, 4, 0));
        story_offer(s, "n4", AD, 4);
        tick(s, 1000);
        assert_int_equal(state_of(s, 3, 0), JOB_MATCHED);
}

/* After losses of three jobs of three requests in a row the node drains itself, with the reason; only an
 * administrator resumes it. */
static void test_a_black_hole_drains_itself(void **state)
{
        struct story *s = *state;
        struct core_node n;

        for (uint32_t i = 0; i < 3; i++) {
                SUBMIT(1, "RequestCpus", "1");
                story_offer(s, "n1", AD, 1);
                tick(s, 60000);
                story_offer(s, "n1", AD, 1);
                assert_int_equal(state_of(s, i + 1, 0), JOB_MATCHED);
                one(s, "n1", i + 1, 0, 1, true);
                story_wait(s, 10);
                assert_int_equal(node_state(s, "n1"), NODE_UP);
                lose(s, "n1");
                hold(s, i + 1);
        }
        tick(s, 1);
        assert_int_equal(core_node_get(s->core, "n1", &n), 0);
        assert_int_equal(n.state, NODE_DRAINED);
        assert_string_equal(n.by, NODE_BY_SERVER);
        assert_string_equal(
                n.reason, "3 unrelated jobs in a row were lost there or could not be started: 1.0, 2.0, 3.0");
        SUBMIT(1, "RequestCpus", "1");
        story_offer(s, "n1", AD, 4);
        tick(s, 10000000);
        story_offer(s, "n1", AD, 4);
        assert_int_equal(state_of(s, 4, 0), JOB_IDLE);
        replays(s);
        assert_int_equal(
                core_node_set(s->core,
                              &(struct core_node_order){.agent = "n1", .to = NODE_UP, .by = STR("ann")},
                              NULL),
                0);
        core_match(s->core);
        assert_int_equal(state_of(s, 4, 0), JOB_MATCHED);
        replays(s);
}

/* Losses of one request's members, at every node, do not count against a node; nor do losses at the same time
 * beyond the first. */
static void test_related_losses_drain_nothing(void **state)
{
        static const char *const members[] = {"0", "1", "2", "3"};
        struct story *s = *state;

        SUBMIT(8, "RequestCpus", "1");
        for (uint32_t i = 0; i < 4; i++) {
                tick(s, 700000);
                story_offer(s, "n1", AD, 1);
                assert_int_equal(state_of(s, 1, i), JOB_MATCHED);
                one(s, "n1", 1, i, 1, true);
                story_wait(s, 10);
                lose(s, "n1");
                story_act(s, CORE_ACT_HOLD, members[i], 0);
        }
        assert_int_equal(node_state(s, "n1"), NODE_UP);
}

static void count_stale(void *arg, uint64_t request, uint32_t fence, const struct set *members)
{
        (void)request;
        (void)fence;
        *(uint64_t *)arg += set_count(members);
}

/* A few bytes name millions of members; of these the agent's own attempts are looked at. */
static void test_reports_on_millions(void **state)
{
        struct story *s = *state;
        struct set all = {0};
        const struct core_attempts a = {1, 1, &all};
        uint64_t steps, stale = 0;

        SUBMIT(2000000, "RequestCpus", "1");
        story_offer(s, "n1", AD, 4);
        assert_int_equal(state_of(s, 1, 3), JOB_MATCHED);
        set_add_range(&all, 0, 2000000);
        steps = core_steps(s->core);
        core_refused(s->core, "n2", &a, STR("not mine"), CORE_HOLD_NOT_STARTED);
        core_accepted(s->core, "n1", &a);
        core_started(s->core, "n1", &a, s->now);
        core_inventory(s->core, "n1", &a, 1, count_stale, &stale);
        assert_in_range(core_steps(s->core) - steps, 0, 100);
        assert_int_equal(stale, 2000000 - 4);
        for (uint32_t m = 0; m < 6; m++)
                assert_int_equal(state_of(s, 1, m), m < 4 ? JOB_RUNNING : JOB_IDLE);
        replays(s);
        set_deinit(&all);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(test_a_job_that_takes_its_node_down), STORY(test_handed_out_only),
                STORY(test_a_result_clears_the_count),      STORY(test_a_suspected_job_runs_alone),
                STORY(test_a_black_hole_drains_itself),     STORY(test_a_suspected_job_gets_a_node),
                STORY(test_related_losses_drain_nothing),   STORY(test_reports_on_millions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
