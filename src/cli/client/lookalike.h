/* lookalike: the main function of a program that implements several commands of another system.
 *
 * The name of the called program selects the command; if that is the program's own name, the first argument
 * does. `PROGRAM --page` prints the commands' parts of the manual page.
 */
#pragma once
#include "cli/terminal/words.h"

struct lookalike {
        const char *program;                   /* "drover-slurm" */
        const char *system;                    /* in messages: "Slurm's" */
        const char *page;                      /* "drover-slurm(7)" */
        const struct words_tool *const *tools; /* up to NULL */
        bool warns;            /* print which options of a call have no equivalent; else the commands do it */
        void (*version)(void); /* prints the text of --version */
};
/* Runs the command that argv[0] or argv[1] names. Returns the exit code of the program. */
int lookalike_main(int argc, char **argv, const struct lookalike *l);
