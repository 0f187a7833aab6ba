/* The bank: orders that it allows, entries that it writes, and books that balance whatever is asked of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "bank/bank.h"
#include "base/mem.h"
#include "base/pack.h"

#define NOW 1000000

struct books {
        struct bank *bank;
        int64_t now_ms;
        uint64_t id;      /* of what the last order made */
        uint64_t entries; /* that were told */
        int64_t issued, earned;
        struct bank_entry last;
        char job[64], why[64]; /* of the last movement */
        struct err err;
};

static void on_entry(void *arg, const struct bank_entry *e)
{
        struct books *k = arg;

        assert_int_equal(e->serial, ++k->entries);
        assert_true(e->amount > 0);
        if (strcmp(e->from, BANK_ISSUED) == 0)
                k->issued -= e->amount;
        if (strcmp(e->to, BANK_ISSUED) == 0)
                k->issued += e->amount;
        if (strcmp(e->to, BANK_EARNED) == 0)
                k->earned += e->amount;
        if (strcmp(e->from, BANK_EARNED) == 0)
                k->earned -= e->amount;
        k->last = *e;
        snprintf(k->job, sizeof(k->job), STR_FMT, STR_ARG(e->job)); /* borrowed, as all texts */
        snprintf(k->why, sizeof(k->why), STR_FMT, STR_ARG(e->why));
}

/* Through the record of an event, as in the server. The order does what bank_check said that it would. */
static int tell(struct books *k, const struct bank_order *said)
{
        BUF_CLEANUP struct buf record = {0};
        struct bank_order o;
        int expected, r;

        bank_order_pack(&record, said);
        assert_int_equal(bank_order_unpack(&o, buf_view(&record), &k->err), 0);
        expected = bank_check(k->bank, &o, k->now_ms, &k->err);
        r = bank_apply(k->bank, &o, k->now_ms, on_entry, k, &k->id, &k->err);
        assert_int_equal(r, expected);
        bank_order_deinit(&o);
        if (bank_invariant(k->bank))
                fail_msg("%s", bank_invariant(k->bank));
        assert_int_equal(bank_issued(k->bank), k->issued);
        assert_int_equal(bank_earned(k->bank), k->earned);
        return r;
}
#define TELL(k, ...) tell(k, &(struct bank_order){__VA_ARGS__})

static int setup(void **state)
{
        struct books *k = mem_new(struct books);

        k->bank = bank_new();
        k->now_ms = NOW;
        *state = k;
        assert_int_equal(TELL(k, .op = BANK_OPEN, .account = STR("physics")), 0);
        assert_int_equal(TELL(k, .op = BANK_OPEN, .account = STR("physics.cms")), 0);
        return 0;
}

static int teardown(void **state)
{
        struct books *k = *state;

        bank_free(k->bank);
        free(k);
        return 0;
}

static struct bank_account *cms(struct books *k)
{
        return bank_account(k->bank, STR("physics.cms"));
}

static int deposit(struct books *k, int64_t amount)
{
        return TELL(k, .op = BANK_DEPOSIT, .account = STR("physics.cms"), .amount = amount);
}

static int64_t available(struct books *k)
{
        return bank_available(cms(k), STR("ann@lab"), STR("node1/default"), k->now_ms);
}

/* An order about attempts of members [0, count) of request 7. */
static int job(struct books *k, enum bank_op op, uint32_t count, uint32_t fence, int64_t amount)
{
        struct bank_order o = {.op = op,
                               .account = STR("physics.cms"),
                               .user = STR("ann@lab"),
                               .place = STR("node1/default"),
                               .request = 7,
                               .fence = fence,
                               .amount = amount};
        int r;

        set_add_range(&o.members, 0, count);
        r = tell(k, &o);
        bank_order_deinit(&o);
        return r;
}

static void test_names_of_accounts(void **state)
{
        static const char *const bad[] = {"", "@x", "a b", ".a", "a.", "a..b", "a/b", "a.b.c.d.e.f.g.h.i"};
        struct books *k = *state;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(TELL(k, .op = BANK_OPEN, .account = str_of(bad[i])), BANK_INVALID);
        assert_int_equal(TELL(k, .op = BANK_OPEN, .account = STR("chemistry.x")), BANK_UNKNOWN);
        assert_int_equal(TELL(k, .op = BANK_OPEN, .account = STR("ann@lab.example")), 0);
        assert_null(bank_account(k->bank, STR("ann@lab.example"))->parent);
        assert_ptr_equal(cms(k)->parent, bank_account(k->bank, STR("physics")));
        assert_ptr_equal(bank_account_above(k->bank, STR("physics.cms.run3")), cms(k));
        assert_null(bank_account_above(k->bank, STR("biology.x")));
}

static void test_roles_come_from_above(void **state)
{
        struct books *k = *state;

        assert_int_equal(bank_role_of(cms(k), STR("ann@lab")), BANK_ROLE_NONE);
        TELL(k, .op = BANK_MEMBER, .account = STR("physics.cms"), .user = STR("*@lab"),
             .role = BANK_ROLE_USER);
        TELL(k, .op = BANK_MEMBER, .account = STR("physics"), .user = STR("ann@lab"),
             .role = BANK_ROLE_OWNER);
        assert_int_equal(bank_role_of(cms(k), STR("ann@lab")), BANK_ROLE_OWNER);
        assert_int_equal(bank_role_of(cms(k), STR("bob@lab")), BANK_ROLE_USER);
        assert_int_equal(bank_role_of(cms(k), STR("bob@elsewhere")), BANK_ROLE_NONE);
        assert_int_equal(bank_role_of(cms(k)->parent, STR("bob@lab")), BANK_ROLE_NONE);
        assert_int_equal(TELL(k, .op = BANK_MEMBER, .account = STR("physics.cms"), .user = STR("*@lab")), 0);
        assert_int_equal(bank_role_of(cms(k), STR("bob@lab")), BANK_ROLE_NONE);
        assert_int_equal(TELL(k, .op = BANK_MEMBER, .account = STR("physics.cms"), .user = STR("*@lab")),
                         BANK_UNKNOWN);
}

static void test_a_deposit_can_be_spent_and_no_more(void **state)
{
        struct books *k = *state;

        assert_int_equal(deposit(k, 0), BANK_INVALID);
        assert_int_equal(deposit(k, -5), BANK_INVALID);
        assert_int_equal(deposit(k, 100), 0);
        assert_int_equal(available(k), 100);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .account = STR("physics.cms"), .amount = 101),
                         BANK_SHORT);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .account = STR("physics.cms"), .amount = 60,
                              .who = STR("root@lab"), .why = STR("tape")),
                         0);
        assert_string_equal(k->last.from, "physics.cms");
        assert_string_equal(k->last.to, BANK_EARNED);
        assert_int_equal(k->last.from_balance, 40);
        assert_int_equal(available(k), 40);
        assert_int_equal(TELL(k, .op = BANK_WITHDRAW, .account = STR("physics.cms"), .amount = 41),
                         BANK_SHORT);
        assert_int_equal(TELL(k, .op = BANK_TRANSFER, .account = STR("physics.cms"), .to = STR("physics"),
                              .amount = 15),
                         0);
        assert_int_equal(available(k), 25);
        assert_int_equal(cms(k)->parent->balance, 15);
        assert_int_equal(deposit(k, BANK_AMOUNT_MAX), BANK_INVALID);
}

static void test_a_refund_is_of_what_was_charged(void **state)
{
        struct books *k = *state;

        deposit(k, 100);
        TELL(k, .op = BANK_CHARGE, .account = STR("physics.cms"), .amount = 60);
        assert_int_equal(TELL(k, .op = BANK_REFUND, .account = STR("physics.cms"), .amount = 61),
                         BANK_INVALID);
        assert_int_equal(TELL(k, .op = BANK_REFUND, .account = STR("physics.cms"), .amount = 40), 0);
        assert_int_equal(available(k), 80);
        assert_int_equal(TELL(k, .op = BANK_REFUND, .account = STR("physics.cms"), .amount = 21),
                         BANK_INVALID);
}

static void test_an_attempt_holds_what_it_will_be_charged(void **state)
{
        struct books *k = *state;

        deposit(k, 100);
        assert_int_equal(job(k, BANK_LIEN, 3, 1, 34), BANK_SHORT);
        assert_int_equal(bank_liens(k->bank), 0);
        assert_int_equal(job(k, BANK_LIEN, 3, 1, 30), 0);
        assert_int_equal(available(k), 10);
        assert_int_equal(cms(k)->balance, 100);
        assert_int_equal(job(k, BANK_LIEN, 1, 2, 1), BANK_CONFLICT); /* an attempt at a time */
        assert_int_equal(job(k, BANK_CHARGE, 1, 2, 1), BANK_UNKNOWN);
        assert_int_equal(TELL(k, .op = BANK_WITHDRAW, .account = STR("physics.cms"), .amount = 11),
                         BANK_SHORT);
        assert_int_equal(job(k, BANK_CHARGE, 1, 1, 20), 0);
        assert_int_equal(k->last.request, 7);
        assert_int_equal(k->last.fence, 1);
        assert_int_equal(available(k), 20);
        assert_int_equal(job(k, BANK_CHARGE, 1, 1, 20), BANK_UNKNOWN); /* no second charge */
        assert_int_equal(bank_liens(k->bank), 2);
}

static void test_a_lien_is_extended_and_released(void **state)
{
        struct books *k = *state;

        deposit(k, 100);
        job(k, BANK_LIEN, 2, 5, 10);
        assert_int_equal(job(k, BANK_EXTEND, 2, 5, 41), BANK_SHORT);
        assert_int_equal(job(k, BANK_EXTEND, 2, 5, 40), 0);
        assert_int_equal(available(k), 0);
        assert_int_equal(job(k, BANK_RELEASE, 2, 4, 0), BANK_UNKNOWN);
        assert_int_equal(job(k, BANK_RELEASE, 2, 5, 0), 0);
        assert_int_equal(available(k), 100);
        assert_int_equal(k->entries, 1); /* the deposit: nothing else has moved */
}

/* A job that used more than it had reserved takes what is there, and the rest is written down. */
static void test_no_charge_goes_below_the_credit_limit(void **state)
{
        struct books *k = *state;

        TELL(k, .op = BANK_DEPOSIT, .account = STR("physics.cms"), .amount = 50, .credit = 20);
        assert_int_equal(available(k), 70);
        job(k, BANK_LIEN, 1, 1, 10);
        assert_int_equal(job(k, BANK_CHARGE, 1, 1, 1000), 0);
        assert_int_equal(cms(k)->balance, -20);
        assert_int_equal(cms(k)->unpaid, 930);
        assert_int_equal(available(k), 0);
        assert_int_equal(TELL(k, .op = BANK_SET, .account = STR("physics.cms"), .id = k->last.from_allocation,
                              .credit = 10),
                         BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_DEPOSIT, .account = STR("physics.cms"),
                              .id = k->last.from_allocation, .amount = 30),
                         0);
        assert_int_equal(available(k), 30);
}

static void test_allocations_have_a_time(void **state)
{
        struct books *k = *state;

        TELL(k, .op = BANK_DEPOSIT, .account = STR("physics.cms"), .amount = 10, .start_ms = NOW + 100,
             .end_ms = NOW + 200);
        assert_int_equal(available(k), 0);
        k->now_ms = NOW + 100;
        assert_int_equal(available(k), 10);
        assert_int_equal(job(k, BANK_LIEN, 1, 1, 4), 0);
        k->now_ms = NOW + 200;
        assert_int_equal(available(k), 0);
        deposit(k, 5); /* what has ended is not closed while a lien is on it */
        assert_int_equal(cms(k)->balance, 15);
        assert_int_equal(job(k, BANK_CHARGE, 1, 1, 4), 0);
        deposit(k, 5);
        assert_int_equal(cms(k)->balance, 10);
        assert_int_equal(cms(k)->allocation_count, 2);
        assert_int_equal(bank_issued(k->bank), -14);
        assert_int_equal(
                TELL(k, .op = BANK_DEPOSIT, .account = STR("physics.cms"), .amount = 1, .end_ms = NOW),
                BANK_INVALID);
        assert_int_equal(TELL(k, .op = BANK_DEPOSIT, .account = STR("physics.cms"), .amount = 1,
                              .start_ms = NOW + 900, .end_ms = NOW + 800),
                         BANK_INVALID);
}

static void test_the_soonest_end_is_spent_first(void **state)
{
        struct books *k = *state;
        uint64_t soon;

        deposit(k, 10);
        TELL(k, .op = BANK_DEPOSIT, .account = STR("physics.cms"), .amount = 10, .end_ms = NOW + 200);
        soon = k->id;
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .account = STR("physics.cms"), .amount = 4), 0);
        assert_int_equal(k->last.from_allocation, soon);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .account = STR("physics.cms"), .amount = 16), 0);
        assert_int_equal(k->entries, 5); /* the last charge was of both */
}

static void test_allocations_for_some_places_and_users(void **state)
{
        struct books *k = *state;
        struct bank_account *a = cms(k);

        TELL(k, .op = BANK_DEPOSIT, .account = STR("physics.cms"), .amount = 10,
             .places = STR("node1, node2/gpu"));
        TELL(k, .op = BANK_DEPOSIT, .account = STR("physics.cms"), .amount = 5,
             .users = STR("bob@lab,*@far"));
        assert_int_equal(bank_available(a, STR("ann@lab"), STR("node1/default"), NOW), 10);
        assert_int_equal(bank_available(a, STR("ann@lab"), STR("node2/gpu"), NOW), 10);
        assert_int_equal(bank_available(a, STR("ann@lab"), STR("node2/default"), NOW), 0);
        assert_int_equal(bank_available(a, STR("bob@lab"), STR("node2/gpu"), NOW), 15);
        assert_int_equal(bank_available(a, STR("eve@far"), STR("node3"), NOW), 5);
        assert_int_equal(bank_available(a, STR_NONE, STR_NONE, NOW), 0);
        assert_int_equal(bank_available_any(a, NOW), 15);
}

/* Money comes back to where those who have spent it can spend it, and others cannot. */
static void test_a_refund_goes_to_those_who_have_spent(void **state)
{
        struct str where = STR("physics.cms"), bob = STR("bob@lab");
        struct books *k = *state;
        uint64_t bobs, common;

        TELL(k, .op = BANK_DEPOSIT, .account = where, .amount = 50, .users = bob, .end_ms = NOW + 10);
        bobs = k->id;
        TELL(k, .op = BANK_DEPOSIT, .account = where, .amount = 100);
        common = k->id;
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .account = where, .amount = 30, .user = STR("ann@lab")),
                         0);
        assert_int_equal(TELL(k, .op = BANK_REFUND, .account = where, .amount = 10, .user = STR("ann@lab")),
                         0);
        assert_int_equal(k->last.to_allocation, common);
        assert_int_equal(TELL(k, .op = BANK_REFUND, .account = where, .amount = 10), 0);
        assert_int_equal(k->last.to_allocation, common);
        assert_int_equal(TELL(k, .op = BANK_REFUND, .account = where, .amount = 5, .user = bob), 0);
        assert_int_equal(k->last.to_allocation, bobs);
        assert_true(bank_allocation_is_open(cms(k), bobs, NOW));
        assert_false(bank_allocation_is_open(cms(k), bobs, NOW + 10));
        assert_false(bank_allocation_is_open(cms(k), common + 1, NOW));
}

/* A deposit into an ended allocation pays its debt, and is refused if it is more than that. */
static void test_a_debt_is_paid(void **state)
{
        struct str where = STR("physics.cms");
        struct books *k = *state;
        uint64_t id;

        TELL(k, .op = BANK_DEPOSIT, .account = where, .amount = 10, .credit = 100);
        id = k->id;
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .account = where, .amount = 70), 0);
        assert_int_equal(TELL(k, .op = BANK_SET, .account = where, .id = id, .activity = BANK_INACTIVE), 0);
        assert_int_equal(TELL(k, .op = BANK_CLOSE, .account = where), BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_DEPOSIT, .account = where, .id = id, .amount = 61), BANK_INVALID);
        assert_int_equal(TELL(k, .op = BANK_DEPOSIT, .account = where, .id = id, .amount = 60), 0);
        assert_int_equal(TELL(k, .op = BANK_CLOSE, .account = where), 0);
}

/* A lien is extended for users and at places for which one could be made, too. */
static void test_a_lien_is_extended_by_the_register(void **state)
{
        struct str where = STR("physics.cms"), ann = STR("ann@lab");
        struct books *k = *state;
        uint64_t id;

        deposit(k, 100);
        TELL(k, .op = BANK_REGISTER, .place = STR("node1"));
        TELL(k, .op = BANK_REGISTER, .place = STR("node2"), .activity = BANK_INACTIVE);
        assert_int_equal(
                TELL(k, .op = BANK_LIEN, .account = where, .amount = 5, .user = ann, .place = STR("node1")),
                0);
        id = k->id;
        assert_int_equal(TELL(k, .op = BANK_EXTEND, .id = id, .amount = 5, .place = STR("node2")),
                         BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_EXTEND, .id = id, .amount = 5, .place = STR("node3")),
                         BANK_UNKNOWN);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .id = id, .amount = 5, .place = STR("node3")),
                         BANK_UNKNOWN);
        TELL(k, .op = BANK_REGISTER, .user = ann, .activity = BANK_INACTIVE);
        assert_int_equal(TELL(k, .op = BANK_EXTEND, .id = id, .amount = 5), BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .id = id, .amount = 5), 0);
}

static void test_liens_of_other_systems_have_an_end(void **state)
{
        struct books *k = *state;
        uint64_t id;

        deposit(k, 100);
        assert_int_equal(TELL(k, .op = BANK_LIEN, .account = STR("physics.cms"), .amount = 30,
                              .end_ms = NOW + 50, .why = STR("a run elsewhere")),
                         0);
        id = k->id;
        assert_int_equal(bank_lien(k->bank, id)->amount, 30);
        assert_null(bank_lien_over(k->bank, NOW + 49));
        assert_int_equal(bank_lien_over(k->bank, NOW + 50)->id, id);
        assert_int_equal(TELL(k, .op = BANK_EXTEND, .id = id, .end_ms = NOW + 90), 0);
        assert_null(bank_lien_over(k->bank, NOW + 60));
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .id = id, .amount = 101), BANK_SHORT);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .id = id, .amount = 20), 0);
        assert_string_equal(k->last.from, "physics.cms");
        assert_int_equal(available(k), 80);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .id = id, .amount = 1), BANK_UNKNOWN);
}

static void test_a_quote_is_used_once_and_in_its_time(void **state)
{
        struct books *k = *state;
        struct bank_order lien = {
                .op = BANK_LIEN, .account = STR("physics.cms"), .amount = 1, .end_ms = NOW + 99};

        deposit(k, 100);
        assert_int_equal(TELL(k, .op = BANK_QUOTE, .account = STR("physics.cms"), .amount = 5, .end_ms = NOW,
                              .duration_ms = 60000),
                         BANK_INVALID);
        assert_int_equal(TELL(k, .op = BANK_QUOTE, .account = STR("physics.cms"), .amount = 5,
                              .end_ms = NOW + 10, .duration_ms = 60000, .cpus = 2),
                         0);
        lien.quote = k->id;
        assert_int_equal(tell(k, &lien), 0);
        assert_int_equal(tell(k, &lien), BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_RELEASE, .id = k->id), 0); /* it costs nothing */
        assert_int_equal(tell(k, &lien), 0);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .id = k->id), 0);
        assert_int_equal(tell(k, &lien), BANK_CONFLICT);
        k->now_ms = NOW + 10;
        assert_int_equal(tell(k, &lien), BANK_UNKNOWN);
}

static uint64_t dice(uint64_t *seed, uint64_t sides)
{
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        return (*seed >> 33) % sides;
}

struct counted {
        uint32_t accounts, liens;
};

static void count_account(void *arg, const struct bank_account *a)
{
        struct counted *c = arg; /* what there is, without what the trees say */

        c->accounts += 1 - a->tree_accounts;
        c->liens -= a->tree_liens;
        assert_true(!a->parent || a->tree_accounts + a->tree_liens == 0);
}

static void count_lien(void *arg, const struct bank_lien *l)
{
        ((struct counted *)arg)->liens += l->request == 0;
}

static void trees_are_counted(const struct books *k)
{
        struct counted c = {0};

        bank_accounts_each(k->bank, count_account, &c);
        bank_liens_each(k->bank, count_lien, &c);
        assert_int_equal(c.accounts, 0);
        assert_int_equal(c.liens, 0);
}

static void test_a_tree_has_a_share(void **state)
{
        struct books *k = *state;

        for (unsigned i = 0; i < BANK_QUOTES_MAX / BANK_SHARE; i++) {
                assert_true(bank_share_is_left(k->bank, BANK_QUOTE, STR("physics.cms.new"), NOW));
                assert_int_equal(TELL(k, .op = BANK_QUOTE,
                                      .account = i % 2 ? STR("physics") : STR("physics.cms"), .amount = 5,
                                      .end_ms = NOW + 10, .duration_ms = 1),
                                 0);
        }
        assert_false(bank_share_is_left(k->bank, BANK_QUOTE, STR("physics.cms.new"), NOW));
        assert_true(bank_share_is_left(k->bank, BANK_QUOTE, STR("physics"), NOW + 10));
        assert_true(bank_share_is_left(k->bank, BANK_QUOTE, STR("physics2"), NOW));
        assert_true(bank_share_is_left(k->bank, BANK_QUOTE, STR("ann@physics.cms"), NOW));
        assert_true(bank_share_is_left(k->bank, BANK_LIEN, STR("physics"), NOW));
        assert_true(bank_share_is_left(k->bank, BANK_OPEN, STR("physics.new"), NOW));
        assert_true(bank_share_is_left(k->bank, BANK_CHARGE, STR("physics"), NOW));
}

static void pack_again(struct books *k)
{
        BUF_CLEANUP struct buf before = {0}, after = {0};
        struct unpack in;

        bank_pack(k->bank, &before);
        bank_closed_pack(k->bank, &before);
        bank_free(k->bank);
        k->bank = bank_new();
        in = unpack_from(buf_view(&before));
        bank_unpack(k->bank, &in);
        bank_closed_unpack(k->bank, &in);
        assert_true(unpack_done(&in));
        bank_pack(k->bank, &after);
        bank_closed_pack(k->bank, &after);
        assert_true(str_eq(buf_view(&before), buf_view(&after)));
        if (bank_invariant(k->bank))
                fail_msg("%s", bank_invariant(k->bank));
        trees_are_counted(k);
}

/* A name finds the newest of the liens that have it, and after that one's end the next. */
static void test_liens_with_one_name(void **state)
{
        struct str where = STR("physics.cms"), ann = STR("ann@lab"), name = STR("PBS.1");
        struct books *k = *state;
        uint64_t ids[3];

        deposit(k, 100);
        for (int i = 0; i < 3; i++) {
                TELL(k, .op = BANK_LIEN, .account = where, .amount = 5, .user = ann, .why = name);
                ids[i] = k->id;
        }
        pack_again(k);
        assert_int_equal(bank_lien_named(k->bank, where, ann, name)->id, ids[2]);
        assert_int_equal(TELL(k, .op = BANK_RELEASE, .id = ids[0]), 0);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .id = ids[2], .amount = 1), 0);
        assert_int_equal(bank_lien_named(k->bank, where, ann, name)->id, ids[1]);
        assert_int_equal(TELL(k, .op = BANK_RELEASE, .id = ids[1]), 0);
        assert_null(bank_lien_named(k->bank, where, ann, name));
}

/* Thousands of liens with one name, of which the newest ends first. */
static void test_many_liens_with_one_name(void **state)
{
        enum { MANY = 3000 };
        struct str where = STR("physics.cms"), ann = STR("ann@lab"), name = STR("PBS.1");
        struct books *k = *state;
        uint64_t first = 0;

        deposit(k, MANY);
        for (int i = 0; i < MANY; i++) {
                TELL(k, .op = BANK_LIEN, .account = where, .amount = 1, .user = ann, .why = name);
                first = first ? first : k->id;
        }
        assert_int_equal(TELL(k, .op = BANK_RELEASE, .id = first + MANY / 2), 0);
        pack_again(k);
        for (int i = MANY - 1; i >= 0; i--) {
                if (i == MANY / 2)
                        continue;
                assert_int_equal(bank_lien_named(k->bank, where, ann, name)->id, first + (uint64_t)i);
                assert_int_equal(TELL(k, .op = BANK_RELEASE, .id = first + (uint64_t)i), 0);
        }
        assert_null(bank_lien_named(k->bank, where, ann, name));
}

/* Only an account without money and with nothing open below it is closed; then it takes part in nothing, also
 * after a restart, until it is opened again. */
static void test_accounts_are_closed(void **state)
{
        struct books *k = *state;
        const struct str where = STR("physics.cms");

        deposit(k, 10);
        assert_int_equal(TELL(k, .op = BANK_CLOSE, .account = where), BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_WITHDRAW, .account = where, .amount = 10), 0);
        assert_int_equal(TELL(k, .op = BANK_CLOSE, .account = STR("physics")), BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_DEPOSIT, .account = where, .credit = 50), 0);
        assert_int_equal(available(k), 50);
        assert_int_equal(TELL(k, .op = BANK_CLOSE, .account = where), 0);
        assert_int_equal(TELL(k, .op = BANK_CLOSE, .account = STR("physics")), 0);
        pack_again(k);
        assert_int_equal(available(k), 0);
        assert_int_equal(bank_available_any(cms(k), k->now_ms), 0);
        assert_int_equal(TELL(k, .op = BANK_CLOSE, .account = where), BANK_CONFLICT);
        assert_int_equal(deposit(k, 10), BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_LIEN, .account = where, .amount = 1, .user = STR("ann@lab")),
                         BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .account = where, .amount = 1), BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_OPEN, .account = where), BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_OPEN, .account = STR("physics.new")), BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_OPEN, .account = STR("physics")), 0);
        assert_int_equal(TELL(k, .op = BANK_OPEN, .account = where), 0);
        assert_int_equal(available(k), 50);
        assert_int_equal(TELL(k, .op = BANK_CLOSE, .account = STR("chemistry")), BANK_UNKNOWN);
}

/* A change makes no account, and another text leaves it open or closed. */
static void test_accounts_are_changed(void **state)
{
        struct str where = STR("physics.cms");
        struct books *k = *state;

        assert_int_equal(TELL(k, .op = BANK_ACCOUNT, .account = STR("chemistry"), .why = STR("x")),
                         BANK_UNKNOWN);
        assert_int_equal(TELL(k, .op = BANK_ACCOUNT, .account = where), BANK_INVALID);
        assert_int_equal(TELL(k, .op = BANK_ACCOUNT, .account = STR("physics"), .activity = BANK_INACTIVE),
                         BANK_CONFLICT);
        assert_int_equal(
                TELL(k, .op = BANK_ACCOUNT, .account = where, .activity = BANK_INACTIVE, .why = STR("May")),
                0);
        assert_true(cms(k)->closed);
        assert_string_equal(cms(k)->text, "May");
        assert_int_equal(TELL(k, .op = BANK_ACCOUNT, .account = where, .why = STR("June")), 0);
        assert_true(cms(k)->closed);
        assert_string_equal(cms(k)->text, "June");
        assert_int_equal(TELL(k, .op = BANK_ACCOUNT, .account = where, .activity = BANK_ACTIVE), 0);
        assert_false(cms(k)->closed);
        deposit(k, 5);
        assert_int_equal(
                TELL(k, .op = BANK_ACCOUNT, .account = where, .activity = BANK_INACTIVE, .why = STR("July")),
                BANK_CONFLICT);
        assert_string_equal(cms(k)->text, "June");
        assert_int_equal(TELL(k, .op = BANK_ACCOUNT, .account = where, .clears = BANK_CLEARS_WHY), 0);
        assert_null(cms(k)->text);
}

/* Liens of other systems are found by the names of their jobs, apart from their reasons, also after a
 * restart; the movements have both. */
static void test_jobs_of_other_systems_have_names(void **state)
{
        struct books *k = *state;
        BUF_CLEANUP struct buf jobs = {0};
        const struct str who = STR("ann@lab"), where = STR("physics.cms");
        uint64_t first, second;

        deposit(k, 100);
        assert_int_equal(TELL(k, .op = BANK_LIEN, .account = where, .amount = 5, .user = who,
                              .job = STR("PBS.1"), .why = STR("tape")),
                         0);
        first = k->id;
        assert_int_equal(
                TELL(k, .op = BANK_LIEN, .account = where, .amount = 5, .user = who, .why = STR("PBS.2")), 0);
        second = k->id;
        bank_jobs_pack(k->bank, &jobs);
        for (size_t n = 0; n <= jobs.n; n++) {
                struct unpack in = unpack_from(str_make(jobs.p, n));

                pack_again(k);
                assert_null(bank_lien_named(k->bank, where, who, STR("PBS.1")));
                bank_jobs_unpack(k->bank, &in);
                assert_int_equal(in.bad, n < jobs.n);
        }
        assert_int_equal(bank_lien_named(k->bank, where, who, STR("PBS.1"))->id, first);
        assert_int_equal(bank_lien_named(k->bank, where, who, STR("PBS.2"))->id, second);
        assert_null(bank_lien_named(k->bank, where, who, STR("tape")));
        trees_are_counted(k);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .id = first, .amount = 4), 0);
        assert_string_equal(k->job, "PBS.1");
        assert_string_equal(k->why, "tape");
        assert_null(bank_lien_named(k->bank, where, who, STR("PBS.1")));
        assert_int_equal(bank_account(k->bank, where)->last_refund, 0);
        assert_int_equal(TELL(k, .op = BANK_REFUND, .account = where, .amount = 4, .job = STR("PBS.1")), 0);
        assert_int_equal(bank_account(k->bank, where)->last_refund, k->last.serial);
}

/* Orders of any kind with any numbers, and a snapshot now and then: `tell` compares check with apply, and the
 * books with the movements that were told, after each. */
static void random_orders(struct books *k, uint64_t seed)
{
        static const char *const names[] = {"physics", "physics.cms", "ann@lab", "nobody"};
        unsigned done = 0;

        for (unsigned i = 0; i < 400; i++) {
                struct bank_order o = {.op = (enum bank_op)(1 + dice(&seed, BANK_OPS - 1)),
                                       .account = str_of(names[dice(&seed, 4)]),
                                       .to = str_of(names[dice(&seed, 3)]),
                                       .user = dice(&seed, 3) ? STR("ann@lab") : STR("bob@lab"),
                                       .place = dice(&seed, 2) ? STR("node1/a") : STR("node2/a"),
                                       .role = (enum bank_role)dice(&seed, BANK_ROLES),
                                       .amount = (int64_t)dice(&seed, 60)};

                if (dice(&seed, 3) == 0)
                        o.id = dice(&seed, 40);
                if (dice(&seed, 4) == 0)
                        o.credit = (int64_t)dice(&seed, 30);
                if (dice(&seed, 3) == 0)
                        o.end_ms = k->now_ms + (int64_t)dice(&seed, 90) - 10;
                if (dice(&seed, 4) == 0)
                        o.places = STR("node1");
                if (dice(&seed, 6) == 0)
                        o.users = STR("bob@lab");
                o.duration_ms = (int64_t)dice(&seed, 3);
                o.activity = (enum bank_activity)dice(&seed, BANK_ACTIVITIES);
                if (dice(&seed, 3) == 0)
                        o.quote = dice(&seed, 40);
                if (dice(&seed, 3) == 0)
                        o.place = STR_NONE; /* an order about a register is one about users */
                if (dice(&seed, 2)) {
                        o.request = 1 + dice(&seed, 2);
                        o.fence = (uint32_t)dice(&seed, 2);
                        for (uint64_t n = dice(&seed, 4); n > 0; n--)
                                set_add(&o.members, (uint32_t)dice(&seed, 5));
                }
                done += tell(k, &o) == 0;
                bank_order_deinit(&o);
                k->now_ms += (int64_t)dice(&seed, 3);
                if (i % 50 == 49) {
                        trees_are_counted(k);
                        pack_again(k);
                }
        }
        assert_true(done > 20);
}

static int quote_at(struct books *k, struct str place)
{
        return TELL(k, .op = BANK_QUOTE, .account = STR("physics.cms"), .place = place, .duration_ms = 1000,
                    .end_ms = k->now_ms + 1000);
}

static int lien_at(struct books *k, struct str place)
{
        return TELL(k, .op = BANK_LIEN, .account = STR("physics.cms"), .place = place, .amount = 1);
}

static int deposit_for(struct books *k, struct str places)
{
        return TELL(k, .op = BANK_DEPOSIT, .account = STR("physics.cms"), .places = places, .amount = 100);
}

static void test_machines_are_registered(void **state)
{
        static const char *const bad[] = {"", "a b", "a,b", "*", "/a", "a/", "a/b/c", "a\n"};
        struct books *k = *state;
        uint64_t lien;

        deposit(k, 100);
        assert_int_equal(deposit_for(k, STR("anywhere")), 0);
        assert_int_equal(quote_at(k, STR("anywhere")), 0);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(TELL(k, .op = BANK_REGISTER, .place = str_of(bad[i])), BANK_INVALID);
        assert_int_equal(TELL(k, .op = BANK_MACHINE, .place = STR("colony"), .activity = BANK_INACTIVE),
                         BANK_UNKNOWN);
        assert_int_equal(TELL(k, .op = BANK_UNREGISTER, .place = STR("colony")), BANK_UNKNOWN);
        assert_int_equal(TELL(k, .op = BANK_REGISTER, .place = STR("colony"), .why = STR("a cluster"),
                              .arch = STR("x86_64"), .opsys = STR("linux")),
                         0);
        assert_int_equal(TELL(k, .op = BANK_REGISTER, .place = STR("colony")), BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_REGISTER, .place = STR("altix/long")), 0);
        assert_int_equal(deposit_for(k, STR("colony, colony/short,altix/long,*")), 0);
        assert_int_equal(deposit_for(k, STR("colony,colny")), BANK_UNKNOWN);
        assert_int_equal(deposit_for(k, STR("altix")), BANK_UNKNOWN);
        assert_int_equal(quote_at(k, STR("anywhere")), BANK_UNKNOWN);
        assert_int_equal(quote_at(k, STR("")), 0);
        assert_int_equal(quote_at(k, STR("colony/short")), 0);
        assert_int_equal(lien_at(k, STR("colony")), 0);
        lien = k->id;
        assert_int_equal(TELL(k, .op = BANK_MACHINE, .place = STR("colony"), .activity = BANK_INACTIVE), 0);
        assert_int_equal(quote_at(k, STR("colony/short")), BANK_CONFLICT);
        assert_int_equal(lien_at(k, STR("colony")), BANK_CONFLICT);
        assert_int_equal(deposit_for(k, STR("colony")), 0);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .id = lien, .amount = 1), 0); /* what was begun is paid */
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .account = STR("physics.cms"), .place = STR("colony"),
                              .amount = 1),
                         0);
        assert_int_equal(
                TELL(k, .op = BANK_CHARGE, .account = STR("physics.cms"), .place = STR("x"), .amount = 1),
                BANK_UNKNOWN);
        assert_int_equal(job(k, BANK_LIEN, 1, 1, 5), 0); /* whoever makes a job's has asked the register */
        assert_string_equal(registry_get(bank_machines(k->bank), STR("colony"))->text, "a cluster");
        assert_int_equal(TELL(k, .op = BANK_MACHINE, .place = STR("colony"), .activity = BANK_ACTIVE), 0);
        assert_int_equal(lien_at(k, STR("colony")), 0);
        assert_int_equal(TELL(k, .op = BANK_UNREGISTER, .place = STR("colony")), 0);
        assert_int_equal(lien_at(k, STR("colony")), BANK_UNKNOWN);
        assert_int_equal(TELL(k, .op = BANK_UNREGISTER, .place = STR("altix/long")), 0);
        assert_int_equal(lien_at(k, STR("colony")), 0);
}

static int quote_for(struct books *k, struct str user)
{
        return TELL(k, .op = BANK_QUOTE, .account = STR("physics.cms"), .user = user, .duration_ms = 1000,
                    .end_ms = k->now_ms + 1000);
}

static int lien_for(struct books *k, struct str user)
{
        return TELL(k, .op = BANK_LIEN, .account = STR("physics.cms"), .user = user, .amount = 1);
}

/* Users need not be registered; those who are inactive get no promises, and pay what was begun. */
static void test_users_are_registered(void **state)
{
        static const char *const bad[] = {"ann",   "@lab",    "ann@",    "a@b@c",
                                          "*@lab", "a b@lab", "a,b@lab", "a@b\n"};
        struct str ann = STR("ann@lab"), bob = STR("bob@lab");
        struct books *k = *state;
        uint64_t lien;

        deposit(k, 100);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(TELL(k, .op = BANK_REGISTER, .user = str_of(bad[i])), BANK_INVALID);
        assert_int_equal(TELL(k, .op = BANK_USER, .user = ann, .activity = BANK_INACTIVE), BANK_UNKNOWN);
        assert_int_equal(TELL(k, .op = BANK_REGISTER, .user = ann, .why = STR("Ann")), 0);
        assert_int_equal(TELL(k, .op = BANK_REGISTER, .user = ann), BANK_CONFLICT);
        assert_null(registry_get(bank_machines(k->bank), ann));
        assert_string_equal(registry_get(bank_users(k->bank), ann)->text, "Ann");
        assert_int_equal(quote_for(k, bob), 0); /* nobody has to be registered */
        assert_int_equal(lien_for(k, ann), 0);
        lien = k->id;
        assert_int_equal(TELL(k, .op = BANK_USER, .user = ann, .activity = BANK_INACTIVE), 0);
        assert_true(registry_is_inactive(bank_users(k->bank), ann));
        assert_int_equal(quote_for(k, ann), BANK_CONFLICT);
        assert_int_equal(lien_for(k, ann), BANK_CONFLICT);
        assert_int_equal(lien_for(k, bob), 0);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .id = lien, .amount = 1), 0);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .account = STR("physics.cms"), .user = ann, .amount = 1),
                         0);
        assert_int_equal(job(k, BANK_LIEN, 1, 1, 5), 0); /* whoever makes a job's has asked the register */
        assert_int_equal(TELL(k, .op = BANK_USER, .user = ann, .activity = BANK_ACTIVE), 0);
        assert_int_equal(lien_for(k, ann), 0);
        assert_int_equal(TELL(k, .op = BANK_UNREGISTER, .user = ann), 0);
        assert_int_equal(TELL(k, .op = BANK_UNREGISTER, .user = ann), BANK_UNKNOWN);
}

/* A quote is changed and withdrawn while its time is not over; its price stays, and a lien keeps it. */
static void test_quotes_are_changed_and_withdrawn(void **state)
{
        struct str where = STR("physics.cms");
        struct books *k = *state;
        uint64_t quote, other, lien;

        deposit(k, 100);
        assert_int_equal(TELL(k, .op = BANK_QUOTE, .account = where, .amount = 7, .duration_ms = 1000,
                              .end_ms = k->now_ms + 1000, .why = STR("for May")),
                         0);
        quote = k->id;
        assert_string_equal(bank_quote(k->bank, quote)->text, "for May");
        pack_again(k);
        assert_string_equal(bank_quote(k->bank, quote)->text, "for May");
        assert_int_equal(TELL(k, .op = BANK_REQUOTE, .quote = quote, .end_ms = k->now_ms), BANK_INVALID);
        assert_int_equal(TELL(k, .op = BANK_REQUOTE, .quote = quote, .end_ms = k->now_ms + 50, .amount = 1),
                         0);
        assert_int_equal(k->id, quote);
        assert_int_equal(TELL(k, .op = BANK_REQUOTE, .quote = quote, .why = STR("for June")), 0);
        assert_int_equal(bank_quote(k->bank, quote)->end_ms, k->now_ms + 50);
        assert_int_equal(bank_quote(k->bank, quote)->amount, 7);
        assert_string_equal(bank_quote(k->bank, quote)->text, "for June");
        assert_int_equal(TELL(k, .op = BANK_REQUOTE, .quote = quote, .clears = BANK_CLEARS_WHY), 0);
        assert_null(bank_quote(k->bank, quote)->text);
        assert_int_equal(quote_for(k, STR("ann@lab")), 0);
        other = k->id;
        assert_int_equal(TELL(k, .op = BANK_LIEN, .account = where, .quote = quote, .amount = 7), 0);
        lien = k->id;
        assert_int_equal(TELL(k, .op = BANK_CANCEL, .quote = quote), BANK_CONFLICT);
        assert_int_equal(TELL(k, .op = BANK_RELEASE, .id = lien), 0);
        assert_int_equal(TELL(k, .op = BANK_CANCEL, .quote = quote), 0);
        assert_null(bank_quote(k->bank, quote));
        assert_int_equal(TELL(k, .op = BANK_LIEN, .account = where, .quote = quote, .amount = 7),
                         BANK_UNKNOWN);
        assert_int_equal(TELL(k, .op = BANK_CANCEL, .quote = quote), BANK_UNKNOWN);
        assert_non_null(bank_quote(k->bank, other));
        k->now_ms += 2000;
        assert_int_equal(TELL(k, .op = BANK_CANCEL, .quote = other), BANK_UNKNOWN);
        assert_int_equal(TELL(k, .op = BANK_REQUOTE, .quote = other, .end_ms = k->now_ms + 9), BANK_UNKNOWN);
}

/* An allocation that is ended has nothing to spend any more, but what liens hold. */
static void test_allocations_are_ended(void **state)
{
        struct str where = STR("physics.cms"), ann = STR("ann@lab");
        struct books *k = *state;
        uint64_t first, second, lien;

        assert_int_equal(TELL(k, .op = BANK_DEPOSIT, .account = where, .amount = 100, .credit = 5), 0);
        first = k->id;
        assert_int_equal(TELL(k, .op = BANK_LIEN, .account = where, .amount = 30), 0);
        lien = k->id;
        assert_int_equal(
                TELL(k, .op = BANK_DEPOSIT, .account = where, .amount = 9, .start_ms = k->now_ms + 50), 0);
        second = k->id;
        assert_int_equal(TELL(k, .op = BANK_SET, .account = where, .id = first, .activity = BANK_INACTIVE),
                         0);
        assert_int_equal(bank_available(bank_account(k->bank, where), ann, STR("x"), k->now_ms), 0);
        assert_int_equal(TELL(k, .op = BANK_CHARGE, .id = lien, .amount = 20), 0);
        assert_int_equal(TELL(k, .op = BANK_SET, .account = where, .id = second, .activity = BANK_INACTIVE),
                         0);
        assert_int_equal(bank_account(k->bank, where)->allocation_count, 0);
        assert_int_equal(bank_account(k->bank, where)->balance, 0);
        assert_string_equal(k->why, "the allocation has ended");
        assert_int_equal(TELL(k, .op = BANK_SET, .account = where, .id = second, .activity = BANK_INACTIVE),
                         BANK_UNKNOWN);
        assert_int_equal(TELL(k, .op = BANK_CLOSE, .account = where), 0);
}

static void test_the_register_is_kept(void **state)
{
        struct books *k = *state;
        BUF_CLEANUP struct buf packed = {0};

        TELL(k, .op = BANK_REGISTER, .place = STR("colony"), .why = STR("a cluster"), .arch = STR("x86_64"));
        TELL(k, .op = BANK_REGISTER, .place = STR("altix/long"), .activity = BANK_INACTIVE);
        TELL(k, .op = BANK_REGISTER, .user = STR("ann@lab"), .why = STR("Ann"), .activity = BANK_INACTIVE);
        bank_machines_pack(k->bank, &packed);
        bank_users_pack(k->bank, &packed);
        for (size_t n = 0; n <= packed.n; n++) {
                struct bank *b = bank_new();
                struct unpack in = unpack_from(str_make(packed.p, n));
                BUF_CLEANUP struct buf again = {0};

                bank_machines_unpack(b, &in);
                bank_users_unpack(b, &in);
                assert_int_equal(in.bad, n < packed.n);
                bank_machines_pack(b, &again);
                bank_users_pack(b, &again);
                if (n == packed.n)
                        assert_true(str_eq(buf_view(&again), buf_view(&packed)));
                bank_free(b);
        }
}

static void test_the_books_balance_whatever_is_ordered(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 300; seed++) {
                void *books;

                setup(&books);
                random_orders(books, seed);
                teardown(&books);
        }
}

static void test_damaged_records_are_refused(void **state)
{
        struct books *k = *state;
        BUF_CLEANUP struct buf record = {0}, books = {0};
        struct bank_order o = {
                .op = BANK_LIEN, .account = STR("physics.cms"), .request = 7, .amount = 3, .why = STR("x")};

        deposit(k, 100);
        job(k, BANK_LIEN, 3, 1, 20);
        set_add(&o.members, 4);
        bank_order_pack(&record, &o);
        bank_order_deinit(&o);
        for (size_t n = 0; n < record.n; n++)
                assert_int_not_equal(bank_order_unpack(&o, str_make(record.p, n), NULL), 0);
        bank_pack(k->bank, &books);
        for (size_t n = 0; n < books.n; n++) {
                struct bank *b = bank_new();
                struct unpack in = unpack_from(str_make(books.p, n));

                bank_unpack(b, &in);
                assert_true(in.bad);
                bank_free(b);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_names_of_accounts, setup, teardown),
                cmocka_unit_test_setup_teardown(test_roles_come_from_above, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_deposit_can_be_spent_and_no_more, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_refund_is_of_what_was_charged, setup, teardown),
                cmocka_unit_test_setup_teardown(test_an_attempt_holds_what_it_will_be_charged, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_lien_is_extended_and_released, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_charge_goes_below_the_credit_limit, setup, teardown),
                cmocka_unit_test_setup_teardown(test_allocations_have_a_time, setup, teardown),
                cmocka_unit_test_setup_teardown(test_the_soonest_end_is_spent_first, setup, teardown),
                cmocka_unit_test_setup_teardown(test_allocations_for_some_places_and_users, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_refund_goes_to_those_who_have_spent, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_debt_is_paid, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_lien_is_extended_by_the_register, setup, teardown),
                cmocka_unit_test_setup_teardown(test_liens_with_one_name, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_liens_with_one_name, setup, teardown),
                cmocka_unit_test_setup_teardown(test_liens_of_other_systems_have_an_end, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_quote_is_used_once_and_in_its_time, setup, teardown),
                cmocka_unit_test_setup_teardown(test_accounts_are_closed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_accounts_are_changed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_jobs_of_other_systems_have_names, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_tree_has_a_share, setup, teardown),
                cmocka_unit_test_setup_teardown(test_machines_are_registered, setup, teardown),
                cmocka_unit_test_setup_teardown(test_users_are_registered, setup, teardown),
                cmocka_unit_test_setup_teardown(test_quotes_are_changed_and_withdrawn, setup, teardown),
                cmocka_unit_test_setup_teardown(test_allocations_are_ended, setup, teardown),
                cmocka_unit_test_setup_teardown(test_the_register_is_kept, setup, teardown),
                cmocka_unit_test(test_the_books_balance_whatever_is_ordered),
                cmocka_unit_test_setup_teardown(test_damaged_records_are_refused, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
