/* calls: the system's commands, or requests to its service, in slots: one at a time in each. */
#pragma once
#include "run/batch/batch.h"

struct batch;
struct calls;
struct submit_user;

enum batch_slot { SLOT_SEND, SLOT_SEND_2, SLOT_STATUS, SLOT_PAST, SLOT_ACT, SLOT_CAPACITY, SLOT_WHEN, SLOTS };

struct calls *batch_calls_new(const struct batch *b);
void batch_calls_cancel(struct calls *c);                          /* what is under way */
void batch_calls_free(struct calls *c);                            /* nothing is under way */
const struct args *batch_calls_environment(const struct calls *c); /* of our own commands */
bool batch_busy(const struct batch *b, enum batch_slot slot);
/* Appends what the slot's command has written to standard error until now. */
void batch_complaints(const struct batch *b, enum batch_slot slot, struct buf *out);
bool batch_makes_requests(const struct batch *b); /* in place of commands */
const char *batch_version(const struct batch *b); /* of the service's API; NULL: none, or not known yet */
/* Whether questions that depend on the service's version can be asked: it is known, or there is none. */
bool batch_speaks(const struct batch *b);
/* Runs the command or makes the requests that `call` says, and frees it; the slot is not busy. */
void batch_run(struct batch *b, enum batch_slot slot, struct batch_call *call, command_done_fn *done,
               void *arg);
/* The same by the submit user's user. */
void batch_run_as(struct batch *b, struct submit_user *p, enum batch_slot slot, struct batch_call *call,
                  command_done_fn *done, void *arg);
/* At once, for we end: waits for it, and frees it. */
void batch_run_now(struct batch *b, struct batch_call *call);
