/* delegation: a request whose submitter must stay in touch, as another server does that hands jobs on.
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
#include "core/model/names.h"

bool delegation_keeps_results(const struct request *r); /* some are still wanted */
void delegations_init(struct core *c);
void delegations_deinit(struct core *c);
int64_t delegations_tick(
        struct core *c); /* ends leases; milliseconds to the next end, INT64_MAX: there is none */
void delegations_ready(struct core *c);                 /* every lease gets a full term */
void delegations_pack(struct core *c, struct buf *out); /* what events have changed */
void delegations_unpack(struct core *c, struct unpack *u);
