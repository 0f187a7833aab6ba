/* catalog_files: queries of the server's catalog, for the readers of descriptions. */
#pragma once
#include "base/arena.h"
#include "cli/terminal/cli.h"
#include "cli/terminal/view.h"
#include "jdl/form/form.h"

#define CATALOG_REPLICAS_MAX 64 /* replicas of a file; further ones are left out */

/* Reads one file as the server writes it. Pointers in *f refer to the answer's text, the arena and
 * `replicas`, which must have room for CATALOG_REPLICAS_MAX. */
void catalog_file_read(struct view file, const char *order, struct arena *a, struct form_found *f,
                       struct form_replica *replicas);

/* Implements form_world.catalog; arg is the struct cli. */
int catalog_files(void *arg, struct str name, struct str query, bool events, const char *order,
                  void (*fn)(void *to, const struct form_found *f), void *to, struct err *err);
