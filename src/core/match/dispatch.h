/* dispatch: members of a class to a queue, as events and assignments. For the files of core/ only. */
#pragma once
#include "base/str.h"
#include "core/model/names.h"

enum dispatch_what {
        DISPATCH_ANY,
        DISPATCH_FITTING, /* the same; choose_fits has just said that the class can use the queue */
        DISPATCH_LOCAL,   /* only those that read something that the queue's agent holds and other members do
                        not   read */
};
/* Can another job of the request be taken up, beside those that are under way (given once and not ended)? A
 * member that is under way itself always can. */
bool dispatch_room(const struct request *r, uint32_t member, uint64_t more);
/* For a set of jobs that start together (gang.h): its members, [first, first + size), get one fence. */
struct dispatch_gang {
        uint32_t first, size, fence;
        struct str machines;
};
/* Does this queue want this member, by what only one member can be asked about, and has it all that is to be
 * filled in? */
bool dispatch_wanted(struct core *c, const struct bucket *b, uint32_t member, struct queue *q);
/* Are there units for all n members at these queues, where what they draw depends on the place? */
bool dispatch_draws_suffice(struct core *c, const struct job_class *k, struct queue *const *where,
                            uint64_t n);
/* Gives the queue these members of a set, all of which it has room for and wants. */
void dispatch_members(struct core *c, struct job_class *k, struct bucket *b, struct queue *q,
                      const struct set *members, const struct dispatch_gang *set);
/* Gives the queue as many members of the class as it takes now, those whose files it holds first. Returns how
 * many. */
uint64_t dispatch(struct core *c, struct job_class *k, struct queue *q, enum dispatch_what what);
/* As DISPATCH_FITTING, but when seconds of transfers are to come for what it was given, no more: then
 * *ret_more is true, and the caller compares places again, with these transfers on the link. */
uint64_t dispatch_some(struct core *c, struct job_class *k, struct queue *q, bool *ret_more);
