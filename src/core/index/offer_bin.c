/* Bins: the parked offers of an offer signature by cost class. They change with every job that is matched
 * and are seldom read, so a changed queue is only marked, and moved to its bin before the next read. */
#include "base/mem.h"
#include "core/index/signature.h"
#include "core/model/core_parts.h"
#include "core/model/cost_class.h"

static struct queue *offer_bin_queue_of(const struct tree_node *n)
{
        return container_of(n, struct queue, index.spot.node);
}

static struct index_spot *spot_of(const struct tree_node *n)
{
        return container_of(n, struct index_spot, node);
}

static bool spot_before(const struct tree_node *x, const struct tree_node *y)
{
        const struct index_spot *a = spot_of(x), *b = spot_of(y);

        if (a->room.v[0] != b->room.v[0])
                return a->room.v[0] > b->room.v[0];
        return offer_bin_queue_of(x)->index.serial < offer_bin_queue_of(y)->index.serial;
}

static void sum_spots(struct tree_node *n)
{
        struct index_spot *s = spot_of(n);

        s->most = s->room;
        for (int i = 0; i < ROOM_KINDS; i++) {
                if (n->left && spot_of(n->left)->most.v[i] > s->most.v[i])
                        s->most.v[i] = spot_of(n->left)->most.v[i];
                if (n->right && spot_of(n->right)->most.v[i] > s->most.v[i])
                        s->most.v[i] = spot_of(n->right)->most.v[i];
        }
}

void offer_bin_later(struct index *x, struct queue *q)
{
        struct index_spot *s = &q->index.spot;

        if (s->stale)
                return;
        MEM_GROW(x->stale, x->stale_cap, x->stale_count + 1);
        x->stale[x->stale_count++] = q;
        s->stale = x->stale_count;
}

static void bin_free(struct offer_bin *b)
{
        cost_class_unref(b->cost_class);
        free(b);
}

void offer_bin_leave(struct queue *q)
{
        struct index_spot *s = &q->index.spot;
        struct offer_signature *k = q->index.signature;
        struct offer_bin *b = s->bin;

        if (!b)
                return;
        tree_take(&b->queues, &s->node);
        s->bin = NULL;
        for (size_t i = 0; b->queues.count == 0 && i < k->bin_count; i++)
                if (k->bins[i] == b) {
                        k->bins[i] = k->bins[--k->bin_count];
                        bin_free(b);
                        return;
                }
}

void offer_signature_empty(struct offer_signature *k)
{
        for (size_t i = 0; i < k->bin_count; i++)
                bin_free(k->bins[i]);
        free(k->bins);
        k->bins = NULL;
        k->bin_count = k->bin_cap = 0;
}

static struct offer_bin *bin_get(struct offer_signature *k, struct cost_class *p)
{
        struct offer_bin *b;

        for (size_t i = 0; i < k->bin_count; i++)
                if (k->bins[i]->cost_class == p)
                        return k->bins[i];
        b = mem_new(struct offer_bin);
        b->cost_class = cost_class_ref(p);
        b->queues = (struct tree){.before = spot_before, .sum = sum_spots};
        MEM_GROW(k->bins, k->bin_cap, k->bin_count + 1);
        k->bins[k->bin_count++] = b;
        return b;
}

static void settle_queue(struct queue *q)
{
        struct index_spot *s = &q->index.spot;

        if (!q->index.node.weight || !q->cost_class) { /* not parked */
                offer_bin_leave(q);
                return;
        }
        if (s->bin && s->bin->cost_class != q->cost_class)
                offer_bin_leave(q);
        s->room = index_queue_room(q);
        if (s->bin) {
                tree_moved(&s->bin->queues, &s->node);
                return;
        }
        s->bin = bin_get(q->index.signature, q->cost_class);
        tree_put(&s->bin->queues, &s->node);
}

void index_queue_moved(struct core *c, struct queue *q)
{
        offer_bin_later(c->index, q);
}

void offer_bins_settle(struct core *c)
{
        struct index *x = c->index;

        while (x->stale_count) {
                struct queue *q = x->stale[--x->stale_count];

                q->index.spot.stale = 0;
                settle_queue(q);
        }
}

void offer_bins_each(const struct job_class *k, void (*fn)(void *arg, struct offer_bin *b), void *arg)
{
        struct index_signature *of_job = &k->index.signature->signature, *met;

        for (size_t i = 0; (met = index_meet(of_job, i)) != NULL; i++) {
                struct offer_signature *signature = offer_signature_of(met);

                if (signature->bin_count == 0 ||
                    !queue_allows_owner(offer_bin_queue_of(tree_first(&signature->bins[0]->queues)),
                                        k->owner))
                        continue;
                for (size_t b = 0; b < signature->bin_count; b++)
                        fn(arg, signature->bins[b]);
        }
}

static bool spot_may(void *arg, const struct tree_node *n)
{
        return room_within(arg, &spot_of(n)->most);
}

static bool spot_is(void *arg, const struct tree_node *n)
{
        return room_within(arg, &spot_of(n)->room);
}

struct queue *offer_bin_next(struct offer_bin *b, const struct job_class *k, const struct queue *after)
{
        struct room need = k->index.need;
        struct tree_search s = {&need, spot_may, spot_is};
        struct tree_node *n = tree_find(&b->queues, after ? &after->index.spot.node : NULL, &s);

        return n ? offer_bin_queue_of(n) : NULL;
}

int64_t offer_bin_cpus(const struct offer_bin *b)
{
        return spot_of(b->queues.root)->most.v[0];
}
