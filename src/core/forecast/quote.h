/* quote: predicts for a request, before it is submitted, place by place: its start and end, the bytes moved,
 * its price, and what excludes the other places.
 *
 * The decisions are made by the code that is used for submitted requests; nothing is stored. The first job
 * of each part stands for all: jobs with inputs or requirements of their own may get other places.
 */
#pragma once
#include "core/query.h"

#define CORE_CREDITS_NONE (-1)
struct core_quote { /* for one part at one place, or for the whole request at all suitable places */
        uint64_t jobs;
        int64_t start_ms, end_ms; /* of the first job and of the last one; 0: unknown */
        int64_t end_most_ms;      /* nine in ten would have ended by then; 0: unknown */
        uint64_t bytes_moved;     /* in and out, for all jobs; common inputs count once */
        double price;             /* for all jobs; NAN: unknown */
        int64_t credits;   /* that the bank would reserve for all jobs; CORE_CREDITS_NONE: no account pays, or
                              no rate has a value there */
        const char *payer; /* the bank's account that would pay, of the first part that one pays for; NULL:
                              none */
        int64_t payer_has; /* what the owner may spend of it there */
};
struct core_quote_place {
        uint32_t part;
        struct core_why why; /* with FITS and BUSY it has the cost of one job */
        struct core_quote quote;
};
/* A quote made in slices, between which the world may change: each place, and the queue before the request,
 * is used as it was when it was read. core_quote_new takes the draft, which must be complete and made for a
 * quote; its submission is not used any more. */
struct core_draft;
struct core_quoting;
struct core_quoting *core_quote_new(struct core_draft *d);
/* Works for some milliseconds; calls fn for each place and part that was evaluated. Returns true if there is
 * more. */
bool core_quote_some(struct core_quoting *q, void (*fn)(void *arg, const struct core_quote_place *p),
                     void *arg);
/* Valid once core_quote_some has returned false. */
void core_quote_sum(const struct core_quoting *q, struct core_quote *ret);
/* Why the bank's quote that the jobs name is not used, at the first place where that is so; NULL: none. */
const char *core_quote_unquoted(const struct core_quoting *q);
void core_quote_free(struct core_quoting *q); /* before the core is freed; NULL is fine */
/* ---- for the files of core/ only
 * Makes a quote in slices for one waiting job of a request, for a decision: times are guesses where they are
 * not known. It must be freed before the next slice if the job's bucket is removed or the job does not wait
 * any more. */
struct request;
struct core_quoting *core_quote_job_new(struct core *c, struct request *r, uint32_t member);

/* Makes a whole quote at once. */
int core_quote(struct core *c, const struct submission *s,
               void (*fn)(void *arg, const struct core_quote_place *p), void *arg, struct core_quote *ret,
               struct err *err);
