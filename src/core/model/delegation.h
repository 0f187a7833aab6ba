/* delegation: what a request says of its submitter, another server or a client that must stay in touch
 * (lifecycle/delegation.h). */
#pragma once
#include "base/set.h"
#include "core/model/names.h"

struct submission_origin;

struct delegation { /* of a request */
        uint64_t lease_ms;
        int64_t renewed_steady_ms;
        bool hold_results;
        bool lease_over;                  /* by event */
        struct set taken;                 /* by event: members whose results the submitter has */
        struct submission_origin *origin; /* NULL: a user's own */
        char *text;                       /* what the origin's strings look at */
};
struct delegations {
        struct request **leased; /* those that have a lease, in no order */
        size_t count, cap;
};

void delegation_load(struct request *r, const struct submission *s); /* from the record */
void delegation_show(struct core *c, struct request *r);             /* its lease begins */
void delegation_free(struct core *c, struct request *r);
