/* tails: the last bytes of what jobs have printed, and what the steps of those with several came to, kept
 * until the jobs' history is pruned.
 *
 * Each is a blob "tail/…" of the store, written with the batch of the result that brought it; its name has
 * all that this module knows of it, so that a start reads names only. A job has one, of its last attempt that
 * has ended and printed something. All together take so many bytes as the settings say (keep: printed);
 * beyond that the oldest tail goes of the owner who has most. Core thread, but for tails_read.
 */
#pragma once
#include "server/agents/command.h"
#include "server/loop/server.h"

#define TAIL_BYTES_MAX (64u << 10) /* of a stream */

struct tails;
/* 0 or an error with err; *ret is to be freed in both cases. */
int tails_open(struct server *s, struct tails **ret, struct err *err);
void tails_free(struct tails *t); /* NULL is fine */

struct tail {
        struct str owner, agent;
        uint64_t request;
        uint32_t member, fence;
        uint64_t size[2]; /* of the whole stdout and stderr */
        struct str bytes[2];
        const struct command_step *steps; /* what each came to, if there are several */
        size_t step_count;
};
/* In a turn. Takes the place of an earlier attempt's; nothing, if both streams are empty and there are no
 * steps. */
void tails_put(struct server *s, const struct tail *t);
/* Appends the name of the blob. False: the job has none. */
bool tails_find(const struct server *s, uint64_t request, uint32_t member, struct buf *ret_name,
                uint32_t *ret_fence);
void tails_forget(struct server *s, uint64_t request, uint32_t member); /* in a turn; none is fine */

struct tail_read {
        uint32_t fence;
        uint64_t size[2];
        struct buf agent, bytes[2], steps; /* steps: see tails_next_step */
};
/* Takes the first of them; false: there is none, for the job had one step. */
bool tails_next_step(struct str *steps, struct command_step *ret);
void tail_read_deinit(struct tail_read *r);
/* Any thread, of what is durable. 0, STORE_NOT_FOUND, or another error of the store. */
int tails_read(struct server *s, struct str name, struct tail_read *ret);
