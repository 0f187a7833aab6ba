/* Advance reservations: jobs in their room and around it, their cost, and the replay of the log. */
#include "core/test_story.h"

#include "bank/bank.h"
#include "base/pack.h"
#include "core/lifecycle/reservations.h"

#define AD "[Cpus = 4; TotalCpus = 4; Memory = 1000; TotalMemory = 1000; Disk = 100000; Site = \"here\"]"
#define S  1000

static void tick(struct story *s, int64_t ms)
{
        story_wait(s, ms);
        core_renew(s->core, "n1");
        for (unsigned i = 0; i < 100 && core_tick(s->core) == 0; i++)
                ;
        core_match(s->core);
        assert_null(core_check(s->core));
}

static int try_reserve(struct story *s, const struct core_reserve *r, struct err *err)
{
        uint64_t id = 0;
        int e = core_reserve(s->core, r, false, &id, err);

        assert_null(core_check(s->core));
        return e ? -e : (int)id;
}
#define RESERVE(...) try_reserve(s, &(struct core_reserve){.who = STR("ann@local"), __VA_ARGS__}, NULL)

static void job_is(struct story *s, uint64_t request, uint32_t member, enum job_state state, int code)
{
        struct core_job j;

        assert_int_equal(core_job_get(s->core, request, member, &j), 0);
        assert_int_equal(j.state, state);
        assert_int_equal(j.hold_code, code);
}

static void begun(struct story *s, uint64_t request, uint32_t fence)
{
        struct set set = {0};
        struct core_attempts a = {request, fence, &set};

        set_add(&set, 0);
        core_accepted(s->core, "n1", &a);
        core_started(s->core, "n1", &a, s->now);
        set_deinit(&set);
}

static void over(struct story *s, uint64_t request, uint32_t fence)
{
        const struct core_result r = {
                .request = request, .fence = fence, .started_ms = s->now - S, .ended_ms = s->now};

        assert_true(core_result(s->core, "n1", &r));
        story_offer(s, "n1", AD, 10);
        assert_null(core_check(s->core));
}

static void test_others_run_around_it(void **state)
{
        struct story *s = *state;
        struct err why;

        story_offer(s, "n1", AD, 10);
        assert_int_equal(RESERVE(.cpus = 4, .start_ms = s->now + 1000 * S, .duration_ms = 100 * S), 1);
        SUBMIT(1, "AllowedExecuteDuration", "500");
        SUBMIT(1, "AllowedExecuteDuration", "2000");
        SUBMIT(1, "ReservationId", "1");
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\n");
        assert_int_equal(core_job_reserved(s->core, 3, 0, &why), 0);
        assert_string_equal(why.text, "It waits for the reservation 1, which begins in 1000 s.");
        assert_int_equal(core_job_reserved(s->core, 2, 0, &why), CORE_UNKNOWN);
        begun(s, 1, 1);
        tick(s, 400 * S);
        over(s, 1, 1);
        FORGET(actions);
        tick(s, 599 * S);
        SAID(actions, "");
        tick(s, 1 * S);
        SAID(actions, "assign n1 q 3 0 f1\n");
        begun(s, 3, 1);
        tick(s, 10 * S);
        over(s, 3, 1);
        FORGET(actions);
        tick(s, 90 * S); /* the reservation is over, so the long job starts */
        assert_null(core_reserved(s->core, 1));
        SAID(actions, "assign n1 q 2 0 f1\n");
}

static void end_without_an_offer(struct story *s, uint32_t member)
{
        const struct core_result r = {
                .request = 1, .member = member, .fence = 1, .started_ms = s->now, .ended_ms = s->now};

        assert_true(core_result(s->core, "n1", &r));
        core_match(s->core);
        assert_null(core_check(s->core));
}

static void begun_member(struct story *s, uint32_t member)
{
        struct set set = {0};
        struct core_attempts a = {1, 1, &set};

        set_add(&set, member);
        core_accepted(s->core, "n1", &a);
        core_started(s->core, "n1", &a, s->now);
        set_deinit(&set);
}

/* An agent of short jobs offers more than is free, and does not offer again at each end. */
static void test_deliveries_ahead(void **state)
{
        struct story *s = *state;

        story_offer(s, "n1", AD, 10);
        RESERVE(.cpus = 1, .start_ms = s->now + 1000 * S, .duration_ms = 100 * S);
        SUBMIT(4, "RequestCpus", "4", "AllowedExecuteDuration", "60");
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\n");
        begun_member(s, 0);
        story_offer(s, "n1", AD, 10);
        core_match(s->core);
        SAID(actions, "assign n1 q 1 1 f1\n");
        story_offer(s, "n1", "[Cpus = 0; TotalCpus = 4; Memory = 0; TotalMemory = 1000; Disk = 100000]", 0);
        tick(s, 950 * S);
        end_without_an_offer(s, 0);
        begun_member(s, 1);
        end_without_an_offer(s, 1);
        story_offer(s, "n1", AD, 10);
        tick(s, 0);
        SAID(actions, ""); /* a job would run into it */
}

/* While resources are kept, the ends of attempts make the room for the next. */
static void test_ends_beside_kept_room(void **state)
{
        struct story *s = *state;

        story_offer(s, "n1", AD, 10);
        RESERVE(.cpus = 1, .duration_ms = 1000 * S);
        tick(s, 0);
        SUBMIT(2, "RequestCpus", "3");
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\n");
        begun_member(s, 0);
        story_offer(s, "n1", AD, 10);
        core_match(s->core);
        SAID(actions, ""); /* the kept processor is no room for a delivery ahead */
        end_without_an_offer(s, 0);
        SAID(actions, "assign n1 q 1 1 f1\n");
}

/* Part of a machine is reserved; the rest remains for all. */
static void test_a_part_of_a_place(void **state)
{
        struct story *s = *state;

        story_offer(s, "n1", AD, 10);
        assert_int_equal(RESERVE(.cpus = 3, .duration_ms = 1000 * S), 1);
        tick(s, 0);
        SUBMIT(3, "RequestCpus", "1");
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\n");
        SUBMIT(1, "RequestCpus", "2", "ReservationId", "1");
        core_match(s->core);
        SAID(actions, "assign n1 q 2 0 f1\n");
        SUBMIT(1, "RequestCpus", "2", "ReservationId", "1"); /* one reserved processor is left */
        core_match(s->core);
        SAID(actions, "");
        tick(s, 0);
}

static void test_jobs_that_outlive_it_are_held(void **state)
{
        struct story *s = *state;

        story_offer(s, "n1", AD, 10);
        RESERVE(.cpus = 1, .duration_ms = 100 * S);
        tick(s, 0);
        assert_int_equal(SUBMIT(1, "ReservationId", "1", "AllowedExecuteDuration", "300"), 1);
        tick(s, 10 * S);
        SAID(actions, ""); /* the job would run longer than the reservation */
        tick(s, 90 * S);
        job_is(s, 1, 0, JOB_HELD, CORE_HOLD_RESERVATION);
        story_replays(s);
}

static void test_it_comes_again(void **state)
{
        struct story *s = *state;
        const struct advance *a;

        story_offer(s, "n1", AD, 10);
        RESERVE(.cpus = 4, .duration_ms = 100 * S, .every_ms = 1000 * S, .until_ms = s->now + 5000 * S);
        SUBMIT(1, "ReservationId", "1");
        tick(s, 0);
        SAID(actions, "assign n1 q 1 0 f1\n");
        begun(s, 1, 1);
        tick(s, 50 * S);
        a = core_reserved(s->core, 1);
        assert_true(a->begun);
        over(s, 1, 1);
        assert_int_equal(a->used_ms, 50 * S);
        tick(s, 50 * S);
        assert_false(a->begun);
        assert_int_equal(a->start_ms, s->now + 900 * S);
        story_replays(s);
        tick(s, 3500 * S); /* after an absence the next occurrence counts, not the three that have passed */
        assert_int_equal(a->start_ms, s->now + 400 * S);
        assert_false(a->begun);
        tick(s, 400 * S);
        assert_true(a->begun);
        tick(s, 100 * S);
        assert_non_null(core_reserved(s->core, 1));
        tick(s, 1000 * S);
        assert_null(core_reserved(s->core, 1));
        story_replays(s);
}

static void test_what_cannot_be_reserved(void **state)
{
        struct story *s = *state;
        const struct str places[] = {STR("n1/other")};

        assert_int_equal(RESERVE(.cpus = 1, .duration_ms = 100 * S), -CORE_INVALID); /* there is no queue */
        story_offer(s, "n1", AD, 10);
        story_offer(s, "n2", "[Cpus = 9; Memory = 1000]", 10); /* the ad does not give its totals */
        assert_int_equal(RESERVE(.cpus = 5, .duration_ms = 100 * S), -CORE_INVALID);
        assert_int_equal(RESERVE(.cpus = 1, .nodes = 2, .duration_ms = 100 * S), -CORE_INVALID);
        assert_int_equal(RESERVE(.cpus = 1, .duration_ms = 0), -CORE_INVALID);
        assert_int_equal(RESERVE(.cpus = 1, .duration_ms = 100 * S, .start_ms = s->now - 200 * S),
                         -CORE_INVALID);
        assert_int_equal(RESERVE(.cpus = 1, .duration_ms = 100 * S, .every_ms = 50 * S), -CORE_INVALID);
        assert_int_equal(RESERVE(.cpus = 1, .duration_ms = 100 * S, .places = places, .place_count = 1),
                         -CORE_INVALID);
        assert_int_equal(RESERVE(.cpus = 3, .start_ms = s->now + 500 * S, .duration_ms = 100 * S), 1);
        assert_int_equal(RESERVE(.cpus = 2, .start_ms = s->now + 550 * S, .duration_ms = 100 * S),
                         -CORE_INVALID);
        assert_int_equal(RESERVE(.cpus = 2, .start_ms = s->now + 450 * S, .duration_ms = 100 * S),
                         -CORE_INVALID);
        assert_int_equal(
                RESERVE(.cpus = 2, .start_ms = s->now + 100 * S, .duration_ms = 10 * S, .every_ms = 50 * S),
                -CORE_INVALID);
        assert_int_equal(RESERVE(.cpus = 2, .start_ms = s->now + 600 * S, .duration_ms = 100 * S), 2);
        assert_int_equal(RESERVE(.cpus = 1, .start_ms = s->now + 450 * S, .duration_ms = 400 * S), 3);
        assert_int_equal(core_reserve_end(s->core, 9, STR("x"), STR(""), NULL), CORE_UNKNOWN);
        assert_int_equal(core_reserve_end(s->core, 2, STR("x"), STR(""), NULL), 0);
        assert_null(core_reserved(s->core, 2));
        story_replays(s);
}

static void test_who_may_use_it(void **state)
{
        struct story *s = *state;
        const struct str ann = STR("ann@local");
        struct err err = {""};

        story_offer(s, "n1", AD, 10);
        assert_int_equal(try_reserve(s,
                                     &(struct core_reserve){.who = STR("eve@far"),
                                                            .users = STR("bob@local, *@near"),
                                                            .groups = STR("physics"),
                                                            .cpus = 1,
                                                            .duration_ms = 100 * S},
                                     NULL),
                         1);
        assert_int_equal(SUBMIT(1, "ReservationId", "7"), -CORE_INVALID);
        assert_int_equal(SUBMIT(1, "ReservationId", "\"x\""), -CORE_INVALID);
        assert_int_equal(SUBMIT(1, "ReservationId", "$(Process) + 1"), -CORE_INVALID);
        assert_int_equal(SUBMIT(1, "ReservationId", "1", "AcctGroup", "\"physicsts\""), -CORE_INVALID);
        assert_int_equal(story_submit(s, 1, (const char *const[]){"ReservationId", "1", NULL}, &err),
                         -CORE_INVALID);
        assert_string_equal(err.text, "ann@local may not use the reservation 1 of eve@far");
        /* If neither settings nor bank list a group's users, naming the group proves nothing. */
        assert_int_equal(SUBMIT(1, "ReservationId", "1", "AcctGroup", "\"physics.cms\""), -CORE_INVALID);
        assert_int_equal(core_account_set(s->core, STR("physics"), 1, &ann, 1, NULL), 0);
        assert_int_equal(core_account_set(s->core, STR("physics.cms"), 1, &ann, 1, NULL), 0);
        assert_int_equal(SUBMIT(1, "ReservationId", "1", "AcctGroup", "\"physics.cms\""), 1);
        assert_true(advance_admits(core_reserved(s->core, 1), STR("eve@far"), STR("")));
        assert_true(advance_admits(core_reserved(s->core, 1), STR("x@near"), STR("")));
        assert_false(advance_admits(core_reserved(s->core, 1), STR("x@nearer"), STR("")));
}

static void test_maintenance(void **state)
{
        struct story *s = *state;

        story_offer(s, "n1", AD, 10);
        SUBMIT(1, "RequestCpus", "1");
        core_match(s->core);
        begun(s, 1, 1);
        assert_int_equal(RESERVE(.maintenance = true, .evict = true, .start_ms = s->now + 100 * S,
                                 .duration_ms = 100 * S),
                         1);
        assert_int_equal(SUBMIT(1, "ReservationId", "1"), -CORE_INVALID); /* maintenance has no jobs */
        SUBMIT(1, "AllowedExecuteDuration", "200");
        FORGET(actions);
        tick(s, 99 * S);
        SAID(actions, "");
        tick(s, 1 * S);
        SAID(actions, "vacate n1 1 0 f1\n");
        tick(s, 50 * S);
        SAID(actions, "");
        tick(s, 50 * S);
        SAID(actions, "assign n1 q 2 0 f1\n");
}

static void set_bank(struct core *c)
{
        const struct core_bank_rate rate = {.charge = STR("Cpus * WallSeconds")};
        const struct core_bank settings = {.charge_reserved = true, .rates = &rate, .rate_count = 1};

        assert_int_equal(core_bank_set(c, &settings, NULL), 0);
}

static void tell(struct story *s, const struct bank_order *o)
{
        uint64_t id;

        assert_int_equal(core_bank_order(s->core, o, &id, NULL), 0);
}

/* The whole room is paid for, and jobs in it cost nothing more. */
static void test_money(void **state)
{
        struct story *s = *state;
        const struct bank_account *physics;

        set_bank(s->core);
        story_offer(s, "n1", AD, 10);
        tell(s, &(struct bank_order){.op = BANK_OPEN, .account = STR("physics")});
        tell(s, &(struct bank_order){.op = BANK_MEMBER,
                                     .account = STR("physics"),
                                     .user = STR("ann@local"),
                                     .role = BANK_ROLE_USER});
        tell(s, &(struct bank_order){.op = BANK_DEPOSIT, .account = STR("physics"), .amount = 500});
        physics = bank_account(core_bank(s->core), STR("physics"));
        assert_int_equal(RESERVE(.cpus = 4, .account = STR("physics"), .duration_ms = 200 * S),
                         -CORE_CONFLICT);
        assert_int_equal(RESERVE(.cpus = 2, .account = STR("physics"), .duration_ms = 200 * S), 1);
        assert_int_equal(physics->held, 400);
        SUBMIT(1, "ReservationId", "1", "AcctGroup", "\"physics\"", "AllowedExecuteDuration", "150");
        tick(s, 0);
        SAID(actions, "assign n1 q 1 0 f1\n");
        assert_int_equal(physics->held, 400);
        begun(s, 1, 1);
        tick(s, 50 * S);
        over(s, 1, 1);
        assert_int_equal(physics->charged, 0);
        tick(s, 50 * S);
        assert_int_equal(core_reserve_end(s->core, 1, STR("ann@local"), STR("enough"), NULL), 0);
        assert_int_equal(physics->charged, 200); /* half of the time has passed */
        assert_int_equal(physics->held, 0);
        story_replays(s);
}

static void test_a_place_has_so_many(void **state)
{
        struct story *s = *state;

        story_offer(s, "n1", AD, 10);
        for (int i = 0; i < (int)ADVANCES_AT_QUEUE_MAX; i++)
                assert_int_equal(
                        RESERVE(.cpus = 4, .start_ms = s->now + (1 + i) * 1000 * S, .duration_ms = S), i + 1);
        assert_int_equal(RESERVE(.cpus = 4, .start_ms = s->now + 500 * S, .duration_ms = S), -CORE_INVALID);
}

static void test_damaged_orders(void **state)
{
        struct story *s = *state;
        const struct advance_room room = {STR("n1"), STR("q"), 1, 1};
        struct advance_order o = {.op = ADVANCE_MAKE,
                                  .id = 1,
                                  .owner = STR("a@b"),
                                  .start_ms = 5,
                                  .end_ms = 9,
                                  .rooms = &room,
                                  .room_count = 1};
        BUF_CLEANUP struct buf good = {0}, again = {0};

        advance_order_pack(&good, &o);
        for (size_t n = 0; n < good.n; n++)
                assert_int_not_equal(advance_apply(s->core, str_head(buf_view(&good), n), s->now, NULL), 0);
        assert_int_equal(advance_apply(s->core, buf_view(&good), s->now, NULL), 0);
        assert_int_not_equal(advance_apply(s->core, buf_view(&good), s->now, NULL), 0);
        o.op = ADVANCE_AGAIN;
        advance_order_pack(&again, &o);
        assert_int_not_equal(advance_apply(s->core, buf_view(&again), s->now, NULL), 0);
        o = (struct advance_order){.op = ADVANCE_USE, .id = 1, .amount = -1};
        buf_reset(&again);
        advance_order_pack(&again, &o);
        assert_int_not_equal(advance_apply(s->core, buf_view(&again), s->now, NULL), 0);
        assert_null(core_check(s->core));
}

#define YEAR   (366ll * 86400 * S)
#define SERIES 31

/* Reservations that come again every half a minute, one second each; until_ms 0: without an end. */
static void fill(struct story *s, int64_t until_ms)
{
        for (int i = 0; i < SERIES; i++)
                assert_true(RESERVE(.cpus = 1, .nodes = 2, .start_ms = s->now + (10 + i) * S,
                                    .duration_ms = S, .every_ms = SERIES * S, .until_ms = until_ms) > 0);
}

/* The last of millions of occurrences is computed. */
static void test_far_behind_the_end_of_a_series(void **state)
{
        struct story *s = *state;

        story_offer(s, "n1", AD, 10);
        story_offer(s, "n2", AD, 10);
        fill(s, s->now + 100 * S);
        assert_int_equal(RESERVE(.cpus = 4, .nodes = 2, .start_ms = s->now + 9 * YEAR, .duration_ms = YEAR,
                                 .every_ms = YEAR),
                         SERIES + 1);
        const struct advance *a = core_reserved(s->core, 1);
        int64_t start_ms = a->start_ms;
        assert_int_equal(advance_start_at(a, start_ms - 1), start_ms);
        assert_int_equal(advance_start_at(a, start_ms + SERIES * S), start_ms + SERIES * S);
        assert_int_equal(advance_start_at(a, a->until_ms), start_ms + 2 * SERIES * S);
        assert_int_equal(advance_start_at(a, start_ms + 9 * YEAR), start_ms + 2 * SERIES * S);
}

/* What one call may compare is bounded: the core has its turn. */
static void test_many_series_at_many_places(void **state)
{
        struct story *s = *state;
        struct err err = {""};
        struct core_reserve r = {.who = STR("ann@local"), .cpus = 1, .duration_ms = YEAR, .every_ms = YEAR};

        story_offer(s, "n1", AD, 10);
        story_offer(s, "n2", AD, 10);
        fill(s, 0);
        assert_true(try_reserve(s, &r, &err) < 0);
        assert_non_null(strstr(err.text, "too many reservations"));
        r.every_ms = 0;
        assert_true(try_reserve(s, &r, &err) > 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(test_others_run_around_it),
                STORY(test_deliveries_ahead),
                STORY(test_ends_beside_kept_room),
                STORY(test_a_part_of_a_place),
                STORY(test_jobs_that_outlive_it_are_held),
                STORY(test_it_comes_again),
                STORY(test_what_cannot_be_reserved),
                STORY(test_who_may_use_it),
                STORY(test_maintenance),
                STORY(test_money),
                STORY(test_damaged_orders),
                STORY(test_a_place_has_so_many),
                STORY(test_far_behind_the_end_of_a_series),
                STORY(test_many_series_at_many_places),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
