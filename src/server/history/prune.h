/* prune: deletes the records of finished jobs when the settings say so (keep), and not before.
 *
 * Four things are kept of finished jobs: a history row of each, the record of the request (blob
 * "request/ID", from which rows take their shared attributes), usage records, and outputs in the spool
 * (blobs "kept/HASH").
 *
 *   history   The oldest rows are deleted in slices, each in a commit of its own, so that a killed server
 *             continues where it was. While there are more, slices take half of the time. They start when
 *             there are enough new rows, so that pruning keeps up with fast agents.
 *   requests  A record is deleted when the core has forgotten the request, no row of it is left, and the
 *             newest snapshot is later than that; before, a restart would need the record to replay the
 *             log. The search runs after rows were deleted, and at the start of the server.
 *   printed   The tail of a job's output is deleted with its row (files/tails.h).
 *   usage     Pages of months that ended long enough ago are deleted in slices.
 *   outputs   The blobs are deleted, so that the spool's next cleanup removes the files.
 *
 * The store is read on the reader thread. Core thread only. */
#pragma once
#include "server/loop/server.h"

struct prune *prune_new(struct server *s); /* to be called when the server's loop exists */
void prune_free(struct prune *p);          /* accepts NULL */
void prune_tick(struct server *s);
void prune_row_added(struct server *s); /* a row was added to the history */
