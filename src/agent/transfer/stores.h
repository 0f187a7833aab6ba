/* stores: the stores that the server knows by name: which URLs are theirs, how fast they are from here, and
 * whether they answer; and what is kept here, for the server to know.
 */
#pragma once
#include "agent/model/attempt.h"
#include "place/probe_estimate.h"
#include "wire/drover.pb-c.h"

void stores_open(struct agent *a);
/* The numbers are the wire's. */
enum cached_kind { CACHED_FILE, CACHED_IMAGE, CACHED_ENVIRONMENT };
/* Something that others keep here, which counts like contents of the cache. An image has the name that a job
 * has for it, or is a path. Nothing changes when it is known already; or, of stores_release, is not. */
void stores_hold(struct agent *a, struct str name, uint64_t size, enum cached_kind kind);
void stores_release(struct agent *a, struct str name);
void stores_close(struct agent *a);
void stores_message(struct agent *a, const Drover__Stores *m);
void stores_greeted(struct agent *a); /* tells all that the server is to know */
void stores_turn(struct agent *a);    /* tells what has changed */
void stores_tick(struct agent *a);    /* every second */
/* What the cache knows a URL by, as the attempt asks for it (base/file_key.h); *ret_store is an index, or
 * FILE_STORE_NONE. False: it is none. */
bool stores_key(const struct attempt *at, struct str url, struct buf *ret_key, size_t *ret_store);
/* The URL by its own way, as the cache's key has it (base/file_key.h). False: it is asked for as it is. */
bool stores_own_way(const struct agent *a, struct str url, size_t store, struct buf *ret);
/* Another way to the same file: the URL under the store's n-th prefix, but the one it has. False: no more. */
bool stores_other_way(const struct agent *a, struct str url, size_t store, size_t n, struct buf *ret);
size_t stores_of(const struct agent *a, struct str url);
/* A transfer was measured; store may be FILE_STORE_NONE. SIZE_MAX - 1 is the server's spool. */
#define STORE_SPOOL (SIZE_MAX - 1)
void stores_measured(struct agent *a, size_t store, enum probe_way way, uint64_t bytes, uint64_t took_us);
/* A transfer to or from it has succeeded; store may be FILE_STORE_NONE. */
void stores_answered(struct agent *a, size_t store);
/* One has failed with this error (of a move_answer) as if nobody was there: STORE_SILENT, the store is known
 * not to answer; STORE_ASKED, it is asked, and fetch_store_known is called; STORE_ANSWERS: it is not that. */
enum store_word { STORE_ANSWERS, STORE_SILENT, STORE_ASKED };
enum store_word stores_doubt(struct agent *a, size_t store);
bool stores_is_silence(int error);
/* Is it known not to answer, and what was said then? NULL: it answers, or is none. Borrowed. */
bool stores_is_down(const struct agent *a, size_t store);
const char *stores_down_why(const struct agent *a, size_t store);
/* The name of a store; NULL: there is no such one. */
const char *stores_name(const struct agent *a, size_t store);
