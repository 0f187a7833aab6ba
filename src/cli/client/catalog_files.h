/* catalog_files: what a query of the server's catalog finds, for the readers of descriptions. */
#pragma once
#include "cli/terminal/cli.h"
#include "jdl/form.h"

/* The function of form_world.catalog; arg is the struct cli. */
int catalog_files(void *arg, struct str query, bool events, const char *order,
                  void (*fn)(void *to, const struct form_found *f), void *to, struct err *err);
