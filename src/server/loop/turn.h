/* turn: passes what the core decided in one turn of its loop to the disk, and then to agents and clients.
 *
 * A turn collects records (events, history rows, blobs) in a batch, and tasks for the I/O thread as
 * deferred replies. At the end of the turn the core matches, the batch goes to the store, and the replies
 * wait until the batch is durable. Several batches may be under way; they become durable in order and
 * their replies are sent in order.
 *
 * On a full disk the batch is kept and retried with growing pauses. Until it fits, no durable reply is
 * sent, no work is matched, and the API refuses submits (turn_full). Records of later turns join the next
 * batch. Normal operation resumes when all is written and the store's reserve is allocated again. Any
 * other failure of the store ends the server.
 *
 * Core thread only. */
#pragma once
#include "server/loop/server.h"

/* Calls into other parts at given points of a turn; the daemon sets them. Core thread. */
struct turn_hooks {
        /* this machine has slept, and leases begin anew; called within a turn */
        void (*slept)(struct server *s);
        void (*ending)(struct server *s); /* the core has matched; the batch is not closed yet */
        /* The next batch, of `bytes` bytes, became durable took_ns after the store received it; seq is its
         * last record. Called within a turn, which may be a later one than `awaited` asks for. */
        void (*durable)(struct server *s, uint64_t seq, size_t bytes, int64_t took_ns);
        /* Returns whether something on the core thread waits for records to be durable: `durable` is then
         * called as soon as they are, and otherwise in the next turn that has another cause. */
        bool (*awaited)(struct server *s);
};

enum turn_when {
        TURN_NOW, /* independent of records: sent at once */
        /* reports state: sent after the commits before it, and after this turn's if that has a record by
         * then; at once while the disk is full */
        TURN_READ,
        TURN_DURABLE, /* follows from an event: sent when that is durable */
};

struct turn *turn_new(struct server *s, const struct turn_hooks *hooks); /* hooks: borrowed */
void turn_free(struct turn *t);                                          /* accepts NULL */
/* Begins a turn before anything is done to the core, and tells the core the time. Further calls in the
 * same turn do nothing. */
void turn_begin(struct turn *t);
void turn_end(struct turn *t);
struct store_batch *turn_batch(struct turn *t); /* the batch of this turn */
/* Returns the same batch, for an informing record: such a record delays no reply, and is written with the
 * next batch or, after a short time, alone. */
struct store_batch *turn_inform(struct turn *t);
/* The number of the commit that this turn's records are in; later ones have higher numbers. */
uint64_t turn_commit(const struct turn *t);
uint64_t turn_durable(const struct turn *t); /* of the last commit that is durable; 0: none is yet */
/* Sends a task to the I/O thread and takes it. */
void turn_send(struct turn *t, struct task *task, enum turn_when when);
/* The same for the reply to a call of the API, which has priority over what agents are sent. */
void turn_reply(struct turn *t, struct task *task, enum turn_when when);
/* Commits a record, so that another server sees in the store that this one lives; does nothing while the
 * store is busy. Within a turn. */
void turn_beat(struct turn *t);
bool turn_full(const struct turn *t);
bool turn_idle(const struct turn *t); /* all records are durable and all replies sent */
