/* drover dag: graphs of jobs, as HTCondor's DAGMan describes them. A graph is one request; its nodes are the
 * jobs with one DAGNodeName. */
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"
#include "cli/client/ids.h"
#include "cli/client/jobs.h"
#include "cli/client/submit.h"
#include "cli/command/commands.h"
#include "cli/command/wait.h"
#include "cli/terminal/human.h"

/* ---- submit */

static int submit(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf after BUF_CLEANUP = {0}, most BUF_CLEANUP = {0}, out BUF_CLEANUP = {0},
                         id BUF_CLEANUP = {0};
        const char *lines[64], *line;
        struct submit s;
        size_t at = 0;
        int code = 0;

        submit_init(&s, cli, o->words[1]);
        s.language = SUBMIT_DAG;
        s.no_rescue = options_flag(o, "no-rescue");
        s.lines = lines;
        while ((line = options_list(o, "after", &at)))
                buf_printf(&after, "%s%s", after.n ? ", " : "depends_on = ", line);
        if (after.n)
                lines[s.line_count++] = buf_z(&after);
        if (options_text(o, "max-jobs")) {
                buf_printf(&most, "max_materialize = %lld", (long long)options_number(o, "max-jobs", 0));
                lines[s.line_count++] = buf_z(&most);
        }
        at = 0;
        while ((line = options_list(o, "append", &at)) && s.line_count < sizeof(lines) / sizeof(lines[0]))
                lines[s.line_count++] = line;
        if (line)
                code = cli_error(CLI_USAGE, "too many lines are appended");
        if (code == 0)
                code = submit_read(&s);
        if (code == 0 && options_flag(o, "hold"))
                s.form.hold = true;
        if (code == 0 && !options_flag(o, "dry-run"))
                code = submit_send(&s, &answer);
        if (code == 0 && cli->json && !options_flag(o, "dry-run")) {
                buf_str(&out, answer.root.text);
                buf_char(&out, '\n');
        } else if (code == 0) {
                view_text(view_get(answer.root, "id"), &id);
                if (options_flag(o, "dry-run"))
                        buf_addz(&out, "would be submitted: ");
                else
                        buf_printf(&out, "request %s: ", buf_z(&id));
                human_count(&out, (int64_t)(s.dag.nodes - s.dag.done), "node", "nodes");
                buf_addz(&out, ", ");
                human_count(&out, (int64_t)form_members(&s.form), "job", "jobs");
                buf_addz(&out, ", ");
                human_count(&out, (int64_t)s.dag.edges, "arrow", "arrows");
                if (s.dag.done) {
                        buf_addz(&out, "; ");
                        human_count(&out, (int64_t)s.dag.done, "node is", "nodes are");
                        buf_addz(&out, " done already");
                }
                buf_char(&out, '\n');
        }
        cli_print(&out);
        submit_deinit(&s);
        if (code != 0 || !options_flag(o, "wait") || options_flag(o, "dry-run"))
                return code;
        return wait_for_jobs(cli, &(struct wait){.ids = buf_z(&id), .timeout_s = -1, .quiet = cli->json});
}

/* ---- nodes of a request, with what their jobs do */

enum node_state { NODE_DONE, NODE_FAILED, NODE_REMOVED, NODE_HELD, NODE_RUNNING, NODE_IDLE, NODE_WAITS };
static const struct {
        const char *name, *colour;
        enum table_colour cell;
} states[] = {
        [NODE_DONE] = {"done", "palegreen", TABLE_DIM},
        [NODE_FAILED] = {"failed", "salmon", TABLE_RED},
        [NODE_REMOVED] = {"removed", "grey", TABLE_DIM},
        [NODE_HELD] = {"held", "orange", TABLE_RED},
        [NODE_RUNNING] = {"running", "lightblue", TABLE_GREEN},
        [NODE_IDLE] = {"idle", "khaki", TABLE_YELLOW},
        [NODE_WAITS] = {"waits", "white", TABLE_PLAIN},
};
/* The state that tells most of a node with several jobs. */
static const enum node_state order[] = {NODE_FAILED, NODE_HELD,  NODE_RUNNING, NODE_REMOVED,
                                        NODE_IDLE,   NODE_WAITS, NODE_DONE};

/* Of the jobs of a node's last attempt: the script behind them says how it ended, if there is one. */
enum node_role { ROLE_PRE, ROLE_JOB, ROLE_POST, ROLES };
struct node {
        char *name, *note;
        uint32_t counts[NODE_WAITS + 1], jobs;
        bool has_roles; /* some job is a script, or of one of several attempts */
        int64_t attempt;
        uint32_t last[ROLES][NODE_WAITS + 1];
};
struct graph {
        struct node *nodes;
        size_t count, cap;
        struct map *by_name;
        struct idmap *of_member; /* its node's number and one */
        bool unnamed;
};

static enum node_state job_node_state(const struct job_row *j)
{
        if (view_is(j->state, "completed")) /* without an exit code: it was skipped, or its work was over */
                return view_integer(j->exit_code, 0) == 0 && view_integer(j->exit_signal, 0) == 0
                               ? NODE_DONE
                               : NODE_FAILED;
        if (view_is(j->state, "removed"))
                return NODE_REMOVED;
        if (view_is(j->state, "held"))
                return NODE_HELD;
        if (view_is(j->state, "idle"))
                return view_there(j->waits_for) ? NODE_WAITS : NODE_IDLE;
        return NODE_RUNNING;
}

static void add_role(struct node *n, struct view ad, enum node_state state)
{
        struct view script = view_get(ad, "DAGNodeScript");
        int64_t attempt = view_integer(view_get(ad, "DAGNodeRetry"), 0);
        enum node_role role = view_is(script, "PRE")    ? ROLE_PRE
                              : view_is(script, "POST") ? ROLE_POST
                                                        : ROLE_JOB;

        n->has_roles |= view_there(script) || attempt > 0;
        if (view_is(script, "HOLD"))
                return;
        if (attempt > n->attempt) {
                memset(n->last, 0, sizeof(n->last));
                n->attempt = attempt;
        }
        if (attempt == n->attempt)
                n->last[role][state]++;
}

static int add_job(void *arg, struct view job)
{
        struct buf name BUF_CLEANUP = {0}, note BUF_CLEANUP = {0};
        struct graph *g = arg;
        enum node_state state;
        struct job_row j;
        struct node *n;
        size_t at;

        job_read(job, &j);
        view_text(view_get(view_get(job, "ad"), "DAGNodeName"), &name);
        if (name.n == 0) {
                g->unnamed = true;
                return 0;
        }
        at = (size_t)(uintptr_t)map_get(g->by_name, buf_view(&name));
        if (at == 0) {
                MEM_GROW(g->nodes, g->cap, g->count + 1);
                g->nodes[g->count] = (struct node){.name = str_dupz(buf_view(&name))};
                at = ++g->count;
                map_put(g->by_name, buf_view(&name), (void *)(uintptr_t)at);
        }
        n = &g->nodes[at - 1];
        state = job_node_state(&j);
        n->counts[state]++;
        n->jobs++;
        add_role(n, view_get(job, "ad"), state);
        if (view_is(j.state, "held"))
                view_text(j.hold_reason, &note);
        else if (state == NODE_WAITS)
                view_text(j.waits_for, &note);
        else if (state == NODE_FAILED)
                job_outcome(&j, &note);
        if (note.n && (!n->note || state == NODE_FAILED)) {
                free(n->note);
                n->note = str_dupz(buf_view(&note));
        }
        idmap_put(g->of_member, (uint64_t)view_integer(view_get(job, "member"), 0), (void *)(uintptr_t)at);
        return 0;
}

/* Of a node with scripts or attempts: what goes on, or how the last one that says it has ended. */
static enum node_state roles_state(const struct node *n)
{
        static const enum node_state now[] = {NODE_RUNNING, NODE_HELD, NODE_IDLE};
        const uint32_t *last = NULL;

        for (size_t i = 0; i < sizeof(now) / sizeof(now[0]); i++)
                if (n->counts[now[i]])
                        return now[i];
        for (int role = ROLE_POST; role >= 0 && !last; role--)
                for (unsigned s = 0; s <= NODE_WAITS; s++)
                        if (n->last[role][s])
                                last = n->last[role];
        if (!last || last[NODE_WAITS])
                return NODE_WAITS;
        if (last[NODE_FAILED] || (last[NODE_REMOVED] && n->counts[NODE_FAILED]))
                return NODE_FAILED;
        return last[NODE_REMOVED] ? NODE_REMOVED : NODE_DONE;
}

static enum node_state node_state(const struct node *n)
{
        if (n->has_roles)
                return roles_state(n);
        for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
                if (n->counts[order[i]])
                        return order[i];
        return NODE_DONE;
}

static void graph_deinit(struct graph *g)
{
        for (size_t i = 0; i < g->count; i++) {
                free(g->nodes[i].name);
                free(g->nodes[i].note);
        }
        free(g->nodes);
        map_free(g->by_name);
        idmap_free(g->of_member);
}

/* The request's number, from a word like "7". */
static int read_graph(struct cli *cli, const char *word, struct graph *g)
{
        struct buf path BUF_CLEANUP = {0};
        bool json = cli->json;
        struct err err;
        struct id id;
        int code;

        *g = (struct graph){.by_name = map_new(), .of_member = idmap_new()};
        if (id_parse(str_of(word), &id, &err) != 0)
                return cli_error(CLI_USAGE, "%s", err.text);
        if (!id.whole)
                return cli_error(CLI_USAGE, "%s is a job; a graph is a whole request, as 7", word);
        buf_printf(&path, "/v1/jobs?id=%llu&attributes=DAGNodeName,DAGNodeScript,DAGNodeRetry",
                   (unsigned long long)id.request);
        cli->json = false; /* what is listed is read, not printed */
        code = api_list(cli, &(struct api_list){.path = &path,
                                                .array = "jobs",
                                                .cursor = "after",
                                                .whole = true,
                                                .each = add_job,
                                                .arg = g});
        cli->json = json;
        if (code == 0 && g->count == 0)
                return cli_error(CLI_FAILED, "request %s has no nodes of a DAG in the queue", word);
        return code;
}

/* ---- show */

static const struct table_column columns[] = {
        {"NODE", false, true}, {"STATE", false, false}, {"JOBS", true, false}, {"NOTE", false, true}};

static void print_nodes(struct cli *cli, const struct graph *g)
{
        struct buf out BUF_CLEANUP = {0};
        uint64_t sums[NODE_WAITS + 1] = {0};
        struct table t TABLE_CLEANUP;
        const char *comma = "";

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        for (size_t i = 0; i < g->count; i++) {
                const struct node *n = &g->nodes[i];
                enum node_state s = node_state(n);
                struct buf jobs BUF_CLEANUP = {0};

                table_text(&t, str_of(n->name));
                table_text(&t, str_of(states[s].name));
                table_paint(&t, states[s].cell);
                buf_printf(&jobs, "%u", n->jobs);
                table_text(&t, buf_view(&jobs));
                table_text(&t, str_of(s == NODE_DONE ? "" : n->note));
                sums[s]++;
        }
        cli_print_table(cli, &t);
        human_count(&out, (int64_t)g->count, "node", "nodes");
        buf_addz(&out, ": ");
        for (unsigned s = 0; s <= NODE_WAITS; s++)
                if (sums[s]) {
                        buf_printf(&out, "%s%llu %s", comma, (unsigned long long)sums[s], states[s].name);
                        comma = ", ";
                }
        buf_char(&out, '\n');
        cli_print(&out);
}

static void print_json(struct cli *cli, const struct graph *g)
{
        struct buf out BUF_CLEANUP = {0};
        struct json j = {.out = &out};

        (void)cli;
        json_open(&j, '{');
        json_key(&j, "nodes");
        json_open(&j, '[');
        for (size_t i = 0; i < g->count; i++) {
                const struct node *n = &g->nodes[i];

                json_open(&j, '{');
                json_kstrz(&j, "name", n->name);
                json_kstrz(&j, "state", states[node_state(n)].name);
                json_kint(&j, "jobs", n->jobs);
                json_kint(&j, "done", n->counts[NODE_DONE]);
                if (n->note)
                        json_kstrz(&j, "note", n->note);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
        buf_char(&out, '\n');
        cli_print(&out);
}

static void add_quoted(struct buf *out, const char *name)
{
        buf_char(out, '"');
        for (; *name; name++) {
                if (*name == '"' || *name == '\\')
                        buf_char(out, '\\');
                buf_char(out, *name);
        }
        buf_char(out, '"');
}

/* The numbers of the nodes whose members these are, each once. */
static size_t nodes_of(const struct graph *g, struct str ranges, size_t **ret)
{
        size_t n = 0, cap = 0, last = 0;
        struct set members = {0};

        *ret = NULL;
        set_parse(&members, ranges, UINT32_MAX);
        SET_FOREACH (&members, m) {
                size_t at = (size_t)(uintptr_t)idmap_get(g->of_member, m);

                if (at == 0 || at == last)
                        continue;
                last = at;
                MEM_GROW(*ret, cap, n + 1);
                (*ret)[n++] = at - 1;
        }
        set_deinit(&members);
        return n;
}

/* One edge, "0-9>10" or "0>1:any". Many to many go by a point between them. */
static void add_arrows(struct buf *out, const struct graph *g, struct str edge, unsigned number)
{
        struct str parents, children;
        size_t *from, *to, n, m;
        const char *style;
        bool point;

        str_cut(&edge, '>', &parents);
        str_cut(&edge, ':', &children);
        style = edge.n == 0 || str_eqz(edge, "ok") ? "" : " [style=dashed]";
        n = nodes_of(g, parents, &from);
        m = nodes_of(g, children, &to);
        point = n > 1 && m > 1;
        if (point)
                buf_printf(out, "  \"point %u\" [shape=point];\n", number);
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < (point ? 1 : m); k++) {
                        buf_addz(out, "  ");
                        add_quoted(out, g->nodes[from[i]].name);
                        buf_addz(out, " -> ");
                        if (point)
                                buf_printf(out, "\"point %u\"", number);
                        else
                                add_quoted(out, g->nodes[to[k]].name);
                        buf_printf(out, "%s;\n", style);
                }
        for (size_t k = 0; point && k < m; k++) {
                buf_printf(out, "  \"point %u\" -> ", number);
                add_quoted(out, g->nodes[to[k]].name);
                buf_printf(out, "%s;\n", style);
        }
        free(from);
        free(to);
}

static int print_dot(struct cli *cli, const char *word, const struct graph *g)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0}, path BUF_CLEANUP = {0}, edges BUF_CLEANUP = {0};
        struct str rest, edge;
        unsigned number = 0;
        int code;

        buf_printf(&path, "/v1/requests/%s?edges=1", word);
        code = api_get(cli, buf_z(&path), &answer);
        if (code != 0)
                return code;
        view_text(view_get(answer.root, "edges"), &edges);
        rest = buf_view(&edges);
        buf_printf(&out, "digraph \"request %s\" {\n  node [shape=box, style=filled];\n", word);
        for (size_t i = 0; i < g->count; i++) {
                enum node_state s = node_state(&g->nodes[i]);

                buf_addz(&out, "  ");
                add_quoted(&out, g->nodes[i].name);
                buf_printf(&out, " [fillcolor=%s, tooltip=\"%s\"];\n", states[s].colour, states[s].name);
        }
        while (rest.n && str_cut(&rest, ';', &edge))
                add_arrows(&out, g, edge, number++);
        buf_addz(&out, "}\n");
        cli_print(&out);
        return CLI_OK;
}

static int show(struct cli *cli, const struct options *o)
{
        struct graph g;
        int code = read_graph(cli, o->words[1], &g);

        if (code == 0 && options_flag(o, "dot"))
                code = print_dot(cli, o->words[1], &g);
        else if (code == 0 && cli->json)
                print_json(cli, &g);
        else if (code == 0)
                print_nodes(cli, &g);
        graph_deinit(&g);
        return code;
}

/* ---- rescue */

static int rescue(struct cli *cli, const struct options *o)
{
        struct buf out BUF_CLEANUP = {0};
        struct graph g;
        int code = read_graph(cli, o->words[1], &g);

        buf_printf(&out,
                   "# Nodes of request %s that are done; drover dag submit reads it as FILE.rescue001\n",
                   o->words[1]);
        for (size_t i = 0; i < g.count; i++)
                if (node_state(&g.nodes[i]) == NODE_DONE)
                        buf_printf(&out, "DONE %s\n", g.nodes[i].name);
        if (code == 0)
                cli_print(&out);
        graph_deinit(&g);
        return code;
}

int cmd_dag(struct cli *cli, const struct options *o)
{
        struct str what = str_of(o->words[0]);

        if (str_eqz(what, "submit"))
                return submit(cli, o);
        if (str_eqz(what, "show"))
                return show(cli, o);
        if (str_eqz(what, "rescue"))
                return rescue(cli, o);
        return cli_error(CLI_USAGE, "drover dag %s", o->command->usage);
}
