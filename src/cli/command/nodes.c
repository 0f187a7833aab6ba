/* drover nodes, and drover node VERB NAME: the machines of agents, and orders to them. */
#include "base/clock.h"
#include "base/json.h"
#include "base/url.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {
        {"NAME", false, true}, {"STATE", false, false}, {"JOBS", true, false},  {"SINCE", true, false},
        {"SEEN", true, false}, {"BY", false, true},     {"REASON", false, true}};

static const struct verb {
        const char *name, *state; /* state NULL: it only looks */
        const char *done;
} verbs[] = {
        {"show", NULL, NULL},
        {"drain", "draining", "is given no more jobs"},
        {"resume", "up", "is given jobs again"},
        {"fail", "failed", "has failed, and is given no more jobs"},
        {"down", "down", "is down"},
        {"retire", "retired", "is retired, and its agent is refused from now on"},
};

static const struct verb *verb_find(const char *word)
{
        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
                if (strcmp(verbs[i].name, word) == 0)
                        return &verbs[i];
        return NULL;
}

static void add_time(struct table *t, struct view at_ms)
{
        struct buf text BUF_CLEANUP = {0};

        human_time(&text, view_integer(at_ms, 0), clock_wall_ms());
        table_text(t, buf_view(&text));
}

static void add_text(struct table *t, struct view v)
{
        if (view_there(v))
                table_view(t, v);
        else
                table_text(t, STR(""));
}

static void add_node(struct table *t, struct view node)
{
        struct view state = view_get(node, "state");

        table_view(t, view_get(node, "name"));
        if (!view_true(view_get(node, "connected")) && (view_is(state, "idle") || view_is(state, "busy")))
                table_text(t, STR("away"));
        else
                table_view(t, state);
        if (view_is(state, "failed") || view_is(state, "down"))
                table_paint(t, TABLE_RED);
        else if (view_is(state, "draining") || view_is(state, "drained"))
                table_paint(t, TABLE_YELLOW);
        table_view(t, view_get(node, "jobs"));
        add_time(t, view_get(node, "since_ms"));
        add_time(t, view_get(node, "seen_ms"));
        add_text(t, view_get(node, "by"));
        add_text(t, view_get(node, "reason"));
}

static int list(struct cli *cli)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf none BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP = {0};
        struct view nodes, node;
        size_t at = 0;
        int code = cli_table(cli, &t, columns, sizeof(columns) / sizeof(columns[0]));

        if (code == 0)
                code = api_get(cli, "/v1/nodes", &answer);
        if (code != 0)
                return code;
        if (api_print_json(cli, &answer))
                return CLI_OK;
        nodes = view_get(answer.root, "nodes");
        while (view_next(nodes, &at, &node))
                add_node(&t, node);
        buf_addz(&none, "no nodes: start an agent with `drover up`, or see drover-token(1)\n");
        if (table_rows(&t) > 0 || !cli_plain(cli))
                cli_print_table(cli, &t);
        else
                cli_print(&none);
        return CLI_OK;
}

static void path_of(struct buf *out, const char *name)
{
        buf_addz(out, "/v1/nodes/");
        url_escape(out, str_of(name));
}

static void print_line(struct buf *out, const char *what, struct view v)
{
        if (!view_there(v))
                return;
        buf_printf(out, "%-12s ", what);
        view_safe(v, out);
        buf_char(out, '\n');
}

static void print_time(struct buf *out, const char *what, struct view at_ms)
{
        if (view_integer(at_ms, 0) == 0)
                return;
        buf_printf(out, "%-12s ", what);
        human_time(out, view_integer(at_ms, 0), clock_wall_ms());
        buf_char(out, '\n');
}

static int show(struct cli *cli, const char *name)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct view machine, value, jobs, job;
        struct str key;
        size_t at = 0;
        int code;

        path_of(&path, name);
        code = api_get(cli, buf_z(&path), &answer);
        if (code != 0 || api_print_json(cli, &answer))
                return code;
        print_line(&out, "name", view_get(answer.root, "name"));
        print_line(&out, "state", view_get(answer.root, "state"));
        print_line(&out, "by", view_get(answer.root, "by"));
        print_line(&out, "reason", view_get(answer.root, "reason"));
        print_time(&out, "since", view_get(answer.root, "since_ms"));
        print_time(&out, "deadline", view_get(answer.root, "deadline_ms"));
        print_time(&out, "seen", view_get(answer.root, "seen_ms"));
        print_line(&out, "connected", view_get(answer.root, "connected"));
        print_line(&out, "host", view_get(answer.root, "hostname"));
        machine = view_get(answer.root, "machine");
        while (view_member(machine, &at, &key, &value)) {
                BUF_CLEANUP struct buf word = {0};

                buf_str(&word, key);
                print_line(&out, buf_z(&word), value);
        }
        jobs = view_get(answer.root, "running");
        for (at = 0; view_next(jobs, &at, &job);) {
                buf_printf(&out, "%-12s %lld.%lld ", "job",
                           (long long)view_integer(view_get(job, "request"), 0),
                           (long long)view_integer(view_get(job, "job"), 0));
                view_text(view_get(job, "state"), &out);
                buf_char(&out, '\n');
        }
        cli_print(&out);
        return CLI_OK;
}

static int order(struct cli *cli, const struct verb *v, const char *name, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        int64_t deadline_s = options_number(o, "deadline", 0), jobs;
        const char *reason = options_text(o, "reason");
        struct json j = {.out = &body};
        struct err err = {""};
        int rc;

        if (deadline_s && strcmp(v->name, "drain") != 0)
                return cli_error(CLI_USAGE, "--deadline goes with drain only");
        path_of(&path, name);
        json_open(&j, '{');
        json_kstrz(&j, "state", v->state);
        if (reason)
                json_kstrz(&j, "reason", reason);
        if (deadline_s)
                json_kint(&j, "deadline_ms", clock_wall_ms() + deadline_s * 1000);
        json_close(&j, '}');
        rc = api_call(cli,
                      &(struct api_request){.method = "POST", .path = buf_z(&path), .body = buf_view(&body)},
                      &answer, &err);
        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        if (api_print_json(cli, &answer))
                return CLI_OK;
        jobs = view_integer(view_get(answer.root, "jobs"), 0);
        buf_printf(&out, "%s %s", name, v->done);
        if (jobs && strcmp(v->name, "resume") != 0)
                buf_printf(&out, "; %lld %s still there", (long long)jobs, jobs == 1 ? "job is" : "jobs are");
        buf_char(&out, '\n');
        cli_print(&out);
        return CLI_OK;
}

int cmd_nodes(struct cli *cli, const struct options *o)
{
        const struct verb *v = o->word_count == 2 ? verb_find(o->words[0]) : NULL;

        if (o->word_count == 0)
                return list(cli);
        if (!v)
                return cli_error(CLI_USAGE,
                                 "drover nodes, or drover node show|drain|resume|fail|down|retire NAME");
        return v->state ? order(cli, v, o->words[1], o) : show(cli, o->words[1]);
}
