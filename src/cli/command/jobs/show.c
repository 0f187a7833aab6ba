#include <stdio.h>

#include "classad/expr.h"
#include "cli/client/api.h"
#include "cli/client/ids.h"
#include "cli/command/commands.h"
#include "cli/command/jobs/show_job.h"
#include "cli/terminal/cost.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {{"", false, false}, {"", false, true, .wraps = true}};

static void add_ad(struct buf *out, struct view ad)
{
        struct view value;
        struct str name;
        size_t at = 0;

        while (view_member(ad, &at, &name, &value)) {
                buf_str(out, name);
                buf_addz(out, " = ");
                view_expression(value, out);
                buf_char(out, '\n');
        }
}

/* The attributes of a part are expression texts. */
static void add_part(struct buf *out, struct view part)
{
        struct view attributes = view_get(part, "attributes"), value;
        struct str name;
        size_t at = 0;

        while (view_member(attributes, &at, &name, &value)) {
                struct buf text BUF_CLEANUP = {0};

                view_text(value, &text);
                buf_printf(out, STR_FMT " = ", STR_ARG(name));
                human_safe(out, buf_view(&text));
                buf_char(out, '\n');
        }
}

/* The labels of the page for the attributes of a part. */
static const struct {
        const char *attribute, *label;
} of_parts[] = {{"Cmd", "command"},      {"Arguments", "arguments"},  {"Iwd", "folder"},
                {"RequestCpus", "cpus"}, {"RequestMemory", "memory"}, {"RequestDisk", "disk"},
                {"RequestGPUs", "gpus"}, {"ContainerImage", "image"}, {"TransferInput", "inputs"}};

/* Appends what a string literal means, or any other expression as it is. */
static void add_meaning(struct buf *out, struct str expression)
{
        struct symbols *symbols = symbols_new();
        struct expr *e = NULL;
        struct value v;

        if (expr_parse(symbols, expression, &e, NULL) == 0 && expr_literal(e, &v) && v.type == VALUE_STRING)
                human_safe(out, v.string);
        else
                human_safe(out, expression);
        expr_free(e);
        symbols_free(symbols);
}

static void add_part_lines(struct table *t, struct view part)
{
        struct view attributes = view_get(part, "attributes");
        struct buf text BUF_CLEANUP = {0};
        int64_t rows = view_integer(view_get(part, "rows"), 1),
                steps = view_integer(view_get(part, "steps"), 1);

        table_text(t, STR("queued"));
        table_paint(t, TABLE_BOLD);
        if (rows > 1) {
                human_count(&text, rows, "item", "items");
                buf_addz(&text, steps > 1 ? " of " : "");
        }
        if (rows <= 1 || steps > 1)
                human_count(&text, steps, "job", "jobs");
        table_text(t, buf_view(&text));
        for (size_t i = 0; i < sizeof(of_parts) / sizeof(of_parts[0]); i++) {
                struct view v = view_get(attributes, of_parts[i].attribute);
                struct buf meant BUF_CLEANUP = {0};
                int64_t size;

                if (!view_there(v))
                        continue;
                table_text(t, str_of(of_parts[i].label));
                table_paint(t, TABLE_BOLD);
                buf_reset(&text);
                view_text(v, &text);
                if ((str_eqz(str_of(of_parts[i].label), "memory") ||
                     str_eqz(str_of(of_parts[i].label), "disk")) &&
                    str_to_i64(buf_view(&text), &size) == 0) {
                        buf_reset(&text);
                        human_bytes(&text, size << (of_parts[i].label[0] == 'm' ? 20 : 10));
                }
                add_meaning(&meant, buf_view(&text));
                table_text(t, buf_view(&meant));
        }
}

static void add_field(struct table *t, const char *label, struct str text)
{
        if (text.n == 0)
                return;
        table_text(t, str_of(label));
        table_paint(t, TABLE_BOLD);
        table_text(t, text);
}

static void add_when(struct cli *cli, struct table *t, const char *label, struct view at)
{
        struct buf text BUF_CLEANUP = {0};

        if (view_integer(at, 0) <= 0)
                return;
        human_time(&text, view_integer(at, 0), cli->now_ms);
        add_field(t, label, buf_view(&text));
}

/* Adds "5 jobs: 2 idle, 3 running". */
static void show_add_counts(struct table *t, struct view root)
{
        static const char *const states[] = {"idle",      "waiting", "running", "held",
                                             "completed", "failed",  "removed"};
        struct buf text BUF_CLEANUP = {0};
        const char *before = ": ";

        human_count(&text, view_integer(view_get(root, "jobs"), 0), "job", "jobs");
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
                int64_t n = view_integer(view_get(root, states[i]), 0);
                bool completed = str_eqz(str_of(states[i]), "completed");

                if (completed)
                        n -= view_integer(view_get(root, "failed"), 0);
                if (n <= 0)
                        continue;
                buf_printf(&text, "%s%lld %s", before, (long long)n, completed ? "succeeded" : states[i]);
                before = ", ";
        }
        add_field(t, "jobs", buf_view(&text));
}

static bool is_dag(struct view parts)
{
        struct view part;
        size_t at = 0;

        return view_next(parts, &at, &part) &&
               view_there(view_get(view_get(part, "attributes"), "DAGNodeName"));
}

static void print_request(struct cli *cli, struct view root)
{
        struct table t TABLE_CLEANUP;
        struct buf text BUF_CLEANUP = {0}, id BUF_CLEANUP = {0};
        struct view parts = view_get(root, "parts"), part;
        size_t at = 0;

        table_init(&t, columns, 2);
        t.bare = true;
        view_text(view_get(root, "id"), &text);
        add_field(&t, "request", buf_view(&text));
        buf_reset(&text);
        view_text(view_get(root, "batch"), &text);
        add_field(&t, "name", buf_view(&text));
        show_add_counts(&t, root);
        buf_reset(&text);
        view_text(view_get(root, "owner"), &text);
        add_field(&t, "owner", buf_view(&text));
        add_when(cli, &t, "submitted", view_get(root, "submitted_ms"));
        add_when(cli, &t, "expected start", view_get(root, "eta_start_ms"));
        if (view_integer(view_get(root, "eta_end_ms"), 0) > 0) {
                buf_reset(&text);
                cost_end(&text, view_integer(view_get(root, "eta_end_ms"), 0),
                         view_integer(view_get(root, "eta_end_most_ms"), 0), cli->now_ms);
                add_field(&t, "expected end", buf_view(&text));
        }
        add_when(cli, &t, "ended", view_get(root, "finished_ms"));
        buf_reset(&text);
        view_text(view_get(root, "waits_for"), &text);
        add_field(&t, "dependency", buf_view(&text));
        while (view_next(parts, &at, &part))
                add_part_lines(&t, part);
        cli_print_table(cli, &t);
        if (view_integer(view_get(root, "failed"), 0) > 0) {
                view_text(view_get(root, "id"), &id);
                cli_note("those that failed: drover queue --state failed %s; again: drover %s %s", buf_z(&id),
                         is_dag(parts) ? "dag resubmit" : "resubmit --failed", buf_z(&id));
        }
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

/* If the request has one job, shows the job, which has more details. Returns 0 if it was shown. */
static int print_only_job(struct cli *cli, struct view root)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        int rc;

        if (view_integer(view_get(root, "jobs"), 0) != 1)
                return -1;
        buf_addz(&path, "/v1/jobs/");
        view_text(view_get(root, "id"), &path);
        buf_addz(&path, ".0");
        rc = api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL);
        if (rc == 0)
                show_job(cli, answer.root, &out);
        cli_print(&out);
        return rc;
}

static void print_one(struct cli *cli, const struct options *o, struct view root)
{
        struct view parts = view_get(root, "parts"), part;
        struct buf out BUF_CLEANUP = {0};
        size_t at = 0;

        if (options_flag(o, "script")) {
                print_script(view_get(root, "script"));
        } else if (options_flag(o, "ad")) {
                while (view_next(parts, &at, &part))
                        add_part(&out, part);
                add_ad(&out, view_get(root, "ad"));
        } else if (!view_there(parts)) {
                show_job(cli, root, &out);
        } else if (print_only_job(cli, root) != 0) {
                print_request(cli, root);
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
