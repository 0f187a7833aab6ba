#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "place/lease_clock.h"
#include "place/offer.h"
#include "place/probe_estimate.h"
#include "place/pull_policy.h"

static void lease_counts_from_sending(void **state)
{
        (void)state;
        struct lease_clock c = {0};
        assert_true(lease_clock_end(&c) == LEASE_CLOCK_NEVER);
        lease_clock_greeted(&c, 1000);
        lease_clock_hold(&c, 300, 1100);
        assert_int_equal(lease_clock_end(&c), 1300);
        uint64_t a = lease_clock_renewing(&c, 1100), b = lease_clock_renewing(&c, 1200);
        assert_int_equal(lease_clock_end(&c), 1300); /* unchanged before the server's answer */
        assert_true(lease_clock_renewed(&c, b));
        assert_int_equal(lease_clock_end(&c), 1500);
        assert_true(lease_clock_renewed(&c, a)); /* late, older: takes nothing back */
        assert_int_equal(lease_clock_end(&c), 1500);
        assert_false(lease_clock_renewed(&c, b + 1));
        assert_false(lease_clock_renewed(&c, 0));
        lease_clock_hold(&c, 100, 1300);
        assert_int_equal(lease_clock_end(&c), 1300);
        lease_clock_hold(&c, 900, 1300);
        assert_int_equal(lease_clock_end(&c), 1300);
        uint64_t over = lease_clock_renewing(&c, 1300); /* after the machine was suspended */
        assert_false(lease_clock_renewed(&c, over));
        assert_int_equal(lease_clock_end(&c), 1300);
        uint64_t lost = lease_clock_renewing(&c, 1250);
        lease_clock_greeted(&c, 1280);
        assert_false(lease_clock_renewed(&c, lost)); /* serial of the earlier session */
        assert_int_equal(lease_clock_end(&c), 1380);
        lease_clock_release_all(&c);
        assert_true(lease_clock_end(&c) == LEASE_CLOCK_NEVER);
        uint64_t first = lease_clock_renewing(&c, 2000);
        for (int i = 0; i < 8; i++)
                lease_clock_renewing(&c, 2001 + i);
        assert_false(lease_clock_renewed(&c, first)); /* too old: its time is no longer kept */
}

/* Compares members instead of memory, because padding is undefined. */
static void same_policy(const struct pull_policy *a, const struct pull_policy *b)
{
        assert_int_equal(a->load_percent, b->load_percent);
        assert_int_equal(a->measured, b->measured);
        assert_int_equal(a->jobs_per_day, b->jobs_per_day);
        assert_int_equal(a->cpu_ms_per_day, b->cpu_ms_per_day);
        assert_int_equal(a->walltime_ms_per_day, b->walltime_ms_per_day);
        assert_int_equal(a->memory_mib_s_per_day, b->memory_mib_s_per_day);
}

static void policy_parses(void **state)
{
        (void)state;
        struct pull_policy p, again;
        struct err err;
        pull_policy_default(&p);
        assert_int_equal(p.load_percent, 100);
        assert_int_equal(
                pull_policy_parse(STR("load=measured:150%, "
                                      "jobs/day=1000,cpu/day=1.5h,walltime/day=90m,memory/day=2GiBh"),
                                  &p, &err),
                0);
        assert_int_equal(p.load_percent, 150);
        assert_true(p.measured);
        assert_int_equal(p.jobs_per_day, 1000);
        assert_int_equal(p.cpu_ms_per_day, 5400000);
        assert_int_equal(p.walltime_ms_per_day, 5400000);
        assert_int_equal(p.memory_mib_s_per_day, 2 * 1024 * 3600);
        BUF_CLEANUP struct buf b = {0};
        pull_policy_print(&p, &b);
        pull_policy_default(&again);
        assert_int_equal(pull_policy_parse(buf_view(&b), &again, &err), 0);
        same_policy(&p, &again);
        assert_int_equal(pull_policy_parse(STR("load=inf"), &p, &err), 0);
        assert_true(p.load_percent == PULL_NO_LIMIT && p.jobs_per_day == 1000);
        static const char *const bad[] = {"load",       "load=",       "load=x",      "load=0",
                                          "load=2",     "load=1.5",    "lod=3",       "cpu/day=3",
                                          "cpu/day=3x", "jobs/day=-1", "jobs/day=3h", "load=1000001%"};
        for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                again = p;
                assert_int_equal(pull_policy_parse(str_of(bad[i]), &p, &err), -EINVAL);
                same_policy(&p, &again);
        }
}

static void policy_allows(void **state)
{
        (void)state;
        struct pull_policy p;
        struct pull_use u = {0};
        struct pull_allowance a;
        struct pull_now now = {.cpus_milli = 4000, .committed_milli = 3000, .load_milli = 5500};
        pull_policy_default(&p);
        pull_policy_allows(&p, &u, &now, &a);
        assert_int_equal(a.cpus_milli, 1000);
        assert_true(a.jobs == PULL_NO_LIMIT && !a.closed);
        pull_policy_parse(STR("load=150%"), &p, NULL);
        pull_policy_allows(&p, &u, &now, &a);
        assert_int_equal(a.cpus_milli, 3000);
        pull_policy_parse(STR("load=measured:150%"), &p, NULL);
        pull_policy_allows(&p, &u, &now, &a);
        assert_int_equal(a.cpus_milli, 500);
        now.load_milli = 9000;
        pull_policy_allows(&p, &u, &now, &a);
        assert_int_equal(a.cpus_milli, 0);
        pull_policy_parse(STR("load=inf,jobs/day=2"), &p, NULL);
        pull_use_day(&u, 86400 * 10 + 5);
        pull_use_started(&u);
        pull_policy_allows(&p, &u, &now, &a);
        assert_true(a.cpus_milli == PULL_NO_LIMIT && a.jobs == 1);
        pull_use_started(&u);
        pull_policy_allows(&p, &u, &now, &a);
        assert_string_equal(a.closed, "jobs per day");
        assert_int_equal(a.cpus_milli, 0);
        pull_use_day(&u, 86400 * 11);
        pull_policy_allows(&p, &u, &now, &a);
        assert_null(a.closed);
        pull_policy_parse(STR("cpu/day=10s"), &p, NULL);
        pull_use_ended(&u, 6000, 1000, 0);
        now.running_cpu_ms = 3999;
        pull_policy_allows(&p, &u, &now, &a);
        assert_null(a.closed);
        now.running_cpu_ms = 4000;
        pull_policy_allows(&p, &u, &now, &a);
        assert_string_equal(a.closed, "cpu per day");
        pull_policy_default(&p);
        pull_policy_parse(STR("memory/day=1GiBh"), &p, NULL);
        pull_use_ended(&u, 0, 3600000, 1u << 30);
        pull_policy_allows(&p, &u, &now, &a);
        assert_string_equal(a.closed, "memory per day");
}

static void offers_read_ahead(void **state)
{
        (void)state;
        assert_int_equal(offer_ahead(0, 2000), 0);      /* unknown mean */
        assert_int_equal(offer_ahead(2000, 2000), 100); /* 2 ms */
        assert_int_equal(offer_ahead(1, 64000), 256);
        assert_int_equal(offer_ahead(60000000, 2000), 0); /* a minute */
        struct offer_place p = {.name = "n\"1",
                                .queue = "default",
                                .arch = "X86_64",
                                .opsys = "LINUX",
                                .cpus_milli = 2000,
                                .memory_bytes = 4096ull << 20,
                                .disk_bytes = 1 << 20};
        struct offer_now n = {.cpus_milli = 1000,
                              .memory_bytes = 1024ull << 20,
                              .ahead = 10,
                              .job_cpus_milli = 1000,
                              .job_memory_bytes = 128u << 20,
                              .load_milli = 1050};
        BUF_CLEANUP struct buf b = {0};
        offer_ad(&p, &n, &b);
        assert_non_null(strstr(buf_z(&b), "Name = \"n\\\"1\";"));
        assert_non_null(strstr(buf_z(&b), " Cpus = 11; FreeCpus = 1; TotalCpus = 2;"));
        assert_non_null(strstr(buf_z(&b), " Memory = 2304; FreeMemory = 1024; TotalMemory = 4096;"));
        assert_non_null(strstr(buf_z(&b), "LoadAvg = 1.050;"));
}

static void links_are_smoothed(void **state)
{
        (void)state;
        struct probe_estimate e = {0}, told;
        probe_estimate_latency(&e, 20000, 1000);
        assert_int_equal(e.latency_us, 20000);
        probe_estimate_rate(&e, PROBE_IN, 1000, 100, 1000); /* too small to tell */
        assert_true(e.bytes_per_s[PROBE_IN] == 0);
        probe_estimate_rate(&e, PROBE_IN, 1000000, 1020000,
                            1000); /* 1 MB in a second, and 20 ms on the way */
        assert_true(e.bytes_per_s[PROBE_IN] == 1000000 && e.bytes_per_s[PROBE_OUT] == 0);
        told = e;
        assert_false(probe_estimate_differs(&e, &told));
        /* small ones move it little, large ones much, and a long silence lets the next one count */
        probe_estimate_rate(&e, PROBE_IN, 100000, 30000, 2000); /* 10 MB/s */
        assert_in_range(e.bytes_per_s[PROBE_IN], 1800000, 2000000);
        assert_true(probe_estimate_differs(&e, &told));
        probe_estimate_rate(&e, PROBE_IN, 1ull << 30, 107 * 1000000ull, 3000); /* 10 MB/s */
        assert_in_range(e.bytes_per_s[PROBE_IN], 9500000, 10100000);
        probe_estimate_rate(&e, PROBE_IN, 100000, 120000, 3000 + 3700000); /* 1 MB/s, after an hour */
        assert_in_range(e.bytes_per_s[PROBE_IN], 1500000, 2000000);
        probe_estimate_latency(&e, 40000, 2000);
        assert_int_equal(e.latency_us, 26000);
        probe_estimate_rate(&e, PROBE_OUT, 1 << 20, 0, 2000); /* no division by zero */
        assert_true(e.bytes_per_s[PROBE_OUT] > 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lease_counts_from_sending),
                cmocka_unit_test(policy_parses),
                cmocka_unit_test(policy_allows),
                cmocka_unit_test(offers_read_ahead),
                cmocka_unit_test(links_are_smoothed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
