/* walk: iteration over all queues in slices (core_walk_new). */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

struct core_walk;

struct queue *walk_next(struct core_walk *w); /* NULL: no queue is left */
/* Returns whether a slice that began at eval.steps_all == began may look at another queue. A slice of more
 * than UINT32_MAX / 2 queues has no limit of steps. */
bool walk_has_steps(const struct core *c, uint64_t began, unsigned queues);
