#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "server/agents/leases.h"

static void renewals_count_while_the_session_is_open(void **state)
{
        struct leases *l = leases_new();

        (void)state;
        assert_false(leases_renew(l, 7, 100));
        leases_open(l, 7, 100);
        assert_int_equal(leases_take(l, 7, 50), 100);
        assert_true(leases_renew(l, 7, 150));
        assert_int_equal(leases_take(l, 7, 100), 150);
        assert_true(leases_renew(l, 7, 160));
        assert_int_equal(leases_close(l, 7), 160);
        assert_false(leases_renew(l, 7, 170));
        assert_int_equal(leases_close(l, 7), 0);
        leases_free(l);
}

static void what_was_given_away_is_acknowledged_no_more(void **state)
{
        struct leases *l = leases_new();

        (void)state;
        leases_open(l, 7, 100);
        leases_open(l, 8, 100);
        assert_int_equal(leases_take(l, 7, 100), 100);
        assert_false(leases_renew(l, 7, 150));
        assert_int_equal(leases_take(l, 7, 100), 100);
        assert_true(leases_renew(l, 8, 150));
        leases_free(l);
}

struct race {
        struct leases *l;
        atomic_llong acknowledged;
        atomic_bool begun;
};

static void *renew(void *arg)
{
        struct race *r = arg;

        for (long long now = 2; leases_renew(r->l, 1, now); now++) {
                atomic_store(&r->acknowledged, now);
                atomic_store(&r->begun, true);
        }
        return NULL;
}

/* Whoever ends the lease has heard of every renewal that was acknowledged. */
static void a_renewal_and_an_end_at_once(void **state)
{
        (void)state;
        for (int round = 0; round < 200; round++) {
                struct race r = {.l = leases_new()};
                int64_t known = 1, heard;
                pthread_t t;

                leases_open(r.l, 1, 1);
                assert_int_equal(pthread_create(&t, NULL, renew, &r), 0);
                while (!atomic_load(&r.begun))
                        ;
                while ((heard = leases_take(r.l, 1, known)) > known)
                        known = heard;
                pthread_join(t, NULL);
                assert_int_equal(atomic_load(&r.acknowledged), known);
                leases_free(r.l);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(renewals_count_while_the_session_is_open),
                cmocka_unit_test(what_was_given_away_is_acknowledged_no_more),
                cmocka_unit_test(a_renewal_and_an_end_at_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
