/* usage: stores a record of what each attempt used, for reports.
 *
 * The records of one turn are a blob of the turn's commit, usage/YYYYMM/REQUEST.JOB.FENCE, with the month
 * in which they were written (UTC) and the id of the first attempt. The core thread adds and flushes, the
 * reader thread reads. */
#pragma once
#include "core/core.h"
#include "server/loop/server.h"

struct usage_pages;
struct usage_pages *usage_new(void);
void usage_free(struct usage_pages *u); /* accepts NULL */
void usage_add(struct server *s, const struct core_usage *u);
void usage_flush(struct server *s); /* moves the records to the turn's batch */

#define USAGE_NAMES_MAX 1000u
/* Pages that are read one after the other. At most USAGE_NAMES_MAX names are in memory. */
struct usage_cursor {
        char **names;
        size_t count, cap, at;
        unsigned from, to; /* months, as of ledger_month */
        bool more;         /* there may be pages behind the last name */
};
/* Finds the pages that may have records of attempts that ended in [from_ms, to_ms): those of these months
 * and of the next one, after the page `after` (empty: all). Returns 0, or an error of the store with err. */
int usage_begin(struct server *s, int64_t from_ms, int64_t to_ms, struct str after, struct usage_cursor *ret,
                struct err *err);
/* Calls fn for each record of the next page. Returns 1 when there are no more pages; 0; an error of the
 * store, or -EBADMSG with err. */
typedef void usage_fn(void *arg, const struct core_usage *u);
int usage_next(struct server *s, struct usage_cursor *c, usage_fn *fn, void *arg, struct err *err);
void usage_end(struct usage_cursor *c);

/* Appends copies, which the caller frees, of at most USAGE_NAMES_MAX names of pages whose months ended
 * before this time. Any thread. Returns 0, or an error of the store with err. */
int usage_old_pages(struct server *s, int64_t before_ms, struct usage_cursor *ret, struct err *err);
