/* attach: a command beside a job's program, with our standard streams.
 *
 * With a terminal ours is in raw mode while the command runs, so that each key goes to the command's own, and
 * is put back whatever ends us (but SIGKILL); a change of its size is told to the command's.
 */
#pragma once
#include "cli/terminal/cli.h"

struct attach {
        const char *job; /* "7.0" */
        const char *const *words;
        size_t count;
        bool input;    /* the command reads our standard input, up to its end */
        bool terminal; /* it has a terminal, which is shown on ours */
};
enum attach_way { ATTACH_NOT_BEGUN, ATTACH_LOST, ATTACH_ENDED };
/* Runs it to its end. The exit code is the command's, or 128 and the number of the signal that has ended it,
 * or us; CLI_FAILED and others after an error was printed. *ret_way (may be NULL): whether it was started,
 * and has ended as the code says. */
int attach_run(struct cli *cli, const struct attach *a, enum attach_way *ret_way);
/* Whether our standard streams are a terminal that a command's can be shown on. Prints it if not. */
bool attach_has_terminal(void);
