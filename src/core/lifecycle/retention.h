/* retention: jobs that have ended and stay in the queue. For the files of core/ only.
 *
 * HTCondor's LeaveJobInQueue: while it is true of a job that has completed or was removed, the job stays
 * where people look for it. Such a member keeps its record, in state completed or removed, and is in its
 * request's set `left`; in all else it has ended: its row is in history, it counts for no limit, its request
 * may be finished. It leaves, by an event `filed`, when the expression is not true any more (looked at when
 * the job ends and every config.periodic_ms) or when somebody removes it. The request is not forgotten
 * before.
 *
 * The event that ends a job says that it may stay, since a shadow has no expressions to ask.
 */
#pragma once
#include "core/model/names.h"
#include <stdint.h>

/* At most so many records are kept for it in all; jobs that end when there are so many do not stay. */
#define RETENTION_MAX 200000u

struct retention {
        int64_t due_ms;
        uint64_t request, member; /* where the slice goes on; 0: not under way */
};
void retention_mark(struct core *c, struct event *e);       /* before e is applied: sets e->stays */
void retention_look(struct core *c, const struct event *e); /* after: those that do not want to stay leave */

/* Those of `members` (NULL: all) that are left leave now. Returns how many. */
uint64_t retention_remove(struct core *c, struct request *r, const struct set *members);
/* Looks at the next slice. Milliseconds until there is something to do, INT64_MAX: nothing. */
int64_t retention_tick(struct core *c);
