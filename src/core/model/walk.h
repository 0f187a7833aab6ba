/* walk: the queues that there are, one after the other, in slices (core_walk_new). */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

struct core_walk;

struct queue *walk_next(struct core_walk *w); /* NULL at its end */
/* May a slice of a walk that began at eval.steps_all == began ask another queue? Half of UINT32_MAX queues
 * and more are all of them, in one go. */
bool walk_has_steps(const struct core *c, uint64_t began, unsigned queues);
