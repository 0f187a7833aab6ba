/* catalog_program: catalog:NAME?QUERY, where NAME is a program that knows the files.
 *
 * The program is looked for in the folder named by DROVER_CATALOGS, in /etc/drover/catalogs, and among those
 * that come with Drover. It runs as the user who submits. On its standard input it gets one line of JSON:
 * {"query": …, "events": …, "order": …}. It prints a line of JSON for each file, like `drover catalog query
 * --json`: {"name": …, "size": …, "metadata": {…}, "replicas": [{"url": …, "host": …, "store": …}]}, and as
 * the last line {"end": N}, with the number of files, or {"error": "…"}.
 */
#pragma once
#include "jdl/form/form.h"

#define CATALOG_PROGRAM_QUIET_MS 30000        /* time without output after which the program is killed */
#define CATALOG_PROGRAM_MS       600000       /* time limit for the whole run */
#define CATALOG_PROGRAM_END_MS   10000        /* time that it has to end after it has closed its output */
#define CATALOG_PROGRAM_MAX      (512u << 20) /* maximum bytes of output */
#define CATALOG_PROGRAM_LINE_MAX (1u << 20)   /* maximum bytes of one line */

/* Implements form_world.catalog for catalogs that are programs. fn may have been called for some files
 * before an error is returned. */
int catalog_program_files(struct str name, struct str query, bool events, const char *order,
                          void (*fn)(void *to, const struct form_found *f), void *to, struct err *err);
