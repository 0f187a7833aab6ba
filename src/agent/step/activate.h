/* activate: environment modules and conda environments for a job's program.
 *
 * A job that asks for them (or whose queue loads modules for all its jobs) is run by a shell that loads them
 * and then executes the program: same process, arguments, streams. The shell's script is fixed; names are
 * its arguments, so that no name is ever parsed as shell. A conda environment is a folder: its bin is put
 * first in PATH, CONDA_PREFIX and CONDA_DEFAULT_ENV are set, and the scripts in its etc/conda/activate.d are
 * sourced; conda itself is not called.
 */
#pragma once
#include "agent/model/attempt.h"
#include "base/job/args.h"

/* A job of a dataset gets its lines of a list in a file of its own, and the first thousand of them in
 * INPUTFILE0 and so on; if one of the files is missing, the job ends before its program begins. */
#define ACTIVATE_FILES ".drover_files.list" /* name in the sandbox */
struct activate_list {
        struct str name; /* name of the list in the sandbox; empty: the job is of no dataset */
        struct str first,
                count;         /* first: number of the job's first line, from 1; count: number of its lines */
        struct str uuid, host; /* uuid of the request and host of its submitter; may be empty */
};
/* Reads the template's file_list; *ret borrows from `text`. Returns 0, or -EINVAL with err. */
int activate_file_list(const struct attempt *at, struct buf *text, struct activate_list *ret,
                       struct err *err);

/* Returns whether the attempt's current step needs the shell. A step in a container does not: its image has
 * its own environment. */
bool activate_wanted(const struct attempt *at);
/* Replaces the step's path and arguments by those of the shell that executes them. Returns 0, or -EINVAL
 * with err. */
int activate_wrap(const struct attempt *at, const char *sandbox, struct buf *path, struct args *argv,
                  struct err *err);
/* Returns whether the activation ended the step; *ret_why is the error message of the module command or of
 * the script. Returns false if the agent may not read the sandbox (with `users`). */
bool activate_failed(const struct attempt *at, struct buf *ret_why);
/* Appends attributes of the queue's ad: "HasModules = true; …"; nothing if its file has no such settings. */
void activate_attributes(const struct config_queue *c, struct buf *out);
