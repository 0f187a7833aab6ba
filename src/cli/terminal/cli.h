/* cli: what every subcommand is given, and the ways in which it ends.
 *
 * `drover` is one program. main.c finds the row of command/commands.c, reads the options by it and calls its
 * run(), which returns the exit code. Commands print to stdout what was asked for and to stderr everything
 * else. One thread has a struct cli at a time.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cli/terminal/options.h"
#include "cli/terminal/table.h"
#include "cli/terminal/view.h"

enum cli_exit {
        CLI_OK = 0,
        CLI_FAILED = 1,    /* the thing asked for failed */
        CLI_USAGE = 2,     /* the call is wrong, or names an id that doesn't exist */
        CLI_HELD = 3,      /* `wait`: all that is left is held */
        CLI_TIMEOUT = 124, /* `wait --timeout` ran out */
};

struct api;
struct cli {
        const char *dir;        /* --dir; NULL: not given */
        const char *server;     /* https://host:port, in place of $DROVER_SERVER; NULL: not given */
        bool json;              /* --json */
        bool terminal;          /* stdout is one */
        bool colour;            /* and colours are welcome on it */
        unsigned width;         /* of the terminal; 0: unlimited */
        int64_t now_ms;         /* when the command began */
        struct table_form form; /* --columns, --sort, --csv, --no-header */
        struct api *api;        /* NULL until it is needed: cli_api() */
};

extern const char *cli_name; /* what stands before errors: "drover" */
/* Prints "drover: …" to stderr, and returns `code` so that a command can end in `return cli_error(CLI_USAGE,
 * …)`. */
int cli_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* the same, nothing has failed */
/* From now on this thread's messages are appended to *out, a line each, instead of being printed; NULL ends
 * that. */
void cli_say_into(struct buf *out);

/* Writes to stdout; errors show at the end, when main flushes. Leaves the buf empty. */
void cli_print(struct buf *out);
/* table_init in the form that the call asks for. Returns 0; or CLI_USAGE after an error was printed. */
int cli_table(const struct cli *cli, struct table *t, const struct table_column *columns, unsigned count);
/* Nobody chose how the listing looks: lines that are no rows, and rows that stand for several, are welcome.
 */
bool cli_plain(const struct cli *cli);
/* The table, with the terminal's width and colours, or as it is. */
void cli_print_table(const struct cli *cli, struct table *t);
/* One more, below what was printed: behind an empty line. Nothing, if it has no rows or cli_plain is false.
 */
void cli_print_table_below(const struct cli *cli, struct table *t);
