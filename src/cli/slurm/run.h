/* run: a job that its caller waits for, of srun and salloc: `drover run` with the options of Slurm. */
#pragma once
#include "base/job/args.h"
#include "cli/terminal/cli.h"
#include "cli/terminal/words.h"

/* Prints a warning for each option without an equivalent, but for --quiet. */
void run_warn(const struct words *w);
/* Becomes `drover run`, which submits the command as a job and ends as it does. name: the job's, if no option
 * says one. terminal: the command has one. Returns only after a failure, with an exit code; it has been
 * printed. */
int run_become(struct cli *cli, const struct words *w, const char *name, bool terminal,
               const struct args *command);
