/* pool_kinds: what places there are behind this server, as a few kinds of them, for a server that hands jobs
 * on to it.
 *
 * Queues are of one kind that show the same to a job: attributes whose values stand still, and clauses of
 * Requirements that look at nothing else. What they have in all, free, and at the largest is summed up. What
 * names a place, or changes with its load, is no part of a kind. More than POOL_KINDS_MAX are made fewer:
 * first by leaving out numbers and sizes that differ, then by leaving out those that come last.
 */
#pragma once
#include "base/format/json.h"
#include "core/query.h"

#define POOL_KINDS_MAX 8u

struct pool_kinds;
struct pool_kinds *pool_kinds_new(struct core *c, int64_t now_s);
void pool_kinds_free(struct pool_kinds *k); /* NULL is fine */
/* A queue that is connected and has an ad. Those of one agent come one after the other. */
void pool_kinds_add(struct pool_kinds *k, const struct core_queue_view *q);
/* "kinds": a list, in an open object. No queue is added afterwards. */
void pool_kinds_write(struct pool_kinds *k, struct json *j);
