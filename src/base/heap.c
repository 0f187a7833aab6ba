#include "base/heap.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

void heap_deinit(struct heap *h)
{
        free(h->nodes);
        h->nodes = NULL;
        h->count = h->cap = 0;
}

static void set_node(struct heap *h, size_t i, struct heap_node *n)
{
        h->nodes[i] = n;
        n->place = i + 1;
}

static size_t up(struct heap *h, size_t i, struct heap_node *n)
{
        while (i > 0 && h->before(n, h->nodes[(i - 1) / 2])) {
                set_node(h, i, h->nodes[(i - 1) / 2]);
                i = (i - 1) / 2;
        }
        set_node(h, i, n);
        return i;
}

static void down(struct heap *h, size_t i, struct heap_node *n)
{
        for (size_t child; (child = 2 * i + 1) < h->count; i = child) {
                if (child + 1 < h->count && h->before(h->nodes[child + 1], h->nodes[child]))
                        child++;
                if (!h->before(h->nodes[child], n))
                        break;
                set_node(h, i, h->nodes[child]);
        }
        set_node(h, i, n);
}

void heap_put(struct heap *h, struct heap_node *n)
{
        assert(n->place == 0);
        MEM_GROW(h->nodes, h->cap, h->count + 1);
        h->count++;
        up(h, h->count - 1, n);
}

void heap_moved(struct heap *h, struct heap_node *n)
{
        assert(n->place > 0 && n->place <= h->count);
        down(h, up(h, n->place - 1, n), n);
}

void heap_take(struct heap *h, struct heap_node *n)
{
        size_t i = n->place;
        struct heap_node *last;

        if (i == 0)
                return;
        assert(i <= h->count && h->nodes[i - 1] == n);
        last = h->nodes[--h->count];
        n->place = 0;
        if (last != n) {
                set_node(h, i - 1, last);
                heap_moved(h, last);
        }
}
