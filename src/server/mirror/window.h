/* window: the newest groups of a store, for a server that has all but some of them. Bounded: the oldest go.
 */
#pragma once
#include "base/buf.h"
#include "server/mirror/relation.h"

#define WINDOW_BYTES_MAX (128u << 20)

struct window_group {
        struct relation_at before, at; /* positions of the store without and with the group */
        struct buf ops;                /* as store_batch_read takes it */
        struct window_group *next, *previous;
};
struct window {
        struct window_group *first, *last;
        size_t bytes;
};

void window_deinit(struct window *w);
/* Adds a group, whose bytes it takes. The newest one stays however large it is. */
void window_add(struct window *w, struct relation_at before, struct relation_at at, struct buf *ops);
void window_drop_last(struct window *w); /* there is one */
/* Returns the group that follows this position, borrowed until the window changes; NULL: none; also
 * behind no position, where a store may have had anything. */
const struct window_group *window_after(const struct window *w, struct relation_at at);
