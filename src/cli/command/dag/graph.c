/* The server knows jobs and the dependencies between them; a node is made of the jobs with the same
 * DAGNodeName. */
#include "cli/command/dag/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/set.h"
#include "cli/client/api.h"
#include "cli/client/ids.h"
#include "cli/client/jobs.h"
#include "cli/terminal/human.h"

const struct dag_state_row dag_states[DAG_STATES] = {
        [DAG_STATE_DONE] = {"done", "palegreen", '#', TABLE_DIM},
        [DAG_STATE_FAILED] = {"failed", "salmon", 'x', TABLE_RED},
        [DAG_STATE_REMOVED] = {"removed", "lightgrey", '-', TABLE_DIM},
        [DAG_STATE_HELD] = {"held", "orange", '!', TABLE_RED},
        [DAG_STATE_RUNNING] = {"running", "lightblue", '=', TABLE_GREEN},
        [DAG_STATE_IDLE] = {"idle", "khaki", ':', TABLE_YELLOW},
        [DAG_STATE_WAITS] = {"waits", "white", '.', TABLE_PLAIN},
};
/* The first state in this order that one of a node's jobs has is the state of the node. */
static const enum dag_state order[] = {DAG_STATE_FAILED,  DAG_STATE_HELD, DAG_STATE_RUNNING,
                                       DAG_STATE_REMOVED, DAG_STATE_IDLE, DAG_STATE_WAITS,
                                       DAG_STATE_DONE};

static enum dag_state job_node_state(const struct job_row *j)
{
        if (view_is(j->state,
                    "completed")) /* no exit code: the job was skipped, or was not needed any more */
                return view_integer(j->exit_code, 0) == 0 && view_integer(j->exit_signal, 0) == 0
                               ? DAG_STATE_DONE
                               : DAG_STATE_FAILED;
        if (view_is(j->state, "removed"))
                return DAG_STATE_REMOVED;
        if (view_is(j->state, "held"))
                return DAG_STATE_HELD;
        if (job_is_idle(j->state))
                return view_there(j->waits_for) ? DAG_STATE_WAITS : DAG_STATE_IDLE;
        return DAG_STATE_RUNNING;
}

static void add_role(struct dag_point *n, struct view ad, enum dag_state state)
{
        struct view script = view_get(ad, "DAGNodeScript");
        int64_t attempt = view_integer(view_get(ad, "DAGNodeRetry"), 0);
        enum dag_part role = view_is(script, "PRE")    ? DAG_PART_PRE
                             : view_is(script, "POST") ? DAG_PART_POST
                                                       : DAG_PART_JOB;

        n->has_parts |= view_there(script) || attempt > 0;
        if (view_is(script, "HOLD"))
                return;
        if (attempt > n->attempt) {
                memset(n->last, 0, sizeof(n->last));
                n->attempt = attempt;
        }
        if (attempt == n->attempt)
                n->last[role][state]++;
}

static void add_times(struct dag_point *n, int64_t started_ms, int64_t ended_ms)
{
        if (started_ms > 0 && (n->started_ms == 0 || started_ms < n->started_ms))
                n->started_ms = started_ms;
        if (ended_ms > n->ended_ms)
                n->ended_ms = ended_ms;
}

static int add_job(void *arg, struct view job)
{
        struct buf name BUF_CLEANUP = {0}, note BUF_CLEANUP = {0};
        struct dag_graph *g = arg;
        enum dag_state state;
        struct job_row j;
        struct dag_point *n;
        size_t at;

        job_read(job, &j);
        view_text(view_get(view_get(job, "ad"), "DAGNodeName"), &name);
        if (name.n == 0)
                return 0;
        at = (size_t)(uintptr_t)map_get(g->by_name, buf_view(&name));
        if (at == 0) {
                MEM_GROW(g->points, g->cap, g->count + 1);
                g->points[g->count] = (struct dag_point){.name = str_dupz(buf_view(&name))};
                at = ++g->count;
                map_put(g->by_name, buf_view(&name), (void *)(uintptr_t)at);
        }
        n = &g->points[at - 1];
        state = job_node_state(&j);
        n->counts[state]++;
        n->jobs++;
        add_role(n, view_get(job, "ad"), state);
        add_times(n, view_integer(j.started_ms, 0), view_integer(j.ended_ms, 0));
        if (view_is(j.state, "held"))
                view_text(j.hold_reason, &note);
        else if (state == DAG_STATE_WAITS)
                view_text(j.waits_for, &note);
        else if (state == DAG_STATE_FAILED)
                job_outcome(&j, &note);
        if (note.n && (!n->note || state == DAG_STATE_FAILED)) {
                free(n->note);
                n->note = str_dupz(buf_view(&note));
        }
        idmap_put(g->of_member, (uint64_t)view_integer(view_get(job, "member"), 0), (void *)(uintptr_t)at);
        return 0;
}

/* Returns the state of a node with scripts or several attempts: that of the running job, or of the script
 * or job that decides. */
static enum dag_state roles_state(const struct dag_point *n)
{
        static const enum dag_state now[] = {DAG_STATE_RUNNING, DAG_STATE_HELD, DAG_STATE_IDLE};
        const uint32_t *last = NULL;

        for (size_t i = 0; i < sizeof(now) / sizeof(now[0]); i++)
                if (n->counts[now[i]])
                        return now[i];
        for (int role = DAG_PART_POST; role >= 0 && !last; role--)
                for (unsigned s = 0; s < DAG_STATES; s++)
                        if (n->last[role][s])
                                last = n->last[role];
        if (!last || last[DAG_STATE_WAITS])
                return DAG_STATE_WAITS;
        if (last[DAG_STATE_FAILED] || (last[DAG_STATE_REMOVED] && n->counts[DAG_STATE_FAILED]))
                return DAG_STATE_FAILED;
        return last[DAG_STATE_REMOVED] ? DAG_STATE_REMOVED : DAG_STATE_DONE;
}

enum dag_state dag_point_state(const struct dag_point *n)
{
        if (n->has_parts)
                return roles_state(n);
        for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
                if (n->counts[order[i]])
                        return order[i];
        return DAG_STATE_DONE;
}

void dag_graph_deinit(struct dag_graph *g)
{
        for (size_t i = 0; i < g->count; i++) {
                free(g->points[i].name);
                free(g->points[i].note);
        }
        for (size_t i = 0; i < g->link_count; i++) {
                free(g->links[i].parents);
                free(g->links[i].children);
        }
        free(g->links);
        free(g->points);
        map_free(g->by_name);
        idmap_free(g->of_member);
}

/* ---- dependencies */

static int by_number(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return x < y ? -1 : x > y;
}

/* Returns the numbers of the points that have these members, each once, sorted. */
static uint32_t points_of(const struct dag_graph *g, struct str ranges, uint32_t **ret)
{
        uint32_t n = 0, cap = 0, kept = 0, last = 0, *list = NULL;
        struct set members = {0};

        set_parse(&members, ranges, UINT32_MAX);
        SET_FOREACH (&members, m) {
                uint32_t at = (uint32_t)(uintptr_t)idmap_get(g->of_member, m);

                if (at == 0 || at == last)
                        continue;
                last = at;
                MEM_GROW(list, cap, n + 1);
                list[n++] = at - 1;
        }
        set_deinit(&members);
        if (n > 1)
                qsort(list, n, sizeof(*list), by_number);
        for (uint32_t i = 0; i < n; i++)
                if (i == 0 || list[i] != list[kept - 1])
                        list[kept++] = list[i];
        *ret = list;
        return kept;
}

/* Adds one dependency, "0-9>10" or "0>1:any". Those between jobs of one node, and those that only end
 * jobs, are left out. */
static void add_link(struct dag_graph *g, struct str edge)
{
        struct str parents, children;
        struct dag_link l = {0};

        str_cut(&edge, '>', &parents);
        str_cut(&edge, ':', &children);
        if (str_eqz(edge, "post") || str_eqz(edge, "held") || str_eqz(edge, "stop") ||
            str_starts(edge, STR("retry")))
                return;
        l.dashed = edge.n > 0 && !str_starts(edge, STR("ok"));
        l.parent_count = points_of(g, parents, &l.parents);
        l.child_count = points_of(g, children, &l.children);
        if (l.parent_count == 0 || l.child_count == 0 ||
            (l.parent_count == 1 && l.child_count == 1 && l.parents[0] == l.children[0])) {
                free(l.parents);
                free(l.children);
                return;
        }
        MEM_GROW(g->links, g->link_cap, g->link_count + 1);
        g->links[g->link_count++] = l;
}

/* Computes levels: points without remaining parents are removed repeatedly, and get their level then. */
static void make_levels(struct dag_graph *g)
{
        uint32_t *at = mem_zalloc((g->count + 2) * sizeof(*at)), *out, *todo, todo_count = 0;
        uint32_t *left = mem_zalloc((g->link_count + 1) * sizeof(*left));
        uint32_t *level = mem_zalloc((g->link_count + 1) * sizeof(*level));
        uint32_t *in = mem_zalloc((g->count + 1) * sizeof(*in));

        for (size_t i = 0; i < g->link_count; i++) {
                const struct dag_link *l = &g->links[i];

                left[i] = l->parent_count;
                for (uint32_t k = 0; k < l->parent_count; k++)
                        at[l->parents[k] + 2]++;
                for (uint32_t k = 0; k < l->child_count; k++) {
                        in[l->children[k]]++;
                        g->points[l->children[k]].parents += l->parent_count;
                }
        }
        for (size_t i = 0; i < g->count; i++)
                at[i + 2] += at[i + 1];
        out = mem_array(NULL, at[g->count + 1] + 1, sizeof(*out));
        todo = mem_array(NULL, g->count + 1, sizeof(*todo));
        for (size_t i = 0; i < g->link_count; i++)
                for (uint32_t k = 0; k < g->links[i].parent_count; k++)
                        out[at[g->links[i].parents[k] + 1]++] = (uint32_t)i;
        for (uint32_t i = 0; i < g->count; i++)
                if (in[i] == 0)
                        todo[todo_count++] = i;
        for (uint32_t done = 0; done < todo_count; done++) {
                const struct dag_point *p = &g->points[todo[done]];

                if (p->level + 1 > g->level_count)
                        g->level_count = p->level + 1;
                for (uint32_t i = at[todo[done]]; i < at[todo[done] + 1]; i++) {
                        const struct dag_link *l = &g->links[out[i]];

                        if (p->level + 1 > level[out[i]])
                                level[out[i]] = p->level + 1;
                        if (--left[out[i]])
                                continue;
                        for (uint32_t k = 0; k < l->child_count; k++) {
                                struct dag_point *child = &g->points[l->children[k]];

                                if (level[out[i]] > child->level)
                                        child->level = level[out[i]];
                                if (--in[l->children[k]] == 0)
                                        todo[todo_count++] = l->children[k];
                        }
                }
        }
        free(at);
        free(out);
        free(todo);
        free(left);
        free(level);
        free(in);
}

static int read_links(struct cli *cli, struct dag_graph *g)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, edges BUF_CLEANUP = {0};
        struct str rest, edge;
        int code;

        buf_printf(&path, "/v1/requests/%llu?edges=1", (unsigned long long)g->request);
        code = api_get(cli, buf_z(&path), &answer);
        if (code != 0)
                return code;
        view_text(view_get(answer.root, "edges"), &edges);
        rest = buf_view(&edges);
        while (rest.n && str_cut(&rest, ';', &edge))
                add_link(g, edge);
        make_levels(g);
        return 0;
}

void dag_graph_sum(const struct dag_graph *g, struct buf *out)
{
        uint64_t sums[DAG_STATES] = {0};
        const char *comma = "";

        for (size_t i = 0; i < g->count; i++)
                sums[dag_point_state(&g->points[i])]++;
        human_count(out, (int64_t)g->count, "node", "nodes");
        buf_addz(out, ": ");
        for (unsigned s = 0; s < DAG_STATES; s++)
                if (sums[s]) {
                        buf_printf(out, "%s%llu %s", comma, (unsigned long long)sums[s], dag_states[s].name);
                        comma = ", ";
                }
}

int dag_graph_read(struct cli *cli, const char *word, bool links, struct dag_graph *g)
{
        struct buf path BUF_CLEANUP = {0};
        bool json = cli->json;
        struct err err;
        struct id id;
        int code;

        *g = (struct dag_graph){.by_name = map_new(), .of_member = idmap_new()};
        if (id_parse(str_of(word), &id, &err) != 0)
                return cli_error(CLI_USAGE, "%s", err.text);
        if (!id.whole)
                return cli_error(CLI_USAGE, "%s is a job; a graph is a whole request, as 7", word);
        g->request = id.request;
        buf_printf(&path, "/v1/jobs?id=%llu&attributes=DAGNodeName,DAGNodeScript,DAGNodeRetry",
                   (unsigned long long)id.request);
        cli->json = false; /* the listing is read here, not printed */
        code = api_list(cli, &(struct api_list){.path = &path,
                                                .array = "jobs",
                                                .cursor = "after",
                                                .whole = true,
                                                .each = add_job,
                                                .arg = g});
        cli->json = json;
        if (code == 0 && g->count == 0)
                return cli_error(CLI_FAILED, "request %s has no nodes of a DAG in the queue", word);
        return code == 0 && links ? read_links(cli, g) : code;
}
