/* retention: keeps ended jobs in the queue. For the files of core/ only.
 *
 * HTCondor's LeaveJobInQueue: while the expression is true for a completed or removed job, the job stays in
 * listings. Such a member keeps its record, in state completed or removed, and is in its request's set
 * `left`. In all other respects it has ended: its row is in history, it counts for no limit, and its request
 * may be finished. It leaves the queue by EVENT_FILED when the expression is no longer true (evaluated when
 * the job ends and every config.periodic_ms) or when a user removes it. The request is not forgotten before
 * that.
 *
 * The event that ends a job says whether the job may stay, because a shadow has no expressions to evaluate.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

/* Maximum number of such records; jobs that end beyond it do not stay. */
#define RETENTION_MAX 200000u

struct retention {
        bool later; /* the jobs that the next event ends are looked at by retention_tick only */
        int64_t due_ms;
        uint64_t request, member; /* position at which the slice continues; 0: no round in progress */
};
void retention_mark(struct core *c, struct event *e); /* before e is applied: sets e->stays */
/* After e was applied: lets jobs leave whose expression is false. */
void retention_look(struct core *c, const struct event *e);

/* Lets those of `members` (NULL: all) that are left leave now. Returns their number. */
uint64_t retention_remove(struct core *c, struct request *r, const struct set *members);
/* Evaluates the next slice. Returns the milliseconds until there is more to do; INT64_MAX: nothing. */
int64_t retention_tick(struct core *c);
