/* charge: what a job takes beside its queue's room: units of named limits, a place among its owner's jobs,
 * and processors of its account. For the files of core/ only.
 *
 * A class says what its jobs claim; the event `matched` writes it down, so that what an attempt holds does
 * not change when the settings do. Attempts are counted as events are applied: live, replayed or restored,
 * the counts are the same.
 */
#pragma once
#include "base/str.h"
#include "core/model/names.h"

struct draws;
struct limit;

void charge_class_init(struct core *c, struct job_class *k); /* k->ad is there */
void charge_class_deinit(struct core *c, struct job_class *k);

/* Can no member of the class start now, wherever? Then the class stands in line at the limit that stops it,
 * and is matched again when one of its units is free. One whose limits depend on the place is matched again
 * when a unit of any is. */
bool charge_must_wait(struct core *c, struct job_class *k);
/* The bank may pay for more than before: classes that wait for that are looked at again. */
void charge_money_changed(struct core *c);
/* The group that a job asks for, with AcctGroup or AccountingGroup; empty: none. Until eval_reset. */
struct str charge_group(struct core *c, const struct ad *ad);
/* What a member draws at this place: 0 and a reference for draws_unref (NULL: nothing); -EINVAL: what the job
 * says is no list of limits there. */
int charge_draws(struct core *c, const struct job_class *k, const struct queue *q, struct draws **ret,
                 struct err *err);
/* How many more members that draw this may start now. *ret_short (may be NULL): the limit that says so. */
uint32_t charge_room(const struct job_class *k, const struct draws *d, struct limit **ret_short);

/* apply.c, snapshot.c: an attempt begins, is restored, ends. Texts as in the event; either may be empty. */
int charge_begin(struct core *c, struct job *j, struct str account, struct str draws, int64_t at_ms,
                 struct err *err);
int charge_resume(struct core *c, struct job *j, struct str account, struct str draws, struct err *err);
void charge_end(struct core *c, struct job *j, int64_t at_ms); /* no-op without an attempt */

/* For core_check: the counts are those of the attempts. NULL, or a sentence. */
const char *charge_invariant(struct core *c);

/* Members in the queue, of an owner: counted when a request comes, and as they end. What it takes of the
 * server's memory is counted until it is forgotten. */
void charge_request(struct core *c, struct request *r, uint64_t members);
void charge_request_gone(struct core *c, struct request *r);
/* Its memory has changed by so much, in r->kib already. */
void charge_request_kib(struct request *r, int64_t kib);
void charge_members_ended(struct core *c, struct request *r, uint64_t members);
struct limit *charge_user(const struct request *r); /* of attempts of its owner; NULL in a shadow */
/* May this be submitted: has its owner room in the queue? 0, CORE_TOO_MANY with err. */
int charge_check_room(struct core *c, const struct submission *s, struct err *err);
/* The same, of what the classes of its jobs take, which shows as they are made, and of `more` KiB. */
int charge_check_memory(struct core *c, const char *owner, uint64_t more, struct err *err);
/* Do the waiting jobs of the class's account differ in more ways than they may? 0, CORE_INVALID with err. */
int charge_check_ways(const struct core *c, const struct job_class *k, struct err *err);
/* Do the owner's requests take more than half of what they may? Those that have ended are forgotten then. */
bool charge_crowded(const struct request *r);
/* And a part with this ad: are its limits named well, may he use its account? 0, -EINVAL with err. */
int charge_check_part(struct core *c, struct str owner, const struct ad *ad, struct err *err);
