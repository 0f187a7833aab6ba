/* epoch: numbers are not given twice, also when the server has lost records.
 *
 * An attempt is named by its request's number, its member and its fence, all over the protocol and in the
 * names of files and batch jobs. A server whose database is an older copy would give numbers again that
 * agents still hold attempts under. So a start that may have lost records (store_lost) begins an epoch:
 * requests and fences go on from numbers that the lost time cannot have reached. What agents then hold and
 * the server does not know is killed by their next inventory, and its results are refused; attempts that the
 * copy knows are taken up again. What waits in the copy may run at an agent that was given it in the lost
 * time and is not heard of: it is given to nobody before the lease of that agent must have ended.
 */
#pragma once
#include "server/loop/server.h"

/* At the start, in the first turn: tells the core from where numbers go on. What is new is in the turn's
 * batch. 0, or an error with err. */
int epoch_open(struct server *s, struct err *err);
