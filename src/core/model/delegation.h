/* delegation: the terms of a request whose submitter, another server or a client, must stay in touch
 * (lifecycle/delegation.h).
 */
#pragma once
#include "base/set.h"
#include "core/model/names.h"

struct submission_origin;

struct delegation {
        uint64_t lease_ms;
        int64_t renewed_steady_ms;
        bool hold_results;
        bool lease_over;                  /* set by an event */
        struct set taken;                 /* set by events: members whose results the submitter has */
        struct submission_origin *origin; /* NULL: submitted by a user directly */
        char *text;                       /* owned: the text that the origin's strings point into */
};
struct delegations {
        struct request **leased; /* requests with a lease, in no order */
        size_t count, cap;
};

/* Sets the request's terms from its submission. */
void delegation_load(struct request *r, const struct submission *s);
void delegation_show(struct core *c, struct request *r); /* starts the lease */
void delegation_free(struct core *c, struct request *r);
