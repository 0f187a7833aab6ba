/* bank: rights of callers of the API in accounts of the bank. */
#pragma once
#include "bank/bank.h"
#include "server/calls/call.h"

/* Returns the role by which the caller sees the account: operators and admins see all as an owner does. `a`
 * NULL: no account, in which users have no role. */
enum bank_role bank_caller_role(const struct call *c, const struct bank_account *a);
/* Core thread: carries out a complete order that the caller may give, and continues with the reply when it is
 * durable; or fails the call. */
void bank_carry_out(struct server *s, struct call *c, const struct bank_order *o);
/* I/O thread: carries out a refund of what a job was charged; the call owns the document from now on. */
void bank_refund_job(struct call *c, json_t *doc);
