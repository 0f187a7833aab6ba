#include "place/cache_policy.h"

#include "base/heap.h"
#include "base/map.h"
#include "base/mem.h"

struct cache_entry {
        struct lru_node use;
        uint64_t file;
};

static struct cache_entry *entry_of(struct lru_node *n)
{
        return container_of(n, struct cache_entry, use);
}

void cache_policy_init(struct cache_policy *c, uint64_t limit_bytes)
{
        *c = (struct cache_policy){.limit_bytes = limit_bytes, .files = idmap_new()};
}

void cache_policy_deinit(struct cache_policy *c)
{
        while (c->use.oldest) {
                struct lru_node *n = c->use.oldest;

                lru_take(&c->use, n);
                free(entry_of(n));
        }
        idmap_free(c->files);
        *c = (struct cache_policy){0};
}

static void entry_free(struct cache_policy *c, struct cache_entry *e)
{
        lru_take(&c->use, &e->use);
        idmap_take(c->files, e->file);
        if (e->use.pins)
                c->pinned_bytes -= e->use.bytes;
        free(e);
}

bool cache_policy_has(const struct cache_policy *c, uint64_t file)
{
        return idmap_get(c->files, file) != NULL;
}

struct going {
        struct cache_policy *cache;
        cache_evicted_fn *evicted;
        void *arg;
};

static void cache_evict(void *arg, struct lru_node *n)
{
        const struct going *g = arg;
        uint64_t file = entry_of(n)->file, bytes = n->bytes;

        entry_free(g->cache, entry_of(n));
        if (g->evicted)
                g->evicted(g->arg, file, bytes);
}

bool cache_policy_put(struct cache_policy *c, uint64_t file, uint64_t bytes, cache_evicted_fn *evicted,
                      void *arg)
{
        struct cache_entry *e = idmap_get(c->files, file);
        struct going g = {c, evicted, arg};

        if (e) {
                lru_use(&c->use, &e->use);
                return true;
        }
        if (bytes > c->limit_bytes || c->pinned_bytes > c->limit_bytes - bytes)
                return false;
        lru_trim(&c->use, c->limit_bytes - bytes, cache_evict, &g);
        e = mem_new(struct cache_entry);
        *e = (struct cache_entry){.use = {.bytes = bytes}, .file = file};
        idmap_put(c->files, file, e);
        lru_put(&c->use, &e->use);
        return true;
}

bool cache_policy_pin(struct cache_policy *c, uint64_t file)
{
        struct cache_entry *e = idmap_get(c->files, file);

        if (!e)
                return false;
        if (e->use.pins++ == 0)
                c->pinned_bytes += e->use.bytes;
        lru_use(&c->use, &e->use);
        return true;
}

void cache_policy_unpin(struct cache_policy *c, uint64_t file)
{
        struct cache_entry *e = idmap_get(c->files, file);

        if (e && e->use.pins && --e->use.pins == 0)
                c->pinned_bytes -= e->use.bytes;
}

void cache_policy_each(const struct cache_policy *c, cache_each_fn *fn, void *arg)
{
        for (struct lru_node *n = c->use.oldest; n; n = n->newer)
                fn(arg, entry_of(n)->file, n->bytes);
}
