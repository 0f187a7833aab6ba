/* objects: the spool's files, and who may use them.
 *
 * Knowing a file's hash gives no access to it. Blobs of the store record who may name a file in a submit,
 * or deliver it as a job's output, and the core thread checks them before anything is read or written:
 *
 *   owned/HASH/PRINCIPAL   uploaded by this user, who may submit it for OWNED_MS. It counts as the user's
 *                          (holdings.h) until it is a day old and no request of the user needs it. Value:
 *                          the time, the id of the upload, the size
 *   stored/JOB.FENCE/HASH  delivered by the agent for that attempt; until the attempt's result is accepted
 *   kept/HASH              an output of a job; value: when it was last delivered
 *
 * The reader thread reads and writes the contents. A file that nothing refers to is removed after a day. */
#pragma once
#include "server/agents/agents.h"
#include "server/agents/command.h"
#include "server/calls/call.h"

struct objects;
struct holdings;
/* Returns 0, or the error of the spool or the store. *ret must be passed to objects_free also after an
 * error. */
int objects_open(struct server *s, struct objects **ret, struct err *err);
void objects_free(struct objects *o); /* accepts NULL */
struct spool *objects_spool(struct server *s);

#define OBJECTS_WHOLE_MAX (256u << 20)

struct holdings *objects_holdings(struct server *s);

/* Core thread. An upload has become an object of this many bytes. The record is in the turn's batch; the
 * reply must be TURN_DURABLE. */
void objects_uploaded(struct server *s, struct str owner, struct str upload, const char *hash, uint64_t size);
/* Checks that the caller has uploaded the files of the submission; a request that exists already is not
 * checked again. Returns 0, or -EACCES with err. */
int objects_check_submit(struct server *s, const struct call *c, const struct submission *sub,
                         struct err *err);
/* Returns the hash of what the caller uploaded under this id, or NULL. */
const char *objects_find_upload(struct server *s, const char *who, const char *upload);
/* Reader thread: reads a whole object of at most OBJECTS_WHOLE_MAX bytes. Returns 0, or an error with err. */
int objects_read_whole(struct server *s, const char *hash, struct buf *ret, struct err *err);

/* Core thread: an agent reads an input or writes an output. The replies are sent as messages. */
void objects_read(struct server *s, struct command *c, struct agent *a);
void objects_write(struct server *s, struct command *c, struct agent *a);
/* Core thread, before core_result: removes outputs from the result that this attempt has not stored.
 * `room` holds the changed list. */
void objects_take_outputs(struct server *s, struct core_result *r, struct buf *room);
/* Releases the outputs that were delivered before the given time, oldest first, at most `most`. Returns
 * their number. */
size_t objects_unkeep(struct server *s, int64_t before_ms, size_t most);
void objects_tick(struct server *s); /* removes unneeded files from time to time */
