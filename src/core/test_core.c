/* The core by its calls: what a user, an agent and a clock can do to it, one story a test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/core.h"

struct story {
        struct core *core;
        struct buf events;  /* "submitted 1\nmatched 1 0-3 f1\n..." */
        struct buf actions; /* "assign n1 default 1 0-3 f1\ncontrol n1 2 1 0 f1\n" */
        struct buf history; /* "1.0 completed 0\n" */
        struct buf record;  /* of request 1 */
        struct buf log[64];
        size_t log_count;
        int64_t now;
};

static void on_event(void *arg, const struct event *e)
{
        struct story *s = arg;

        buf_printf(&s->events, "%s %llu", event_name(e->type), (unsigned long long)e->request);
        if (set_count(&e->members)) {
                buf_char(&s->events, ' ');
                set_print(&s->events, &e->members);
        }
        if (e->type == EVENT_EXITED || e->type == EVENT_LOST || e->type == EVENT_VACATING)
                buf_printf(&s->events, " -> %s", job_state_name((enum job_state)e->next));
        buf_char(&s->events, '\n');
        assert_true(s->log_count < 64);
        event_pack(&s->log[s->log_count++], e);
}

static void on_history(void *arg, const struct past_job *f)
{
        struct story *s = arg;

        buf_printf(&s->history, "%llu.%u %s %d\n", (unsigned long long)f->request, f->member,
                   job_state_name(f->state), f->exit_code);
}

static void on_keep(void *arg, uint64_t request, struct str record)
{
        struct story *s = arg;

        if (request == 1) {
                buf_reset(&s->record);
                buf_str(&s->record, record);
        }
}

static void on_forget(void *arg, uint64_t request)
{
        struct story *s = arg;

        buf_printf(&s->actions, "forget %llu\n", (unsigned long long)request);
}

static void on_assign(void *arg, const struct core_assignment *a)
{
        struct story *s = arg;

        buf_printf(&s->actions, "assign %s %s %llu ", a->agent, a->queue, (unsigned long long)a->request);
        set_print(&s->actions, a->members);
        buf_printf(&s->actions, " f%u\n", a->fence);
}

static void on_control(void *arg, const char *agent, enum core_control what, uint64_t request, uint32_t fence,
                       const struct set *members)
{
        static const char *const names[] = {"remove", "hold", "vacate", "suspend", "resume"};
        struct story *s = arg;

        buf_printf(&s->actions, "%s %s %llu ", names[what], agent, (unsigned long long)request);
        set_print(&s->actions, members);
        buf_printf(&s->actions, " f%u\n", fence);
}

static int on_load(void *arg, uint64_t request, struct buf *ret, struct err *err)
{
        struct story *s = arg;

        (void)err;
        assert_int_equal(request, 1);
        buf_str(ret, buf_view(&s->record));
        return 0;
}

static struct core *make(struct story *s, bool shadow)
{
        struct core_world world = {s,         on_event,  on_history, on_keep,
                                   on_forget, on_assign, on_control, on_load};
        struct core_config config = {.lease_ms = 60000, .lease_margin_ms = 1000, .shadow = shadow};
        struct core *c = core_new(&config, &world);

        core_clock(c, s->now, s->now);
        return c;
}

static int setup(void **state)
{
        struct story *s = mem_new(struct story);

        s->now = 1700000000000;
        s->core = make(s, false);
        *state = s;
        return 0;
}

static int teardown(void **state)
{
        struct story *s = *state;

        const char *bad = core_check(s->core);

        if (bad)
                fail_msg("%s", bad);
        core_free(s->core);
        buf_deinit(&s->events);
        buf_deinit(&s->actions);
        buf_deinit(&s->history);
        buf_deinit(&s->record);
        for (size_t i = 0; i < s->log_count; i++)
                buf_deinit(&s->log[i]);
        free(s);
        return 0;
}

static void wait_ms(struct story *s, int64_t ms)
{
        s->now += ms;
        core_clock(s->core, s->now, s->now);
}

#define SAID(what, text)                                                                                     \
        do {                                                                                                 \
                assert_string_equal(buf_z(&s->what), text);                                                  \
                buf_reset(&s->what);                                                                         \
        } while (0)
#define FORGET(what) buf_reset(&s->what)

/* Attributes as name, text pairs up to NULL; a text with a macro is late. */
static int submit(struct story *s, uint64_t steps, const char *const *pairs, struct err *err)
{
        struct submission sub = {.owner = STR("ann@local"), .at_ms = s->now};
        struct submission_part *p = submission_add_part(&sub);
        static unsigned char next = 1;
        uint64_t id = 0;
        bool existing;
        int r;

        sub.uuid[0] = next++;
        p->steps = steps;
        for (; *pairs; pairs += 2)
                submission_add_attribute(p, str_of(pairs[0]), str_of(pairs[1]),
                                         strstr(pairs[1], "$(") != NULL);
        r = core_submit(s->core, &sub, false, &id, &existing, err);
        submission_deinit(&sub);
        return r ? -r : (int)id;
}
#define SUBMIT(steps, ...)                                                                                   \
        submit(s, steps, (const char *const[]){"Requirements", "true", __VA_ARGS__, NULL}, NULL)

static void offer(struct story *s, const char *agent, const char *ad, unsigned jobs)
{
        struct core_offer o = {.agent = agent, .queue = "q", .serial = 1, .ad = str_of(ad), .jobs_max = jobs};

        core_agent_connected(s->core, agent);
        assert_int_equal(core_offer(s->core, &o, NULL), 0);
        core_match(s->core);
}

static bool result(struct story *s, const char *agent, uint32_t member, uint32_t fence, int exit_code)
{
        struct core_result r = {.request = 1,
                                .member = member,
                                .fence = fence,
                                .exit_code = exit_code,
                                .started_ms = s->now - 10,
                                .ended_ms = s->now};

        return core_result(s->core, agent, &r);
}

static uint64_t act(struct story *s, enum core_action action, const char *members, int64_t value)
{
        struct core_command cmd = {.action = action, .request = 1, .reason = STR("so"), .value = value};
        struct set some = {0};
        uint64_t n = 0;

        if (members) {
                assert_int_equal(set_parse(&some, str_of(members), 1000000), 0);
                cmd.members = &some;
        }
        assert_int_equal(core_act(s->core, &cmd, &n, NULL), 0);
        set_deinit(&some);
        return n;
}

static void test_a_job_from_submit_to_history(void **state)
{
        struct story *s = *state;

        assert_int_equal(SUBMIT(3, "Cmd", "\"/bin/true\""), 1);
        core_match(s->core);
        SAID(events, "submitted 1\n");
        offer(s, "n1", "[ Cpus = 2; Memory = 100; Disk = 100 ]", 10);
        SAID(events, "matched 1 0-1\n");
        SAID(actions, "assign n1 q 1 0-1 f1\n");
        assert_true(result(s, "n1", 0, 1, 0));
        assert_true(result(s, "n1", 1, 1, 3));
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
        offer(s, "n1", "[ Cpus = 2; Memory = 100; Disk = 100 ]", 10);
        /* The agent repeats its offer before it has seen the assignment. */
        offer(s, "n1", "[ Cpus = 2; Memory = 100; Disk = 100 ]", 10);
        SAID(actions, "assign n1 q 1 0-1 f1\n");
}

static void test_requirements_are_asked_both_ways(void **state)
{
        struct story *s = *state;

        assert_int_equal(
                submit(s, 1, (const char *const[]){"Requirements", "TARGET.Colour == \"red\"", NULL}, NULL),
                1);
        offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1; Colour = \"blue\" ]", 1);
        offer(s, "n2",
              "[ Cpus = 1; Memory = 1; Disk = 1; Colour = \"red\"; Requirements = Owner == \"bob\" ]", 1);
        SAID(actions, "");
        offer(s, "n3",
              "[ Cpus = 1; Memory = 1; Disk = 1; Colour = \"RED\"; Requirements = Owner == \"ann\" ]", 1);
        SAID(actions, "assign n3 q 1 0 f1\n");
}

static void test_rank_chooses_the_place(void **state)
{
        struct story *s = *state;

        offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1; Speed = 1 ]", 1);
        offer(s, "n2", "[ Cpus = 1; Memory = 1; Disk = 1; Speed = 7 ]", 1);
        SUBMIT(1, "Rank", "TARGET.Speed");
        core_match(s->core);
        SAID(actions, "assign n2 q 1 0 f1\n");
}

static void test_priority_goes_first_and_may_change(void **state)
{
        struct story *s = *state;

        SUBMIT(3, "JobPrio", "0");
        SUBMIT(1, "JobPrio", "5");
        assert_int_equal(act(s, CORE_ACT_PRIORITY, "2", 9), 1);
        offer(s, "n1", "[ Cpus = 3; Memory = 1; Disk = 1 ]", 3);
        SAID(actions, "assign n1 q 1 2 f1\nassign n1 q 2 0 f1\nassign n1 q 1 0 f1\n");
}

static void test_a_job_that_fits_nowhere_blocks_nobody(void **state)
{
        struct story *s = *state;

        SUBMIT(1, "RequestCpus", "64", "JobPrio", "100");
        SUBMIT(2, "RequestCpus", "1");
        offer(s, "n1", "[ Cpus = 2; Memory = 1; Disk = 1 ]", 9);
        SAID(actions, "assign n1 q 2 0-1 f1\n");
}

static void test_an_old_fence_is_refused(void **state)
{
        struct story *s = *state;

        SUBMIT(1, "Cmd", "\"x\"");
        offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1 ]", 1);
        core_agent_away(s->core, "n1");
        wait_ms(s, 60999);
        core_tick(s->core);
        FORGET(events);
        wait_ms(s, 2);
        core_tick(s->core);
        SAID(events, "lost 1 0 -> idle\n");
        offer(s, "n2", "[ Cpus = 1; Memory = 1; Disk = 1 ]", 1);
        FORGET(events);
        assert_false(result(s, "n1", 0, 1, 0));
        assert_false(result(s, "n1", 0, 2, 0));
        SAID(events, "");
        assert_true(result(s, "n2", 0, 2, 0));
        assert_false(result(s, "n2", 0, 2, 0));
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
        offer(s, "n1", "[Cpus = 1; Memory = 100]", 1);
        wait_ms(s, 30000);
        core_tick(s->core);
        assert_false(is_idle(s));
        core_renew(s->core, "n1");
        core_agent_away(s->core, "n1");
        wait_ms(s, 20999);
        core_tick(s->core);
        assert_false(is_idle(s));
        wait_ms(s, 1);
        core_tick(s->core);
        assert_true(is_idle(s));
}

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
        offer(s, "n1", "[Cpus = 1; Memory = 100]", 1);
        offer(s, "n1", "[Cpus = 0; Memory = 100; Unreachable = \"no answer\"]", 0);
        assert_int_equal(core_job_get(s->core, 1, 0, &j), 0);
        assert_true(j.state == JOB_MATCHED && !j.away);
        assert_string_equal(j.unreachable, "no answer");
        core_why(s->core, 1, 1, on_verdict, &said);
        assert_string_equal(buf_z(&said), "8 no answer\n");
        offer(s, "n1", "[Cpus = 1; Memory = 100]", 1);
        assert_int_equal(core_job_get(s->core, 1, 0, &j), 0);
        assert_null(j.unreachable);
        core_agent_away(s->core, "n1");
        assert_int_equal(core_job_get(s->core, 1, 0, &j), 0);
        assert_true(j.away);
}

static void test_an_agent_that_comes_back_keeps_its_jobs(void **state)
{
        struct story *s = *state;
        struct set zero = {0}, both = {0};

        SUBMIT(2, "Cmd", "\"x\"");
        offer(s, "n1", "[ Cpus = 2; Memory = 1; Disk = 1 ]", 2);
        core_agent_away(s->core, "n1");
        wait_ms(s, 50000);
        set_add(&zero, 0);
        set_add_range(&both, 0, 2);
        struct core_attempts has[] = {{1, 1, &zero}};
        FORGET(events);
        core_agent_connected(s->core, "n1");
        core_inventory(s->core, "n1", has, 1, NULL, NULL);
        SAID(events, "lost 1 1 -> idle\n");
        wait_ms(s, 50000);
        core_tick(s->core);
        SAID(events, "");
        set_deinit(&zero);
        set_deinit(&both);
}

static void test_hold_and_remove_reach_a_running_job(void **state)
{
        struct story *s = *state;

        SUBMIT(3, "Cmd", "\"x\"");
        offer(s, "n1", "[ Cpus = 2; Memory = 1; Disk = 1 ]", 2);
        FORGET(events);
        FORGET(actions);
        assert_int_equal(act(s, CORE_ACT_HOLD, "0", 0), 1);
        assert_int_equal(act(s, CORE_ACT_REMOVE, "1-2", 0), 2);
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
        assert_int_equal(act(s, CORE_ACT_RELEASE, NULL, 0), 1);
        core_job_get(s->core, 1, 0, &j);
        assert_int_equal(j.state, JOB_IDLE);
}

static void test_exit_policies(void **state)
{
        struct story *s = *state;

        SUBMIT(3, "OnExitRemove", "ExitCode == 0 || NumJobCompletions > 1", "OnExitHold", "ExitCode == 7");
        offer(s, "n1", "[ Cpus = 3; Memory = 1; Disk = 1 ]", 3);
        FORGET(events);
        result(s, "n1", 0, 1, 0);
        result(s, "n1", 1, 1, 7);
        result(s, "n1", 2, 1, 1);
        SAID(events, "exited 1 0 -> completed\nexited 1 1 -> held\nexited 1 2 -> idle\n");
        offer(s, "n1", "[ Cpus = 3; Memory = 1; Disk = 1 ]", 3);
        FORGET(events);
        assert_true(result(s, "n1", 2, 2, 1));
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
        wait_ms(s, 20000);
        core_tick(s->core);
        SAID(events, "submitted 1\n");
        wait_ms(s, 20000);
        core_tick(s->core);
        SAID(events, "held 1 0-99\n");
        wait_ms(s, 300000);
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
        offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1 ]", 1);
        set_add(&zero, 0);
        core_started(s->core, "n1", &(struct core_attempts){1, 1, &zero}, s->now);
        wait_ms(s, 50000);
        assert_int_equal(act(s, CORE_ACT_SUSPEND, NULL, 0), 1);
        wait_ms(s, 50000);
        core_renew(s->core, "n1");
        assert_int_equal(act(s, CORE_ACT_RESUME, NULL, 0), 1);
        wait_ms(s, 45000);
        FORGET(events);
        core_renew(s->core, "n1");
        core_tick(s->core);
        SAID(events, "");
        wait_ms(s, 25000);
        core_tick(s->core);
        SAID(events, "vacating 1 0 -> removed\n");
        set_deinit(&zero);
}

static void test_late_attributes_split_classes_only_when_they_matter(void **state)
{
        struct story *s = *state;

        SUBMIT(4, "Arguments", "\"$(Process)\"", "RequestCpus", "$(Process) + 1");
        offer(s, "n1", "[ Cpus = 4; Memory = 1; Disk = 1 ]", 9);
        SAID(actions, "assign n1 q 1 0 f1\nassign n1 q 1 1 f1\n");
}

static void test_the_same_uuid_is_the_same_request(void **state)
{
        struct story *s = *state;
        struct submission sub = {.owner = STR("ann@local"), .uuid = {99}};
        struct submission_part *p = submission_add_part(&sub);
        uint64_t a, b;
        bool existing;

        p->steps = 7;
        submission_add_attribute(p, STR("Requirements"), STR("true"), false);
        assert_int_equal(core_submit(s->core, &sub, false, &a, &existing, NULL), 0);
        assert_false(existing);
        assert_int_equal(core_submit(s->core, &sub, false, &b, &existing, NULL), 0);
        assert_true(existing);
        assert_int_equal(a, b);
        sub.owner = STR("bob@local");
        assert_int_equal(core_submit(s->core, &sub, false, &b, &existing, NULL), CORE_FORBIDDEN);
        submission_deinit(&sub);
}

static void test_wrong_submits_name_the_attribute(void **state)
{
        struct story *s = *state;
        struct err err;

        assert_int_equal(submit(s, 1, (const char *const[]){"Requirements", "Memory >", NULL}, &err),
                         -CORE_INVALID);
        assert_non_null(strstr(err.text, "Requirements"));
        assert_int_equal(submit(s, 1, (const char *const[]){"Rank", "$(Process) +", NULL}, &err),
                         -CORE_INVALID);
        assert_non_null(strstr(err.text, "Rank"));
        assert_int_equal(submit(s, 0, (const char *const[]){"Rank", "1", NULL}, &err), -CORE_INVALID);
        assert_int_equal(submit(s, 20000000, (const char *const[]){"Rank", "1", NULL}, &err), -CORE_INVALID);
        assert_int_equal(submit(s, 1001, (const char *const[]){"RequestMemory", "$(Process)", NULL}, &err),
                         -CORE_INVALID);
        assert_non_null(strstr(err.text, "1000 ways"));
        assert_int_equal(core_request_last(s->core), 0);
        SAID(events, "");
        assert_int_equal(submit(s, 1000, (const char *const[]){"RequestMemory", "$(Process)", NULL}, &err),
                         1);
}

static void test_a_job_without_requirements_goes_where_there_is_room(void **state)
{
        struct story *s = *state;

        assert_int_equal(submit(s, 2, (const char *const[]){"Cmd", "\"x\"", NULL}, NULL), 1);
        offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1 ]", 9);
        SAID(actions, "assign n1 q 1 0 f1\n");
}

static void test_replay_and_snapshot_give_the_same(void **state)
{
        struct story *s = *state;
        struct buf a = {0}, b = {0}, c = {0};
        struct core *again, *shadow, *restored;

        SUBMIT(50, "Arguments", "\"$(Process)\"");
        offer(s, "n1", "[ Cpus = 20; Memory = 1; Disk = 1 ]", 30);
        result(s, "n1", 3, 1, 0);
        act(s, CORE_ACT_HOLD, "30-35", 0);
        act(s, CORE_ACT_REMOVE, "10-12,40", 0);
        act(s, CORE_ACT_PRIORITY, "45-49", 3);
        core_snapshot(s->core, &a);
        again = make(s, false);
        shadow = make(s, true);
        for (size_t i = 0; i < s->log_count; i++) {
                assert_int_equal(core_replay(again, buf_view(&s->log[i]), NULL), 0);
                assert_int_equal(core_replay(shadow, buf_view(&s->log[i]), NULL), 0);
        }
        core_snapshot(again, &b);
        assert_true(str_eq(buf_view(&a), buf_view(&b)));
        core_snapshot(shadow, &c);
        assert_true(str_eq(buf_view(&a), buf_view(&c)));
        restored = make(s, false);
        assert_int_equal(core_restore(restored, buf_view(&a), NULL), 0);
        buf_reset(&b);
        core_snapshot(restored, &b);
        assert_true(str_eq(buf_view(&a), buf_view(&b)));
        assert_null(core_check(restored));
        for (size_t n = 0; n < a.n; n++) { /* a snapshot that was cut is refused, wherever */
                struct core *cut = make(s, false);
                struct err err;

                assert_int_not_equal(core_restore(cut, str_make(a.p, n), &err), 0);
                core_free(cut);
        }
        core_free(again);
        core_free(shadow);
        core_free(restored);
        buf_deinit(&a);
        buf_deinit(&b);
        buf_deinit(&c);
}

static void test_an_impossible_record_is_named(void **state)
{
        struct story *s = *state;
        struct event e = {.type = EVENT_EXITED, .request = 1, .fence = 1, .next = JOB_COMPLETED};
        struct buf record = {0};
        struct err err;

        SUBMIT(2, "Cmd", "\"x\"");
        set_add(&e.members, 1);
        event_pack(&record, &e);
        assert_int_equal(core_replay(s->core, buf_view(&record), &err), CORE_DAMAGED);
        assert_non_null(strstr(err.text, "exited"));
        for (size_t n = 0; n < record.n; n++)
                assert_int_equal(core_replay(s->core, str_make(record.p, n), &err), CORE_DAMAGED);
        event_deinit(&e);
        buf_deinit(&record);
}

/* What it had used is told with it; records of before have no word of that. */
static void test_checkpoints_with_usage(void **state)
{
        struct event e = {.type = EVENT_CHECKPOINTED, .request = 1, .fence = 1, .values = STR("files")}, got;

        (void)state;
        set_add(&e.members, 1);
        for (int i = 0; i < 2; i++) {
                BUF_CLEANUP struct buf record = {0};
                event_pack(&record, &e);
                assert_int_equal(event_unpack(&got, buf_view(&record), NULL), 0);
                assert_int_equal(got.cpu_user_ms, e.cpu_user_ms);
                assert_int_equal(got.cpu_system_ms, e.cpu_system_ms);
                assert_true(str_eqz(got.values, "files"));
                event_deinit(&got);
                e.cpu_user_ms = 7000;
        }
        event_deinit(&e);
}

static void keep_why(void *arg, const struct core_why *w)
{
        buf_printf(arg, "%s %d %.*s = %.*s\n", w->agent, w->verdict, STR_ARG(w->clause), STR_ARG(w->value));
}

static void test_why(void **state)
{
        struct story *s = *state;
        struct buf out = {0};

        offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1; TotalCpus = 4 ]", 1);
        offer(s, "n2", "[ Cpus = 8; Memory = 1; Disk = 1; Colour = \"blue\" ]", 1);
        offer(s, "n3",
              "[ Cpus = 8; Memory = 1; Disk = 1; Colour = \"red\"; Requirements = TARGET.Owner == \"bob\" ]",
              1);
        submit(s, 1,
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

        submit(s, 1, (const char *const[]){NULL}, NULL);
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

        offer(s, "n1", "[ Cpus = 40; TotalCpus = 2; Memory = 4000; TotalMemory = 100; Disk = 9 ]", 40);
        submit(s, 1, (const char *const[]){"Requirements", "TARGET.Cpus >= 8", "RequestCpus", "1", NULL},
               NULL);
        submit(s, 1, (const char *const[]){"Requirements", "TARGET.Memory > 100", "RequestCpus", "1", NULL},
               NULL);
        submit(s, 10, (const char *const[]){"Requirements", "TARGET.Cpus >= 2", "RequestCpus", "1", NULL},
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
        struct core_changes *changes = core_changes_new();
        struct core_walk *walk;
        struct story *s = *state;
        struct buf out = {0};

        offer(s, "n1", "[ Cpus = 4; Memory = 10; Disk = 1; Colour = \"red\" ]", 1);
        offer(s, "n2", "[ Cpus = 6; Memory = 10; Disk = 1; Colour = \"red\" ]", 1);
        offer(s, "n3", "[ Cpus = 8; Memory = 10; Disk = 1; Colour = \"blue\" ]", 1);
        offer(s, "n4", "[ Cpus = 2; Memory = 10; Disk = 1; Colour = \"blue\"; Requirements = TARGET.X is 1 ]",
              1);
        submit(s, 1,
               (const char *const[]){"Requirements", "TARGET.Cpus >= RequestCpus && TARGET.Colour == \"red\"",
                                     "RequestCpus", "8", NULL},
               NULL);
        core_match(s->core);
        walk = core_walk_new(s->core);
        assert_int_equal(core_changes_look(s->core, changes, walk, UINT32_MAX, 1, 0), 0);
        core_changes_tell(changes, keep_change, &out);
        core_changes_free(changes);
        core_walk_free(walk);
        assert_string_equal(buf_z(&out), "2 RequestCpus refused 3 alone 2 most 6\n"
                                         "0 TARGET.Colour == \"red\" refused 2 alone 1 most 0\n"
                                         "0 TARGET.Cpus >= RequestCpus refused 3 alone 0 most 0\n"
                                         "1 TARGET.X =?= 1 refused 1 alone 0 most 0\n");
        buf_deinit(&out);
}

static void test_finished_requests_are_forgotten(void **state)
{
        struct story *s = *state;
        struct core_request r;

        SUBMIT(1, "Cmd", "\"x\"");
        offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1 ]", 1);
        result(s, "n1", 0, 1, 0);
        core_tick(s->core);
        assert_int_equal(core_request_get(s->core, 1, &r), 0);
        wait_ms(s, 86400001);
        FORGET(actions);
        core_tick(s->core);
        SAID(actions, "forget 1\n");
        assert_int_equal(core_request_get(s->core, 1, &r), CORE_UNKNOWN);
}

int main(void)
{
#define STORY(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                STORY(test_a_job_from_submit_to_history),
                STORY(test_nothing_is_given_twice_before_the_agent_knows),
                STORY(test_requirements_are_asked_both_ways),
                STORY(test_rank_chooses_the_place),
                STORY(test_priority_goes_first_and_may_change),
                STORY(test_a_job_that_fits_nowhere_blocks_nobody),
                STORY(test_an_old_fence_is_refused),
                STORY(test_an_eager_job_does_not_wait_for_its_lease),
                STORY(test_an_unreachable_queue_keeps_its_jobs),
                STORY(test_an_agent_that_comes_back_keeps_its_jobs),
                STORY(test_hold_and_remove_reach_a_running_job),
                STORY(test_exit_policies),
                STORY(test_periodic_policies),
                STORY(test_a_limit_on_running_time_counts_no_suspension),
                STORY(test_late_attributes_split_classes_only_when_they_matter),
                STORY(test_the_same_uuid_is_the_same_request),
                STORY(test_wrong_submits_name_the_attribute),
                STORY(test_a_job_without_requirements_goes_where_there_is_room),
                STORY(test_replay_and_snapshot_give_the_same),
                STORY(test_an_impossible_record_is_named),
                STORY(test_checkpoints_with_usage),
                STORY(test_why),
                STORY(test_owners),
                STORY(test_ahead_is_no_machine),
                STORY(test_which_change_would_help),
                STORY(test_finished_requests_are_forgotten),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
