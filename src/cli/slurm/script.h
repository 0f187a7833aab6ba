/* script: a batch script, and the options in its #SBATCH lines.
 */
#pragma once
#include "cli/slurm/words.h"

/* The file of that name, here or else in $PATH; NULL: standard input. Text that no batch script can be is an
 * error. 0, or -errno with err. The path it was found at is appended to `path`. */
int script_read(const char *name, struct buf *path, struct buf *text, struct err *err);
/* Whether text can be a script: 0, or -EINVAL with err. */
int script_check(struct str text, struct err *err);
/* Adds the options of the lines that begin with #SBATCH, up to the first line that is neither empty nor a
 * comment. 0, or -EINVAL with err, which names the line. */
int script_options(struct str text, struct words *w, struct err *err);
/* Text of one such line as words, as Slurm parts it: quotes and backslashes, and a comment behind #. Appended
 * to args of base/args.h. 0, or -EINVAL. */
struct args;
int script_words(struct str line, struct args *ret);
