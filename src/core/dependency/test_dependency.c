/* Dependencies: when jobs start, what happens to those that never can, what is refused, and that a restart
 * continues from the same state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/dependency/dependency.h"
#include "core/model/graph.h"
#include "core/test_help.h"

#define BIG "[ Cpus = 100; Memory = 100000; Disk = 100000; TotalCpus = 100; TotalMemory = 100000 ]"

static struct request *submit_jobs(struct core *c, uint64_t jobs, const char *depends_on)
{
        return submit(c, NULL, jobs,
                      depends_on ? (const char *const[]){"RequestCpus", "1", "DependsOn", depends_on, NULL}
                                 : (const char *const[]){"RequestCpus", "1", NULL});
}

/* A request of so many jobs with these edges. */
static int try_graph(struct core *c, uint64_t jobs, const char *edges, const char *failure, struct err *err)
{
        static unsigned char serial;
        struct submission s = {
                .owner = STR("ann@lab"), .at_ms = 1700000000000, .edges = str_of(edges), .uuid = {[1] = 1}};
        struct submission_part *p = submission_add_part(&s);
        bool existing;
        uint64_t id;
        int r;

        s.uuid[0] = ++serial;
        submission_add_attribute(p, STR("RequestCpus"), STR("1"), false);
        submission_add_attribute(p, STR("OnDependencyFailure"), str_of(failure), false);
        p->steps = jobs;
        r = core_submit(c, &s, false, &id, &existing, err);
        submission_deinit(&s);
        return r;
}

static struct request *submit_graph(struct core *c, uint64_t jobs, const char *edges, const char *failure)
{
        struct err err = {""};

        if (try_graph(c, jobs, edges, failure, &err) != 0)
                fail_msg("%s", err.text);
        return request_find(c, core_request_last(c));
}

static void end_with(struct core *c, uint64_t request, uint32_t member, int exit_code)
{
        const struct job *j = request_job(request_find(c, request), member);
        const struct core_result r = {.request = request,
                                      .member = member,
                                      .fence = j->fence,
                                      .started_ms = c->now_ms,
                                      .ended_ms = c->now_ms,
                                      .exit_code = exit_code};

        assert_true(core_result(c, "n", &r));
}

static void act(struct core *c, enum core_action action, uint64_t request)
{
        struct core_command cmd = {.action = action, .request = request};
        uint64_t n;

        assert_int_equal(core_act(c, &cmd, &n, NULL), 0);
}

static void expect(struct core *c, const char *assigned)
{
        expect_assigned(c, assigned);
        if (core_check(c))
                fail_msg("%s", core_check(c));
}

static void expect_held(struct core *c, uint64_t request, uint32_t member, const char *reason)
{
        struct core_job j;

        core_match(c);
        assert_int_equal(core_job_get(c, request, member, &j), 0);
        assert_int_equal(j.state, JOB_HELD);
        assert_int_equal(j.hold_code, CORE_HOLD_DEPENDENCY);
        assert_true(str_eqz(j.hold_reason, reason));
        assert_null(core_check(c));
}

static void test_a_request_waits_for_another(void **s)
{
        struct core *c = *s;
        struct core_counts n;

        submit_jobs(c, 2, NULL);
        submit_jobs(c, 3, "\"1\"");
        offer(c, "n", BIG);
        expect(c, "n/default 1 0-1\n");
        core_totals(c, &n);
        assert_int_equal(n.waiting, 3);
        end_with(c, 1, 0, 0);
        expect(c, "");
        end_with(c, 1, 1, 0);
        expect(c, "n/default 2 0-2\n");
}

static void test_it_is_held_when_that_fails_and_a_release_runs_it(void **s)
{
        struct core *c = *s;

        submit_jobs(c, 2, NULL);
        submit_jobs(c, 1, "\"1:ok\"");
        offer(c, "n", BIG);
        expect(c, "n/default 1 0-1\n");
        end_with(c, 1, 1, 3);
        expect_held(c, 2, 0, "depends on job 1.1, which did not succeed");
        act(c, CORE_ACT_RELEASE, 2);
        expect(c, "n/default 2 0\n");
}

/* What is left goes on only after a release: over several requests, and not while one of them may go on. A
 * chain that is too long to examine counts as one that goes on. */
static void test_all_that_is_left_waits_for_held_jobs(void **s)
{
        struct core *c = *s;
        const uint64_t all[] = {1, 2, 3}, *last = &all[2];
        uint64_t request = 0, many[1001];
        uint32_t member = 9;
        char on[16];

        submit_jobs(c, 2, NULL);
        submit_jobs(c, 3, "\"1\"");
        submit_jobs(c, 1, "\"2:any\"");
        assert_false(core_are_stuck(c, last, 1, &request, &member));
        act(c, CORE_ACT_HOLD, 1);
        assert_true(core_are_stuck(c, last, 1, &request, &member));
        assert_true(request == 1 && member == 0);
        assert_true(core_are_stuck(c, all, 3, &request, &member));
        act(c, CORE_ACT_RELEASE, 1);
        offer(c, "n", BIG);
        expect(c, "n/default 1 0-1\n");
        assert_false(core_are_stuck(c, all, 3, &request, &member));
        end_with(c, 1, 0, 0);
        act(c, CORE_ACT_HOLD, 2);
        assert_false(core_are_stuck(c, all, 3, &request, &member)); /* 1.1 runs */
        end_with(c, 1, 1, 0);
        core_match(c);
        assert_true(core_are_stuck(c, all, 3, &request, &member));
        assert_true(request == 2 && member == 0);
        act(c, CORE_ACT_REMOVE, 2);
        core_match(c);
        assert_false(core_are_stuck(c, all, 3, &request, &member)); /* 3.0 may run */
        act(c, CORE_ACT_REMOVE, 3);
        assert_false(core_are_stuck(c, all, 3, &request, &member)); /* nothing is left */
        submit_jobs(c, 1, NULL);
        act(c, CORE_ACT_HOLD, 4);
        for (unsigned i = 0; i < 1001; i++) {
                snprintf(on, sizeof(on), "\"%u\"", 4 + i);
                many[i] = test_submit(c, "ann@lab", 1, (const char *const[]){"DependsOn", on, NULL});
        }
        assert_true(core_are_stuck(c, many, 999, &request, &member));
        assert_false(core_are_stuck(c, many, 1001, &request, &member));
}

static void test_fail_any_and_each(void **s)
{
        struct core *c = *s;

        submit_jobs(c, 3, NULL);
        submit_jobs(c, 1, "\"1:fail\"");
        submit_jobs(c, 1, "\"1.0-1:any\"");
        submit_jobs(c, 3, "\"1:each\"");
        submit_jobs(c, 1, "\"1.0:fail\"");
        offer(c, "n", BIG);
        expect(c, "n/default 1 0-2\n");
        end_with(c, 1, 1, 0);
        expect(c, "n/default 4 1\n");
        end_with(c, 1, 0, 0);
        expect_held(c, 5, 0, "waits for request 1 to fail, but it succeeded");
        expect(c, "n/default 3 0\nn/default 4 0\n");
        end_with(c, 1, 2, 7);
        expect_held(c, 4, 2, "depends on job 1.2, which did not succeed");
        expect(c, "n/default 2 0\n");
}

static void test_removing_a_parent_fails_it_and_holding_it_does_not(void **s)
{
        struct core *c = *s;

        submit_jobs(c, 1, NULL);
        submit_jobs(c, 1, "\"1\"");
        submit_jobs(c, 1, "\"1:any\"");
        act(c, CORE_ACT_HOLD, 1);
        expect(c, "");
        assert_int_equal(request_state(request_find(c, 2), 0), JOB_IDLE);
        act(c, CORE_ACT_REMOVE, 1);
        expect_held(c, 2, 0, "depends on job 1.0, which did not succeed");
        offer(c, "n", BIG);
        expect(c, "n/default 3 0\n");
}

static void test_hold_and_release_do_not_forget_what_a_job_waits_for(void **s)
{
        struct core *c = *s;

        submit_jobs(c, 1, NULL);
        submit_jobs(c, 1, "\"1\"");
        offer(c, "n", BIG);
        expect(c, "n/default 1 0\n");
        act(c, CORE_ACT_HOLD, 2);
        act(c, CORE_ACT_RELEASE, 2);
        expect(c, "");
        act(c, CORE_ACT_HOLD, 2);
        end_with(c, 1, 0, 1);
        expect(c, ""); /* held by its owner, who has not asked for it to run all the same */
        act(c, CORE_ACT_RELEASE, 2);
        expect_held(c, 2, 0, "depends on job 1.0, which did not succeed");
        act(c, CORE_ACT_RELEASE, 2);
        expect(c, "n/default 2 0\n");
}

static void test_a_parent_that_has_ended_before(void **s)
{
        struct core *c = *s;

        submit_jobs(c, 1, NULL);
        offer(c, "n", BIG);
        expect(c, "n/default 1 0\n");
        end_with(c, 1, 0, 1);
        core_match(c);
        submit_jobs(c, 1, "\"1\"");
        submit_jobs(c, 1, "\"1:fail\"");
        expect(c, "n/default 3 0\n");
        expect_held(c, 2, 0, "depends on job 1.0, which did not succeed");
}

static void test_edges_inside_a_request(void **s)
{
        struct core *c = *s;
        struct request *r = submit_graph(c, 6, "0>1,2;1-2>3-4;3,4>5:any", "\"remove\"");

        offer(c, "n", BIG);
        expect(c, "n/default 1 0\n");
        end_with(c, 1, 0, 0);
        expect(c, "n/default 1 1-2\n");
        end_with(c, 1, 2, 0);
        expect(c, "");
        end_with(c, 1, 1, 9);
        expect(c, "n/default 1 5\n"); /* 3 and 4 are removed, and 5 waits for their end only */
        assert_int_equal(request_state(r, 3), JOB_REMOVED);
        assert_int_equal(request_state(r, 4), JOB_REMOVED);
}

static void test_a_chain_falls_at_once(void **s)
{
        enum { JOBS = 20000 };
        struct core *c = *s;
        BUF_CLEANUP struct buf edges = {0};
        struct request *r;

        for (unsigned i = 0; i + 1 < JOBS; i++)
                buf_printf(&edges, "%u>%u;", i, i + 1);
        edges.n--;
        r = submit_graph(c, JOBS, buf_z(&edges), "\"remove\"");
        offer(c, "n", BIG);
        expect(c, "n/default 1 0\n");
        end_with(c, 1, 0, 0);
        expect(c, "n/default 1 1\n");
        end_with(c, 1, 1, 1);
        core_match(c);
        assert_int_equal(set_count(&request_cold(r)->removed), JOBS - 2);
        assert_true(request_ended(r));
}

static void test_held_children_leave_the_rest_waiting(void **s)
{
        struct core *c = *s;
        struct request *r = submit_graph(c, 3, "0>1;1>2", "\"hold\"");

        offer(c, "n", BIG);
        expect(c, "n/default 1 0\n");
        end_with(c, 1, 0, 1);
        expect_held(c, 1, 1, "depends on job 1.0, which did not succeed");
        assert_int_equal(request_state(r, 2), JOB_IDLE);
        act(c, CORE_ACT_RELEASE, 1);
        expect(c, "n/default 1 1\n");
        end_with(c, 1, 1, 0);
        expect(c, "n/default 1 2\n");
}

static void refused(struct core *c, const char *depends_on, const char *why)
{
        struct err err = {""};

        assert_int_equal(try_submit(c, NULL, 2,
                                    (const char *const[]){"RequestCpus", "1", "DependsOn", depends_on, NULL},
                                    &err),
                         CORE_INVALID);
        if (!strstr(err.text, why))
                fail_msg("\"%s\" is not in: %s", why, err.text);
}

static void graph_refused(struct core *c, const char *edges, const char *why)
{
        struct err err = {""};

        assert_int_equal(try_graph(c, 4, edges, "\"hold\"", &err), CORE_INVALID);
        if (!strstr(err.text, why))
                fail_msg("\"%s\" is not in: %s", why, err.text);
}

static void test_what_is_refused(void **s)
{
        struct core *c = *s;

        submit_jobs(c, 3, NULL);
        assert_int_equal(test_submit(c, "bob@lab", 1, (const char *const[]){"RequestCpus", "1", NULL}), 2);
        refused(c, "\"9\"", "there is no request 9 of yours");
        refused(c, "\"3\"", "there is no request 3 of yours"); /* itself */
        refused(c, "\"2\"", "there is no request 2 of yours"); /* bob's */
        refused(c, "\"1.3\"", "has only the jobs 0 to 2");
        refused(c, "\"1:each\"", "the numbers must be the same");
        refused(c, "\"1:maybe\"", "ok, fail, any or each");
        refused(c, "\"x\"", "names no jobs to wait for");
        refused(c, "7", "must be a text");
        graph_refused(c, "0>1;1>2;2>0", "in a circle");
        graph_refused(c, "1>1", "in a circle");
        graph_refused(c, "0-1>1-2", "in a circle");
        graph_refused(c, "0>4", "has the jobs 0 to 3");
        graph_refused(c, "0>", "is not like");
        graph_refused(c, "0>1:each", "is not like");
        graph_refused(c, "0>1:any=4", "is not like");
        graph_refused(c, "0>1:ok=0", "is not like");
        graph_refused(c, "0>1:retry=", "is not like");
        graph_refused(c, "0>1:retry=256", "is not like");
        graph_refused(c, "0>1:retry;1>0:held", "in a circle");
        graph_refused(c, "3-1>0", "has the jobs 0 to 3");
}

/* "1.0,1.1,1.0,…" */
static void write_edges(struct buf *out, unsigned count)
{
        buf_reset(out);
        buf_char(out, '"');
        for (unsigned i = 0; i < count; i++)
                buf_printf(out, "%s1.%u", i ? "," : "", i % 2);
        buf_char(out, '"');
}

#define TOO_MANY "jobs wait for request 1 in more than 200000 ways"

/* Each end of a job of request 1 is examined in all edges: 200000 at most, of all waiting requests. */
static void test_edges_from_one_request_are_bounded(void **s)
{
        BUF_CLEANUP struct buf edges = {0};
        struct core *c = *s;

        submit_jobs(c, 2, NULL);
        write_edges(&edges, 200001);
        refused(c, buf_z(&edges), "in more than 200000 ways");
        write_edges(&edges, 150000);
        submit_jobs(c, 1, buf_z(&edges));
        refused(c, buf_z(&edges), TOO_MANY);
        act(c, CORE_ACT_HOLD, 2); /* its edges are counted again, once */
        act(c, CORE_ACT_RELEASE, 2);
        write_edges(&edges, 50000);
        submit_jobs(c, 1, buf_z(&edges));
        refused(c, "\"1\"", TOO_MANY);
        act(c, CORE_ACT_REMOVE, 2); /* and waits no more */
        core_match(c);
        submit_jobs(c, 1, "\"1\"");
}

static void test_a_graph_of_a_million_edges_is_bounded(void **s)
{
        BUF_CLEANUP struct buf edges = {0};
        struct core *c = *s;
        struct err err = {""};

        for (unsigned i = 0; i < 3000; i++)
                buf_printf(&edges, "%s0-9999,%u>%u", i ? ";" : "", 10000 + i, 20000 + i);
        for (unsigned i = 0; i < 10000; i++) /* each job is a node */
                buf_printf(&edges, ";%u>19999", i);
        assert_int_equal(try_graph(c, 30000, buf_z(&edges), "\"hold\"", &err), CORE_INVALID);
        assert_non_null(strstr(err.text, "more than 4194304 ways"));
        /* Half a million pairs in a line. */
        submit_graph(c, 2000, "0-999>1000-1999", "\"hold\"");
        assert_null(core_check(c));
}

static void on_dependency(void *arg, const struct core_dependency *d)
{
        buf_printf(arg, "%llu%s ", (unsigned long long)d->request, d->all ? "" : ".");
        if (!d->all)
                set_print(arg, &d->members);
        buf_printf(arg, " %s %llu+%llu/%llu%s%s;", dependency_when_name(d->when),
                   (unsigned long long)d->succeeded, (unsigned long long)d->failed,
                   (unsigned long long)d->total, d->satisfied ? " satisfied" : "", d->never ? " never" : "");
}

static void test_what_a_job_waits_for_is_told(void **s)
{
        struct core *c = *s;
        BUF_CLEANUP struct buf b = {0};

        submit_jobs(c, 3, NULL);
        submit_jobs(c, 2, "\"1.0-1, 1.2:any\"");
        offer(c, "n", BIG);
        expect(c, "n/default 1 0-2\n");
        end_with(c, 1, 0, 0);
        end_with(c, 1, 2, 4);
        core_match(c);
        core_job_dependencies(c, 2, 1, on_dependency, &b);
        assert_string_equal(buf_z(&b), "1. 0-1 ok 1+0/2;1. 2 any 0+1/1 satisfied;");
        buf_reset(&b);
        core_job_dependencies(c, 1, 1, on_dependency, &b);
        assert_string_equal(buf_z(&b), "");
}

static void test_a_record_keeps_edges_and_what_was_known(void **s)
{
        struct submission from = {.owner = STR("ann@lab"), .edges = STR("0>1:any")}, to;
        struct ended_parent *ended = submission_add_ended_parent(&from);
        BUF_CLEANUP struct buf b = {0};

        (void)s;
        submission_add_part(&from)->steps = 2;
        ended->request = 7;
        ended->jobs = 100;
        set_add_range(&ended->ok, 3, 90);
        submission_pack(&b, &from);
        assert_int_equal(submission_unpack(&to, buf_view(&b), NULL), 0);
        assert_true(str_eqz(to.edges, "0>1:any") && to.ended_parent_count == 1);
        assert_true(to.ended_parents[0].request == 7 && to.ended_parents[0].jobs == 100 &&
                    set_count(&to.ended_parents[0].ok) == 87);
        assert_true(submission_digest(&from) == submission_digest(&to));
        to.edges = STR("0>1");
        assert_true(submission_digest(&from) != submission_digest(&to));
        submission_deinit(&from);
        submission_deinit(&to);
        for (size_t n = 0; n < b.n; n++) /* cut anywhere it is damaged, and nothing leaks */
                assert_int_equal(submission_unpack(&to, str_make(b.p, n), NULL), -EBADMSG);
}

static void test_who_is_waited_for_is_not_forgotten(void **s)
{
        struct core *c = *s;

        submit_jobs(c, 1, NULL);
        submit_jobs(c, 1, NULL);
        submit_jobs(c, 1, "\"1\"");
        act(c, CORE_ACT_HOLD, 3);
        act(c, CORE_ACT_REMOVE, 1);
        act(c, CORE_ACT_REMOVE, 2);
        core_match(c);
        pass_time(c, 2 * 86400000ll);
        assert_non_null(request_find(c, 1));
        assert_null(request_find(c, 2));
        act(c, CORE_ACT_RELEASE, 3);
        expect_held(c, 3, 0, "depends on job 1.0, which did not succeed");
        pass_time(c, 1000);
        assert_null(request_find(c, 1));
}

/* ---- attempts of nodes, what goes along with others, and what ends a graph */

static void expect_state(const struct request *r, uint32_t member, enum job_state state)
{
        if (request_state(r, member) != state)
                fail_msg("%u is %s, not %s", member, job_state_name(request_state(r, member)),
                         job_state_name(state));
}

/* 0: attempt; 1, 2: attempts; 3: who waits for the last one, as it does for a node that may be tried thrice.
 */
#define TRIES "0>1:retry;1>2:retry;2>3"

static void test_attempts_that_are_not_needed_are_skipped(void **s)
{
        struct core *c = *s;
        struct request *r = submit_graph(c, 4, TRIES, "\"remove\"");

        offer(c, "n", BIG);
        expect(c, "n/default 1 0\n");
        end_with(c, 1, 0, 0);
        expect(c, "n/default 1 3\n");
        expect_state(r, 1, JOB_COMPLETED);
        expect_state(r, 2, JOB_COMPLETED);
        end_with(c, 1, 3, 0);
        core_match(c);
        assert_true(request_ended(r));
}

static void test_attempts_follow_failures(void **s)
{
        struct core *c = *s;
        struct request *r = submit_graph(c, 4, TRIES, "\"remove\"");

        offer(c, "n", BIG);
        expect(c, "n/default 1 0\n");
        end_with(c, 1, 0, 1);
        expect(c, "n/default 1 1\n");
        end_with(c, 1, 1, 1);
        expect(c, "n/default 1 2\n");
        end_with(c, 1, 2, 1);
        expect(c, "");
        expect_state(r, 3, JOB_REMOVED);
        assert_true(request_ended(r));
}

static void test_an_exit_code_after_which_nothing_is_tried_again(void **s)
{
        struct core *c = *s;
        struct request *r = submit_graph(c, 4, "0>1:retry=2;0>2:retry=2;1>2:retry=2;2>3", "\"remove\"");

        offer(c, "n", BIG);
        expect(c, "n/default 1 0\n");
        end_with(c, 1, 0, 7);
        expect(c, "n/default 1 1\n");
        end_with(c, 1, 1, 2);
        expect(c, "");
        expect_state(r, 2, JOB_REMOVED);
        expect_state(r, 3, JOB_REMOVED);
}

static void test_an_exit_code_that_skips(void **s)
{
        struct core *c = *s;
        struct request *r = submit_graph(c, 3, "0>1:ok=4;1>2", "\"remove\"");
        struct request *other = submit_graph(c, 3, "0>1:ok=4;1>2", "\"remove\"");

        offer(c, "n", BIG);
        expect(c, "n/default 1 0\nn/default 2 0\n");
        end_with(c, 1, 0, 4);
        expect(c, "n/default 1 2\n");
        expect_state(r, 1, JOB_COMPLETED);
        end_with(c, 2, 0, 5);
        expect(c, "");
        expect_state(other, 1, JOB_REMOVED);
        expect_state(other, 2, JOB_REMOVED);
}

static void test_what_waits_for_a_job_to_be_held_or_started(void **s)
{
        struct core *c = *s;
        struct request *r = submit_graph(c, 4, "0>1:held;0>2:start;0,2>3:stop", "\"remove\"");
        struct set one = {0};

        offer(c, "n", BIG);
        expect(c, "n/default 1 0,3\n");
        set_add(&one, 0);
        core_started(c, "n", &(struct core_attempts){1, request_job(r, 0)->fence, &one}, c->now_ms);
        set_deinit(&one);
        expect(c, "n/default 1 2\n");
        end_with(c, 1, 0, 0);
        expect(c, "");
        expect_state(r, 1, JOB_COMPLETED);
        expect_state(r, 3, JOB_MATCHED);
        end_with(c, 1, 2, 0);
        expect(c, "");
        expect_state(r, 3, JOB_VACATING);
        assert_int_equal(request_job(r, 3)->goal, JOB_COMPLETED);
        r = submit_graph(c, 2, "0>1:held", "\"remove\"");
        act(c, CORE_ACT_HOLD, 2);
        expect(c, "");
        act(c, CORE_ACT_RELEASE, 2);
        expect(c, "n/default 2 0-1\n");
}

/* Job 0 succeeds: 1 is skipped, and 2 can never start. That 1 has ended without being held would have 2
 * skipped, too, and 3 with it, while 2 is on its way to be held. */
static void test_one_end_of_a_job_is_found(void **s)
{
        struct core *c = *s;

        submit_graph(c, 4, "0>1:retry;0>2:fail;0,1>2:held;2>3:retry", "\"hold\"");
        offer(c, "n", BIG);
        expect(c, "n/default 1 0\n");
        end_with(c, 1, 0, 0);
        expect(c, "");
        assert_null(core_check(c));
        expect_held(c, 1, 2, "waits for request 1 to fail, but it succeeded");
        act(c, CORE_ACT_RELEASE, 1);
        expect(c, "n/default 1 2\n");
        end_with(c, 1, 2, 1);
        expect(c, "n/default 1 3\n"); /* it was not skipped */
}

static struct request *submit_aborting(struct core *c, const char *edges)
{
        struct submission s = {
                .owner = STR("ann@lab"), .at_ms = 1700000000000, .edges = str_of(edges), .uuid = {9, 9}};
        bool existing;
        uint64_t id;

        for (int i = 0; i < 2; i++) {
                struct submission_part *p = submission_add_part(&s);

                submission_add_attribute(p, STR("RequestCpus"), STR("1"), false);
                submission_add_attribute(p, STR("OnDependencyFailure"), STR("\"remove\""), false);
                submission_add_attribute(p, i ? STR("OnGraphAbort") : STR("AbortGraphOn"),
                                         i ? STR("\"stay\"") : STR("3"), false);
                p->steps = i ? 1 : 5;
        }
        assert_int_equal(core_submit(c, &s, false, &id, &existing, NULL), 0);
        submission_deinit(&s);
        return request_find(c, id);
}

static void test_an_exit_code_that_ends_the_graph(void **s)
{
        struct core *c = *s;
        struct request *r = submit_aborting(c, "0>1-2;1-2>3;0-4>5:any");

        offer(c, "n", BIG);
        expect(c, "n/default 1 0,4\n");
        end_with(c, 1, 4, 3);
        expect(c, "");
        expect_state(r, 0, JOB_VACATING);
        assert_int_equal(request_job(r, 0)->goal, JOB_REMOVED);
        for (uint32_t m = 1; m < 4; m++)
                expect_state(r, m, JOB_REMOVED);
        expect_state(r, 5, JOB_IDLE); /* the final node waits for what is stopped */
        end_with(c, 1, 0, 0);
        expect(c, "n/default 1 5\n");
}

static void test_exit_codes_are_in_snapshots(void **s)
{
        struct core *c = *s;
        struct request *r = submit_graph(c, 4, "0>1:retry=2;0>2:retry=2;1>2:retry=2;2>3", "\"remove\"");
        BUF_CLEANUP struct buf snapshot = {0};
        struct core_config config = {.shadow = true};
        struct core *shadow;
        struct err err = {""};

        offer(c, "n", BIG);
        expect(c, "n/default 1 0\n");
        end_with(c, 1, 0, 7);
        expect(c, "n/default 1 1\n");
        assert_int_equal(request_exit(r, 0), 7);
        core_snapshot(c, &snapshot);
        shadow = core_new(&config, &(struct core_world){0});
        assert_int_equal(core_restore(shadow, buf_view(&snapshot), &err), 0);
        assert_int_equal(request_exit(request_find(shadow, r->id), 0), 7);
        assert_int_equal(request_exit(request_find(shadow, r->id), 1), 0);
        core_free(shadow);
}

/* 0: a job; 1: what stands for it, and is told how it ended; 2: who waits for that. */
static struct request *submit_standing(struct core *c)
{
        static const char *const arguments[] = {
                "\"job\"", "\"$$([DAGReturn]) $$([DAGJobId]) $$([DAGStatus])\"", "\"next\""};
        struct submission s = {.owner = STR("ann@lab"), .at_ms = 1700000000000, .edges = STR("0>1:post;1>2")};
        static unsigned char serial;
        bool existing;
        uint64_t id;

        s.uuid[3] = ++serial;
        for (int i = 0; i < 3; i++) {
                struct submission_part *p = submission_add_part(&s);

                submission_add_attribute(p, STR("RequestCpus"), STR("1"), false);
                submission_add_attribute(p, STR("Args"), str_of(arguments[i]), false);
                submission_add_attribute(p, STR("OnDependencyFailure"), STR("\"remove\""), false);
                p->steps = 1;
        }
        assert_int_equal(core_submit(c, &s, false, &id, &existing, NULL), 0);
        submission_deinit(&s);
        return request_find(c, id);
}

static void test_a_job_stands_for_another(void **s)
{
        struct core *c = *s;
        struct core_request r;

        submit_standing(c);
        submit_standing(c);
        submit_jobs(c, 1, "\"1\"");
        offer(c, "n", BIG);
        expect(c, "n/default 1 0\nn/default 2 0\n");
        end_with(c, 1, 0, 3);
        expect(c, "n/default 1 1 [DAGReturn]=3 [DAGJobId]=1.0 [DAGStatus]=0\n");
        end_with(c, 1, 1, 0);
        expect(c, "n/default 1 2\n");
        end_with(c, 1, 2, 0);
        expect(c, "n/default 3 0\n"); /* the graph has succeeded */
        assert_int_equal(core_request_get(c, 1, &r), 0);
        assert_true(r.counts.failed == 1 && r.counts.handled == 1);
        end_with(c, 2, 0, 0);
        expect(c, "n/default 2 1 [DAGReturn]=0 [DAGJobId]=2.0 [DAGStatus]=0\n");
        end_with(c, 2, 1, 9);
        expect(c, "");
        assert_int_equal(core_request_get(c, 2, &r), 0);
        assert_true(r.counts.failed == 1 && r.counts.removed == 1 && r.counts.handled == 0);
}

/* Jobs of a category run at most as many at once as they say, each user's and each category's for itself. */
static void test_a_category_is_a_pool(void **s)
{
        struct core *c = *s;
        const char *const io[] = {"RequestCpus", "1", "JobCategory", "\"w-io\"", "JobCategoryMax", "2", NULL};
        const char *const cpu[] = {"RequestCpus",    "1", "JobCategory", "\"w-cpu\"",
                                   "JobCategoryMax", "1", NULL};

        submit(c, NULL, 4, io);
        submit(c, NULL, 2, cpu);
        assert_int_equal(test_submit(c, "bob@lab", 3, io), 3);
        offer(c, "n", BIG);
        expect(c, "n/default 1 0\nn/default 3 0\nn/default 1 1\nn/default 3 1\nn/default 2 0\n");
        end_with(c, 1, 0, 0);
        expect(c, "n/default 1 2\n");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, bare_core, bare_core_free)
        const struct CMUnitTest tests[] = {
                T(test_a_request_waits_for_another),
                T(test_it_is_held_when_that_fails_and_a_release_runs_it),
                T(test_all_that_is_left_waits_for_held_jobs),
                T(test_fail_any_and_each),
                T(test_removing_a_parent_fails_it_and_holding_it_does_not),
                T(test_hold_and_release_do_not_forget_what_a_job_waits_for),
                T(test_a_parent_that_has_ended_before),
                T(test_edges_inside_a_request),
                T(test_a_chain_falls_at_once),
                T(test_held_children_leave_the_rest_waiting),
                T(test_what_is_refused),
                T(test_a_graph_of_a_million_edges_is_bounded),
                T(test_what_a_job_waits_for_is_told),
                T(test_a_record_keeps_edges_and_what_was_known),
                T(test_who_is_waited_for_is_not_forgotten),
                T(test_attempts_that_are_not_needed_are_skipped),
                T(test_attempts_follow_failures),
                T(test_an_exit_code_after_which_nothing_is_tried_again),
                T(test_an_exit_code_that_skips),
                T(test_what_waits_for_a_job_to_be_held_or_started),
                T(test_one_end_of_a_job_is_found),
                T(test_an_exit_code_that_ends_the_graph),
                T(test_exit_codes_are_in_snapshots),
                T(test_a_category_is_a_pool),
                T(test_a_job_stands_for_another),
                T(test_edges_from_one_request_are_bounded),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
