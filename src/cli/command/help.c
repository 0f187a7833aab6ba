/* help, version and completion: commands about the program itself. */
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/command/completion.h"
#include "cli/command/help_text.h"

int cmd_help(struct cli *cli, const struct options *o)
{
        struct buf out BUF_CLEANUP = {0};
        const struct command *c;

        if (o->word_count == 0) {
                help_all(&out, cli);
        } else {
                c = command_find(str_of(o->words[0]));
                if (!c)
                        return command_unknown(o->words[0]);
                help_command(&out, cli, c);
        }
        cli_print(&out);
        return CLI_OK;
}

int cmd_version(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0};
        struct view version;

        (void)o;
        /* A missing server is not an error here. */
        api_call(cli, &(struct api_request){.path = "/v1/server", .timeout_ms = 2000}, &answer, NULL);
        version = view_get(answer.root, "version");
        if (cli->json) {
                buf_printf(&out, "{\"version\":\"%s\",\"server\":" STR_FMT "}\n", DROVER_VERSION,
                           STR_ARG(view_there(version) ? version.text : STR("null")));
        } else {
                buf_addz(&out, "drover " DROVER_VERSION);
                if (view_there(version)) {
                        buf_addz(&out, ", server ");
                        view_text(version, &out);
                }
                buf_char(&out, '\n');
        }
        cli_print(&out);
        return CLI_OK;
}

static int add_id(void *arg, struct view request)
{
        view_text(view_get(request, "id"), arg);
        buf_char(arg, '\n');
        return 0;
}

static int print_ids(struct cli *cli, struct buf *out)
{
        struct buf path BUF_CLEANUP = {0};

        buf_addz(&path, "/v1/requests");
        return api_list(cli, &(struct api_list){.path = &path,
                                                .array = "requests",
                                                .cursor = "after",
                                                .limit = 1000,
                                                .each = add_id,
                                                .arg = out});
}

int cmd_completion(struct cli *cli, const struct options *o)
{
        struct str what = str_of(o->words[0]);
        struct buf out BUF_CLEANUP = {0};
        const struct command *c;
        int code = CLI_OK;

        if (str_eqz(what, "ids")) {
                code = print_ids(cli, &out);
        } else if (str_eqz(what, "man") && o->word_count == 1) {
                help_page_commands(&out);
        } else if (str_eqz(what, "man")) {
                c = command_find(str_of(o->words[1]));
                if (!c)
                        return cli_error(CLI_USAGE, "there is no command \"%s\": see drover --help",
                                         o->words[1]);
                help_page(&out, c);
        } else if (!completion_script(&out, what)) {
                return cli_error(CLI_USAGE, "drover completion %s, not \"%s\"", o->command->usage,
                                 o->words[0]);
        }
        cli_print(&out);
        return code;
}
