/* drover config: checks the server's settings, and lists the presets that they offer to users. */
#include <string.h>

#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {{"KIND", false, false},    {"NAME", false, false},
                                              {"DEFAULT", false, false}, {"YOURS", false, false},
                                              {"USERS", false, true},    {"STANDS FOR", false, true}};

static void join(struct view list, struct buf *out)
{
        struct view one;
        size_t at = 0;

        while (view_next(list, &at, &one)) {
                if (out->n)
                        buf_addz(out, ", ");
                view_safe(one, out);
        }
}

/* Appends the attributes that a request gets from the preset, as one line. */
static void stands_for(struct view preset, struct buf *out)
{
        struct view attributes = view_get(preset, "attributes"), value;
        struct buf queues BUF_CLEANUP = {0};
        struct str name;
        size_t at = 0;

        join(view_get(preset, "queues"), &queues);
        if (queues.n)
                buf_printf(out, "queues %s", buf_z(&queues));
        while (view_member(attributes, &at, &name, &value)) {
                buf_printf(out, "%s" STR_FMT " = ", out->n ? "; " : "", STR_ARG(name));
                view_safe(value, out);
        }
        if (view_there(view_get(preset, "environment"))) {
                buf_printf(out, "%senvironment ", out->n ? "; " : "");
                view_safe(view_get(preset, "environment"), out);
        }
        if (view_there(view_get(preset, "condition"))) {
                buf_printf(out, "%s%s", out->n ? "; " : "",
                           view_is(view_get(preset, "kind"), "catalog") ? "files of " : "places where ");
                view_safe(view_get(preset, "condition"), out);
        }
}

static void add_preset(struct table *t, struct view preset)
{
        struct buf users BUF_CLEANUP = {0}, what BUF_CLEANUP = {0};

        join(view_get(preset, "users"), &users);
        stands_for(preset, &what);
        table_view(t, view_get(preset, "kind"));
        table_view(t, view_get(preset, "name"));
        table_text(t, view_true(view_get(preset, "default")) ? STR("yes") : STR("-"));
        table_text(t, view_true(view_get(preset, "may_use")) ? STR("yes") : STR("no"));
        table_text(t, users.n ? buf_view(&users) : STR("everybody"));
        table_text(t, buf_view(&what));
}

static int print_presets(struct cli *cli, struct view config)
{
        struct buf none BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        struct view presets = view_get(config, "presets"), one;
        size_t at = 0;
        int code = cli_table(cli, &t, columns, sizeof(columns) / sizeof(columns[0]));

        while (code == 0 && view_next(presets, &at, &one))
                add_preset(&t, one);
        buf_addz(&none,
                 "the settings name no initializers, applications, dispatchers, virtual queues or policies; "
                 "placement is ");
        view_safe(view_get(config, "placement"), &none);
        buf_char(&none, '\n');
        if (code == 0 && (table_rows(&t) > 0 || !cli_plain(cli)))
                cli_print_table(cli, &t);
        else if (code == 0)
                cli_print(&none);
        return code;
}

static int show(struct cli *cli)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        int code = api_get(cli, "/v1/config", &answer);

        if (code != 0 || api_print_json(cli, &answer))
                return code;
        return print_presets(cli, answer.root);
}

int cmd_config(struct cli *cli, const struct options *o)
{
        if (strcmp(o->words[0], "check") == 0)
                return program_check_config(cli, o->word_count > 1 ? o->words[1] : NULL);
        if (strcmp(o->words[0], "show") == 0 && o->word_count == 1)
                return show(cli);
        return cli_error(CLI_USAGE, "drover config check [FILE], or drover config show");
}
