/* mailbox: messages to a loop from any thread. Many threads may post, one loop receives; messages of one
 * sender arrive in order. All waiting messages are delivered in batches of at most some 4 ms. Messages posted
 * meanwhile are delivered in the loop's next round, so that a receiver that posts to itself does not delay
 * timers, signals and descriptors. A message is a struct that begins with a struct mail; posting transfers
 * its ownership.
 *
 * Messages with priority are delivered before all others. If there are any, a batch delivers other messages
 * for 2 ms, or for as long as those with priority took, up to 20 ms; the rest follows in further batches.
 * Neither kind can therefore starve the other.
 */
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
/* The same with priority. Order is kept among messages with priority only. */
void mailbox_post_priority(struct mailbox *mb, struct mail *m);
/* Frees the mailbox, after the last post. Messages still in it are passed to `drop` (may be NULL). */
void mailbox_free(struct mailbox *mb, void (*drop)(struct mail *m));
