/* attach: a command beside a job's program, connected to the caller's standard streams.
 *
 * With a terminal, the caller's terminal is in raw mode while the command runs, so that each key reaches the
 * command, and is restored however the caller ends (except by SIGKILL). A change of its size is passed on to
 * the command's terminal.
 */
#pragma once
#include "cli/terminal/cli.h"

struct attach {
        const char *job; /* "7.0" */
        const char *const *words;
        size_t count;
        bool input;    /* the command reads the caller's standard input, up to its end */
        bool terminal; /* the command has a terminal, which is shown on the caller's */
};
enum attach_way { ATTACH_NOT_BEGUN, ATTACH_LOST, ATTACH_ENDED };
/* Runs the command to its end. Returns its exit code, or 128 plus the number of the signal that ended it or
 * the caller; CLI_FAILED and other codes after an error was printed. *ret_way (may be NULL) says whether the
 * command was started, and ended with the code returned. */
int attach_run(struct cli *cli, const struct attach *a, enum attach_way *ret_way);
/* Returns whether the standard streams are a terminal on which a command's terminal can be shown; if not,
 * prints an error. */
bool attach_has_terminal(void);
