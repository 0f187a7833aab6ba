/* charge: accounts for the resources of a job other than those of its queue: units of named limits, a place
 * among its owner's jobs, and processors of its account. For the files of core/ only.
 *
 * A class determines what its jobs draw; the event `matched` records it, so that an attempt keeps its units
 * when the settings change. Attempts are counted when events are applied: the counts are the same for live,
 * replayed and restored events.
 */
#pragma once
#include "base/str.h"
#include "core/model/names.h"

struct draws;
struct limit;

void charge_class_init(struct core *c, struct job_class *k); /* k->ad must be set */
void charge_class_deinit(struct core *c, struct job_class *k);

/* Returns whether no member of the class can start now at any place. The class is then queued at the limit
 * that stops it, and matched again when a unit of it is free; a class whose limits depend on the place is
 * matched again when a unit of any limit is free. */
bool charge_must_wait(struct core *c, struct job_class *k);
/* The limit has units that it had not before: classes that wait at it are matched again. */
void charge_limit_grew(struct core *c, struct limit *x);
/* Balances may have grown: classes that wait for money are matched again. */
void charge_money_changed(struct core *c);
/* Returns the group that a job asks for by AcctGroup or AccountingGroup; empty: none. Valid until
 * eval_reset. */
struct str charge_group(struct core *c, const struct ad *ad);
/* Determines what a member draws at this place. Returns 0 and a reference for draws_unref (NULL: nothing);
 * or -EINVAL with err: the job's list of limits is invalid there. */
int charge_draws(struct core *c, const struct job_class *k, const struct queue *q, struct draws **ret,
                 struct err *err);
/* Returns how many more members with these draws may start now. *ret_short (may be NULL): the limit that
 * restricts them most. */
uint32_t charge_room(const struct job_class *k, const struct draws *d, struct limit **ret_short);

/* Called by apply.c and snapshot.c when an attempt begins, is restored, or ends. The texts are those of the
 * event; either may be empty. */
int charge_begin(struct core *c, struct job *j, struct str account, struct str draws, int64_t at_ms,
                 struct err *err);
int charge_resume(struct core *c, struct job *j, struct str account, struct str draws, struct err *err);
void charge_end(struct core *c, struct job *j, int64_t at_ms); /* no-op without an attempt */

/* Checks that the counts match the attempts, for core_check. Returns NULL, or a sentence. */
const char *charge_invariant(struct core *c);

/* Counts an owner's members in the queue, from the arrival of a request on until they end; a request's
 * memory is counted until the request is forgotten. */
void charge_request(struct core *c, struct request *r, uint64_t members);
void charge_request_gone(struct core *c, struct request *r);
/* The request's memory has changed by kib, already included in r->kib. */
void charge_request_kib(struct request *r, int64_t kib);
void charge_members_ended(struct core *c, struct request *r, uint64_t members);
/* Limit on the owner's running attempts; NULL in a shadow. */
struct limit *charge_user(const struct request *r);
/* Checks the owner's limit on queued jobs for a submission. Returns 0, or CORE_TOO_MANY with err. */
int charge_check_room(struct core *c, const struct submission *s, struct err *err);
/* Checks the owner's limit on memory for the classes of its jobs, which is known only as they are made, and
 * `more` KiB. Returns 0, or CORE_TOO_MANY with err. */
int charge_check_memory(struct core *c, const char *owner, uint64_t more, struct err *err);
/* Checks the account's limit on different classes among its waiting jobs. Returns 0, or CORE_INVALID with
 * err. */
int charge_check_ways(const struct core *c, const struct job_class *k, struct err *err);
/* Returns whether the owner's requests take more than half of the owner's memory limit; ended ones are then
 * forgotten. */
bool charge_crowded(const struct request *r);
/* Checks a part's ad: that its limits are well-formed, and that the owner may use its account. Returns 0, or
 * -EINVAL with err. */
int charge_check_part(struct core *c, struct str owner, const struct ad *ad, struct err *err);
