/* cli: the context of every subcommand, and its exit codes.
 *
 * `drover` is one program. main.c finds the row of command/commands.c, reads the options by it and calls its
 * run(), which returns the exit code. Commands print results to stdout and everything else to stderr. A
 * struct cli is used by one thread at a time.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cli/terminal/options.h"
#include "cli/terminal/table.h"
#include "cli/terminal/view.h"

enum cli_exit {
        CLI_OK = 0,
        CLI_FAILED = 1,    /* the requested operation failed */
        CLI_USAGE = 2,     /* the call is wrong, or names an id that does not exist */
        CLI_HELD = 3,      /* `wait`: all remaining jobs are held, or wait for held ones */
        CLI_TIMEOUT = 124, /* `wait --timeout` ran out */
};

struct api;
struct cli {
        const char *dir;        /* --dir; NULL: not given */
        const char *server;     /* https://host:port, in place of $DROVER_SERVER; NULL: not given */
        const char *owner;      /* name@domain for whom the calls are made; NULL: the caller */
        bool json;              /* --json */
        bool terminal;          /* stdout is a terminal */
        bool colour;            /* colours may be used on stdout */
        unsigned width;         /* of the terminal; 0: unlimited */
        int64_t now_ms;         /* when the command began */
        struct table_form form; /* --columns, --sort, --csv, --no-header */
        struct api *api;        /* NULL until the first use: cli_api() */
};

extern const char *cli_name; /* prefix of error messages: "drover" */
/* Prints "drover: …" to stderr, and returns `code` so that a command can end in `return cli_error(CLI_USAGE,
 * …)`. */
int cli_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* prints a note in the same way; nothing has failed */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Redirects this thread's messages: each is appended to *out as a line instead of being printed; NULL ends
 * the redirection. */
void cli_say_into(struct buf *out);

/* Gives the time that an option names (human_to_time); *ret is unchanged if it was not given. Returns 0; or
 * CLI_USAGE after an error was printed. */
int cli_time(const struct options *o, const char *option, int64_t *ret_ms);

/* Refuses options of a command that one of its subcommands would ignore. subcommand: for the message, as in
 * "bank lien". names: the options that it takes, separated by spaces, beside those of every command (--dir,
 * --server and --json); tables: it takes those of tables, too. Returns 0; or CLI_USAGE after an error was
 * printed. */
int cli_check_options(const struct options *o, const char *subcommand, const char *names, bool tables);

/* Writes the buf to stdout and empties it. Errors are reported by main's flush at the end. */
void cli_print(struct buf *out);
/* Like cli_print, for sentences, one a line; a line wider than the terminal is broken between words. */
void cli_print_sentences(const struct cli *cli, struct buf *out);
/* Initialises a table in the form that the command line asks for. Returns 0; or CLI_USAGE after an error was
 * printed. */
int cli_table(const struct cli *cli, struct table *t, const struct table_column *columns, unsigned count);
/* Returns whether the listing has its default form, so that it may have lines that are not rows, and rows
 * that stand for several jobs. */
bool cli_plain(const struct cli *cli);
/* Prints the table with the terminal's width and colours; if stdout is not a terminal, without either. */
void cli_print_table(const struct cli *cli, struct table *t);
/* Prints a further table after an empty line; nothing if it has no rows or cli_plain is false. */
void cli_print_table_below(const struct cli *cli, struct table *t);
