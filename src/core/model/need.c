#include "core/model/need.h"

#include "base/mem.h"
#include "core/model/core_parts.h"

/* Returns NULL if no job was given any of the resource. */
static struct queue_resource *need_resource(const struct queue *q, symbol name)
{
        for (unsigned i = 0; i < q->resource_count; i++)
                if (q->resources[i].name == name)
                        return &q->resources[i];
        return NULL;
}

static struct queue_resource *resource_get(struct queue *q, symbol name)
{
        struct queue_resource *r = need_resource(q, name);

        if (r)
                return r;
        q->resources = mem_array(q->resources, q->resource_count + 1, sizeof(*q->resources));
        r = &q->resources[q->resource_count++];
        *r = (struct queue_resource){.name = name};
        return r;
}

void need_of(struct core *c, const struct job_class *k, const struct ad *job, const struct ad *place,
             struct need *ret)
{
        ret->cpus = k->cpus;
        ret->memory_mib = k->memory_mib;
        ret->disk_kib = k->disk_kib;
        ret->more.count = k->more.count;
        for (unsigned i = 0; i < k->more.count; i++)
                ret->more.v[i] = k->more.v[i];
        if (k->fixed)
                return;
        eval_integer(&c->eval, job, place, c->attr.RequestCpus, &ret->cpus);
        eval_integer(&c->eval, job, place, c->attr.RequestMemory, &ret->memory_mib);
        eval_integer(&c->eval, job, place, c->attr.RequestDisk, &ret->disk_kib);
        for (unsigned i = 0; i < ret->more.count; i++)
                eval_integer(&c->eval, job, place, ret->more.v[i].request, &ret->more.v[i].n);
}

bool need_same(const struct need *a, const struct need *b)
{
        if (a->cpus != b->cpus || a->memory_mib != b->memory_mib || a->disk_kib != b->disk_kib ||
            a->more.count != b->more.count)
                return false;
        for (unsigned i = 0; i < a->more.count; i++)
                if (a->more.v[i].name != b->more.v[i].name || a->more.v[i].n != b->more.v[i].n)
                        return false;
        return true;
}

static int64_t offered(struct core *c, const struct queue *q, symbol name)
{
        int64_t n = 0;

        eval_integer(&c->eval, q->ad, NULL, name, &n);
        return n < 0 ? 0 : n > OFFERED_MAX ? OFFERED_MAX : n;
}

/* Returns the free quantity: the queue counts resources that jobs were given; the ad has the others. */
static int64_t free_of(struct core *c, const struct queue *q, symbol name)
{
        const struct queue_resource *r = need_resource(q, name);

        return r ? r->free : offered(c, q, name);
}

bool need_is_possible(const struct need *n)
{
        for (unsigned i = 0; i < n->more.count; i++)
                if (n->more.v[i].n < 0)
                        return false;
        return n->cpus >= 0 && n->memory_mib >= 0 && n->disk_kib >= 0;
}

bool need_fits(struct core *c, const struct need *n, const struct queue *q)
{
        if (!need_is_possible(n) || n->cpus > q->cpus || n->memory_mib > q->memory_mib ||
            n->disk_kib > q->disk_kib)
                return false;
        for (unsigned i = 0; i < n->more.count; i++)
                if (n->more.v[i].n > 0 && n->more.v[i].n > free_of(c, q, n->more.v[i].name))
                        return false;
        return true;
}

uint64_t need_count(struct core *c, const struct need *n, const struct queue *q)
{
        struct {
                int64_t needs, has;
        } of[3 + AMOUNTS_MAX] = {
                {n->cpus, q->cpus}, {n->memory_mib, q->memory_mib}, {n->disk_kib, q->disk_kib}};
        uint64_t count = UINT64_MAX;

        for (unsigned i = 0; i < n->more.count; i++) {
                of[3 + i].needs = n->more.v[i].n;
                of[3 + i].has = free_of(c, q, n->more.v[i].name);
        }
        for (unsigned i = 0; i < 3 + n->more.count; i++) {
                uint64_t fits = of[i].has > 0 && of[i].needs > 0 ? (uint64_t)(of[i].has / of[i].needs) : 0;

                if (of[i].needs > 0 && fits < count)
                        count = fits;
        }
        return count;
}

void need_take(struct core *c, const struct need *n, struct queue *q)
{
        q->cpus -= n->cpus;
        q->memory_mib -= n->memory_mib;
        q->disk_kib -= n->disk_kib;
        for (unsigned i = 0; i < n->more.count; i++) {
                struct queue_resource *r = need_resource(q, n->more.v[i].name);
                int64_t had = free_of(c, q, n->more.v[i].name);

                if (n->more.v[i].n == 0)
                        continue;
                if (!r) {
                        symbols_keep(c->symbols, n->more.v[i].name); /* the queue outlives the job */
                        r = resource_get(q, n->more.v[i].name);
                }
                r->free = had - n->more.v[i].n;
        }
        q->jobs_left--;
        queue_show_free(c, q);
}

void need_return(struct core *c, const struct need *n, struct queue *q)
{
        q->cpus += n->cpus;
        q->memory_mib += n->memory_mib;
        q->disk_kib += n->disk_kib;
        for (unsigned i = 0; i < n->more.count; i++) {
                struct queue_resource *r = need_resource(q, n->more.v[i].name);

                if (r)
                        r->free += n->more.v[i].n;
        }
        q->jobs_left++;
        queue_show_free(c, q);
}

void queue_show_free(struct core *c, struct queue *q)
{
        ad_set_integer(q->ad, c->attr.Cpus, q->cpus < q->total_cpus ? q->cpus : q->total_cpus);
        ad_set_integer(q->ad, c->attr.Memory,
                       q->memory_mib < q->total_memory_mib ? q->memory_mib : q->total_memory_mib);
        ad_set_integer(q->ad, c->attr.Disk, q->disk_kib);
        for (unsigned i = 0; i < q->resource_count; i++)
                if (ad_find(q->ad, q->resources[i].name))
                        ad_set_integer(q->ad, q->resources[i].name, q->resources[i].free);
}

void need_read_resources(struct core *c, struct queue *q)
{
        for (unsigned i = 0; i < q->resource_count; i++)
                q->resources[i].free = offered(c, q, q->resources[i].name) - q->resources[i].taken;
}

void need_count_taken(struct queue *q, const struct job *j, int sign)
{
        for (unsigned i = 0; j->more && i < j->more->count; i++)
                resource_get(q, j->more->v[i].name)->taken += sign * j->more->v[i].n;
}
