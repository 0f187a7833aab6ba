#include "cli/api.h"

static const struct table_column columns[] = {{"LIMIT", false, true},
                                              {"USED", true, false},
                                              {"UNITS", true, false},
                                              {"WAITING", true, false},
                                              {"BY", false, true}};

static void add_users(struct table *t, struct view users)
{
        struct buf text BUF_CLEANUP = {0};
        struct view user;
        size_t at = 0;

        while (view_next(users, &at, &user)) {
                if (text.n)
                        buf_addz(&text, ", ");
                view_text(view_get(user, "owner"), &text);
                buf_char(&text, ' ');
                view_text(view_get(user, "units"), &text);
        }
        table_text(t, buf_view(&text));
}

static void add_limit(struct table *t, struct view limit)
{
        struct view max = view_get(limit, "max");
        int64_t units = view_integer(max, -1);

        table_view(t, view_get(limit, "name"));
        table_view(t, view_get(limit, "used"));
        if (units >= 0 && view_integer(view_get(limit, "used"), 0) >= units)
                table_paint(t, TABLE_YELLOW);
        if (units >= 0)
                table_view(t, max);
        else
                table_text(t, STR("-"));
        table_view(t, view_get(limit, "waiting"));
        add_users(t, view_get(limit, "users"));
}

int cmd_limits(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        struct view limits, limit;
        size_t at = 0;
        int code = api_get(cli, "/v1/limits", &answer);

        (void)o;
        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        if (code != 0)
                return code;
        if (api_print_json(cli, &answer))
                return CLI_OK;
        limits = view_get(answer.root, "limits");
        while (view_next(limits, &at, &limit))
                add_limit(&t, limit);
        if (table_rows(&t) > 0)
                cli_print_table(cli, &t);
        else
                buf_addz(&out, "no limits: see drover-priority(7) for how to set some\n");
        cli_print(&out);
        return CLI_OK;
}
