#include <math.h>

#include "cli/client/api.h"
#include "cli/client/jobs.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column component_columns[] = {
        {"COMPONENT", false, true}, {"POINTS", true, false}, {"VALUE", true, false}, {"OF", false, true}};
static const struct table_column account_columns[] = {{"ACCOUNT", false, true}, {"SHARES", true, false},
                                                      {"PART", true, false},    {"HOURS", true, false},
                                                      {"LATELY", true, false},  {"NOW", true, false},
                                                      {"RUNNING", true, false}, {"WAITING", true, false}};

/* Adds a number with at most `digits` decimals and no trailing zeros. */
static void priority_add_number(struct table *t, double v, int digits)
{
        struct buf text BUF_CLEANUP = {0};

        if (fabs(v) >= 1e7 || (v != 0 && fabs(v) < 0.001)) {
                buf_printf(&text, "%.3g", v);
        } else {
                buf_printf(&text, "%.*f", digits, v == 0 ? 0 : v);
                while (digits > 0 && text.p[text.n - 1] == '0')
                        buf_truncate(&text, text.n - 1);
                if (text.p[text.n - 1] == '.')
                        buf_truncate(&text, text.n - 1);
        }
        table_text(t, buf_view(&text));
}

static void add_component(struct table *t, struct view one)
{
        table_view(t, view_get(one, "name"));
        priority_add_number(t, view_real(view_get(one, "points")), 3);
        priority_add_number(t, view_real(view_get(one, "value")), 3);
        table_view(t, view_get(one, "of"));
}

int cmd_priority(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        struct view list, item;
        size_t at = 0;
        int code;

        table_init(&t, component_columns, 4);
        code = jobs_get(cli, o->words[0], "priority", &answer);
        if (code != 0)
                return code;
        if (api_print_json(cli, &answer))
                return CLI_OK;
        buf_addz(&out, "account ");
        view_text(view_get(answer.root, "account"), &out);
        buf_printf(&out, ", %.4g points, ", view_real(view_get(answer.root, "total")));
        if (view_true(view_get(answer.root, "ahead_more")))
                buf_addz(&out, "more than ");
        human_count(&out, view_integer(view_get(answer.root, "ahead"), 0), "job before it", "jobs before it");
        buf_addz(&out, " in the order\n\n");
        list = view_get(answer.root, "components");
        while (view_next(list, &at, &item))
                add_component(&t, item);
        cli_print(&out);
        cli_print_table(cli, &t);
        return CLI_OK;
}

static void priority_add_account(struct cli *cli, struct table *t, struct view one)
{
        (void)cli;
        table_view(t, view_get(one, "name"));
        priority_add_number(t, view_real(view_get(one, "shares")), 3);
        table_format(t, "%.1f%%", 100 * view_real(view_get(one, "part")));
        priority_add_number(t, view_real(view_get(one, "usage_s")) / 3600, 2);
        priority_add_number(t, view_real(view_get(one, "mean_cpus")), 2);
        priority_add_number(t, view_real(view_get(one, "cpus")), 2);
        table_view(t, view_get(one, "running"));
        table_view(t, view_get(one, "waiting"));
}

int cmd_shares(struct cli *cli, const struct options *o)
{
        (void)o;
        return api_table(cli, &(struct api_table){
                                      .path = "/v1/accounts",
                                      .array = "accounts",
                                      .none = "nobody has used anything yet\n",
                                      .columns = account_columns,
                                      .column_count = sizeof(account_columns) / sizeof(account_columns[0]),
                                      .row = priority_add_account,
                              });
}
