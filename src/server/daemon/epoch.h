/* epoch: prevents numbers from being used twice when the server has lost records.
 *
 * An attempt is identified by its request's number, its member and its fence, in the protocol and in the
 * names of files and batch jobs. A server whose database is an older copy would assign numbers again under
 * which agents still have attempts. Therefore a start that may have lost records (store_lost) begins an
 * epoch: requests and fences continue from numbers that cannot have been used in the lost time. Attempts
 * that the server does not know are killed after the agents' next inventory, and their results are
 * refused; attempts that the copy knows continue. A job that is idle in the copy may be running at an
 * agent that received it in the lost time and is not connected; it is given to no agent before that
 * agent's lease must have ended. */
#pragma once
#include "server/loop/server.h"

/* At the start, in the first turn: tells the core where numbers continue. A new epoch is recorded in the
 * turn's batch. Returns 0, or an error with err. */
int epoch_open(struct server *s, struct err *err);
