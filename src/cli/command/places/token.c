#include "base/format/json.h"
#include "base/format/url.h"
#include "cli/client/api.h"
#include "cli/client/instance.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {{"ID", false, false},  {"KIND", false, false},
                                              {"NAME", false, true}, {"ROLE", false, false},
                                              {"USES", true, false}, {"EXPIRES", false, false}};

/* Prints how to start the agent, with an address that the server has for agents, if it runs on this
 * machine. */
static void say_what_next(const struct cli *cli)
{
        struct buf dir BUF_CLEANUP = {0}, text BUF_CLEANUP = {0}, address BUF_CLEANUP = {0};
        struct view server, item;
        struct err err;
        size_t at = 0;

        if (instance_dir(cli->dir, &dir, &err) != 0 || instance_read(buf_view(&dir), &text, &server) != 0)
                return;
        /* The last address is the one for other machines, if there is one. */
        while (view_next(view_get(server, "agents"), &at, &item)) {
                buf_reset(&address);
                view_text(item, &address);
        }
        if (address.n)
                cli_note("with it in a file that only its owner reads: drover-agent --server %s --dir FOLDER "
                         "--token-file FILE",
                         buf_z(&address));
        if (str_starts(buf_view(&address), STR("unix:")))
                cli_note("for agents on other machines the server needs --listen HOST:PORT, see droverd(8)");
}

static int make_token(struct cli *cli, const struct options *o, bool agent)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0}, out BUF_CLEANUP = {0}, when BUF_CLEANUP = {0};
        struct json j = {.out = &body};
        static const char *const ceiling[] = {"owners", "tags", "labels", "most", NULL};
        int64_t expires_s = options_number(o, "expires", 1);
        int64_t uses = options_number(o, "uses", 1);
        int code;

        if (agent && !options_text(o, "name"))
                return cli_error(CLI_USAGE, "what is the agent called? drover token agent --name NAME");
        if (agent && options_text(o, "role"))
                return cli_error(CLI_USAGE, "--role is for user tokens");
        for (size_t i = 0; ceiling[i]; i++)
                if (!agent && options_text(o, ceiling[i]))
                        return cli_error(CLI_USAGE, "--%s is for tokens of agents", ceiling[i]);
        if (uses < 1 || expires_s < 1)
                return cli_error(CLI_USAGE, "a token must be usable: --uses and --expires are at "
                                            "least 1");
        json_open(&j, '{');
        json_kstrz(&j, "kind", agent ? "agent" : "user");
        if (options_text(o, "name"))
                json_kstrz(&j, "name", options_text(o, "name"));
        if (agent || options_flag(o, "uses"))
                json_kint(&j, "uses", uses);
        if (options_flag(o, "expires"))
                json_kint(&j, "expires_s", expires_s);
        for (size_t i = 0; ceiling[i]; i++)
                if (options_text(o, ceiling[i]))
                        json_kstrz(&j, ceiling[i], options_text(o, ceiling[i]));
        if (options_text(o, "role"))
                json_kstrz(&j, "role", options_text(o, "role"));
        json_close(&j, '}');
        code = api_post(cli, "/v1/tokens", buf_view(&body), &answer);
        if (code != 0)
                return code;
        if (cli->json) {
                buf_str(&out, answer.root.text);
        } else {
                view_text(view_get(answer.root, "token"), &out);
                human_time(&when, view_integer(view_get(answer.root, "expires_ms"), 0), cli->now_ms);
                cli_note("keep it secret; it is good until %s, and not shown again", buf_z(&when));
                if (agent)
                        say_what_next(cli);
        }
        buf_char(&out, '\n');
        cli_print(&out);
        return CLI_OK;
}

static int list_tokens(struct cli *cli)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        struct view tokens, token;
        size_t at = 0;
        int code = api_get(cli, "/v1/tokens", &answer);

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        if (code != 0)
                return code;
        if (api_print_json(cli, &answer))
                return CLI_OK;
        tokens = view_get(answer.root, "tokens");
        while (view_next(tokens, &at, &token)) {
                struct buf when BUF_CLEANUP = {0};

                table_view(&t, view_get(token, "id"));
                table_view(&t, view_get(token, "kind"));
                table_view(&t, view_get(token, "name"));
                table_view(&t, view_get(token, "role"));
                table_view(&t, view_get(token, "uses"));
                human_time(&when, view_integer(view_get(token, "expires_ms"), 0), cli->now_ms);
                table_text(&t, buf_view(&when));
        }
        cli_print_table(cli, &t);
        return CLI_OK;
}

static int token_revoke(struct cli *cli, const char *id)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct err err = {""};
        int rc;

        buf_addz(&path, "/v1/tokens/");
        url_escape(&path, str_of(id));
        rc = api_call(cli, &(struct api_request){.method = "DELETE", .path = buf_z(&path)}, &answer, &err);
        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        if (cli->json && answer.root.text.n) {
                buf_char(&answer.body, '\n');
                cli_print(&answer.body);
        }
        return CLI_OK;
}

int cmd_token(struct cli *cli, const struct options *o)
{
        struct str what = str_of(o->words[0]);
        bool is_revoke = str_eqz(what, "revoke");

        if (is_revoke && o->word_count != 2)
                return cli_error(CLI_USAGE,
                                 "which one? drover token revoke ID, with an id of drover token list");
        if (!is_revoke && o->word_count == 2 && !str_eqz(what, "list"))
                return cli_error(CLI_USAGE, "unexpected argument \"%s\": the name is --name %s", o->words[1],
                                 o->words[1]);
        if (!is_revoke && o->word_count > 1)
                return cli_error(CLI_USAGE, "unexpected argument \"%s\": drover token %s", o->words[1],
                                 o->command->usage);
        if (is_revoke)
                return token_revoke(cli, o->words[1]);
        if (str_eqz(what, "agent") || str_eqz(what, "user"))
                return make_token(cli, o, str_eqz(what, "agent"));
        if (str_eqz(what, "list"))
                return list_tokens(cli);
        return cli_error(CLI_USAGE, "drover token %s: not \"%s\"", o->command->usage, o->words[0]);
}
