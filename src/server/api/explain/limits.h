/* limits: writes a pool of units as JSON members and as a sentence. */
#pragma once
#include "base/format/json.h"
#include "core/core.h"
#include "core/query.h"

/* "It waits for limit sw: 5 of 5 in use (ann@local 3, bob@local 2); it draws 2." */
void limit_say(struct buf *out, struct core *core, const struct core_limit *l, int64_t units);
