/* billing: what jobs cost, and the orders to the bank that follow from their lives.
 *
 * A job is paid by the bank's account that its accounting group names, or by the nearest one above that; a
 * job that names none by the one that the settings put its owner into, or by an account with the owner's
 * name. Its owner must be a member. An attempt that is matched gets a lien for as long as it is expected to
 * run, which is extended while it runs; its result is charged, by a rate of the settings that is evaluated
 * over what was used; an attempt that is lost, refused or never started is released.
 *
 * The orders are events of their own, emitted beside the job's and so in the same commit. When the bank is
 * off and has no liens nothing here costs more than a test.
 */
#pragma once
#include "core/core.h"
#include "core/model/names.h"

struct bank_account;
struct need;

void billing_init(struct core *c);
void billing_deinit(struct core *c);

/* Listeners: before the event of an attempt's end is applied, and after one of its begin was. */
void billing_before(struct core *c, const struct event *e);
void billing_after(struct core *c, const struct event *e);

enum billing_answer {
        BILLING_YES,
        BILLING_NOT_NOW, /* liens of other jobs hold what it needs: wait until some have ended */
        BILLING_SHORT,   /* the account has not so much */
        BILLING_NEVER,   /* no account, no member, or no price */
};
/* May members of the class be given to this place, by their account? *ret_most: so many of them. Else ret_why
 * gets a sentence for people. A class whose account cannot pay anywhere is marked, and waits in
 * charge_must_wait. */
enum billing_answer billing_ask(struct core *c, struct job_class *k, const struct queue *q,
                                uint64_t *ret_most, struct err *ret_why);
/* Are jobs held that cannot pay, or do they wait? */
bool billing_holds(const struct core *c);
/* Can the account pay for all of a set, each at its place? */
bool billing_suffices(struct core *c, struct job_class *k, struct queue *const *where, uint64_t n);
/* At submit: has the owner an account for jobs with this ad, and something in it? 0, -EINVAL with err. */
int billing_check_part(struct core *c, struct str owner, const struct ad *ad, struct err *err);

int64_t billing_tick(struct core *c);
const char *billing_invariant(struct core *c);
