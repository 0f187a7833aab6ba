#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct arena_block {
        struct arena_block *below;
        size_t size;
        alignas(16) char bytes[];
};

static void block_push(struct arena *a, size_t need)
{
        size_t size = a->head ? a->head->size * 2 : 1024;
        struct arena_block *block;

        if (size > (1u << 20))
                size = 1u << 20;
        if (size < need)
                size = need;
        block = mem_alloc(sizeof(*block) + size);
        block->below = a->head;
        block->size = size;
        a->head = block;
        a->next = block->bytes;
        a->end = block->bytes + size;
}

void *arena_alloc(struct arena *a, size_t n)
{
        char *p;

        n = (n + 15) & ~(size_t)15;
        if (a->max && (n > a->max || a->used > a->max - n))
                return NULL;
        if (!a->head || (size_t)(a->end - a->next) < n)
                block_push(a, n);
        p = a->next;
        a->next += n;
        a->used += n;
        return p;
}

char *arena_dup(struct arena *a, const void *p, size_t n)
{
        char *copy = arena_alloc(a, n + 1);

        if (!copy)
                return NULL;
        if (n)
                memcpy(copy, p, n);
        copy[n] = '\0';
        return copy;
}

struct str arena_str(struct arena *a, struct str s)
{
        char *copy = arena_dup(a, s.p, s.n);

        return copy ? str_make(copy, s.n) : STR_NONE;
}

void arena_reset(struct arena *a)
{
        struct arena_block *keep = a->head, *b;

        a->used = 0;
        if (!keep)
                return;
        b = keep->below;
        keep->below = NULL;
        while (b) {
                struct arena_block *below = b->below;

                free(b);
                b = below;
        }
        a->next = keep->bytes;
        a->end = keep->bytes + keep->size;
}

void arena_deinit(struct arena *a)
{
        arena_reset(a);
        free(a->head);
        *a = (struct arena){.max = a->max};
}
