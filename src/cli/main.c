/* Nothing here or below asks for a locale: text is UTF-8 or bytes, and loading locale data would cost more
 * than a whole query. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "cli/client/api.h"
#include "cli/client/session_batch.h"
#include "cli/client/session_report.h"
#include "cli/command/commands.h"
#include "cli/command/help_text.h"
#include "cli/terminal/pager.h"

#define WATCH_MS 2000

static void look_at_terminal(struct cli *cli)
{
        const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
        struct winsize w;

        cli->terminal = isatty(STDOUT_FILENO) == 1;
        if (!cli->terminal)
                return;
        cli->colour = !(no_colour && *no_colour) && !(term && strcmp(term, "dumb") == 0);
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
                cli->width = w.ws_col;
}

/* Runs the command again and again, until it fails or the user has seen enough. */
static int watch(struct cli *cli, const struct command *c, const struct options *o)
{
        int code;

        for (;;) {
                cli->now_ms = clock_wall_ms();
                if (cli->terminal)
                        fputs("\033[H\033[2J", stdout);
                code = c->run(cli, o);
                if (code != CLI_OK || fflush(stdout) != 0)
                        return code;
                poll(NULL, 0, WATCH_MS);
        }
}

/* Commands that print what somebody reads, all at once. */
static bool may_be_long(const struct command *c)
{
        static const char *const names[] = {"queue", "show",   "log",    "why",    "history", "agents",
                                            "path",  "limits", "shares", "stores", "quote",   "help"};

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strcmp(c->name, names[i]) == 0)
                        return true;
        return false;
}

/* Where the server is gone the batch systems still know jobs that the file names. */
static int do_without_server(const struct options *o, const struct session_file *session)
{
        if (!session->own || session->job_count == 0)
                return CLI_FAILED;
        if (o->command->run == cmd_queue) {
                cli_note("these jobs of the session are asked for in their batch systems");
                return session_batch_list(session);
        }
        if (o->command->run == cmd_rm) {
                cli_note("these jobs of the session are ended in their batch systems");
                return session_batch_end(session);
        }
        return CLI_FAILED;
}

/* The ids of the session's requests, as if they had been given. *ret_done: all was done without the server.
 */
static int use_session(struct cli *cli, struct options *o, struct session_file *session, struct buf *ids,
                       bool *ret_done)
{
        const char *path = options_text(o, "session");
        bool last = o->command->run == cmd_resubmit, gone = false;
        int code;

        if (o->word_count)
                return cli_error(CLI_USAGE, "give ids or --session, not both");
        code = session_file_read(path, session);
        if (code == 0)
                code = session_file_use(cli, session, last, ids, &gone);
        *ret_done = code != 0 && gone;
        if (*ret_done)
                return do_without_server(o, session);
        if (code != 0)
                return code;
        session_batch_note(cli, path, session);
        MEM_GROW(o->words, o->word_cap, o->word_count + 2);
        o->words[o->word_count++] = buf_z(ids);
        return 0;
}

static int run_command(struct cli *cli, const struct command *c, int argc, char **argv)
{
        struct session_file session SESSION_FILE_CLEANUP = {0};
        struct options o OPTIONS_CLEANUP;
        struct buf out BUF_CLEANUP = {0}, ids BUF_CLEANUP = {0};
        struct err err;

        if (options_read(&o, c, argc, argv, &err) != 0)
                return cli_error(CLI_USAGE, "%s", err.text);
        if (!c->passes_on) {
                if (options_flag(&o, "help")) {
                        help_command(&out, cli, c);
                        cli_print(&out);
                        return CLI_OK;
                }
                if (options_text(&o, "dir"))
                        cli->dir = options_text(&o, "dir");
                if (options_text(&o, "server"))
                        cli->server = options_text(&o, "server");
                cli->json = options_row(c, STR("json")) && options_flag(&o, "json");
                if (options_row(c, STR("columns")))
                        cli->form = (struct table_form){.columns = options_text(&o, "columns"),
                                                        .sort = options_text(&o, "sort"),
                                                        .csv = options_flag(&o, "csv"),
                                                        .bare = options_flag(&o, "no-header")};
        }
        /* A submit makes one, and a report reads it itself. */
        if (!c->passes_on && options_row(c, STR("session")) && options_text(&o, "session") &&
            c->run != cmd_submit && c->run != cmd_report) {
                bool done = false;
                int code = use_session(cli, &o, &session, &ids, &done);

                if (code != 0 || done)
                        return code;
        }
        if (!options_row(c, STR("watch")) || !options_flag(&o, "watch")) {
                int code;

                if (cli->terminal && !cli->json && !cli->form.csv && may_be_long(c))
                        pager_start();
                code = c->run(cli, &o);
                if (c->run == cmd_wait && session.count && session.own && code != CLI_USAGE)
                        session_report_keep(cli, options_text(&o, "session"));
                return code;
        }
        return watch(cli, c, &o);
}

/* Takes --NAME=VALUE or --NAME VALUE at word *i. Returns false if another word stands there. */
static bool take_front(int argc, char **argv, int *i, const char *name, const char **ret)
{
        struct str word = str_of(argv[*i]), option = str_of(name);

        if (!str_starts(word, option))
                return false;
        if (word.n > option.n && word.p[option.n] == '=')
                *ret = argv[*i] + option.n + 1;
        else if (word.n == option.n && *i + 1 < argc)
                *ret = argv[++*i];
        else
                return false;
        return true;
}

/* What may stand before the command. Returns how many words it took, or -1 after an error. */
static int read_front(struct cli *cli, int argc, char **argv, const char **ret_instead)
{
        int i = 1;

        for (; i < argc && argv[i][0] == '-'; i++) {
                struct str word = str_of(argv[i]);

                if (str_eqz(word, "--help") || str_eqz(word, "-h")) {
                        *ret_instead = "help";
                } else if (str_eqz(word, "--version") || str_eqz(word, "-V")) {
                        *ret_instead = "version";
                } else if (!take_front(argc, argv, &i, "--dir", &cli->dir) &&
                           !take_front(argc, argv, &i, "--server", &cli->server)) {
                        cli_error(0, "\"%s\" can't stand before the command: see drover --help", argv[i]);
                        return -1;
                }
        }
        return i;
}

int main(int argc, char **argv)
{
        struct cli cli = {.now_ms = clock_wall_ms()};
        const struct command *c;
        const char *instead = NULL;
        int code, at;

        look_at_terminal(&cli);
        at = read_front(&cli, argc, argv, &instead);
        if (at < 0)
                return CLI_USAGE;
        if (instead || at == argc) {
                c = command_find(str_of(instead ? instead : "help"));
                code = run_command(&cli, c, 0, NULL);
                if (!instead)
                        code = CLI_USAGE;
        } else if ((c = command_find(str_of(argv[at])))) {
                code = run_command(&cli, c, argc - at - 1, argv + at + 1);
        } else {
                code = command_unknown(argv[at]);
        }
        api_close(&cli);
        if (fflush(stdout) != 0 || ferror(stdout))
                code = cli_error(CLI_FAILED, "the output could not be written: %s", strerror(errno));
        pager_end();
        return code;
}
