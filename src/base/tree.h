/* tree: things in an order, with a sum over each part of the tree, so that a search can leave parts out.
 *
 * Intrusive: the element holds a struct tree_node. `before` is a strict order in which no two elements are
 * equal; `sum` (may be NULL) makes what an element keeps about itself and all below it out of itself and its
 * two kids, for instance the smallest of some number. Who changes what `before` or `sum` look at says
 * tree_moved before he changes another element. Putting, taking and moving are O(log n) expected. The tree
 * owns nothing; {0} with a `before` is an empty one.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tree_node {
        struct tree_node *left, *right, *up;
        uint32_t weight; /* 0: in no tree */
};

struct tree {
        struct tree_node *root;
        bool (*before)(const struct tree_node *a, const struct tree_node *b);
        void (*sum)(struct tree_node *n);
        size_t count;
        uint32_t random;
};

void tree_put(struct tree *t, struct tree_node *n);   /* n is in no tree */
void tree_take(struct tree *t, struct tree_node *n);  /* no-op when n is in no tree */
void tree_moved(struct tree *t, struct tree_node *n); /* puts n where it belongs now, and sums anew */
struct tree_node *tree_first(const struct tree *t);   /* NULL when empty */
struct tree_node *tree_next(const struct tree_node *n);

struct tree_search {
        void *arg;
        /* By n's sum: may n or one below it be looked for? */
        bool (*may)(void *arg, const struct tree_node *n);
        bool (*is)(void *arg, const struct tree_node *n); /* is n itself? */
};
/* The first behind `after` (NULL: of all) that is looked for; NULL: there is none. */
struct tree_node *tree_find(const struct tree *t, const struct tree_node *after, const struct tree_search *s);
