/* give: members of a class to a queue, as events and assignments. For the files of core/ only. */
#pragma once
#include "core/state.h"

enum give_what {
        GIVE_ANY,
        GIVE_NEAR, /* only those that read something that the queue's agent holds and other members do not
                      read */
};
/* Gives the queue as many members of the class as it takes now, those whose files it holds first. Returns how
 * many. */
uint64_t give(struct core *c, struct class *k, struct queue *q, enum give_what what);
