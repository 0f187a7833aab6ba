/* gang_place: finds places for gangs, sets of jobs that start together (gang/gang.h). */
#pragma once
#include "base/buf.h"
#include "core/model/names.h"

/* Dispatches as many gangs of the class as there are places for. */
void gang_place(struct core *c, struct job_class *k);
/* Returns the largest number of members that could start together now at one node, at one group or anywhere,
 * by the gang's own rule, and appends the name of that node or group to *where. */
uint64_t gang_most_now(struct core *c, struct job_class *k, struct buf *where);
