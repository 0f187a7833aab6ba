/* The cost of a job: liens, charges, releases, and empty accounts. Each test ends with a replay of its log,
 * which must give the same balances. */
#include "core/test_story.h"

#include "bank/bank.h"
#include "core/model/edit.h"

#define AD "[Cpus = 4; TotalCpus = 4; Memory = 1000; Price = 3]"

static void set_bank(struct core *c, struct core_bank settings, const char *charge)
{
        const struct core_bank_rate rate = {.charge = str_of(charge)};
        struct err err = {""};

        settings.rates = &rate;
        settings.rate_count = 1;
        if (core_bank_set(c, &settings, &err) != 0)
                fail_msg("%s", err.text);
}

static uint64_t tell(struct story *s, const struct bank_order *o)
{
        struct err err = {""};
        uint64_t id = 0;

        if (core_bank_order(s->core, o, &id, &err) != 0)
                fail_msg("%s", err.text);
        return id;
}
#define TELL(...) tell(s, &(struct bank_order){__VA_ARGS__})

static void open_account(struct story *s, int64_t amount)
{
        TELL(.op = BANK_OPEN, .account = STR("physics"));
        TELL(.op = BANK_MEMBER, .account = STR("physics"), .user = STR("ann@local"), .role = BANK_ROLE_USER);
        if (amount)
                TELL(.op = BANK_DEPOSIT, .account = STR("physics"), .amount = amount);
}

static const struct bank_account *physics(struct story *s)
{
        return bank_account(core_bank(s->core), STR("physics"));
}

static void tick(struct story *s, int64_t ms)
{
        story_wait(s, ms);
        core_renew(s->core, "n1");
        while (core_tick(s->core) == 0)
                ;
        core_match(s->core);
}

static void started(struct story *s, uint32_t member, uint32_t fence)
{
        struct set set = {0};
        struct core_attempts a = {1, fence, &set};

        set_add(&set, member);
        core_accepted(s->core, "n1", &a);
        core_started(s->core, "n1", &a, s->now);
        set_deinit(&set);
}

/* The result says that it ran for so long until now. */
static void ended_so(struct story *s, uint32_t member, uint32_t fence, int64_t ran_ms,
                     enum core_outcome outcome)
{
        const struct core_result r = {.request = 1,
                                      .member = member,
                                      .fence = fence,
                                      .outcome = outcome,
                                      .started_ms = s->now - ran_ms,
                                      .ended_ms = s->now,
                                      .cpu_user_ms = 500};

        assert_true(core_result(s->core, "n1", &r));
        assert_null(core_check(s->core));
}

static void ended(struct story *s, uint32_t member, uint32_t fence, int64_t ran_ms)
{
        ended_so(s, member, fence, ran_ms, CORE_EXITED);
}

static void job_is(struct story *s, uint32_t member, enum job_state state, int code)
{
        struct core_job j;

        assert_int_equal(core_job_get(s->core, 1, member, &j), 0);
        assert_int_equal(j.state, state);
        assert_int_equal(j.hold_code, code);
}

static void test_an_attempt_is_reserved_and_charged(void **state)
{
        struct story *s = *state;

        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000},
                 "Cpus * WallSeconds * TARGET.Price");
        open_account(s, 1000);
        assert_int_equal(SUBMIT(1, "AcctGroup", "\"physics\"", "RequestCpus", "2"), 1);
        story_offer(s, "n1", AD, 10);
        assert_int_equal(physics(s)->held, 600); /* 2 x 100 s x 3 */
        assert_int_equal(physics(s)->balance, 1000);
        started(s, 0, 1);
        story_wait(s, 10000);
        ended(s, 0, 1, 10000);
        assert_int_equal(physics(s)->held, 0);
        assert_int_equal(physics(s)->balance, 940);
        assert_int_equal(bank_earned(core_bank(s->core)), 60);
        story_replays(s);
}

/* No more time is charged than has passed since the match, whatever the agent reports. */
static void test_no_more_time_than_has_passed(void **state)
{
        struct story *s = *state;

        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "WallSeconds");
        open_account(s, 1000);
        SUBMIT(1, "AcctGroup", "\"physics\"");
        story_offer(s, "n1", AD, 10);
        story_wait(s, 7000);
        ended(s, 0, 1, 3600000);
        assert_int_equal(physics(s)->balance, 993);
        story_replays(s);
}

static void test_lost_refused_and_unstarted_attempts_cost_nothing(void **state)
{
        struct story *s = *state;
        struct set one = {0};
        struct core_attempts a = {1, 2, &one};
        struct core_result r = {.request = 1, .fence = 3, .outcome = CORE_STAGING_FAILED};

        set_add(&one, 0);
        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "WallSeconds");
        open_account(s, 100);
        SUBMIT(1, "AcctGroup", "\"physics\"");
        story_offer(s, "n1", AD, 10);
        started(s, 0, 1);
        story_wait(s, 5000);
        core_inventory(s->core, "n1", NULL, 0, NULL, NULL);
        assert_int_equal(physics(s)->held, 0);
        story_offer(s, "n1", AD, 10);
        assert_int_equal(physics(s)->held, 100);
        core_refused(s->core, "n1", &a, STR("full"), 0);
        assert_int_equal(physics(s)->held, 0);
        story_offer(s, "n2", AD, 10);
        assert_int_equal(physics(s)->held, 100);
        assert_true(core_result(s->core, "n2", &r));
        assert_int_equal(physics(s)->held, 0);
        assert_int_equal(physics(s)->balance, 100);
        assert_null(core_check(s->core));
        set_deinit(&one);
        story_replays(s);
}

static void test_lost_attempts_are_charged_if_it_is_so_set(void **state)
{
        struct story *s = *state;

        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000, .charge_lost = true},
                 "WallSeconds");
        open_account(s, 100);
        SUBMIT(1, "AcctGroup", "\"physics\"");
        story_offer(s, "n1", AD, 10);
        started(s, 0, 1);
        story_wait(s, 5000);
        core_inventory(s->core, "n1", NULL, 0, NULL, NULL);
        assert_int_equal(physics(s)->balance, 95);
        story_replays(s);
}

/* Three of ten can be paid for; the others wait for these, and then are held, all of them. */
static void test_an_account_that_runs_out(void **state)
{
        struct story *s = *state;

        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "WallSeconds");
        open_account(s, 330);
        SUBMIT(10, "AcctGroup", "\"physics\"");
        story_offer(s, "n1", AD, 10);
        assert_int_equal(physics(s)->held, 300);
        job_is(s, 3, JOB_IDLE, 0);
        story_offer(s, "n2", AD, 10);
        assert_int_equal(physics(s)->held, 300);
        job_is(s, 3, JOB_IDLE, 0);
        story_wait(s, 90000);
        for (uint32_t m = 0; m < 3; m++)
                ended(s, m, 1, 90000);
        core_match(s->core);
        job_is(s, 3, JOB_HELD, CORE_HOLD_BANK);
        job_is(s, 9, JOB_HELD, CORE_HOLD_BANK);
        assert_int_equal(physics(s)->balance, 60);
        assert_int_equal(story_act(s, CORE_ACT_RELEASE, NULL, 0), 7);
        core_match(s->core);
        job_is(s, 3, JOB_HELD, CORE_HOLD_BANK);
        TELL(.op = BANK_DEPOSIT, .account = STR("physics"), .amount = 1000);
        assert_int_equal(story_act(s, CORE_ACT_RELEASE, NULL, 0), 7);
        story_offer(s, "n2", AD, 10);
        job_is(s, 3, JOB_MATCHED, 0);
        assert_int_equal(physics(s)->held, 500); /* as many as there is room for */
        assert_null(core_check(s->core));
        story_replays(s);
}

/* Nothing is left when they are submitted: they are held at once, those that cost something everywhere. */
static void test_an_empty_account_holds_at_submission(void **state)
{
        struct story *s = *state;

        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "GPUs * WallSeconds");
        open_account(s, 0);
        SUBMIT(2, "AcctGroup", "\"physics\"", "RequestGPUs", "1");
        job_is(s, 0, JOB_HELD, CORE_HOLD_BANK);
        job_is(s, 1, JOB_HELD, CORE_HOLD_BANK);
        SUBMIT(1, "AcctGroup", "\"physics\"");
        {
                struct core_job j;

                assert_int_equal(core_job_get(s->core, 2, 0, &j), 0);
                assert_int_equal(j.state, JOB_IDLE);
        }
        TELL(.op = BANK_DEPOSIT, .account = STR("physics"), .amount = 1000);
        assert_int_equal(story_act(s, CORE_ACT_RELEASE, NULL, 0), 2);
        job_is(s, 0, JOB_IDLE, 0);
        assert_null(core_check(s->core));
        story_replays(s);
}

/* An idle job that no place has looked at yet says what its account lacks. */
static void test_a_waiting_job_says_what_its_account_lacks(void **state)
{
        struct story *s = *state;
        struct err why = {""};

        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "Cpus * WallSeconds");
        open_account(s, 150);
        story_offer(s, "n1", "[Cpus = 4; TotalCpus = 4; Memory = 1000]", 0);
        SUBMIT(1, "AcctGroup", "\"physics\"", "RequestCpus", "2");
        core_match(s->core);
        job_is(s, 0, JOB_IDLE, 0);
        assert_int_equal(core_job_money(s->core, 1, 0, &why), 0);
        assert_non_null(
                strstr(why.text, "physics, has 150 to spend and 0 that is reserved, the job needs 200"));
        TELL(.op = BANK_DEPOSIT, .account = STR("physics"), .amount = 50);
        assert_int_equal(core_job_money(s->core, 1, 0, &why), CORE_UNKNOWN);
        story_replays(s);
}

/* Where jobs are to wait, a deposit is enough. */
static void test_jobs_wait_for_a_deposit(void **state)
{
        struct story *s = *state;

        set_bank(s->core, (struct core_bank){.lien_ms = 100000}, "WallSeconds");
        open_account(s, 50);
        SUBMIT(2, "AcctGroup", "\"physics\"");
        story_offer(s, "n1", AD, 10);
        job_is(s, 0, JOB_IDLE, 0);
        TELL(.op = BANK_DEPOSIT, .account = STR("physics"), .amount = 100);
        core_match(s->core);
        job_is(s, 0, JOB_MATCHED, 0);
        job_is(s, 1, JOB_IDLE, 0);
        story_replays(s);
}

static void test_liens_grow_while_jobs_run(void **state)
{
        struct story *s = *state;

        set_bank(s->core, (struct core_bank){.hold = true, .stop = true, .lien_ms = 100000}, "WallSeconds");
        open_account(s, 250);
        SUBMIT(1, "AcctGroup", "\"physics\"");
        story_offer(s, "n1", AD, 10);
        started(s, 0, 1);
        FORGET(actions);
        tick(s, 100000);
        assert_int_equal(physics(s)->held, 200);
        SAID(actions, "");
        tick(s, 100000);
        SAID(actions, "hold n1 1 0 f1\n");
        ended_so(s, 0, 1, 200000, CORE_KILLED);
        job_is(s, 0, JOB_HELD, CORE_HOLD_BANK);
        assert_int_equal(physics(s)->balance, 50);
        story_replays(s);
}

static void test_jobs_that_go_on_pay_what_is_there(void **state)
{
        struct story *s = *state;

        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "WallSeconds");
        open_account(s, 150);
        SUBMIT(1, "AcctGroup", "\"physics\"");
        story_offer(s, "n1", AD, 10);
        started(s, 0, 1);
        FORGET(actions);
        tick(s, 100000);
        tick(s, 100000);
        SAID(actions, "");
        ended(s, 0, 1, 200000);
        assert_int_equal(physics(s)->balance, 0);
        assert_int_equal(physics(s)->unpaid, 50);
        job_is(s, 0, JOB_COMPLETED, 0);
        story_replays(s);
}

static void test_who_pays(void **state)
{
        struct story *s = *state;
        struct err err = {""};

        set_bank(s->core, (struct core_bank){.refuse = true, .lien_ms = 1000}, "1");
        TELL(.op = BANK_OPEN, .account = STR("physics"));
        assert_true(story_submit(s, 1, (const char *const[]){"AcctGroup", "\"physics\"", NULL}, &err) < 0);
        assert_string_equal(err.text,
                            "ann@local is no member of the account physics in the bank: its owner or an "
                            "admin can say drover bank account physics --member ann@local=user");
        assert_true(story_submit(s, 1, (const char *const[]){"AcctGroup", "\"biology\"", NULL}, &err) < 0);
        assert_string_equal(err.text, "the bank has no account biology");
        assert_true(story_submit(s, 1, (const char *const[]){NULL}, &err) < 0);
        TELL(.op = BANK_MEMBER, .account = STR("physics"), .user = STR("*@local"), .role = BANK_ROLE_USER);
        assert_true(story_submit(s, 1, (const char *const[]){"AcctGroup", "\"physics.cms.run3\"", NULL},
                                 &err) < 0);
        assert_non_null(strstr(err.text, "nothing left"));
        TELL(.op = BANK_DEPOSIT, .account = STR("physics"), .amount = 1000);
        assert_true(story_submit(s, 1, (const char *const[]){"AcctGroup", "\"physics.cms.run3\"", NULL},
                                 &err) > 0);
        TELL(.op = BANK_OPEN, .account = STR("ann@local"));
        TELL(.op = BANK_DEPOSIT, .account = STR("ann@local"), .amount = 1000);
        assert_true(story_submit(s, 1, (const char *const[]){NULL}, &err) > 0);
}

/* An inactive user gets no jobs that an account pays for, whether these name it or not; but jobs that no
 * account pays for. */
static void test_an_inactive_user_gets_no_paid_jobs(void **state)
{
        struct story *s = *state;
        struct err err = {""};
        struct core_job j;

        set_bank(s->core, (struct core_bank){.hold = true, .others_free = true, .lien_ms = 100000},
                 "WallSeconds");
        open_account(s, 500000);
        SUBMIT(1, "AcctGroup", "\"physics\"");
        TELL(.op = BANK_REGISTER, .user = STR("ann@local"), .activity = BANK_INACTIVE);
        assert_true(story_submit(s, 1, (const char *const[]){"AcctGroup", "\"physics\"", NULL}, &err) < 0);
        assert_non_null(strstr(err.text, "ann@local is inactive"));
        assert_true(story_submit(s, 1, (const char *const[]){NULL}, &err) > 0);
        story_offer(s, "n1", AD, 10);
        assert_int_equal(physics(s)->held, 0);
        job_is(s, 0, JOB_HELD, CORE_HOLD_BANK);
        assert_int_equal(core_job_get(s->core, 2, 0, &j), 0);
        assert_int_equal(j.state, JOB_MATCHED);
        TELL(.op = BANK_OPEN, .account = STR("ann@local"));
        TELL(.op = BANK_DEPOSIT, .account = STR("ann@local"), .amount = 500000);
        assert_true(story_submit(s, 1, (const char *const[]){NULL}, &err) < 0); /* hers would pay */
        TELL(.op = BANK_USER, .user = STR("ann@local"), .activity = BANK_ACTIVE);
        assert_true(story_submit(s, 1, (const char *const[]){"AcctGroup", "\"physics\"", NULL}, &err) > 0);
        story_offer(s, "n1", AD, 10);
        assert_int_equal(physics(s)->held, 100);
        story_replays(s);
}

/* A quoted price applies although the rate has changed. */
static void test_a_quote_is_the_price(void **state)
{
        struct story *s = *state;
        char id[24];

        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "WallSeconds");
        open_account(s, 5000);
        snprintf(id, sizeof(id), "%llu",
                 (unsigned long long)TELL(.op = BANK_QUOTE, .account = STR("physics"), .amount = 100,
                                          .duration_ms = 100000, .end_ms = s->now + 5000, .cpus = 1));
        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "WallSeconds * 20");
        SUBMIT(1, "AcctGroup", "\"physics\"", "BankQuote", id);
        story_offer(s, "n1", AD, 10);
        assert_int_equal(physics(s)->held, 100);
        story_wait(s, 50000); /* beyond the end of the quote: it was used in time */
        ended(s, 0, 1, 50000);
        assert_int_equal(physics(s)->balance, 4950);
        story_replays(s);
}

/* Attempts that are lost, refused or not started are not charged, and the next one has the quote again, also
 * after its time, which other jobs have not. */
static void test_a_quote_outlives_attempts_that_cost_nothing(void **state)
{
        struct story *s = *state;
        struct set one = {0};
        struct core_attempts a = {1, 2, &one};
        struct core_result r = {.request = 1, .fence = 3, .outcome = CORE_STAGING_FAILED};
        const struct bank_quote *q;
        struct err why = {""};
        char id[24];

        set_add(&one, 0);
        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "WallSeconds");
        open_account(s, 50000);
        snprintf(id, sizeof(id), "%llu",
                 (unsigned long long)TELL(.op = BANK_QUOTE, .account = STR("physics"), .amount = 100,
                                          .duration_ms = 100000, .end_ms = s->now + 5000, .cpus = 1));
        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "WallSeconds * 20");
        SUBMIT(1, "AcctGroup", "\"physics\"", "BankQuote", id);
        SUBMIT(1, "AcctGroup", "\"physics\"", "BankQuote", id, "Requirements", "TARGET.Kind =?= 2");
        story_offer(s, "n1", AD, 10);
        assert_int_equal(physics(s)->held, 100);
        started(s, 0, 1);
        story_wait(s, 50000); /* beyond the end of the quote: it was used in time */
        core_inventory(s->core, "n1", NULL, 0, NULL, NULL);
        assert_int_equal(physics(s)->held, 0);
        TELL(.op = BANK_QUOTE, .account = STR("physics"), .amount = 1, .duration_ms = 1000,
             .end_ms = s->now + 5000);
        story_offer(s, "n1", AD, 10);
        assert_int_equal(physics(s)->held, 100);
        core_refused(s->core, "n1", &a, STR("full"), 0);
        assert_int_equal(core_job_quote(s->core, 1, 0, &why), CORE_UNKNOWN);
        assert_int_equal(core_job_quote(s->core, 2, 0, &why), 0);
        assert_string_equal(why.text, "quote 2 is not used: its time is over");
        story_offer(s, "n2", "[Cpus = 4; TotalCpus = 4; Memory = 1000; Kind = 2]", 10);
        assert_int_equal(physics(s)->held, 2100);
        assert_true(core_result(s->core, "n2", &r));
        assert_int_equal(physics(s)->held, 2000);
        q = bank_quote(core_bank(s->core), strtoull(id, NULL, 10));
        assert_true(q && !q->used && bank_quote_is_open(q, 1, 0, s->now));
        assert_false(bank_quote_is_open(q, 2, 0, s->now));
        assert_null(core_check(s->core));
        set_deinit(&one);
        story_replays(s);
}

static uint64_t quoted_for(struct story *s, const char *account, const char *user)
{
        return TELL(.op = BANK_QUOTE, .account = str_of(account), .user = str_of(user), .qos = STR("urgent"),
                    .amount = 100, .duration_ms = 100000, .end_ms = s->now + 5000, .cpus = 1);
}

/* A submit by a quote that cannot be used is refused; and a waiting job says that its quote cannot be used
 * any more, or for nothing that it needs. */
static void test_a_quote_that_is_not_used_is_named(void **state)
{
        struct story *s = *state;
        struct err err = {""};
        char id[24];
        uint64_t quote;

        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "Cpus * WallSeconds");
        open_account(s, 1000);
        TELL(.op = BANK_OPEN, .account = STR("biology"));
        for (unsigned i = 0; i < 4; i++) {
                static const char *const says[] = {"physics has none of that number, or its time is over",
                                                   "physics has none of that number, or its time is over",
                                                   "it is another user's", "a lien was made with it already"};

                quote = i == 0 ? 999
                               : quoted_for(s, i == 1 ? "biology" : "physics", i == 2 ? "bob@local" : "");
                if (i == 3)
                        TELL(.op = BANK_LIEN, .account = STR("physics"), .quote = quote, .amount = 1,
                             .end_ms = s->now + 1000);
                snprintf(id, sizeof(id), "%llu", (unsigned long long)quote);
                assert_true(
                        story_submit(s, 1,
                                     (const char *const[]){"AcctGroup", "\"physics\"", "BankQuote", id, NULL},
                                     &err) < 0);
                if (!strstr(err.text, says[i]) || !strstr(err.text, id))
                        fail_msg("%s", err.text);
        }
        snprintf(id, sizeof(id), "%llu", (unsigned long long)quoted_for(s, "physics", "ann@local"));
        SUBMIT(1, "AcctGroup", "\"physics\"", "BankQuote", id, "RequestCpus", "2");
        assert_int_equal(core_job_quote(s->core, 1, 0, &err), CORE_UNKNOWN); /* no place is known */
        story_offer(s, "n1", AD, 0);
        story_offer(s, "n2", "[Cpus = 1; TotalCpus = 1; Memory = 1000]", 0);
        assert_int_equal(core_job_quote(s->core, 1, 0, &err), 0);
        assert_non_null(strstr(err.text, "by the rates the job costs more there than it is for"));
        story_wait(s, 6000);
        assert_int_equal(core_job_quote(s->core, 1, 0, &err), 0);
        assert_non_null(strstr(err.text, "its time is over"));
        story_replays(s);
}

/* One of several jobs that start in one event gets the quote that all name; the others pay by the rates. */
static void test_a_quote_is_for_one_of_several_jobs(void **state)
{
        struct story *s = *state;
        char id[24];

        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "WallSeconds");
        open_account(s, 500000);
        snprintf(id, sizeof(id), "%llu",
                 (unsigned long long)TELL(.op = BANK_QUOTE, .account = STR("physics"), .amount = 100,
                                          .duration_ms = 100000, .end_ms = s->now + 5000, .cpus = 1));
        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "WallSeconds * 20");
        SUBMIT(3, "AcctGroup", "\"physics\"", "BankQuote", id);
        story_offer(s, "n1", "[Cpus = 9; TotalCpus = 9; Memory = 9000]", 10);
        assert_int_equal(bank_liens(core_bank(s->core)), 3);
        assert_int_equal(physics(s)->held, 100 + 2 * 2000);
        assert_int_equal(bank_lien_of(core_bank(s->core), 1, 0)->quote, strtoull(id, NULL, 10));
        assert_int_equal(bank_lien_of(core_bank(s->core), 1, 1)->quote, 0);
        assert_true(bank_quote(core_bank(s->core), strtoull(id, NULL, 10))->used);
        story_replays(s);
}

static int edit_one(struct story *s, const char *name, const char *text, struct err *err)
{
        BUF_CLEANUP struct buf changes = {0};
        struct core_command cmd = {.action = CORE_ACT_EDIT, .request = 1, .reason = STR("by ann")};
        uint64_t n;

        changes_add(&changes, str_of(name), false, str_of(text));
        cmd.changes = buf_view(&changes);
        return core_act(s->core, &cmd, &n, err);
}

/* A BankQuote that is no quote's number is refused at a submit and in an edit; other edits pass. */
static void test_a_bad_quote_is_refused(void **state)
{
        static const char *const bad[] = {"0", "-3", "\"7\"", "Cpus + 1", "false", "99", "error"};
        struct story *s = *state;
        struct err err = {""};
        char id[24];

        set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, "WallSeconds");
        open_account(s, 5000);
        SUBMIT(1, "AcctGroup", "\"physics\"", "BankQuote", "undefined");
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                if (story_submit(s, 1,
                                 (const char *const[]){"AcctGroup", "\"physics\"", "BankQuote", bad[i], NULL},
                                 &err) >= 0)
                        fail_msg("%s was taken", bad[i]);
                assert_int_equal(edit_one(s, "BankQuote", bad[i], &err), CORE_INVALID);
                assert_non_null(strstr(err.text, strcmp(bad[i], "99") == 0 ? "none of that number"
                                                                           : "is not the number of a quote"));
        }
        snprintf(id, sizeof(id), "%llu", (unsigned long long)quoted_for(s, "physics", "bob@local"));
        assert_int_equal(edit_one(s, "BankQuote", id, &err), CORE_INVALID);
        snprintf(id, sizeof(id), "%llu", (unsigned long long)quoted_for(s, "physics", "ann@local"));
        assert_int_equal(edit_one(s, "BankQuote", id, &err), 0);
        story_wait(s, 6000); /* its time is over now; another attribute may still be changed */
        assert_int_equal(edit_one(s, "BankQuote", id, &err), CORE_INVALID);
        assert_int_equal(edit_one(s, "Rank", "2", &err), 0);
        story_replays(s);
}

/* A quote is for one processor: a job that would cost more pays by the rates, whatever makes it cost more. */
static void test_a_quote_is_for_what_was_asked(void **state)
{
        static const struct {
                const char *rate, *name, *value;
                int64_t held;
        } rows[] = {
                {"WallSeconds * Cpus", "RequestCpus", "2", 200},
                {"WallSeconds + Memory", "RequestMemory", "64", 164},
                {"WallSeconds * (1 + 1000 * GPUs)", "RequestGPUs", "1", 100100},
                {"WallSeconds * (Hurry =?= true ? 3 : 1)", "Hurry", "true", 300},
                {"WallSeconds * (Place == \"n4/q\" ? 5 : 1)", "RequestCpus", "1", 500},
                {"WallSeconds * Cpus", "RequestMemory", "64", 100}, /* memory costs nothing */
        };
        struct story *s = *state;

        open_account(s, 1000000);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                int64_t held = physics(s)->held;
                char id[24], agent[8];

                snprintf(agent, sizeof(agent), "n%zu", i);
                set_bank(s->core, (struct core_bank){.hold = true, .lien_ms = 100000}, rows[i].rate);
                snprintf(id, sizeof(id), "%llu",
                         (unsigned long long)TELL(.op = BANK_QUOTE, .account = STR("physics"), .amount = 100,
                                                  .duration_ms = 100000, .end_ms = s->now + 5000, .cpus = 1));
                SUBMIT(1, "AcctGroup", "\"physics\"", "BankQuote", id, rows[i].name, rows[i].value);
                story_offer(s, agent, "[Cpus = 20; TotalCpus = 20; Memory = 1000; GPUs = 8]", 1);
                if (physics(s)->held - held != rows[i].held)
                        fail_msg("%s: %lld", rows[i].rate, (long long)(physics(s)->held - held));
        }
        story_replays(s);
}

static void test_rates_by_place_and_account(void **state)
{
        struct story *s = *state;
        struct core_bank_rate rates[] = {
                {.place = STR("n1/q"), .account = STR("physics"), .charge = STR("7")},
                {.place = STR("n1"), .charge = STR("5")},
                {.charge = STR("Hour * 0 + GPUs * 100 + WallSeconds / 60")},
        };
        const struct core_bank settings = {.rates = rates, .rate_count = 3};
        struct core_bank_use use = {
                .account = STR("physics.cms"), .cpus = 1, .gpus = 2, .duration_ms = 90000};
        struct err err = {""};
        int64_t amount;

        assert_int_equal(core_bank_set(s->core, &settings, &err), 0);
        story_offer(s, "n1", AD, 0);
        assert_int_equal(core_bank_price(s->core, &use, &amount, &err), 0);
        assert_int_equal(amount, 202); /* rounded up */
        use.place = STR("n1/q");
        assert_int_equal(core_bank_price(s->core, &use, &amount, &err), 0);
        assert_int_equal(amount, 7);
        use.account = STR("physicsx");
        assert_int_equal(core_bank_price(s->core, &use, &amount, &err), 0);
        assert_int_equal(amount, 5);
        use.place = STR("colony/long"); /* no agent's */
        assert_int_equal(core_bank_price(s->core, &use, &amount, &err), 0);
        assert_int_equal(amount, 202);
        rates[0].place = STR("colony");
        rates[0].account = STR("");
        rates[0].charge = STR("strcmp(Place, \"colony/long\") == 0 ? 3 : 4");
        rates[2].charge = STR("100 * Hour + WeekDay + 1");
        assert_int_equal(core_bank_set(s->core, &settings, &err), 0);
        assert_int_equal(core_bank_price(s->core, &use, &amount, &err), 0);
        assert_int_equal(amount, 3);
        use.place = STR("colonyx");
        for (int i = 0; i < 9; i++) {
                tick(s, (int64_t)5 * 3600000);
                assert_int_equal(core_bank_price(s->core, &use, &amount, &err), 0);
                assert_int_equal(amount, 100 * (s->now / 3600000 % 24) + (s->now / 86400000 + 4) % 7 + 1);
        }
        rates[2].charge = STR("TARGET.Price");
        assert_int_equal(core_bank_set(s->core, &settings, &err), 0);
        /* what a rate wants of a place is not known of it */
        assert_int_equal(core_bank_price(s->core, &use, &amount, &err), CORE_INVALID);
        assert_int_equal(
                core_bank_set(s->core,
                              &(struct core_bank){.rates = &(struct core_bank_rate){.charge = STR("1 +")},
                                                  .rate_count = 1},
                              &err),
                CORE_INVALID);
}

static void test_a_rate_without_a_value_holds(void **state)
{
        struct story *s = *state;

        set_bank(s->core, (struct core_bank){.lien_ms = 100000}, "TARGET.NoSuchPrice * WallSeconds");
        open_account(s, 100);
        SUBMIT(1, "AcctGroup", "\"physics\"", "NoSuchPrice", "0");
        story_offer(s, "n1", AD, 10);
        job_is(s, 0, JOB_HELD, CORE_HOLD_BANK);
}

/* Attributes in a user's job do not replace the measured usage. */
static void test_usage_cannot_be_shadowed(void **state)
{
        struct story *s = *state;

        set_bank(s->core, (struct core_bank){.lien_ms = 100000}, "WallSeconds * Cpus");
        open_account(s, 1000);
        SUBMIT(1, "AcctGroup", "\"physics\"", "WallSeconds", "0", "Cpus", "0");
        story_offer(s, "n1", AD, 10);
        assert_int_equal(physics(s)->held, 100);
}

static void test_off_the_bank_keeps_its_books(void **state)
{
        struct story *s = *state;

        open_account(s, 100);
        SUBMIT(1, "AcctGroup", "\"biology\"");
        story_offer(s, "n1", AD, 10);
        job_is(s, 0, JOB_MATCHED, 0);
        assert_int_equal(bank_liens(core_bank(s->core)), 0);
        TELL(.op = BANK_CHARGE, .account = STR("physics"), .amount = 30);
        assert_int_equal(physics(s)->balance, 70);
        story_replays(s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(test_an_attempt_is_reserved_and_charged),
                STORY(test_no_more_time_than_has_passed),
                STORY(test_lost_refused_and_unstarted_attempts_cost_nothing),
                STORY(test_lost_attempts_are_charged_if_it_is_so_set),
                STORY(test_an_account_that_runs_out),
                STORY(test_an_empty_account_holds_at_submission),
                STORY(test_a_waiting_job_says_what_its_account_lacks),
                STORY(test_jobs_wait_for_a_deposit),
                STORY(test_liens_grow_while_jobs_run),
                STORY(test_jobs_that_go_on_pay_what_is_there),
                STORY(test_who_pays),
                STORY(test_an_inactive_user_gets_no_paid_jobs),
                STORY(test_a_quote_is_the_price),
                STORY(test_a_quote_outlives_attempts_that_cost_nothing),
                STORY(test_a_quote_that_is_not_used_is_named),
                STORY(test_a_quote_is_for_one_of_several_jobs),
                STORY(test_a_bad_quote_is_refused),
                STORY(test_a_quote_is_for_what_was_asked),
                STORY(test_rates_by_place_and_account),
                STORY(test_a_rate_without_a_value_holds),
                STORY(test_usage_cannot_be_shadowed),
                STORY(test_off_the_bank_keeps_its_books),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
