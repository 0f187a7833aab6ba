/* ledger: the movements of the bank, kept for statements.
 *
 * The movements of one turn that are of the same account are one blob, in the turn's commit:
 * "ledger/ACCOUNT/YYYYMM/", by the month of UTC, and the number of its first movement, so that their names
 * sort as they came. A movement between two accounts is in the blobs of both; those of the bank's own
 * accounts are nobody's.
 */
#pragma once
#include "bank/bank.h"
#include "server/loop/server.h"

struct ledger;
struct ledger *ledger_new(void);
void ledger_free(struct ledger *l);   /* NULL is fine */
unsigned ledger_month(int64_t at_ms); /* the month of UTC, as YYYYMM */
/* Core thread: keeps it with this turn's commit; at its end. */
void ledger_movement(struct server *s, const struct bank_entry *e);
void ledger_flush(struct server *s);

/* Any thread: calls fn for the account's movements with from_ms <= at_ms < to_ms and numbers above `after`,
 * in their order, until it returns nonzero. from and to are names. 0, -errno with err. */
typedef int ledger_fn(void *arg, const struct bank_entry *e);
int ledger_read(struct server *s, struct str account, int64_t from_ms, int64_t to_ms, uint64_t after,
                ledger_fn *fn, void *arg, struct err *err);
