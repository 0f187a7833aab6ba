/* cache_policy: decides which files a cache keeps, and which are evicted when room is needed (lru.h).
 * Bookkeeping only: the owner of the bytes removes the files that `evicted` names. A file is a 64-bit number
 * (base/job/file_id.h). Pure; after cache_policy_init the cache is empty. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "place/lru.h"

struct idmap;
struct cache_policy {
        uint64_t limit_bytes, pinned_bytes;
        struct idmap *files;
        struct lru use; /* files in order of use */
};
typedef void cache_evicted_fn(void *arg, uint64_t file, uint64_t bytes);

void cache_policy_init(struct cache_policy *c, uint64_t limit_bytes);
void cache_policy_deinit(struct cache_policy *c);

bool cache_policy_has(const struct cache_policy *c, uint64_t file);
/* Adds a file as the most recently used, or marks an existing one as such. Evicted files are passed to
 * `evicted` one by one. Returns false, with nothing changed, if it would not fit beside the pinned files. */
bool cache_policy_put(struct cache_policy *c, uint64_t file, uint64_t bytes, cache_evicted_fn *evicted,
                      void *arg);
/* Pins a file, which becomes the most recently used; pins are counted. Returns false if the file is not in
 * the cache. */
bool cache_policy_pin(struct cache_policy *c, uint64_t file);
void cache_policy_unpin(struct cache_policy *c, uint64_t file);
/* Calls fn for each file, the least recently used first: a cache filled in this order has the same order of
 * use. */
typedef void cache_each_fn(void *arg, uint64_t file, uint64_t bytes);
void cache_policy_each(const struct cache_policy *c, cache_each_fn *fn, void *arg);
