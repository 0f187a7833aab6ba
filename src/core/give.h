/* give: members of a class to a queue, as events and assignments. For the files of core/ only. */
#pragma once
#include "core/state.h"

enum give_what {
        GIVE_ANY,
        GIVE_NEAR, /* only those that read something that the queue's agent holds and other members do not
                      read */
};
/* Can another job of the request be taken up, beside those that are under way (given once and not ended)? A
 * member that is under way itself always can. */
bool give_room(const struct request *r, uint32_t member, uint64_t more);
/* A job of the request has ended: there is room for another. */
void give_room_made(struct core *c, struct request *r);
/* Gives the queue as many members of the class as it takes now, those whose files it holds first. Returns how
 * many. */
uint64_t give(struct core *c, struct class *k, struct queue *q, enum give_what what);
