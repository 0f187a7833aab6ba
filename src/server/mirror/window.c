#include "server/mirror/window.h"

#include "base/mem.h"

static void drop(struct window *w, struct window_group *g)
{
        *(g->previous ? &g->previous->next : &w->first) = g->next;
        *(g->next ? &g->next->previous : &w->last) = g->previous;
        w->bytes -= g->ops.n;
        buf_deinit(&g->ops);
        free(g);
}

void window_deinit(struct window *w)
{
        while (w->first)
                drop(w, w->first);
}

void window_add(struct window *w, struct relation_at before, struct relation_at at, struct buf *ops)
{
        struct window_group *g = mem_new(struct window_group);

        *g = (struct window_group){.before = before, .at = at, .ops = *ops, .previous = w->last};
        *ops = (struct buf){0};
        *(w->last ? &w->last->next : &w->first) = g;
        w->last = g;
        w->bytes += g->ops.n;
        while (w->bytes > WINDOW_BYTES_MAX && w->first != w->last)
                drop(w, w->first);
}

void window_drop_last(struct window *w)
{
        drop(w, w->last);
}

const struct window_group *window_after(const struct window *w, struct relation_at at)
{
        for (const struct window_group *g = at.serial ? w->last : NULL; g; g = g->previous)
                if (relation_at_is(g->before, at))
                        return g;
        return NULL;
}
