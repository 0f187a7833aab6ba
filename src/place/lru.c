#include "place/lru.h"

#include <stddef.h>

void lru_put(struct lru *l, struct lru_node *n)
{
        n->newer = NULL;
        n->older = l->newest;
        *(l->newest ? &l->newest->newer : &l->oldest) = n;
        l->newest = n;
        l->bytes += n->bytes;
}

void lru_take(struct lru *l, struct lru_node *n)
{
        *(n->older ? &n->older->newer : &l->oldest) = n->newer;
        *(n->newer ? &n->newer->older : &l->newest) = n->older;
        n->older = n->newer = NULL;
        l->bytes -= n->bytes;
}

void lru_use(struct lru *l, struct lru_node *n)
{
        lru_take(l, n);
        lru_put(l, n);
}

void lru_trim(struct lru *l, uint64_t most, void (*go)(void *arg, struct lru_node *n), void *arg)
{
        for (struct lru_node *n = l->oldest, *next; n && l->bytes > most; n = next) {
                next = n->newer;
                if (n->pins == 0)
                        go(arg, n);
        }
}
