/* Whose turn it is, and what stops a job everywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/test_help.h"

static unsigned char next_uuid = 100;

/* A request of `jobs` jobs; attributes as "Name = text" lines. */
static uint64_t submit_lines(struct core *c, const char *owner, unsigned jobs, const char *lines)
{
        struct submission s = {.owner = str_of(owner), .uuid = {++next_uuid}};
        struct submission_part *p = submission_add_part(&s);
        struct str rest = str_of(lines), line;
        uint64_t id = 0;
        bool existing;
        struct err err;

        p->steps = jobs;
        submission_add_attribute(p, STR("Cmd"), STR("\"/bin/true\""), false);
        while (str_cut(&rest, '\n', &line)) {
                ptrdiff_t at = str_find(line, '=');

                if (at > 0)
                        submission_add_attribute(p, str_trim(str_head(line, (size_t)at)),
                                                 str_trim(str_skip(line, (size_t)at + 1)), false);
        }
        if (core_submit(c, &s, false, &id, &existing, &err))
                fail_msg("%s", err.text);
        submission_deinit(&s);
        return id;
}

static void offer_cpus(struct core *c, const char *agent, unsigned cpus, const char *more)
{
        struct buf ad = {0};
        struct core_offer o = {.agent = agent, .queue = "q", .serial = 1, .jobs_max = cpus};
        struct err err;

        core_agent_connected(c, agent);
        buf_printf(&ad, "[ Cpus = %u; Memory = 100000; Disk = 100000; %s ]", cpus, more);
        o.ad = buf_view(&ad);
        if (core_offer(c, &o, &err))
                fail_msg("%s", err.text);
        buf_deinit(&ad);
        core_match(c);
}

/* What was assigned since the last call. */
static const char *assigned(void)
{
        static struct buf text;

        buf_reset(&text);
        buf_str(&text, buf_view(&bare_assigned));
        buf_reset(&bare_assigned);
        return buf_z(&text);
}

static void finish(struct core *c, const char *agent, uint64_t request, uint32_t member)
{
        struct core_result r = {.request = request, .member = member, .fence = 1, .outcome = CORE_EXITED};

        assert_true(core_result(c, agent, &r));
        core_match(c);
}

static void sound(struct core *c)
{
        const char *bad = core_check(c);

        if (bad)
                fail_msg("%s", bad);
}

static void on_limit(void *arg, const struct core_limit *l)
{
        buf_printf(arg, "%s %lld/%lld %llu\n", l->name, (long long)l->used, (long long)l->max,
                   (unsigned long long)l->waiting);
}

static void test_a_limit_is_drawn_on_and_waited_for(void **state)
{
        struct core *c = *state;
        struct core_limit l;
        struct buf text = {0};
        int64_t units;

        core_limit_set(c, STR("sw"), 5);
        submit_lines(c, "ann@local", 3, "ConcurrencyLimits = \"SW:2\"");
        submit_lines(c, "bob@local", 3, "ConcurrencyLimits = \"sw, db\"");
        offer_cpus(c, "n1", 10, "");
        assert_string_equal(assigned(), "n1/q 1 0-1\nn1/q 2 0\n");
        assert_int_equal(core_job_limit(c, 1, 2, &l, &units), 0);
        assert_string_equal(l.name, "sw");
        assert_int_equal(units, 2);
        core_limits(c, on_limit, &text);
        assert_non_null(strstr(buf_z(&text), "db 1/-1 0\n"));
        assert_non_null(strstr(buf_z(&text), "sw 5/5 3\n"));
        finish(c, "n1", 2, 0); /* one unit is not enough for ann's, and is for bob's */
        assert_string_equal(assigned(), "n1/q 2 1\n");
        finish(c, "n1", 1, 0);
        assert_string_equal(assigned(), "n1/q 1 2\n");
        assert_int_equal(core_job_limit(c, 1, 2, &l, &units), CORE_UNKNOWN);
        sound(c);
        buf_deinit(&text);
}

static void test_a_limit_may_depend_on_the_place(void **state)
{
        struct core *c = *state;

        core_limit_set(c, STR("rack1"), 1);
        core_limit_set(c, STR("rack2"), 2);
        submit_lines(c, "ann@local", 9, "ConcurrencyLimits = strcat(\"rack\", TARGET.Rack)");
        offer_cpus(c, "n1", 8, "Rack = 1");
        offer_cpus(c, "n2", 8, "Rack = 2");
        offer_cpus(c, "n3", 1, "Rack = \"nonsense:\"");
        assert_string_equal(assigned(), "n1/q 1 0\nn2/q 1 1-2\n");
        sound(c);
}

static void test_what_names_no_limit_is_refused(void **state)
{
        struct core *c = *state;
        struct submission s = {.owner = STR("ann@local"), .uuid = {99}};
        struct submission_part *p = submission_add_part(&s);
        struct err err;
        uint64_t id;
        bool existing;

        submission_add_attribute(p, STR("ConcurrencyLimits"), STR("\"sw:0\""), false);
        assert_int_equal(core_submit(c, &s, false, &id, &existing, &err), CORE_INVALID);
        assert_non_null(strstr(err.text, "concurrency_limits"));
        submission_deinit(&s);
}

static void test_a_user_has_so_many_at_a_time(void **state)
{
        struct core *c = *state;
        struct submission s = {.owner = STR("ann@local"), .uuid = {99}};
        struct submission_part *p = submission_add_part(&s);
        struct err err;
        uint64_t id;
        bool existing;

        core_limit_set(c, STR("user/*"), 2);
        core_limit_set(c, STR("user/bob@local"), 3);
        core_limit_set(c, STR("queued/*"), 5);
        submit_lines(c, "ann@local", 4, "");
        submit_lines(c, "bob@local", 4, "");
        offer_cpus(c, "n1", 10, "");
        assert_string_equal(assigned(), "n1/q 1 0-1\nn1/q 2 0-2\n");
        p->steps = 2;
        submission_add_attribute(p, STR("Cmd"), STR("\"/bin/true\""), false);
        assert_int_equal(core_submit(c, &s, false, &id, &existing, &err), CORE_INVALID);
        assert_non_null(strstr(err.text, "has 4 jobs in the queue and may have 5"));
        finish(c, "n1", 1, 1);
        assert_string_equal(assigned(), "n1/q 1 2\n");
        assert_int_equal(core_submit(c, &s, false, &id, &existing, &err), 0);
        sound(c);
        submission_deinit(&s);
}

int main(void)
{
#define STORY(f) cmocka_unit_test_setup_teardown(f, bare_core, bare_core_free)
        const struct CMUnitTest tests[] = {
                STORY(test_a_limit_is_drawn_on_and_waited_for),
                STORY(test_a_limit_may_depend_on_the_place),
                STORY(test_what_names_no_limit_is_refused),
                STORY(test_a_user_has_so_many_at_a_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
