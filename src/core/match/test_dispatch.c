/* How many jobs of a request are under way at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/test_help.h"

#define PLACE "[Cpus = 40; Memory = 8000; Disk = 100]"

static void see_limit(void *arg, const struct core_why *w)
{
        *(int *)arg += w->verdict == CORE_BUSY;
}

static void test_no_more_than_asked_for(void **state)
{
        struct core *c = *state;
        struct request *r = submit(c, NULL, 1000000, (const char *const[]){"JobMaterializeLimit", "3", NULL});
        uint64_t under_way, most;
        int limited = 0;

        offer(c, "n1", PLACE);
        expect_assigned(c, "n1/default 1 0-2\n");
        core_why(c, r->id, 3, see_limit, &limited);
        assert_int_equal(limited, 1);
        assert_int_equal(core_job_throttle(c, r->id, 3, &under_way, &most), 0);
        assert_true(under_way == 3 && most == 3);
        started(c, "n1", r->id, 1);
        expect_assigned(c, "");
        ended(c, "n1", r->id, 1);
        assert_int_equal(core_job_throttle(c, r->id, 3, &under_way, &most), CORE_UNKNOWN);
        expect_assigned(c, "n1/default 1 3\n");
        assert_null(core_check(c));
}

/* One that is under way goes on when it is idle again, and counts until it has ended. */
static void test_those_under_way_go_on(void **state)
{
        struct core *c = *state;
        struct request *r = submit(c, NULL, 9, (const char *const[]){"JobMaterializeLimit", "2", NULL});
        struct core_command hold = {.action = CORE_ACT_REMOVE, .request = r->id, .reason = STR("so")};
        struct set one = {0};
        struct core_attempts a = {r->id, 1, &one};
        uint64_t n;

        set_add(&one, 1);
        offer(c, "n1", PLACE);
        expect_assigned(c, "n1/default 1 0-1\n");
        core_refused(c, "n1", &a, STR("busy"), 0);
        offer(c, "n1", PLACE);
        expect_assigned(c, "n1/default 1 1\n");
        a.fence = 2;
        core_refused(c, "n1", &a, STR("never"), 6);
        offer(c, "n1", PLACE);
        expect_assigned(c, "");
        hold.members = &one;
        assert_int_equal(core_act(c, &hold, &n, NULL), 0);
        expect_assigned(c, "n1/default 1 2\n");
        set_deinit(&one);
        assert_null(core_check(c));
}

static void nobody(void *arg, uint64_t request, uint32_t fence, const struct set *members)
{
        (void)arg, (void)request, (void)fence, (void)members;
}

/* An agent was killed before it had taken them. It comes back, offers, and says that it knows nothing of
 * them: they go out on that offer, for it will make no other. */
static void test_lost_before_they_were_accepted(void **state)
{
        struct core *c = *state;
        const char *ad = "[ Cpus = 2; Memory = 1; Disk = 1 ]";

        submit(c, NULL, 2, (const char *const[]){"Requirements", "true", NULL});
        offer(c, "n1", ad);
        expect_assigned(c, "n1/default 1 0-1\n");
        core_agent_away(c, "n1");
        offer(c, "n1", ad);
        expect_assigned(c, "");
        core_inventory(c, "n1", NULL, 0, nobody, NULL);
        expect_assigned(c, "n1/default 1 0-1\n");
        assert_null(core_check(c));
}

/* Thousands that are lost at once are lost a thousand in a call; an agent that does know some after all keeps
 * those that were not, and nobody else's are touched. */
static void test_thousands_are_lost_in_slices(void **state)
{
        struct core *c = *state;
        struct core_offer o = {.agent = "n1",
                               .queue = "default",
                               .serial = 1,
                               .ad = STR("[Cpus = 2600; Memory = 100000; Disk = 100000]"),
                               .jobs_max = 2600};
        struct request *r = submit(c, NULL, 2600, (const char *const[]){"Requirements", "true", NULL});
        struct core_attempts has = {.request = r->id};
        struct set kept = {0};

        offer(c, "n2", "[Cpus = 100; Memory = 100000; Disk = 100000]");
        core_match(c);
        core_agent_connected(c, "n1");
        assert_int_equal(core_offer(c, &o, NULL), 0);
        while (core_match(c))
                ;
        assert_int_equal(r->active, 2600);
        core_agent_away(c, "n1");
        core_agent_connected(c, "n1");
        core_inventory(c, "n1", NULL, 0, nobody, NULL);
        assert_int_equal(r->active, 1600);
        assert_null(core_check(c));
        for (const struct job *j = agent_find(c, "n1")->queues->attempts; j; j = j->next)
                if (j->member % 3 == 0) {
                        set_add(&kept, j->member);
                        has.fence = j->fence;
                }
        has.members = &kept;
        core_inventory(c, "n1", &has, 1, nobody, NULL);
        while (core_tick(c) == 0)
                assert_null(core_check(c));
        assert_int_equal(r->active, 100 + set_count(&kept));
        SET_FOREACH (&kept, m)
                assert_true(request_job(r, (uint32_t)m)->queue != NULL);
        core_agent_away(c, "n1");
        core_agent_away(c, "n2");
        core_clock(c, c->now_ms, c->steady_ms + 100000000);
        while (core_tick(c) == 0)
                assert_null(core_check(c));
        assert_int_equal(r->active, 0);
        assert_int_equal(r->idle, 2600);
        set_deinit(&kept);
        buf_reset(&bare_assigned);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_no_more_than_asked_for),
                TEST(test_those_under_way_go_on),
                TEST(test_lost_before_they_were_accepted),
                TEST(test_thousands_are_lost_in_slices),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
