/* cost_class: places that cost the same, as far as they themselves go; for the files of core/ only.
 *
 * What a place costs a job depends on what it holds of the job's files, and on what is the place's own: its
 * links to the stores, how fast it is, its price, the wait at its batch system. Agents of one cluster measure
 * much the same, so queues whose own part is about the same share a *cost class*, and the cost is computed
 * with the cost class's means: a link that ten agents have measured is better known than one's own last
 * measurement, and of a thousand places that hold nothing of a job only one of each cost class needs to be
 * looked at.
 *
 * About the same is: links within half as much again and down at the same stores, run times within a seventh,
 * the same price and search order. A queue stays in its cost class as long as that holds. There are at most
 * COST_CLASSES_MAX; a queue that comes then gets the one that is nearest.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COST_CLASSES_MAX 256u

/* The queue's links, speed or price may be others: its cost class follows. The queue has an ad. */
void cost_class_update(struct core *c, struct queue *q);
/* The same when only its slowness has changed, which is with every job that ends. No ad: no-op. */
void cost_class_update_slowness(struct core *c, struct queue *q);
/* The file of so many bytes begins (or ceases) to come to the agent from the store: that is a load on its
 * link, and on that of its queues' cost classes. */
void cost_class_load(struct core *c, struct core_agent *a, size_t store, uint64_t bytes, bool begins);
bool cost_class_loads_ok(const struct core *c); /* for core_check */
