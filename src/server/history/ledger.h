/* ledger: stores the movements of the bank, for statements.
 *
 * The movements of one turn that affect the same account are one blob, in the turn's commit. Its name is
 * "ledger/ACCOUNT/YYYYMM/", with the month in UTC, and the number of its first movement, so that names
 * sort by time. A movement between two accounts is in the blobs of both. Movements of the bank's own
 * accounts are not stored for these. */
#pragma once
#include "bank/bank.h"
#include "server/loop/server.h"

struct ledger;
struct ledger *ledger_new(void);
void ledger_free(struct ledger *l);   /* accepts NULL */
unsigned ledger_month(int64_t at_ms); /* returns the month in UTC, as YYYYMM */
/* Core thread: adds the movement to this turn's pages, which are written at the end of the turn. */
void ledger_movement(struct server *s, const struct bank_entry *e);
void ledger_flush(struct server *s);
/* The same for other users of a ledger, which have a batch of their own. */
void ledger_add(struct ledger *l, const struct bank_entry *e);
void ledger_flush_to(struct ledger *l, struct store_batch *batch);

/* Any thread: calls fn for the account's movements with from_ms <= at_ms < to_ms and numbers above
 * `after`, in order, until fn returns nonzero. from and to are names. Returns 0, or -errno with err. */
typedef int ledger_fn(void *arg, const struct bank_entry *e);
int ledger_read(struct server *s, struct str account, int64_t from_ms, int64_t to_ms, uint64_t after,
                ledger_fn *fn, void *arg, struct err *err);
