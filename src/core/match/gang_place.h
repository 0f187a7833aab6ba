/* gang_place: finds places for gangs, sets of jobs that start together (gang/gang.h). */
#pragma once
#include "base/buf.h"
#include "core/model/names.h"

/* Dispatches as many gangs of the class as there are places for. */
void gang_place(struct core *c, struct job_class *k);
/* Dispatches the jobs [first, first + size) of the request that have not ended, each to the place that is
 * reserved for it, all or none; of a request with parts that start together these are all of them. Returns
 * whether they could be dispatched. check_only: changes nothing. */
bool gang_reserved(struct core *c, struct request *r, uint32_t first, uint32_t size, bool check_only);
/* Does that for all jobs that are authorised. */
void gang_place_authorised(struct core *c);
/* Returns the largest number of members that could start together now at one node, at one group or anywhere,
 * by the gang's own rule, and appends the name of that node or group to *where. */
uint64_t gang_most_now(struct core *c, struct job_class *k, struct buf *where);
