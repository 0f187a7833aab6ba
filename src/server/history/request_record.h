/* request_record: the record of a request: what was submitted, as submission_unpack reads it, in the blob
 * "request/ID" of the store.
 *
 * The record is kept when the core forgets the request: history rows hold only what was a job's own, and take
 * the rest from it. prune.h says when it goes.
 */
#pragma once
#include "server/loop/server.h"

#define REQUEST_RECORD_PREFIX   "request/"
#define REQUEST_RECORD_NAME_MAX 40
/* Returns a view of room. */
struct str request_record_name(char room[REQUEST_RECORD_NAME_MAX], uint64_t request);
/* Any thread. 0, STORE_NOT_FOUND, or another error of the store with err. */
int request_record_get(struct server *s, uint64_t request, struct buf *ret, struct err *err);
