/* settled: the counts of requests as they are on the disk.
 *
 * The core is ahead of the disk by the commits that are under way. A read that shows what the core has must
 * wait for these, which takes long while agents end thousands of jobs a second. This table knows which
 * requests have changed in commits that are not durable yet, and of requests that are read meanwhile it keeps
 * the counts that each of these commits ends with. A read is then answered at once with those of the last
 * durable one.
 *
 * Commits have the numbers of turn_commit. A request's counts are kept from the first read that had to wait;
 * of at most SETTLED_READ_MAX requests, those that were read last. Not thread-safe. */
#pragma once
#include "core/model/event.h"
#include "core/query.h"

#define SETTLED_READ_MAX 256u

struct settled;
struct settled *settled_new(void);
void settled_free(struct settled *x); /* NULL is fine */

/* Notes an event whose record is part of the commit. `informs`: nothing waits for this record. */
void settled_event(struct settled *x, const struct event *e, uint64_t commit, bool informs);
/* Forgets the changes of commits that have become durable. */
void settled_durable(struct settled *x, uint64_t durable);
/* At the end of a turn, for each request that changed in it and whose counts are kept: returns its id; 0: no
 * more. The caller passes what the core has of it to settled_keep, if the core still has it. */
uint64_t settled_next(struct settled *x);
void settled_keep(struct settled *x, const struct core_request *r, uint64_t durable);

/* Replaces the counts and the time of the end in *r, which is what the core has, by what is durable if the
 * last durable commit is `durable`. False: *r is unchanged, and must not be shown before the commits under
 * way are durable. */
bool settled_get(struct settled *x, struct core_request *r, uint64_t durable);
