/* quote: what a request would take, before it is submitted: place by place when it would start and end, how
 * many bytes would move, what it would cost, and what excludes the other places.
 *
 * The same code decides as would for the request itself; nothing is kept of it. Of each part the first job
 * stands for all: jobs whose own inputs or requirements differ may get other places.
 */
#pragma once
#include "core/query.h"

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
/* One that is made in slices, between which the world may go on: each place is seen as it is when it is
 * asked, and what is queued before the request as it was when it was looked at. Takes the draft, which is for
 * a quote and of which there is no more to be made; its submission is not looked at any more. */
struct core_draft;
struct core_quoting;
struct core_quoting *core_quote_new(struct core_draft *d);
/* Some milliseconds of it; calls fn for each place and part that was asked. True: there is more. */
bool core_quote_some(struct core_quoting *q, void (*fn)(void *arg, const struct core_quote_place *p),
                     void *arg);
void core_quote_sum(const struct core_quoting *q, struct core_quote *ret); /* when there is no more */
void core_quote_free(struct core_quoting *q);                              /* NULL is fine; before the core */
/* All of it at once. */
int core_quote(struct core *c, const struct submission *s,
               void (*fn)(void *arg, const struct core_quote_place *p), void *arg, struct core_quote *ret,
               struct err *err);
