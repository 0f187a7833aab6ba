/* Meta jobs: which place is reserved, when it moves, what ends it, and parts that start together. */
#include "core/test_story.h"

#include "bank/bank.h"
#include "core/lifecycle/reservations.h"
#include "core/meta/meta.h"
#include "core/reservation/advance.h"

#define S        1000
#define AD(free) "[Cpus = " #free "; TotalCpus = 4; Memory = 1000; TotalMemory = 1000; Disk = 100000]"

/* Time passes in small steps, in which agents renew. */
static void pass(struct story *s, int64_t ms)
{
        do {
                int64_t step_ms = ms < 500 ? ms : 500;

                story_wait(s, step_ms);
                ms -= step_ms;
                core_renew(s->core, "a");
                core_renew(s->core, "b");
                for (unsigned i = 0; i < 1000 && core_tick(s->core) == 0; i++)
                        ;
                core_match(s->core);
                assert_null(core_check(s->core));
        } while (ms > 0);
}

static enum job_state state_of(struct story *s, uint64_t request, uint32_t member)
{
        struct core_job j;

        assert_int_equal(core_job_get(s->core, request, member, &j), 0);
        return j.state;
}

static struct core_meta meta_of(struct story *s, uint64_t request, uint32_t member)
{
        struct core_meta m;

        assert_int_equal(core_job_meta(s->core, request, member, &m), 0);
        return m;
}

static void starts(struct story *s, const char *agent, uint64_t request, uint32_t member, uint32_t fence)
{
        struct set set = {0};
        struct core_attempts a = {request, fence, &set};

        set_add(&set, member);
        core_accepted(s->core, agent, &a);
        core_match(s->core);
        core_started(s->core, agent, &a, s->now);
        set_deinit(&set);
}

static void ends(struct story *s, const char *agent, uint64_t request, uint32_t member, uint32_t fence)
{
        const struct core_result r = {.request = request,
                                      .member = member,
                                      .fence = fence,
                                      .started_ms = s->now - S,
                                      .ended_ms = s->now};

        assert_true(core_result(s->core, agent, &r));
        story_offer(s, agent, AD(4), 10);
}

/* Fills the place with a job of that length. */
static uint64_t fill(struct story *s, const char *agent, const char *seconds)
{
        MEM_CLEANUP char *where = NULL;
        struct buf text = {0};
        int id;

        buf_printf(&text, "TARGET.Machine == \"%s\"", agent);
        where = buf_take(&text);
        id = story_submit(s, 1,
                          (const char *const[]){"Requirements", where, "RequestCpus", "4",
                                                "AllowedExecuteDuration", seconds, NULL},
                          NULL);
        assert_true(id > 0);
        core_match(s->core);
        starts(s, agent, (uint64_t)id, 0, 1);
        FORGET(actions);
        return (uint64_t)id;
}

static void place(struct story *s, const char *agent)
{
        BUF_CLEANUP struct buf ad = {0};

        buf_printf(&ad,
                   "[Machine = \"%s\"; Cpus = 4; TotalCpus = 4; Memory = 1000; TotalMemory = 1000; "
                   "Disk = 100000]",
                   agent);
        story_offer(s, agent, buf_z(&ad), 10);
}

struct texts {
        struct buf all;
};

static void on_entry(void *arg, const struct core_log_entry *e)
{
        struct texts *t = arg;

        if (e->type != EVENT_ADVANCE)
                return;
        buf_str(&t->all, str_head(str_of(e->text), 20));
        buf_char(&t->all, '\n');
}

static void log_is(struct story *s, uint64_t request, uint32_t member, const char *text)
{
        struct texts t = {.all = {0}};

        assert_int_equal(core_job_log(s->core, request, member, on_entry, &t), 0);
        assert_string_equal(buf_z(&t.all), text);
        buf_deinit(&t.all);
}

static void test_a_free_place_at_once(void **state)
{
        struct story *s = *state;

        place(s, "a");
        assert_int_equal(SUBMIT(1, "Meta", "true"), 1);
        core_match(s->core);
        SAID(actions, ""); /* it is given to what is reserved for it only */
        pass(s, 0);
        pass(s, 0);
        SAID(actions, "assign a q 1 0 f1\n");
        assert_int_equal(state_of(s, 1, 0), JOB_MATCHED);
        assert_null(core_reserved_first(s->core));
        log_is(s, 1, 0, "reserved at q of a: \nauthorised at q of a\n");
        story_replays(s);
}

/* What no reservation can be made for neither ends the server nor is given room that it does not have. */
static void test_needs_and_lengths_without_sense(void **state)
{
        static const char *const needs[] = {"-1", "TARGET.Cpus > 0 ? -1 : 1", "9223372036854775807"};
        struct story *s = *state;

        place(s, "a");
        for (size_t i = 0; i < sizeof(needs) / sizeof(*needs); i++) {
                int cpus = story_submit(
                        s, 1, (const char *const[]){"Meta", "true", "RequestCpus", needs[i], NULL}, NULL);
                int memory = story_submit(
                        s, 1, (const char *const[]){"Meta", "true", "RequestMemory", needs[i], NULL}, NULL);

                pass(s, 5 * S);
                for (int k = 0; k < 2; k++)
                        if ((k ? memory : cpus) > 0)
                                assert_int_equal(state_of(s, (uint64_t)(k ? memory : cpus), 0), JOB_IDLE);
        }
        assert_null(core_reserved_first(s->core));
        FORGET(actions);
        int id = story_submit(
                s, 1, (const char *const[]){"Meta", "true", "AllowedExecuteDuration", "1000000000", NULL},
                NULL);
        assert_true(id > 0);
        pass(s, 5 * S); /* the place is free: it is reserved for a year at most, and begins */
        assert_int_equal(state_of(s, (uint64_t)id, 0), JOB_MATCHED);
        story_replays(s);
}

static void test_reserved_and_moved(void **state)
{
        struct story *s = *state;
        struct core_meta m;

        place(s, "a");
        fill(s, "a", "1000");
        SUBMIT(1, "Meta", "true", "RequestCpus", "4", "AllowedExecuteDuration", "100");
        pass(s, 1 * S);
        assert_int_equal(state_of(s, 2, 0), JOB_RESERVED);
        m = meta_of(s, 2, 0);
        assert_string_equal(m.agent, "a");
        assert_in_range(m.start_ms, s->now + 900 * S, s->now + 1040 * S);
        assert_int_equal(m.moves, 0);
        /* Others do not run into what is reserved, and run around it. */
        pass(s, 60 * S);
        assert_int_equal(meta_of(s, 2, 0).id, m.id);
        place(s, "b");
        pass(s, 3 * S);
        SAID(actions, "assign b q 2 0 f1\n");
        log_is(s, 2, 0, "reserved at q of a: \nmoved at q of b: roo\nauthorised at q of b\n");
        assert_null(core_reserved_first(s->core));
}

/* Beside a run of thirty years a wait of a quarter of an hour is little, but a free place ends it. */
static void test_a_long_job_moves_to_a_free_place(void **state)
{
        struct story *s = *state;

        place(s, "a");
        fill(s, "a", "1000");
        SUBMIT(1, "Meta", "true", "RequestCpus", "4", "ExpectedRunTime", "1000000000");
        pass(s, 60 * S);
        assert_string_equal(meta_of(s, 2, 0).agent, "a");
        place(s, "b");
        pass(s, 3 * S);
        SAID(actions, "assign b q 2 0 f1\n");
}

/* A job that another place would have a little earlier stays where it is; each move makes the next one rarer.
 */
static void test_it_does_not_flap(void **state)
{
        struct story *s = *state;
        uint64_t id;

        place(s, "a");
        place(s, "b");
        fill(s, "a", "1000");
        fill(s, "b", "1030");
        SUBMIT(1, "Meta", "true", "RequestCpus", "4", "AllowedExecuteDuration", "100");
        pass(s, 1 * S);
        assert_string_equal(meta_of(s, 3, 0).agent, "a");
        id = meta_of(s, 3, 0).id;
        pass(s, 300 * S);
        assert_int_equal(meta_of(s, 3, 0).id, id);
}

static void test_reserved_room_is_kept(void **state)
{
        struct story *s = *state;
        uint64_t first;

        place(s, "a");
        first = fill(s, "a", "100");
        SUBMIT(1, "Meta", "true", "RequestCpus", "4", "AllowedExecuteDuration", "100");
        pass(s, 1 * S);
        SUBMIT(1, "RequestCpus", "1"); /* nobody knows how long it runs */
        ends(s, "a", first, 0, 1);
        pass(s, 3 * S);
        SAID(actions, "assign a q 2 0 f1\n"); /* the room came early, and is the meta job's */
}

static void test_what_ends_it(void **state)
{
        struct story *s = *state;

        place(s, "a");
        fill(s, "a", "1000");
        SUBMIT(4, "Meta", "true", "RequestCpus", "4", "AllowedExecuteDuration", "100");
        pass(s, 5 * S);
        for (uint32_t m = 0; m < 4; m++)
                assert_int_equal(state_of(s, 2, m), JOB_RESERVED);
        assert_true(meta_of(s, 2, 1).start_ms >= meta_of(s, 2, 0).end_ms); /* one after the other */
        story_wait(s, 0);
        {
                struct set one = {0};
                struct core_command cmd = {.action = CORE_ACT_HOLD, .request = 2, .members = &one};
                uint64_t n;

                set_add(&one, 1);
                assert_int_equal(core_act(s->core, &cmd, &n, NULL), 0);
                set_deinit(&one);
                set_add(&one, 2);
                cmd.action = CORE_ACT_REMOVE;
                assert_int_equal(core_act(s->core, &cmd, &n, NULL), 0);
                set_deinit(&one);
        }
        assert_null(core_check(s->core));
        assert_int_equal(core_job_meta(s->core, 2, 1, &(struct core_meta){0}), CORE_UNKNOWN);
        assert_int_equal(core_reserve_end(s->core, meta_of(s, 2, 0).id, STR("root"), STR("no"), NULL), 0);
        assert_int_equal(state_of(s, 2, 0), JOB_IDLE);
        log_is(s, 2, 0, "reserved at q of a: \nreleased at q of a: \n");
        pass(s, 5 * S);
        assert_int_equal(state_of(s, 2, 0), JOB_RESERVED);
}

static void bank_opens(struct story *s, int64_t amount)
{
        const struct core_bank_rate rates[] = {{.place = STR("a"), .charge = STR("WallSeconds * 10")},
                                               {.charge = STR("WallSeconds")}};
        struct bank_order open = {.op = BANK_OPEN, .account = STR("ann@local")},
                          deposit = {.op = BANK_DEPOSIT, .account = STR("ann@local"), .amount = amount};
        uint64_t id;

        assert_int_equal(core_bank_set(s->core,
                                       &(struct core_bank){.hold = true, .rates = rates, .rate_count = 2},
                                       NULL),
                         0);
        assert_int_equal(core_bank_order(s->core, &open, &id, NULL), 0);
        assert_int_equal(core_bank_order(s->core, &deposit, &id, NULL), 0);
}

/* `a` is free and dear, `b` is cheap and busy for as long as the job would run. */
static void test_time_or_cost(void **state)
{
        struct story *s = *state;

        bank_opens(s, 100000);
        place(s, "b");
        fill(s, "b", "1000");
        place(s, "a");
        SUBMIT(1, "Meta", "true", "MetaPrefer", "\"cost\"", "AllowedExecuteDuration", "1000", "RequestCpus",
               "4");
        SUBMIT(1, "Meta", "true", "MetaPrefer", "0.1", "AllowedExecuteDuration", "1000", "RequestCpus", "4");
        SUBMIT(1, "Meta", "true", "MetaPrefer", "0.95", "AllowedExecuteDuration", "1000", "RequestCpus", "4");
        pass(s, 3 * S);
        SAID(actions, "assign a q 4 0 f1\n");
        assert_string_equal(meta_of(s, 2, 0).agent, "b");
        assert_non_null(strstr(meta_of(s, 2, 0).why, "for 1000;"));
        assert_non_null(strstr(meta_of(s, 2, 0).why, "prefer = cost"));
        assert_string_equal(meta_of(s, 3, 0).agent, "b");
        assert_non_null(strstr(meta_of(s, 3, 0).why, "prefer = 0.1"));
}

static void test_an_account_that_cannot_pay(void **state)
{
        struct story *s = *state;
        struct core_job j;

        bank_opens(s, 500);
        place(s, "a");
        place(s, "b");
        SUBMIT(1, "Meta", "true", "AllowedExecuteDuration", "400");
        pass(s, 1 * S);
        SAID(actions, "assign b q 1 0 f1\n"); /* the only place that it can pay for */
        SUBMIT(1, "Meta", "true", "AllowedExecuteDuration", "1000");
        pass(s, 1 * S);
        assert_int_equal(core_job_get(s->core, 2, 0, &j), 0);
        assert_int_equal(j.state, JOB_HELD);
        assert_int_equal(j.hold_code, CORE_HOLD_BANK);
}

/* The place has room, and refuses the job: the room is not kept for long, and more and more rarely. */
static void test_a_place_that_does_not_take_it(void **state)
{
        struct story *s = *state;
        struct set one = {0};
        struct core_attempts a = {1, 1, &one};
        unsigned kept_s = 0;

        place(s, "a");
        SUBMIT(1, "Meta", "true");
        pass(s, 1 * S);
        SAID(actions, "assign a q 1 0 f1\n");
        set_add(&one, 0);
        core_refused(s->core, "a", &a, STR("no"), 0);
        set_deinit(&one);
        for (unsigned i = 0; i < 1000; i++, pass(s, 1 * S))
                kept_s += state_of(s, 1, 0) != JOB_IDLE;
        assert_in_range(kept_s, 30, 200);
        assert_non_null(strstr(meta_of(s, 1, 0).waits, "did not take it"));
        place(s, "a"); /* a new offer: it may take it again */
        pass(s, 2000 * S);
        SAID(actions, "assign a q 1 0 f2\n");
}

/* ---- parts */

static int submit_parts(struct story *s, const char *first, const char *second, struct err *err)
{
        struct submission sub = {.owner = STR("ann@local"), .at_ms = s->now};
        const char *const where[] = {first, second};
        static unsigned char next = 100;
        uint64_t id = 0;
        bool existing;
        int r;

        sub.uuid[0] = ++next;
        for (size_t i = 0; i < 2; i++) {
                struct submission_part *p = submission_add_part(&sub);

                submission_add_attribute(p, STR("Requirements"), str_of(where[i]), false);
                submission_add_attribute(p, STR("RequestCpus"), STR("4"), false);
                submission_add_attribute(p, STR("AllowedExecuteDuration"), STR("100"), false);
                submission_add_attribute(p, STR("CoAllocate"), STR("true"), false);
        }
        r = core_submit(s->core, &sub, false, &id, &existing, err);
        submission_deinit(&sub);
        return r ? -r : (int)id;
}
#define AT_A "TARGET.Machine == \"a\""
#define AT_B "TARGET.Machine == \"b\""

static void test_parts_start_together(void **state)
{
        struct story *s = *state;
        uint64_t first;
        int id;

        place(s, "a");
        place(s, "b");
        first = fill(s, "a", "500");
        id = submit_parts(s, AT_A, AT_B, NULL);
        assert_true(id > 0);
        pass(s, 1 * S);
        assert_int_equal(state_of(s, (uint64_t)id, 0), JOB_RESERVED);
        assert_int_equal(state_of(s, (uint64_t)id, 1), JOB_RESERVED);
        assert_string_equal(meta_of(s, (uint64_t)id, 1).agent, "b");
        assert_int_equal(meta_of(s, (uint64_t)id, 0).start_ms, meta_of(s, (uint64_t)id, 1).start_ms);
        assert_int_equal(meta_of(s, (uint64_t)id, 0).parts, 2);
        pass(s, 30 * S);
        SAID(actions, ""); /* `b` is free, and one part alone does not start there */
        ends(s, "a", first, 0, 1);
        place(s, "a");
        pass(s, 3 * S);
        SAID(actions, "assign a q 2 0 f1\nassign b q 2 1 f1\n");
        assert_null(core_reserved_first(s->core));
        /* One part is refused: the other is taken back, and both are reserved again. */
        {
                struct set set = {0};
                struct core_attempts a = {2, 1, &set};

                set_add(&set, 0);
                core_refused(s->core, "a", &a, STR("no"), 0);
                set_deinit(&set);
        }
        core_match(s->core);
        SAID(actions, "vacate b 2 1 f1\n");
        place(s, "a");
        place(s, "b");
        pass(s, 6 * S);
        SAID(actions, "assign a q 2 0 f2\nassign b q 2 1 f2\n");
}

/* Both parts go to one place, if it has room for both. */
static void test_parts_share_a_place(void **state)
{
        struct story *s = *state;
        struct err err = {""};
        int id;

        place(s, "a");
        id = submit_parts(s, AT_A, AT_A, &err); /* 4 processors each */
        assert_true(id > 0);
        pass(s, 3 * S);
        SAID(actions, "");
        assert_int_equal(state_of(s, (uint64_t)id, 0), JOB_IDLE);
        assert_string_equal(meta_of(s, (uint64_t)id, 0).waits, "no place has been found for it yet");
        story_offer(s, "a",
                    "[Machine = \"a\"; Cpus = 8; TotalCpus = 8; Memory = 1000; TotalMemory = 1000; Disk = "
                    "100000]",
                    10);
        pass(s, 3 * S);
        SAID(actions, "assign a q 1 0 f1\nassign a q 1 1 f1\n");
}

static void test_held_together(void **state)
{
        struct story *s = *state;
        struct set one = {0};
        struct core_command cmd = {.action = CORE_ACT_HOLD, .request = 2, .members = &one};
        uint64_t n;

        place(s, "a");
        place(s, "b");
        fill(s, "a", "500");
        assert_int_equal(submit_parts(s, AT_A, AT_B, NULL), 2);
        pass(s, 1 * S);
        set_add(&one, 1);
        assert_int_equal(core_act(s->core, &cmd, &n, NULL), 0);
        set_deinit(&one);
        assert_int_equal(n, 2);
        assert_null(core_reserved_first(s->core));
        assert_null(core_check(s->core));
}

/* Orders for jobs that cannot be: of no job, cut off, twice, and for one that has its place. */
static void test_damaged_orders(void **state)
{
        struct story *s = *state;
        const struct advance_room rooms[] = {{STR("a"), STR("q"), 1, 1}, {STR("b"), STR("q"), 1, 1}};
        struct advance_order o = {.op = ADVANCE_MAKE,
                                  .id = 1,
                                  .owner = STR("ann@local"),
                                  .start_ms = 5,
                                  .end_ms = 9,
                                  .request = 7,
                                  .rooms = rooms,
                                  .room_count = 1};
        BUF_CLEANUP struct buf record = {0};
        struct err err;

        SUBMIT(2, "Meta", "true");
        for (unsigned i = 0; i < 4; i++) {
                o.request = i == 0 ? 7 : 1;
                o.member = i == 1 ? 2 : 0;
                o.room_count = i == 2 ? 2 : 1;
                buf_reset(&record);
                advance_order_pack(&record, &o);
                for (size_t n = 0; i == 3 && n < record.n; n++)
                        assert_int_not_equal(
                                advance_apply(s->core, str_head(buf_view(&record), n), s->now, &err), 0);
                assert_int_equal(advance_apply(s->core, buf_view(&record), s->now, &err) == 0, i == 3);
        }
        o.id = 2; /* the job is reserved already */
        buf_reset(&record);
        advance_order_pack(&record, &o);
        assert_int_not_equal(advance_apply(s->core, buf_view(&record), s->now, &err), 0);
        o = (struct advance_order){.op = ADVANCE_BEGIN, .id = 1};
        buf_reset(&record);
        advance_order_pack(&record, &o);
        assert_int_equal(advance_apply(s->core, buf_view(&record), s->now, &err), 0);
        assert_int_not_equal(advance_apply(s->core, buf_view(&record), s->now, &err), 0);
        assert_null(core_check(s->core));
}

static void test_refused(void **state)
{
        struct story *s = *state;
        static const char *const wrong[][4] = {
                {"Meta", "true", "MetaPrefer", "2"},         {"Meta", "true", "MetaPrefer", "\"both\""},
                {"Meta", "true", "GangSize", "1"},           {"Meta", "true", "ReservationId", "1"},
                {"Meta", "true", "DapType", "\"transfer\""}, {"Meta", "$(Process) == 1", "Rank", "1"},
        };

        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_true(SUBMIT(1, wrong[i][0], wrong[i][1], wrong[i][2], wrong[i][3]) < 0);
        assert_true(SUBMIT(33, "CoAllocate", "true") < 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(test_a_free_place_at_once),
                STORY(test_needs_and_lengths_without_sense),
                STORY(test_reserved_and_moved),
                STORY(test_a_long_job_moves_to_a_free_place),
                STORY(test_it_does_not_flap),
                STORY(test_reserved_room_is_kept),
                STORY(test_what_ends_it),
                STORY(test_time_or_cost),
                STORY(test_an_account_that_cannot_pay),
                STORY(test_a_place_that_does_not_take_it),
                STORY(test_parts_start_together),
                STORY(test_parts_share_a_place),
                STORY(test_held_together),
                STORY(test_damaged_orders),
                STORY(test_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
