/* outputs: which files in the spool are outputs of jobs, and since when.
 *
 * Each is a blob "kept/HASH" of the store; its value says when it was delivered last. As long as it is there
 * the file stays in the spool. Core thread only; what changes goes into the turn's batch.
 */
#pragma once
#include "server/loop/server.h"

struct outputs;
/* Reads what the store has. In a turn: those that were written before times were kept get one. 0 or an error
 * with err; *ret is to be freed in both cases. */
int outputs_open(struct server *s, struct outputs **ret, struct err *err);
void outputs_free(struct outputs *o); /* NULL is fine */
/* The file was delivered now. */
void outputs_keep(struct server *s, struct outputs *o, const char *hash);
bool outputs_has(const struct outputs *o, struct str hash);
/* Walks over all of them in no order, as map_next does. */
bool outputs_next(const struct outputs *o, size_t *at, struct str *ret_hash);
/* Stops keeping those that were delivered before then, the oldest first, at most `most`. Returns how many. */
size_t outputs_prune(struct server *s, struct outputs *o, int64_t before_ms, size_t most);
