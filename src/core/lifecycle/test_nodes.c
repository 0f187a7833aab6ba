/* Records of nodes: orders, statements in ads, silence; and that a replay gives the same state. */
#include "core/test_story.h"

#define AD "Cpus = 4; TotalCpus = 4; Memory = 100; "

static struct core_node node(struct story *s)
{
        struct core_node n;

        assert_int_equal(core_node_get(s->core, "n1", &n), 0);
        return n;
}

static int order(struct story *s, enum node_state to, int64_t deadline_ms)
{
        struct core_node_order o = {
                .agent = "n1", .to = to, .by = STR("ann"), .reason = STR("so"), .deadline_ms = deadline_ms};

        return core_node_set(s->core, &o, NULL);
}

static void tick(struct story *s, int64_t ms)
{
        story_wait(s, ms);
        while (core_tick(s->core) == 0)
                ;
        core_match(s->core);
}

static void replays(struct story *s)
{
        BUF_CLEANUP struct buf here = {0}, there = {0}, again = {0};
        struct core *c = story_core(s, true), *d;

        for (size_t i = 0; i < s->log_count; i++)
                assert_int_equal(core_replay(c, buf_view(&s->log[i]), NULL), 0);
        core_snapshot(s->core, &here);
        core_snapshot(c, &there);
        assert_int_equal(here.n, there.n);
        assert_memory_equal(here.p, there.p, here.n);
        d = story_core(s, true);
        assert_int_equal(core_restore(d, buf_view(&here), NULL), 0);
        core_snapshot(d, &again);
        assert_int_equal(here.n, again.n);
        assert_memory_equal(here.p, again.p, here.n);
        core_free(c);
        core_free(d);
}

/* Gives each order in each state: orders in the table of moves are accepted, and others change nothing. */
static void test_orders(void **state)
{
        struct story *s = *state;

        story_offer(s, "n1", "[" AD "]", 4);
        assert_int_equal(order(s, NODE_UP, 0), 0);
        assert_string_equal(node(s).state_name, "idle");
        assert_int_equal(s->log_count, 0); /* no event: the state was the same before */
        assert_int_equal(order(s, NODE_DRAINING, 0), 0);
        assert_string_equal(node(s).state_name, "drained");
        assert_string_equal(node(s).refuses, "drained by ann: so");
        assert_int_equal(order(s, NODE_FAILED, 0), 0);
        assert_int_equal(order(s, NODE_RETIRED, 0), 0);
        assert_int_equal(order(s, NODE_DRAINING, 0), CORE_INVALID);
        assert_int_equal(order(s, NODE_DOWN, 0), CORE_INVALID);
        assert_string_equal(node(s).state_name, "retired");
        replays(s);
        assert_int_equal(order(s, NODE_UP, 0), 0);
        assert_null(node(s).refuses);
        assert_int_equal(
                core_node_set(s->core, &(struct core_node_order){.agent = "nobody", .to = NODE_UP}, NULL),
                CORE_UNKNOWN);
        replays(s);
}

/* At the deadline running jobs are told to stop, once, and go back to the queue; then the node is drained. */
static void test_a_deadline(void **state)
{
        struct story *s = *state;

        SUBMIT(2, "RequestCpus", "1");
        story_offer(s, "n1", "[" AD "]", 4);
        FORGET(actions);
        assert_int_equal(order(s, NODE_DRAINING, s->now + 5000), 0);
        tick(s, 4000);
        SAID(actions, "");
        tick(s, 1000);
        tick(s, 5000);
        SAID(actions, "vacate n1 1 1 f1\nvacate n1 1 0 f1\n");
        assert_string_equal(node(s).state_name, "draining");
        for (uint32_t i = 0; i < 2; i++) {
                struct core_result r = {.request = 1,
                                        .member = i,
                                        .fence = 1,
                                        .outcome = CORE_KILLED,
                                        .reason = STR("killed")};

                assert_true(core_result(s->core, "n1", &r));
        }
        tick(s, 0);
        assert_string_equal(node(s).state_name, "drained");
        replays(s);
}

/* An agent's ads alternate between well and not well: each state is recorded, and the log stays short. */
static void test_an_agent_that_cannot_decide(void **state)
{
        struct story *s = *state;

        story_offer(s, "n1", "[" AD "NodeFailed = \"no GPU\"]", 4);
        assert_string_equal(node(s).state_name, "failed");
        assert_string_equal(node(s).by, NODE_BY_NODE);
        assert_string_equal(node(s).reason, "no GPU");
        for (int i = 0; i < 200; i++) {
                story_offer(s, "n1", i % 2 ? "[" AD "NodeFailed = \"no GPU\"]" : "[" AD "]", 4);
                story_wait(s, 10);
        }
        assert_true(s->log_count < 12);
        story_wait(s, 2000);
        story_offer(s, "n1", "[" AD "]", 4);
        assert_string_equal(node(s).state_name, "idle");
        assert_int_equal(order(s, NODE_FAILED, 0), 0);
        story_offer(s, "n1", "[" AD "]", 4);
        assert_string_equal(node(s).state_name, "failed"); /* an agent cannot undo an administrator's order */
        replays(s);
}

/* An agent announces its end: its jobs go back at once, its silence is no failure, and it returns in its
 * former state, unless an administrator has drained it. */
static void test_leaving(void **state)
{
        struct story *s = *state;
        struct core_result r = {.request = 1, .fence = 1, .outcome = CORE_KILLED, .reason = STR("killed")};

        SUBMIT(1, "RequestCpus", "1");
        story_offer(s, "n1", "[" AD "]", 4);
        FORGET(actions);
        story_offer(s, "n1", "[" AD "Leaving = \"so\"]", 0);
        tick(s, 0);
        SAID(actions, "vacate n1 1 0 f1\n");
        assert_string_equal(node(s).state_name, "draining");
        assert_true(core_result(s->core, "n1", &r));
        tick(s, 0);
        assert_string_equal(node(s).state_name, "drained");
        assert_string_equal(node(s).by, NODE_BY_LEAVE);
        core_agent_away(s->core, "n1");
        tick(s, 3600000);
        assert_string_equal(node(s).state_name, "drained");
        replays(s);
        for (int i = 0; i < 200; i++) {
                story_offer(s, "n1", i % 2 ? "[" AD "Leaving = \"so\"]" : "[" AD "]", 4);
                story_wait(s, 10);
        }
        assert_true(s->log_count < 40);
        story_wait(s, 2000);
        story_offer(s, "n1", "[" AD "]", 4);
        assert_int_equal(core_node_get(s->core, "n1", &(struct core_node){0}), 0);
        assert_null(node(s).refuses);
        assert_int_equal(order(s, NODE_DRAINING, 0), 0);
        story_wait(s, 2000);
        story_offer(s, "n1", "[" AD "]", 4);
        assert_string_equal(node(s).by, "ann");
        replays(s);
}

static void test_triggers(void **state)
{
        struct story *s = *state;
        struct core_job j;

        SUBMIT(1, "RequestCpus", "1");
        story_offer(s, "n1", "[" AD "Free = 5; CloseWhen = Free < 10]", 4);
        assert_int_equal(core_job_get(s->core, 1, 0, &j), 0);
        assert_int_equal(j.state, JOB_IDLE);
        story_offer(s, "n1", "[" AD "CloseWhen = Free < 10; DrainWhen = NoSuch > 7]", 4);
        assert_int_equal(core_job_get(s->core, 1, 0, &j), 0);
        assert_int_equal(j.state, JOB_MATCHED); /* undefined is not true */
        story_offer(s, "n1", "[" AD "Free = 5; DrainWhen = Free < 10]", 4);
        assert_string_equal(node(s).state_name, "draining");
        assert_string_equal(node(s).reason, "its drain_when is true: Free < 10");
        assert_int_equal(node(s).deadline_ms, 0);
        story_wait(s, 5000);
        story_offer(s, "n1", "[" AD "Free = 50; DrainWhen = Free < 10]", 4);
        assert_string_equal(node(s).state_name, "draining");
        replays(s);
}

/* drain_when with a time for the jobs: what runs then goes back. notify_when is reported once, and again
 * after it was not true; it forgives no lost jobs. */
static void test_interruption_and_report(void **state)
{
        struct story *s = *state;
        size_t logged;

        story_offer(s, "n1", "[" AD "Free = 5; NotifyWhen = Free < 10]", 4);
        assert_string_equal(node(s).state_name, "idle");
        assert_string_equal(node(s).reason, "its notify_when is true: Free < 10");
        logged = s->log_count;
        tick(s, 5000);
        story_offer(s, "n1", "[" AD "Free = 4; NotifyWhen = Free < 10]", 4);
        assert_int_equal(s->log_count, logged);
        tick(s, 5000);
        story_offer(s, "n1", "[" AD "Free = 40; NotifyWhen = Free < 10]", 4);
        assert_string_equal(node(s).reason, "its notify_when is not true any more");
        tick(s, 5000);
        story_offer(s, "n1", "[" AD "Free = 3; NotifyWhen = Free < 10]", 4);
        assert_string_equal(node(s).reason, "its notify_when is true: Free < 10");
        SUBMIT(1, "RequestCpus", "1");
        core_match(s->core);
        assert_string_equal(node(s).state_name, "busy");
        tick(s, 5000);
        story_offer(s, "n1", "[" AD "Ends = true; DrainWhen = Ends; DrainWithin = 5]", 4);
        assert_string_equal(node(s).state_name, "draining");
        assert_int_equal(node(s).deadline_ms, s->now + 5000);
        FORGET(actions);
        tick(s, 4000);
        SAID(actions, "");
        tick(s, 1000);
        tick(s, 1000);
        SAID(actions, "vacate n1 1 0 f1\n");
        replays(s);
}

/* An absent node becomes silent; a connected one that sends nothing does not. */
static void test_silence(void **state)
{
        struct story *s = *state;

        story_offer(s, "n1", "[" AD "]", 4);
        tick(s, 3600000);
        assert_string_equal(node(s).state_name, "idle");
        core_agent_away(s->core, "n1");
        tick(s, 1000);
        assert_string_equal(node(s).state_name, "failed");
        assert_string_equal(node(s).reason, "nothing was heard of it for 600 s");
        story_offer(s, "n1", "[" AD "NodeBootId = \"b1\"; NodeSize = \"large\"]", 4);
        assert_string_equal(node(s).state_name, "idle");
        assert_string_equal(node(s).facts, "boot_id=b1\nsize=large\n");
        replays(s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(test_orders),
                STORY(test_a_deadline),
                STORY(test_an_agent_that_cannot_decide),
                STORY(test_triggers),
                STORY(test_interruption_and_report),
                STORY(test_leaving),
                STORY(test_silence),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
