/* billing: computes what jobs cost, and emits the orders to the bank.
 *
 * A job is paid by the bank's account of its accounting group, or by the nearest one above that; a job
 * without a group by the account that the settings assign to its owner, or else by an account with the
 * owner's name. Its owner must be a member. A matched attempt gets a lien for its expected run time, which
 * is extended while it runs; its result is charged at the rate of the settings, evaluated over the measured
 * usage; the lien of an attempt that is lost, refused or never started is released.
 *
 * The orders are events of their own, emitted beside the job's and so in the same commit. When the bank is
 * off and has no liens, billing costs no more than a test.
 */
#pragma once
#include "core/core.h"
#include "core/model/names.h"

struct bank_account;
struct need;

void billing_init(struct core *c);
void billing_deinit(struct core *c);

/* Listeners: called before the event of an attempt's end is applied, and after that of its begin. */
void billing_before(struct core *c, const struct event *e);
void billing_after(struct core *c, const struct event *e);

enum billing_answer {
        BILLING_YES,
        BILLING_NOT_NOW, /* the balance is held by liens of other jobs: wait until some have ended */
        BILLING_CLOSED,  /* the bank's register has the place as inactive */
        BILLING_SHORT,   /* the account's balance is too low */
        BILLING_NEVER,   /* no account, no member, or no price */
};
/* Returns whether the account of the class can pay for members at this place. *ret_most: for how many.
 * Otherwise ret_why gets a sentence for people. A class whose account cannot pay at any place is marked, and
 * waits in charge_must_wait. */
enum billing_answer billing_ask(struct core *c, struct job_class *k, const struct queue *q,
                                uint64_t *ret_most, struct err *ret_why);
/* Computes what a member of the class would cost at this place for its expected run time: *ret_amount, 0 if
 * no account pays; and *ret_more, which may be NULL, each further one: a quote is for one job. Otherwise as
 * billing_ask, but asks no balance. With BILLING_YES ret_why gets a text if the quote that the class names is
 * not used there. */
enum billing_answer billing_quote(struct core *c, const struct job_class *k, const struct queue *q,
                                  int64_t *ret_amount, int64_t *ret_more, struct err *ret_why);
/* Gives the account that pays for jobs of the class, the bank's, and what the owner may spend of it at this
 * place. NULL: no account pays. */
const char *billing_payer(struct core *c, const struct job_class *k, const struct queue *q,
                          int64_t *ret_available);
/* Returns whether an account pays for jobs of the class, and the bank's register has the queue, or its agent,
 * as inactive. */
bool billing_is_closed(struct core *c, const struct job_class *k, const struct queue *q);
/* Returns whether a queue matches the pattern AGENT, AGENT/QUEUE, or "" for every place. */
bool billing_place_fits(struct str pattern, const struct queue *q);
/* Returns whether advance reservations are charged in full, and jobs in them are free. */
bool billing_charges_reserved(const struct core *c);
/* Returns whether jobs that cannot pay are held; otherwise they wait. */
bool billing_holds(const struct core *c);
/* Returns whether jobs of the class are to be held at submission: the settings hold those that cannot pay,
 * the account has nothing, neither to spend nor reserved, and the job costs something at every place. ret_why
 * gets the reason. */
bool billing_is_empty(struct core *c, const struct job_class *k, struct err *ret_why);
/* Returns whether the accounts can pay for a whole set, each member, of its class, at its place. */
bool billing_suffices(struct core *c, struct job_class *const *classes, struct queue *const *where,
                      uint64_t n);
/* Checks at submission that the owner has an account for jobs with this ad, with a balance. Returns 0, or
 * -EINVAL with err. */
int billing_check_part(struct core *c, struct str owner, const struct ad *ad, struct err *err);
/* Checks at submission, and when an edit names one, that a quote that the ad names can be used by its owner,
 * whatever the place. Returns
 * 0, or -EINVAL with err. */
int billing_check_quote(struct core *c, struct str owner, const struct ad *ad, struct err *err);

int64_t billing_tick(struct core *c);
const char *billing_invariant(struct core *c);
