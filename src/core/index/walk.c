/* Iteration is a merge: the first fitting element of each job signature (or offer signature) is in a heap;
 * the first of all is returned, and its successor takes its place. The caller may change the returned
 * element, so its successor is found first. */
#include "base/mem.h"
#include "core/index/signature.h"
#include "core/model/core_parts.h"
#include "core/model/precedence.h"

/* ---- classes for a queue */

static struct index_place *walk_place_of(const struct tree_node *n)
{
        return container_of(n, struct index_place, node);
}

static bool class_may(void *arg, const struct tree_node *n)
{
        const struct index_classes *w = arg;
        struct room has = index_queue_room(w->queue);

        return room_within(&walk_place_of(n)->least, &has);
}

static bool class_is(void *arg, const struct tree_node *n)
{
        const struct index_classes *w = arg;
        const struct job_class *k = walk_place_of(n)->job_class;
        struct room has = index_queue_room(w->queue);

        return room_within(&k->index.need, &has) && (!w->ask_owner || queue_allows_owner(w->queue, k->owner));
}

static struct job_class *class_after(struct index_classes *w, const struct tree *t,
                                     const struct tree_node *after)
{
        struct tree_search s = {w, class_may, class_is};
        struct tree_node *n = tree_find(t, after, &s);

        return n ? walk_place_of(n)->job_class : NULL;
}

static const struct tree_node *node_in(const struct index_entry *e)
{
        const struct index_class *i = &e->next->index;

        return e->tree == &e->signature->classes ? &i->in_signature.node : &i->in_owner.node;
}

static bool entry_before(const struct heap_node *x, const struct heap_node *y)
{
        const struct job_class *a = container_of(x, struct index_entry, node)->next,
                               *b = container_of(y, struct index_entry, node)->next;

        if (order_class_before(a, b))
                return true;
        return !order_class_before(b, a) && a->index.serial < b->index.serial;
}

static void add_tree(struct index_classes *w, struct job_signature *g, const struct tree *t, size_t *n)
{
        struct index_entry *e = &w->entries[*n];

        *e = (struct index_entry){.signature = g, .tree = t, .next = class_after(w, t, NULL)};
        if (!e->next)
                return;
        heap_put(&w->heap, &e->node);
        (*n)++;
}

/* Returns whether the queue's file lists owners by name: then only their classes are looked up. */
static bool owners_by_name(const struct queue *q)
{
        for (size_t i = 0; i < q->owners.count; i++)
                if (str_starts(q->owners.items[i], STR("*")))
                        return false;
        return q->owners.count > 0;
}

static bool named_before(const struct queue *q, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (str_eq(q->owners.items[i], q->owners.items[n]))
                        return true;
        return false;
}

void index_classes_begin(struct index_classes *w, struct core *c, const struct queue *q)
{
        struct index_signature *signature = q->index.signature ? &q->index.signature->signature : NULL, *met;
        bool by_name = owners_by_name(q);
        size_t n = 0;

        *w = (struct index_classes){.core = c, .queue = q, .ask_owner = q->owners.count > 0};
        w->heap.before = entry_before;
        if (!signature || signature->meet_count == 0)
                return;
        w->entries =
                mem_array(NULL, signature->meet_count * (by_name ? q->owners.count : 1), sizeof(*w->entries));
        for (size_t i = 0; (met = index_meet(signature, i)) != NULL; i++) {
                struct job_signature *g = job_signature_of(met);

                if (g->classes.count == 0)
                        continue;
                if (!by_name)
                        add_tree(w, g, &g->classes, &n);
                for (size_t o = 0; by_name && o < q->owners.count; o++) {
                        struct index_owner *owner = map_get(g->owners, q->owners.items[o]);

                        if (owner && !named_before(q, o))
                                add_tree(w, g, &owner->classes, &n);
                }
        }
}

struct job_class *index_classes_next(struct index_classes *w)
{
        while (heap_first(&w->heap)) {
                struct index_entry *e = container_of(heap_first(&w->heap), struct index_entry, node);
                struct job_class *k = e->next;
                bool fits = class_is(w, e->tree == &e->signature->classes ? &k->index.in_signature.node
                                                                          : &k->index.in_owner.node);

                e->next = class_after(w, e->tree, node_in(e));
                if (e->next)
                        heap_moved(&w->heap, &e->node);
                else
                        heap_take(&w->heap, &e->node);
                if (fits)
                        return k;
        }
        return NULL;
}

void index_classes_end(struct index_classes *w)
{
        heap_deinit(&w->heap);
        free(w->entries);
}

/* ---- offers for a class */

static struct queue *walk_queue_of(const struct tree_node *n)
{
        return container_of(n, struct queue, index.node);
}

static bool queue_may(void *arg, const struct tree_node *n)
{
        const struct index_offers *w = arg;

        return room_within(&w->job_class->index.need, &walk_queue_of(n)->index.most);
}

static bool queue_is(void *arg, const struct tree_node *n)
{
        const struct index_offers *w = arg;
        struct room has = index_queue_room(walk_queue_of(n));

        return room_within(&w->job_class->index.need, &has);
}

static struct queue *queue_after(struct index_offers *w, const struct offer_signature *k,
                                 const struct tree_node *after)
{
        struct tree_search s = {w, queue_may, queue_is};
        struct tree_node *n = tree_find(&k->queues, after, &s);

        return n ? walk_queue_of(n) : NULL;
}

static bool offer_before(const struct heap_node *x, const struct heap_node *y)
{
        const struct queue *a = container_of(x, struct index_offer, node)->next,
                           *b = container_of(y, struct index_offer, node)->next;

        if (a->cpus != b->cpus)
                return a->cpus > b->cpus;
        return a->index.serial < b->index.serial;
}

void index_offers_begin(struct index_offers *w, const struct job_class *k)
{
        struct index_signature *of_job = &k->index.signature->signature, *met;
        size_t n = 0;

        *w = (struct index_offers){.job_class = k};
        w->heap.before = offer_before;
        w->entries = mem_array(NULL, of_job->meet_count + 1, sizeof(*w->entries));
        for (size_t i = 0; (met = index_meet(of_job, i)) != NULL; i++) {
                struct offer_signature *signature = offer_signature_of(met);
                struct index_offer *o = &w->entries[n];

                if (signature->queues.count == 0 ||
                    !queue_allows_owner(walk_queue_of(tree_first(&signature->queues)), k->owner))
                        continue;
                *o = (struct index_offer){.signature = signature, .next = queue_after(w, signature, NULL)};
                if (!o->next)
                        continue;
                heap_put(&w->heap, &o->node);
                n++;
        }
}

struct queue *index_offers_next(struct index_offers *w)
{
        struct index_offer *o;
        struct queue *q;

        if (!heap_first(&w->heap))
                return NULL;
        o = container_of(heap_first(&w->heap), struct index_offer, node);
        q = o->next;
        o->next = queue_after(w, o->signature, &q->index.node);
        if (o->next)
                heap_moved(&w->heap, &o->node);
        else
                heap_take(&w->heap, &o->node);
        return q;
}

void index_offers_end(struct index_offers *w)
{
        heap_deinit(&w->heap);
        free(w->entries);
}
