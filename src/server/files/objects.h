/* objects: the spool's files, and whose they are.
 *
 * A file's hash is no key: who may name it in a submit, or deliver it as a job's output, is written down
 * here, in blobs of the store, and the core thread asks before anything is read or written:
 *
 *   owned/HASH/PRINCIPAL   uploaded by him: he may submit it for OWNED_MS, and it counts as his (holdings.h)
 *                          until it is a day old and no request of his needs it; value: when, the id of the
 *                          upload, the size
 *   stored/JOB.FENCE/HASH  delivered by the agent under that attempt; until its result is taken
 *   kept/HASH              an output of a job; value: when it was delivered last
 *
 * Bytes are read and written by the reader thread. Nothing refers to it and a day old: it is collected.
 */
#pragma once
#include "server/agents/agents.h"
#include "server/agents/command.h"
#include "server/calls/call.h"

struct objects;
struct holdings;
/* 0, or what the spool or the store returned. *ret is for objects_free also when it failed. */
int objects_open(struct server *s, struct objects **ret, struct err *err);
void objects_free(struct objects *o); /* NULL is fine */
struct spool *objects_spool(struct server *s);

#define OBJECTS_WHOLE_MAX (256u << 20)

struct holdings *objects_holdings(struct server *s);

/* Core. An upload has become an object of so many bytes. The batch has it; reply TURN_DURABLE. */
void objects_uploaded(struct server *s, struct str owner, struct str upload, const char *hash, uint64_t size);
/* Checks that the caller has uploaded the files of the submission; a request that is known already is not
 * checked again. 0 or -EACCES with err. */
int objects_check_submit(struct server *s, const struct call *c, const struct submission *sub,
                         struct err *err);
/* The hash of what the caller uploaded under this id, or NULL. */
const char *objects_find_upload(struct server *s, const char *who, const char *upload);
/* Reader: the whole of an object, at most OBJECTS_WHOLE_MAX bytes. 0 or an error with err. */
int objects_read_whole(struct server *s, const char *hash, struct buf *ret, struct err *err);

/* Core: an agent reads an input, writes an output. Replies come as messages. */
void objects_read(struct server *s, struct command *c, struct agent *a);
void objects_write(struct server *s, struct command *c, struct agent *a);
/* Core, before core_result: outputs that this attempt has not stored are taken out of the result. `room`
 * holds the changed list. */
void objects_take_outputs(struct server *s, struct core_result *r, struct buf *room);
/* Stops keeping the outputs that were delivered before then, the oldest first, at most `most`. Returns how
 * many. */
size_t objects_unkeep(struct server *s, int64_t before_ms, size_t most);
void objects_tick(struct server *s); /* collects, now and then */
