/* lru: a list of cache elements in order of use, from which the least recently used unpinned ones are
 * evicted.
 *
 * The list is intrusive: an element contains a struct lru_node, and its owner frees it. The list knows the
 * bytes of all elements. Pure; {0} is an empty list.
 */
#pragma once
#include <stdint.h>

struct lru_node {
        struct lru_node *older, *newer;
        uint64_t bytes; /* must not change while the element is in a list */
        uint32_t pins;  /* number of users; a pinned element is not evicted */
};
struct lru {
        struct lru_node *oldest, *newest;
        uint64_t bytes; /* bytes of all elements */
};

void lru_put(struct lru *l, struct lru_node *n);  /* adds as the most recently used */
void lru_take(struct lru *l, struct lru_node *n); /* removes from the list */
void lru_use(struct lru *l, struct lru_node *n);  /* marks as the most recently used */
/* Calls `go` for the least recently used unpinned elements until the list has at most `most` bytes or only
 * pinned elements are left. `go` removes the element from the list and frees it. */
void lru_trim(struct lru *l, uint64_t most, void (*go)(void *arg, struct lru_node *n), void *arg);
