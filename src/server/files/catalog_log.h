/* catalog_log: opens the catalog, and keeps its changes in the store where another server may take over.
 *
 * With a mirror, or with PostgreSQL, the store outlives this machine, and so do the blobs in it:
 *
 *   catalog/from         the base: its number, and how many pieces it has
 *   catalog/base.N.P     piece P of a copy of the catalog's file, as it was after the change N
 *   catalog/log.N        the change N
 *
 * A writing call of the catalog returns when its change is durable in the store; the file catalog.db is then
 * a copy that each server makes for itself: from the base if its own file is of another origin, and from the
 * changes after the file's position. When the log has become much larger than the catalog, it begins anew
 * with another base. A base counts once catalog/from names it, which is written together with the removal of
 * what it replaces.
 *
 * A file that turns out to be damaged is made again from the log at the next call; and a copy is read as a
 * whole before it becomes a base.
 *
 * Elsewhere the catalog is the file alone, and what an earlier setting left of a log is removed. */
#pragma once
#include "server/loop/server.h"

struct catalog_log;
struct catalog_log *catalog_log_new(void);
void catalog_log_free(struct catalog_log *l); /* accepts NULL */
/* Core thread, before the catalog's thread is waited for: calls that wait for the store fail from now on. */
void catalog_log_stop(struct catalog_log *l);
/* Core thread, when the catalog's thread runs: has it read what the log has, where there is one. */
void catalog_log_start(struct server *s);

/* Catalog thread: opens the catalog at the first call, as far as the log goes. Returns 0; or the error of
 * catalog_open or of the store with err. */
int catalog_log_open(struct server *s, struct err *err);
/* Catalog thread: a call has failed with CATALOG_CORRUPT. Returns whether the next call will make the catalog
 * again from the log. */
bool catalog_log_distrust(struct server *s);
/* Catalog thread: returns whether the disk has room for more, beside what the server's log needs. */
bool catalog_log_has_room(struct server *s);
