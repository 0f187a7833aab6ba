#include "cli/client/api.h"
#include "cli/client/jobs.h"
#include "cli/command/commands.h"

static const struct table_column columns[] = {
        {"TIME", false, false}, {"EVENT", false, false}, {"DETAILS", false, true, false, true}};

/* Every field that has no column of its own, as key=value. */
static void add_details(struct buf *out, struct view event)
{
        struct view value;
        struct str key;
        size_t at = 0;

        while (view_member(event, &at, &key, &value)) {
                if (!view_there(value) || str_eqz(key, "seq") || str_eqz(key, "at_ms") ||
                    str_eqz(key, "event"))
                        continue;
                if (out->n)
                        buf_addz(out, "  ");
                buf_str(out, key);
                buf_char(out, '=');
                view_text(value, out);
        }
}

int cmd_log(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        struct view events, event;
        size_t at = 0;
        int code;

        code = cli_table(cli, &t, columns, 3);
        if (code == 0)
                code = jobs_get(cli, o->words[0], "log", &answer);
        if (code != 0)
                return code;
        if (api_print_json(cli, &answer))
                return CLI_OK;
        events = view_get(answer.root, "events");
        while (view_next(events, &at, &event)) {
                struct buf text BUF_CLEANUP = {0};

                table_time(&t, view_integer(view_get(event, "at_ms"), 0), cli->now_ms);
                table_view(&t, view_get(event, "event"));
                add_details(&text, event);
                table_text(&t, buf_view(&text));
        }
        cli_print_table(cli, &t);
        return CLI_OK;
}
