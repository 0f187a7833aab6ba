/* bank: the balances of accounts, reservations of credits, and the movements between accounts.
 *
 * Money is counted in whole units of the site's choice (a processor-second, a cent). An account is an
 * organisation, a project or, with an @ in its name, a person: "physics", "physics.cms" (a project of
 * physics), "ann@lab". It has members with roles, and allocations: sums that may be spent between a start and
 * an end, down to a credit limit, optionally only at some places or by some users. An account spends its own
 * allocations; a transfer moves money from one account to another.
 *
 * The books are double-entry: every movement takes an amount from one account and adds it to another.
 * BANK_ISSUED is the source of deposits, BANK_EARNED the destination of charges, so the balances of all
 * accounts always sum to zero. A lien reserves money for one attempt of a job, or for another system, until
 * it is charged or released; reserved money cannot be spent otherwise. A quote guarantees a price for a time.
 *
 * The register of machines (bank/registry.h) may be empty. If it is not, the places that allocations, quotes,
 * liens and charges name must be in it. An inactive machine gets neither quotes nor liens, nor does a user
 * whom the register of users has as inactive. That holds for orders that belong to no job: for a job, the
 * caller asks the registers before it makes a lien.
 *
 * All changes are orders, which are recorded in events: bank_check tells whether an order can be carried out,
 * and bank_apply does it. The same orders at the same times make the same books. The module reads no clock;
 * times are Unix milliseconds. Movements (struct bank_entry) are not stored: the caller gets each of them
 * once, and stores it for statements. One thread at a time.
 *
 * The cost of an order, and of a balance, grows with the allocations of its account (at most
 * BANK_ALLOCATIONS_MAX) and is independent of the number of past movements.
 */
#pragma once
#include <stdbool.h>

#include "bank/order.h"
#include "bank/registry.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/heap.h"

#define BANK_ISSUED          "@issued"
#define BANK_EARNED          "@earned"
#define BANK_NAME_MAX        128u
#define BANK_TEXT_MAX        1024u
#define BANK_DEPTH_MAX       8u
#define BANK_ACCOUNTS_MAX    100000u
#define BANK_ALLOCATIONS_MAX 64u   /* per account */
#define BANK_MEMBERS_MAX     1000u /* per account */
#define BANK_QUOTES_MAX      10000u
#define BANK_LIENS_MAX       100000u /* liens of other systems; jobs have one each besides */
#define BANK_QUOTE_KEPT_MS   (30 * 86400000ll)
#define BANK_SHARE           10u /* a tree's share of accounts, quotes and liens is the limit divided by this */
#define BANK_AMOUNT_MAX      1000000000000000000 /* limit of one movement, and of the sum of all deposits */

enum bank_error {                   /* positive results */
                  BANK_UNKNOWN = 1, /* no such account, allocation, lien, quote, machine or user */
                  BANK_INVALID,     /* the order makes no sense */
                  BANK_SHORT,       /* the account cannot pay that */
                  BANK_CONFLICT,    /* the job has a lien already, a quote is used, or a machine or user is
                                       inactive */
};

struct bank_allocation {
        uint64_t id;
        int64_t amount;   /* balance of the allocation; negative while credit is used */
        int64_t held;     /* part of the balance and the credit that liens reserve */
        int64_t credit;   /* amount - held is never below -credit */
        int64_t start_ms; /* 0: at once */
        int64_t end_ms;   /* from this time only liens made before take money out of it; 0: never */
        char *places;     /* AGENT or AGENT/QUEUE, comma-separated; NULL: everywhere */
        char *users;      /* ann@lab, *@lab; NULL: every member */
        uint32_t liens;   /* number of liens that hold a part of it */
};

struct bank_member {
        char *user; /* ann@lab, *@lab, * */
        enum bank_role role;
};

struct bank_account {
        char *name;
        char *text; /* purpose of the account; NULL: not given */
        struct bank_account *parent, *children, *next;
        struct bank_allocation **allocations; /* sorted by end, the earliest first */
        uint32_t allocation_count, allocation_cap;
        struct bank_member *members;
        uint32_t member_count, member_cap;
        bool closed;          /* it has no balance, gets no money and pays for nothing */
        int64_t balance;      /* sum of the allocations' amounts */
        int64_t held;         /* sum of the allocations' held money */
        int64_t charged;      /* sum of all charges ever */
        int64_t refunded;     /* part of `charged` that was given back */
        int64_t unpaid;       /* sum that jobs used beyond what could be charged */
        uint64_t last_refund; /* serial of the last refund since the bank was made or unpacked; 0: none */
        /* valid in the root of a tree only: */
        uint32_t tree_accounts,
                tree_liens; /* accounts in the tree, the root included; their liens that belong to no job */
};

struct bank_quote {
        uint64_t id;
        struct bank_account *account;
        char *user, *place; /* place: NULL, any */
        char *qos;          /* NULL: none */
        char *text;         /* what it is for; NULL: not given */
        int64_t amount, duration_ms, end_ms;
        /* resources quoted for; all 0: not given, which means one processor, no memory and no GPUs */
        int64_t memory_mib;
        uint32_t cpus, gpus;
        bool used; /* a lien was made with the quote, and was not released without a charge */
        bool held; /* that lien still exists, so the price is still promised */
        /* The job whose lien was released without a charge has the quote until kept_ms also past end_ms: it
         * was used in time. request 0: none. */
        uint64_t request;
        uint32_t member;
        int64_t kept_ms;
};

struct bank_lien {
        uint64_t id;
        struct bank_account *account;
        uint64_t request; /* 0: of no job */
        uint32_t member, fence;
        int64_t amount;
        int64_t at_ms;  /* time at which the lien was made */
        int64_t end_ms; /* a job's lien is extended at this time, any other lien ends; 0: never */
        struct heap_node by_end;
        uint64_t quote;                  /* 0: none */
        char *user, *place, *why;        /* set if the lien belongs to no job */
        char *job;                       /* name of the job in another system; NULL: none was given */
        struct bank_lien *older, *newer; /* those with its name */
        struct bank_share {
                struct bank_allocation *allocation;
                int64_t amount;
        } * shares; /* parts of the lien by allocation; their sum is `amount` */
        uint32_t share_count;
};

/* One movement of money: `amount` from one account to another one. Borrowed during the call. */
struct bank_entry {
        uint64_t serial; /* without gaps, from 1 */
        int64_t at_ms;
        enum bank_op op;
        const char *from, *to;                   /* names of accounts */
        uint64_t from_allocation, to_allocation; /* 0: BANK_ISSUED or BANK_EARNED, which have none */
        int64_t amount;                          /* > 0 */
        int64_t from_balance, to_balance;        /* balances of both accounts after the movement */
        uint64_t request, lien;                  /* 0: none */
        uint32_t member, fence;
        struct str who, user, place, why;
        struct str job; /* name of the job in another system; empty: none */
};
typedef void bank_entry_fn(void *arg, const struct bank_entry *e);

struct bank;
struct bank *bank_new(void);
void bank_free(struct bank *b); /* NULL is fine */

/* Checks whether the order can be carried out at this time. Returns 0, or enum bank_error with err. Nothing
 * changes. */
int bank_check(struct bank *b, const struct bank_order *o, int64_t at_ms, struct err *err);
/* Carries out an order and calls fn (may be NULL) with each movement. *ret_id (may be NULL) is the id of the
 * allocation, quote or lien that the order made; the first one's if there are several. Returns 0, or the
 * error that bank_check returns; on an error nothing has changed. */
int bank_apply(struct bank *b, const struct bank_order *o, int64_t at_ms, bank_entry_fn *fn, void *arg,
               uint64_t *ret_id, struct err *err);

/* ---- queries; returned objects are borrowed until the next order */
struct bank_account *bank_account(const struct bank *b, struct str name); /* NULL: not there */
/* Returns the account of this name or, if there is none, its nearest existing ancestor: "physics" for
 * "physics.cms.run3" if "physics.cms" does not exist. NULL: none exists. */
struct bank_account *bank_account_above(const struct bank *b, struct str name);
/* Money that `user` could spend of the account at this place at at_ms, credit included; never negative. An
 * empty user or place matches unrestricted allocations only. A closed account has nothing to spend. */
int64_t bank_available(const struct bank_account *a, struct str user, struct str place, int64_t at_ms);
/* Returns whether the account has this allocation, and money can be taken from it at this time. */
bool bank_allocation_is_open(const struct bank_account *a, uint64_t id, int64_t at_ms);
/* Money that the account could spend at at_ms, regardless of restrictions to users and places. */
int64_t bank_available_any(const struct bank_account *a, int64_t at_ms);
/* The user's role in the account: the highest one that the account or an ancestor gives. */
enum bank_role bank_role_of(const struct bank_account *a, struct str user);
const struct bank_lien *bank_lien(const struct bank *b, uint64_t id);
const struct bank_lien *bank_lien_of(const struct bank *b, uint64_t request, uint32_t member); /* a job's */
/* The latest open lien of this account and user for the job of another system that has this name; a lien
 * without a job's name has its reason for one. NULL: none. */
const struct bank_lien *bank_lien_named(const struct bank *b, struct str account, struct str user,
                                        struct str job);
size_t bank_liens(const struct bank *b);                    /* number of liens */
const struct registry *bank_machines(const struct bank *b); /* the registers */
const struct registry *bank_users(const struct bank *b);
const struct bank_quote *bank_quote(const struct bank *b, uint64_t id);
/* Whether the pattern, which is "*", AGENT or AGENT/QUEUE, is for this place. */
bool bank_place_fits(struct str pattern, struct str place);
/* Whether the quote's time is not over at at_ms for the job; request 0: for anything but a job. */
bool bank_quote_is_open(const struct bank_quote *q, uint64_t request, uint32_t member, int64_t at_ms);
/* The lien with the earliest end, if end_ms <= at_ms; a job's or any other. NULL: no lien has ended. */
const struct bank_lien *bank_lien_over(const struct bank *b, int64_t at_ms);
/* Counts the orders after which an account may have more to spend than before. */
uint64_t bank_generation(const struct bank *b);
int64_t bank_issued(const struct bank *b); /* the balances of the bank's own two accounts */
int64_t bank_earned(const struct bank *b);
/* Returns whether the account's tree is below its share (1/BANK_SHARE) of the bank's limit of accounts (op
 * BANK_OPEN), open quotes (BANK_QUOTE) or liens that belong to no job (BANK_LIEN); true for any other op, and
 * if the tree does not exist. bank_apply does not enforce the share: the caller decides who may exceed it. */
bool bank_share_is_left(const struct bank *b, enum bank_op op, struct str account, int64_t now_ms);
/* Call fn for every account (a parent before its children, sorted by name), lien or quote (sorted by id). */
void bank_accounts_each(const struct bank *b, void (*fn)(void *arg, const struct bank_account *a), void *arg);
void bank_liens_each(const struct bank *b, void (*fn)(void *arg, const struct bank_lien *l), void *arg);
void bank_quotes_each(const struct bank *b, void (*fn)(void *arg, const struct bank_quote *q), void *arg);

/* ---- snapshots: the same books make the same bytes */
void bank_pack(const struct bank *b, struct buf *out);
struct unpack;
/* Reads a snapshot into a new, empty bank. Damaged input sets in->bad. */
void bank_unpack(struct bank *b, struct unpack *in);
/* The names that liens of other systems have for their jobs have a snapshot of their own, in the same way; it
 * is read after that of the books. */
void bank_jobs_pack(const struct bank *b, struct buf *out);
void bank_jobs_unpack(struct bank *b, struct unpack *in);
/* Which accounts are closed is a part of a snapshot of its own, too. */
void bank_closed_pack(const struct bank *b, struct buf *out);
void bank_closed_unpack(struct bank *b, struct unpack *in);
/* The register of machines is another one. */
void bank_machines_pack(const struct bank *b, struct buf *out);
void bank_machines_unpack(struct bank *b, struct unpack *in);
void bank_users_pack(const struct bank *b, struct buf *out); /* and that of users */
void bank_users_unpack(struct bank *b, struct unpack *in);
/* Checks that the books balance, that no allocation is below its credit limit, and that liens and allocations
 * agree. Returns NULL, or a sentence about the first invariant that does not hold. */
const char *bank_invariant(const struct bank *b);
