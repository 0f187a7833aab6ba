/* give: members of a class to a queue, as events and assignments. For the files of core/ only. */
#pragma once
#include "core/state.h"

/* Gives the queue as many members of the class as it takes now. Returns how many. */
uint64_t give(struct core *c, struct class *k, struct queue *q);
