/* drover nodes, and drover node VERB NAME: the machines of agents, and orders to them. */
#include "base/format/json.h"
#include "base/format/url.h"
#include "base/system/clock.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {{"NAME", false, true},
                                              {"STATE", false, false},
                                              {"JOBS", true, false},
                                              {"SINCE", true, false},
                                              {"SEEN", true, false},
                                              {"BY", false, true},
                                              {"REASON", false, true, .wraps = true}};

static const struct verb {
        const char *name, *state; /* state NULL: the verb changes nothing */
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

static int list_nodes(struct cli *cli)
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

/* ---- the plan */

/* Appends ", each of which fetches files there for 3:10; they end in about 1:02:00". */
static void print_times(struct buf *out, struct view w)
{
        int64_t fetch_ms = view_integer(view_get(w, "fetch_ms"), 0),
                lasts_ms = view_integer(view_get(w, "lasts_ms"), 0);

        if (fetch_ms >= 1000) {
                buf_addz(out, ", each of which fetches files there for ");
                human_duration(out, fetch_ms);
        }
        if (lasts_ms) {
                buf_addz(out, "; they end in about ");
                human_duration(out, lasts_ms);
        }
}

/* Appends "2 of cloud/small for 40 jobs (7.0 and others of ann@local)". */
static void print_wish(struct buf *out, struct view w)
{
        buf_printf(out, "start   %lld of ", (long long)view_integer(view_get(w, "nodes"), 0));
        view_text(view_get(w, "provisioner"), out);
        buf_char(out, '/');
        view_text(view_get(w, "shape"), out);
        if (view_true(view_get(w, "minimum"))) {
                buf_addz(out, ": the minimum in the settings\n");
                return;
        }
        buf_printf(out, " for %lld waiting jobs", (long long)view_integer(view_get(w, "jobs"), 0));
        if (view_there(view_get(w, "request"))) {
                buf_printf(out, ": %lld.%lld and its like of ",
                           (long long)view_integer(view_get(w, "request"), 0),
                           (long long)view_integer(view_get(w, "job"), 0));
                view_text(view_get(w, "owner"), out);
        }
        print_times(out, w);
        buf_char(out, '\n');
}

static void print_demand(struct buf *out, struct view d)
{
        int64_t left = view_integer(view_get(d, "left"), 0);

        if (left == 0)
                return;
        buf_printf(out,
                   "wait    %lld more at a time of %lld jobs with %lld processors each: ", (long long)left,
                   (long long)view_integer(view_get(d, "jobs"), 0),
                   (long long)view_integer(view_get(d, "cpus"), 0));
        view_text(view_get(d, "why"), out);
        buf_char(out, '\n');
}

static void print_provisioner(struct buf *out, struct view p)
{
        bool failed = view_there(view_get(p, "error"));

        if (!failed && view_true(view_get(p, "listed")))
                return;
        buf_addz(out, "note    ");
        view_text(view_get(p, "name"), out);
        buf_addz(out, failed ? " fails: " : " has not said yet which machines there are");
        if (failed)
                view_text(view_get(p, "error"), out);
        buf_char(out, '\n');
}

static void print_money(struct buf *out, struct view root)
{
        struct view month = view_get(root, "budget_month"), hour = view_get(root, "budget_hour");

        buf_addz(out, "spent   ");
        view_text(view_get(root, "spent_month"), out);
        if (view_there(month)) {
                buf_addz(out, " of ");
                view_text(month, out);
        }
        buf_addz(out, " this month");
        if (view_there(hour)) {
                buf_addz(out, ", at most ");
                view_text(hour, out);
                buf_addz(out, " an hour");
        }
        buf_char(out, '\n');
}

static void add_shape(struct table *t, struct view s)
{
        BUF_CLEANUP struct buf name = {0}, why = {0};

        view_text(view_get(s, "provisioner"), &name);
        buf_char(&name, '/');
        view_text(view_get(s, "shape"), &name);
        table_text(t, buf_view(&name));
        table_view(t, view_get(s, "nodes"));
        table_view(t, view_get(s, "wished"));
        table_view(t, view_get(s, "max"));
        table_view(t, view_get(s, "price"));
        view_text(view_get(s, "why"), &why);
        if (view_there(view_get(s, "closed"))) {
                buf_addz(&why, ": ");
                view_text(view_get(s, "closed"), &why);
        }
        table_text(t, buf_view(&why));
}

static int plan(struct cli *cli)
{
        static const struct table_column shape_columns[] = {
                {"SHAPE", false, true}, {"NODES", true, false}, {"WISHED", true, false},
                {"MAX", true, false},   {"PRICE", true, false}, {"WHY NOT MORE", false, true, .wraps = true}};
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP = {0};
        struct view x;
        int code = cli_table(cli, &t, shape_columns, sizeof(shape_columns) / sizeof(shape_columns[0]));

        if (code == 0)
                code = api_get(cli, "/v1/wishlist", &answer);
        if (code != 0 || api_print_json(cli, &answer))
                return code;
        for (size_t at = 0; view_next(view_get(answer.root, "shapes"), &at, &x);)
                add_shape(&t, x);
        if (table_rows(&t) == 0) {
                buf_addz(&out, "no machines are started here: see provisioners in droverd(8)\n");
                cli_print(&out);
                return CLI_OK;
        }
        cli_print_table(cli, &t);
        for (size_t at = 0; view_next(view_get(answer.root, "wishes"), &at, &x);)
                print_wish(&out, x);
        for (size_t at = 0; view_next(view_get(answer.root, "leaving"), &at, &x);) {
                buf_addz(&out, "stop    ");
                view_text(view_get(x, "name"), &out);
                buf_addz(&out, ": ");
                view_text(view_get(x, "why"), &out);
                buf_char(&out, '\n');
        }
        for (size_t at = 0; view_next(view_get(answer.root, "demands"), &at, &x);)
                print_demand(&out, x);
        for (size_t at = 0; view_next(view_get(answer.root, "provisioners"), &at, &x);)
                print_provisioner(&out, x);
        print_money(&out, answer.root);
        cli_print(&out);
        return CLI_OK;
}

static int show_node(struct cli *cli, const char *name)
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
                return list_nodes(cli);
        if (o->word_count == 1 && strcmp(o->words[0], "plan") == 0)
                return plan(cli);
        if (!v)
                return cli_error(
                        CLI_USAGE,
                        "drover nodes [plan], or drover node show|drain|resume|fail|down|retire NAME");
        return v->state ? order(cli, v, o->words[1], o) : show_node(cli, o->words[1]);
}
