/* The reference schedulers on workloads that are small enough to be played by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/random.h"
#include "sim/reference.h"

struct row {
        int64_t submit_s, run_s;
        uint32_t asked_s, cpus, user;
        int64_t started_s; /* expected */
};

static void play(enum sim_reference scheduler, uint32_t agents, uint32_t cpus, const struct row *rows,
                 size_t n)
{
        struct sim_workload w = {0};
        struct sim_times times[16];
        struct sim_measures m;
        struct sim_site site;
        struct err err;

        assert_true(n <= 16);
        sim_site_init(&site);
        sim_site_add(&site, STR("c"), agents, cpus);
        sim_site_finish(&site);
        for (size_t i = 0; i < n; i++) {
                struct sim_job *j = sim_workload_add_job(&w);

                j->submit_ms = rows[i].submit_s * 1000;
                j->run_ms = rows[i].run_s * 1000;
                j->asked_s = rows[i].asked_s;
                j->cpus = rows[i].cpus;
                j->user = rows[i].user;
        }
        sim_workload_finish(&w);
        assert_int_equal(sim_reference_run(&(struct sim_reference_options){.site = &site,
                                                                           .workload = &w,
                                                                           .scheduler = scheduler,
                                                                           .times = times},
                                           &m, &err),
                         0);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(times[i].started / 1000, rows[i].started_s);
                assert_int_equal(times[i].ended - times[i].started, rows[i].run_s * 1000);
        }
        assert_int_equal(m.jobs, n);
        sim_measures_deinit(&m);
        sim_workload_deinit(&w);
        sim_site_deinit(&site);
}
#define PLAY(scheduler, agents, cpus, rows)                                                                  \
        play(scheduler, agents, cpus, rows, sizeof(rows) / sizeof((rows)[0]))

static void fcfs_lets_nobody_pass(void **state)
{
        static const struct row rows[] = {{0, 100, 0, 3, 0, 0}, {1, 50, 0, 4, 0, 100}, {2, 10, 0, 1, 0, 150}};

        (void)state;
        PLAY(SIM_FCFS, 1, 4, rows);
}

/* The small job ends before the wide one may start, and so may pass it; the long one would delay it; the
 * narrow long one takes what the wide one leaves. */
static void easy_backfills_without_delay(void **state)
{
        static const struct row rows[] = {{0, 100, 0, 3, 0, 0},
                                          {1, 50, 0, 3, 0, 100},
                                          {2, 10, 0, 1, 0, 2},
                                          {3, 1000, 0, 1, 0, 12},
                                          {4, 20, 0, 1, 0, 150}};
        static const struct row delayed[] = {
                {0, 100, 0, 3, 0, 0}, {1, 50, 0, 4, 0, 100}, {2, 99, 0, 1, 0, 150}, {3, 97, 0, 1, 0, 3}};

        (void)state;
        PLAY(SIM_EASY, 1, 4, rows);
        PLAY(SIM_EASY, 1, 4, delayed);
}

/* What users ask for counts, not what comes of it; where a job ends early the one that waits starts early. */
static void estimates_count(void **state)
{
        static const struct row rows[] = {{0, 100, 200, 3, 0, 0},
                                          {1, 50, 60, 4, 0, 100},
                                          {2, 10, 150, 1, 0, 2},
                                          {3, 10, 300, 1, 0, 150}};

        (void)state;
        PLAY(SIM_EASY, 1, 4, rows);
}

/* Easy lets the last job delay the second that waits; conservative does not. */
static void conservative_keeps_every_promise(void **state)
{
        static const struct row easy[] = {
                {0, 100, 0, 2, 0, 0}, {1, 100, 0, 3, 0, 100}, {2, 100, 0, 4, 0, 300}, {3, 297, 0, 1, 0, 3}};
        static const struct row conservative[] = {
                {0, 100, 0, 2, 0, 0}, {1, 100, 0, 3, 0, 100}, {2, 100, 0, 4, 0, 200}, {3, 297, 0, 1, 0, 300}};

        (void)state;
        PLAY(SIM_EASY, 1, 4, easy);
        PLAY(SIM_CONSERVATIVE, 1, 4, conservative);
}

/* All reservations are made anew, in their order, when a job ends before its time. */
static void conservative_moves_up(void **state)
{
        static const struct row rows[] = {{0, 10, 100, 4, 0, 0},
                                          {1, 100, 100, 3, 0, 10},
                                          {2, 100, 100, 4, 0, 110},
                                          {3, 100, 100, 1, 0, 10}};

        (void)state;
        PLAY(SIM_CONSERVATIVE, 1, 4, rows);
}

/* Who has had nothing goes first. */
static void fair_share_takes_turns(void **state)
{
        static const struct row rows[] = {
                {0, 100, 0, 4, 0, 0}, {1, 100, 0, 4, 0, 200}, {2, 100, 0, 4, 0, 300}, {3, 100, 0, 4, 1, 100}};
        static const struct row in_order[] = {
                {0, 100, 0, 4, 0, 0}, {1, 100, 0, 4, 0, 100}, {2, 100, 0, 4, 0, 200}, {3, 100, 0, 4, 1, 300}};

        (void)state;
        PLAY(SIM_EASY_FAIRSHARE, 1, 4, rows);
        PLAY(SIM_EASY, 1, 4, in_order);
}

/* The reservation is at the place that is free first; at the other one everybody may start. */
static void several_places(void **state)
{
        static const struct row rows[] = {{0, 100, 0, 3, 0, 0},
                                          {0, 50, 0, 3, 0, 0},
                                          {1, 10, 0, 4, 0, 50},
                                          {2, 500, 0, 1, 0, 2},
                                          {3, 500, 0, 1, 0, 60}};

        (void)state;
        PLAY(SIM_EASY, 2, 4, rows);
}

/* Whatever comes: no place holds more than it has, and a conservative plan starts no job later than fcfs
 * would. */
static void random_workloads(void **state)
{
        struct sim_times times[4][200];
        struct sim_site site;

        (void)state;
        sim_site_init(&site);
        sim_site_add(&site, STR("a"), 1, 8);
        sim_site_add(&site, STR("b"), 2, 4)->speed = 2;
        sim_site_finish(&site);
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct sim_workload w = {0};
                struct sim_random random;

                sim_random_seed(&random, seed);
                for (size_t i = 0; i < 200; i++) {
                        struct sim_job *j = sim_workload_add_job(&w);

                        j->submit_ms = (int64_t)sim_random_exponential(&random, 1000) +
                                       (i ? w.jobs[i - 1].submit_ms : 0);
                        j->run_ms = 1 + (int64_t)sim_random_exponential(&random, 5000);
                        j->asked_s = (uint32_t)sim_random_exponential(&random, 10);
                        j->cpus = 1 + (uint32_t)sim_random_exponential(&random, 2) % 8;
                        j->user = (uint32_t)i % 3;
                }
                sim_workload_finish(&w);
                for (int s = 0; s < 4; s++) {
                        struct sim_measures m;
                        struct err err;

                        assert_int_equal(
                                sim_reference_run(
                                        &(struct sim_reference_options){.site = &site,
                                                                        .workload = &w,
                                                                        .scheduler = (enum sim_reference)s,
                                                                        .times = times[s]},
                                        &m, &err),
                                0);
                        assert_true(m.utilisation <= 1);
                        sim_measures_deinit(&m);
                        for (size_t i = 0; i < 200; i++) {
                                int64_t used[2] = {0, 0};

                                assert_true(times[s][i].started >= times[s][i].submitted);
                                for (size_t k = 0; k < 200; k++)
                                        if (times[s][k].started <= times[s][i].started &&
                                            times[s][k].ended > times[s][i].started)
                                                used[times[s][k].cluster] += w.jobs[k].cpus;
                                assert_true(used[0] <= 8 && used[1] <= 8);
                        }
                }
                sim_workload_deinit(&w);
        }
        sim_site_deinit(&site);
}

static void what_it_knows_nothing_of(void **state)
{
        struct sim_workload w = {0};
        struct sim_measures m;
        struct sim_site site;
        struct err err;

        (void)state;
        sim_site_init(&site);
        sim_site_add(&site, STR("c"), 1, 4);
        sim_site_finish(&site);
        sim_workload_add_job(&w)->cpus = 5;
        assert_int_equal(
                sim_reference_run(&(struct sim_reference_options){.site = &site, .workload = &w}, &m, &err),
                -EINVAL);
        assert_non_null(strstr(err.text, "job 1 needs 5 processors"));
        w.jobs[0].cpus = 4;
        w.jobs[0].inputs.count = 1;
        assert_int_equal(
                sim_reference_run(&(struct sim_reference_options){.site = &site, .workload = &w}, &m, &err),
                -EINVAL);
        w.jobs[0].inputs.count = 0;
        w.jobs[0].gang = 1;
        assert_int_equal(
                sim_reference_run(&(struct sim_reference_options){.site = &site, .workload = &w}, &m, &err),
                -EINVAL);
        w.jobs[0].gang = 0;
        site.clusters[0].mtbf_ms = 1;
        assert_int_equal(
                sim_reference_run(&(struct sim_reference_options){.site = &site, .workload = &w}, &m, &err),
                -EINVAL);
        sim_workload_deinit(&w);
        sim_site_deinit(&site);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(fcfs_lets_nobody_pass),
                cmocka_unit_test(easy_backfills_without_delay),
                cmocka_unit_test(estimates_count),
                cmocka_unit_test(conservative_keeps_every_promise),
                cmocka_unit_test(conservative_moves_up),
                cmocka_unit_test(fair_share_takes_turns),
                cmocka_unit_test(several_places),
                cmocka_unit_test(random_workloads),
                cmocka_unit_test(what_it_knows_nothing_of),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
