/* why: why an idle job is not running: what each queue says (core_why). */
#pragma once
#include "core/query.h"
#include <stdint.h>

struct request;

/* core_why_some, of a request that need not be found. */
void why_some(struct core *c, struct core_walk *w, unsigned queues, const struct request *r, uint32_t member,
              core_why_fn *fn, void *arg);
