/* queue_batch: the table of condor_q without -nobatch, and its totals. */
#pragma once
#include "base/buf.h"
#include "cli/terminal/view.h"

struct totals {
        int64_t by_status[8]; /* counts by JobStatus */
};
void totals_add(struct totals *t, int64_t status, int64_t n);
void totals_print(const struct totals *t, const char *of, struct buf *out); /* "Total for query: 3 jobs; …" */

struct queue_batch {
        uint64_t request;
        char *owner, *name;
        int64_t submitted_ms, done, running, idle, held, total;
        uint32_t first, last;
};
struct queue_batches {
        struct queue_batch *items;
        size_t count, cap;
        const char **ids; /* only these requests; an empty list: all */
        size_t id_count;
};
void queue_batches_deinit(struct queue_batches *b);
/* Adds a request of the server's listing; a request without remaining jobs is skipped. */
void queue_batches_request(struct queue_batches *b, struct view request, struct totals *totals);
/* Adds a job; the jobs of one request must be consecutive. */
void queue_batches_job(struct queue_batches *b, struct view job, int64_t status);
void queue_batches_print(const struct queue_batches *b, struct buf *out);
