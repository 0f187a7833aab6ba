/* Runs that are small enough to be computed by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/map.h"
#include "sim/generate.h"
#include "sim/pipe.h"
#include "sim/plot.h"
#include "sim/run.h"

static void a_link_is_shared(void **state)
{
        const struct sim_link link = {1000000, 0}; /* 1000 bytes a millisecond */
        struct sim_pipe p;
        struct sim_flow a, b;

        (void)state;
        sim_pipe_init(&p, &link);
        assert_int_equal(sim_pipe_next(&p), SIM_NEVER);
        sim_pipe_add(&p, &a, 10000, 0);
        assert_int_equal(sim_pipe_next(&p), 10);
        sim_pipe_add(&p, &b, 10000, 4); /* a has 6000 left, and half of the link */
        assert_int_equal(sim_pipe_next(&p), 16);
        assert_null(sim_pipe_ended(&p, 15));
        assert_ptr_equal(sim_pipe_ended(&p, 16), &a);
        assert_null(sim_pipe_ended(&p, 16));
        assert_int_equal(sim_pipe_next(&p), 20); /* b has had 6000 of its own, and is alone now */
        sim_pipe_add(&p, &a, 99999, 18);
        sim_pipe_cancel(&a, 19); /* in between b got 500 less */
        assert_int_equal(sim_pipe_next(&p), 21);
        assert_ptr_equal(sim_pipe_ended(&p, 21), &b);
        sim_pipe_deinit(&p);
}

static void latency_counts(void **state)
{
        const struct sim_link link = {1000000, 7000};
        struct sim_pipe p;
        struct sim_flow a;

        (void)state;
        sim_pipe_init(&p, &link);
        sim_pipe_add(&p, &a, 3000, 0);
        assert_int_equal(sim_pipe_next(&p), 10);
        sim_pipe_deinit(&p);
}

static void values_are_summed_up(void **state)
{
        double v[20];
        struct sim_spread s;

        (void)state;
        for (int i = 0; i < 20; i++)
                v[i] = 20 - i;
        sim_spread_of(v, 20, &s);
        assert_int_equal((int)(s.mean * 10), 105);
        assert_int_equal((int)s.median, 11);
        assert_int_equal((int)s.p95, 19);
        sim_spread_of(v, 0, &s);
        assert_int_equal((int)s.mean, 0);
}

/* Two clusters of one agent with one processor; the second twice as fast. */
static void two_places(struct sim_site *site)
{
        sim_site_init(site);
        site->near = (struct sim_link){1000000000, 1};
        site->far = (struct sim_link){1000000, 1};
        sim_site_add(site, STR("a"), 1, 1);
        sim_site_add(site, STR("b"), 1, 1)->speed = 2;
        sim_site_finish(site);
}

static int run(const struct sim_site *site, const struct sim_workload *w, enum core_placement placement,
               struct sim_measures *m)
{
        const struct sim_run_options o = {.site = site, .workload = w, .placement = placement, .seed = 1};
        struct err err;
        int r = sim_run(&o, m, &err);

        if (r)
                print_message("%s\n", err.text);
        return r;
}

static void a_job_runs_where_its_result_is_soonest(void **state)
{
        struct sim_site site;
        struct sim_workload w = {0};
        struct sim_measures m;
        struct sim_job *j = sim_workload_add_job(&w);

        (void)state;
        two_places(&site);
        j->run_ms = 100000;
        j->inputs = sim_span_begin(&w);
        sim_span_add(&w, &j->inputs,
                     sim_workload_add_file(&w, 200000000, 0)); /* 200 s to b, which saves 50 */
        sim_workload_finish(&w);
        assert_int_equal(run(&site, &w, CORE_PLACE_COST, &m), 0);
        assert_int_equal(m.jobs, 1);
        assert_int_equal(m.decisions, 1);
        assert_int_equal(m.bytes_in, 200000000);
        assert_int_equal((int)m.slowdown.mean, 1);
        assert_int_equal(m.bytes_far, 0);
        assert_in_range((int)m.makespan_s, 100, 101);
        sim_measures_deinit(&m);
        sim_workload_deinit(&w);
        sim_site_deinit(&site);
}

static void children_run_when_parents_have_ended(void **state)
{
        struct sim_site site;
        struct sim_workload w = {0};
        struct sim_measures m;
        uint32_t file;

        (void)state;
        sim_site_init(&site);
        sim_site_add(&site, STR("a"), 1, 4);
        sim_site_finish(&site);
        file = sim_workload_add_file(&w, 1000, 0);
        for (int i = 0; i < 2; i++) {
                struct sim_job *j = sim_workload_add_job(&w);

                j->run_ms = 10000;
                j->waits = (uint32_t)i;
        }
        w.jobs[0].outputs = sim_span_begin(&w);
        sim_span_add(&w, &w.jobs[0].outputs, file);
        w.jobs[1].inputs = w.jobs[0].outputs;
        w.jobs[0].children = sim_span_begin(&w);
        sim_span_add(&w, &w.jobs[0].children, 1);
        sim_workload_finish(&w);
        assert_int_equal(run(&site, &w, CORE_PLACE_COST, &m), 0);
        assert_in_range((int)m.makespan_s, 20, 21);
        assert_int_equal(m.bytes_out, 1000);
        assert_int_equal(m.bytes_in, 0); /* what a job made is in its agent's cache */
        assert_int_equal(m.bytes_cached, 1000);
        sim_measures_deinit(&m);
        sim_workload_deinit(&w);
        sim_site_deinit(&site);
}

static void what_fits_nowhere_is_refused(void **state)
{
        struct sim_site site;
        struct sim_workload w = {0};
        struct sim_measures m;

        (void)state;
        two_places(&site);
        sim_workload_add_job(&w)->cpus = 2;
        sim_workload_finish(&w);
        assert_int_equal(run(&site, &w, CORE_PLACE_COST, &m), -EINVAL);
        sim_workload_deinit(&w);
        sim_site_deinit(&site);
}

static void agents_fail_and_every_job_ends(void **state)
{
        const struct sim_generate_options g = {
                .jobs = 300, .classes = 6, .clusters = 2, .run_ms = 60000, .input_bytes = 1000000};
        struct sim_random random;
        struct sim_site site;
        struct sim_workload w = {0};
        struct sim_measures m[2];

        (void)state;
        sim_site_init(&site);
        for (int i = 0; i < 2; i++) {
                struct sim_cluster *c = sim_site_add(&site, i ? STR("b") : STR("a"), 4, 4);

                c->mtbf_ms = 300000;
                c->repair_ms = 60000;
                c->cache_bytes = 5000000;
                c->start_delay_ms = 2000;
        }
        sim_site_finish(&site);
        sim_random_seed(&random, 3);
        sim_generate(&w, &g, &random);
        for (int i = 0; i < 2; i++)
                assert_int_equal(run(&site, &w, CORE_PLACE_COST, &m[i]), 0);
        assert_true(m[0].lost > 0);
        assert_true(m[0].decisions >= 300 + m[0].lost);
        assert_true(m[0].fairness > 0 && m[0].fairness <= 1.0001);
        assert_true(m[0].utilisation > 0 && m[0].utilisation <= 1);
        /* The same seed, the same run. */
        assert_int_equal(m[0].lost, m[1].lost);
        assert_int_equal(m[0].bytes_in, m[1].bytes_in);
        assert_true(m[0].makespan_s == m[1].makespan_s);
        for (int i = 0; i < 2; i++)
                sim_measures_deinit(&m[i]);
        sim_workload_deinit(&w);
        sim_site_deinit(&site);
}

/* Jobs that need longer than any agent lives: a run that would never end says so. */
static void agents_that_only_fail_are_told(void **state)
{
        const struct sim_generate_options g = {.jobs = 5, .classes = 1, .clusters = 1, .run_ms = 600000};
        struct sim_random random;
        struct sim_site site;
        struct sim_workload w = {0};
        struct sim_measures m;
        struct err err = {""};
        struct sim_cluster *c;

        (void)state;
        sim_site_init(&site);
        c = sim_site_add(&site, STR("a"), 2, 8);
        c->mtbf_ms = 100;
        c->repair_ms = 1000;
        sim_site_finish(&site);
        sim_random_seed(&random, 1);
        sim_generate(&w, &g, &random);
        const struct sim_run_options o = {.site = &site, .workload = &w, .seed = 1, .lease_ms = 60000};
        assert_int_equal(sim_run(&o, &m, &err), 1);
        assert_true(str_starts(str_of(err.text), STR("the agents fail so often that")));
        sim_workload_deinit(&w);
        sim_site_deinit(&site);
}

/* Cuts that are shorter than the leases lose nothing, longer ones what their leases end. */
static void agents_are_cut_off(void **state)
{
        const struct sim_generate_options g = {
                .jobs = 500, .classes = 6, .clusters = 1, .run_ms = 600000, .input_bytes = 1000000};
        struct sim_random random;
        struct sim_site site;
        struct sim_workload w = {0};
        struct sim_measures m[2];
        struct sim_cluster *c;
        struct err err;

        (void)state;
        sim_site_init(&site);
        c = sim_site_add(&site, STR("a"), 8, 4);
        c->cut_ms = 1200000;
        c->cut_for_ms = 60000;
        sim_site_finish(&site);
        sim_random_seed(&random, 5);
        sim_generate(&w, &g, &random);
        for (int i = 0; i < 2; i++) {
                const struct sim_run_options o = {
                        .site = &site, .workload = &w, .seed = 1, .lease_ms = i ? 60000 : 86400000};

                assert_int_equal(sim_run(&o, &m[i], &err), 0);
        }
        assert_int_equal(m[0].revoked, 0);
        assert_int_equal(m[0].lost, 0);
        assert_true(m[0].lost_cpu_s == 0);
        assert_true(m[1].revoked > 0);
        assert_int_equal(m[1].lost, m[1].revoked);
        assert_true(m[1].lost_cpu_s > 0 && m[1].recovery_s > 0);
        for (int i = 0; i < 2; i++)
                sim_measures_deinit(&m[i]);
        sim_workload_deinit(&w);
        sim_site_deinit(&site);
}

/* Between two calls nothing changes: no slope in a curve is longer than the time between two samples. */
static void samples_are_as_it_was(void **state)
{
        struct sim_measures m = {.bytes_in = 0};

        (void)state;
        sim_measure_sample(&m, 0, 7);
        sim_measure_sample(&m, 500, 3);
        m.bytes_in = 100;
        sim_measure_sample(&m, 3000, 9); /* 0, 1, 2 and 3 s */
        assert_int_equal(m.sample_count, 4);
        assert_int_equal(m.samples[0].waiting, 7);
        assert_int_equal(m.samples[2].waiting, 3);
        assert_int_equal(m.samples[2].moved_bytes, 0);
        assert_int_equal(m.samples[3].waiting, 9);
        assert_int_equal(m.samples[3].moved_bytes, 100);
        for (int64_t at_ms = 4000; at_ms <= 86400000; at_ms += 777777)
                sim_measure_sample(&m, at_ms, (uint64_t)at_ms);
        for (size_t i = 0; i < m.sample_count; i++)
                assert_int_equal(m.samples[i].at_ms, (int64_t)i * m.sample_every_ms);
        assert_true((int64_t)m.sample_count * m.sample_every_ms > 85000000);
        assert_int_equal(m.samples[0].waiting, 7);
        sim_measures_deinit(&m);
}

static void run_gangs(const struct sim_generate_options *g, uint64_t seed, int64_t mtbf_ms,
                      int64_t reserve_after_ms, struct sim_measures *m)
{
        struct sim_random random;
        struct sim_site site;
        struct sim_workload w = {0};
        struct err err = {""};
        struct sim_cluster *c;

        sim_site_init(&site);
        c = sim_site_add(&site, STR("a"), 10, 8);
        c->mtbf_ms = mtbf_ms;
        c->repair_ms = 60000;
        sim_site_finish(&site);
        sim_random_seed(&random, seed);
        sim_generate(&w, g, &random);
        const struct sim_run_options o = {.site = &site,
                                          .workload = &w,
                                          .seed = seed,
                                          .lease_ms = 60000,
                                          .reserve_after_ms = reserve_after_ms,
                                          .reserve_idle = 1};
        if (sim_run(&o, m, &err))
                fail_msg("%s", err.text);
        sim_workload_deinit(&w);
        sim_site_deinit(&site);
}

/* Sets that need three of eight processors of all there are, among jobs that need one: what goes in between
 * never makes them wait longer than was planned. */
static void sets_start_when_it_was_planned(void **state)
{
        const struct sim_generate_options g = {.jobs = 1500,
                                               .classes = 45,
                                               .users = 4,
                                               .clusters = 1,
                                               .run_ms = 600000,
                                               .every_ms = 60000,
                                               .gangs = 20,
                                               .gang_size = 30};
        double waited = 0, would_wait = 0;
        uint64_t reserved = 0, backfilled = 0;

        (void)state;
        for (uint64_t seed = 1; seed <= 2; seed++) {
                struct sim_measures m, without;

                run_gangs(&g, seed, 0, 0, &m);
                run_gangs(&g, seed, 0, -1, &without);
                assert_int_equal(m.gangs_late, 0);
                assert_int_equal(m.gangs, without.gangs);
                assert_int_equal(without.gangs_reserved, 0);
                reserved += m.gangs_reserved;
                backfilled += m.backfilled;
                waited += m.gang_wait_s.mean;
                would_wait += without.gang_wait_s.mean;
                sim_measures_deinit(&m);
                sim_measures_deinit(&without);
        }
        assert_true(reserved > 10);
        assert_true(backfilled > 100);
        assert_true(waited < 0.9 * would_wait);
}

static void sets_outlive_their_agents(void **state)
{
        const struct sim_generate_options g = {.jobs = 300,
                                               .classes = 20,
                                               .clusters = 1,
                                               .run_ms = 60000,
                                               .every_ms = 10000,
                                               .input_bytes = 1000000,
                                               .gangs = 50,
                                               .gang_size = 12};
        struct sim_measures m;

        (void)state;
        run_gangs(&g, 1, 600000, 0, &m);
        assert_true(m.lost > 0);
        assert_true(m.gangs > 5);
        sim_measures_deinit(&m);
}

static void a_site_is_read(void **state)
{
        struct sim_site s;
        struct err err;

        (void)state;
        sim_site_init(&s);
        assert_int_equal(
                sim_site_read(
                        &s, "x.yaml",
                        STR("clusters:\n  - {name: a, agents: 3, cpus: 8, speed: 1.5, cache: 1G, mtbf: 1h,\n"
                            "     links: {b: {bandwidth: 5M, latency: 30ms}}}\n  - {name: b}\n"
                            "far: {bandwidth: 2M}\n"),
                        &err),
                0);
        sim_site_finish(&s);
        assert_int_equal(sim_site_agents(&s), 4);
        assert_int_equal(sim_site_cpus(&s), 25);
        assert_int_equal(s.clusters[0].cache_bytes, 1 << 30);
        assert_int_equal(s.clusters[0].mtbf_ms, 3600000);
        assert_int_equal(s.clusters[0].links[1].bytes_per_s, 5 << 20);
        assert_int_equal(s.clusters[0].links[1].latency_us, 30000);
        assert_int_equal(s.clusters[1].links[0].bytes_per_s, 2 << 20);
        assert_int_equal(s.clusters[1].links[1].bytes_per_s, 1000000000);
        sim_site_deinit(&s);
        sim_site_init(&s);
        assert_int_equal(sim_site_read(&s, "x.yaml",
                                       STR("clusters:\n  - name: a\n    links:\n      z: {latency: 1ms}\n"),
                                       &err),
                         -EINVAL);
        assert_string_equal(err.text, "x.yaml:4: a link to \"z\": there is no such cluster");
        sim_site_deinit(&s);
        sim_site_init(&s);
        assert_int_equal(sim_site_read(&s, "x.yaml", STR("clusters:\n  - name: a\n    cpu: 4\n"), &err),
                         -EINVAL);
        assert_non_null(strstr(err.text, "x.yaml:3:"));
        sim_site_deinit(&s);
}

static void a_plot_has_axes_and_a_legend(void **state)
{
        const double x[] = {1, 10, 100}, y[] = {5, 0, 1200};
        const struct sim_plot_series s[] = {{"a<b", x, y, 3}};
        const struct sim_plot_panel panels[] = {{"t", "time", "jobs", s, 1, true, false, true}};
        struct buf out BUF_CLEANUP = {0};

        (void)state;
        sim_plot_svg(&out, "one & two", panels, 1);
        assert_non_null(strstr(buf_z(&out), "one &amp; two"));
        assert_non_null(strstr(buf_z(&out), ">a&lt;b<"));
        assert_non_null(strstr(buf_z(&out), ">time<"));
        assert_non_null(strstr(buf_z(&out), ">100<"));
        assert_non_null(strstr(buf_z(&out), ">1k<"));
        assert_non_null(strstr(buf_z(&out), "</svg>"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_link_is_shared),
                cmocka_unit_test(latency_counts),
                cmocka_unit_test(values_are_summed_up),
                cmocka_unit_test(a_job_runs_where_its_result_is_soonest),
                cmocka_unit_test(children_run_when_parents_have_ended),
                cmocka_unit_test(what_fits_nowhere_is_refused),
                cmocka_unit_test(agents_fail_and_every_job_ends),
                cmocka_unit_test(agents_are_cut_off),
                cmocka_unit_test(samples_are_as_it_was),
                cmocka_unit_test(agents_that_only_fail_are_told),
                cmocka_unit_test(sets_start_when_it_was_planned),
                cmocka_unit_test(sets_outlive_their_agents),
                cmocka_unit_test(a_site_is_read),
                cmocka_unit_test(a_plot_has_axes_and_a_legend),
        };

        map_fix_order();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
