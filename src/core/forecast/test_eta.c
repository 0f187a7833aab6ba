/* Predictions of starts and ends, their errors, and quotes. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/test_help.h"

#define AD "[Cpus=2; TotalCpus=2; Memory=100; Disk=100]"

static const char *const minute[] = {"ExpectedRunTime", "60", NULL};
static const char *const wide[] = {"ExpectedRunTime", "100", "RequestCpus", "2", NULL};

/* Seconds from now; -1: unknown. */
static void expect_eta(struct core *c, uint64_t request, uint32_t member, int64_t start_s, int64_t end_s)
{
        struct core_eta e;

        eta_renew(c);
        assert_int_equal(core_eta(c, request, member, &e), 0);
        assert_int_equal(e.start_ms ? (e.start_ms - c->now_ms) / 1000 : -1, start_s);
        assert_int_equal(e.end_ms ? (e.end_ms - c->now_ms) / 1000 : -1, end_s);
}

static void test_waits_for_what_runs(void **state)
{
        struct core *c = *state;

        offer(c, "n1", AD);
        submit(c, NULL, 2, minute);
        expect_assigned(c, "n1/default 1 0-1\n");
        started(c, "n1", 1, 0);
        started(c, "n1", 1, 1);
        pass_time(c, 20000);
        expect_eta(c, 1, 0, -20, 40);
        submit(c, NULL, 1, minute);
        pass_time(c, 1000);
        expect_eta(c, 2, 0, 39, 99);
        submit(c, NULL, 1, wide); /* needs both */
        pass_time(c, 9000);
        expect_eta(c, 3, 0, 90, 190);
        expect_eta(c, 2, 0, 30, 90);
        pass_time(c, 50000); /* they should have ended, and have not: a quarter of their age more */
        expect_eta(c, 1, 0, -80, 20);
}

static void test_goes_around_a_wide_job(void **state)
{
        const char *const quick[] = {"ExpectedRunTime", "30", NULL};
        struct core *c = *state;

        offer(c, "n1", AD);
        submit(c, NULL, 1, minute);
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        submit(c, NULL, 1, wide);
        submit(c, NULL, 1, quick);
        submit(c, NULL, 1, minute);
        expect_eta(c, 2, 0, 60, 160);
        expect_eta(c, 3, 0, 0, 30);
        expect_eta(c, 4, 0, 160, 220); /* not 30: it would end with the other one, at 90 */
}

static void test_a_long_queue(void **state)
{
        struct core *c = *state;
        struct core_eta e, second;

        offer(c, "n1", "[Cpus=0; TotalCpus=10; Memory=100; Disk=100]");
        offer(c, "n2", AD);
        core_agent_away(c, "n2");
        submit(c, NULL, 1000, minute);
        submit(c, NULL, 1, minute);
        expect_eta(c, 1, 0, -1, -1); /* nothing runs that could end, and nothing is free */
        offer(c, "n1", "[Cpus=10; TotalCpus=10; Memory=100; Disk=100]");
        pass_time(c, 6000);
        expect_eta(c, 1, 0, 0, 60);
        eta_renew(c);
        assert_int_equal(core_eta(c, 1, 999, &e), 0);
        assert_in_range((e.start_ms - c->now_ms) / 1000, 5900, 6100); /* 1000 minutes on ten processors */
        eta_renew(c);
        assert_int_equal(core_eta(c, 2, 0, &second), 0);
        assert_in_range((second.start_ms - e.start_ms) / 1000, 0, 60);
        eta_renew(c);
        assert_int_equal(core_eta_request(c, 1, &e), 0);
        assert_in_range((e.end_ms - c->now_ms) / 1000, 5960, 6160);
        assert_true(e.end_most_ms >= e.end_ms); /* all jobs say a minute: nothing is known of errors yet */
}

static void test_nowhere(void **state)
{
        const char *const huge[] = {"RequestCpus", "64", NULL};
        struct core *c = *state;

        submit(c, NULL, 1, huge);
        expect_eta(c, 1, 0, -1, -1);
        offer(c, "n1", AD);
        pass_time(c, 10000);
        expect_eta(c, 1, 0, -1, -1);
        eta_renew(c);
        assert_int_equal(core_eta(c, 1, 1, &(struct core_eta){0}), CORE_UNKNOWN);
}

static void test_errors_are_kept(void **state)
{
        struct core *c = *state;
        struct core_eta_error e;

        offer(c, "n1", AD);
        submit(c, NULL, 1, wide);
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        submit(c, NULL, 1, wide);
        pass_time(c, 30000); /* the guess is made: in 70 s */
        core_eta_error(c, &e);
        assert_int_equal(e.count, 0);
        pass_time(c, 50000);
        ended(c, "n1", 1, 0); /* 20 s early */
        offer(c, "n1", AD);
        expect_assigned(c, "n1/default 2 0\n");
        started(c, "n1", 2, 0);
        core_eta_error(c, &e);
        assert_int_equal(e.count, 1);
        assert_int_equal(e.median_ms, 20000);
}

static void on_place(void *arg, const struct core_quote_place *p)
{
        struct core *c = arg;
        bool takes = p->why.verdict == CORE_FITS || p->why.verdict == CORE_BUSY;

        buf_printf(&bare_assigned, "%u %s %s", p->part, p->why.agent, takes ? "" : "no");
        if (takes)
                buf_printf(&bare_assigned, "%lld-%lld %llu %.1f",
                           (long long)(p->quote.start_ms - c->now_ms) / 1000,
                           (long long)(p->quote.end_ms - c->now_ms) / 1000,
                           (unsigned long long)p->quote.bytes_moved, p->quote.price);
        buf_char(&bare_assigned, '\n');
}

static void quote(struct core *c, const char *items, uint64_t rows, const char *const *attributes,
                  struct core_quote *ret)
{
        struct submission s = {.owner = STR("ann@lab"), .at_ms = 1700000000000};
        struct submission_part *p = submission_add_part(&s);

        for (; *attributes; attributes += 2) {
                bool late = attributes[0][0] == '~';

                submission_add_attribute(p, str_of(attributes[0] + late), str_of(attributes[1]), late);
        }
        if (items)
                submission_add_variable(p, STR("f"));
        p->items = str_of(items);
        p->rows = items ? rows : 1;
        p->steps = items ? 1 : rows;
        assert_int_equal(core_quote(c, &s, on_place, c, ret, NULL), 0);
        submission_deinit(&s);
}

static void test_quote(void **state)
{
        const char *const attributes[] = {"~TransferInput",
                                          "\"http://a/db,http://a/$(f)\"",
                                          "TransferInputSizes",
                                          "\"125000000,12500000\"",
                                          "ExpectedRunTime",
                                          "3600",
                                          "TransferOutputSizeMB",
                                          "0",
                                          "Requirements",
                                          "TARGET.Cpus > 1",
                                          NULL};
        struct core *c = *state;
        size_t bytes = core_bytes(c);
        struct core_quote q;

        offer(c, "n1", "[Cpus=2; TotalCpus=2; Memory=100; Disk=100; Price=0.5]");
        offer(c, "n2", "[Cpus=4; TotalCpus=4; Memory=100; Disk=100]");
        offer(c, "n3", "[Cpus=1; TotalCpus=1; Memory=100; Disk=100]");
        core_cache_delta(c, "n1", &(struct core_file){own_id_of("http://a/db"), 125000000}, 1, NULL, 0,
                         false);
        quote(c, "a\nb\nc\n", 3, attributes, &q);
        /* n1: two rounds, 1 s for the file of its own; n2: one, and 10 s for the common one */
        assert_string_equal(buf_z(&bare_assigned),
                            "0 n1 1-7202 37500000 1.5\n0 n2 11-3611 162500000 0.0\n0 n3 no\n");
        assert_int_equal(q.jobs, 3);
        assert_int_equal((q.start_ms - c->now_ms) / 1000, 1);
        assert_int_equal((q.end_ms - c->now_ms) / 1000, 3602);
        assert_int_equal(core_request_next(c, 0), 0); /* nothing is left of it */
        assert_int_equal(core_bytes(c), bytes);
        assert_null(core_check(c));
}

/* Jobs already queued go first. */
static void test_quote_waits_its_turn(void **state)
{
        struct core *c = *state;
        struct core_quote q;

        offer(c, "n1", AD);
        submit(c, NULL, 1, wide);
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        submit(c, NULL, 2, wide);
        quote(c, NULL, 1, minute, &q);
        assert_string_equal(buf_z(&bare_assigned), "0 n1 300-360 0 0.0\n");
}

/* Before any job has ended the run time of a job that gives none is unknown. */
static void test_nothing_is_known_at_first(void **state)
{
        const char *const silent[] = {NULL};
        struct core *c = *state;
        struct core_quote q;
        struct core_eta e;

        offer(c, "n1", AD);
        quote(c, NULL, 3, silent, &q);
        assert_true(q.start_ms == c->now_ms && q.end_ms == 0);
        buf_reset(&bare_assigned);
        submit(c, NULL, 2, silent);
        expect_assigned(c, "n1/default 1 0-1\n");
        started(c, "n1", 1, 0);
        started(c, "n1", 1, 1);
        pass_time(c, 10000);
        expect_eta(c, 1, 0, -10, -1);
        submit(c, NULL, 1, silent);
        expect_eta(c, 2, 0, -1, -1);
        assert_int_equal(core_eta_request(c, 1, &e), 0);
        assert_true(e.end_ms == 0 && e.end_most_ms == 0);
        quote(c, NULL, 1, silent, &q);
        assert_true(q.start_ms == 0 && q.end_ms == 0);
        ended(c, "n1", 1, 0);
        expect_eta(c, 1, 1, -10, 2); /* a quarter of its age */
        pass_time(c, 10000);
        expect_eta(c, 2, 0, 5, 15);
        quote(c, NULL, 1, silent, &q);
        assert_true(q.start_ms > c->now_ms && q.end_ms > q.start_ms);
}

/* The time of another program says nothing: starts that depend on the end of such jobs are not known, those
 * that do not are. An allowed time is one that is known. */
static void test_nothing_behind_unknown_times(void **state)
{
        static const char *const brief[] = {"Cmd", "\"true\"", NULL},
                                 *const lengthy[] = {"Cmd", "\"sleep\"", NULL},
                                 *const allowed[] = {
                                         "Cmd",  "\"sleep\"", "Args", "\"7\"", "AllowedExecuteDuration",
                                         "3600", NULL};
        struct core *c = *state;
        struct core_quote q;
        struct core_eta e;

        offer(c, "n1", AD);
        submit(c, NULL, 1, brief);
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        ended(c, "n1", 1, 0);
        offer(c, "n1", AD);
        quote(c, NULL, 6, lengthy, &q);
        assert_true(q.start_ms == c->now_ms && q.end_ms == 0);
        buf_reset(&bare_assigned);
        submit(c, NULL, 6, lengthy);
        expect_assigned(c, "n1/default 2 0-1\n");
        started(c, "n1", 2, 0);
        started(c, "n1", 2, 1);
        submit(c, NULL, 1, brief);
        pass_time(c, 6000);
        expect_eta(c, 2, 2, -1, -1);
        expect_eta(c, 3, 0, -1, -1);
        assert_int_equal(core_eta_request(c, 2, &e), 0);
        assert_true(e.start_ms == 0 && e.end_ms == 0);
        quote(c, NULL, 1, allowed, &q);
        assert_true(q.start_ms == 0 && q.end_ms == 0);
        offer(c, "n2", "[Cpus=1; TotalCpus=1; Memory=100; Disk=100; Price=2]");
        buf_reset(&bare_assigned);
        quote(c, NULL, 1, lengthy, &q); /* four of them have their turn before */
        assert_int_equal(q.start_ms, 0);
        submit(c, NULL, 1, (const char *const[]){"Cmd", "\"other\"", "JobPrio", "9", NULL});
        pass_time(c, 6000);
        expect_eta(c, 4, 0, 0, -1);
}

/* An allowed time is known where no run time is: the end by it, and when those behind start. */
static void test_an_allowed_time_is_known(void **state)
{
        static const char *const brief[] = {"Cmd", "\"true\"", NULL}, *const allowed[] = {
                                                                              "Cmd", "\"sleep\"",
                                                                              "AllowedExecuteDuration",
                                                                              "3600", NULL};
        struct core *c = *state;
        struct core_quote q;

        offer(c, "n1", "[Cpus=1; TotalCpus=1; Memory=100; Disk=100; Price=2]");
        submit(c, NULL, 1, brief);
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        ended(c, "n1", 1, 0);
        offer(c, "n1", "[Cpus=1; TotalCpus=1; Memory=100; Disk=100; Price=2]");
        quote(c, NULL, 2, allowed, &q);
        assert_true(q.start_ms == c->now_ms && q.end_ms == c->now_ms + 7200000);
        assert_true(q.price == 4);
        quote(c, NULL, 1, (const char *const[]){"Cmd", "\"sleep\"", NULL}, &q);
        assert_true(q.start_ms == c->now_ms && q.end_ms == 0 && isnan(q.price));
        buf_reset(&bare_assigned);
        submit(c, NULL, 2, allowed);
        expect_assigned(c, "n1/default 2 0\n");
        started(c, "n1", 2, 0);
        pass_time(c, 600000);
        expect_eta(c, 2, 0, -600, 3000);
        expect_eta(c, 2, 1, 3000, 6600);
}

/* A quote says the same in slices, while others submit; nobody sees what is quoted, not even its owner's
 * limit. */
static void test_quote_in_slices(void **state)
{
        struct core *c = *state;
        struct submission s = {.owner = STR("ann@lab"), .at_ms = 1700000000000, .lease_ms = 1000};
        struct submission_part *p = submission_add_part(&s);
        struct core_quote whole, sum;
        struct core_draft *d;
        struct core_quoting *q;
        unsigned slices = 0;
        bool more;

        core_limit_set(c, STR("queued/*"), 1200);
        submission_add_attribute(p, STR("ExpectedRunTime"), STR("60"), false);
        p->steps = 1000;
        for (unsigned i = 0; i < 250; i++) {
                char name[8];

                snprintf(name, sizeof(name), "n%u", i);
                offer(c, name, "[Cpus=0; TotalCpus=2; Memory=100; Disk=100]");
        }
        offer(c, "n7", AD);
        assert_int_equal(core_quote(c, &s, on_place, c, &whole, NULL), 0);
        assert_int_equal(core_draft_new(c, &s, CORE_DRAFT_QUOTE, &d, NULL), 0);
        assert_int_equal(core_draft_some(d, &more, NULL), 0);
        assert_false(more);
        q = core_quote_new(d);
        for (; core_quote_some(q, on_place, c); slices++) {
                assert_true(test_submit(c, "ann@lab", 1, wide));
                assert_true(core_request_next(c, 0) && core_request_last(c) < 100);
                core_tick(c);
                assert_null(core_check(c));
        }
        assert_in_range(slices, 3, 90);
        core_quote_sum(q, &sum);
        core_quote_free(q);
        assert_int_equal(sum.jobs, 1000);
        assert_int_equal(sum.start_ms, whole.start_ms);
        assert_int_equal(sum.end_ms, whole.end_ms);
        assert_null(core_check(c));
        submission_deinit(&s);
        buf_reset(&bare_assigned);
}

/* Jobs come and go and classes are made anew during a simulation; an early query gets as good an answer as a
 * query at its end. */
static void test_slices(void **state)
{
        struct core *c = *state;
        uint32_t look = 0;
        unsigned slices = 0;
        struct core_eta e;

        offer(c, "n1", "[Cpus=0; TotalCpus=10; Memory=100000; Disk=100]");
        for (unsigned i = 0; i < 200; i++) {
                char memory[16];
                const char *const pairs[] = {"ExpectedRunTime", "60", "RequestMemory", memory, NULL};

                snprintf(memory, sizeof(memory), "%u", 100 + i);
                submit(c, NULL, 1 + i % 7, pairs);
        }
        offer(c, "n1", "[Cpus=10; TotalCpus=10; Memory=100000; Disk=100]");
        pass_time(c, 6000);
        pass_time(c, 6000); /* what the first one found is stale */
        for (; core_eta_some(c, &look); slices++) {
                struct core_command cmd = {.action = slices % 2 ? CORE_ACT_REMOVE : CORE_ACT_HOLD,
                                           .request = 190 - 3 * slices};
                uint64_t n;

                assert_int_equal(core_act(c, &cmd, &n, NULL), 0);
                submit(c, NULL, 3, wide);
                if (slices == 1)
                        core_rekey(c);
                assert_null(core_check(c));
        }
        assert_in_range(slices, 2, 30);
        for (uint64_t id = 0; (id = core_request_next(c, id)) && id <= 200;) {
                assert_int_equal(core_eta(c, id, 0, &e), 0);
                if (request_idle_has(request_find(c, id), 0))
                        assert_true(e.start_ms && e.end_ms >= e.start_ms + 60000);
        }
        for (uint64_t id = 1; id <= 200; id++) {
                struct core_command cmd = {.action = CORE_ACT_REMOVE, .request = id};
                uint64_t n;

                if (id == 100) { /* somebody looks, and nothing is left of what he looks at */
                        pass_time(c, 30000);
                        pass_time(c, 6000);
                        look = 0;
                        assert_true(core_eta_some(c, &look));
                }
                core_act(c, &cmd, &n, NULL);
        }
        assert_null(core_check(c));
        eta_renew(c);
        assert_null(core_check(c));
}

/* Nor does a job begin before the batch system behind a place says; it says so until it says something else.
 */
static void test_quote_of_a_batch_system(void **state)
{
        struct core *c = *state;
        struct core_quote q;
        struct core_eta eta;

        offer(c, "n1", "[Cpus=2; TotalCpus=2; Memory=100; Disk=100; QueueWait=600]");
        quote(c, NULL, 1, minute, &q);
        assert_string_equal(buf_z(&bare_assigned), "0 n1 600-660 0 0.0\n");
        buf_reset(&bare_assigned);
        submit(c, NULL, 1, minute);
        expect_assigned(c, "n1/default 1 0\n");
        eta_renew(c);
        assert_int_equal(core_eta(c, 1, 0, &eta), 0);
        assert_int_equal((eta.start_ms - c->now_ms) / 1000, 600);
        assert_int_equal((eta.end_ms - c->now_ms) / 1000, 660);
        started(c, "n1", 1, 0);
        pass_time(c, 1000);
        eta_renew(c);
        assert_int_equal(core_eta(c, 1, 0, &eta), 0);
        assert_true(eta.end_ms - c->now_ms <= 60000);
        offer(c, "n1", "[Cpus=2; TotalCpus=2; Memory=100; Disk=100; QueueWait=-3]");
        pass_time(c, 6000); /* the forecast is stale */
        quote(c, NULL, 1, minute, &q);
        assert_true(q.start_ms - c->now_ms < 60000);
}

/* One that cannot say when it would begin a job it takes for its queue: nobody knows, also of what waits
 * there, until it has room. Another place is quoted, and chosen, first. */
static void test_quote_of_a_full_batch_system(void **state)
{
        struct core *c = *state;
        struct core_quote q;
        struct core_eta eta;

        offer(c, "n1", "[Cpus=2; TotalCpus=2; Memory=100; Disk=100; QueueWaitUnknown=true]");
        quote(c, NULL, 1, minute, &q);
        assert_true(q.start_ms == 0 && q.end_ms == 0);
        buf_reset(&bare_assigned);
        submit(c, NULL, 1, minute);
        expect_assigned(c, "n1/default 1 0\n");
        eta_renew(c);
        assert_int_equal(core_eta(c, 1, 0, &eta), 0);
        assert_true(eta.start_ms == 0 && eta.end_ms == 0);
        started(c, "n1", 1, 0);
        eta_renew(c);
        assert_int_equal(core_eta(c, 1, 0, &eta), 0);
        assert_true(eta.start_ms > 0 && eta.end_ms - c->now_ms <= 60000);
        offer(c, "n2", "[Cpus=2; TotalCpus=2; Memory=100; Disk=100]");
        quote(c, NULL, 1, minute, &q);
        assert_true(q.start_ms > 0 && q.start_ms - c->now_ms < 1000);
        buf_reset(&bare_assigned);
        submit(c, NULL, 1, minute);
        expect_assigned(c, "n2/default 2 0\n");
        offer(c, "n1", "[Cpus=2; TotalCpus=2; Memory=100; Disk=100]");
        pass_time(c, 6000);
        core_withdraw(c, "n2", "default");
        quote(c, NULL, 1, minute, &q);
        assert_true(q.start_ms > 0);
}

/* Sets start when there is room for the last of their jobs, and never where there is not. */
static void test_sets(void **state)
{
        static const char *const three[] = {"ExpectedRunTime", "60", "GangSize", "3", NULL};
        static const char *const at_one[] = {"ExpectedRunTime", "60",       "GangSize", "3",
                                             "GangWithin",      "\"node\"", NULL};
        static const char *const ten[] = {"ExpectedRunTime", "600", NULL};
        struct core *c = *state;
        struct core_quote q;

        offer(c, "n1", AD);
        submit(c, NULL, 1, ten);
        expect_assigned(c, "n1/default 1 0\n");
        started(c, "n1", 1, 0);
        submit(c, NULL, 6, three);
        expect_eta(c, 2, 0, -1, -1);
        offer(c, "n2", "[Cpus=1; TotalCpus=1; Memory=100; Disk=100]");
        pass_time(c, 6000);
        expect_eta(c, 2, 0, 594, 654);
        expect_eta(c, 2, 2, 594, 654);
        expect_eta(c, 2, 3, 654, 714);
        expect_eta(c, 2, 5, 654, 714);
        quote(c, NULL, 3, at_one, &q);
        assert_true(q.start_ms == 0 && q.end_ms == 0);
        quote(c, NULL, 3, three, &q);
        assert_in_range((q.start_ms - c->now_ms) / 1000, 600, 800);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_waits_for_what_runs),
                TEST(test_goes_around_a_wide_job),
                TEST(test_a_long_queue),
                TEST(test_nowhere),
                TEST(test_errors_are_kept),
                TEST(test_quote),
                TEST(test_quote_waits_its_turn),
                TEST(test_quote_of_a_batch_system),
                TEST(test_quote_of_a_full_batch_system),
                TEST(test_nothing_is_known_at_first),
                TEST(test_nothing_behind_unknown_times),
                TEST(test_an_allowed_time_is_known),
                TEST(test_slices),
                TEST(test_quote_in_slices),
                TEST(test_sets),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
