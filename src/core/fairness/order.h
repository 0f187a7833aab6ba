/* order: which of two waiting things goes first. For the files of core/ only.
 *
 * Every class with idle members has a *standing*, a sum of points: what its account has had of the pool for
 * its shares counts against it (share.h), its quality of service, the size of its jobs, how long the first of
 * them waits and the user's own priority count as the weights say. The class with the most points goes first;
 * of equal ones the account that was there first, then the user's priority, then as they were submitted.
 *
 * An account's points go down with every job it is given, so accounts take turns in one pass: order_quota is
 * how many jobs a class may be given before somebody else may be next, and after them order_settle moves the
 * classes of the accounts that were given something. An account with many classes is moved less often, and
 * gets more at a time, so that a job costs the same however many classes there are. Points by time (age) grow
 * alike for all, and are kept as if all waited since the beginning of time: nothing moves as time goes by.
 * What decays is looked at once a second (order_refresh).
 *
 * Who changes what an order looks at tells the heaps and trees that are kept by it.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

struct limit;
struct account;

struct fairness {
        uint32_t ready_classes; /* with idle members */
        uint32_t wanting;       /* accounts with idle jobs */
        bool stale;             /* another account wants something, or one less does */
        int64_t refreshed_ms;
        struct account *pending;  /* whose classes are to be moved */
        struct limit *some_limit; /* in its line: classes whose limits depend on the place */
        struct limit *money;      /* in its line: classes whose account cannot pay (billing/billing.h) */
        struct map *qualities;    /* of service, by name */
};

void fairness_init(struct core *c); /* c->limits is there */
void fairness_deinit(struct core *c);
/* The standing of its class, if it were the class's first, but for what fair share says. */
double order_own_points(const struct core *c, const struct bucket *b);
/* The class has idle members now and had none; it has none any more; its first bucket may be another. */
void order_class_ready(struct core *c, struct job_class *k);
void order_class_gone(struct core *c, struct job_class *k);
void order_class_changed(struct core *c, struct job_class *k);

/* An attempt of this account began or ended. */
void order_account_changed(struct core *c, struct account *a);
/* Before a pass: who wants something, and what has decayed. */
void order_refresh(struct core *c);
/* Moves the classes of accounts that were given something. True: some class stands elsewhere now. */
bool order_settle(struct core *c);
/* How many members the class may be given before order_settle is called; 1 or more. */
uint32_t order_quota(const struct core *c, const struct job_class *k);
bool order_turn_is_over(const struct core *c, const struct job_class *k); /* it was given that many */
