/* cache_policy: which files a place keeps, and which go when room is needed (lru.h). It is bookkeeping
 * only: whoever owns the bytes removes those of a file that `evicted` names. A file is a 64-bit number
 * (base/file_id.h). Pure; {0} after cache_policy_init is a cache that holds nothing.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "place/lru.h"

struct idmap;
struct cache_policy {
        uint64_t limit_bytes, pinned_bytes;
        struct idmap *files;
        struct lru use; /* of its files */
};
typedef void cache_evicted_fn(void *arg, uint64_t file, uint64_t bytes);

void cache_policy_init(struct cache_policy *c, uint64_t limit_bytes);
void cache_policy_deinit(struct cache_policy *c);

bool cache_policy_has(const struct cache_policy *c, uint64_t file);
/* Puts a file in as the newest, or makes one that is there the newest. Others go to make room, told to
 * `evicted` one by one. False, with nothing changed: it would not fit beside what is pinned. */
bool cache_policy_put(struct cache_policy *c, uint64_t file, uint64_t bytes, cache_evicted_fn *evicted,
                      void *arg);
/* A job uses it from now on; it becomes the newest. False: it is not there. Counted. */
bool cache_policy_pin(struct cache_policy *c, uint64_t file);
void cache_policy_unpin(struct cache_policy *c, uint64_t file);
/* Calls fn for each, the least recently used first: put in this order, another cache has the same ages. */
typedef void cache_each_fn(void *arg, uint64_t file, uint64_t bytes);
void cache_policy_each(const struct cache_policy *c, cache_each_fn *fn, void *arg);
