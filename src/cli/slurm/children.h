/* children: programs that a command has do its work.
 */
#pragma once
#include <stdbool.h>

/* Runs drover with these words, up to NULL; quiet: without what it prints. Its exit code; 1 after an
 * error. */
int children_drover(const char *const *words, bool quiet);
/* Becomes drover with these words. Returns only after an error was printed: 1. */
int children_become(const char *const *words);
