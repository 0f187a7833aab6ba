/* A wide job among narrow ones, on one machine in virtual time: when it starts, and what runs meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/test_help.h"

#define CPUS    8
#define STEP_MS 10000
#define WIDE    1u /* the number of the wide job's request */

struct run {
        uint64_t request;
        uint32_t member;
        int64_t end_ms;
        int64_t cpus;
};
struct machine {
        struct core *core;
        struct run runs[64];
        size_t count;
        unsigned random;
        unsigned narrow; /* jobs that were started */
        int64_t wide_ms; /* when the wide job started; 0: not yet */
        bool wide_is_over;
};

static unsigned below(struct machine *m, unsigned n)
{
        m->random ^= m->random << 13;
        m->random ^= m->random >> 17;
        m->random ^= m->random << 5;
        return (m->random >> 8) % n;
}

static int64_t allowed_s(const struct core *c, uint64_t request)
{
        return request_find(c, request)->parts[0].job_template->allowed_ms / 1000;
}

/* Every job runs as long as it may, or a part of that. */
static void take(struct machine *m, uint64_t request, uint32_t member)
{
        struct core *c = m->core;
        struct set one = {0};
        struct core_attempts a = {request, request_job(request_find(c, request), member)->fence, &one};
        int64_t may_s = allowed_s(c, request);

        assert_true(m->count < 64);
        set_add(&one, member);
        core_accepted(c, "n1", &a);
        core_started(c, "n1", &a, c->now_ms);
        set_deinit(&one);
        m->runs[m->count++] = (struct run){
                .request = request,
                .member = member,
                .end_ms = c->now_ms + 1000 * (below(m, 2) ? may_s : 1 + below(m, (unsigned)may_s)),
                .cpus = request_job(request_find(c, request), member)->cpus,
        };
        if (request == WIDE)
                m->wide_ms = c->now_ms;
        else
                m->narrow++;
}

static void take_all(struct machine *m)
{
        struct buf BUF_CLEANUP text = {0};
        struct str rest, line, word;

        buf_str(&text, buf_view(&bare_assigned));
        buf_reset(&bare_assigned);
        rest = buf_view(&text);
        while (rest.n && str_cut(&rest, '\n', &line)) {
                struct set members = {0};
                uint64_t request;

                if (line.n == 0)
                        continue;
                str_word(&line, &word);
                str_word(&line, &word);
                assert_int_equal(str_to_u64(word, &request), 0);
                assert_int_equal(set_parse(&members, str_trim(line), 1 << 20), 0);
                SET_FOREACH (&members, member)
                        take(m, request, (uint32_t)member);
                set_deinit(&members);
        }
}

static void step(struct machine *m)
{
        struct core *c = m->core;
        const char *bad;
        char ad[128];
        int64_t used = 0;

        pass_time(c, STEP_MS);
        core_renew(c, "n1");
        for (size_t i = 0; i < m->count;)
                if (m->runs[i].end_ms <= c->now_ms) {
                        m->wide_is_over |= m->runs[i].request == WIDE;
                        ended(c, "n1", m->runs[i].request, m->runs[i].member);
                        m->runs[i] = m->runs[--m->count];
                } else {
                        used += m->runs[i++].cpus;
                }
        snprintf(ad, sizeof(ad),
                 "[ Cpus = %d; Memory = 8000; Disk = 100000; TotalCpus = %d; TotalMemory = 8000 ]",
                 (int)(CPUS - used), CPUS);
        offer(c, "n1", ad);
        core_tick(c);
        core_match(c);
        bad = core_check(c);
        if (bad)
                fail_msg("%s", bad);
        take_all(m);
}

static void fill(struct machine *m)
{
        submit(m->core, NULL, 1,
               (const char *const[]){"RequestCpus", "8", "RequestMemory", "100", "AllowedExecuteDuration",
                                     "600", "JobPrio", "5", NULL});
        for (unsigned i = 0; i < 300; i++) {
                char allowed[16];

                snprintf(allowed, sizeof(allowed), "%u", (1 + below(m, 9)) * 120);
                submit(m->core, NULL, 4,
                       (const char *const[]){"RequestCpus", below(m, 3) ? "1" : "2", "RequestMemory", "100",
                                             "AllowedExecuteDuration", allowed, NULL});
        }
}

/* Narrow jobs fill the machine before the wide one is released. */
static void begin(struct machine *m, struct core *c, unsigned seed)
{
        struct core_command hold = {.action = CORE_ACT_HOLD, .request = WIDE};
        uint64_t n;

        *m = (struct machine){.core = c, .random = seed * 7919};
        fill(m);
        assert_int_equal(core_act(c, &hold, &n, NULL), 0);
        step(m);
        hold.action = CORE_ACT_RELEASE;
        assert_int_equal(core_act(c, &hold, &n, NULL), 0);
}

static void test_it_starts_when_it_was_said_at_the_latest(void **state)
{
        unsigned backfilled = 0, promised = 0;

        (void)state;
        for (unsigned seed = 1; seed <= 25; seed++) {
                struct core_reservation r = {.start_ms = 0};
                struct machine m;
                void *core;
                int64_t promised_ms = 0;
                unsigned before = 0;

                bare_core(&core);
                begin(&m, core, seed);
                for (unsigned i = 0; i < 1000 && !m.wide_ms; i++) {
                        step(&m);
                        if (promised_ms || core_job_reservation(core, WIDE, 0, &r) != 0)
                                continue;
                        assert_string_equal(r.agent, "n1");
                        assert_true(r.first);
                        promised_ms = r.start_ms;
                        before = m.narrow;
                }
                assert_true(m.wide_ms > 0); /* without one, now and then: all others may end at once */
                assert_true(!promised_ms || m.wide_ms <= promised_ms + STEP_MS);
                promised += promised_ms > 0;
                backfilled += promised_ms ? m.narrow - before : 0;
                for (unsigned i = 0; i < 100 && !m.wide_is_over; i++)
                        step(&m);
                step(&m);
                assert_true(m.wide_is_over && m.count > 0); /* and then it is theirs again */
                bare_core_free(&core);
        }
        assert_true(promised > 15);
        assert_true(backfilled > 50); /* those that end in time went on being started */
}

/* The more jobs an account is given the lower its standing becomes. A class that can never be given anything
 * does not block reservations. */
static void test_being_passed_over_is_seen_while_accounts_take_turns(void **state)
{
        static const char *const never[] = {"RequestCpus", "64", NULL};
        struct core_reservation r;
        struct machine m;
        unsigned steps = 0;

        begin(&m, *state, 7);
        assert_int_not_equal(test_submit(*state, "bob@lab", 1, never), 0);
        while (core_job_reservation(m.core, WIDE, 0, &r) != 0 && steps < 500) {
                step(&m);
                steps++;
        }
        assert_in_range(steps, 1, 200);
}

static void test_a_refusal_is_no_start(void **state)
{
        static const char *const wide[] = {"RequestCpus", "8", NULL};
        struct core *c = *state;
        struct set one = {0};
        struct core_attempts a = {1, 1, &one};
        struct job_class *k;

        submit(c, NULL, 1, wide);
        k = c->requests->first->buckets[0]->job_class;
        pass_time(c, 50000);
        offer(c, "n1", "[ Cpus = 8; Memory = 10; Disk = 10; TotalCpus = 8 ]");
        expect_assigned(c, "n1/default 1 0\n");
        set_add(&one, 0);
        core_refused(c, "n1", &a, STR("busy"), 0);
        set_deinit(&one);
        assert_int_equal(c->steady_ms - k->given_ms, 50000);
}

/* A queue that takes a job ahead of its turn has no room for it yet. */
static void test_reserved_room_is_used_when_it_is_there(void **state)
{
        static const char *const small[] = {"RequestCpus", "1", "AllowedExecuteDuration", "600", NULL};
        struct core_reservation r;
        struct core *c = *state;
        struct queue *q;

        c->config.reserve_after_ms = 1000;
        submit(c, NULL, 1, (const char *const[]){"RequestCpus", "2", "JobPrio", "5", NULL});
        submit(c, NULL, 50, small);
        offer(c, "n1", "[ Cpus = 1; Memory = 10; Disk = 10; TotalCpus = 2 ]");
        expect_assigned(c, "n1/default 2 0\n");
        started(c, "n1", 2, 0);
        pass_time(c, 1000);
        assert_int_equal(core_job_reservation(c, 1, 0, &r), 0);
        q = offer(c, "n1", "[ Cpus = 3; FreeCpus = 1; Memory = 10; Disk = 10; TotalCpus = 2 ]");
        expect_assigned(c, "");
        ended(c, "n1", 2, 0);
        assert_int_equal(q->attempt_count, 0);
        offer(c, "n1", "[ Cpus = 4; FreeCpus = 2; Memory = 10; Disk = 10; TotalCpus = 2 ]");
        core_match(c);
        assert_non_null(strstr(buf_z(&bare_assigned), "n1/default 1 0\n"));
}

static void test_without_a_reservation_it_starves(void **state)
{
        struct machine m;

        begin(&m, *state, 3);
        m.core->config.reserve_after_ms = -1;
        for (unsigned i = 0; i < 1000; i++)
                step(&m);
        assert_int_equal(m.wide_ms, 0);
}

/* What keeps the wide job from its room goes on for days, and so would the wait of what could run meanwhile.
 */
static void test_room_is_not_kept_idle_for_ever(void **state)
{
        static const char *const narrow[] = {
                "RequestCpus", "1", "RequestMemory", "100", "AllowedExecuteDuration", "8640000", NULL};
        struct core_reservation r = {.start_ms = 0};
        struct core *c = *state;
        int64_t kept_ms, idle_ms = 0;
        struct queue *q;

        c->config.reserve_after_ms = 1000;
        submit(c, NULL, 1,
               (const char *const[]){"RequestCpus", "8", "RequestMemory", "100", "JobPrio", "5", NULL});
        submit(c, NULL, 50, narrow);
        offer(c, "n1", "[ Cpus = 1; Memory = 8000; Disk = 100000; TotalCpus = 8; TotalMemory = 8000 ]");
        expect_assigned(c, "n1/default 2 0\n");
        started(c, "n1", 2, 0);
        pass_time(c, 1000);
        assert_int_equal(core_job_reservation(c, 1, 0, &r), 0);
        q = offer(c, "n1", "[ Cpus = 7; Memory = 7900; Disk = 100000; TotalCpus = 8; TotalMemory = 8000 ]");
        expect_assigned(c, "");
        for (kept_ms = 0; kept_ms < 86400000 && core_job_reservation(c, 1, 0, &r) == 0; kept_ms += 60000) {
                idle_ms = r.idle_ms;
                pass_time(c, 60000);
                core_renew(c, "n1");
                core_tick(c);
        }
        assert_in_range(kept_ms, 6 * 3600000, 8 * 3600000); /* 6 h of 8 processors, of which 7 were idle */
        assert_in_range(idle_ms, 6 * 7 * 3600000ll, 8 * 7 * 3600000ll);
        core_match(c);
        assert_non_null(strstr(buf_z(&bare_assigned), "n1/default 2 1"));
        for (unsigned i = 0; i < 60; i++) { /* and it is made good before there is another one */
                pass_time(c, 60000);
                core_renew(c, "n1");
                core_tick(c);
                assert_int_equal(core_job_reservation(c, 1, 0, &r), CORE_UNKNOWN);
        }
        assert_true(q->reserve_owed_ms > 0);
}

/* Processors idle until a known time are not debt; until a predicted time they are. */
static void keep_room(struct core *c, const char *const *narrow, double *ret_owed_ms, int64_t *ret_idle_ms)
{
        struct core_reservation r;
        struct queue *q;

        c->config.reserve_after_ms = 1000;
        submit(c, NULL, 1,
               (const char *const[]){"RequestCpus", "8", "RequestMemory", "100", "JobPrio", "5", NULL});
        submit(c, NULL, 50, narrow);
        offer(c, "n1", "[ Cpus = 1; Memory = 8000; Disk = 100000; TotalCpus = 8; TotalMemory = 8000 ]");
        expect_assigned(c, "n1/default 2 0\n");
        started(c, "n1", 2, 0);
        pass_time(c, 1000);
        assert_int_equal(core_job_reservation(c, 1, 0, &r), 0);
        q = offer(c, "n1", "[ Cpus = 7; Memory = 7900; Disk = 100000; TotalCpus = 8; TotalMemory = 8000 ]");
        expect_assigned(c, "");
        for (unsigned i = 0; i < 60; i++) {
                pass_time(c, 60000);
                core_renew(c, "n1");
                core_tick(c);
        }
        assert_int_equal(core_job_reservation(c, 1, 0, &r), 0);
        *ret_owed_ms = q->reserve_owed_ms;
        *ret_idle_ms = r.idle_ms;
}

static void test_what_was_said_is_not_owed(void **state)
{
        double owed_ms;
        int64_t idle_ms;

        keep_room(*state,
                  (const char *const[]){"RequestCpus", "1", "RequestMemory", "100", "AllowedExecuteDuration",
                                        "86400", NULL},
                  &owed_ms, &idle_ms);
        assert_true(owed_ms == 0);
        assert_in_range(idle_ms, 6 * 3600000, 8 * 3600000); /* of seven processors for an hour */
}

static void test_what_was_guessed_is_owed(void **state)
{
        double owed_ms;
        int64_t idle_ms;

        keep_room(*state,
                  (const char *const[]){"RequestCpus", "1", "RequestMemory", "100", "ExpectedRunTime",
                                        "86400", NULL},
                  &owed_ms, &idle_ms);
        assert_true(owed_ms > 6 * 3600000 && owed_ms < (double)idle_ms); /* a little is made good meanwhile */
}

/* Two classes are passed over: the first reservation goes to the one submitted first, the second to the next
 * in the order. */
static void test_reservations_go_in_turn(void **state)
{
        static const char *const narrow[] = {
                "RequestCpus", "1", "RequestMemory", "100", "AllowedExecuteDuration", "86400", NULL};
        struct core_reservation r;
        struct core *c = *state;

        c->config.reserve_after_ms = 1000;
        submit(c, NULL, 1,
               (const char *const[]){"RequestCpus", "7", "RequestMemory", "100", "JobPrio", "5", NULL});
        pass_time(c, 1000);
        submit(c, NULL, 1,
               (const char *const[]){"RequestCpus", "8", "RequestMemory", "100", "JobPrio", "9", NULL});
        submit(c, NULL, 50, narrow);
        offer(c, "n1", "[ Cpus = 1; Memory = 8000; Disk = 100000; TotalCpus = 8; TotalMemory = 8000 ]");
        offer(c, "n2", "[ Cpus = 1; Memory = 8000; Disk = 100000; TotalCpus = 8; TotalMemory = 8000 ]");
        core_match(c);
        pass_time(c, 1000);
        core_tick(c);
        assert_int_equal(core_job_reservation(c, 1, 0, &r), 0);
        assert_int_equal(core_job_reservation(c, 2, 0, &r), 0);
        assert_int_equal(c->reservations->made, 2);
        assert_int_equal(c->reservations->first->job_class->cpus, 8); /* made last */
}

/* The narrow jobs have no allowed run time, but some have run. */
static void test_who_should_be_over_by_then_goes_first(void **state)
{
        static const char *const narrow[] = {"RequestCpus", "1", "RequestMemory", "100", NULL};
        struct core_reservation r;
        struct core *c = *state;

        c->config.reserve_after_ms = 1000;
        submit(c, NULL, 1,
               (const char *const[]){"RequestCpus", "1", "RequestMemory", "100", "AllowedExecuteDuration",
                                     "86400", "JobPrio", "9", NULL});
        submit(c, NULL, 50, narrow);
        offer(c, "n1", "[ Cpus = 2; Memory = 8000; Disk = 100000; TotalCpus = 2; TotalMemory = 8000 ]");
        expect_assigned(c, "n1/default 1 0\nn1/default 2 0\n");
        started(c, "n1", 1, 0);
        started(c, "n1", 2, 0);
        pass_time(c, 60000);
        ended(c, "n1", 2, 0); /* a minute, then */
        submit(c, NULL, 1,
               (const char *const[]){"RequestCpus", "2", "RequestMemory", "100", "JobPrio", "5", NULL});
        offer(c, "n1", "[ Cpus = 1; Memory = 8000; Disk = 100000; TotalCpus = 2; TotalMemory = 8000 ]");
        expect_assigned(c, "n1/default 2 1\n");
        started(c, "n1", 2, 1);
        pass_time(c, 1000);
        assert_int_equal(core_job_reservation(c, 3, 0, &r), 0);
        ended(c, "n1", 2, 1);
        offer(c, "n1", "[ Cpus = 1; Memory = 8000; Disk = 100000; TotalCpus = 2; TotalMemory = 8000 ]");
        expect_assigned(c, "n1/default 2 2\n");
}

static void test_who_is_behind_all_others_gets_none(void **state)
{
        struct core_command low = {.action = CORE_ACT_PRIORITY, .request = WIDE, .value = -5};
        struct core_reservation r;
        struct machine m;
        uint64_t n;

        begin(&m, *state, 4);
        assert_int_equal(core_act(m.core, &low, &n, NULL), 0);
        for (unsigned i = 0; i < 300; i++) {
                step(&m);
                assert_int_equal(core_job_reservation(m.core, WIDE, 0, &r), CORE_UNKNOWN);
        }
}

static void test_a_reservation_ends_with_its_reason(void **state)
{
        struct core_command rm = {.action = CORE_ACT_REMOVE, .request = WIDE};
        struct core_reservation r;
        struct machine m;
        uint64_t n;

        begin(&m, *state, 5);
        for (unsigned i = 0; i < 200 && core_job_reservation(m.core, WIDE, 0, &r) != 0; i++)
                step(&m);
        assert_int_equal(core_job_reservation(m.core, WIDE, 0, &r), 0);
        core_agent_away(m.core, "n1");
        pass_time(m.core, 10000);
        core_tick(m.core);
        assert_int_equal(core_job_reservation(m.core, WIDE, 0, &r), CORE_UNKNOWN);
        step(&m);
        for (unsigned i = 0; i < 200 && core_job_reservation(m.core, WIDE, 0, &r) != 0; i++)
                step(&m);
        assert_int_equal(core_act(m.core, &rm, &n, NULL), 0);
        assert_null(m.core->reservations->first);
        assert_null(core_check(m.core));
}

/* Several jobs given at once must leave the reserved resources together. */
static void test_jobs_of_one_turn_leave_it_its_room(void **state)
{
        const char *const long_one[] = {"RequestCpus", "4", "AllowedExecuteDuration", "3600", NULL},
                          *const wide[] = {"RequestCpus", "6", "AllowedExecuteDuration", "60", NULL},
                          *const behind[] = {"RequestCpus", "1", "AllowedExecuteDuration", "60", NULL},
                          *const longer[] = {"RequestCpus", "1", "AllowedExecuteDuration", "7200", NULL};
        struct core *c = *state;
        struct core_reservation r;

        c->config.reserve_after_ms = 1000;
        offer(c, "n1", "[ Cpus = 8; Memory = 8000; Disk = 100000; TotalCpus = 8; TotalMemory = 8000 ]");
        submit(c, NULL, 1, long_one);
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        submit(c, NULL, 1, wide);
        submit(c, NULL, 1, behind);
        expect_assigned(c, "n1/default 3 0\n");
        started(c, "n1", 3, 0);
        pass_time(c, 1000);
        assert_int_equal(core_job_reservation(c, 2, 0, &r), 0);
        submit(c, NULL, 4, longer); /* three fit now, and two beside the six from then on */
        expect_assigned(c, "n1/default 4 0-1\n");
        assert_null(core_check(c));
}

int main(void)
{
#define STORY(f) cmocka_unit_test_setup_teardown(f, bare_core, bare_core_free)
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_starts_when_it_was_said_at_the_latest),
                STORY(test_being_passed_over_is_seen_while_accounts_take_turns),
                STORY(test_a_refusal_is_no_start),
                STORY(test_reserved_room_is_used_when_it_is_there),
                STORY(test_without_a_reservation_it_starves),
                STORY(test_who_is_behind_all_others_gets_none),
                STORY(test_a_reservation_ends_with_its_reason),
                STORY(test_jobs_of_one_turn_leave_it_its_room),
                STORY(test_room_is_not_kept_idle_for_ever),
                STORY(test_what_was_said_is_not_owed),
                STORY(test_what_was_guessed_is_owed),
                STORY(test_reservations_go_in_turn),
                STORY(test_who_should_be_over_by_then_goes_first),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
