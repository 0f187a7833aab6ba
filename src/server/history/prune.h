/* prune: what jobs have left goes when the admin says so, and not before (settings: keep).
 *
 * Four things are kept of finished jobs: a row of history each, the record of the request (blob "request/ID",
 * which rows take their shared attributes from), records of usage, and outputs in the spool (blobs
 * "kept/HASH").
 *
 *   history   the oldest rows go, some at a time, each slice in a commit of its own: a server that is killed
 *             goes on where it was. While there is more, slices take half of the time; they begin when
 *             enough rows are new, so that a fast agent is kept up with.
 *   requests  a record goes when the core has forgotten the request, no row of it is left, and the newest
 *             snapshot is younger than that: before, a restart would need it to replay the log. Which ones
 *             these are is looked up after rows have gone, and at the start; nothing is lost with a
 *             restart.
 *   printed   the tail of what a job has printed goes with its row (files/tails.h).
 *   usage     pages of months that have ended long enough ago are deleted, some at a time.
 *   outputs   their blobs go, so that the spool's next tidying takes the files.
 *
 * The store is read on the reader thread. Core thread only.
 */
#pragma once
#include "server/loop/server.h"

struct prune *prune_new(struct server *s); /* after its loop is there */
void prune_free(struct prune *p);          /* NULL is fine */
void prune_tick(struct server *s);
void prune_row_added(struct server *s); /* to the history */
