/* share: usage of the pool by account, as a tree.
 *
 * An account is a group with its name ("physics", "physics.cms") or, as a leaf, one user in a group:
 * "physics.cms/ann@local"; a user in no group is "/ann@local". Every account has shares among its siblings,
 * and a usage: processor-seconds that its attempts took, halved with every half-life. Usage grows
 * continuously while attempts run; it is updated when one begins or ends, at the times of the events, so a
 * replay of the log gives the same numbers bit for bit. A group's usage is the sum over the accounts below
 * it.
 *
 * Sites without accounts in their settings have one leaf for each user, all with one share. Times are Unix
 * milliseconds.
 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

#define ACCOUNT_DEPTH_MAX  8u /* depth of nested groups */
#define ACCOUNT_SHARES_MAX 1e9
#define ACCOUNT_NICE       "nice-user" /* a group that always exists: its jobs go behind all others */

struct share_config;
struct job_class;
struct account {
        char *path;
        struct account *parent; /* NULL: the root */
        struct account *children, *next;
        double shares;    /* > 0 */
        bool leaf, named; /* named: in the settings */
        char **users;     /* of a named group: ann@local, *@local, *; none: users of its parent */
        size_t user_count;
        double usage;  /* processor-seconds, as of at_ms */
        int64_t at_ms; /* 0: nothing was charged yet */
        int64_t rate;  /* thousandths of a processor that its attempts take now */
        uint32_t attempts;
        uint64_t serial; /* in order of creation */
        /* Set by order.c: */
        struct job_class *classes; /* of a leaf: its classes with idle members */
        uint32_t ready; /* number of `classes`; of a group: number of accounts below it that have any */
        double part;    /* part of the pool that its shares are worth among accounts with demand */
        double lately;  /* processors that count against it: its own mean, and its part of others' */
        double points;  /* points that fair share gives its jobs, at most 0 */
        int64_t first_priority; /* highest priority of its classes, when these were last moved */
        uint32_t last_due_s;    /* due time of its last class, when these were last moved */
        bool mixed;             /* its classes differ in priority */
        uint32_t owed;          /* attempts that began or ended since its classes were last moved */
        struct account *pending;
        bool is_pending;
        struct evaluated *evaluated; /* of a leaf: what expressions of its user took, in all his accounts */
        /* Set by wishlist.c: jobs of the account that the present plan has looked at. */
        struct {
                uint32_t classes, demands;
                uint64_t steps;
        } wished;
};

struct shares;
struct shares *shares_new(const struct share_config *config);
void shares_free(struct shares *s); /* NULL is fine */
struct account *shares_root(struct shares *s);

/* Creates or changes a group, before anything is charged. group: "physics.cms"; missing parents are created
 * with one share. Returns 0, or -EINVAL with err. */
int shares_set_group(struct shares *s, struct str group, double shares, const struct str *users,
                     size_t user_count, struct err *err);

/* Finds the leaf that jobs of `owner` are charged to. group: the group asked for; STR_NONE: the first group
 * in the settings that lists the owner, or none. A last component that is no group is a user's name, and is
 * ignored. Without groups in the settings any group but ACCOUNT_NICE counts as none. Returns 0; -EINVAL with
 * err: there is no such group, or the owner may not use it. */
int shares_resolve(struct shares *s, struct str owner, struct str group, struct account **ret,
                   struct err *err);
bool share_is_user(const char *pattern, struct str owner); /* pattern: ann@local, *@local, * */
/* Returns whether group is `above` or below it. */
bool shares_group_within(struct str above, struct str group);
/* Finds or creates it, with the groups above. */
struct account *shares_leaf(struct shares *s, struct str path);
struct account *shares_find(struct shares *s, struct str path); /* NULL: there is none */

/* Rate of an attempt in thousandths of a processor; and its begin and end. */
int64_t shares_rate(const struct shares *s, uint32_t cpus, uint64_t memory_mib);
void account_begin(struct shares *s, struct account *leaf, int64_t rate, int64_t at_ms);
void account_end(struct shares *s, struct account *leaf, int64_t rate, int64_t at_ms);

/* Usage in processor-seconds. */
double account_usage(const struct shares *s, const struct account *a, int64_t now_ms);
/* Recent mean in processors. */
double account_mean(const struct shares *s, const struct account *a, int64_t now_ms);

/* Bounds the core's time for expressions of the jobs of the account's user, in all accounts of his: they may
 * take ACCOUNT_STEPS in a second, and what they have taken beyond that is paid back by the seconds that
 * follow. The first ACCOUNT_STEPS_FREE of
 * each piece of work are not counted. steady_ms: the core's steady clock. A NULL account has no bound. */
#define ACCOUNT_STEPS      400000u
#define ACCOUNT_STEPS_FREE 64u
bool account_may_evaluate(const struct account *a, int64_t steady_ms);
void account_evaluated(struct account *a, int64_t steady_ms, uint64_t steps);

/* Snapshots: leaves with a usage are packed, sorted by path. Attempts are not: their owner calls
 * account_resume for each, and then shares_restored. */
void shares_pack(struct shares *s, struct buf *out);
struct unpack;
/* Reads leaves into a new tree; sets in->bad on damaged data. */
void shares_unpack(struct shares *s, struct unpack *in);
/* Adds the rate of an attempt that goes on after a restore. */
void account_resume(struct account *leaf, int64_t rate);
void shares_restored(struct shares *s); /* computes the usage of groups from that of their leaves */
/* Calls fn for each account but the root, parents first, sorted by path. */
void shares_each(struct shares *s, void (*fn)(void *arg, struct account *a), void *arg);
const char *shares_check(struct shares *s); /* NULL: all invariants hold; otherwise the first that does not */
