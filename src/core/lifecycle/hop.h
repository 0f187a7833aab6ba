/* hop: a request whose submitter must stay in touch, as another server does that hands jobs on.
 *
 * With a lease the request lives as long as it is renewed: when its time is over (EVENT_LEASE_ENDED) whatever
 * has not ended is removed. Renewals are no events: after a restart every lease gets a full new term. With
 * results held, finished jobs and their outputs are kept until the submitter has said that it has them
 * (EVENT_RESULTS_TAKEN), or its lease has ended.
 *
 * The calls named core_… are for the world; the others are for the files of core/ only.
 */
#pragma once
#include "base/pack.h"
#include "base/set.h"
#include "core/model/submission.h"

struct core;
struct request;

struct hop { /* of a request */
        uint64_t lease_ms;
        int64_t renewed_steady_ms;
        bool hold_results;
        bool lease_over;                  /* by event */
        struct set taken;                 /* by event: members whose results the submitter has */
        struct submission_origin *origin; /* NULL: a user's own */
        char *text;                       /* what the origin's strings look at */
};
struct hops {                    /* of the core */
        struct request **leased; /* those that have a lease, in no order */
        size_t count, cap;
};

void hop_load(struct request *r, const struct submission *s); /* from the record */
void hop_show(struct core *c, struct request *r);             /* its lease begins */
void hop_free(struct core *c, struct request *r);
bool hop_keeps_results(const struct request *r); /* some are still wanted */
void hops_deinit(struct core *c);
int64_t hops_tick(struct core *c); /* ends leases; milliseconds to the next end, INT64_MAX: there is none */
void hops_ready(struct core *c);   /* every lease gets a full term */
void hops_pack(struct core *c, struct buf *out); /* what events have changed */
void hops_unpack(struct core *c, struct unpack *u);

/* Renews the lease; lease_ms 0: as long as it was. `owner` as in core_act. 0; CORE_UNKNOWN, CORE_FORBIDDEN;
 * CORE_INVALID: it has no lease, or the lease has ended. */
int core_request_renew(struct core *c, uint64_t request, struct str owner, uint64_t lease_ms,
                       struct err *err);
/* The submitter has the results of these members, of those that have ended. *ret_left: how many more it will
 * have. 0; CORE_UNKNOWN, CORE_FORBIDDEN. */
int core_results_taken(struct core *c, uint64_t request, struct str owner, const struct set *members,
                       uint64_t *ret_left, struct err *err);
/* Unix milliseconds before which nobody waits for a result; INT64_MAX: nobody waits for any. */
int64_t core_results_held_since(struct core *c);

struct core_hop {
        uint64_t lease_ms; /* 0: none */
        int64_t left_ms;   /* of the lease */
        bool lease_over, hold_results;
        const struct submission_origin *origin; /* borrowed; NULL: a user's own */
};
int core_request_hop(struct core *c, uint64_t request, struct core_hop *ret); /* 0, CORE_UNKNOWN */
/* Adds the labels of the data of a part's jobs: "a,b". */
void core_part_labels(struct core *c, uint64_t request, uint32_t part, struct buf *out);
