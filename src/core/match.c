/* Matching: classes of idle jobs in their order, against the offers that are parked.
 *
 * A pass looks at pairs of which at least one is new since the last pass: a class that has become ready
 * against all offers, an offer that changed against all ready classes. For a pair both Requirements are
 * evaluated, and what the job asks for must be free; then members are given one by one until the offer or the
 * class is used up, the offer's ad telling what is left after each. Among several offers a class prefers by
 * its Rank, then by what is free.
 */
#include <assert.h>

#include "base/mem.h"
#include "classad/match.h"
#include "core/state.h"

/* How many members are tried when a queue's expression looks at what differs from job to job. */
#define LATE_TRIES 16u

struct need {
        int64_t cpus, memory_mib, disk_kib;
};

static void need_of(struct core *c, const struct class *k, const struct ad *job, const struct ad *place,
                    struct need *ret)
{
        *ret = (struct need){k->cpus, k->memory_mib, k->disk_kib};
        if (k->fixed)
                return;
        eval_integer(&c->eval, job, place, c->attr.RequestCpus, &ret->cpus);
        eval_integer(&c->eval, job, place, c->attr.RequestMemory, &ret->memory_mib);
        eval_integer(&c->eval, job, place, c->attr.RequestDisk, &ret->disk_kib);
}

static bool fits(const struct queue *q, const struct need *n)
{
        return n->cpus <= q->cpus && n->memory_mib <= q->memory_mib && n->disk_kib <= q->disk_kib &&
               n->cpus >= 0 && n->memory_mib >= 0 && n->disk_kib >= 0;
}

static bool agree(struct core *c, const struct class *k, const struct queue *q)
{
        if (q->job_specific)
                return match_one_way(&c->eval, k->ad, q->ad);
        return match_ads(&c->eval, k->ad, q->ad) == MATCH_YES;
}

static bool pair_fits(struct core *c, const struct class *k, const struct queue *q, struct need *need)
{
        if (q->jobs_left == 0 || !queue_allows_owner(q, k->owner))
                return false;
        need_of(c, k, k->ad, q->ad, need);
        return fits(q, need) && agree(c, k, q);
}

/* The queue's word on one member, when its expressions look at more than the class. */
static bool member_allowed(struct core *c, const struct queue *q, const struct request *r, uint32_t member)
{
        struct ad *ad;
        bool yes;

        if (!q->job_specific)
                return true;
        ad = member_ad(c, r, member, request_job(r, member));
        yes = match_one_way(&c->eval, q->ad, ad);
        ad_free(ad);
        return yes;
}

void queue_show_free(struct core *c, struct queue *q)
{
        ad_set_integer(q->ad, c->attr.Cpus, q->cpus < q->total_cpus ? q->cpus : q->total_cpus);
        ad_set_integer(q->ad, c->attr.Memory,
                       q->memory_mib < q->total_memory_mib ? q->memory_mib : q->total_memory_mib);
        ad_set_integer(q->ad, c->attr.Disk, q->disk_kib);
}

static void take(struct core *c, struct queue *q, const struct need *n)
{
        q->cpus -= n->cpus;
        q->memory_mib -= n->memory_mib;
        q->disk_kib -= n->disk_kib;
        q->jobs_left--;
        queue_show_free(c, q);
}

static uint32_t next_fence(const struct request *r, uint32_t member)
{
        const struct job *j = request_job(r, member);

        return j ? j->fence + 1 : 1;
}

/* Gives the queue as many members of one bucket with one fence as fit. Returns how many. */
static uint64_t give_group(struct core *c, struct class *k, struct bucket *b, struct queue *q)
{
        struct event e = {.type = EVENT_MATCHED, .request = b->request->id};
        struct need need, first = {0};
        unsigned tries = 0;
        uint64_t n;

        SET_FOREACH (&b->idle, m) {
                uint32_t fence = next_fence(b->request, (uint32_t)m);

                if (set_count(&e.members) && fence != e.fence)
                        break;
                if (!pair_fits(c, k, q, &need))
                        break;
                if (set_count(&e.members) && memcmp(&need, &first, sizeof(need)) != 0)
                        break;
                if (!member_allowed(c, q, b->request, (uint32_t)m)) {
                        if (++tries == LATE_TRIES)
                                break;
                        continue;
                }
                first = need;
                e.fence = fence;
                set_add(&e.members, (uint32_t)m);
                take(c, q, &need);
        }
        eval_reset(&c->eval);
        n = set_count(&e.members);
        if (n) {
                struct core_assignment a = {
                        .agent = q->agent->name,
                        .queue = q->name,
                        .serial = q->serial,
                        .request = b->request->id,
                        .part = b->part,
                        .fence = e.fence,
                        .members = &e.members,
                        .lease_ms = (uint64_t)k->lease_ms,
                };
                e.agent = str_of(q->agent->name);
                e.queue = str_of(q->name);
                e.cpus = (uint32_t)first.cpus;
                e.memory_mib = (uint64_t)first.memory_mib;
                e.disk_kib = (uint64_t)first.disk_kib;
                e.lease_ms = (uint64_t)k->lease_ms;
                core_emit(c, &e, NULL);
                c->world.assign(c->world.arg, &a);
        }
        event_deinit(&e);
        return n;
}

struct candidate {
        struct queue *queue;
        double rank;
};

static int by_rank(const void *x, const void *y)
{
        const struct candidate *a = x, *b = y;

        if (a->rank != b->rank)
                return a->rank > b->rank ? -1 : 1;
        return (a->queue->cpus < b->queue->cpus) - (a->queue->cpus > b->queue->cpus);
}

/* Gives what it can of one class to the candidates, best first. */
static void give(struct core *c, struct class *k, struct candidate *found, size_t count)
{
        if (count > 1)
                qsort(found, count, sizeof(*found), by_rank);
        for (size_t i = 0; i < count; i++)
                while (k->idle > 0) {
                        struct bucket *b = container_of(heap_first(&k->buckets), struct bucket, node);
                        if (give_group(c, k, b, found[i].queue) == 0)
                                break;
                }
}

static void match_class(struct core *c, struct class *k, struct queue **offers, size_t count,
                        struct candidate *found)
{
        size_t n = 0;
        struct need need;

        for (size_t i = 0; i < count; i++)
                if (pair_fits(c, k, offers[i], &need))
                        found[n++] = (struct candidate){
                                offers[i], k->has_rank ? match_rank(&c->eval, k->ad, offers[i]->ad) : 0};
        eval_reset(&c->eval);
        give(c, k, found, n);
}

static int64_t head_priority(const struct class *k)
{
        return container_of(heap_first(&k->buckets), const struct bucket, node)->priority;
}

/* An offer with a Rank chooses among classes of the same priority by it. */
static void sort_for_rank(struct core *c, struct queue *q, struct class **classes, size_t count)
{
        double *rank = mem_array(NULL, count, sizeof(*rank));

        for (size_t i = 0; i < count; i++)
                rank[i] = match_rank(&c->eval, q->ad, classes[i]->ad);
        for (size_t i = 1; i < count; i++) { /* insertion: stable, and mostly sorted already */
                struct class *k = classes[i];
                double r = rank[i];
                size_t at = i;

                while (at > 0 && head_priority(classes[at - 1]) == head_priority(k) && rank[at - 1] < r) {
                        classes[at] = classes[at - 1];
                        rank[at] = rank[at - 1];
                        at--;
                }
                classes[at] = k;
                rank[at] = r;
        }
        free(rank);
}

struct offers {
        struct queue **v;
        size_t n, cap;
};

static void offers_add(struct offers *o, struct queue *q)
{
        if (!q->agent->connected || !q->offers || q->jobs_left == 0)
                return;
        MEM_GROW(o->v, o->cap, o->n + 1);
        o->v[o->n++] = q;
}

static void offers_all(struct core *c, struct offers *o)
{
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);)
                for (struct queue *q = ((struct core_agent *)value)->queues; q; q = q->next)
                        offers_add(o, q);
}

/* Offers that prefer some jobs choose first, each over all classes. */
static void match_ranked(struct core *c, const struct offers *changed, struct class **classes)
{
        for (size_t i = 0; i < changed->n; i++) {
                struct queue *q = changed->v[i];
                size_t count = c->ready_count;

                if (!q->has_rank)
                        continue;
                class_ready_sort(c);
                memcpy(classes, c->ready, count * sizeof(struct class *));
                sort_for_rank(c, q, classes, count);
                for (size_t k = 0; k < count && q->jobs_left; k++) {
                        struct candidate one = {q, 0};
                        struct need need;

                        if (classes[k]->idle && pair_fits(c, classes[k], q, &need))
                                give(c, classes[k], &one, 1);
                }
        }
}

void core_match(struct core *c)
{
        struct offers changed = {0}, all = {0};
        struct class **classes;
        struct candidate *found;
        size_t count = c->ready_count;
        bool any_dirty = false;

        if (!c->match_wanted || c->config.shadow)
                return;
        c->match_wanted = false;
        for (size_t i = 0; i < c->changed_count; i++)
                offers_add(&changed, c->changed[i]);
        classes = mem_array(NULL, count + 1, sizeof(struct class *));
        match_ranked(c, &changed, classes);
        class_ready_sort(c);
        count = c->ready_count;
        if (count)
                memcpy(classes, c->ready, count * sizeof(struct class *));
        for (size_t i = 0; i < count; i++)
                any_dirty |= classes[i]->dirty;
        if (any_dirty)
                offers_all(c, &all);
        found = mem_array(NULL, changed.n + all.n + 1, sizeof(*found));
        for (size_t i = 0; i < count; i++) {
                const struct offers *o = classes[i]->dirty ? &all : &changed;

                if (classes[i]->idle && o->n)
                        match_class(c, classes[i], o->v, o->n, found);
        }
        for (size_t i = 0; i < count; i++)
                classes[i]->dirty = false;
        for (size_t i = 0; i < c->changed_count; i++)
                c->changed[i]->dirty = false;
        c->changed_count = 0;
        free(found);
        free(classes);
        free(changed.v);
        free(all.v);
}
