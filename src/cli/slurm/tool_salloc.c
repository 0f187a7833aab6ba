/* salloc: a job whose command is run at once, at the place that it gets, as Slurm does where its
 * LaunchParameters have use_interactive_step. Within it srun starts tasks. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/slurm/batch.h"
#include "cli/slurm/run.h"
#include "cli/slurm/slurm.h"

/* Tells the number as Slurm's salloc does, for programs that read it, and becomes the command. */
#define GRANTED "echo \"salloc: Granted job allocation $SLURM_JOB_ID\" >&2; exec \"$@\""

static int salloc(struct cli *cli, const struct words *w)
{
        const char *shell = getenv("SHELL");
        ARGS_CLEANUP struct args command = {0};

        if (getenv("SLURM_JOB_ID") && getenv("DROVER_SCRATCH"))
                return slurm_error(1, "this is within a job already: srun starts tasks in it");
        run_warn(w);
        args_add(&command, STR("/bin/sh"));
        args_add(&command, STR("-c"));
        args_add(&command, STR(GRANTED));
        args_add(&command, STR("salloc"));
        for (size_t i = 0; i < w->word_count; i++)
                args_add(&command, str_of(w->words[i]));
        if (w->word_count == 0)
                args_add(&command, str_of(shell && *shell == '/' ? shell : "/bin/sh"));
        return run_become(cli, w, "interactive", isatty(STDIN_FILENO) && isatty(STDOUT_FILENO), &command);
}

static const struct words_row rows[] = {
        BATCH_ROWS,
        {"quiet", 'Q', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Nothing is told of options that are left out."},
        {"bell", 0, WORDS_PLAIN, WORDS_NAMED, NULL, NULL, "no bell rings."},
        {"no-bell", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "No bell rings."},
        {"kill-command", 'K', WORDS_MAYBE, WORDS_NAMED, "SIGNAL", NULL, "the command ends with the job."},
        {"no-shell", 0, WORDS_PLAIN, WORDS_REFUSED, NULL, NULL,
         "a job is its command: submit one that waits, and use `drover exec`."},
        {"immediate", 'I', WORDS_MAYBE, WORDS_REFUSED, "SECONDS", NULL, "use `drover run` and `timeout`."},
        {0},
};
const struct words_tool slurm_salloc = {
        .name = "salloc",
        .usage = "[OPTIONS] [COMMAND [ARGUMENTS...]]",
        .line = "Runs a command, or a shell, at the place that a job gets, with the terminal.",
        .rows = rows,
        .stops = true,
        .no_variables = true,
        .run = salloc,
};
