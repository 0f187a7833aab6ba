/* cli: what every subcommand is given, and the ways in which it ends.
 *
 * `drover` is one program. main.c finds the row of commands.c, reads the options by it and calls its run(),
 * which returns the exit code. Commands print to stdout what was asked for and to stderr everything else. One
 * thread.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cli/client/view.h"
#include "cli/options.h"
#include "cli/output/table.h"

enum cli_exit {
        CLI_OK = 0,
        CLI_FAILED = 1,    /* the thing asked for failed */
        CLI_USAGE = 2,     /* the call is wrong, or names an id that doesn't exist */
        CLI_TIMEOUT = 124, /* `wait --timeout` ran out */
};

struct api;
struct cli {
        const char *dir; /* --dir; NULL: not given */
        bool json;       /* --json */
        bool terminal;   /* stdout is one */
        bool colour;     /* and colours are welcome on it */
        unsigned width;  /* of the terminal; 0: unlimited */
        int64_t now_ms;  /* when the command began */
        struct api *api; /* NULL until it is needed: cli_api() */
};

extern const struct command commands[]; /* up to a row without a name */
const struct command *command_find(struct str name);

extern const char *cli_name; /* what stands before errors: "drover" */
/* Prints "drover: …" to stderr, and returns `code` so that a command can end in `return cli_error(CLI_USAGE,
 * …)`. */
int cli_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* the same, nothing has failed */

/* Writes to stdout; errors show at the end, when main flushes. Leaves the buf empty. */
void cli_print(struct buf *out);
/* The table, with the terminal's width and colours, or as it is. */
void cli_print_table(const struct cli *cli, struct table *t);
/* One more, below what was printed: behind an empty line. Nothing, if it has no rows. */
void cli_print_table_below(const struct cli *cli, struct table *t);

/* The commands, one file each: cmd_NAME.c. */
int cmd_agents(struct cli *cli, const struct options *o);
int cmd_doctor(struct cli *cli, const struct options *o);
int cmd_limits(struct cli *cli, const struct options *o);
int cmd_quote(struct cli *cli, const struct options *o);
int cmd_priority(struct cli *cli, const struct options *o);
int cmd_shares(struct cli *cli, const struct options *o);
int cmd_sim(struct cli *cli, const struct options *o);
int cmd_stores(struct cli *cli, const struct options *o);
int cmd_classad(struct cli *cli, const struct options *o);
int cmd_completion(struct cli *cli, const struct options *o);
int cmd_get(struct cli *cli, const struct options *o);
int cmd_help(struct cli *cli, const struct options *o);
int cmd_history(struct cli *cli, const struct options *o);
int cmd_checkpoint(struct cli *cli, const struct options *o);
int cmd_signal(struct cli *cli, const struct options *o);
int cmd_hold(struct cli *cli, const struct options *o);
int cmd_log(struct cli *cli, const struct options *o);
int cmd_path(struct cli *cli, const struct options *o);
int cmd_prio(struct cli *cli, const struct options *o);
int cmd_program(struct cli *cli, const struct options *o); /* server, agent */
int cmd_queue(struct cli *cli, const struct options *o);
int cmd_release(struct cli *cli, const struct options *o);
int cmd_rm(struct cli *cli, const struct options *o);
int cmd_suspend(struct cli *cli, const struct options *o);
int cmd_resume(struct cli *cli, const struct options *o);
int cmd_vacate(struct cli *cli, const struct options *o);
int cmd_show(struct cli *cli, const struct options *o);
int cmd_submit(struct cli *cli, const struct options *o);
int cmd_credential(struct cli *cli, const struct options *o);
int cmd_token(struct cli *cli, const struct options *o);
int cmd_up(struct cli *cli, const struct options *o);
int cmd_version(struct cli *cli, const struct options *o);
int cmd_wait(struct cli *cli, const struct options *o);
int cmd_why(struct cli *cli, const struct options *o);
