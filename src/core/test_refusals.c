/* Why a job does not run at a place, and which change would help. */
#include "core/test_story.h"

static void on_verdict(void *arg, const struct core_why *w)
{
        buf_printf(arg, "%d " STR_FMT "\n", w->verdict, STR_ARG(w->value));
}

/* What its place stands on does not answer: a fact beside the job's state. */
static void test_an_unreachable_queue_keeps_its_jobs(void **state)
{
        struct story *s = *state;
        BUF_CLEANUP struct buf said = {0};
        struct core_job j;

        SUBMIT(2, "RequestCpus", "1");
        story_offer(s, "n1", "[Cpus = 1; Memory = 100]", 1);
        story_offer(s, "n1", "[Cpus = 0; Memory = 100; Unreachable = \"no answer\"]", 0);
        assert_int_equal(core_job_get(s->core, 1, 0, &j), 0);
        assert_true(j.state == JOB_MATCHED && !j.away);
        assert_string_equal(j.unreachable, "no answer");
        core_why(s->core, 1, 1, on_verdict, &said);
        assert_string_equal(buf_z(&said), "8 no answer\n");
        story_offer(s, "n1", "[Cpus = 1; Memory = 100]", 1);
        assert_int_equal(core_job_get(s->core, 1, 0, &j), 0);
        assert_null(j.unreachable);
        core_agent_away(s->core, "n1");
        assert_int_equal(core_job_get(s->core, 1, 0, &j), 0);
        assert_true(j.away);
}

/* Its agent offers nothing, and says why: that is no waiting for room, though it runs something. */
static void test_a_closed_queue_says_why(void **state)
{
        struct story *s = *state;
        BUF_CLEANUP struct buf said = {0};

        SUBMIT(2, "RequestCpus", "1");
        story_offer(s, "n1", "[Cpus = 1; Memory = 100]", 1);
        story_offer(s, "n1", "[Cpus = 0; Memory = 100; TotalCpus = 1; WhyClosed = \"no disk\"]", 0);
        core_why(s->core, 1, 1, on_verdict, &said);
        assert_string_equal(buf_z(&said), "6 no disk\n");
}

/* An agent that is drained is given nothing, by no offer, and says so; what it has stays; then it goes on. */
static void test_a_drained_agent_is_given_nothing(void **state)
{
        struct story *s = *state;
        struct core_node_order o;
        struct core_node n;
        BUF_CLEANUP struct buf said = {0};

        SUBMIT(3, "RequestCpus", "1");
        story_offer(s, "n1", "[Cpus = 1; Memory = 100]", 1);
        SAID(actions, "assign n1 q 1 0 f1\n");
        o = (struct core_node_order){.agent = "n1", .to = NODE_DRAINING, .by = STR("ann")};
        assert_int_equal(core_node_set(s->core, &o, NULL), 0);
        story_offer(s, "n1", "[Cpus = 2; TotalCpus = 2; Memory = 100]", 2);
        core_agent_away(s->core, "n1");
        story_offer(s, "n1", "[Cpus = 2; TotalCpus = 2; Memory = 100]", 2);
        SAID(actions, "");
        core_why(s->core, 1, 1, on_verdict, &said);
        assert_string_equal(buf_z(&said), "6 drained by ann\n");
        assert_true(story_result(s, "n1", 0, 1, 0));
        core_match(s->core);
        SAID(actions, "");
        assert_int_equal(core_node_get(s->core, "n1", &n), 0);
        assert_int_equal(n.state, NODE_DRAINING);
        core_tick(s->core);
        assert_int_equal(core_node_get(s->core, "n1", &n), 0);
        assert_int_equal(n.state, NODE_DRAINED);
        assert_string_equal(n.refuses, "drained by ann");
        o.to = NODE_UP;
        assert_int_equal(core_node_set(s->core, &o, NULL), 0);
        assert_int_equal(core_node_get(s->core, "n1", &n), 0);
        assert_null(n.refuses);
        core_match(s->core);
        SAID(actions, "assign n1 q 1 1 f1\n");
}

/* What its ad says of that goes before what it has none of. */
static void test_a_queue_without_a_partition_says_why(void **state)
{
        struct story *s = *state;
        BUF_CLEANUP struct buf said = {0}, open = {0};

        SUBMIT(1, "RequestCpus", "1");
        story_offer(s, "n1", "[Cpus = 0; TotalCpus = 0; Memory = 100; WhyClosed = \"no such partition\"]", 0);
        core_why(s->core, 1, 0, on_verdict, &said);
        assert_string_equal(buf_z(&said), "6 no such partition\n");
        story_offer(s, "n1", "[Cpus = 0; TotalCpus = 1; Memory = 100]", 0);
        core_why(s->core, 1, 0, on_verdict, &open);
        assert_string_equal(buf_z(&open), "6 \n");
}

static void keep_why(void *arg, const struct core_why *w)
{
        buf_printf(arg, "%s %d %.*s = %.*s\n", w->agent, w->verdict, STR_ARG(w->clause), STR_ARG(w->value));
}

static void test_why(void **state)
{
        struct story *s = *state;
        struct buf out = {0};

        story_offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1; TotalCpus = 4 ]", 1);
        story_offer(s, "n2", "[ Cpus = 8; Memory = 1; Disk = 1; Colour = \"blue\" ]", 1);
        story_offer(s, "n3",
                    "[ Cpus = 8; Memory = 1; Disk = 1; Colour = \"red\"; Requirements = TARGET.Owner == "
                    "\"bob\" ]",
                    1);
        story_submit(s, 1,
                     (const char *const[]){"Requirements",
                                           "TARGET.Cpus >= RequestCpus && TARGET.Colour =!= \"blue\"",
                                           "RequestCpus", "2", NULL},
                     NULL);
        core_match(s->core);
        assert_int_equal(core_why(s->core, 1, 0, keep_why, &out), 0);
        assert_string_equal(buf_z(&out), "n1 1 TARGET.Cpus >= RequestCpus = false\n"
                                         "n2 2 TARGET.Colour =!= \"blue\" = false\n"
                                         "n3 3 TARGET.Owner == \"bob\" = false\n");
        buf_deinit(&out);
}

/* An offer names owners, all of a domain, and those of it who may not, with the reason. */
static void test_owners(void **state)
{
        struct story *s = *state;
        struct buf out = {0};
        static const struct {
                const char *agent;
                struct str owners[2];
                size_t count;
        } offers[] = {
                {"a", {STR("bob@local"), STR("*@locals")}, 2},
                {"b", {STR("*@local"), STR("!ann@local too small")}, 2},
                {"c", {STR("*@local"), STR("!ann")}, 2},
                {"d", {STR("*@local"), STR("!ann@local2 no")}, 2},
                {"e", {STR("ann@local"), STR("!ann@local")}, 2},
        };

        story_submit(s, 1, (const char *const[]){NULL}, NULL);
        for (size_t i = 0; i < sizeof(offers) / sizeof(*offers); i++) {
                struct core_offer o = {.agent = offers[i].agent,
                                       .queue = "q",
                                       .serial = 1,
                                       .ad = STR("[ Cpus = 1; Memory = 999; Disk = 99999 ]"),
                                       .jobs_max = 1,
                                       .owners = offers[i].owners,
                                       .owner_count = offers[i].count};

                core_agent_connected(s->core, o.agent);
                assert_int_equal(core_offer(s->core, &o, NULL), 0);
        }
        assert_int_equal(core_why(s->core, 1, 0, keep_why, &out), 0);
        BUF_CLEANUP struct buf want = {0};
        buf_printf(&want, "a %d  = \nb %d  = too small\nc %d  = \nd %d  = \ne %d  = \n", CORE_OWNER_REFUSED,
                   CORE_OWNER_REFUSED, CORE_FITS, CORE_FITS, CORE_OWNER_REFUSED);
        assert_string_equal(buf_z(&out), buf_z(&want));
        buf_deinit(&out);
        /* who delivers his user log and counts in his capacity, by the same rule */
        for (size_t i = 0; i < sizeof(offers) / sizeof(*offers); i++)
                assert_int_equal(core_agent_serves(s->core, offers[i].agent, STR("ann@local")),
                                 i == 2 || i == 3);
}

static enum job_state state_of(struct story *s, uint64_t request, uint32_t member)
{
        struct core_job j;

        assert_int_equal(core_job_get(s->core, request, member, &j), 0);
        return j.state;
}

/* A queue that takes jobs ahead offers more than it has; no job sees a machine of that size. */
static void test_ahead_is_no_machine(void **state)
{
        struct story *s = *state;

        story_offer(s, "n1", "[ Cpus = 40; TotalCpus = 2; Memory = 4000; TotalMemory = 100; Disk = 9 ]", 40);
        story_submit(s, 1,
                     (const char *const[]){"Requirements", "TARGET.Cpus >= 8", "RequestCpus", "1", NULL},
                     NULL);
        story_submit(s, 1,
                     (const char *const[]){"Requirements", "TARGET.Memory > 100", "RequestCpus", "1", NULL},
                     NULL);
        story_submit(s, 10,
                     (const char *const[]){"Requirements", "TARGET.Cpus >= 2", "RequestCpus", "1", NULL},
                     NULL);
        core_match(s->core);
        assert_int_equal(state_of(s, 1, 0), JOB_IDLE);
        assert_int_equal(state_of(s, 2, 0), JOB_IDLE);
        assert_int_equal(state_of(s, 3, 9), JOB_MATCHED);
}

static void keep_change(void *arg, const struct core_change *x)
{
        buf_printf(arg, "%d " STR_FMT " refused %u alone %u most %lld\n", x->kind, STR_ARG(x->text),
                   x->refused, x->alone, (long long)x->most);
}

static void test_which_change_would_help(void **state)
{
        struct core_what_if *changes = core_what_if_new();
        struct core_walk *walk;
        struct story *s = *state;
        struct buf out = {0};

        story_offer(s, "n1", "[ Cpus = 4; Memory = 10; Disk = 1; Colour = \"red\" ]", 1);
        story_offer(s, "n2", "[ Cpus = 6; Memory = 10; Disk = 1; Colour = \"red\" ]", 1);
        story_offer(s, "n3", "[ Cpus = 8; Memory = 10; Disk = 1; Colour = \"blue\" ]", 1);
        story_offer(s, "n4",
                    "[ Cpus = 2; Memory = 10; Disk = 1; Colour = \"blue\"; Requirements = TARGET.X is 1 ]",
                    1);
        story_submit(s, 1,
                     (const char *const[]){"Requirements",
                                           "TARGET.Cpus >= RequestCpus && TARGET.Colour == \"red\"",
                                           "RequestCpus", "8", NULL},
                     NULL);
        core_match(s->core);
        walk = core_walk_new(s->core);
        assert_int_equal(core_what_if_look(s->core, changes, walk, UINT32_MAX, 1, 0), 0);
        core_what_if_tell(changes, keep_change, &out);
        core_what_if_free(changes);
        core_walk_free(walk);
        assert_string_equal(buf_z(&out), "2 RequestCpus refused 3 alone 2 most 6\n"
                                         "0 TARGET.Colour == \"red\" refused 2 alone 1 most 0\n"
                                         "0 TARGET.Cpus >= RequestCpus refused 3 alone 0 most 0\n"
                                         "1 TARGET.X =?= 1 refused 1 alone 0 most 0\n");
        buf_deinit(&out);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(test_an_unreachable_queue_keeps_its_jobs),
                STORY(test_a_drained_agent_is_given_nothing),
                STORY(test_a_closed_queue_says_why),
                STORY(test_a_queue_without_a_partition_says_why),
                STORY(test_why),
                STORY(test_owners),
                STORY(test_ahead_is_no_machine),
                STORY(test_which_change_would_help),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
