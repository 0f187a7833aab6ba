/* request_record: the submission of a request, as submission_unpack reads it, in the blob "request/ID" of
 * the store.
 *
 * The record outlives the request in the core, because a history row has only what was specific to the
 * job, and takes the rest from the record. prune.h says when it is deleted. */
#pragma once
#include "server/loop/server.h"

#define REQUEST_RECORD_PREFIX   "request/"
#define REQUEST_RECORD_NAME_MAX 40
/* Writes the blob's name to room. Returns a view of it. */
struct str request_record_name(char room[REQUEST_RECORD_NAME_MAX], uint64_t request);
/* Any thread. Returns 0, STORE_NOT_FOUND, or another error of the store with err. */
int request_record_get(struct server *s, uint64_t request, struct buf *ret, struct err *err);
