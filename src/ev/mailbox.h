/* mailbox: messages to a loop from any thread. Many may post, one loop receives; messages of one poster
 * arrive in order. Receiving hands over all that wait, in batches of some 4 ms at most. What is posted
 * meanwhile follows in the loop's next round, so that a receiver which posts to itself keeps no timer, signal
 * or descriptor waiting. The message is a struct that begins with a mail, whose ownership goes with it.
 *
 * Messages with priority are handed over before all others that wait. Where there are any, a batch takes the
 * others for 2 ms, or for as long as those with priority took, up to 20 ms; the rest follows in more batches.
 * So neither kind can keep the other waiting. */
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
