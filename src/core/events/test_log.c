/* The core is rebuilt from its log and from its snapshots; and forgets requests. */
#include "core/test_story.h"

#include "core/model/core_parts.h"

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
        assert_int_equal(core_submit(s->core, &sub, false, &b, &existing, NULL), 0);
        assert_false(existing);
        assert_int_not_equal(a, b);
        submission_deinit(&sub);
}

static void test_replay_and_snapshot_give_the_same(void **state)
{
        struct story *s = *state;
        struct buf a = {0}, b = {0}, c = {0};
        struct core *again, *shadow, *restored;

        SUBMIT(50, "Arguments", "\"$(Process)\"");
        story_offer(s, "n1", "[ Cpus = 20; Memory = 1; Disk = 1 ]", 30);
        story_result(s, "n1", 3, 1, 0);
        story_act(s, CORE_ACT_HOLD, "30-35", 0);
        story_act(s, CORE_ACT_REMOVE, "10-12,40", 0);
        story_act(s, CORE_ACT_PRIORITY, "45-49", 3);
        core_snapshot(s->core, &a);
        again = story_core(s, false);
        shadow = story_core(s, true);
        for (size_t i = 0; i < s->log_count; i++) {
                assert_int_equal(core_replay(again, buf_view(&s->log[i]), NULL), 0);
                assert_int_equal(core_replay(shadow, buf_view(&s->log[i]), NULL), 0);
        }
        core_snapshot(again, &b);
        assert_true(str_eq(buf_view(&a), buf_view(&b)));
        core_snapshot(shadow, &c);
        assert_true(str_eq(buf_view(&a), buf_view(&c)));
        restored = story_core(s, false);
        assert_int_equal(core_restore(restored, buf_view(&a), NULL), 0);
        buf_reset(&b);
        core_snapshot(restored, &b);
        assert_true(str_eq(buf_view(&a), buf_view(&b)));
        assert_null(core_check(restored));
        for (size_t n = 0; n < a.n; n++) { /* a snapshot cut at any place is refused */
                struct core *cut = story_core(s, false);
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

/* The usage is reported with a checkpoint; older records lack it. */
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

/* The log and a snapshot have the attributes that a program has set; attributes that must not be set, and
 * requests for other attempts, change nothing. */
static void test_what_a_program_sets(void **state)
{
        struct story *s = *state;
        const struct core_attempt own = {1, 0, 1}, old = {1, 0, 0};
        BUF_CLEANUP struct buf a = {0}, b = {0}, text = {0};
        struct core *again = story_core(s, false), *restored = story_core(s, false);
        struct err err;

        SUBMIT(1, "Cmd", "\"x\"", "WantIOProxy", "true");
        story_offer(s, "n1", "[ Cpus = 2; Memory = 1; Disk = 1 ]", 2);
        assert_int_equal(core_chirp_set(s->core, "n1", &own, STR("Step"), STR(" 7 "), &err), 0);
        assert_int_equal(core_chirp_set(s->core, "n1", &own, STR("Word"), STR("\"w\""), &err), 0);
        assert_int_equal(core_chirp_set(s->core, "n1", &own, STR("Step"), STR("8"), &err), 0);
        assert_int_equal(core_chirp_set(s->core, "n1", &own, STR("Word"), STR(""), &err), 0);
        assert_int_equal(core_chirp_remark(s->core, "n1", &own, STR("a\nb"), &err), 0);
        assert_int_equal(core_chirp_get(s->core, "n1", &own, STR("step"), &text, &err), 0);
        assert_true(str_eqz(buf_view(&text), "8"));
        assert_int_equal(core_chirp_set(s->core, "n2", &own, STR("X"), STR("1"), &err), CORE_UNKNOWN);
        assert_int_equal(core_chirp_set(s->core, "n1", &old, STR("X"), STR("1"), &err), CORE_UNKNOWN);
        assert_int_equal(core_chirp_set(s->core, "n1", &own, STR("Rank"), STR("1"), &err), CORE_INVALID);
        assert_int_equal(core_chirp_set(s->core, "n1", &own, STR("X"), STR("Y"), &err), CORE_INVALID);
        assert_int_equal(core_chirp_get(s->core, "n1", &own, STR("X"), &text, &err), CORE_INVALID);
        for (size_t i = 0; i < s->log_count; i++)
                assert_int_equal(core_replay(again, buf_view(&s->log[i]), NULL), 0);
        core_snapshot(s->core, &a);
        core_snapshot(again, &b);
        assert_true(str_eq(buf_view(&a), buf_view(&b)));
        assert_int_equal(core_restore(restored, buf_view(&a), NULL), 0);
        buf_reset(&b);
        core_snapshot(restored, &b);
        assert_true(str_eq(buf_view(&a), buf_view(&b)));
        core_free(again);
        core_free(restored);
}

static void test_finished_requests_are_forgotten(void **state)
{
        struct story *s = *state;
        struct core_request r;

        SUBMIT(1, "Cmd", "\"x\"");
        story_offer(s, "n1", "[ Cpus = 1; Memory = 1; Disk = 1 ]", 1);
        story_result(s, "n1", 0, 1, 0);
        core_tick(s->core);
        assert_int_equal(core_request_get(s->core, 1, &r), 0);
        story_wait(s, 86400001);
        FORGET(actions);
        core_tick(s->core);
        SAID(actions, "forget 1\n");
        assert_int_equal(core_request_get(s->core, 1, &r), CORE_UNKNOWN);
}

/* What an expression of the time or of chance says of a template is the same when the server is started
 * again: jobs are under way that began with it. */
static void test_templates_mean_the_same_later(void **state)
{
        struct story *s = *state;
        BUF_CLEANUP struct buf snapshot = {0};
        struct core *later;
        const struct job_template *t;

        SUBMIT(6, "GangSize", "ifThenElse(time() > 1700100000, 3, 2)", "ReserveDuration", "random(1000000)",
               "RequestCpus", "1");
        t = request_part_at(request_find(s->core, 1), 0)->job_template;
        assert_int_equal(t->gang.size, 2);
        core_snapshot(s->core, &snapshot);
        s->now += 200000000;
        later = story_core(s, false);
        later->eval.random = 77;
        assert_int_equal(core_restore(later, buf_view(&snapshot), NULL), 0);
        assert_int_equal(request_part_at(request_find(later, 1), 0)->job_template->gang.size, 2);
        assert_int_equal(request_part_at(request_find(later, 1), 0)->job_template->lot_ms, t->lot_ms);
        assert_int_equal(later->eval.random, 77);
        core_free(later);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(test_the_same_uuid_is_the_same_request),
                STORY(test_replay_and_snapshot_give_the_same),
                STORY(test_an_impossible_record_is_named),
                STORY(test_checkpoints_with_usage),
                STORY(test_finished_requests_are_forgotten),
                STORY(test_templates_mean_the_same_later),
                STORY(test_what_a_program_sets),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
