/* convert: `drover classad parse|unparse|convert`: ads from files in any encoding, written in another. */
#pragma once
#include "classad/read.h"
#include "cli/terminal/cli.h"

/* Reads a whole file, or standard input for "-". Standard input can be read once; *taken records that.
 * Returns an exit code, after an error was printed. */
int convert_read(const char *file, bool *taken, struct buf *out);

/* verb is "parse", "unparse" or "convert"; from and to name encodings, or are NULL. Without a file, standard
 * input is read. Returns an exit code. */
int convert(const char *verb, const char *from, const char *to, const char *const *files, size_t n);
