/* turn: what the core decided in one turn of its loop, on the way to the disk and then to the world.
 *
 * A turn collects records (events, history rows, blobs) in a batch, and tasks for the I/O thread as deferred
 * replies. At the end of the turn the core matches, the batch goes to the store, and the replies wait until
 * the batch is durable. Several batches may be under way; they become durable in order and their replies
 * leave in order.
 *
 * On a full disk the batch is kept and retried with growing pauses: until it fits nothing durable leaves, no
 * work is matched, and the API refuses submits (turn_full). Records of later turns gather behind it. Once all
 * is written and the store's reserve could be taken again, everything is as before. Any other failure of the
 * store ends the server.
 *
 * Core thread only.
 */
#pragma once
#include "server/loop/server.h"

/* Calls into other parts at points of a turn; the daemon sets them. Core thread. */
struct turn_hooks {
        void (*slept)(struct server *s);  /* this machine has been asleep, and leases begin anew; in a turn */
        void (*ending)(struct server *s); /* after the core has matched, before the batch is closed */
        /* The next batch, of so many bytes, is durable, so long after the store was given it; seq is the last
         * record in it. */
        void (*durable)(struct server *s, uint64_t seq, size_t bytes, int64_t took_ns);
};

enum turn_when {
        TURN_NOW,     /* depends on nothing: leaves at once */
        TURN_READ,    /* shows state: leaves behind what was decided before, except while the disk is full */
        TURN_DURABLE, /* follows from an event: only after it is durable */
};

struct turn *turn_new(struct server *s, const struct turn_hooks *hooks); /* hooks: borrowed */
void turn_free(struct turn *t);                                          /* NULL is fine */
/* Begins a turn, before anything is done to the core: tells the core the time. A second call in the same turn
 * does nothing. */
void turn_begin(struct turn *t);
void turn_end(struct turn *t);
struct store_batch *turn_batch(struct turn *t); /* of this turn */
/* The same batch, for a record that only informs: the record holds nothing back, and is written with the next
 * batch, or a little later alone. */
struct store_batch *turn_inform(struct turn *t);
/* Sends a task, which is taken, to the I/O thread. */
void turn_send(struct turn *t, struct task *task, enum turn_when when);
/* Commits something, so that who looks at the store sees that this server lives; nothing while the store has
 * something to do. In a turn. */
void turn_beat(struct turn *t);
bool turn_full(const struct turn *t);
bool turn_idle(const struct turn *t); /* everything is durable and has left */
