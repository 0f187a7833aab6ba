/* mailbox: messages to a loop from any thread. Many may post, one loop receives; messages of one poster
 * arrive in order. Receiving hands over all that wait in one turn. The message is a struct that begins with a
 * mail, whose ownership goes with it. */
#pragma once
#include "ev/loop.h"

struct mail {
        struct mail *next;
};
struct mailbox;
/* fn gets each message in turn, on the loop's thread. `idle` (may be NULL) is called after the last of a
 * batch. */
struct mailbox *mailbox_new(struct loop *l, void (*fn)(void *arg, struct mail *m), void (*idle)(void *arg),
                            void *arg);
void mailbox_post(struct mailbox *mb, struct mail *m); /* thread-safe; never blocks */
/* Frees the mailbox, after the last post. Messages still in it are passed to `drop` (may be NULL). */
void mailbox_free(struct mailbox *mb, void (*drop)(struct mail *m));
