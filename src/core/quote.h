/* quote: what a request would take, before it is submitted: place by place when it would start and end, how
 * many bytes would move, what it would cost, and what excludes the other places.
 *
 * The same code decides as would for the request itself; nothing is kept of it. Of each part the first job
 * stands for all: jobs whose own inputs or requirements differ may get other places.
 */
#pragma once
#include "core/core.h"

struct core_quote { /* of one part at one place, or of the whole request at all places that would take it */
        uint64_t jobs;
        int64_t start_ms, end_ms; /* of the first job and of the last one; 0: nobody knows */
        uint64_t bytes_moved;     /* in and out, of all jobs; what all of them read, once */
        double price;             /* of all jobs */
};
struct core_quote_place {
        uint32_t part;
        struct core_why why; /* with FITS and BUSY the cost of one job */
        struct core_quote quote;
};
/* Calls fn for each place and part. 0; CORE_INVALID with err: it would not be accepted. */
int core_quote(struct core *c, const struct submission *s,
               void (*fn)(void *arg, const struct core_quote_place *p), void *arg, struct core_quote *ret,
               struct err *err);
