/* Users' expressions that take too long: who wrote one waits, and nobody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/test_help.h"

#define BAD "regexp(\"(?:a?){12}[bc]d\", MY.Long)"
#define HALF                                                                                                 \
        "strcat(\"b\", join(\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\", "                  \
        "split(\"1,2,3,4,5,6,7,8,9\", \",\")), \"d\")"

static const char ordinary[] = "[Cpus=1; TotalCpus=1; Memory=100; Disk=100]";
static const char wide[] = "[Cpus=8; TotalCpus=8; Memory=100; Disk=100]";
static const char hostile[] =
        "[Cpus=8; TotalCpus=8; Memory=100; Disk=100; Long=" HALF "; Requirements=" BAD "]";
static const char reads_the_job[] = "[Cpus=8; TotalCpus=8; Memory=100; Disk=100; Requirements=TARGET.Wanted]";
static const char *const simple[] = {"RequestCpus", "1", NULL};

/* Appends a list of `count` ones; its sum takes about `count` steps. */
static void list_of_ones(struct buf *out, unsigned count)
{
        buf_addz(out, "{ 1");
        for (unsigned i = 1; i < count; i++)
                buf_addz(out, ", 1");
        buf_addz(out, " }");
}

static const char *held_because(struct core *c, uint64_t request)
{
        static char reason[400];
        struct core_job j;

        assert_int_equal(core_job_get(c, request, 0, &j), 0);
        snprintf(reason, sizeof(reason), "%s" STR_FMT, j.state == JOB_HELD ? "" : "not held",
                 STR_ARG(j.hold_reason));
        return reason;
}

static void check_held(struct core *c, uint64_t request, const char *what)
{
        const char *reason = held_because(c, request);

        if (!strstr(reason, what))
                fail_msg("request %llu: %s", (unsigned long long)request, reason);
}

static void release(struct core *c, uint64_t request, uint64_t jobs)
{
        const struct core_command release = {.action = CORE_ACT_RELEASE, .request = request};
        uint64_t n;

        assert_int_equal(core_act(c, &release, &n, NULL), 0);
        assert_int_equal(n, jobs);
}

/* Its job is held with the reason, in whichever of its expressions it is; another one runs. */
static void test_a_job(void **state)
{
        static const char *const attributes[] = {"Requirements", "Rank", "RequestCpus"};
        struct core *c = *state;

        for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
                const char *const bad[] = {attributes[i], i == 2 ? "int(" BAD ") + 1" : BAD, "Long", HALF,
                                           NULL};
                struct request *r = submit(c, NULL, 5, bad), *other;
                BUF_CLEANUP struct buf expect = {0}, asked = {0};
                char agent[16], second[16];
                uint64_t before;

                snprintf(agent, sizeof(agent), "a%zu", i);
                snprintf(second, sizeof(second), "b%zu", i);
                buf_printf(&asked, "past the limit of 20000 steps, asked at queue default of agent %s",
                           agent);
                other = submit(c, NULL, 1, simple);
                offer(c, agent, ordinary);
                buf_printf(&expect, "%s/default %llu 0\n", agent, (unsigned long long)other->id);
                if (i == 2) /* an error asks for the one processor that is not said; so it may go first */
                        core_match(c);
                else
                        expect_assigned(c, buf_z(&expect));
                buf_reset(&bare_assigned);
                pass_time(c, 1000);
                check_held(c, r->id, buf_z(&asked));
                assert_int_equal(set_count(&request_cold(r)->held), 5);
                before = c->eval.steps_all;
                offer(c, second, wide);
                core_match(c);
                pass_time(c, 1000);
                assert_in_range(c->eval.steps_all - before, 0, 2000); /* what is held is asked nothing */
                release(c, r->id, 5);
                core_match(c);
                pass_time(c, 1000);
                check_held(c, r->id, "past the limit of 20000 steps");
                core_withdraw(c, agent, "default");
                core_withdraw(c, second, "default");
                buf_reset(&bare_assigned);
        }
}

/* A queue whose expressions take too long is asked for nothing for a minute, and no job is blamed. */
static void test_a_queue(void **state)
{
        struct core *c = *state;
        struct request *r = submit(c, NULL, 1, simple);
        struct queue *q = offer(c, "n1", hostile);

        expect_assigned(c, "");
        pass_time(c, 1000);
        check_held(c, r->id, "not held");
        assert_true(q->paused_until_ms > c->steady_ms);
        offer(c, "n2", ordinary);
        expect_assigned(c, "n2/default 1 0\n");
}

/* What a queue's expression looks at in the job's ad is the job's doing; and the other way round. */
static void test_whose_fault(void **state)
{
        static const char *const wanted[] = {"Wanted", BAD, "Long", HALF, NULL};
        static const char *const looks[] = {"Requirements", "TARGET.Heavy =!= true", NULL};
        struct core *c = *state;
        struct request *r = submit(c, NULL, 1, wanted), *other;
        struct queue *q = offer(c, "n1", reads_the_job);

        expect_assigned(c, "");
        pass_time(c, 1000);
        check_held(c, r->id, "past the limit");
        assert_true(q->paused_until_ms <= c->steady_ms);
        core_withdraw(c, "n1", "default");
        other = submit(c, NULL, 1, looks);
        q = offer(c, "n3", "[Cpus=8; TotalCpus=8; Memory=100; Disk=100; Long=" HALF "; Heavy=" BAD "]");
        expect_assigned(c, "");
        pass_time(c, 1000);
        check_held(c, other->id, "not held");
        assert_true(q->paused_until_ms > c->steady_ms);
}

/* Policies that take too long are asked once, and their jobs held. */
static void test_periodic(void **state)
{
        static const char *const bad[] = {"PeriodicRemove", BAD, "Long", HALF, "Requirements", "false", NULL};
        struct core *c = *state;
        struct request *r = submit(c, NULL, 1, bad);
        uint64_t before;

        core_ready(c);
        pass_time(c, 21000);
        check_held(c, r->id, "its periodic_* policies take too long");
        before = c->eval.steps_all;
        pass_time(c, 21000);
        pass_time(c, 21000);
        assert_in_range(c->eval.steps_all - before, 0, 1000);
        check_held(c, r->id, "its periodic_* policies take too long");
}

/* Each request stays below its limit, all of one user do not. Another user's policies, of the same text, are
 * evaluated. */
static void test_periodic_of_many_requests(void **state)
{
        struct core *c = *state;
        BUF_CLEANUP struct buf many = {0};
        const char *attributes[] = {
                "PeriodicHold", "sum(MY.Many) < 0", "Many", NULL, "Requirements", "false", NULL};
        uint64_t before, held = 0, first = 0, bob;

        list_of_ones(&many, 9000);
        attributes[3] = buf_z(&many);
        for (unsigned i = 0; i < 1000; i++) {
                uint64_t id = test_submit(c, "ann@lab", 1, attributes);

                first = first ? first : id;
        }
        bob = test_submit(c, "bob@lab", 1, attributes);
        core_ready(c);
        before = c->eval.steps_all;
        for (unsigned round = 0; round < 3; round++)
                pass_time(c, 21000);
        for (uint64_t id = first; id < first + 1000; id++)
                held += set_count(&request_cold(request_find(c, id))->held);
        assert_in_range(held, 400, 700);
        assert_in_range(c->eval.steps_all - before, 8000000, 14000000);
        check_held(c, bob, "not held");
        check_held(c, first, "not held");
        assert_null(core_check(c));
}

/* The jobs of one request take too long together; one of another user, whose text is the same, does not. */
static void test_periodic_of_the_same_text(void **state)
{
        struct core *c = *state;
        BUF_CLEANUP struct buf many = {0};
        const char *attributes[] = {
                "PeriodicHold", "sum(MY.Many) + ProcId < 0", "Many", NULL, "Requirements", "false", NULL};
        uint64_t ann, bob;

        list_of_ones(&many, 400);
        attributes[3] = buf_z(&many);
        ann = test_submit(c, "ann@lab", 3000, attributes);
        bob = test_submit(c, "bob@lab", 1, attributes);
        core_ready(c);
        for (unsigned round = 0; round < 3; round++)
                pass_time(c, 21000);
        assert_in_range(set_count(&request_cold(request_find(c, ann))->held), 1000, 3000);
        check_held(c, bob, "not held");
}

/* A policy that names the job's number is asked of each job, some in each call; all get their answer, also
 * when some have ended between two calls. */
static void test_periodic_of_many(void **state)
{
        static const char *const of_some[] = {"PeriodicRemove", "ProcId % 10000 == 9999", "Requirements",
                                              "false", NULL};
        static const char *const of_one[] = {"PeriodicHold", "ProcId == 0", "Requirements", "false", NULL};
        struct core *c = *state;
        struct request *r = request_find(c, test_submit(c, "ann@lab", 100000, of_some));
        struct request *behind = request_find(c, test_submit(c, "bob@lab", 3, of_one));
        struct core_command remove = {.action = CORE_ACT_REMOVE, .request = r->id};
        struct set some = {0};
        uint64_t before, removed, calls = 0;

        core_ready(c);
        c->policies->due_ms = c->steady_ms;
        set_add_range(&some, 50000, 70000);
        remove.members = &some;
        do {
                before = c->eval.steps_all;
                core_tick(c);
                assert_in_range(c->eval.steps_all - before, 0, 100000);
                if (++calls == 3)
                        assert_int_equal(core_act(c, &remove, &removed, NULL), 0);
        } while (c->policies->request);
        assert_in_range(calls, 100, 1000);
        assert_int_equal(request_state(r, 9998), JOB_IDLE);
        assert_int_equal(request_state(r, 9999), JOB_REMOVED);
        assert_int_equal(request_state(r, 99999), JOB_REMOVED);
        assert_int_equal(request_unended(r), 100000 - 20000 - 8);
        assert_int_equal(request_state(behind, 0), JOB_HELD);
        assert_int_equal(request_state(behind, 1), JOB_IDLE);
        set_deinit(&some);
}

/* Many jobs below the limit, each different: they take their user's part of a second, no more, in whichever
 * account they are, and another user's job goes at once. They are not held. */
static void test_below_the_limit(void **state)
{
        struct core *c = *state;
        BUF_CLEANUP struct buf many = {0}, expect = {0};
        uint64_t before, other, first = 0;

        buf_addz(&many, "{ 1");
        for (unsigned i = 0; i < 5000; i++)
                buf_addz(&many, ", 1");
        buf_addz(&many, " }");
        for (unsigned i = 0; i < 300; i++) {
                BUF_CLEANUP struct buf requirements = {0};
                uint64_t id;

                buf_printf(&requirements, "sum(MY.Many) + TARGET.Memory > %u", 10000 + i);
                id = test_submit(c, "ann@lab", 1,
                                 (const char *const[]){"Requirements", buf_z(&requirements), "Many",
                                                       buf_z(&many), "AcctGroup",
                                                       i % 2 ? "\"nice-user\"" : "\"\"", NULL});
                first = first ? first : id;
        }
        other = test_submit(c, "bob@lab", 1, simple);
        before = c->eval.steps_all;
        offer(c, "n1", ordinary);
        for (unsigned i = 0; i < 1000 && core_match(c); i++)
                ;
        buf_printf(&expect, "n1/default %llu 0\n", (unsigned long long)other);
        assert_string_equal(buf_z(&bare_assigned), buf_z(&expect));
        assert_in_range(c->eval.steps_all - before, 400000, 600000);
        before = c->eval.steps_all;
        core_match(c);
        assert_int_equal(c->eval.steps_all, before);
        offer(c, "n2", ordinary);
        pass_time(c, 1000); /* they are looked at again in the next second */
        before = c->eval.steps_all;
        for (unsigned i = 0; i < 1000 && core_match(c); i++)
                ;
        assert_in_range(c->eval.steps_all - before, 100000, 600000);
        check_held(c, first, "not held");
}

static void text_of(struct buf *out, size_t n)
{
        buf_char(out, '"');
        while (n-- > 0)
                buf_char(out, 'a');
        buf_char(out, '"');
}

/* A hundred jobs that run at n1. */
static struct request *run_hundred(struct core *c, const char *const *attributes)
{
        struct request *r = submit(c, NULL, 100, attributes);

        offer(c, "n1", "[Cpus=200; TotalCpus=200; Memory=100000; Disk=100000]");
        while (core_match(c))
                ;
        assert_int_equal(request_state(r, 99), JOB_MATCHED);
        return r;
}

/* Many jobs end at once, and the policies of each take long: together they take their account's part of a
 * second, and what that leaves is too little for the others, which are held. Another account's policies are
 * evaluated, and these again when the account has paid back what it took. */
static void test_ends(void **state)
{
        static const char *const names[] = {"OnExitHold", "OnExitRemove"};
        struct core *c = *state;
        BUF_CLEANUP struct buf many = {0};

        list_of_ones(&many, 4500);
        for (size_t i = 0; i < 2; i++) {
                struct request *r = run_hundred(
                        c, (const char *const[]){names[i], i == 0 ? "sum(MY.Many) < 0" : "sum(MY.Many) > 0",
                                                 "Many", buf_z(&many), NULL});
                uint64_t before = c->eval.steps_all, id = r->id;
                uint32_t held;

                for (uint32_t m = 0; m < 100; m++)
                        ended(c, "n1", id, m);
                assert_in_range(c->eval.steps_all - before, 200000, 450000);
                r = request_find(c, id);
                held = (uint32_t)set_count(&request_cold(r)->held);
                assert_in_range(held, 1, 60);
                assert_true(strstr(request_job(r, 99)->hold_reason, "on_exit_* policies take too long"));
                core_withdraw(c, "n1", "default");
                buf_reset(&bare_assigned);
                pass_time(c, 5000);
        }
        assert_null(core_check(c));
}

/* One that is past the limit is not ignored, whichever of the two it is. */
static void test_an_end_past_the_limit(void **state)
{
        static const char *const names[] = {"OnExitHold", "OnExitRemove"};
        struct core *c = *state;

        for (size_t i = 0; i < 2; i++) {
                struct request *r =
                        submit(c, NULL, 1, (const char *const[]){names[i], BAD, "Long", HALF, NULL});
                char agent[] = {'n', (char)('1' + i), 0};

                offer(c, agent, ordinary);
                core_match(c);
                ended(c, agent, r->id, 0);
                check_held(c, r->id, "its on_exit_* policies take too long");
        }
}

/* A million jobs lack a value, each another one, and nothing but the account bounds how many of them a pass
 * looks at. */
static void test_values_that_are_missing(void **state)
{
        struct core *c = *state;
        struct request *r = request_find(
                c, test_submit(c, "ann@lab", 1000000,
                               (const char *const[]){"Args", "\"$$([NoSuch + ProcId])\"", NULL}));
        uint64_t other = test_submit(c, "bob@lab", 1, simple), held;
        BUF_CLEANUP struct buf expect = {0};

        offer(c, "n1", ordinary);
        for (unsigned i = 0; i < 1000 && core_match(c); i++)
                ;
        held = set_count(&request_cold(r)->held);
        assert_in_range(held, 1000, 10000);
        buf_printf(&expect, "n1/default %llu 0\n", (unsigned long long)other);
        assert_string_equal(buf_z(&bare_assigned), buf_z(&expect));
        offer(c, "n2", ordinary);
        pass_time(c, 1000);
        for (unsigned i = 0; i < 1000 && core_match(c); i++)
                ;
        assert_in_range(set_count(&request_cold(r)->held), held + 1000, 20000);
        assert_null(core_check(c));
}

/* Values that take long to find out are charged; too many of one job, and too long ones, are none. */
static void test_values_that_take_long(void **state)
{
        struct core *c = *state;
        BUF_CLEANUP struct buf many = {0}, text = {0}, long_one = {0};
        struct request *r;
        uint64_t before;

        list_of_ones(&many, 5000);
        text_of(&long_one, 100000);
        r = submit(c, NULL, 1000,
                   (const char *const[]){"Args", "\"$$([sum(MY.Many) + sum(MY.Many) + ProcId])\"", "Many",
                                         buf_z(&many), NULL});
        offer(c, "n1", "[Cpus=2000; TotalCpus=2000; Memory=1000000; Disk=1000000]");
        before = c->eval.steps_all;
        for (unsigned i = 0; i < 1000 && core_match(c); i++)
                ;
        assert_in_range(c->eval.steps_all - before, 390000, 450000);
        assert_in_range(dispatch_under_way(r), 10, 250);
        core_withdraw(c, "n1", "default");
        assert_int_equal(core_act(c, &(struct core_command){.action = CORE_ACT_REMOVE, .request = r->id},
                                  &before, NULL),
                         0);
        pass_time(c, 5000);
        for (unsigned i = 0; i < 2; i++) {
                buf_reset(&text);
                buf_char(&text, '"');
                for (unsigned n = 0; n < (i ? 1 : 20000); n++)
                        if (i)
                                buf_addz(&text, "$$([MY.Long])");
                        else
                                buf_printf(&text, "$$(None%u:x)", n);
                buf_char(&text, '"');
                r = submit(c, NULL, 1,
                           (const char *const[]){"Args", buf_z(&text), "Long", buf_z(&long_one), NULL});
                before = core_steps(c);
                offer(c, "n2", ordinary);
                core_match(c);
                assert_in_range(core_steps(c) - before, 0, 50000);
                check_held(c, r->id, "Cannot expand $$ expression (");
        }
}

/* The search for a place to reserve asks some of a hundred places, and goes on with the others later. */
static void test_places_to_reserve(void **state)
{
        struct core *c = *state;
        BUF_CLEANUP struct buf many = {0};
        uint64_t before;

        list_of_ones(&many, 10000);
        test_submit(
                c, "ann@lab", 1,
                (const char *const[]){"RequestCpus", "sum(MY.Many) * 0 + 50", "Many", buf_z(&many), NULL});
        for (unsigned i = 0; i < 100; i++) {
                char agent[8];

                snprintf(agent, sizeof(agent), "n%u", i);
                offer(c, agent, "[Cpus=1; TotalCpus=64; Memory=100; Disk=100]");
        }
        for (unsigned n = 0; n < 31; n++) { /* ann's job is before bob's, and fits nowhere */
                if (n == 30)
                        test_submit(c, "bob@lab", 100, simple);
                for (unsigned i = 0; i < 1000 && core_match(c); i++)
                        ;
                pass_time(c, 1000);
        }
        core_clock(c, c->now_ms + 30000, c->steady_ms + 30000);
        before = core_steps(c);
        core_tick(c);
        assert_in_range(core_steps(c) - before, 30000, 150000);
}

static size_t longest_row;

static void on_row(void *arg, const struct past_job *f)
{
        (void)arg;
        longest_row = f->data.n > longest_row ? f->data.n : longest_row;
        assert_true(str_search(f->data, STR("Mine = undefined")) >= 0);
        assert_true(str_search(f->data, STR("Short = \"x")) >= 0);
}

/* Rows of jobs that have long texts of their own are made in smaller slices, and do not have these. */
static void test_long_rows_of_history(void **state)
{
        struct core *c = *state;
        BUF_CLEANUP struct buf text = {0};
        struct request *r;
        uint64_t n, before;

        text_of(&text, 500000);
        text.p[text.n - 1] = '$';
        buf_addz(&text, "(Process)\"");
        r = submit(c, NULL, 1000,
                   (const char *const[]){"~Mine", buf_z(&text), "~Short", "\"x$(Process)\"", NULL});
        c->world.history = on_row;
        assert_int_equal(
                core_act(c, &(struct core_command){.action = CORE_ACT_REMOVE, .request = r->id}, &n, NULL),
                0);
        assert_int_equal(n, 1000);
        for (unsigned i = 0; i < 3; i++) {
                before = core_steps(c);
                core_tick(c);
                assert_in_range(core_steps(c) - before, 20000, 150000);
        }
        assert_in_range(c->requests->unfiled, 900, 999);
        pass_time(c, 1);
        assert_int_equal(c->requests->unfiled, 0);
        assert_in_range(longest_row, 100, 10000);
}

/* Concurrency limits that take long are asked for by predictions in slices. */
static void test_limits_in_predictions(void **state)
{
        struct core *c = *state;
        BUF_CLEANUP struct buf ones = {0};
        uint32_t look = 0;
        bool more = true;

        list_of_ones(&ones, 5000);
        const char *const costly[] = {"RequestCpus",
                                      "2",
                                      "ExpectedRunTime",
                                      "60",
                                      "Ones",
                                      buf_z(&ones),
                                      "ConcurrencyLimits",
                                      "ifThenElse(sum(MY.Ones) > TARGET.Least, \"sw\", \"other\")",
                                      NULL};
        offer(c, "n1", "[Cpus=0; TotalCpus=2; Memory=100; Disk=100; Least=7]");
        for (unsigned i = 0; i < 200; i++)
                submit(c, NULL, 20, costly);
        core_clock(c, c->now_ms + 10000, c->steady_ms + 10000);
        while (more) {
                uint64_t steps = core_steps(c);

                more = core_eta_some(c, &look);
                assert_in_range(core_steps(c) - steps, 0, 100000);
        }
}

/* Conditions whose parts each take less than the index allows: a new kind of place is compared with all kinds
 * of jobs at once, and a new name lets all be compared again. */
static void test_conditions_in_the_index(void **state)
{
        struct core *c = *state;

        for (unsigned i = 0; i < 20; i++) {
                char agent[8], ad[100];

                snprintf(agent, sizeof(agent), "n%u", i);
                snprintf(ad, sizeof(ad), "[Cpus=0; TotalCpus=1; Memory=9; Disk=9; OpSys=\"%u\"]", i);
                offer(c, agent, ad);
        }
        for (unsigned i = 0; i < 500; i++) {
                BUF_CLEANUP struct buf b = {0};

                buf_printf(&b, "TARGET.OpSys =!= \"x%u\"", i);
                for (unsigned n = 0; n < 50; n++)
                        buf_printf(&b, " && !regexp(\"(?:a?){8}[bc]%u\", strcat(MY.S, TARGET.OpSys))", n);
                submit(c, NULL, 1,
                       (const char *const[]){"Requirements", buf_z(&b), "S", "\"baaaaaa0123456789\"", NULL});
        }
        pass_time(c, 1000);
        for (unsigned i = 0; i < 3; i++) {
                uint64_t steps = core_steps(c);
                char ad[200];

                snprintf(ad, sizeof(ad),
                         "[Cpus=0; TotalCpus=1; Memory=9; Disk=9; OpSys=\"y%u\"; Requirements=TARGET.New%u "
                         "=!= 7]",
                         i, i);
                offer(c, "n1", ad);
                assert_in_range(core_steps(c) - steps, 500, 500 * 220);
                for (bool more = true; more;) {
                        steps = core_steps(c);
                        more = index_slice(c, 500);
                        assert_in_range(core_steps(c) - steps, 0, 20000 + 20 * 220);
                }
        }
}

/* Texts and numbers that are asked for when jobs arrive take no longer than words do. */
static void test_texts_of_accounts(void **state)
{
        static const char *const names[] = {"AcctGroup", "QOS", "JobCategoryMax", "DeferralTime", "JobPrio"};
        struct core *c = *state;
        BUF_CLEANUP struct buf ones = {0};

        list_of_ones(&ones, 5000);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                const char *const costly[] = {names[i],      "sum(MY.Ones)", "Ones", buf_z(&ones),
                                              "JobCategory", "\"x\"",        NULL};
                uint64_t steps = core_steps(c);

                submit(c, NULL, 1, costly);
                assert_in_range(core_steps(c) - steps, 0, 1500);
        }
}

/* Comparing places for jobs with thousands of files is charged to their account, as expressions are: others'
 * jobs go on, and these take some seconds. */
static void test_places_for_many_files(void **state)
{
        struct core *c = *state;
        BUF_CLEANUP struct buf list = {0}, items = {0};
        const struct request *r, *other;
        unsigned seconds = 0;

        for (unsigned i = 0; i < 10000; i++)
                buf_printf(&list, "%chttp://x/%u", i ? ',' : '"', i);
        buf_char(&list, '"');
        for (unsigned i = 0; i < 400; i++)
                buf_printf(&items, "%u\n", i + 1);
        const char *const many[] = {
                "~RequestMemory", "$(f)", "TransferInput", buf_z(&list), "ExpectedRunTime", "100", NULL};
        for (unsigned i = 0; i < 50; i++) {
                char agent[8], ad[100];

                snprintf(agent, sizeof(agent), "n%u", i);
                snprintf(ad, sizeof(ad), "[Cpus=64; TotalCpus=64; Memory=99999; Disk=9; OpSys=\"%u\"]", i);
                offer(c, agent, ad);
                core_cache_delta(c, agent, &(struct core_file){i + 5, 7}, 1, NULL, 0, true);
        }
        r = submit(c, buf_z(&items), 400, many);
        other = request_find(c, test_submit(c, "bob@lab", 1, simple));
        core_match(c);
        assert_in_range(r->active, 1, 300);
        assert_int_equal(other->active, 1);
        for (; r->active < 400 && seconds < 60; seconds++) {
                pass_time(c, 1000);
                core_match(c);
        }
        assert_in_range(seconds, 1, 59);
        buf_reset(&bare_assigned);
}

/* Policies with another reason for each job: reasons are kept of a thousand, since each hold and release of a
 * request looks at all of its reasons. */
static void test_reasons_without_end(void **state)
{
        static const char *const attributes[] = {"PeriodicHold", "ProcId >= 0", "PeriodicHoldReason",
                                                 "strcat(\"for \", string(ProcId))", NULL};
        struct core *c = *state;
        struct request *r = request_find(c, test_submit(c, "ann@lab", 3000, attributes));
        struct core_job j;

        core_ready(c);
        for (unsigned i = 0; i < 100 && set_count(&request_cold(r)->held) < 3000; i++)
                pass_time(c, 1000);
        assert_int_equal(set_count(&request_cold(r)->held), 3000);
        assert_int_equal(request_cold(r)->hold_count, HOLD_GROUPS_MAX + 1);
        assert_int_equal(core_job_get(c, r->id, 7, &j), 0);
        assert_true(str_eqz(j.hold_reason, "for 7"));
        assert_int_equal(core_job_get(c, r->id, 2999, &j), 0);
        assert_int_equal(j.hold_code, CORE_HOLD_POLICY);
        assert_true(str_starts(j.hold_reason, STR("its reason is not kept")));
        assert_null(core_check(c));
        release(c, r->id, 3000);
        assert_int_equal(request_cold(r)->hold_count, 0);
}

/* A gang's members begin at once: few of their files are looked at for each. */
static void test_a_gang_with_many_files(void **state)
{
        struct core *c = *state;
        BUF_CLEANUP struct buf list = {0};
        const struct request *r;
        uint64_t steps;

        for (unsigned i = 0; i < 10000; i++)
                buf_printf(&list, "%chttp://x/%u", i ? ',' : '"', i);
        buf_char(&list, '"');
        const char *const many[] = {"GangSize", "2000", "TransferInput", buf_z(&list), "ExpectedRunTime",
                                    "100",      NULL};
        for (unsigned i = 0; i < 2; i++) {
                const char *agent = i ? "n1" : "n0";
                const struct core_offer o = {
                        .agent = agent,
                        .queue = "default",
                        .serial = 1,
                        .ad = STR("[Cpus=1500; TotalCpus=1500; Memory=99999999; Disk=9]"),
                        .jobs_max = 10000};

                core_agent_connected(c, agent);
                assert_int_equal(core_offer(c, &o, NULL), 0);
                core_cache_delta(c, agent, &(struct core_file){i + 5, 7}, 1, NULL, 0, true);
        }
        r = submit(c, NULL, 2000, many);
        steps = core_steps(c);
        for (unsigned i = 0; i < 5 && r->active == 0; i++) {
                core_match(c);
                pass_time(c, 1000);
        }
        assert_int_equal(r->active, 2000);
        assert_in_range(core_steps(c) - steps, 20000, 200000);
        buf_reset(&bare_assigned);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_job, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_a_queue, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_whose_fault, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_periodic, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_periodic_of_many, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_periodic_of_many_requests, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_periodic_of_the_same_text, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_below_the_limit, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_ends, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_an_end_past_the_limit, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_values_that_are_missing, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_values_that_take_long, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_places_to_reserve, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_long_rows_of_history, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_limits_in_predictions, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_conditions_in_the_index, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_texts_of_accounts, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_places_for_many_files, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_reasons_without_end, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_a_gang_with_many_files, bare_core, bare_core_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
