/* outputs: which files in the spool are outputs of jobs, and when each was delivered.
 *
 * Each is a blob "kept/HASH" of the store, whose value is the time of its last delivery. The file stays in
 * the spool as long as the blob exists. Core thread only; changes go into the turn's batch. */
#pragma once
#include "server/loop/server.h"

struct outputs;
/* Reads the blobs of the store. Within a turn, because a blob of a version that recorded no time gets one.
 * Returns 0, or an error with err; *ret must be freed in both cases. */
int outputs_open(struct server *s, struct outputs **ret, struct err *err);
void outputs_free(struct outputs *o); /* accepts NULL */
/* Records that the file was delivered now. */
void outputs_keep(struct server *s, struct outputs *o, const char *hash);
bool outputs_has(const struct outputs *o, struct str hash);
/* Iterates over all outputs, in no order, as map_next does. */
bool outputs_next(const struct outputs *o, size_t *at, struct str *ret_hash);
/* Releases the outputs that were delivered before the given time, oldest first, at most `most`. Returns
 * their number. */
size_t outputs_prune(struct server *s, struct outputs *o, int64_t before_ms, size_t most);
