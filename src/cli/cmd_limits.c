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

static void add_limit(struct cli *cli, struct table *t, struct view limit)
{
        struct view max = view_get(limit, "max");
        int64_t units = view_integer(max, -1);

        (void)cli;
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
        (void)o;
        return api_table(cli, &(struct api_table){
                                      .path = "/v1/limits",
                                      .array = "limits",
                                      .none = "no limits: see drover-priority(7) for how to set some\n",
                                      .columns = columns,
                                      .column_count = sizeof(columns) / sizeof(columns[0]),
                                      .row = add_limit,
                              });
}
