/* precedence: the order of two buckets or classes, from the standings that fairness/order.h computes. */
#pragma once
#include "core/model/job_class.h"

struct core;
struct account;

/* The weight of waiting time between accounts. fairness/order.c sets it and then recomputes all classes'
 * positions, so standings are comparable. */
struct order_wait {
        double cpus;   /* points per day: the weight times the processors in use; 0: waiting does not count */
        uint32_t at_s; /* Unix seconds, at most a minute old: the present, by which waiting is bounded */
};
/* Returns the points that waiting gives a class of the account whose first job has this priority and is due
 * then. All points are negative, as if everybody had waited since 1970; only differences matter. Compared
 * with a job that is due now, a class is at most half a day's points ahead and a day's behind. Priorities of
 * one user's classes stay effective: a class of lower priority has no more points than any that precedes
 * it. */
double order_wait_points(const struct core *c, const struct account *a, int64_t priority, uint32_t due_s);

/* Returns the Unix time by which jobs of one account and priority are ordered. This is the time of
 * submission, but a job that may run for more than ten minutes counts as submitted later, by six times the
 * excess, a week at most: shorter jobs that come meanwhile overtake it, but not for ever. */
uint32_t order_due_s(int64_t submitted_ms, int64_t run_ms);
/* Due time of the bucket's jobs, by their author's statement of the run time. */
uint32_t order_bucket_due_s(const struct bucket *b);
/* The bucket's own part of a standing. */
double order_bucket_points(const struct core *c, const struct bucket *b);
/* Returns whether a precedes b. Both are in one class, or in classes that order_class_level finds equal. */
bool order_bucket_before(const struct bucket *a, const struct bucket *b);
/* Returns whether a precedes b. Both classes have idle members. */
bool order_class_before(const struct job_class *a, const struct job_class *b);
/* Returns whether the order of two ready classes leaves an offer the choice between them. */
bool order_class_level(const struct job_class *a, const struct job_class *b);

/* Marks are compared by the present state of their accounts: an account that continues to be given jobs falls
 * behind a mark of its own. Neither mark may be empty. */
struct order_mark order_mark_of(const struct job_class *k);
bool order_mark_before(const struct core *c, const struct order_mark *a, const struct order_mark *b);
