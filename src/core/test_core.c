/* The core by its calls: what a user, an agent and a clock can do to it, one story a test. */
#include "core/test_story.h"

static void test_a_job_from_submit_to_history(void **state)
{
        struct story *s = *state;

        assert_int_equal(SUBMIT(3, "Cmd", "\"/bin/true\""), 1);
        core_match(s->core);
        SAID(events, "submitted 1\n");
        story_offer(s, "n1", "[ Cpus = 2; Memory = 100; Disk = 100 ]", 10);
        SAID(events, "matched 1 0-1\n");
        SAID(actions, "assign n1 q 1 0-1 f1\n");
        assert_true(story_result(s, "n1", 0, 1, 0));
        assert_true(story_result(s, "n1", 1, 1, 3));
        SAID(history, "1.0 completed 0\n1.1 completed 3\n");
        struct core_request r;
        core_request_get(s->core, 1, &r);
        assert_int_equal(r.counts.completed, 2);
        assert_int_equal(r.counts.failed, 1);
        assert_int_equal(r.counts.idle, 1);
}

static void test_nothing_is_given_twice_before_the_agent_knows(void **state)
{
        struct story *s = *state;

        SUBMIT(5, "Cmd", "\"x\"");
        story_offer(s, "n1", "[ Cpus = 2; Memory = 100; Disk = 100 ]", 10);
        /* The agent repeats its offer before it has seen the assignment. */
        story_offer(s, "n1", "[ Cpus = 2; Memory = 100; Disk = 100 ]", 10);
        SAID(actions, "assign n1 q 1 0-1 f1\n");
}

static void test_requirements_are_asked_both_ways(void **state)
{
        struct story *s = *state;

        assert_int_equal(story_submit(s, 1,
                                      (const char *const[]){"Requirements", "TARGET.Colour == \"red\"", NULL},
                                      NULL),
                         1);
        story_offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1; Colour = \"blue\" ]", 1);
        story_offer(s, "n2",
                    "[ Cpus = 1; Memory = 1; Disk = 1; Colour = \"red\"; Requirements = Owner == \"bob\" ]",
                    1);
        SAID(actions, "");
        story_offer(s, "n3",
                    "[ Cpus = 1; Memory = 1; Disk = 1; Colour = \"RED\"; Requirements = Owner == \"ann\" ]",
                    1);
        SAID(actions, "assign n3 q 1 0 f1\n");
}

static void test_rank_chooses_the_place(void **state)
{
        struct story *s = *state;

        story_offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1; Speed = 1 ]", 1);
        story_offer(s, "n2", "[ Cpus = 1; Memory = 1; Disk = 1; Speed = 7 ]", 1);
        SUBMIT(1, "Rank", "TARGET.Speed");
        core_match(s->core);
        SAID(actions, "assign n2 q 1 0 f1\n");
}

static void test_priority_goes_first_and_may_change(void **state)
{
        struct story *s = *state;

        SUBMIT(3, "JobPrio", "0");
        SUBMIT(1, "JobPrio", "5");
        assert_int_equal(story_act(s, CORE_ACT_PRIORITY, "2", 9), 1);
        story_offer(s, "n1", "[ Cpus = 3; Memory = 1; Disk = 1 ]", 3);
        SAID(actions, "assign n1 q 1 2 f1\nassign n1 q 2 0 f1\nassign n1 q 1 0 f1\n");
}

static void test_a_job_that_fits_nowhere_blocks_nobody(void **state)
{
        struct story *s = *state;

        SUBMIT(1, "RequestCpus", "64", "JobPrio", "100");
        SUBMIT(2, "RequestCpus", "1");
        story_offer(s, "n1", "[ Cpus = 2; Memory = 1; Disk = 1 ]", 9);
        SAID(actions, "assign n1 q 2 0-1 f1\n");
}

static void test_an_old_fence_is_refused(void **state)
{
        struct story *s = *state;

        SUBMIT(1, "Cmd", "\"x\"");
        story_offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1 ]", 1);
        core_agent_away(s->core, "n1");
        story_wait(s, 60999);
        core_tick(s->core);
        FORGET(events);
        story_wait(s, 2);
        core_tick(s->core);
        SAID(events, "lost 1 0 -> idle\n");
        story_offer(s, "n2", "[ Cpus = 1; Memory = 1; Disk = 1 ]", 1);
        FORGET(events);
        assert_false(story_result(s, "n1", 0, 1, 0));
        assert_false(story_result(s, "n1", 0, 2, 0));
        SAID(events, "");
        assert_true(story_result(s, "n2", 0, 2, 0));
        assert_false(story_result(s, "n2", 0, 2, 0));
        SAID(history, "1.0 completed 0\n");
}

static bool is_idle(struct story *s)
{
        struct core_job j;

        return core_job_get(s->core, 1, 0, &j) == 0 && j.state == JOB_IDLE;
}

/* It runs again at the first missed renewal, but not while its agent is there. */
static void test_an_eager_job_does_not_wait_for_its_lease(void **state)
{
        struct story *s = *state;

        SUBMIT(1, "RerunOnLost", "\"eager\"");
        story_offer(s, "n1", "[Cpus = 1; Memory = 100]", 1);
        story_wait(s, 30000);
        core_tick(s->core);
        assert_false(is_idle(s));
        core_renew(s->core, "n1");
        core_agent_away(s->core, "n1");
        story_wait(s, 20999);
        core_tick(s->core);
        assert_false(is_idle(s));
        story_wait(s, 1);
        core_tick(s->core);
        assert_true(is_idle(s));
}

static void test_an_agent_that_comes_back_keeps_its_jobs(void **state)
{
        struct story *s = *state;
        struct set zero = {0}, both = {0};

        SUBMIT(2, "Cmd", "\"x\"");
        story_offer(s, "n1", "[ Cpus = 2; Memory = 1; Disk = 1 ]", 2);
        core_agent_away(s->core, "n1");
        story_wait(s, 50000);
        set_add(&zero, 0);
        set_add_range(&both, 0, 2);
        struct core_attempts has[] = {{1, 1, &zero}};
        FORGET(events);
        core_agent_connected(s->core, "n1");
        core_inventory(s->core, "n1", has, 1, NULL, NULL);
        SAID(events, "lost 1 1 -> idle\n");
        story_wait(s, 50000);
        core_tick(s->core);
        SAID(events, "");
        set_deinit(&zero);
        set_deinit(&both);
}

static void test_hold_and_remove_reach_a_running_job(void **state)
{
        struct story *s = *state;

        SUBMIT(3, "Cmd", "\"x\"");
        story_offer(s, "n1", "[ Cpus = 2; Memory = 1; Disk = 1 ]", 2);
        FORGET(events);
        FORGET(actions);
        assert_int_equal(story_act(s, CORE_ACT_HOLD, "0", 0), 1);
        assert_int_equal(story_act(s, CORE_ACT_REMOVE, "1-2", 0), 2);
        SAID(events, "vacating 1 0 -> held\nvacating 1 1 -> removed\nremoved 1 2\nfiled 1 2\n");
        SAID(actions, "hold n1 1 0 f1\nremove n1 1 1 f1\n");
        struct core_result killed = {.request = 1, .member = 0, .fence = 1, .outcome = CORE_KILLED};
        assert_true(core_result(s->core, "n1", &killed));
        killed.member = 1;
        assert_true(core_result(s->core, "n1", &killed));
        SAID(events, "exited 1 0 -> held\nexited 1 1 -> removed\n");
        struct core_job j;
        core_job_get(s->core, 1, 0, &j);
        assert_int_equal(j.state, JOB_HELD);
        assert_int_equal(j.hold_code, CORE_HOLD_USER);
        assert_true(str_eqz(j.hold_reason, "so"));
        core_tick(s->core);
        SAID(history, "1.2 removed 0\n1.1 removed 0\n");
        assert_int_equal(story_act(s, CORE_ACT_RELEASE, NULL, 0), 1);
        core_job_get(s->core, 1, 0, &j);
        assert_int_equal(j.state, JOB_IDLE);
}

static void test_the_last_word_counts_while_a_job_is_being_stopped(void **state)
{
        struct story *s = *state;
        struct core_result killed = {.request = 1, .fence = 1, .outcome = CORE_KILLED};
        struct core_job j;

        SUBMIT(2, "Cmd", "\"x\"");
        story_offer(s, "n1", "[ Cpus = 2; Memory = 1; Disk = 1 ]", 2);
        FORGET(events);
        FORGET(actions);
        assert_int_equal(story_act(s, CORE_ACT_HOLD, "0", 0), 1);
        assert_int_equal(story_act(s, CORE_ACT_RELEASE, "0", 0), 1);
        assert_int_equal(story_act(s, CORE_ACT_RELEASE, "0", 0), 0);
        assert_int_equal(story_act(s, CORE_ACT_VACATE, "1", 0), 1);
        assert_int_equal(story_act(s, CORE_ACT_HOLD, "1", 0), 1);
        SAID(events,
             "vacating 1 0 -> held\nvacating 1 0 -> idle\nvacating 1 1 -> idle\nvacating 1 1 -> held\n");
        SAID(actions, "hold n1 1 0 f1\nvacate n1 1 1 f1\nhold n1 1 1 f1\n");
        assert_true(core_result(s->core, "n1", &killed));
        killed.member = 1;
        assert_true(core_result(s->core, "n1", &killed));
        core_job_get(s->core, 1, 0, &j);
        assert_int_equal(j.state, JOB_IDLE);
        assert_int_equal(j.hold_code, 0);
        core_job_get(s->core, 1, 1, &j);
        assert_int_equal(j.state, JOB_HELD);
        assert_int_equal(j.hold_code, CORE_HOLD_USER);
}

static void test_exit_policies(void **state)
{
        struct story *s = *state;

        SUBMIT(3, "OnExitRemove", "ExitCode == 0 || NumJobCompletions > 1", "OnExitHold", "ExitCode == 7");
        story_offer(s, "n1", "[ Cpus = 3; Memory = 1; Disk = 1 ]", 3);
        FORGET(events);
        story_result(s, "n1", 0, 1, 0);
        story_result(s, "n1", 1, 1, 7);
        story_result(s, "n1", 2, 1, 1);
        SAID(events, "exited 1 0 -> completed\nexited 1 1 -> held\nexited 1 2 -> idle\n");
        story_offer(s, "n1", "[ Cpus = 3; Memory = 1; Disk = 1 ]", 3);
        FORGET(events);
        assert_true(story_result(s, "n1", 2, 2, 1));
        SAID(events, "exited 1 2 -> completed\n");
        struct core_job j;
        core_job_get(s->core, 1, 1, &j);
        assert_int_equal(j.hold_code, CORE_HOLD_POLICY);
        assert_true(str_search(j.hold_reason, STR("OnExitHold")) >= 0);
}

static void test_periodic_policies(void **state)
{
        struct story *s = *state;

        SUBMIT(100, "PeriodicHold", "JobStatus == 1 && time() - QDate > 30", "PeriodicRemove",
               "JobStatus == 5 && time() - QDate > 300");
        core_tick(s->core);
        story_wait(s, 20000);
        core_tick(s->core);
        SAID(events, "submitted 1\n");
        story_wait(s, 20000);
        core_tick(s->core);
        SAID(events, "held 1 0-99\n");
        story_wait(s, 300000);
        core_tick(s->core);
        SAID(events, "removed 1 0-99\n");
        core_tick(s->core);
        SAID(events, "filed 1 0-99\n");
}

static void test_a_limit_on_running_time_counts_no_suspension(void **state)
{
        struct story *s = *state;
        struct set zero = {0};

        SUBMIT(1, "PeriodicRemove", "RemoteWallClockTime - CumulativeSuspensionTime > 100");
        story_offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1 ]", 1);
        set_add(&zero, 0);
        core_started(s->core, "n1", &(struct core_attempts){1, 1, &zero}, s->now);
        story_wait(s, 50000);
        assert_int_equal(story_act(s, CORE_ACT_SUSPEND, NULL, 0), 1);
        story_wait(s, 50000);
        core_renew(s->core, "n1");
        assert_int_equal(story_act(s, CORE_ACT_RESUME, NULL, 0), 1);
        story_wait(s, 45000);
        FORGET(events);
        core_renew(s->core, "n1");
        core_tick(s->core);
        SAID(events, "");
        story_wait(s, 25000);
        core_tick(s->core);
        SAID(events, "vacating 1 0 -> removed\n");
        set_deinit(&zero);
}

static void test_late_attributes_split_classes_only_when_they_matter(void **state)
{
        struct story *s = *state;

        SUBMIT(4, "Arguments", "\"$(Process)\"", "RequestCpus", "$(Process) + 1");
        story_offer(s, "n1", "[ Cpus = 4; Memory = 1; Disk = 1 ]", 9);
        SAID(actions, "assign n1 q 1 0 f1\nassign n1 q 1 1 f1\n");
}

static void test_wrong_submits_name_the_attribute(void **state)
{
        struct story *s = *state;
        struct err err;

        assert_int_equal(story_submit(s, 1, (const char *const[]){"Requirements", "Memory >", NULL}, &err),
                         -CORE_INVALID);
        assert_non_null(strstr(err.text, "Requirements"));
        assert_int_equal(story_submit(s, 1, (const char *const[]){"Rank", "$(Process) +", NULL}, &err),
                         -CORE_INVALID);
        assert_non_null(strstr(err.text, "Rank"));
        assert_int_equal(story_submit(s, 0, (const char *const[]){"Rank", "1", NULL}, &err), -CORE_INVALID);
        assert_int_equal(story_submit(s, 20000000, (const char *const[]){"Rank", "1", NULL}, &err),
                         -CORE_INVALID);
        assert_int_equal(
                story_submit(s, 1001, (const char *const[]){"RequestMemory", "$(Process)", NULL}, &err),
                -CORE_INVALID);
        assert_non_null(strstr(err.text, "1000 ways"));
        assert_int_equal(core_request_last(s->core), 0);
        SAID(events, "");
        assert_int_equal(
                story_submit(s, 1000, (const char *const[]){"RequestMemory", "$(Process)", NULL}, &err), 1);
}

static void test_a_job_without_requirements_goes_where_there_is_room(void **state)
{
        struct story *s = *state;

        assert_int_equal(story_submit(s, 2, (const char *const[]){"Cmd", "\"x\"", NULL}, NULL), 1);
        story_offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1 ]", 9);
        SAID(actions, "assign n1 q 1 0 f1\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(test_a_job_from_submit_to_history),
                STORY(test_nothing_is_given_twice_before_the_agent_knows),
                STORY(test_requirements_are_asked_both_ways),
                STORY(test_rank_chooses_the_place),
                STORY(test_priority_goes_first_and_may_change),
                STORY(test_a_job_that_fits_nowhere_blocks_nobody),
                STORY(test_an_old_fence_is_refused),
                STORY(test_an_eager_job_does_not_wait_for_its_lease),
                STORY(test_an_agent_that_comes_back_keeps_its_jobs),
                STORY(test_hold_and_remove_reach_a_running_job),
                STORY(test_the_last_word_counts_while_a_job_is_being_stopped),
                STORY(test_exit_policies),
                STORY(test_periodic_policies),
                STORY(test_a_limit_on_running_time_counts_no_suspension),
                STORY(test_late_attributes_split_classes_only_when_they_matter),
                STORY(test_wrong_submits_name_the_attribute),
                STORY(test_a_job_without_requirements_goes_where_there_is_room),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
