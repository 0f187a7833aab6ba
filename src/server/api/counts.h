/* counts: writes the number of jobs in each state, as members of a JSON object. */
#pragma once
#include "base/format/json.h"
#include "core/core.h"
#include "core/query.h"

static inline void counts_write(struct json *j, const struct core_counts *n)
{
        json_kint(j, "idle", (int64_t)n->idle);
        json_kint(j, "waiting", (int64_t)n->waiting);
        json_kint(j, "running", (int64_t)n->running);
        json_kint(j, "held", (int64_t)n->held);
        json_kint(j, "completed", (int64_t)n->completed);
        json_kint(j, "failed", (int64_t)n->failed);
        json_kint(j, "removed", (int64_t)n->removed);
        json_kint(j, "left", (int64_t)n->left);
}
