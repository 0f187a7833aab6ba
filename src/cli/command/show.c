#include <stdio.h>

#include "cli/client/api.h"
#include "cli/client/ids.h"
#include "cli/client/output.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {{"", false, false}, {"", false, false}};

/* Attributes of an ad in JSON: literals as they are, expressions as "/Expr(…)/". */
static void add_attribute(struct buf *out, struct str name, struct view value)
{
        struct buf text BUF_CLEANUP = {0};
        struct str t;

        if (view_type(value) == VIEW_STRING)
                view_text(value, &text);
        t = buf_view(&text);
        buf_str(out, name);
        buf_addz(out, " = ");
        if (str_starts(t, STR("/Expr(")) && str_ends(t, STR(")/")))
                human_safe(out, str_skip(str_head(t, t.n - 2), 6));
        else
                buf_str(out, value.text);
        buf_char(out, '\n');
}

static void add_ad(struct buf *out, struct view ad)
{
        struct view value;
        struct str name;
        size_t at = 0;

        while (view_member(ad, &at, &name, &value))
                add_attribute(out, name, value);
}

/* A part's attributes are expression text already. */
static void add_part(struct buf *out, struct view part, const struct options *o)
{
        struct view attributes = view_get(part, "attributes"), value;
        struct str name;
        size_t at = 0;

        if (!options_flag(o, "ad")) {
                buf_char(out, '\n');
                human_count(out, view_integer(view_get(part, "rows"), 1), "row", "rows");
                buf_addz(out, " of ");
                human_count(out, view_integer(view_get(part, "steps"), 1), "job", "jobs");
                buf_addz(out, ":\n");
        }
        while (view_member(attributes, &at, &name, &value)) {
                struct buf text BUF_CLEANUP = {0};

                view_text(value, &text);
                buf_printf(out, STR_FMT " = ", STR_ARG(name));
                human_safe(out, buf_view(&text));
                buf_char(out, '\n');
        }
}

static bool shown_elsewhere(struct str key)
{
        return str_eqz(key, "ad") || str_eqz(key, "parts");
}

/* Every field of the answer; those that end in _ms as times. */
static void print_fields(struct cli *cli, struct view root)
{
        struct table t TABLE_CLEANUP;
        struct view value;
        struct str key;
        size_t at = 0;

        table_init(&t, columns, 2);
        t.bare = true;
        while (view_member(root, &at, &key, &value)) {
                struct buf text BUF_CLEANUP = {0};

                if (!view_there(value) || shown_elsewhere(key))
                        continue;
                table_text(&t, str_ends(key, STR("_ms")) ? str_head(key, key.n - 3) : key);
                table_paint(&t, TABLE_BOLD);
                if (str_ends(key, STR("_ms")))
                        human_time(&text, view_integer(value, 0), cli->now_ms);
                else
                        view_text(value, &text);
                table_text(&t, buf_view(&text));
        }
        cli_print_table(cli, &t);
}

static void print_script(struct view script)
{
        struct buf text BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct str rest, line;

        view_text(script, &text);
        for (rest = buf_view(&text); rest.n && str_cut(&rest, '\n', &line);) {
                human_safe(&out, line);
                buf_char(&out, '\n');
        }
        cli_print(&out);
}

#define LAST_LINES 10

/* What a job has printed last, or the one job of a request. */
static void add_printed(struct cli *cli, struct view root, struct buf *out)
{
        struct buf job BUF_CLEANUP = {0};
        size_t before = out->n;
        bool whole = view_there(view_get(root, "parts"));

        if (whole && view_integer(view_get(root, "jobs"), 0) != 1)
                return;
        view_text(view_get(root, "id"), &job);
        buf_addz(&job, whole ? ".0" : "");
        buf_char(out, '\n');
        if (!output_show_last(cli, buf_z(&job), NULL, LAST_LINES, "  ", out))
                buf_truncate(out, before);
}

static void print_one(struct cli *cli, const struct options *o, struct view root)
{
        struct view parts = view_get(root, "parts"), part;
        struct buf out BUF_CLEANUP = {0};
        size_t at = 0;

        if (options_flag(o, "script")) {
                print_script(view_get(root, "script"));
                return;
        }
        if (!options_flag(o, "ad"))
                print_fields(cli, root);
        if (!options_flag(o, "ad"))
                add_printed(cli, root, &out);
        while (view_next(parts, &at, &part))
                add_part(&out, part, o);
        if (view_there(view_get(root, "ad"))) {
                if (!options_flag(o, "ad"))
                        buf_char(&out, '\n');
                add_ad(&out, view_get(root, "ad"));
        }
        cli_print(&out);
}

int cmd_show(struct cli *cli, const struct options *o)
{
        struct buf json BUF_CLEANUP = {0};
        struct err err;

        for (size_t i = 0; i < o->word_count; i++) {
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                struct buf path BUF_CLEANUP = {0};
                struct id id;
                int code;

                if (id_parse(str_of(o->words[i]), &id, &err) != 0)
                        return cli_error(CLI_USAGE, "%s", err.text);
                if (id.first != id.last)
                        return cli_error(CLI_USAGE, "%s is several jobs: list them with drover queue %s",
                                         o->words[i], o->words[i]);
                if (options_flag(o, "script"))
                        buf_printf(&path, "/v1/jobs/%s%s/script", o->words[i], id.whole ? ".0" : "");
                else
                        buf_printf(&path, "/v1/%s/%s", id.whole ? "requests" : "jobs", o->words[i]);
                code = api_get(cli, buf_z(&path), &answer);
                if (code != 0)
                        return code;
                if (cli->json && o->word_count > 1) {
                        buf_addz(&json, i == 0 ? "[" : ",\n");
                        buf_str(&json, answer.root.text);
                } else if (cli->json) {
                        buf_str(&json, answer.root.text);
                } else {
                        if (i > 0)
                                buf_char(&json, '\n');
                        cli_print(&json);
                        print_one(cli, o, answer.root);
                }
        }
        if (cli->json) {
                buf_addz(&json, o->word_count > 1 ? "]\n" : "\n");
                cli_print(&json);
        }
        return CLI_OK;
}
