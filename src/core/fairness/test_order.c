/* The order of classes, and limits that stop a job at all places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/model/precedence.h"
#include "core/test_help.h"

static unsigned char next_uuid = 100;

/* A request of `jobs` jobs; attributes as "Name = text" lines. */
static uint64_t submit_lines(struct core *c, const char *owner, unsigned jobs, const char *lines)
{
        struct submission s = {.owner = str_of(owner), .uuid = {++next_uuid}};
        struct submission_part *p = submission_add_part(&s);
        struct str rest = str_of(lines), line;
        uint64_t id = 0;
        bool existing;
        struct err err;

        p->steps = jobs;
        submission_add_attribute(p, STR("Cmd"), STR("\"/bin/true\""), false);
        while (str_cut(&rest, '\n', &line)) {
                ptrdiff_t at = str_find(line, '=');

                if (at > 0)
                        submission_add_attribute(p, str_trim(str_head(line, (size_t)at)),
                                                 str_trim(str_skip(line, (size_t)at + 1)), false);
        }
        if (core_submit(c, &s, false, &id, &existing, &err))
                fail_msg("%s", err.text);
        submission_deinit(&s);
        return id;
}

static void offer_cpus(struct core *c, const char *agent, unsigned cpus, const char *more)
{
        struct buf ad = {0};
        struct core_offer o = {.agent = agent, .queue = "q", .serial = 1, .jobs_max = cpus};
        struct err err;

        core_agent_connected(c, agent);
        buf_printf(&ad, "[ Cpus = %u; Memory = 100000; Disk = 100000; %s ]", cpus, more);
        o.ad = buf_view(&ad);
        if (core_offer(c, &o, &err))
                fail_msg("%s", err.text);
        buf_deinit(&ad);
        core_match(c);
}

/* Returns the assignments since the last call. */
static const char *assigned(void)
{
        static struct buf text;

        buf_reset(&text);
        buf_str(&text, buf_view(&bare_assigned));
        buf_reset(&bare_assigned);
        return buf_z(&text);
}

static void finish(struct core *c, const char *agent, uint64_t request, uint32_t member)
{
        struct core_result r = {.request = request, .member = member, .fence = 1, .outcome = CORE_EXITED};

        assert_true(core_result(c, agent, &r));
        core_match(c);
}

static void sound(struct core *c)
{
        const char *bad = core_check(c);

        if (bad)
                fail_msg("%s", bad);
}

static void on_limit(void *arg, const struct core_limit *l)
{
        buf_printf(arg, "%s %lld/%lld %llu\n", l->name, (long long)l->used, (long long)l->max,
                   (unsigned long long)l->waiting);
}

static void test_a_limit_is_drawn_on_and_waited_for(void **state)
{
        struct core *c = *state;
        struct core_limit l;
        struct buf text = {0};
        int64_t units;

        core_limit_set(c, STR("sw"), 5);
        submit_lines(c, "ann@local", 3, "ConcurrencyLimits = \"SW:2\"");
        submit_lines(c, "bob@local", 3, "ConcurrencyLimits = \"sw, db\"");
        offer_cpus(c, "n1", 10, "");
        assert_string_equal(assigned(), "n1/q 1 0\nn1/q 2 0\nn1/q 1 1\n"); /* in turns */
        assert_int_equal(core_job_limit(c, 1, 2, &l, &units), 0);
        assert_string_equal(l.name, "sw");
        assert_int_equal(units, 2);
        core_limits(c, on_limit, &text);
        assert_non_null(strstr(buf_z(&text), "db 1/-1 0\n"));
        assert_non_null(strstr(buf_z(&text), "sw 5/5 3\n"));
        finish(c, "n1", 2, 0); /* one unit is not enough for ann's, and is for bob's */
        assert_string_equal(assigned(), "n1/q 2 1\n");
        finish(c, "n1", 1, 0);
        assert_string_equal(assigned(), "n1/q 1 2\n");
        assert_int_equal(core_job_limit(c, 1, 2, &l, &units), CORE_UNKNOWN);
        sound(c);
        buf_deinit(&text);
}

static void test_a_limit_may_depend_on_the_place(void **state)
{
        struct core *c = *state;

        core_limit_set(c, STR("rack1"), 1);
        core_limit_set(c, STR("rack2"), 2);
        submit_lines(c, "ann@local", 9, "ConcurrencyLimits = strcat(\"rack\", TARGET.Rack)");
        offer_cpus(c, "n1", 8, "Rack = 1");
        offer_cpus(c, "n2", 8, "Rack = 2");
        offer_cpus(c, "n3", 1, "Rack = \"nonsense:\"");
        assert_string_equal(assigned(), "n1/q 1 0\nn2/q 1 1-2\n");
        sound(c);
}

static void test_what_names_no_limit_is_refused(void **state)
{
        struct core *c = *state;
        struct submission s = {.owner = STR("ann@local"), .uuid = {99}};
        struct submission_part *p = submission_add_part(&s);
        struct err err;
        uint64_t id;
        bool existing;

        submission_add_attribute(p, STR("ConcurrencyLimits"), STR("\"sw:0\""), false);
        assert_int_equal(core_submit(c, &s, false, &id, &existing, &err), CORE_INVALID);
        assert_non_null(strstr(err.text, "concurrency_limits"));
        submission_deinit(&s);
}

static void test_a_user_has_so_many_at_a_time(void **state)
{
        struct core *c = *state;
        struct submission s = {.owner = STR("ann@local"), .uuid = {99}};
        struct submission_part *p = submission_add_part(&s);
        struct err err;
        uint64_t id;
        bool existing;

        core_limit_set(c, STR("user/*"), 2);
        core_limit_set(c, STR("user/bob@local"), 3);
        core_limit_set(c, STR("queued/*"), 5);
        submit_lines(c, "ann@local", 4, "");
        submit_lines(c, "bob@local", 4, "");
        offer_cpus(c, "n1", 10, "");
        assert_string_equal(assigned(), "n1/q 1 0\nn1/q 2 0\nn1/q 1 1\nn1/q 2 1\nn1/q 2 2\n");
        p->steps = 2;
        submission_add_attribute(p, STR("Cmd"), STR("\"/bin/true\""), false);
        assert_int_equal(core_submit(c, &s, false, &id, &existing, &err), CORE_TOO_MANY);
        assert_non_null(strstr(err.text, "has 4 jobs in the queue and may have 5"));
        finish(c, "n1", 1, 1);
        assert_string_equal(assigned(), "n1/q 1 2\n");
        assert_int_equal(core_submit(c, &s, false, &id, &existing, &err), 0);
        sound(c);
        submission_deinit(&s);
}

/* ---- fair share */

/* Returns how many jobs of each request were assigned since the last call: "60 40". */
static const char *given(unsigned requests)
{
        static struct buf text;
        unsigned long long count[64] = {0}, id;
        struct str rest = buf_view(&bare_assigned), line;

        assert_true(requests < 64);
        while (rest.n && str_cut(&rest, '\n', &line)) {
                struct set members = {0};
                struct str word;
                char number[24];

                if (line.n == 0)
                        continue;
                str_word(&line, &word);
                str_word(&line, &word);
                snprintf(number, sizeof(number), STR_FMT, STR_ARG(word));
                id = strtoull(number, NULL, 10);
                assert_true(id > 0 && id <= requests);
                assert_int_equal(set_parse(&members, str_trim(line), 1 << 20), 0);
                count[id - 1] += set_count(&members);
                set_deinit(&members);
        }
        buf_reset(&text);
        for (unsigned i = 0; i < requests; i++)
                buf_printf(&text, "%s%llu", i ? " " : "", count[i]);
        buf_reset(&bare_assigned);
        return buf_z(&text);
}

static void test_accounts_share_a_pass(void **state)
{
        struct core *c = *state;
        const struct str ann[] = {STR("ann@local")}, bob[] = {STR("bob@local")};

        assert_int_equal(core_account_set(c, STR("physics"), 60, ann, 1, NULL), 0);
        assert_int_equal(core_account_set(c, STR("bio"), 40, bob, 1, NULL), 0);
        submit_lines(c, "ann@local", 500, "");
        submit_lines(c, "bob@local", 500, "");
        offer_cpus(c, "n1", 100, "");
        assert_string_equal(given(2), "60 40");
        offer_cpus(c, "n2", 50, "");
        assert_string_equal(given(2), "30 20");
        sound(c);
}

static void test_a_group_is_one_however_many_come(void **state)
{
        struct core *c = *state;
        const struct str ann[] = {STR("ann@local")}, all[] = {STR("*")};

        assert_int_equal(core_account_set(c, STR("one"), 1, ann, 1, NULL), 0);
        assert_int_equal(core_account_set(c, STR("many"), 1, all, 1, NULL), 0);
        submit_lines(c, "ann@local", 500, "");
        for (unsigned i = 0; i < 5; i++) {
                char owner[16];

                snprintf(owner, sizeof(owner), "u%u@local", i);
                submit_lines(c, owner, 500, "");
        }
        offer_cpus(c, "n1", 100, "");
        assert_string_equal(given(6), "50 10 10 10 10 10");
        sound(c);
}

static void test_a_user_with_many_classes_has_no_more_turns(void **state)
{
        struct core *c = *state;
        char line[40];
        long bobs;

        for (unsigned i = 0; i < 40; i++) {
                snprintf(line, sizeof(line), "RequestMemory = %u", i + 1);
                submit_lines(c, "ann@local", 100, line);
        }
        submit_lines(c, "bob@local", 500, "");
        offer_cpus(c, "n1", 200, "");
        bobs = strtol(strrchr(given(41), ' '), NULL, 10); /* she is given six at a time */
        assert_true(bobs >= 94 && bobs <= 106);
        sound(c);
}

/* With fewer classes an account's turns are shorter: a turn in progress must end then, or matching never
 * would. */
static void test_a_turn_that_became_shorter_ends(void **state)
{
        struct core *c = *state;
        struct core_command hold = {.action = CORE_ACT_HOLD};
        uint64_t n;

        submit_lines(c, "bob@lab", 1, "RequestCpus = 64");
        for (int i = 1; i <= 8; i++) {
                char lines[64];

                snprintf(lines, sizeof(lines), "RequestCpus = 1\nRequestMemory = %d", i);
                submit_lines(c, "ann@lab", 2, lines);
        }
        offer_cpus(c, "n1", 1, "TotalCpus = 1");
        assert_string_equal(assigned(), "n1/q 2 0\n");
        for (hold.request = 8; hold.request <= 9; hold.request++)
                assert_int_equal(core_act(c, &hold, &n, NULL), 0);
        submit_lines(c, "ann@lab", 1, "RequestCpus = 1\nRequestMemory = 99");
        for (int i = 0; i < 100 && core_match(c); i++)
                ;
        assert_false(core_match(c));
        assert_null(core_check(c));
}

static uint64_t ahead_of(struct core *c, uint64_t request, uint32_t member)
{
        struct core_priority p;

        assert_int_equal(core_job_priority(c, request, member, &p), 0);
        assert_false(p.ahead_more);
        return p.ahead;
}

/* Jobs also pass others of their own class, of which many requests may exist, and of their own request. */
static void test_jobs_ahead_are_counted_one_by_one(void **state)
{
        struct core *c = *state;
        struct core_command prio = {.action = CORE_ACT_PRIORITY, .request = 3, .value = 9};
        uint64_t n;

        for (int i = 0; i < 4; i++)
                submit_lines(c, "ann@lab", 10, "");
        submit_lines(c, "ann@lab", 10, "RequestCpus = 2");
        assert_int_equal(ahead_of(c, 1, 0), 0);
        assert_int_equal(ahead_of(c, 1, 7), 7);
        assert_int_equal(ahead_of(c, 4, 5), 35);
        assert_int_equal(ahead_of(c, 5, 9), 49);
        assert_int_equal(core_act(c, &prio, &n, NULL), 0);
        assert_int_equal(ahead_of(c, 3, 1), 1);
        assert_int_equal(ahead_of(c, 1, 0), 10);
        assert_int_equal(ahead_of(c, 5, 0), 40);
}

static void test_what_was_used_counts(void **state)
{
        struct core *c = *state;
        struct core_priority p;

        submit_lines(c, "ann@local", 8, "");
        offer_cpus(c, "n1", 8, "");
        assert_string_equal(given(1), "8");
        pass_time(c, 86400000); /* eight processors for a day, of a half-life of seven */
        for (unsigned i = 0; i < 8; i++)
                finish(c, "n1", 1, i);
        submit_lines(c, "ann@local", 50, "");
        submit_lines(c, "bob@local", 50, "");
        offer_cpus(c, "n2", 10, "");
        assert_string_equal(given(3), "0 5 5"); /* her mean of late is under one processor */
        assert_int_equal(core_job_priority(c, 2, 49, &p), 0);
        assert_true(p.lately_cpus > 0.7 && p.lately_cpus < 0.8 && p.part == 0.5 && p.now_cpus == 5);
        assert_true(p.fair_share_points < -11 && p.fair_share_points > -12);
        sound(c);
}

static void test_priority_is_among_ones_own_and_acts_at_once(void **state)
{
        struct core *c = *state;
        struct core_command prio = {.action = CORE_ACT_PRIORITY, .request = 2, .value = 9};
        uint64_t n;

        submit_lines(c, "bob@local", 5, "");
        submit_lines(c, "ann@local", 5, "");
        submit_lines(c, "ann@local", 5, "JobPrio = 5");
        offer_cpus(c, "n1", 4, "");
        assert_string_equal(given(3), "2 0 2");
        assert_int_equal(core_act(c, &prio, &n, NULL), 0);
        offer_cpus(c, "n2", 4, "");
        assert_string_equal(given(3), "2 2 0");
        sound(c);
}

static void test_quality_of_service(void **state)
{
        struct core *c = *state;
        const struct str ann[] = {STR("ann@local")};
        struct submission s = {.owner = STR("bob@local"), .uuid = {99}};
        struct submission_part *p = submission_add_part(&s);
        struct err err;
        uint64_t id;
        bool existing;

        core_qos_set(c, STR("urgent"), 1000, ann, 1);
        core_limit_set(c, STR("qos/urgent"), 6);
        submit_lines(c, "bob@local", 10, "");
        submit_lines(c, "ann@local", 10, "");
        submit_lines(c, "ann@local", 10, "QOS = \"urgent\"");
        offer_cpus(c, "n1", 5, "");
        assert_string_equal(given(3), "0 0 5");
        offer_cpus(c, "n2", 5, "");
        assert_string_equal(given(3), "4 0 1"); /* six at a time; ann has had hers */
        submission_add_attribute(p, STR("QOS"), STR("\"urgent\""), false);
        assert_int_equal(core_submit(c, &s, false, &id, &existing, &err), CORE_INVALID);
        assert_non_null(strstr(err.text, "this user is not listed there"));
        submission_deinit(&s);
        sound(c);
}

static void test_nice_users_are_last(void **state)
{
        struct core *c = *state;

        submit_lines(c, "ann@local", 10, "AcctGroup = \"nice-user\"");
        submit_lines(c, "bob@local", 6, "");
        offer_cpus(c, "n1", 8, "");
        assert_string_equal(given(2), "2 6");
        sound(c);
}

static void test_parked_offers_are_shared_too(void **state)
{
        struct core *c = *state;

        offer_cpus(c, "n1", 6, "");
        offer_cpus(c, "n2", 6, "");
        submit_lines(c, "ann@local", 50, "");
        submit_lines(c, "bob@local", 50, "Rank = TARGET.Cpus");
        submit_lines(c, "eve@local", 50, "");
        core_match(c);
        assert_string_equal(given(3), "4 4 4");
        sound(c);
}

/* Members are assigned to classes by the attributes that matter, in any order; other attributes split no
 * class. */
static void test_members_in_classes(void **state)
{
        const char *const attributes[] = {"~RequestMemory",
                                          "$(f)",
                                          "~Arguments",
                                          "\"$(Process) $(f)\"",
                                          "Requirements",
                                          "TARGET.A == B",
                                          "~B",
                                          "$INT(f) / 20",
                                          NULL};
        const char *const by_number[] = {"~RequestMemory", "$(f)", "Requirements", "TARGET.A == ProcId",
                                         NULL};
        const char *const by_priority[] = {"~JobPrio", "X", "~X", "$(f)", NULL};
        const char *const rows = "10\n20\n10\n30\n20\n10\n";
        struct core *c = *state;
        struct request *r = submit(c, rows, 6, attributes);

        assert_int_equal(r->bucket_count, 3);
        for (uint32_t m = 0; m < 6; m++) {
                static const int64_t memory[] = {10, 20, 10, 30, 20, 10};

                assert_int_equal(request_bucket(c, r, m)->job_class->memory_mib, memory[m]);
        }
        assert_int_equal(submit(c, rows, 6, by_number)->bucket_count, 6);
        r = submit(c, rows, 6, by_priority);
        assert_int_equal(r->bucket_count, 3);
        assert_int_equal(request_bucket(c, r, 4)->priority, 20);
        sound(c);
}

/* A new name in an offer makes all classes anew, in slices; no job is matched by the old ones. */
static void test_classes_are_made_again_in_slices(void **state)
{
        struct core *c = *state;
        const char *given_to;
        unsigned turns = 1;

        c->config.rekey_slice = 4;
        for (int i = 0; i < 40; i++)
                submit_lines(c, "ann@local", 1,
                             i % 2 ? "RequestMemory = 1\nColour = 1" : "RequestMemory = 1\nColour = 2");
        assert_int_equal(map_count(c->classes->by_key), 1);
        offer_cpus(c, "n1", 100, "Requirements = TARGET.Colour == 2");
        assert_string_equal(assigned(), "");
        for (; core_match(c); turns++)
                sound(c);
        assert_in_range(turns, 8, 12);
        assert_int_equal(map_count(c->classes->by_key), 2);
        given_to = assigned();
        assert_non_null(strstr(given_to, "n1/q 1 0\n"));
        assert_non_null(strstr(given_to, "n1/q 39 0\n"));
        assert_null(strstr(given_to, "n1/q 2 0\n"));
        sound(c);
}

/* The number of different classes of an account's waiting jobs is limited; more jobs of an existing class
 * are accepted, and started jobs do not count. */
static void test_an_account_has_so_many_classes(void **state)
{
        static const char *const memory[] = {"1", "2", "3", "4"};
        struct core *c = *state;

        c->config.account_classes_max = 3;
        for (int i = 0; i < 4; i++) {
                const char *const attributes[] = {"RequestMemory", memory[i], NULL};

                assert_int_equal(test_submit(c, "ann@local", 2, attributes), i < 3 ? i + 1 : 0);
                if (i == 3) {
                        assert_int_equal(test_submit(c, "bob@local", 2, attributes), 4);
                        sound(c);
                        offer_cpus(c, "n1", 10, "");
                        assert_int_equal(test_submit(c, "ann@local", 2, attributes), 5);
                }
        }
        assert_int_equal(test_submit(c, "ann@local", 2, (const char *const[]){"RequestMemory", "2", NULL}),
                         6);
        sound(c);
}

/* A user's short jobs pass his long ones, but not for ever, and his priorities go before. */
static void test_short_jobs_pass_long_ones(void **state)
{
        struct core *c = *state;
        uint64_t lengthy = submit_lines(c, "ann@lab", 1, "AllowedExecuteDuration = 7200\n"), brief, other,
                 late;

        brief = submit_lines(c, "ann@lab", 1, "AllowedExecuteDuration = 900\n");
        other = submit_lines(c, "ann@lab", 1, "AllowedExecuteDuration = 600\nJobPrio = -1\n");
        late = submit_lines(c, "ann@lab", 1, "AllowedExecuteDuration = 300\nJobPrio = 1\n");
        assert_int_equal(order_due_s(1000000, 600000), 1000);
        assert_int_equal(order_due_s(1000000, 660000), 1360);
        assert_int_equal(order_due_s(1000000, INT64_MAX), 1000 + 7 * 86400);
        assert_int_equal(order_due_s(-5, 0), 0);
        for (unsigned i = 0; i < 4; i++) {
                const uint64_t next[] = {late, brief, lengthy, other};
                char agent[8], text[64];

                snprintf(agent, sizeof(agent), "a%u", i);
                snprintf(text, sizeof(text), "%s/q %llu 0\n", agent, (unsigned long long)next[i]);
                offer_cpus(c, agent, 1, "");
                assert_string_equal(assigned(), text);
        }
}

/* Carl has eight processors and ann four or two; one of her jobs has waited for some hours when bob, who has
 * nothing, comes. */
static const char *first_after(struct core *c, unsigned anns, int64_t hours)
{
        submit_lines(c, "carl@lab", 8, "");
        offer_cpus(c, "a1", 8, "");
        submit_lines(c, "ann@lab", anns + 1, "");
        offer_cpus(c, "a2", anns, "");
        assigned();
        pass_time(c, hours * 3600000);
        submit_lines(c, "bob@lab", 1, "");
        offer_cpus(c, "a3", 1, "");
        sound(c);
        return assigned();
}

static void test_a_wait_of_hours_makes_up_for_little_use(void **state)
{
        assert_string_equal(first_after(*state, 2, 12), "a3/q 2 2\n");
}

static void test_but_not_a_shorter_one(void **state)
{
        assert_string_equal(first_after(*state, 2, 6), "a3/q 3 0\n");
}

static void test_nor_any_wait_for_much_use(void **state)
{
        assert_string_equal(first_after(*state, 4, 20), "a3/q 3 0\n");
}

/* However long another job of hers has waited, and whoever stands between. */
static void test_waiting_leaves_a_users_priorities(void **state)
{
        struct core *c = *state;
        struct core_priority p;

        submit_lines(c, "carl@lab", 8, "");
        offer_cpus(c, "a1", 8, "");
        submit_lines(c, "ann@lab", 1, "JobPrio = -1\nRequestMemory = 10");
        pass_time(c, 5 * 3600000);
        submit_lines(c, "bob@lab", 1, "");
        pass_time(c, 5 * 3600000);
        assert_int_equal(core_job_priority(c, 2, 0, &p), 0);
        assert_true(p.waiting_h > 4.9 && p.waiting_h < 5.1); /* an hour's run is taken for what may be long */
        assert_true(p.waiting_points > 8 * 4.9 / 24 && p.waiting_points < 8 * 5.1 / 24);
        submit_lines(c, "ann@lab", 1, "JobPrio = 5\nRequestMemory = 20");
        assigned();
        for (unsigned i = 0; i < 3; i++) {
                char agent[8];

                snprintf(agent, sizeof(agent), "b%u", i);
                offer_cpus(c, agent, 1, "");
        }
        assert_string_equal(assigned(), "b0/q 3 0\nb1/q 4 0\nb2/q 2 0\n");
        sound(c);
}

static void test_waiting_leaves_priorities_of_later_jobs(void **state)
{
        struct core *c = *state;

        submit_lines(c, "carl@lab", 8, "");
        offer_cpus(c, "a1", 8, "");
        submit_lines(c, "bob@lab", 1, "RequestMemory = 200000"); /* there is no place for him */
        submit_lines(c, "ann@lab", 1, "JobPrio = -1\nRequestMemory = 10");
        pass_time(c, 5 * 3600000);
        submit_lines(c, "ann@lab", 1, "JobPrio = 5\nRequestMemory = 20");
        core_match(c);
        pass_time(c, 10000);
        submit_lines(c, "ann@lab", 1, "JobPrio = 5\nRequestMemory = 30");
        assigned();
        for (unsigned i = 0; i < 3; i++) {
                char agent[8];

                snprintf(agent, sizeof(agent), "b%u", i);
                offer_cpus(c, agent, 1, "");
        }
        assert_string_equal(assigned(), "b0/q 4 0\nb1/q 5 0\nb2/q 3 0\n");
        sound(c);
}

int main(void)
{
#define STORY(f) cmocka_unit_test_setup_teardown(f, bare_core, bare_core_free)
        const struct CMUnitTest tests[] = {
                STORY(test_a_limit_is_drawn_on_and_waited_for),
                STORY(test_a_limit_may_depend_on_the_place),
                STORY(test_what_names_no_limit_is_refused),
                STORY(test_a_user_has_so_many_at_a_time),
                STORY(test_accounts_share_a_pass),
                STORY(test_a_group_is_one_however_many_come),
                STORY(test_a_user_with_many_classes_has_no_more_turns),
                STORY(test_a_turn_that_became_shorter_ends),
                STORY(test_jobs_ahead_are_counted_one_by_one),
                STORY(test_what_was_used_counts),
                STORY(test_priority_is_among_ones_own_and_acts_at_once),
                STORY(test_quality_of_service),
                STORY(test_nice_users_are_last),
                STORY(test_short_jobs_pass_long_ones),
                STORY(test_a_wait_of_hours_makes_up_for_little_use),
                STORY(test_but_not_a_shorter_one),
                STORY(test_nor_any_wait_for_much_use),
                STORY(test_waiting_leaves_a_users_priorities),
                STORY(test_waiting_leaves_priorities_of_later_jobs),
                STORY(test_parked_offers_are_shared_too),
                STORY(test_an_account_has_so_many_classes),
                STORY(test_members_in_classes),
                STORY(test_classes_are_made_again_in_slices),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
