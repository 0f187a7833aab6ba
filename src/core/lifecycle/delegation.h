/* delegation: a request whose submitter must stay in touch, such as a server that hands on jobs.
 *
 * A request with a lease lives as long as the lease is renewed: when it ends (EVENT_LEASE_ENDED), jobs that
 * have not ended are removed. Renewals are not events: after a restart every lease gets a full term. If
 * results are held, finished jobs and their outputs are kept until the submitter confirms that it has them
 * (EVENT_RESULTS_TAKEN), or its lease has ended.
 *
 * Calls named core_… are for the world; the others are for the files of core/ only.
 */
#pragma once
#include "base/pack.h"
#include "base/set.h"
#include "core/model/names.h"

bool delegation_keeps_results(const struct request *r); /* some results have not been taken */
void delegations_init(struct core *c);
void delegations_deinit(struct core *c);
/* Ends leases that are over. Returns the milliseconds to the next end; INT64_MAX: there is none. */
int64_t delegations_tick(struct core *c);
void delegations_ready(struct core *c);                 /* gives every lease a full term */
void delegations_pack(struct core *c, struct buf *out); /* the state that events have changed */
void delegations_unpack(struct core *c, struct unpack *u);
