#include "place/cache_policy.h"

#include "base/map.h"
#include "base/mem.h"

struct cache_entry {
        uint64_t file, bytes;
        uint32_t pins;
        struct cache_entry *older, *newer;
};

void cache_policy_init(struct cache_policy *c, uint64_t limit_bytes)
{
        *c = (struct cache_policy){.limit_bytes = limit_bytes, .files = idmap_new()};
}

void cache_policy_deinit(struct cache_policy *c)
{
        for (struct cache_entry *e = c->oldest, *next; e; e = next) {
                next = e->newer;
                free(e);
        }
        idmap_free(c->files);
        *c = (struct cache_policy){0};
}

static void list_remove(struct cache_policy *c, struct cache_entry *e)
{
        *(e->older ? &e->older->newer : &c->oldest) = e->newer;
        *(e->newer ? &e->newer->older : &c->newest) = e->older;
        e->older = e->newer = NULL;
}

static void list_add_newest(struct cache_policy *c, struct cache_entry *e)
{
        e->older = c->newest;
        e->newer = NULL;
        *(c->newest ? &c->newest->newer : &c->oldest) = e;
        c->newest = e;
}

static void entry_free(struct cache_policy *c, struct cache_entry *e)
{
        list_remove(c, e);
        idmap_take(c->files, e->file);
        c->bytes -= e->bytes;
        if (e->pins)
                c->pinned_bytes -= e->bytes;
        free(e);
}

bool cache_policy_has(const struct cache_policy *c, uint64_t file)
{
        return idmap_get(c->files, file) != NULL;
}

size_t cache_policy_count(const struct cache_policy *c)
{
        return idmap_count(c->files);
}

bool cache_policy_put(struct cache_policy *c, uint64_t file, uint64_t bytes, cache_evicted_fn *evicted,
                      void *arg)
{
        struct cache_entry *e = idmap_get(c->files, file);

        if (e) {
                list_remove(c, e);
                list_add_newest(c, e);
                return true;
        }
        if (bytes > c->limit_bytes || c->pinned_bytes > c->limit_bytes - bytes)
                return false;
        for (struct cache_entry *old = c->oldest, *next; c->bytes > c->limit_bytes - bytes; old = next) {
                uint64_t gone = old->file, size = old->bytes;

                next = old->newer;
                if (old->pins)
                        continue;
                entry_free(c, old);
                if (evicted)
                        evicted(arg, gone, size);
        }
        e = mem_new(struct cache_entry);
        *e = (struct cache_entry){.file = file, .bytes = bytes};
        idmap_put(c->files, file, e);
        list_add_newest(c, e);
        c->bytes += bytes;
        return true;
}

bool cache_policy_pin(struct cache_policy *c, uint64_t file)
{
        struct cache_entry *e = idmap_get(c->files, file);

        if (!e)
                return false;
        if (e->pins++ == 0)
                c->pinned_bytes += e->bytes;
        list_remove(c, e);
        list_add_newest(c, e);
        return true;
}

void cache_policy_unpin(struct cache_policy *c, uint64_t file)
{
        struct cache_entry *e = idmap_get(c->files, file);

        if (e && e->pins && --e->pins == 0)
                c->pinned_bytes -= e->bytes;
}

bool cache_policy_drop(struct cache_policy *c, uint64_t file)
{
        struct cache_entry *e = idmap_get(c->files, file);

        if (e)
                entry_free(c, e);
        return e != NULL;
}

void cache_policy_each(const struct cache_policy *c, cache_each_fn *fn, void *arg)
{
        for (const struct cache_entry *e = c->oldest; e; e = e->newer)
                fn(arg, e->file, e->bytes);
}
