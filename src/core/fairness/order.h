/* order: the order in which classes are matched. For the files of core/ only.
 *
 * Every class with idle members has a *standing*, a sum of weighted points: the account's usage of the pool
 * relative to its shares counts against it (share.h); its quality of service, the size of its jobs, the wait
 * of the first of them and the user's own priority count for it. The class with the most points goes first;
 * among equals the account that was there first, then the user's priority, then the order of submission.
 *
 * An account's points decrease with every job that it is given, so accounts take turns within one pass:
 * order_quota is the number of jobs that a class may be given before another class may be next, after which
 * order_settle moves the classes of the accounts that were given jobs. An account with many classes is moved
 * less often and gets more jobs at a time, so the cost per job does not depend on the number of classes.
 * Points by age grow alike for all and are stored relative to a fixed time, so nothing moves as time passes.
 * Decaying usage is updated once a second, and classes that have reached the maximum of their age points
 * once a minute (order_refresh, order_wait_points).
 *
 * Code that changes a value on which an order depends must tell the heaps and trees that are sorted by it.
 */
#pragma once
#include "classad/symbols.h"
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

struct limit;
struct account;

struct fairness {
        uint32_t ready_classes; /* number of classes with idle members */
        uint32_t wanting;       /* number of accounts with idle jobs */
        bool stale;             /* `wanting` has changed */
        int64_t refreshed_ms;
        struct account *pending;  /* accounts whose classes are to be moved */
        struct limit *some_limit; /* classes whose limits depend on the place wait at it */
        struct limit *money;      /* classes whose account cannot pay wait at it (billing/billing.h) */
        struct map *qualities;    /* qualities of service by name */
        struct map *credentials;  /* names, each preceded by its enum core_credential */
        symbol class_names[6];    /* attributes that name a job's class, if classes have points */
        size_t class_name_count;
};

void fairness_init(struct core *c); /* c->limits must be set */
void fairness_deinit(struct core *c);
/* Returns the standing that the bucket's class would have with this bucket first, without the points of fair
 * share. */
double order_own_points(const struct core *c, const struct bucket *b);
/* Returns the points that a job's wait gives, relative to one that arrives now (precedence.h). */
double order_waited_points(const struct core *c, const struct account *a, int64_t priority, uint32_t due_s);
/* The class has its first idle member (ready), has none left (gone), or may have another first bucket
 * (changed). */
void order_class_ready(struct core *c, struct job_class *k);
void order_class_gone(struct core *c, struct job_class *k);
void order_class_changed(struct core *c, struct job_class *k);

/* An attempt of this account began or ended. */
void order_account_changed(struct core *c, struct account *a);
/* Updates the accounts that want something and their decayed usage; called before a pass. */
void order_refresh(struct core *c);
/* Moves the classes of accounts that were given jobs. Returns true if the order of classes has changed. */
bool order_settle(struct core *c);
/* Returns how many members the class may be given before order_settle must be called; at least 1. */
uint32_t order_quota(const struct core *c, const struct job_class *k);
/* The class's account has used up its turn. */
bool order_turn_is_over(const struct core *c, const struct job_class *k);
