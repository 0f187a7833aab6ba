/* bank: how much accounts have to spend, what is reserved of it, and where it went.
 *
 * Money is counted in whole units, whatever a site takes for one (a processor-second, a cent). An account is
 * an organisation, a project or, with an @ in its name, a person: "physics", "physics.cms" (a project of
 * physics), "ann@lab". It has members with roles, and allocations: sums that may be spent between a start and
 * an end, down to a credit limit, at some places or by some users only. An account spends its own
 * allocations; a transfer moves money from one account to another one.
 *
 * The books are double-entry: every movement takes an amount from one account and adds it to another one.
 * BANK_ISSUED is the account that deposits come from, BANK_EARNED the one that charges go to, so the balances
 * of all accounts always add up to zero. A lien reserves money for one attempt of a job, or for another
 * system, until it is charged or released; what is reserved cannot be spent otherwise. A quote promises a
 * price for a time.
 *
 * All changes are orders, which are told in events: bank_check says whether an order can be carried out, and
 * bank_apply does it. The same orders at the same times make the same books. Nothing here reads a clock;
 * times are Unix milliseconds. Movements (struct bank_entry) are not kept: whoever calls gets each of them
 * once, and keeps it for statements. One thread at a time.
 *
 * The cost of an order, and of a balance, grows with the allocations of its account (at most
 * BANK_ALLOCATIONS_MAX) and is independent of how many movements there ever were.
 */
#pragma once
#include <stdbool.h>

#include "bank/order.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/heap.h"

#define BANK_ISSUED          "@issued"
#define BANK_EARNED          "@earned"
#define BANK_NAME_MAX        128u
#define BANK_TEXT_MAX        1024u
#define BANK_DEPTH_MAX       8u
#define BANK_ACCOUNTS_MAX    100000u
#define BANK_ALLOCATIONS_MAX 64u   /* of one account */
#define BANK_MEMBERS_MAX     1000u /* of one account */
#define BANK_QUOTES_MAX      10000u
#define BANK_LIENS_MAX       100000u             /* of other systems; jobs have one each */
#define BANK_AMOUNT_MAX      1000000000000000000 /* of one movement, and of all deposits together */

enum bank_error {                   /* positive results */
                  BANK_UNKNOWN = 1, /* no such account, allocation, lien or quote */
                  BANK_INVALID,     /* the order makes no sense */
                  BANK_SHORT,       /* the account cannot pay that */
                  BANK_CONFLICT,    /* the job has a lien already, or a quote is used */
};

struct bank_allocation {
        uint64_t id;
        int64_t amount;   /* what is in it; below zero while credit is used */
        int64_t held;     /* of it and of its credit, by liens */
        int64_t credit;   /* amount - held is never below -credit */
        int64_t start_ms; /* 0: at once */
        int64_t end_ms; /* from then on nothing more is taken out of it, but by liens made before; 0: never */
        char *places;   /* AGENT, AGENT/QUEUE, with commas between; NULL: everywhere */
        char *users;    /* ann@lab, *@lab; NULL: every member */
        uint32_t liens; /* that hold something of it */
};

struct bank_member {
        char *user; /* ann@lab, *@lab, * */
        enum bank_role role;
};

struct bank_account {
        char *name;
        char *text; /* what it is for; NULL: nothing was said */
        struct bank_account *parent, *children, *next;
        struct bank_allocation **allocations; /* the soonest end first */
        uint32_t allocation_count, allocation_cap;
        struct bank_member *members;
        uint32_t member_count, member_cap;
        int64_t balance;  /* the sum of its allocations' amounts */
        int64_t held;     /* the sum of what their liens hold */
        int64_t charged;  /* ever */
        int64_t refunded; /* of that */
        int64_t unpaid;   /* what jobs used beyond what could be charged */
};

struct bank_quote {
        uint64_t id;
        struct bank_account *account;
        char *user, *place; /* place: NULL, any */
        int64_t amount, duration_ms, end_ms;
        uint32_t cpus; /* 0: not said */
        bool used;     /* by a lien */
        bool held;     /* that lien is there yet: the promise holds */
};

struct bank_lien {
        uint64_t id;
        struct bank_account *account;
        uint64_t request; /* 0: of no job */
        uint32_t member, fence;
        int64_t amount;
        int64_t at_ms;  /* when it was made */
        int64_t end_ms; /* until then it is made for: a job's is extended then, another one ends; 0: never */
        struct heap_node by_end;
        uint64_t quote;           /* 0: none */
        char *user, *place, *why; /* of one that is of no job */
        struct bank_share {
                struct bank_allocation *allocation;
                int64_t amount;
        } * shares; /* what it holds of which allocation; the sum is `amount` */
        uint32_t share_count;
};

/* One movement of money: `amount` from one account to another one. Borrowed during the call. */
struct bank_entry {
        uint64_t serial; /* without gaps, from 1 */
        int64_t at_ms;
        enum bank_op op;
        const char *from, *to;                   /* names of accounts */
        uint64_t from_allocation, to_allocation; /* 0: an account of the bank's own has none */
        int64_t amount;                          /* > 0 */
        int64_t from_balance, to_balance;        /* of the accounts, after it */
        uint64_t request, lien;                  /* 0: none */
        uint32_t member, fence;
        struct str who, user, place, why;
};
typedef void bank_entry_fn(void *arg, const struct bank_entry *e);

struct bank;
struct bank *bank_new(void);
void bank_free(struct bank *b); /* NULL is fine */

/* Can the order be carried out at this time? 0, or enum bank_error with err. Nothing changes. */
int bank_check(struct bank *b, const struct bank_order *o, int64_t at_ms, struct err *err);
/* Carries it out, telling its movements to fn (may be NULL). *ret_id (may be NULL): the number of what it
 * made: of an allocation, a quote, a lien (of several, the first one's). 0; else as bank_check, and nothing
 * has changed. */
int bank_apply(struct bank *b, const struct bank_order *o, int64_t at_ms, bank_entry_fn *fn, void *arg,
               uint64_t *ret_id, struct err *err);

/* ---- looking; what is returned is borrowed until the next order */
struct bank_account *bank_account(const struct bank *b, struct str name); /* NULL: not there */
/* The account of a longer name: "physics" for "physics.cms.run3" when nothing between is there. NULL: none.
 */
struct bank_account *bank_account_above(const struct bank *b, struct str name);
/* Money that `user` could spend of the account at this place now, credit included. An empty user or place is
 * one that no allocation is restricted to. Never negative. */
int64_t bank_available(const struct bank_account *a, struct str user, struct str place, int64_t at_ms);
/* Money that the whole account could spend now, whoever and wherever. */
int64_t bank_available_any(const struct bank_account *a, int64_t at_ms);
/* The role of the user in the account: the highest that it, or an account above it, gives him. */
enum bank_role bank_role_of(const struct bank_account *a, struct str user);
const struct bank_lien *bank_lien(const struct bank *b, uint64_t id);
const struct bank_lien *bank_lien_of(const struct bank *b, uint64_t request, uint32_t member); /* a job's */
size_t bank_liens(const struct bank *b); /* how many there are */
const struct bank_quote *bank_quote(const struct bank *b, uint64_t id);
/* A lien whose time is over, of a job or of none; NULL: none. */
const struct bank_lien *bank_lien_over(const struct bank *b, int64_t at_ms);
/* Counts the orders after which an account may have more to spend than before. */
uint64_t bank_generation(const struct bank *b);
int64_t bank_issued(const struct bank *b); /* the balances of the bank's own two accounts */
int64_t bank_earned(const struct bank *b);
/* Each account, parents first, sorted by name; each lien and quote in the order of their numbers. */
void bank_accounts_each(const struct bank *b, void (*fn)(void *arg, const struct bank_account *a), void *arg);
void bank_liens_each(const struct bank *b, void (*fn)(void *arg, const struct bank_lien *l), void *arg);
void bank_quotes_each(const struct bank *b, void (*fn)(void *arg, const struct bank_quote *q), void *arg);

/* ---- snapshots: the same books make the same bytes */
void bank_pack(const struct bank *b, struct buf *out);
struct unpack;
/* Into a new bank. Damage sets in->bad. */
void bank_unpack(struct bank *b, struct unpack *in);
/* Invariants: the books balance, no allocation is below its credit limit, liens and allocations agree. NULL,
 * or a sentence about the first that does not hold. */
const char *bank_invariant(const struct bank *b);
