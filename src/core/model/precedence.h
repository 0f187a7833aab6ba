/* precedence: which of two waiting things goes first, by what fairness/order.h has found of them. */
#pragma once
#include "core/model/job_class.h"

struct core;

/* Unix seconds: jobs of one account and priority go in the order of their submission, but a job that may
 * run for more than ten minutes counts as if it had come later, by ten times what is more and a week at most:
 * it is overtaken by shorter ones that come meanwhile, and by nobody for ever. */
uint32_t order_due_s(int64_t submitted_ms, int64_t run_ms);
uint32_t order_bucket_due_s(const struct bucket *b); /* of its jobs, by what its author says */
double order_bucket_points(const struct core *c, const struct bucket *b); /* its own part of a standing */
bool order_bucket_before(const struct bucket *a, const struct bucket *b);
/* Of classes that have idle members. */
bool order_class_before(const struct job_class *a, const struct job_class *b);
/* Does the order leave it to the offer which of these two ready classes it takes? */
bool order_class_level(const struct job_class *a, const struct job_class *b);

/* Two marks are compared by what their accounts have now: an account that goes on being given jobs falls
 * behind the place where it stood itself. Neither is empty. */
struct order_mark order_mark_of(const struct job_class *k);
bool order_mark_before(const struct order_mark *a, const struct order_mark *b);
