/* script: a batch script, and the options in its #SBATCH lines.
 */
#pragma once
#include "cli/terminal/words.h"

/* Reads the script of that name, from the current folder or else from $PATH; NULL: standard input. Text that
 * cannot be a batch script is an error. The path at which it was found is appended to `path`. Returns 0, or
 * -errno with err. */
int script_read(const char *name, struct buf *path, struct buf *text, struct err *err);
/* Checks whether the text can be a script. Returns 0, or -EINVAL with err. */
int script_check(struct str text, struct err *err);
/* Adds the options of the lines that begin with #SBATCH, up to the first line that is neither empty nor a
 * comment. Returns 0, or -EINVAL with err, which names the line. */
int script_options(struct str text, struct words *w, struct err *err);
/* Splits the text of one such line into words as Slurm does: quotes and backslashes, and a comment after #.
 * The words are appended to args of base/job/args.h. Returns 0, or -EINVAL. */
struct args;
int script_words(struct str line, struct args *ret);
