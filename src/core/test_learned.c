/* What was learned survives a restart, and what is damaged harms nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/test_help.h"

#define ONE "[Cpus=1; TotalCpus=1; Memory=100; Disk=100]"

static const char *const program[] = {"Cmd", "\"sort\"", NULL};
static const char *const owners[] = {"Cmd", "\"other\"", NULL};

/* One job of it runs for so long. */
static void run(struct core *c, const char *const *what, int64_t run_ms)
{
        uint64_t r = test_submit(c, "ann@lab", 1, what);

        offer(c, "n1", ONE);
        core_match(c);
        started(c, "n1", r, 0);
        pass_time(c, run_ms);
        ended(c, "n1", r, 0);
        buf_reset(&bare_assigned);
}

static int64_t expected_s(struct core *c, const char *const *what)
{
        uint64_t r = test_submit(c, "ann@lab", 1, what);
        bool known;
        int64_t ms = estimate_run_ms(c, request_part(request_find(c, r), 0, NULL), NULL, &known);

        return known ? ms / 1000 : -1;
}

/* A minute and then two minutes for the program, and one start that was 20 s early. */
static void learn(struct core *c, struct buf *out)
{
        uint64_t r;

        run(c, program, 60000);
        r = test_submit(c, "ann@lab", 1, program);
        offer(c, "n1", ONE);
        core_match(c);
        started(c, "n1", r, 0);
        test_submit(c, "ann@lab", 1, program);
        pass_time(c, 30000);
        pass_time(c, 10000);
        ended(c, "n1", r, 0);
        offer(c, "n1", ONE);
        core_match(c);
        started(c, "n1", r + 1, 0);
        pass_time(c, 120000);
        ended(c, "n1", r + 1, 0);
        buf_reset(&bare_assigned);
        core_learned_pack(c, out);
}

static void test_restart(void **state)
{
        struct core *c = *state, *next;
        struct buf BUF_CLEANUP kept = {0};
        struct core_eta_error before, after;
        int64_t sort_s, other_s;
        void *again;

        learn(c, &kept);
        sort_s = expected_s(c, program);
        other_s = expected_s(c, owners);
        core_eta_error(c, &before);
        assert_int_equal(before.count, 1);
        assert_true(sort_s >= 60 && other_s >= 60);
        bare_core(&again);
        next = again;
        assert_int_equal(expected_s(next, program), -1);
        assert_int_equal(core_learned_count(next), 0);
        assert_int_equal(core_learned_unpack(next, buf_view(&kept), NULL), 0);
        assert_int_equal(expected_s(next, program), sort_s);
        assert_int_equal(expected_s(next, owners), other_s);
        core_eta_error(next, &after);
        assert_int_equal(after.count, before.count);
        assert_int_equal(after.median_ms, before.median_ms);
        assert_int_equal(core_learned_count(next), core_learned_count(c));
        core_free(next);
}

/* The replay has seen more of it: that stands. */
static void test_replay_knows_more(void **state)
{
        struct core *c = *state, *next;
        struct buf BUF_CLEANUP kept = {0};
        int64_t s;
        void *again;

        run(c, program, 60000);
        core_learned_pack(c, &kept);
        bare_core(&again);
        next = again;
        for (int i = 0; i < 3; i++)
                run(next, program, 5000);
        s = expected_s(next, program);
        assert_int_equal(core_learned_unpack(next, buf_view(&kept), NULL), 0);
        assert_int_equal(expected_s(next, program), s);
        core_free(next);
}

static void test_guess_waits_over_a_restart(void **state)
{
        static const char *const minute[] = {"ExpectedRunTime", "100", NULL};
        struct core *c = *state;
        struct buf BUF_CLEANUP kept = {0};
        struct core_eta_error e;

        offer(c, "n1", ONE);
        test_submit(c, "ann@lab", 1, minute);
        core_match(c);
        started(c, "n1", 1, 0);
        test_submit(c, "ann@lab", 1, minute);
        pass_time(c, 30000);
        core_learned_pack(c, &kept);
        eta_free(c->eta); /* as it is after a replay, which makes no forecast */
        c->eta = NULL;
        assert_int_equal(core_learned_unpack(c, buf_view(&kept), NULL), 0);
        pass_time(c, 50000);
        ended(c, "n1", 1, 0);
        offer(c, "n1", ONE);
        core_match(c);
        started(c, "n1", 2, 0);
        core_eta_error(c, &e);
        assert_int_equal(e.count, 1);
        assert_int_equal(e.median_ms, 20000);
}

static void test_damage(void **state)
{
        struct core *c = *state;
        struct buf BUF_CLEANUP kept = {0};
        struct err err;
        void *again;

        learn(c, &kept);
        bare_core(&again);
        for (size_t n = 0; n < kept.n; n++) {
                assert_int_equal(core_learned_unpack(again, str_head(buf_view(&kept), n), &err),
                                 CORE_DAMAGED);
                kept.p[n] ^= 0x40;
                assert_int_equal(core_learned_unpack(again, buf_view(&kept), &err), CORE_DAMAGED);
                kept.p[n] ^= 0x40;
        }
        assert_int_equal(expected_s(again, program), -1);
        assert_int_equal(core_learned_count(again), 0);
        core_free(again);
}

/* Of very many programs those that ran often are kept. */
static void test_bounded(void **state)
{
        struct core *c = *state, *next;
        struct buf BUF_CLEANUP kept = {0};
        void *again;

        run(c, program, 60000);
        run(c, program, 60000);
        for (unsigned i = 0; i < 6000; i++) {
                char name[32];

                snprintf(name, sizeof(name), "\"p%u\"", i);
                run(c, (const char *const[]){"Cmd", name, NULL}, 1000);
        }
        core_learned_pack(c, &kept);
        assert_in_range(kept.n, 20, 1000); /* all others ran once */
        bare_core(&again);
        next = again;
        assert_int_equal(core_learned_unpack(next, buf_view(&kept), NULL), 0);
        assert_int_equal(expected_s(next, program), 60);
        core_free(next);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_restart), TEST(test_replay_knows_more), TEST(test_guess_waits_over_a_restart),
                TEST(test_damage),  TEST(test_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
