/* tree: an ordered binary tree whose nodes summarise their subtrees, so that a search can skip subtrees.
 *
 * Intrusive: the element holds a struct tree_node. `before` is a strict order in which no two elements are
 * equal; `sum` (may be NULL) computes an element's summary of its subtree from itself and its
 * two kids, for instance the minimum of some number. A caller that changes data which `before` or `sum` reads
 * calls tree_moved before it changes another element. Putting, taking and moving are O(log n) expected. The
 * tree owns nothing; {0} with a `before` is an empty tree.
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
        /* Returns whether, by n's sum, the subtree of n may have a matching element. */
        bool (*may)(void *arg, const struct tree_node *n);
        bool (*is)(void *arg, const struct tree_node *n); /* whether n itself matches */
};
/* Returns the first matching element behind `after` (NULL: of the tree); NULL: there is none. */
struct tree_node *tree_find(const struct tree *t, const struct tree_node *after, const struct tree_search *s);
