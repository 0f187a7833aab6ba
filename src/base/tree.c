/* A treap: a search tree by `before` that is a heap by weights drawn at random, which keeps it balanced in
 * expectation whatever the order of calls. The random numbers are the tree's own, so that runs repeat. */
#include "base/tree.h"

#include <assert.h>

static uint32_t draw(struct tree *t)
{
        uint32_t x = t->random ? t->random : 0x9e3779b9u;

        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        t->random = x;
        return x;
}

static void sum_up(struct tree *t, struct tree_node *n)
{
        for (; t->sum && n; n = n->up)
                t->sum(n);
}

/* Returns the address of the pointer to n, in its parent or the tree. */
static struct tree_node **place(struct tree *t, struct tree_node *n)
{
        if (!n->up)
                return &t->root;
        return n->up->left == n ? &n->up->left : &n->up->right;
}

/* n goes up, its parent down. */
static void rotate(struct tree *t, struct tree_node *n)
{
        struct tree_node *p = n->up, **at = place(t, p), *inner;

        if (p->left == n) {
                inner = n->right;
                p->left = inner;
                n->right = p;
        } else {
                inner = n->left;
                p->right = inner;
                n->left = p;
        }
        if (inner)
                inner->up = p;
        n->up = p->up;
        p->up = n;
        *at = n;
        if (t->sum)
                t->sum(p);
}

void tree_put(struct tree *t, struct tree_node *n)
{
        struct tree_node **at = &t->root, *up = NULL;

        assert(n->weight == 0);
        while (*at) {
                up = *at;
                at = t->before(n, up) ? &up->left : &up->right;
        }
        *n = (struct tree_node){.up = up, .weight = draw(t)};
        *at = n;
        t->count++;
        if (t->sum)
                t->sum(n);
        while (n->up && n->up->weight < n->weight)
                rotate(t, n);
        sum_up(t, n);
}

void tree_take(struct tree *t, struct tree_node *n)
{
        struct tree_node *up;

        if (n->weight == 0)
                return;
        while (n->left && n->right)
                rotate(t, n->left->weight > n->right->weight ? n->left : n->right);
        up = n->up;
        *place(t, n) = n->left ? n->left : n->right;
        if (n->left)
                n->left->up = up;
        if (n->right)
                n->right->up = up;
        *n = (struct tree_node){0};
        t->count--;
        sum_up(t, up);
}

static struct tree_node *leftmost(struct tree_node *n)
{
        while (n && n->left)
                n = n->left;
        return n;
}

struct tree_node *tree_first(const struct tree *t)
{
        return leftmost(t->root);
}

struct tree_node *tree_next(const struct tree_node *n)
{
        if (n->right)
                return leftmost(n->right);
        while (n->up && n->up->right == n)
                n = n->up;
        return n->up;
}

static const struct tree_node *previous(const struct tree_node *n)
{
        if (n->left) {
                for (n = n->left; n->right; n = n->right)
                        ;
                return n;
        }
        while (n->up && n->up->left == n)
                n = n->up;
        return n->up;
}

void tree_moved(struct tree *t, struct tree_node *n)
{
        const struct tree_node *p = previous(n), *q = tree_next(n);

        assert(n->weight);
        if ((!p || t->before(p, n)) && (!q || t->before(n, q))) {
                sum_up(t, n);
                return;
        }
        tree_take(t, n);
        tree_put(t, n);
}

static struct tree_node *find_below(struct tree_node *n, const struct tree_search *s)
{
        for (; n && s->may(s->arg, n); n = n->right) {
                struct tree_node *found = find_below(n->left, s);

                if (found)
                        return found;
                if (s->is(s->arg, n))
                        return n;
        }
        return NULL;
}

struct tree_node *tree_find(const struct tree *t, const struct tree_node *after, const struct tree_search *s)
{
        struct tree_node *found;

        if (!after)
                return find_below(t->root, s);
        found = find_below(after->right, s);
        while (!found && after->up) {
                struct tree_node *up = after->up;

                if (up->left == after) {
                        if (s->is(s->arg, up))
                                return up;
                        found = find_below(up->right, s);
                }
                after = up;
        }
        return found;
}
