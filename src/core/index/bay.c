/* Bays: the parked offers of a kind by profile. They change with every job that is given, and few look at
 * them, so a queue that has changed is only noted, and put where it belongs before somebody looks. */
#include "base/mem.h"
#include "core/index/index_private.h"
#include "core/model/core_parts.h"
#include "core/model/profile.h"

static struct queue *queue_of(const struct tree_node *n)
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
        return queue_of(x)->index.serial < queue_of(y)->index.serial;
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

void index_bay_later(struct index *x, struct queue *q)
{
        struct index_spot *s = &q->index.spot;

        if (s->stale)
                return;
        MEM_GROW(x->stale, x->stale_cap, x->stale_count + 1);
        x->stale[x->stale_count++] = q;
        s->stale = x->stale_count;
}

static void bay_free(struct index_bay *b)
{
        profile_unref(b->profile);
        free(b);
}

void index_bay_leave(struct queue *q)
{
        struct index_spot *s = &q->index.spot;
        struct index_kind *k = q->index.kind;
        struct index_bay *b = s->bay;

        if (!b)
                return;
        tree_take(&b->queues, &s->node);
        s->bay = NULL;
        for (size_t i = 0; b->queues.count == 0 && i < k->bay_count; i++)
                if (k->bays[i] == b) {
                        k->bays[i] = k->bays[--k->bay_count];
                        bay_free(b);
                        return;
                }
}

void index_kind_empty(struct index_kind *k)
{
        for (size_t i = 0; i < k->bay_count; i++)
                bay_free(k->bays[i]);
        free(k->bays);
        k->bays = NULL;
        k->bay_count = k->bay_cap = 0;
}

static struct index_bay *bay_get(struct index_kind *k, struct profile *p)
{
        struct index_bay *b;

        for (size_t i = 0; i < k->bay_count; i++)
                if (k->bays[i]->profile == p)
                        return k->bays[i];
        b = mem_new(struct index_bay);
        b->profile = profile_ref(p);
        b->queues = (struct tree){.before = spot_before, .sum = sum_spots};
        MEM_GROW(k->bays, k->bay_cap, k->bay_count + 1);
        k->bays[k->bay_count++] = b;
        return b;
}

static void settle(struct queue *q)
{
        struct index_spot *s = &q->index.spot;

        if (!q->index.node.weight || !q->profile) { /* it is not parked */
                index_bay_leave(q);
                return;
        }
        if (s->bay && s->bay->profile != q->profile)
                index_bay_leave(q);
        s->room = index_queue_room(q);
        if (s->bay) {
                tree_moved(&s->bay->queues, &s->node);
                return;
        }
        s->bay = bay_get(q->index.kind, q->profile);
        tree_put(&s->bay->queues, &s->node);
}

void index_queue_moved(struct core *c, struct queue *q)
{
        index_bay_later(c->index, q);
}

void index_bays_settle(struct core *c)
{
        struct index *x = c->index;

        while (x->stale_count) {
                struct queue *q = x->stale[--x->stale_count];

                q->index.spot.stale = 0;
                settle(q);
        }
}

void index_bays_each(const struct class *k, void (*fn)(void *arg, struct index_bay *b), void *arg)
{
        struct index_party *group = &k->index.group->party, *met;

        for (size_t i = 0; (met = index_meet(group, i)) != NULL; i++) {
                struct index_kind *kind = index_kind_of(met);

                if (kind->bay_count == 0 ||
                    !queue_allows_owner(queue_of(tree_first(&kind->bays[0]->queues)), k->owner))
                        continue;
                for (size_t b = 0; b < kind->bay_count; b++)
                        fn(arg, kind->bays[b]);
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

struct queue *index_bay_next(struct index_bay *b, const struct class *k, const struct queue *after)
{
        struct room need = k->index.need;
        struct tree_search s = {&need, spot_may, spot_is};
        struct tree_node *n = tree_find(&b->queues, after ? &after->index.spot.node : NULL, &s);

        return n ? queue_of(n) : NULL;
}

int64_t index_bay_cpus(const struct index_bay *b)
{
        return spot_of(b->queues.root)->most.v[0];
}
