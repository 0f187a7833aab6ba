#include "cli/client/credential.h"
#include "base/format/url.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {{"NAME", false, false},    {"TYPE", false, false},
                                              {"OWNER", false, true},    {"ADDED", false, false},
                                              {"EXPIRES", false, false}, {"FOR", false, true}};

static int add_credential(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        const char *type = options_text(o, "type"), *path = o->word_count == 3 ? o->words[2] : NULL;
        BUF_CLEANUP struct buf usual = {0}, when = {0};
        int code;

        if (!type)
                return cli_error(CLI_USAGE, "what is it? --type proxy, token, s3 or file");
        if (!path) {
                credential_usual_file(type, &usual);
                path = buf_z(&usual);
        }
        if (!*path)
                return cli_error(CLI_USAGE, "in which file is it? drover credential add NAME --type %s FILE",
                                 type);
        code = credential_send(cli, o->words[1], type, path, o, &answer);
        if (code != 0 || api_print_json(cli, &answer))
                return code;
        human_time(&when, view_integer(view_get(answer.root, "expires_ms"), 0), cli->now_ms);
        if (view_there(view_get(answer.root, "expires_ms")))
                cli_note("%s is good until %s", o->words[1], buf_z(&when));
        if (view_integer(view_get(answer.root, "released"), 0) > 0)
                cli_note("%lld jobs that were held for lack of it are released",
                         (long long)view_integer(view_get(answer.root, "released"), 0));
        return CLI_OK;
}

static void list_urls(struct view credential, struct buf *out)
{
        struct view all = view_get(credential, "urls"), one;
        size_t at = 0;

        while (view_next(all, &at, &one)) {
                if (out->n)
                        buf_char(out, ' ');
                view_text(one, out);
        }
}

static int list_credentials(struct cli *cli)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        struct view all, one;
        struct buf out BUF_CLEANUP = {0};
        size_t at = 0;
        int code = api_get(cli, "/v1/credentials", &answer);

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        if (code != 0)
                return code;
        if (api_print_json(cli, &answer))
                return CLI_OK;
        all = view_get(answer.root, "credentials");
        while (view_next(all, &at, &one)) {
                BUF_CLEANUP struct buf added = {0}, expires = {0}, urls = {0};
                struct view end = view_get(one, "expires_ms");

                table_view(&t, view_get(one, "name"));
                table_view(&t, view_get(one, "type"));
                table_view(&t, view_get(one, "owner"));
                human_time(&added, view_integer(view_get(one, "updated_ms"), 0), cli->now_ms);
                table_text(&t, buf_view(&added));
                if (view_there(end))
                        human_time(&expires, view_integer(end, 0), cli->now_ms);
                else
                        buf_addz(&expires, "unknown");
                if (view_true(view_get(one, "expired")))
                        buf_addz(&expires, " (expired)");
                table_text(&t, buf_view(&expires));
                list_urls(one, &urls);
                table_text(&t, buf_view(&urls));
                if (view_true(view_get(one, "expired")))
                        table_paint(&t, TABLE_RED);
        }
        if (table_rows(&t) > 0) {
                cli_print_table(cli, &t);
        } else {
                buf_addz(&out, "no credentials\n");
                cli_print(&out);
        }
        return CLI_OK;
}

static int drop_credential(struct cli *cli, const char *name)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        BUF_CLEANUP struct buf path = {0};
        struct err err = {""};
        int rc;

        if (!credential_name_fits(name))
                return CLI_USAGE;
        buf_addz(&path, "/v1/credentials/");
        url_escape(&path, str_of(name));
        rc = api_call(cli, &(struct api_request){.method = "DELETE", .path = buf_z(&path)}, &answer, &err);
        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        api_print_json(cli, &answer);
        return CLI_OK;
}

int cmd_credential(struct cli *cli, const struct options *o)
{
        struct str what = str_of(o->words[0]);

        if (str_eqz(what, "add") && (o->word_count == 2 || o->word_count == 3))
                return add_credential(cli, o);
        if (str_eqz(what, "list") && o->word_count == 1)
                return list_credentials(cli);
        if (str_eqz(what, "rm") && o->word_count == 2)
                return drop_credential(cli, o->words[1]);
        return cli_error(CLI_USAGE, "drover credential add NAME [FILE], list, or rm NAME");
}
