/* calls: runs the batch system's commands, or requests to its service, in slots of one call each. */
#pragma once
#include "run/batch/batch.h"

struct batch;
struct calls;
struct submit_user;

enum batch_slot {
        SLOT_SEND,
        SLOT_SEND_2,
        SLOT_STATUS,
        SLOT_WATCH,
        SLOT_PAST,
        SLOT_ACT,
        SLOT_CAPACITY,
        SLOT_WHEN,
        SLOT_RESERVE,
        SLOTS
};

struct calls *batch_calls_new(const struct batch *b);
void batch_calls_cancel(struct calls *c); /* cancels the calls in progress */
void batch_calls_free(struct calls *c);   /* no call may be in progress */
/* Environment of commands that run as the agent's user. */
const struct args *batch_calls_environment(const struct calls *c);
bool batch_busy(const struct batch *b, enum batch_slot slot);
/* Appends what the slot's command has written to standard error until now. */
void batch_complaints(const struct batch *b, enum batch_slot slot, struct buf *out);
/* How the system's service is reached; only for a system with one. Borrowed. */
const struct request_server *batch_calls_server(const struct batch *b);
bool batch_makes_requests(const struct batch *b); /* the system is asked by HTTP requests, not by commands */
/* Version of the service's API; NULL: the service has none, or it is not known yet. */
const char *batch_version(const struct batch *b);
/* Returns whether requests that depend on the service's version can be made: the version is known, or there
 * is none. */
bool batch_speaks(const struct batch *b);
/* Runs the call's command or makes its requests, and frees the call. The slot must not be busy. */
void batch_run(struct batch *b, enum batch_slot slot, struct batch_call *call, command_done_fn *done,
               void *arg);
/* Runs the call as batch_run does, but as the submit user's local user. */
void batch_run_as(struct batch *b, struct submit_user *p, enum batch_slot slot, struct batch_call *call,
                  command_done_fn *done, void *arg);
/* Runs the call and waits for it, then frees it. For use while the agent shuts down. */
void batch_run_now(struct batch *b, struct batch_call *call);
