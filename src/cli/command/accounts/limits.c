#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {{"LIMIT", false, true},
                                              {"USED", true, false},
                                              {"UNITS", true, false},
                                              {"WAITING", true, false},
                                              {"BY", false, true}};

static const struct table_column spool_columns[] = {{"UPLOADED BY", false, true},
                                                    {"FILES", true, false},
                                                    {"UNDER WAY", true, false},
                                                    {"MAY HAVE", true, false}};

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

static int print_limits(struct cli *cli, struct view limits)
{
        struct buf none BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        struct view limit;
        size_t at = 0;
        int code = cli_table(cli, &t, columns, sizeof(columns) / sizeof(columns[0]));

        while (code == 0 && view_next(limits, &at, &limit))
                add_limit(&t, limit);
        buf_addz(&none, "no limits: see drover-priority(7) for how to set some\n");
        if (code == 0 && (table_rows(&t) > 0 || !cli_plain(cli)))
                cli_print_table(cli, &t);
        else if (code == 0)
                cli_print(&none);
        return code;
}

static void add_bytes(struct table *t, struct view bytes)
{
        struct buf text BUF_CLEANUP = {0};

        human_bytes(&text, view_integer(bytes, 0));
        table_text(t, buf_view(&text));
}

static void print_spool(struct cli *cli, struct view owners)
{
        struct table t TABLE_CLEANUP;
        struct view x;
        size_t at = 0;

        table_init(&t, spool_columns, sizeof(spool_columns) / sizeof(spool_columns[0]));
        while (view_next(owners, &at, &x)) {
                table_view(&t, view_get(x, "owner"));
                add_bytes(&t, view_get(x, "bytes"));
                add_bytes(&t, view_get(x, "uploading"));
                add_bytes(&t, view_get(x, "max"));
        }
        cli_print_table_below(cli, &t);
}

int cmd_limits(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        int code = api_get(cli, "/v1/limits", &answer);

        (void)o;
        if (code != 0 || api_print_json(cli, &answer))
                return code;
        code = print_limits(cli, view_get(answer.root, "limits"));
        if (code == 0)
                print_spool(cli, view_get(answer.root, "spool"));
        return code;
}
