/* tails: the last output of each job, and the results of its steps if there are several, kept until the
 * job's history is pruned.
 *
 * Each tail is a blob "tail/…" of the store, written in the batch of the result that it came with. Its
 * name has all that this module needs, so that the start of the server reads only names. A job has one
 * tail, from its last attempt that has ended and printed something. The setting keep: printed limits their
 * total size; beyond it the oldest tail of the owner with the most is deleted. Core thread, except
 * tails_read. */
#pragma once
#include "server/agents/command.h"
#include "server/loop/server.h"

#define TAIL_BYTES_MAX (64u << 10) /* of one stream */

struct tails;
/* Returns 0, or an error with err; *ret must be freed in both cases. */
int tails_open(struct server *s, struct tails **ret, struct err *err);
void tails_free(struct tails *t); /* accepts NULL */

struct tail {
        struct str owner, agent;
        uint64_t request;
        uint32_t member, fence;
        uint64_t size[2]; /* of the complete stdout and stderr */
        struct str bytes[2];
        const struct command_step *steps; /* results of the steps, if there are several */
        size_t step_count;
};
/* Within a turn. Replaces the tail of an earlier attempt. Does nothing if both streams are empty and there
 * are no steps. */
void tails_put(struct server *s, const struct tail *t);
/* Appends the name of the job's blob. Returns false if the job has none. */
bool tails_find(const struct server *s, uint64_t request, uint32_t member, struct buf *ret_name,
                uint32_t *ret_fence);
/* within a turn; the job may have none */
void tails_forget(struct server *s, uint64_t request, uint32_t member);

struct tail_read {
        uint32_t fence;
        uint64_t size[2];
        struct buf agent, bytes[2], steps; /* steps: see tails_next_step */
};
/* Takes the first step off the list. Returns false if there is none: the job had one step. */
bool tails_next_step(struct str *steps, struct command_step *ret);
void tail_read_deinit(struct tail_read *r);
/* Any thread: reads a durable tail. Returns 0, STORE_NOT_FOUND, or another error of the store. */
int tails_read(struct server *s, struct str name, struct tail_read *ret);
