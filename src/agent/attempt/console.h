/* console: input and terminal of a command that runs beside a job's program.
 *
 * The command has one end of a pipe as standard input, or one end of a pseudoterminal as all its streams;
 * the agent has the other. A console buffers at most CONSOLE_MOST bytes each way: input that the command
 * does not read stays with the sender, and a command whose output is not taken blocks, as at any terminal.
 * When the console is freed the command sees the end of its input, or a hang-up of its terminal. Everything
 * runs on the loop's thread.
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
        bool terminal;              /* false: a pipe */
        unsigned rows, columns;     /* size of the terminal */
        void (*changed)(void *arg); /* called when there is more output, or room for more input */
        void *arg;
};
/* Makes a console. *ret_fd is the command's end, which the caller closes. Returns 0 or -errno. */
int console_new(const struct console_config *c, struct console **ret, int *ret_fd);
void console_free(struct console *c); /* NULL is allowed */

void console_resize(struct console *c, unsigned rows, unsigned columns); /* does nothing for a pipe */
/* Takes as many of the bytes as there is room for. offset: position of the first byte in the whole input;
 * bytes taken before are skipped, and bytes that would leave a gap are refused. end: the input ends after
 * the bytes; a terminal's does not. Returns the offset of the first byte that was not taken. */
uint64_t console_take(struct console *c, uint64_t offset, struct str bytes, bool end);
uint64_t console_taken(const struct console *c); /* returns that offset */
bool console_has_room(const struct console *c);
bool console_is_deaf(const struct console *c); /* returns whether the command reads no more input */

/* Returns a terminal's output from *offset on; *offset becomes the offset of the first byte that is still
 * available. Output before it is forgotten. Valid until the next call. */
struct str console_output(struct console *c, uint64_t *offset);
uint64_t console_written(const struct console *c); /* bytes of output so far */
/* Called when the command has ended: reads the remaining output of the terminal, and waits for no more. */
void console_end(struct console *c);
bool console_is_over(
        const struct console *c); /* returns whether the command has ended and all its output was read */
