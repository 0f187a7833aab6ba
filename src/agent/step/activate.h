/* activate: environment modules and conda environments around a job's program.
 *
 * A job that asks for them (or whose queue has modules for all its jobs) is run by a shell that loads them
 * and then becomes the program: same process, arguments, streams. The shell's text is fixed; names are its
 * arguments, so that no name is ever read as shell. A conda environment is a folder: its bin goes to the
 * front of PATH, CONDA_PREFIX and CONDA_DEFAULT_ENV are set, and the scripts in its etc/conda/activate.d are
 * read; conda itself is not called.
 */
#pragma once
#include "agent/model/attempt.h"
#include "base/args.h"

/* A job of a dataset has its lines of a list in a file of its own, and their first thousand in INPUTFILE0 and
 * so on; one that is not there ends it before its program begins. */
#define ACTIVATE_FILES ".drover_files.list" /* in the sandbox */
struct activate_list {
        struct str name;         /* of the list in the sandbox; empty: it is of no dataset */
        struct str first, count; /* its lines, from 1 */
        struct str uuid, host;   /* of the request, and of its submitter; may be empty */
};
/* Reads the template's file_list; `text` holds what *ret looks at. 0, or -EINVAL with err. */
int activate_file_list(const struct attempt *at, struct buf *text, struct activate_list *ret,
                       struct err *err);

/* Does the attempt's current step need it? A step in a container doesn't: the container brings what it needs.
 */
bool activate_wanted(const struct attempt *at);
/* The step's path and arguments become those of the shell that ends in them. 0, or -EINVAL with err. */
int activate_wrap(const struct attempt *at, const char *sandbox, struct buf *path, struct args *argv,
                  struct err *err);
/* Was it this that ended the step? *ret_why has the module command's or our own words. False where the agent
 * may not read the sandbox (with `users`). */
bool activate_failed(const struct attempt *at, struct buf *ret_why);
/* What a queue's ad says of it: "HasModules = true; …"; nothing when its file says nothing. */
void activate_attributes(const struct config_queue *c, struct buf *out);
