/* children: programs that a command runs to do its work. */
#pragma once
#include <stdbool.h>

/* Runs drover with these words, up to NULL; quiet: its output is discarded. Returns its exit code, or 1
 * after an error. */
int children_drover(const char *const *words, bool quiet);
/* Replaces this process by drover with these words. Returns only after an error was printed: 1. */
int children_become(const char *const *words);
