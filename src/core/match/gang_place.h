/* gang_place: places for sets of jobs that start together (gang/gang.h). */
#pragma once
#include "base/buf.h"
#include "core/model/names.h"

/* Gives places to as many sets of the class as can be. */
void gang_place(struct core *c, struct job_class *k);
/* The most members that one node or group, or all, could start at once now; *where its name. */
uint64_t gang_most_now(struct core *c, struct job_class *k, struct buf *where);
