/* drover dag: graphs of jobs in the language of HTCondor's DAGMan. A graph is one request; the jobs with
 * the same DAGNodeName are a node. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/format/quantity.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"
#include "base/system/fs.h"
#include "cli/client/ids.h"
#include "cli/client/jobs.h"
#include "cli/client/submit.h"
#include "cli/command/commands.h"
#include "cli/command/dag/graph.h"
#include "cli/command/dag/import.h"
#include "cli/command/dag/watch.h"
#include "cli/terminal/human.h"

#define SIM_TEXT_MAX (256u << 20) /* size of a workflow that the simulator reads */

/* ---- submit */

/* Prints the time from the first start of a job to the end of the last. */
static void print_makespan(struct cli *cli, const char *id)
{
        struct buf out BUF_CLEANUP = {0};
        int64_t first = 0, last = 0;
        struct dag_graph g;

        if (dag_graph_read(cli, id, false, &g) == 0) {
                for (size_t i = 0; i < g.count; i++) {
                        const struct dag_point *p = &g.points[i];

                        if (p->started_ms && (first == 0 || p->started_ms < first))
                                first = p->started_ms;
                        last = p->ended_ms > last ? p->ended_ms : last;
                }
                buf_printf(&out, "makespan: %.3f s\n", (double)(last - first) / 1000);
                cli_print(&out);
        }
        dag_graph_deinit(&g);
}

/* Returns the RETURN of the ABORT-DAG-ON that ended the graph; `code` if there is none. */
static int aborted_code(struct cli *cli, const char *id, int code)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct view job;
        size_t at = 0;

        buf_printf(&path, "/v1/history?id=%s&limit=1&attributes=DAGAbortReturn", id);
        api_query(&path, "constraint", STR("DAGAbortReturn =!= undefined && AbortGraphOn =?= ExitCode"));
        if (code != CLI_FAILED ||
            api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) != 0 ||
            !view_next(view_get(answer.root, "jobs"), &at, &job))
                return code;
        return (int)view_integer(view_get(view_get(job, "ad"), "DAGAbortReturn"), code);
}

static int read_size(const struct options *o, const char *name, uint64_t *ret)
{
        const char *text = options_text(o, name);

        if (text && (quantity_size(str_of(text), ret) != 0 || *ret == 0))
                return cli_error(CLI_USAGE, "--%s is a size with its unit, as in 10G: not '%s'", name, text);
        return 0;
}

/* ret: the URL with a trailing slash. */
static int read_plan(const struct options *o, struct submit *s, struct buf *ret)
{
        const char *stage = options_text(o, "plan");
        int code = read_size(o, "space", &s->stage_space);

        if (code == 0)
                code = read_size(o, "file-size", &s->stage_file_size);
        if (code != 0)
                return code;
        s->stage_reserve_s = (uint64_t)options_number(o, "reserve", 0);
        s->stage_registers = options_text(o, "register");
        if (s->stage_registers && (!stage || strpbrk(s->stage_registers, "\r\n")))
                return cli_error(CLI_USAGE, "--register is for --plan, and one line: true, or run=7, pass=2");
        if (s->stage_reserve_s && !s->stage_space)
                return cli_error(CLI_USAGE, "--reserve needs --space, which is what is reserved");
        if (!stage)
                return s->stage_space ? cli_error(CLI_USAGE, "--space is for --plan") : 0;
        if (!strstr(stage, "://") || strpbrk(stage, " ,;\"\n") || strncmp(stage, "file:", 5) == 0)
                return cli_error(
                        CLI_USAGE,
                        "--plan takes the URL of a folder in a store, as https://dav.example.org/work/");
        if ((s->stage_space != 0) != (s->stage_file_size != 0))
                return cli_error(
                        CLI_USAGE,
                        "--space needs --file-size, what a file takes at most, and that needs --space");
        buf_printf(ret, "%s%s", stage, stage[strlen(stage) - 1] == '/' ? "" : "/");
        s->stage = buf_z(ret);
        return 0;
}

/* text: the DAG, if it is not in a file. */
static int submit(struct cli *cli, const struct options *o, struct str text)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf after BUF_CLEANUP = {0}, most BUF_CLEANUP = {0}, out BUF_CLEANUP = {0},
                         id BUF_CLEANUP = {0}, stage BUF_CLEANUP = {0}, names BUF_CLEANUP = {0};
        const char *lines[64], *line;
        struct dag_files files;
        struct submit s;
        size_t at = 0;
        int code = 0;

        submit_init(&s, cli, o->words[1]);
        s.rescue = options_text(o, "rescue");
        s.language = SUBMIT_DAG;
        s.names = options_flag(o, "wait");
        s.text = text;
        s.no_rescue = options_flag(o, "no-rescue") || text.p;
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
                code = read_plan(o, &s, &stage);
        if (code == 0)
                code = submit_read(&s);
        if (code == 0 && !cli->json)
                cli_print(&s.plan);
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
        files = s.dag.files;
        s.dag.files = (struct dag_files){0};
        names = s.dag.names;
        s.dag.names = (struct buf){0};
        submit_deinit(&s);
        if (code != 0 || !options_flag(o, "wait") || options_flag(o, "dry-run")) {
                if (code == 0 && dag_files_any(&files))
                        cli_note("the files that %s asks for are written while somebody waits: drover dag "
                                 "watch %s %s",
                                 o->words[1], id.n ? buf_z(&id) : "ID", o->words[1]);
                dag_files_deinit(&files);
                return code;
        }
        code = dag_watch(cli, buf_z(&id), o->words[1], &files);
        bool failed = code == CLI_FAILED;
        code = aborted_code(cli, buf_z(&id), code);
        if (failed && code != 0 && !text.p)
                dag_rescue_save(cli, buf_z(&id), o->words[1], buf_view(&names));
        dag_files_deinit(&files);
        if (text.p && !cli->json && code == 0)
                print_makespan(cli, buf_z(&id));
        return code;
}

/* Keeps the files up to date that a DAG file asks for, for a request made from it. */
static int watch(struct cli *cli, const struct options *o)
{
        struct buf names BUF_CLEANUP = {0};
        struct dag_files files;
        struct submit s;
        int code;

        if (o->word_count != 3)
                return cli_error(CLI_USAGE, "drover dag watch takes a request and its DAG file");
        submit_init(&s, cli, o->words[2]);
        s.language = SUBMIT_DAG;
        s.no_rescue = s.quiet = s.names = true;
        code = submit_read(&s);
        files = s.dag.files;
        s.dag.files = (struct dag_files){0};
        names = s.dag.names;
        s.dag.names = (struct buf){0};
        submit_deinit(&s);
        if (code == 0)
                code = dag_watch(cli, o->words[1], o->words[2], &files);
        if (code == CLI_FAILED)
                dag_rescue_save(cli, o->words[1], o->words[2], buf_view(&names));
        dag_files_deinit(&files);
        return code;
}

static int dag_import(struct cli *cli, const struct options *o)
{
        struct buf text BUF_CLEANUP = {.max = SIM_TEXT_MAX}, dag BUF_CLEANUP = {.max = FORM_TEXT_MAX};
        const char *hurry = options_text(o, "hurry");
        struct err err = {""};
        double by = 1;

        if (!options_flag(o, "wfcommons"))
                return cli_error(CLI_USAGE, "drover dag import --wfcommons FILE: that is the only format");
        if (hurry && (str_to_double(str_of(hurry), &by) != 0 || !(by > 0)))
                return cli_error(CLI_USAGE, "--hurry takes a number above 0");
        if (fs_read(AT_FDCWD, o->words[1], SIM_TEXT_MAX, &text, &err) != 0 ||
            dag_import_wfcommons(o->words[1], buf_view(&text), by, &dag, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        if (buf_check(&dag))
                return cli_error(CLI_FAILED, "%s: the workflow is too large", o->words[1]);
        if (!options_flag(o, "print"))
                return submit(cli, o, buf_view(&dag));
        cli_print(&dag);
        return CLI_OK;
}

/* ---- show */

static void print_json(const struct dag_graph *g, struct buf *out)
{
        struct json j = {.out = out};

        json_open(&j, '{');
        json_key(&j, "nodes");
        json_open(&j, '[');
        for (size_t i = 0; i < g->count; i++) {
                const struct dag_point *p = &g->points[i];

                json_open(&j, '{');
                json_kstrz(&j, "name", p->name);
                json_kstrz(&j, "state", dag_states[dag_point_state(p)].name);
                json_kint(&j, "level", p->level);
                json_kint(&j, "jobs", p->jobs);
                json_kint(&j, "done", p->counts[DAG_STATE_DONE]);
                if (p->note)
                        json_kstrz(&j, "note", p->note);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
        buf_char(out, '\n');
}

static int show_graph(struct cli *cli, const struct options *o)
{
        struct buf out BUF_CLEANUP = {0};
        struct dag_graph g;
        int code = o->word_count > 2 ? cli_error(CLI_USAGE, "drover dag show takes one request") : 0;

        if (code != 0)
                return code;
        code = dag_graph_read(cli, o->words[1], true, &g);
        if (code == 0 && options_flag(o, "dot"))
                dag_draw_dot(&g, &out);
        else if (code == 0 && options_flag(o, "svg"))
                dag_draw_svg(&g, &out);
        else if (code == 0 && cli->json)
                print_json(&g, &out);
        else if (code == 0)
                dag_draw_terminal(cli, &g);
        cli_print(&out);
        dag_graph_deinit(&g);
        return code;
}

/* ---- rescue */

static int rescue(struct cli *cli, const struct options *o)
{
        const char *before = options_text(o, "before");
        struct buf out BUF_CLEANUP = {0};
        const struct dag_point *mark = NULL;
        struct dag_graph g;
        int code = dag_graph_read(cli, o->words[1], false, &g);

        if (code == 0 && before) {
                size_t at = (size_t)(uintptr_t)map_get(g.by_name, str_of(before));

                mark = at ? &g.points[at - 1] : NULL;
                if (!mark)
                        code = cli_error(CLI_FAILED, "request %s has no node %s", o->words[1], before);
                else if (mark->started_ms == 0)
                        code = cli_error(CLI_FAILED, "node %s has not started", before);
        }
        buf_printf(&out,
                   "# Nodes of request %s that %s done%s%s; drover dag submit reads it as FILE.rescue001\n",
                   o->words[1], before ? "were" : "are", before ? " when there started " : "",
                   before ? before : "");
        if (code == 0)
                dag_rescue_write(&g, mark, &out);
        if (code == 0)
                cli_print(&out);
        dag_graph_deinit(&g);
        return code;
}

/* ---- hold, release, rm, resubmit */

/* Finds the jobs of the named nodes, or of all nodes that are not done. */
static int members_of(const struct dag_graph *g, const struct options *o, struct set *ret)
{
        bool *meant = mem_zalloc(g->count + 1);
        size_t at = 0, number;
        uint64_t member;
        void *value;
        int code = 0;

        for (size_t i = 2; i < o->word_count && code == 0; i++) {
                number = (size_t)(uintptr_t)map_get(g->by_name, str_of(o->words[i]));
                if (number == 0)
                        code = cli_error(CLI_FAILED, "request %llu has no node %s",
                                         (unsigned long long)g->request, o->words[i]);
                else
                        meant[number - 1] = true;
        }
        for (size_t i = 0; i < g->count && o->word_count == 2; i++)
                meant[i] = dag_point_state(&g->points[i]) != DAG_STATE_DONE;
        while (code == 0 && idmap_next(g->of_member, &at, &member, &value))
                if (meant[(uintptr_t)value - 1])
                        set_add(ret, (uint32_t)member);
        free(meant);
        return code;
}

static void write_action(const struct dag_graph *g, const char *action, const struct set *members,
                         struct buf *body)
{
        struct json j = {.out = body};
        uint64_t first, end;

        json_open(&j, '{');
        json_kstrz(&j, "action", action);
        json_key(&j, "ids");
        json_open(&j, '[');
        for (uint64_t at = 0; set_run(members, at, &first, &end); at = end) {
                char id[64];

                snprintf(id, sizeof(id), "%llu.%llu-%llu", (unsigned long long)g->request,
                         (unsigned long long)first, (unsigned long long)end - 1);
                json_str(&j, str_of(id));
        }
        json_close(&j, ']');
        json_close(&j, '}');
}

static int act_on_nodes(struct cli *cli, const struct options *o, const char *action, const char *done)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct set members = {0};
        struct dag_graph g;
        int code = dag_graph_read(cli, o->words[1], false, &g);

        if (code == 0)
                code = members_of(&g, o, &members);
        if (code == 0 && set_count(&members) == 0)
                code = cli_error(CLI_FAILED, "all nodes of request %s are done", o->words[1]);
        if (code == 0) {
                write_action(&g, action, &members, &body);
                code = api_post(cli, "/v1/actions", buf_view(&body), &answer);
        }
        set_deinit(&members);
        dag_graph_deinit(&g);
        if (code != 0 || api_print_json(cli, &answer))
                return code;
        human_count(&out, view_integer(view_get(answer.root, "affected"), 0), "job ", "jobs ");
        buf_printf(&out, "%s\n", done);
        cli_print(&out);
        return CLI_OK;
}

/* Submits the nodes that are not done as a new request. */
static int resubmit(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0}, out BUF_CLEANUP = {0}, path BUF_CLEANUP = {0},
                        members BUF_CLEANUP = {0};
        struct json j = {.out = &body};
        struct set left = {0};
        char uuid[UUID_TEXT];
        struct dag_graph g;
        int code = o->word_count > 2 ? cli_error(CLI_USAGE, "drover dag resubmit takes one request") : 0;

        if (code != 0)
                return code;
        code = dag_graph_read(cli, o->words[1], false, &g);
        if (code == 0)
                code = members_of(&g, o, &left);
        if (code == 0 && set_count(&left) == 0)
                code = cli_error(CLI_FAILED, "all nodes of request %s are done", o->words[1]);
        if (code == 0) {
                uuid_new(uuid);
                set_print(&members, &left);
                json_open(&j, '{');
                json_kstrz(&j, "uuid", uuid);
                json_kstr(&j, "members", buf_view(&members));
                json_kbool(&j, "graph", true);
                json_kbool(&j, "hold", options_flag(o, "hold"));
                json_close(&j, '}');
                buf_printf(&path, "/v1/requests/%llu/resubmit", (unsigned long long)g.request);
                code = api_post(cli, buf_z(&path), buf_view(&body), &answer);
        }
        set_deinit(&left);
        dag_graph_deinit(&g);
        if (code != 0 || api_print_json(cli, &answer))
                return code;
        buf_addz(&out, "request ");
        view_text(view_get(answer.root, "id"), &out);
        buf_addz(&out, ": ");
        human_count(&out, view_integer(view_get(answer.root, "jobs"), 0), "job", "jobs");
        buf_char(&out, '\n');
        cli_print(&out);
        return CLI_OK;
}

int cmd_dag(struct cli *cli, const struct options *o)
{
        struct str what = str_of(o->words[0]);

        if (str_eqz(what, "submit") && o->word_count == 2)
                return submit(cli, o, STR_NONE);
        if (str_eqz(what, "watch"))
                return watch(cli, o);
        if (str_eqz(what, "import") && o->word_count == 2)
                return dag_import(cli, o);
        if (str_eqz(what, "show"))
                return show_graph(cli, o);
        if (str_eqz(what, "rescue") && o->word_count == 2)
                return rescue(cli, o);
        if (str_eqz(what, "hold"))
                return act_on_nodes(cli, o, "hold", "held");
        if (str_eqz(what, "release"))
                return act_on_nodes(cli, o, "release", "released");
        if (str_eqz(what, "rm"))
                return act_on_nodes(cli, o, "remove", "removed");
        if (str_eqz(what, "resubmit"))
                return resubmit(cli, o);
        return cli_error(CLI_USAGE, "drover dag %s takes one FILE or ID", o->words[0]);
}
