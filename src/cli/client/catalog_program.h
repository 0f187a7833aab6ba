/* catalog_program: catalog:NAME?QUERY, where NAME is a program that knows the files.
 *
 * It is looked for in the folder that DROVER_CATALOGS names, in /etc/drover/catalogs, and among those that
 * come with Drover, and runs as the user who submits. On its standard input it gets one line of JSON:
 * {"query": …, "events": …, "order": …}. It prints a line of JSON for each file, as `drover catalog query
 * --json` does for the server's: {"name": …, "size": …, "metadata": {…}, "replicas": [{"url": …, "host": …,
 * "store": …}]}, and at last {"end": N}, with the number of files; or {"error": "…"}.
 */
#pragma once
#include "jdl/form.h"

#define CATALOG_PROGRAM_QUIET_MS 30000        /* without a byte, it is killed */
#define CATALOG_PROGRAM_MS       600000       /* in all */
#define CATALOG_PROGRAM_END_MS   10000        /* to end, when it has closed its output */
#define CATALOG_PROGRAM_MAX      (512u << 20) /* bytes that it may print; */
#define CATALOG_PROGRAM_LINE_MAX (1u << 20)   /* in one line */

/* The part of form_world.catalog that asks a program. Files may have been told when it fails. */
int catalog_program_files(struct str name, struct str query, bool events, const char *order,
                          void (*fn)(void *to, const struct form_found *f), void *to, struct err *err);
