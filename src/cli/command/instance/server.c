/* drover server: status, promote and drain of servers that stand in for each other; anything else runs one.
 */
#include <string.h>

#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"
#include "cli/terminal/table.h"

static void print_mirror(struct buf *out, struct view root)
{
        struct buf peer BUF_CLEANUP = {0};
        bool leads = view_is(view_get(root, "role"), "leader"),
             mirrored = view_true(view_get(root, "mirrored"));

        view_safe(view_get(root, "peer"), &peer);
        if (view_true(view_get(root, "copying")))
                buf_printf(out, "It is copying the queue of %s.\n", buf_z(&peer));
        else if (leads && mirrored)
                buf_printf(out, "The mirror, %s, has all that it has, and each commit from now on.\n",
                           buf_z(&peer));
        else if (leads)
                buf_printf(out, "The mirror, %s, has not all that it has: this server is alone.\n",
                           buf_z(&peer));
        else if (view_is(view_get(root, "role"), "follower") && mirrored)
                buf_printf(out, "It has all that the leader, %s, has, and %s.\n", buf_z(&peer),
                           view_is(view_get(root, "takeover"), "manual") ? "leads when it is promoted"
                                                                         : "takes over when that has gone");
        else if (view_is(view_get(root, "role"), "follower"))
                buf_printf(out, "It has not all that the leader, %s, has.\n", buf_z(&peer));
        else
                buf_printf(out,
                           "It led last, and %s may have taken over: it leads when that has answered, or "
                           "when it is "
                           "promoted.\n",
                           buf_z(&peer));
        if (view_there(view_get(root, "heard_ms"))) {
                buf_addz(out, "The other one was heard ");
                human_duration(out, view_integer(view_get(root, "heard_ms"), 0));
                buf_addz(out, " ago.\n");
        } else {
                buf_addz(out, "The other one was not heard since the start of this one.\n");
        }
}

static const struct table_column backend_columns[] = {{"BACK END", false, true},
                                                      {"STATE", false, false},
                                                      {"JOBS", true, false},
                                                      {"SERVER", false, true},
                                                      {"WHY", false, true, .wraps = true}};

static void print_backends(struct cli *cli, struct view backends)
{
        struct table t TABLE_CLEANUP = {0};
        struct view one;
        size_t at = 0;

        table_init(&t, backend_columns, sizeof(backend_columns) / sizeof(backend_columns[0]));
        while (view_next(backends, &at, &one)) {
                struct view state = view_get(one, "state"), why = view_get(one, "why");

                table_view(&t, view_get(one, "name"));
                table_view(&t, state);
                if (view_is(state, "unreachable") || view_is(state, "failed"))
                        table_paint(&t, TABLE_RED);
                else if (!view_is(state, "connected"))
                        table_paint(&t, TABLE_YELLOW);
                table_view(&t, view_get(one, "jobs"));
                table_view(&t, view_get(one, "server"));
                if (view_there(why))
                        table_view(&t, why);
                else
                        table_text(&t, STR(""));
                table_end_row(&t);
        }
        if (table_rows(&t) > 0)
                cli_print_table(cli, &t);
}

static int print_status(struct cli *cli, struct api_answer *a)
{
        struct buf out BUF_CLEANUP = {0};
        struct view root = a->root;

        if (api_print_json(cli, a))
                return CLI_OK;
        buf_addz(&out, "role: ");
        view_safe(view_get(root, "role"), &out);
        buf_char(&out, '\n');
        if (view_is(view_get(root, "kind"), "mirror"))
                print_mirror(&out, root);
        else if (view_is(view_get(root, "kind"), "standby"))
                buf_addz(&out, "Servers that stand by on its database take over by themselves.\n");
        else
                buf_addz(&out, "No other server stands in for it.\n");
        cli_print(&out);
        print_backends(cli, view_get(root, "backends"));
        return CLI_OK;
}

static int status(struct cli *cli)
{
        struct api_answer a API_ANSWER_CLEANUP = {0};
        int code = api_get(cli, "/v1/server/status", &a);

        return code == CLI_OK ? print_status(cli, &a) : code;
}

static int promote(struct cli *cli, bool force)
{
        struct api_answer a API_ANSWER_CLEANUP = {0};
        int code = api_post(cli, force ? "/v1/server/promote?force=1" : "/v1/server/promote", STR("{}"), &a);

        return code == CLI_OK ? print_status(cli, &a) : code;
}

static int drain(struct cli *cli)
{
        struct api_answer a API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0};
        int code = api_post(cli, "/v1/server/drain", STR("{}"), &a);

        if (code != CLI_OK || api_print_json(cli, &a))
                return code;
        buf_addz(&out,
                 "the other server takes over; this one ends, and stands by when it is started again\n");
        cli_print(&out);
        return CLI_OK;
}

/* Takes an option with a value, as --dir FOLDER or --dir=FOLDER. */
static bool take(const struct options *o, size_t *at, const char *name, const char **ret)
{
        size_t n = strlen(name);
        const char *word = o->words[*at];

        if (strncmp(word, name, n) != 0)
                return false;
        if (word[n] == '=')
                *ret = word + n + 1;
        else if (!word[n] && *at + 1 < o->word_count)
                *ret = o->words[++*at];
        else
                return false;
        return true;
}

/* Reads the options behind the subcommand. Returns 0, or an exit code. */
static int read_options(struct cli *cli, const struct options *o, bool *ret_force)
{
        bool may_force = strcmp(o->words[0], "promote") == 0;

        for (size_t i = 1; i < o->word_count; i++) {
                if (strcmp(o->words[i], "--json") == 0)
                        cli->json = true;
                else if (may_force && strcmp(o->words[i], "--force") == 0)
                        *ret_force = true;
                else if (!take(o, &i, "--dir", &cli->dir) && !take(o, &i, "--server", &cli->server))
                        return cli_error(CLI_USAGE, "unexpected argument \"%s\": see drover help server",
                                         o->words[i]);
        }
        return 0;
}

int cmd_server(struct cli *cli, const struct options *o)
{
        const char *what = o->word_count ? o->words[0] : "";
        bool force = false;
        int code;

        if (strcmp(what, "status") != 0 && strcmp(what, "promote") != 0 && strcmp(what, "drain") != 0)
                return cmd_program(cli, o);
        code = read_options(cli, o, &force);
        if (code != 0)
                return code;
        return *what == 's' ? status(cli) : *what == 'p' ? promote(cli, force) : drain(cli);
}
