/* stores: the stores of the server's configuration: their URLs, the measured speed of the links to them, and
 * whether they answer; and the reports to the server about these links and about cached files.
 */
#pragma once
#include "agent/model/attempt.h"
#include "place/probe_estimate.h"

void stores_open(struct agent *a);
/* The numbers are the wire's. */
enum cached_kind { CACHED_FILE, CACHED_IMAGE, CACHED_ENVIRONMENT };
/* Registers or removes something that other parts keep here, which is reported like contents of the cache.
 * name of an image: the job's name for it, or a path. Registering twice, or removing what is not registered,
 * changes nothing. */
void stores_hold(struct agent *a, struct str name, uint64_t size, enum cached_kind kind);
void stores_release(struct agent *a, struct str name);
void stores_close(struct agent *a);
struct store_told { /* by the server */
        const char *name, *probe;
        bool space;            /* its free space is to be asked for */
        char *const *prefixes; /* of its URLs */
        size_t prefix_count;
};
void stores_told(struct agent *a, const struct store_told *v, size_t count); /* replaces the stores */
void stores_greeted(struct agent *a); /* sends the full state to the server */
void stores_turn(struct agent *a);    /* sends changes, at the end of a turn */
void stores_tick(struct agent *a);    /* called every second */
/* Computes the cache key of a URL as the attempt asks for it (base/job/file_key.h). *ret_store: index of the
 * store, or FILE_STORE_NONE. Returns false if it is not a valid URL. */
bool stores_key(const struct attempt *at, struct str url, struct buf *ret_key, size_t *ret_store);
/* Computes the URL by the store's own way, as in the cache's key (base/job/file_key.h). Returns false if the
 * URL is used unchanged. */
bool stores_own_way(const struct agent *a, struct str url, size_t store, struct buf *ret);
/* Computes another URL of the same file: under the store's n-th prefix, not counting its present one.
 * Returns false if there are no more. */
bool stores_other_way(const struct agent *a, struct str url, size_t store, size_t n, struct buf *ret);
size_t stores_of(const struct agent *a, struct str url);
/* Records the measured speed of a transfer. store: may be FILE_STORE_NONE, or STORE_SPOOL for the server's
 * spool. */
#define STORE_SPOOL (SIZE_MAX - 1)
void stores_measured(struct agent *a, size_t store, enum probe_way way, uint64_t bytes, uint64_t took_us);
/* Records that a transfer to or from the store succeeded; store may be FILE_STORE_NONE. */
void stores_answered(struct agent *a, size_t store);
/* Called when a transfer failed without an answer from the store. Returns STORE_SILENT if the store is known
 * not to answer; STORE_ASKED if the store is probed now, and fetch_store_known will be called; STORE_ANSWERS
 * if the store is not the cause. */
enum store_word { STORE_ANSWERS, STORE_SILENT, STORE_ASKED };
enum store_word stores_doubt(struct agent *a, size_t store);
bool stores_is_silence(int error);
/* stores_is_down: returns whether the store is known not to answer. stores_down_why: returns the last error
 * seen, borrowed; NULL: the store answers, or there is none. */
bool stores_is_down(const struct agent *a, size_t store);
const char *stores_down_why(const struct agent *a, size_t store);
/* Returns the name of a store; NULL: no such store. */
const char *stores_name(const struct agent *a, size_t store);
