/* lru: what goes from a place's cache when room is needed: the least recently used of what nobody uses.
 *
 * A list of elements by their last use, with the bytes of all. Intrusive: the element holds a struct
 * lru_node, and whoever owns it frees it. Pure; {0} is an empty list.
 */
#pragma once
#include <stdint.h>

struct lru_node {
        struct lru_node *older, *newer;
        uint64_t bytes; /* does not change while it is in a list */
        uint32_t pins;  /* who uses it now: while there is one it does not go */
};
struct lru {
        struct lru_node *oldest, *newest;
        uint64_t bytes; /* of all */
};

void lru_put(struct lru *l, struct lru_node *n);  /* as the newest */
void lru_take(struct lru *l, struct lru_node *n); /* out of the list */
void lru_use(struct lru *l, struct lru_node *n);  /* it is the newest from now on */
/* Has elements taken out, the least recently used first, until the list has no more than `most` bytes or all
 * that is left is pinned. `go` takes the element out and frees it. */
void lru_trim(struct lru *l, uint64_t most, void (*go)(void *arg, struct lru_node *n), void *arg);
