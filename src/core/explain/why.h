/* why: explains why an idle job is not running, queue by queue (core_why). */
#pragma once
#include "core/query.h"
#include <stdint.h>

struct request;

/* Does what core_why_some does, for a request that was already found. */
void why_some(struct core *c, struct core_walk *w, unsigned queues, const struct request *r, uint32_t member,
              core_why_fn *fn, void *arg);
