/* cost_class: groups of places with about the same cost for a job that holds none of its files there; for
 * the files of core/ only.
 *
 * The cost of a place depends on the job's files that it holds, and on properties of the place: its links to
 * the stores, its speed, its price, and the wait at its batch system. Agents of one cluster measure nearly
 * the same, so queues with similar properties share a *cost class*, and costs are computed with its means: a
 * link measured by ten agents is better known than one agent's last measurement, and of a thousand places
 * that hold nothing of a job only one of each cost class needs to be looked at.
 *
 * Similar means: links within a factor of 1.5 and down at the same stores, run times within a seventh, the
 * same price and search order. A queue stays in its cost class as long as that holds. There are at most
 * COST_CLASSES_MAX; after that a new queue joins the nearest one.
 */
#pragma once
#include "core/model/cost_class.h"
#include "core/model/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COST_CLASSES_MAX 256u

/* Moves the queue to another cost class if its links, speed or price have changed. The queue must have an
 * ad. */
void cost_class_update(struct core *c, struct queue *q);
/* Does what cost_class_update does when only the queue's slowness has changed, which happens with every job
 * that ends. A queue without an ad is left alone. */
void cost_class_update_slowness(struct core *c, struct queue *q);
struct agent_data;
/* Returns an agent's link to a store; unmeasured values are those of cost.h. */
struct cost_class_link cost_class_link_of(const struct agent_data *d, size_t store);
/* Adds (begins) or removes the transfer of a file of `bytes` from the store to the agent: a load on the
 * agent's link, and on that of its queues' cost classes. */
void cost_class_load(struct core *c, struct core_agent *a, size_t store, uint64_t bytes, bool begins);
bool cost_class_loads_ok(const struct core *c); /* for core_check */
