/* Reads a graph: its edges, the nodes between the ends of their runs, and the edges of each node. */
#include "core/model/graph.h"

#include <errno.h>

#include "base/mem.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"
#include "core/model/submission.h"

/* ---- reading edges */

static void add_run(struct graph *g, uint32_t first, uint32_t end)
{
        MEM_GROW(g->runs, g->run_cap, g->run_count + 1);
        g->runs[g->run_count++] = (struct graph_run){first, end};
}

static struct graph_edge *add_edge(struct graph *g, uint64_t request, enum dependency_when when)
{
        g->handles |= when == DEPENDENCY_POST || when == DEPENDENCY_RETRY;
        g->follows |= when == DEPENDENCY_HELD || when == DEPENDENCY_START;
        MEM_GROW(g->edges, g->edge_cap, g->edge_count + 1);
        g->edges[g->edge_count] =
                (struct graph_edge){.request = request, .run = g->run_count, .when = (unsigned)when};
        return &g->edges[g->edge_count++];
}

/* Adds the runs of a text to the graph, through a set, so they are sorted and disjoint. */
static int read_runs(struct graph *g, struct str text, uint32_t count, uint32_t *ret_runs, struct err *err)
{
        struct str rest = text;
        uint32_t first, end, n = 0;
        struct set members = {0};
        uint64_t from, to;
        int got;

        while ((got = dependency_range_next(&rest, &first, &end)) > 0) {
                if (end > count) {
                        got = -ERANGE;
                        break;
                }
                if (n++ == 0 && rest.n == 0) { /* the usual case */
                        add_run(g, first, end);
                        *ret_runs = 1;
                        return 0;
                }
                set_add_range(&members, first, end);
        }
        *ret_runs = 0;
        for (uint64_t at = 0; !got && set_run(&members, at, &from, &to); at = to, ++*ret_runs)
                add_run(g, (uint32_t)from, (uint32_t)to);
        set_deinit(&members);
        if (got)
                return err_set(err, -EINVAL,
                               "the edges name jobs \"" STR_FMT "\", and the request has the jobs 0 to %u",
                               STR_ARG(str_head(text, 100)), count - 1);
        return 0;
}

static int read_edges(struct graph *g, uint32_t count, struct str text, struct err *err)
{
        struct dependency_edge from;
        int got;

        while ((got = dependency_edge_next(&text, &from, err)) > 0) {
                struct graph_edge *e = add_edge(g, 0, from.when);
                uint32_t at = g->edge_count - 1, parents, children;

                if ((got = read_runs(g, from.parents, count, &parents, err)) != 0 ||
                    (got = read_runs(g, from.children, count, &children, err)) != 0)
                        return got;
                e = &g->edges[at];
                e->parent_runs = parents;
                e->child_runs = children;
                e->code = from.has_code ? from.code : 0;
        }
        return got;
}

static bool graph_is_late(const struct job_template *t, symbol name)
{
        return job_template_late_text(t, name).p != NULL;
}

static void add_outer(struct graph *g, const struct dependency *d, const struct part *p)
{
        struct graph_edge *e = add_edge(g, d->request, d->when);

        add_run(g, d->first, d->all ? UINT32_MAX : d->end);
        add_run(g, p->first, p->first + p->count);
        e->parent_runs = e->child_runs = 1;
        MEM_GROW(g->outer, g->outer_cap, g->outer_count + 1);
        g->outer[g->outer_count++] = g->edge_count - 1;
        g->each += d->when == DEPENDENCY_EACH;
}

/* Extends the last part's edges to part p, whose DependsOn is the same. */
static void widen_outer(struct graph *g, const struct part *p, uint32_t from)
{
        for (uint32_t i = from; i < g->outer_count; i++) {
                struct graph_edge *e = &g->edges[g->outer[i]];

                g->runs[e->run + 1].end = p->first + p->count;
        }
}

/* Reads the edges of each part's DependsOn. */
static int graph_read_attributes(struct core *c, const struct request *r, struct graph *g, struct err *err)
{
        struct value v, before = {.type = VALUE_UNDEFINED};
        uint32_t from = 0;

        for (uint32_t i = 0; i < r->part_count; i++) {
                const struct part *p = &r->parts[i];
                const struct job_template *t = p->job_template;
                struct dependency d;
                struct str rest;
                int got;

                if (graph_is_late(t, c->attr.DependsOn) || graph_is_late(t, c->attr.OnDependencyFailure))
                        return err_set(err, -EINVAL,
                                       "DependsOn and OnDependencyFailure cannot differ from job to job of a "
                                       "queue statement: leave out $(Process) and the item's variables");
                if (!ad_find(t->ad, c->attr.DependsOn) || p->count == 0) {
                        before.type = VALUE_UNDEFINED;
                        continue;
                }
                if (!ad_literal(t->ad, c->attr.DependsOn, &v) || v.type != VALUE_STRING)
                        return err_set(err, -EINVAL,
                                       "DependsOn must be a text, like \"7\" or \"7:any, 8.3\"");
                rest = v.string;
                if (before.type == VALUE_STRING && str_eq(before.string, v.string)) {
                        widen_outer(g, p, from);
                        continue;
                }
                from = g->outer_count;
                while ((got = dependency_next(&rest, &d, err)) > 0)
                        add_outer(g, &d, p);
                if (got)
                        return got;
                before = v;
        }
        return 0;
}

/* ---- nodes */

static void mark(uint64_t *bits, uint32_t at)
{
        bits[at / 64] |= 1ull << at % 64;
}

static void make_nodes(struct graph *g, uint32_t count)
{
        uint64_t *bits = mem_zalloc((count / 64 + 1) * sizeof(*bits));
        uint32_t n = 0, words = count / 64 + 1;

        mark(bits, 0);
        mark(bits, count);
        for (uint32_t i = 0; i < g->edge_count; i++) {
                const struct graph_edge *e = &g->edges[i];

                for (uint32_t k = e->request ? e->parent_runs : 0; k < e->parent_runs + e->child_runs; k++) {
                        mark(bits, g->runs[e->run + k].first);
                        mark(bits, g->runs[e->run + k].end);
                }
        }
        for (uint32_t w = 0; w < words; w++)
                n += (uint32_t)__builtin_popcountll(bits[w]);
        g->nodes = mem_array(NULL, n, sizeof(*g->nodes));
        g->node_count = 0;
        for (uint32_t w = 0; w < words; w++)
                for (uint64_t left = bits[w]; left; left &= left - 1)
                        g->nodes[g->node_count++] = w * 64 + (uint32_t)__builtin_ctzll(left);
        g->node_count--; /* the last entry is the end */
        free(bits);
}

uint32_t graph_node(const struct graph *g, uint32_t member)
{
        uint32_t low = 0, high = g->node_count; /* nodes[low] <= member < nodes[high] */

        if (member < g->node_count && g->nodes[member] == member && g->nodes[member + 1] > member)
                return member; /* each job is a node of its own */
        while (high - low > 1) {
                uint32_t middle = low + (high - low) / 2;

                if (g->nodes[middle] <= member)
                        low = middle;
                else
                        high = middle;
        }
        return low;
}

/* Makes the index of the edges that each node is a parent of, or a child of if `children` is set: those of
 * node n are at (*ret)[(*ret_at)[n]] and on. Adds their number to *links. */
static int make_index(const struct graph *g, bool children, uint64_t *links, uint32_t **ret_at,
                      uint32_t **ret, struct err *err)
{
        uint32_t *at = *ret_at = mem_zalloc((g->node_count + 2) * sizeof(*at)), *list;

        for (int fill = 0; fill < 2; fill++) {
                for (uint32_t i = 0; i < g->edge_count; i++) {
                        const struct graph_edge *e = &g->edges[i];
                        const struct graph_run *runs = children ? graph_children(g, e) : graph_parents(g, e);
                        uint32_t count = children ? e->child_runs : e->request ? 0 : e->parent_runs;

                        for (uint32_t k = 0; k < count; k++)
                                for (uint32_t n = graph_node(g, runs[k].first);
                                     n < g->node_count && g->nodes[n] < runs[k].end; n++) {
                                        if (fill)
                                                list[at[n + 1]++] = i;
                                        else if (++*links > GRAPH_LINKS_MAX)
                                                return err_set(err, -EINVAL,
                                                               "its jobs wait for each other in more than %u "
                                                               "ways: let many jobs wait for one, and others "
                                                               "for that",
                                                               GRAPH_LINKS_MAX);
                                        else
                                                at[n + 2]++;
                                }
                }
                if (fill)
                        break;
                for (uint32_t n = 0; n < g->node_count; n++)
                        at[n + 2] += at[n + 1];
                list = *ret = mem_array(NULL, at[g->node_count + 1] + 1, sizeof(*list));
        }
        return 0;
}

static int make_indexes(struct graph *g, struct err *err)
{
        uint64_t links = 0;
        int result = make_index(g, false, &links, &g->out_at, &g->out, err);

        g->unmet = mem_zalloc((g->node_count + 1) * sizeof(*g->unmet));
        return result ? result : make_index(g, true, &links, &g->in_at, &g->in, err);
}

/* ---- circles: repeatedly removes nodes that wait for no remaining node */

struct peel {
        struct graph *g;
        uint32_t *left; /* remaining nodes that are parents of each edge; 0 for parents in other requests */
        uint32_t *in;   /* number of edges that each node waits for */
        uint32_t *todo, todo_count, taken;
};

static void peel_edge(struct peel *x, const struct graph_edge *e)
{
        const struct graph *g = x->g;

        for (uint32_t k = 0; k < e->child_runs; k++) {
                const struct graph_run *run = &graph_children(g, e)[k];

                for (uint32_t n = graph_node(g, run->first); n < g->node_count && g->nodes[n] < run->end; n++)
                        if (--x->in[n] == 0)
                                x->todo[x->todo_count++] = n;
        }
}

static bool waits(const struct graph_edge *e)
{
        return e->when != DEPENDENCY_STOP;
}

static void peel_begin(struct peel *x)
{
        const struct graph *g = x->g;

        for (uint32_t i = 0; i < g->out_at[g->node_count]; i++)
                x->left[g->out[i]]++;
        for (uint32_t n = 0; n < g->node_count; n++) {
                for (uint32_t i = g->in_at[n]; i < g->in_at[n + 1]; i++)
                        x->in[n] += waits(&g->edges[g->in[i]]) && g->edges[g->in[i]].request == 0;
                if (x->in[n] == 0)
                        x->todo[x->todo_count++] = n;
        }
}

/* Reports a circle among the remaining nodes, by an edge between two of them. */
static int say_circle(const struct peel *x, struct err *err)
{
        const struct graph *g = x->g;

        for (uint32_t i = 0; i < g->edge_count; i++) {
                const struct graph_edge *e = &g->edges[i];

                if (e->request || x->left[i] == 0 || !waits(e))
                        continue;
                for (uint32_t k = 0; k < e->parent_runs; k++) {
                        uint32_t n = graph_node(g, graph_parents(g, e)[k].first);

                        for (; n < g->node_count && g->nodes[n] < graph_parents(g, e)[k].end; n++)
                                if (x->in[n])
                                        return err_set(err, -EINVAL,
                                                       "jobs wait for each other in a circle: job %u, which "
                                                       "job %u waits for, is in it or behind it",
                                                       g->nodes[n], graph_children(g, e)->first);
                }
        }
        return err_set(err, -EINVAL, "jobs wait for each other in a circle");
}

static int refuse_circles(struct graph *g, struct err *err)
{
        struct peel x = {.g = g};
        int result = 0;

        x.left = mem_zalloc((g->edge_count + 1) * sizeof(*x.left));
        x.in = mem_zalloc((g->node_count + 1) * sizeof(*x.in));
        x.todo = mem_zalloc((g->node_count + 1) * sizeof(*x.todo));
        peel_begin(&x);
        while (x.taken < x.todo_count) {
                uint32_t n = x.todo[x.taken++];

                for (uint32_t i = g->out_at[n]; i < g->out_at[n + 1]; i++)
                        if (--x.left[g->out[i]] == 0 && waits(&g->edges[g->out[i]]))
                                peel_edge(&x, &g->edges[g->out[i]]);
        }
        if (x.taken < g->node_count)
                result = say_circle(&x, err);
        free(x.left);
        free(x.in);
        free(x.todo);
        return result;
}

/* ---- loading */

/* Refuses edges that split a gang: some of its jobs would wait for others of
 * it. */
static int refuse_cut_gangs(const struct request *r, const struct graph *g, struct err *err)
{
        for (uint32_t n = 1; r->has_gangs && n < g->node_count; n++) {
                uint32_t at = g->nodes[n], first, size;

                if (gang_of(r, at, &first, &size) && at != first)
                        return err_set(err, -EINVAL,
                                       "jobs %u and %u start together: they must wait for the same jobs, and "
                                       "be waited for together",
                                       at - 1, at);
        }
        return 0;
}

static void keep_past(struct graph *g, const struct submission *s)
{
        g->ended_parent_count = (uint32_t)s->ended_parent_count;
        g->ended_parents = mem_zalloc((s->ended_parent_count + 1) * sizeof(*g->ended_parents));
        for (size_t i = 0; i < s->ended_parent_count; i++) {
                g->ended_parents[i] = s->ended_parents[i];
                set_copy(&g->ended_parents[i].ok, &s->ended_parents[i].ok);
        }
}

/* Returns whether the request has an edge, or may abort a graph. Late attributes count, since they may be
 * wrong. */
static bool graph_is_said(const struct core *c, const struct request *r, const struct submission *s)
{
        const symbol names[] = {c->attr.DependsOn, c->attr.OnDependencyFailure};

        for (uint32_t i = 0; i < r->part_count; i++) {
                const struct job_template *t = r->parts[i].job_template;

                if (t->abort_code || ad_find(t->ad, c->attr.DependsOn))
                        return true;
                for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
                        if (graph_is_late(t, names[k]))
                                return true;
        }
        return s->edges.n > 0;
}

int graph_load(struct core *c, struct request *r, const struct submission *s, struct graph **ret,
               struct err *err)
{
        struct graph *g;
        int result;
        bool needed;

        *ret = NULL;
        if (!graph_is_said(c, r, s))
                return 0;
        g = mem_new(struct graph);
        result = read_edges(g, r->count, s->edges, err);
        if (!result)
                result = graph_read_attributes(c, r, g, err);
        for (uint32_t i = 0; i < r->part_count; i++)
                g->has_aborts |= r->parts[i].job_template->abort_code != 0;
        needed = g->edge_count > 0 || g->has_aborts;
        if (!result && needed) {
                make_nodes(g, r->count);
                keep_past(g, s);
                result = make_indexes(g, err);
        }
        if (!result && needed)
                result = refuse_cut_gangs(r, g, err);
        if (!result && g->edge_count > g->outer_count)
                result = refuse_circles(g, err);
        if (!result && needed)
                *ret = g;
        else
                graph_free(g);
        return result;
}

void graph_free(struct graph *g)
{
        if (!g)
                return;
        for (uint32_t i = 0; i < g->ended_parent_count; i++)
                set_deinit(&g->ended_parents[i].ok);
        for (uint32_t i = 0; i < g->doomed_count; i++)
                set_deinit(&g->doomed[i].members);
        set_deinit(&g->ready);
        set_deinit(&g->dooming);
        set_deinit(&g->accounted);
        set_deinit(&g->stops);
        free(g->doomed);
        free(g->falls);
        free(g->ended_parents);
        free(g->edges);
        free(g->runs);
        free(g->outer);
        free(g->nodes);
        free(g->unmet);
        free(g->out_at);
        free(g->out);
        free(g->in_at);
        free(g->in);
        free(g);
}

size_t graph_bytes(const struct graph *g)
{
        if (!g)
                return 0;
        return sizeof(*g) + g->edge_cap * sizeof(*g->edges) + g->run_cap * sizeof(*g->runs) +
               (size_t)g->node_count * 4 * sizeof(*g->nodes) +
               (g->in_at ? (g->out_at[g->node_count] + g->in_at[g->node_count]) * sizeof(*g->out) : 0);
}

uint64_t graph_runs_members(const struct graph_run *runs, uint32_t count)
{
        uint64_t n = 0;

        for (uint32_t i = 0; i < count; i++)
                n += runs[i].end - runs[i].first;
        return n;
}

void graph_all_children(const struct graph *g, struct set *to)
{
        for (uint32_t i = 0; i < g->edge_count; i++) {
                const struct graph_edge *e = &g->edges[i];

                for (uint32_t k = 0; k < e->child_runs && e->when != DEPENDENCY_STOP; k++)
                        set_add_range(to, graph_children(g, e)[k].first, graph_children(g, e)[k].end);
        }
}

/* Returns whether another attempt of the member's node follows, which the exit code does not rule out. */
static bool is_tried_again(const struct graph *g, const struct request *r, uint32_t member)
{
        for (uint32_t n = graph_node(g, member), i = g->out_at[n]; i < g->out_at[n + 1]; i++) {
                const struct graph_edge *e = &g->edges[g->out[i]];

                if (e->when == DEPENDENCY_RETRY && !(e->code && request_exit(r, member) == e->code))
                        return true;
        }
        return false;
}

bool graph_handles(const struct graph *g, const struct request *r, uint32_t member)
{
        if (!g->handles)
                return false;
        if (is_tried_again(g, r, member))
                return true;
        for (uint32_t n = graph_node(g, member), i = g->out_at[n]; i < g->out_at[n + 1]; i++) {
                const struct graph_edge *e = &g->edges[g->out[i]];

                if (e->when == DEPENDENCY_POST ||
                    (e->code && e->when == DEPENDENCY_OK && request_exit(r, member) == e->code))
                        return true;
                /* A failed PRE script is handled if the attempt that failed with it is tried again. */
                for (uint32_t k = 0; e->when == DEPENDENCY_OK && k < e->child_runs; k++)
                        if (is_tried_again(g, r, graph_children(g, e)[k].end - 1))
                                return true;
        }
        return false;
}

static uint64_t unhandled(const struct request *r, const struct set *members, uint32_t first, uint32_t end)
{
        const struct graph *g = request_cold(r)->graph;
        uint64_t n = set_count_range(members, first, end);

        for (uint64_t m = set_next(members, first); g && g->handles && m < end; m = set_next(members, m + 1))
                n -= graph_handles(g, r, (uint32_t)m);
        return n;
}

uint64_t graph_failures(const struct request *r, uint32_t first, uint32_t end, uint64_t *ret_removed)
{
        uint64_t removed = unhandled(r, &request_cold(r)->removed, first, end);

        if (ret_removed)
                *ret_removed = removed;
        return removed + unhandled(r, &request_cold(r)->failed, first, end);
}

const struct ended_parent *graph_ended_parent(const struct graph *g, uint64_t request)
{
        for (uint32_t i = 0; i < g->ended_parent_count; i++)
                if (g->ended_parents[i].request == request)
                        return &g->ended_parents[i];
        return NULL;
}
