/* Edits of waiting jobs: the members affected, matching afterwards, refusals, and the log and snapshots. */
#include "classad/print.h"
#include "core/accounts/limit.h"
#include "core/lifecycle/edit.h"
#include "core/model/core_parts.h"
#include "core/model/edit.h"
#include "core/model/submission.h"
#include "core/test_story.h"

/* Edits request 1; members NULL: all. pairs: attribute names and texts; a text with a macro is late. Returns
 * the number of changed members, or the error as a negative number. */
static int edit(struct story *s, const char *members, const char *const *pairs, struct err *err)
{
        BUF_CLEANUP struct buf changes = {0};
        struct core_command cmd = {.action = CORE_ACT_EDIT, .request = 1, .reason = STR("by ann")};
        struct set some = {0};
        uint64_t n = 0;
        int r;

        for (; *pairs; pairs += 2)
                changes_add(&changes, str_of(pairs[0]), strstr(pairs[1], "$(") != NULL, str_of(pairs[1]));
        cmd.changes = buf_view(&changes);
        if (members) {
                assert_int_equal(set_parse(&some, str_of(members), 1000000), 0);
                cmd.members = &some;
        }
        r = core_act(s->core, &cmd, &n, err);
        set_deinit(&some);
        assert_null(core_check(s->core));
        return r ? -r : (int)n;
}
#define EDIT(members, ...) edit(s, members, (const char *const[]){__VA_ARGS__, NULL}, NULL)
#define REFUSED(words, ...)                                                                                  \
        do {                                                                                                 \
                struct err why = {""};                                                                       \
                assert_int_equal(edit(s, NULL, (const char *const[]){__VA_ARGS__, NULL}, &why),              \
                                 -CORE_INVALID);                                                             \
                if (!strstr(why.text, words))                                                                \
                        fail_msg("\"%s\" is not in \"%s\"", words, why.text);                                \
                SAID(events, "");                                                                            \
        } while (0)

static void expect(struct story *s, uint32_t member, const char *name, const char *text)
{
        struct ad *ad = core_job_ad(s->core, 1, member);
        BUF_CLEANUP struct buf b = {0};
        const struct expr *x = ad_find(ad, symbols_find(core_symbols(s->core), str_of(name)));

        if (x)
                expr_print(&b, x, core_symbols(s->core));
        ad_free(ad);
        assert_string_equal(buf_z(&b), text);
}

static void test_some_members_are_changed(void **state)
{
        struct story *s = *state;

        SUBMIT(4, "RequestCpus", "8", "Arguments", "\"$(Process)\"");
        story_offer(s, "n1", "[ Cpus = 2; Memory = 9; Disk = 9 ]", 9);
        SAID(actions, "");
        FORGET(events);
        assert_int_equal(EDIT("1-2", "RequestCpus", "1", "Note", "\"n $(Process)\""), 2);
        core_match(s->core);
        SAID(events, "edited 1 1-2\nmatched 1 1-2\n");
        SAID(actions, "assign n1 q 1 1-2 f1\n");
        expect(s, 0, "RequestCpus", "8");
        expect(s, 1, "RequestCpus", "1");
        expect(s, 2, "Note", "\"n 2\"");
        expect(s, 2, "Arguments", "\"2\"");
        expect(s, 3, "Note", "");
}

/* Members with an attempt stay as their agent was told; agents get the edited part under its own number. */
static void test_only_those_that_wait(void **state)
{
        struct story *s = *state;
        struct core_job before, after;

        SUBMIT(4, "Cmd", "\"x\"");
        story_offer(s, "n1", "[ Cpus = 1; Memory = 9; Disk = 9 ]", 1);
        story_act(s, CORE_ACT_HOLD, "3", 0);
        FORGET(events);
        assert_int_equal(EDIT(NULL, "RequestMemory", "77"), 3);
        SAID(events, "edited 1 1-3\n");
        expect(s, 0, "RequestMemory", "");
        expect(s, 3, "RequestMemory", "77");
        assert_int_equal(core_job_get(s->core, 1, 0, &before), 0);
        assert_int_equal(core_job_get(s->core, 1, 1, &after), 0);
        assert_int_equal(before.part, 0);
        assert_int_not_equal(after.part, 0);
        assert_true(core_has_part(s->core, "n1", 1, before.part));
        assert_false(core_has_part(s->core, "n1", 1, after.part));
        assert_int_equal(EDIT("0", "RequestMemory", "77"), 0);
        SAID(events, "");
        assert_int_equal(story_act(s, CORE_ACT_RELEASE, "3", 0), 1);
        expect(s, 3, "RequestMemory", "77");
}

static void test_edits_add_up_and_may_take_away(void **state)
{
        struct story *s = *state;

        SUBMIT(3, "Colour", "\"red\"");
        EDIT("0-1", "A", "1");
        EDIT("1-2", "colour", "", "B", "$(Process)");
        expect(s, 0, "A", "1");
        expect(s, 0, "Colour", "\"red\"");
        expect(s, 1, "A", "1");
        expect(s, 1, "B", "1");
        expect(s, 1, "Colour", "");
        expect(s, 2, "A", "");
        expect(s, 2, "B", "2");
        EDIT(NULL, "A", "5", "COLOUR", "\"blue\"");
        for (uint32_t m = 0; m < 3; m++) {
                expect(s, m, "A", "5");
                expect(s, m, "Colour", "\"blue\"");
        }
}

/* Priorities belong to the job, not to its template; a change of both takes effect at once. */
static void test_priorities_stay(void **state)
{
        struct story *s = *state;

        SUBMIT(3, "RequestCpus", "1");
        story_act(s, CORE_ACT_PRIORITY, "1", 7);
        EDIT("0-1", "Note", "1");
        EDIT("1", "RequestCpus", "2");
        story_offer(s, "n1", "[ Cpus = 2; Memory = 9; Disk = 9 ]", 9);
        SAID(actions, "assign n1 q 1 1 f1\n");
}

static void test_what_cannot_be_changed_is_said(void **state)
{
        struct story *s = *state;

        SUBMIT(2, "Cmd", "\"x\"");
        FORGET(events);
        REFUSED("Owner cannot be changed", "owner", "\"bob\"");
        REFUSED("drover resubmit", "TransferInput", "\"/etc/passwd\"");
        REFUSED("DroverOutputs cannot", "DroverOutputs", "{}");
        REFUSED("drover prio", "JobPrio", "3");
        REFUSED("Requirements: ", "Requirements", "1 +");
        REFUSED("\"a b\" is not", "a b", "1");
        REFUSED("RequestMemory: ", "RequestMemory", "-5");
        REFUSED("nothing", NULL);
        assert_int_equal(EDIT("0", "Note", "1"), 1);
}

static void test_sets_are_left_alone(void **state)
{
        struct story *s = *state;

        SUBMIT(4, "GangSize", "2");
        FORGET(events);
        REFUSED("start together", "RequestMemory", "5");
}

/* A core made from the log, from a snapshot, or as a shadow has the same edits; history has the job as it
 * ran. */
static void test_log_and_snapshot_have_it(void **state)
{
        struct story *s = *state;
        struct buf a = {0}, b = {0};
        struct core *cores[3] = {story_core(s, false), story_core(s, true), story_core(s, false)};

        SUBMIT(200, "Arguments", "\"$(Process)\"");
        EDIT("3-150", "RequestMemory", "5");
        EDIT("100-199", "RequestCpus", "$(Process)");
        EDIT("100-110", "RequestMemory", "", "Note", "\"a\"");
        EDIT("105", "RequestMemory", "5");
        story_offer(s, "n1", "[ Cpus = 110; Memory = 5; Disk = 9 ]", 104);
        story_act(s, CORE_ACT_REMOVE, "120-130", 0);
        core_snapshot(s->core, &a);
        for (size_t i = 0; i < s->log_count; i++) {
                assert_int_equal(core_replay(cores[0], buf_view(&s->log[i]), NULL), 0);
                assert_int_equal(core_replay(cores[1], buf_view(&s->log[i]), NULL), 0);
        }
        assert_int_equal(core_restore(cores[2], buf_view(&a), NULL), 0);
        for (size_t i = 0; i < 3; i++) {
                buf_reset(&b);
                core_snapshot(cores[i], &b);
                assert_true(str_eq(buf_view(&a), buf_view(&b)));
                assert_null(core_check(cores[i]));
                for (uint32_t m = 0; i != 1 && m < 200; m += 5) {
                        struct ad *x = core_job_ad(s->core, 1, m), *y = core_job_ad(cores[i], 1, m);
                        BUF_CLEANUP struct buf one = {0}, other = {0};
                        struct core_job p, q;

                        ad_print(&one, x, CLASSAD_NEW, true);
                        ad_print(&other, y, CLASSAD_NEW, true);
                        assert_string_equal(buf_z(&one), buf_z(&other));
                        ad_free(x);
                        ad_free(y);
                        assert_int_equal(core_job_get(s->core, 1, m, &p), 0);
                        assert_int_equal(core_job_get(cores[i], 1, m, &q), 0);
                        assert_int_equal(p.part, q.part);
                }
                core_free(cores[i]);
        }
        for (size_t n = 0; n < a.n; n += 3) {
                struct core *cut = story_core(s, false);
                struct err err;

                assert_int_not_equal(core_restore(cut, str_make(a.p, n), &err), 0);
                core_free(cut);
        }
        buf_deinit(&a);
        buf_deinit(&b);
}

static void test_damaged_changes_are_refused(void **state)
{
        struct story *s = *state;
        struct event e = {.type = EVENT_EDITED, .request = 1, .values = STR("\7damage")};
        struct buf record = {0};
        struct err err;

        SUBMIT(2, "Cmd", "\"x\"");
        set_add(&e.members, 1);
        event_pack(&record, &e);
        assert_int_equal(core_replay(s->core, buf_view(&record), &err), CORE_DAMAGED);
        assert_non_null(strstr(err.text, "edited"));
        event_deinit(&e);
        buf_deinit(&record);
        assert_false(changes_ok(STR_NONE));
}

/* Members with different changes take memory each. */
static void test_ways_are_bounded(void **state)
{
        struct story *s = *state;
        char name[16], text[16], member[16];

        SUBMIT(1002, "Cmd", "\"x\"");
        for (int i = 0; i < 1001; i++) {
                struct err why = {""};

                s->log_count = 0;
                snprintf(member, sizeof(member), "%d", i);
                snprintf(text, sizeof(text), "%d", i);
                snprintf(name, sizeof(name), "N%d", i % 3);
                if (i < 1000)
                        assert_int_equal(edit(s, member, (const char *const[]){name, text, NULL}, &why), 1);
                else
                        assert_int_equal(edit(s, member, (const char *const[]){name, text, NULL}, &why),
                                         -CORE_INVALID);
        }
        s->log_count = 0;
        assert_int_equal(story_act(s, CORE_ACT_REMOVE, NULL, 0), 1002);
}

/* Edits, including the last one, take no more memory than the owner has left. */
static void test_memory_is_bounded(void **state)
{
        struct story *s = *state;
        char text[8200] = "\"";
        const struct limit *x;
        struct err why;

        memset(text + 1, 'a', sizeof(text) - 3);
        text[sizeof(text) - 2] = '"';
        SUBMIT(4, "Cmd", "\"x\"", "Large", text);
        x = limits_find(s->core->limits, STR("queued_kib/ann@local"));
        core_limit_set(s->core, STR("queued_kib/*"), x->used + 30);
        FORGET(events);
        assert_int_equal(EDIT("0", "Note", "1"), 1);
        assert_int_equal(EDIT("1", "Note", "1"), 1); /* equal members share a template */
        SAID(events, "edited 1 0\nedited 1 1\n");
        assert_int_equal(edit(s, "2", (const char *const[]){"Note", "2", NULL}, &why), -CORE_TOO_MANY);
        assert_non_null(strstr(why.text, "max_queued_bytes"));
        SAID(events, "");
        assert_true(x->used <= x->max);
        core_limit_set(s->core, STR("queued_kib/*"), x->used + 30);
        assert_int_equal(EDIT("2", "Note", "2"), 1);
}

/* An edit is made at once: its jobs' expressions together have a limit of steps. */
static void test_time_is_bounded(void **state)
{
        struct story *s = *state;
        struct submission all = {.owner = STR("ann@lab"), .at_ms = 1700000000000, .uuid = {9}};
        BUF_CLEANUP struct buf ones = {0};
        char number[400][4];
        bool existing;
        uint64_t id;

        buf_addz(&ones, "{ 1");
        for (unsigned i = 1; i < 5000; i++)
                buf_addz(&ones, ", 1");
        buf_addz(&ones, " }");
        for (unsigned i = 0; i < 400; i++) {
                struct submission_part *p = submission_add_part(&all);

                snprintf(number[i], sizeof(number[i]), "%u", i);
                submission_add_attribute(p, STR("Number"), str_of(number[i]), false);
                submission_add_attribute(p, STR("Ones"), buf_view(&ones), false);
                submission_add_attribute(p, STR("ExpectedRunTime"), STR("sum(MY.Ones)"), false);
                p->rows = p->steps = 1;
        }
        assert_int_equal(core_submit(s->core, &all, false, &id, &existing, NULL), 0);
        submission_deinit(&all);
        FORGET(events);
        REFUSED("take too long", "Note", "1");
        assert_int_equal(EDIT("0-99", "Note", "1"), 100);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(test_some_members_are_changed),
                STORY(test_only_those_that_wait),
                STORY(test_edits_add_up_and_may_take_away),
                STORY(test_priorities_stay),
                STORY(test_what_cannot_be_changed_is_said),
                STORY(test_sets_are_left_alone),
                STORY(test_log_and_snapshot_have_it),
                STORY(test_damaged_changes_are_refused),
                STORY(test_ways_are_bounded),
                STORY(test_memory_is_bounded),
                STORY(test_time_is_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
