/* heap: a binary heap, smallest element first, for timers and queues.
 *
 * Intrusive: the element holds a struct heap_node, which knows its place, so that an element can be taken out
 * or moved in O(log n). The heap owns nothing. {0} with a `before` is an empty heap.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct heap_node {
        size_t place; /* 1-based; 0: in no heap */
};

struct heap {
        struct heap_node **nodes;
        size_t count, cap;
        bool (*before)(const struct heap_node *a, const struct heap_node *b);
};

void heap_deinit(struct heap *h);                     /* elements are left as they are */
void heap_put(struct heap *h, struct heap_node *n);   /* n is in no heap */
void heap_take(struct heap *h, struct heap_node *n);  /* no-op when n is in no heap */
void heap_moved(struct heap *h, struct heap_node *n); /* n's key changed; puts it where it belongs */
static inline struct heap_node *heap_first(const struct heap *h) /* NULL when empty */
{
        return h->count ? h->nodes[0] : NULL;
}

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
