/* postgres_help: schemas in the PostgreSQL that tests/conform/with_postgres.py has started, and a line to it
 * that can be cut. */
#pragma once
#include "store/store.h"

/* The address of a schema that is new; the caller frees. */
char *postgres_new_address(void);
/* Runs statements in that schema, or fails the test. */
void postgres_sql(const char *address, const char *sql);

/* Between a store and PostgreSQL: takes connections on a socket in a folder of its own, hands on what comes,
 * and cuts. Its thread is the only one that looks at the connections. */
struct line;
struct line *line_new(void);
void line_free(struct line *l);
/* The same schema through the line; the caller frees. */
char *line_address(const struct line *l, const char *address);
/* Once so many bytes more have come from the store (or, from_server, from PostgreSQL), the connection is cut:
 * what came before is handed on, the rest is lost. 0: never. */
void line_cut_after(struct line *l, bool from_server, size_t bytes);
/* From now on nothing is handed on, and nothing is closed, until false. */
void line_freeze(struct line *l, bool frozen);
unsigned line_cuts(struct line *l);
size_t line_bytes(struct line *l, bool from_server); /* that were handed on */
