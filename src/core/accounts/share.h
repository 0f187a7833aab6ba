/* share: who has had how much of the pool, as a tree of accounts.
 *
 * An account is a group with its name ("physics", "physics.cms") or, as a leaf, one user in a group:
 * "physics.cms/ann@local"; a user in no group is "/ann@local". Every account has shares among its siblings,
 * and a usage: processor-seconds that its attempts took, halved with every half-life. While attempts run the
 * usage grows by itself; it is written down when one begins or ends, at the times that the events carry, so a
 * replay of the log gives the same numbers bit for bit. A group's usage is the sum of what is below it.
 *
 * Sites that have no accounts in their settings have one leaf for each user,
 * all with one share. Times are Unix milliseconds.
 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

#define ACCOUNT_DEPTH_MAX  8u /* of groups within groups */
#define ACCOUNT_SHARES_MAX 1e9
#define ACCOUNT_NICE       "nice-user" /* a group that is always there: its jobs go behind all others */

struct share_config;
struct job_class;
struct account {
        char *path;
        struct account *parent; /* NULL: the root */
        struct account *children, *next;
        double shares;    /* > 0 */
        bool leaf, named; /* named: in the settings */
        char **users;     /* of a named group: ann@local, *@local, *; none: as its parent's */
        size_t user_count;
        double usage;  /* processor-seconds, as of at_ms */
        int64_t at_ms; /* 0: nothing was ever charged */
        int64_t rate;  /* thousandths of a processor that its attempts take now */
        uint32_t attempts;
        uint64_t serial; /* in the order in which they were made */
        /* order.c's: */
        struct job_class *classes; /* of a leaf: those with idle members */
        uint32_t ready;            /* how many these are; of a group: accounts below it that have any */
        double part;               /* of the pool that its shares are worth among those that want something */
        double lately; /* processors that count against it: its own mean, and its part of others' */
        double points; /* that fair share gives its jobs: 0 or less */
        uint32_t owed; /* attempts that began or ended since its classes were last moved */
        struct account *pending;
        bool is_pending;
        /* overrun.c's: what its jobs' expressions took in a second */
        uint64_t eval_steps;
        int64_t eval_second;
};

struct shares;
struct shares *shares_new(const struct share_config *config);
void shares_free(struct shares *s); /* NULL is fine */
struct account *shares_root(struct shares *s);

/* Settings, before anything is charged. `group` is "physics.cms", its parents are made with one share where
 * they are not there. 0, -EINVAL with err. */
int shares_set_group(struct shares *s, struct str group, double shares, const struct str *users,
                     size_t user_count, struct err *err);

/* The leaf that jobs of `owner` are charged to. `group`: what he asked for, STR_NONE: the first in the
 * settings that lists him, or none. A last part that is no group of its own is a user's name, and is not
 * looked at. 0; -EINVAL with err when there is no such group or he may not use it. Without groups in the
 * settings any is taken for none, but ACCOUNT_NICE. */
int shares_resolve(struct shares *s, struct str owner, struct str group, struct account **ret,
                   struct err *err);
bool share_is_user(const char *pattern, struct str owner);      /* ann@local, *@local, * */
struct account *shares_leaf(struct shares *s, struct str path); /* makes it, and the groups above */
struct account *shares_find(struct shares *s, struct str path); /* NULL: not there */

/* An attempt begins or ends. */
int64_t shares_rate(const struct shares *s, uint32_t cpus, uint64_t memory_mib);
void account_begin(struct shares *s, struct account *leaf, int64_t rate, int64_t at_ms);
void account_end(struct shares *s, struct account *leaf, int64_t rate, int64_t at_ms);

double account_usage(const struct shares *s, const struct account *a, int64_t now_ms); /* processor-seconds */
double account_mean(const struct shares *s, const struct account *a, int64_t now_ms); /* processors, lately */

/* For snapshots: leaves with a usage are packed, sorted by path; attempts are not: whoever has them says
 * account_resume for each, and then shares_restored. */
void shares_pack(struct shares *s, struct buf *out);
struct unpack;
void shares_unpack(struct shares *s, struct unpack *in);
void account_resume(struct account *leaf, int64_t rate);
void shares_restored(struct shares *s); /* groups have the usage of what is below them */
/* Calls fn for each account but the root, parents first, sorted by path. */
void shares_each(struct shares *s, void (*fn)(void *arg, struct account *a), void *arg);
const char *shares_check(struct shares *s); /* NULL, or what does not hold */
