#include "core/need.h"

void need_of(struct core *c, const struct class *k, const struct ad *job, const struct ad *place,
             struct need *ret)
{
        *ret = (struct need){k->cpus, k->memory_mib, k->disk_kib};
        if (k->fixed)
                return;
        eval_integer(&c->eval, job, place, c->attr.RequestCpus, &ret->cpus);
        eval_integer(&c->eval, job, place, c->attr.RequestMemory, &ret->memory_mib);
        eval_integer(&c->eval, job, place, c->attr.RequestDisk, &ret->disk_kib);
}

bool need_same(const struct need *a, const struct need *b)
{
        return a->cpus == b->cpus && a->memory_mib == b->memory_mib && a->disk_kib == b->disk_kib;
}

bool need_fits(const struct need *n, const struct queue *q)
{
        return n->cpus <= q->cpus && n->memory_mib <= q->memory_mib && n->disk_kib <= q->disk_kib &&
               n->cpus >= 0 && n->memory_mib >= 0 && n->disk_kib >= 0;
}

void need_take(struct core *c, const struct need *n, struct queue *q)
{
        q->cpus -= n->cpus;
        q->memory_mib -= n->memory_mib;
        q->disk_kib -= n->disk_kib;
        q->jobs_left--;
        queue_show_free(c, q);
        index_queue_changed(c, q);
}

void queue_show_free(struct core *c, struct queue *q)
{
        ad_set_integer(q->ad, c->attr.Cpus, q->cpus < q->total_cpus ? q->cpus : q->total_cpus);
        ad_set_integer(q->ad, c->attr.Memory,
                       q->memory_mib < q->total_memory_mib ? q->memory_mib : q->total_memory_mib);
        ad_set_integer(q->ad, c->attr.Disk, q->disk_kib);
}
