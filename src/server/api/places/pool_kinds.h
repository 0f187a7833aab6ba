/* pool_kinds: describes the places of this server as a few kinds, for a server that hands jobs on to it.
 *
 * Two queues are of one kind if they show the same to every job: the same attributes with constant values,
 * and the same clauses of Requirements that use only constant values. For each kind the totals, the free
 * amounts and the largest queue are computed. Attributes that identify a place or change with its load are
 * left out. More than POOL_KINDS_MAX kinds are reduced: first numbers and sizes that differ are left out,
 * then the last kinds. */
#pragma once
#include "base/format/json.h"
#include "core/query.h"

#define POOL_KINDS_MAX 8u

struct pool_kinds;
struct pool_kinds *pool_kinds_new(struct core *c, int64_t now_s);
void pool_kinds_free(struct pool_kinds *k); /* accepts NULL */
/* Adds a queue that is connected and has an ad. The queues of one agent must be added one after the other. */
void pool_kinds_add(struct pool_kinds *k, const struct core_queue_view *q);
/* Writes "kinds", a list, into an open object. No queue may be added afterwards. */
void pool_kinds_write(struct pool_kinds *k, struct json *j);
