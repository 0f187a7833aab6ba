/* console: the input of a command that runs beside a job's program, and its terminal.
 *
 * The command has one end: of a pipe that is its standard input, or of a pseudoterminal that is all its
 * streams. The agent has the other. A console holds at most CONSOLE_MOST bytes each way: a command that
 * does not read keeps the rest of its input at whoever sends it, and one whose output nobody takes waits, as
 * at any terminal. When the console is freed the command finds the end of its input, or that its terminal has
 * hung up. Everything runs on the loop's thread.
 */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "ev/loop.h"

#define CONSOLE_MOST (64u << 10)

struct console;
struct console_config {
        struct loop *loop;
        bool terminal;              /* else a pipe */
        unsigned rows, columns;     /* of the terminal */
        void (*changed)(void *arg); /* there is more of its output, or room for more of its input */
        void *arg;
};
/* *ret_fd is the command's end, and the caller's to close. 0 or -errno. */
int console_new(const struct console_config *c, struct console **ret, int *ret_fd);
void console_free(struct console *c); /* NULL is fine */

void console_resize(struct console *c, unsigned rows, unsigned columns); /* a pipe has no size */
/* Takes what there is room for of the bytes, the first of which has this offset within all of the input;
 * those that were taken before are left out, and what would leave a gap is not taken. With `end` the input
 * ends behind them; a terminal's does not. Returns the offset of the first byte that was not taken. */
uint64_t console_take(struct console *c, uint64_t offset, struct str bytes, bool end);
uint64_t console_taken(const struct console *c); /* that offset */
bool console_has_room(const struct console *c);
bool console_is_deaf(const struct console *c); /* the command reads nothing more */

/* A terminal's output from this offset on, which becomes that of the first byte that is left of it; what is
 * before it is forgotten. Good until the next call. */
struct str console_output(struct console *c, uint64_t *offset);
uint64_t console_written(const struct console *c); /* bytes of output, so far */
/* The command has ended: what it has left in its terminal is read, and nothing more is waited for. */
void console_end(struct console *c);
bool console_is_over(const struct console *c); /* ended, and all of its output was read */
