/* dispatch: gives members of a class to a queue, as events and assignments. For the files of core/ only. */
#pragma once
#include "base/str.h"
#include "core/model/names.h"

enum dispatch_what {
        DISPATCH_ANY,
        DISPATCH_FITTING, /* as DISPATCH_ANY, right after choose_fits has said yes */
        DISPATCH_LOCAL,   /* only members that read a file of their own which the queue's agent holds */
};
/* Returns the number of the request's jobs that have begun and not ended. */
uint64_t dispatch_under_way(const struct request *r);
/* Returns whether `more` jobs of the request may be begun beside those that have begun and not ended
 * (max_materialize). A member that has begun itself may always go on. */
bool dispatch_room(const struct request *r, uint32_t member, uint64_t more);
/* A gang (gang.h): the members [first, first + size) get one fence. */
struct dispatch_gang {
        uint32_t first, size, fence;
        struct str machines;
};
/* Returns whether the clauses that differ between members let the queue take this one, and whether the queue
 * has every attribute that is to be filled into the job. */
bool dispatch_wanted(struct core *c, const struct bucket *b, uint32_t member, struct queue *q);
/* Returns whether the concurrency limits have units for n members at these queues, where the units that a job
 * draws depend on the place. */
bool dispatch_draws_suffice(struct core *c, const struct job_class *k, struct queue *const *where,
                            uint64_t n);
/* Dispatches these members of a gang. The queue has room for all of them and wants them. */
void dispatch_members(struct core *c, struct job_class *k, struct bucket *b, struct queue *q,
                      const struct set *members, const struct dispatch_gang *gang);
/* Dispatches as many members of the class as the queue takes now, first those whose files it holds. Returns
 * their number. */
uint64_t dispatch(struct core *c, struct job_class *k, struct queue *q, enum dispatch_what what);
/* Dispatches at most `most` members, and otherwise as DISPATCH_ANY. */
uint64_t dispatch_most(struct core *c, struct job_class *k, struct queue *q, uint64_t most);
/* Dispatches as with DISPATCH_FITTING, but stops when what was dispatched will load the link for seconds.
 * *ret_more is true then, and the caller compares places again with these transfers counted. */
uint64_t dispatch_some(struct core *c, struct job_class *k, struct queue *q, bool *ret_more);
