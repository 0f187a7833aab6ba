/* usage: a record of what each attempt has used, kept for reports.
 *
 * Records of one turn are a blob of the turn's commit, usage/YYYYMM/REQUEST.JOB.FENCE, by the month in which
 * they were written (UTC) and the first of them. Adding and flushing is the core thread's, reading the reader
 * thread's.
 */
#pragma once
#include "core/core.h"
#include "server/loop/server.h"

struct usage_pages;
struct usage_pages *usage_new(void);
void usage_free(struct usage_pages *u); /* NULL is fine */
void usage_add(struct server *s, const struct core_usage *u);
void usage_flush(struct server *s); /* into the turn's batch */

/* Pages, read one after the other. */
struct usage_cursor {
        char **names;
        size_t count, cap, at;
};
/* Finds the pages that can have records of attempts that ended in [from_ms, to_ms): of these months, and the
 * one behind. After the page `after` (empty: all). 0, or a store's error with err. */
int usage_begin(struct server *s, int64_t from_ms, int64_t to_ms, struct str after, struct usage_cursor *ret,
                struct err *err);
/* Tells the records of the next page to fn. 1: there was none; 0; a store's error, -EBADMSG with err. */
typedef void usage_fn(void *arg, const struct core_usage *u);
int usage_next(struct server *s, struct usage_cursor *c, usage_fn *fn, void *arg, struct err *err);
void usage_end(struct usage_cursor *c);

#define USAGE_PRUNED_MAX 1000u /* pages deleted at a time */
/* Names of at most USAGE_PRUNED_MAX pages of months that ended before this time. For any thread. Appends
 * copies that the caller frees. 0, or a store's error with err. */
int usage_old_pages(struct server *s, int64_t before_ms, struct usage_cursor *ret, struct err *err);
