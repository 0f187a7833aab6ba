/* Requests whose submitter must stay in touch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/test_help.h"

#define ANN STR("ann@lab")

static uint64_t submit_some(struct core *c, uint64_t lease_ms, bool hold_results, uint64_t steps,
                            const char *mine)
{
        static unsigned char serial = 100;
        struct submission s = {.owner = ANN,
                               .at_ms = 1700000000000,
                               .lease_ms = lease_ms,
                               .hold_results = hold_results,
                               .origin = {.servers = STR("u"), .owner = STR("bob@far"), .hops_left = 3}};
        struct submission_part *p = submission_add_part(&s);
        bool existing;
        uint64_t id;

        s.uuid[0] = ++serial;
        p->steps = steps;
        submission_add_attribute(p, STR("Requirements"), STR("true"), false);
        if (mine)
                submission_add_attribute(p, STR("Mine"), str_of(mine), true);
        assert_int_equal(core_submit(c, &s, false, &id, &existing, NULL), 0);
        submission_deinit(&s);
        return id;
}

static uint64_t submit_leased(struct core *c, uint64_t lease_ms, bool hold_results)
{
        return submit_some(c, lease_ms, hold_results, 2, NULL);
}

static void later(struct core *c, int64_t ms)
{
        core_clock(c, c->now_ms + ms, c->steady_ms + ms);
        core_tick(c);
}

static void test_what_is_not_renewed_is_removed(void **state)
{
        struct core *c = *state;
        struct core_delegation h;
        struct err err = {""};
        uint64_t id;

        core_tick(c);
        id = submit_leased(c, 60000, false);
        expect_assigned(c, "");
        offer(c, "n1", "[ Cpus = 1; Memory = 1; Disk = 1 ]");
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", id, 0);
        later(c, 59000);
        assert_int_equal(core_request_renew(c, id, STR("bob@lab"), 0, &err), CORE_FORBIDDEN);
        assert_int_equal(core_request_renew(c, id, ANN, 0, &err), 0);
        later(c, 59000);
        assert_int_equal(request_state(request_find(c, id), 0), JOB_RUNNING);
        assert_int_equal(core_request_delegation(c, id, &h), 0);
        assert_int_equal(h.left_ms, 1000);
        assert_true(str_eqz(h.origin->owner, "bob@far"));
        later(c, 1000);
        assert_int_equal(request_state(request_find(c, id), 0), JOB_VACATING);
        assert_int_equal(request_state(request_find(c, id), 1), JOB_REMOVED);
        assert_int_equal(core_request_renew(c, id, ANN, 0, &err), CORE_INVALID);
        assert_non_null(strstr(err.text, "has ended"));
        assert_null(core_check(c));
}

/* A hundred jobs that were tried and are held, with long texts: they are removed in slices. */
static void test_many_are_removed(void **state)
{
        struct core *c = *state;
        BUF_CLEANUP struct buf mine = {0};
        struct core_request view;
        uint64_t id;

        buf_char(&mine, '"');
        for (unsigned i = 0; i < 500000; i++)
                buf_char(&mine, 'a');
        buf_addz(&mine, "$(Process)\"");
        id = submit_some(c, 60000, false, 150, buf_z(&mine));
        offer(c, "n1", "[ Cpus = 200; Memory = 1; Disk = 1 ]");
        while (core_match(c))
                ;
        for (uint32_t m = 0; m < 100; m++) {
                const struct core_result r = {.request = id,
                                              .member = m,
                                              .fence = 1,
                                              .outcome = CORE_NOT_STARTED,
                                              .reason = STR("no")};

                assert_true(core_result(c, "n1", &r));
        }
        later(c, 60000);
        assert_int_equal(core_request_get(c, id, &view), 0);
        assert_in_range(view.counts.removed, 1, 20);
        assert_false(request_cold(request_find(c, id))->delegation.lease_over);
        while (core_tick(c) == 0)
                ;
        assert_int_equal(core_request_get(c, id, &view), 0);
        assert_int_equal(view.counts.removed, 150);
        assert_null(core_check(c));
}

static void test_a_shorter_or_longer_term(void **state)
{
        struct core *c = *state;
        uint64_t id = submit_leased(c, 60000, false), plain;

        assert_int_equal(core_request_renew(c, id, STR_NONE, 600000, NULL), 0);
        later(c, 599000);
        assert_int_equal(request_state(request_find(c, id), 0), JOB_IDLE);
        later(c, 1000);
        assert_int_equal(request_state(request_find(c, id), 0), JOB_REMOVED);
        submit(c, NULL, 1, (const char *const[]){"Requirements", "true", NULL});
        plain = core_request_last(c);
        assert_int_equal(core_request_renew(c, plain, STR_NONE, 0, NULL), CORE_INVALID);
        assert_int_equal(core_request_renew(c, 99, STR_NONE, 0, NULL), CORE_UNKNOWN);
}

static void act_remove(struct core *c, uint64_t id)
{
        const struct core_command remove = {.action = CORE_ACT_REMOVE, .request = id};
        uint64_t n;

        assert_int_equal(core_act(c, &remove, &n, NULL), 0);
}

static void take(struct core *c, uint64_t id, uint32_t member, uint64_t left)
{
        struct set one = {0};
        uint64_t n;

        set_add(&one, member);
        assert_int_equal(core_results_taken(c, id, ANN, &one, &n, NULL), 0);
        assert_int_equal(n, left);
        set_deinit(&one);
}

static void test_results_are_kept_until_they_are_taken(void **state)
{
        struct core *c = *state;
        uint64_t id = submit_leased(c, 1000000000, true), other = submit_leased(c, 1000000000, false);

        take(c, id, 0, 2); /* no effect: the job has not ended */
        act_remove(c, id);
        act_remove(c, other);
        assert_int_equal(core_results_held_since(c), 1700000000000);
        later(c, 90000000);
        assert_null(request_find(c, other));
        assert_non_null(request_find(c, id));
        take(c, id, 0, 1);
        take(c, id, 0, 1);
        later(c, 1000);
        assert_non_null(request_find(c, id));
        take(c, id, 1, 0);
        assert_int_equal(core_results_held_since(c), INT64_MAX);
        later(c, 1000);
        assert_null(request_find(c, id));
}

/* Results that are never taken are held for 30 days at most, even if the lease is renewed for ever. */
static void test_results_are_held_for_so_long_at_most(void **state)
{
        struct core *c = *state;
        uint64_t id = submit_leased(c, 1000000000, true);

        for (int i = 0; i < 4; i++) {
                later(c, 900000000);
                assert_int_equal(core_request_renew(c, id, ANN, 0, NULL), 0);
        }
        assert_int_equal(core_results_held_since(c),
                         1700000000000 + 4 * INT64_C(900000000) - RESULTS_HELD_MAX_MS);
}

static void test_nothing_is_held_for_who_is_gone(void **state)
{
        struct core *c = *state;
        uint64_t id = submit_leased(c, 60000, true);

        act_remove(c, id);
        later(c, 60000);
        assert_int_equal(core_results_held_since(c), INT64_MAX);
        later(c, 90000000);
        assert_null(request_find(c, id));
}

static void test_snapshot(void **state)
{
        struct core *c = *state, *shadow;
        struct core_config config = {.shadow = true};
        BUF_CLEANUP struct buf a = {0}, b = {0};
        uint64_t id = submit_leased(c, 60000, true);

        act_remove(c, id);
        take(c, id, 1, 1);
        later(c, 60000);
        core_snapshot(c, &a);
        shadow = core_new(&config, &c->world);
        assert_int_equal(core_restore(shadow, buf_view(&a), NULL), 0);
        assert_true(request_cold(request_find(shadow, id))->delegation.lease_over);
        assert_true(set_has(&request_cold(request_find(shadow, id))->delegation.taken, 1));
        core_snapshot(shadow, &b);
        assert_true(str_eq(buf_view(&a), buf_view(&b)));
        core_free(shadow);
}

static void test_records(void **state)
{
        struct submission s = {.owner = ANN,
                               .lease_ms = 5,
                               .hold_results = true,
                               .digest = 7,
                               .origin = {STR("u v"), STR("o"), STR("l"), STR("p"), STR("7.1"), 4}},
                          t;
        BUF_CLEANUP struct buf b = {0};
        struct submission_part *p = submission_add_part(&s);

        (void)state;
        p->rows = 1;
        submission_pack(&b, &s);
        assert_int_equal(submission_unpack(&t, buf_view(&b), NULL), 0);
        assert_int_equal(t.lease_ms, 5);
        assert_true(t.hold_results && str_eqz(t.origin.servers, "u v") && str_eqz(t.origin.job, "7.1"));
        assert_true(str_eqz(t.origin.label, "l") && str_eqz(t.origin.path, "p") && t.origin.hops_left == 4);
        assert_int_equal(t.digest, 7);
        submission_deinit(&t);
        /* An older version lacks the last fields. */
        b.p[0] = 3;
        b.n -= 2;
        assert_int_equal(submission_unpack(&t, buf_view(&b), NULL), 0);
        assert_true(t.digest == 7 && t.edges.n == 0 && t.ended_parent_count == 0);
        submission_deinit(&t);
        b.p[0] = 2;
        b.n -= 1;
        assert_int_equal(submission_unpack(&t, buf_view(&b), NULL), 0);
        assert_true(t.lease_ms == 5 && t.origin.hops_left == 4 && t.digest == 0);
        submission_deinit(&t);
        b.p[0] = 1;
        b.n -= 1 + 1 + 4 + 2 + 2 + 2 + 4 + 1;
        assert_int_equal(submission_unpack(&t, buf_view(&b), NULL), 0);
        assert_true(t.lease_ms == 0 && t.origin.servers.n == 0 && str_eqz(t.owner, "ann@lab"));
        submission_deinit(&t);
        b.p[0] = 2;
        assert_int_equal(submission_unpack(&t, buf_view(&b), NULL), -EBADMSG);
        submission_deinit(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_what_is_not_renewed_is_removed, bare_core,
                                                bare_core_free),
                cmocka_unit_test_setup_teardown(test_many_are_removed, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_a_shorter_or_longer_term, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_results_are_kept_until_they_are_taken, bare_core,
                                                bare_core_free),
                cmocka_unit_test_setup_teardown(test_nothing_is_held_for_who_is_gone, bare_core,
                                                bare_core_free),
                cmocka_unit_test_setup_teardown(test_snapshot, bare_core, bare_core_free),
                cmocka_unit_test(test_records),
                cmocka_unit_test_setup_teardown(test_results_are_held_for_so_long_at_most, bare_core,
                                                bare_core_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
