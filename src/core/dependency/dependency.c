/* Counting has three steps, the same for an event, a submission and a restart: some parents of an edge have
 * ended; the edge is satisfied, or never will be; its children are ready, or doomed. Jobs that will be
 * removed count as ended at once (graph.accounted), so a chain of any length falls in one event. */
#include "core/dependency/dependency.h"

#include <assert.h>
#include <stdio.h>

#include "base/mem.h"
#include "core/events/apply.h"
#include "core/events/history.h"
#include "core/model/core_parts.h"
#include "core/model/graph.h"
#include "core/model/submission.h"

#define ALL       UINT32_MAX
#define EDGES_MAX 200000u /* most edges from other requests, for one job, or from one request */
#define FILE_NOW  100u    /* jobs whose history records are written with their removal */

struct dependencies {
        struct idmap *todo;    /* requests with members that are ready or doomed */
        struct idmap *parents; /* request that others wait for → set of members that may have ended */
        uint64_t last_link;    /* serial of link_parents */
};

void dependency_init(struct core *c)
{
        c->dependencies = mem_new(struct dependencies);
        c->dependencies->todo = idmap_new();
        c->dependencies->parents = idmap_new();
}

void dependency_deinit(struct core *c)
{
        size_t at = 0;
        void *value;

        while (idmap_next(c->dependencies->parents, &at, NULL, &value)) {
                set_deinit(value);
                free(value);
        }
        idmap_free(c->dependencies->parents);
        idmap_free(c->dependencies->todo);
        free(c->dependencies);
}

/* The request whose edges are being examined; and the job that caused members to fall. */
struct counting {
        struct core *core;
        struct request *request;
        struct graph *graph;
        uint64_t cause;
        uint32_t member;
        enum dependency_when when;
        bool skip; /* fallen members are skipped, not failed */
};

static struct graph *graph_of(const struct request *r)
{
        return request_cold(r)->graph;
}

static const struct set *blocked(const struct counting *x)
{
        return &request_cold(x->request)->blocked;
}

static void todo(const struct counting *x)
{
        idmap_put(x->core->dependencies->todo, x->request->id, x->core);
}

/* ---- ends of members */

/* Counts, in [first, end), the members that have succeeded, and those that ended otherwise. */
static void count_ended(const struct request *r, uint32_t first, uint32_t end, uint32_t *ret_ok,
                        uint32_t *ret_bad)
{
        const struct request_cold *cold = request_cold(r);
        uint32_t failed = (uint32_t)set_count_range(&cold->failed, first, end);

        *ret_ok = (uint32_t)set_count_range(&cold->completed, first, end) - failed;
        *ret_bad = failed + (uint32_t)set_count_range(&cold->removed, first, end);
}

static bool has_succeeded(const struct request *r, uint32_t member)
{
        return set_has(&request_cold(r)->completed, member) && !set_has(&request_cold(r)->failed, member);
}

static bool has_failed(const struct request *r, uint32_t member)
{
        return set_has(&request_cold(r)->failed, member) || set_has(&request_cold(r)->removed, member);
}

/* Returns the parent of a child of a one-to-one edge. */
static uint32_t each_parent(const struct graph *g, const struct graph_edge *e, uint32_t child)
{
        return graph_parents(g, e)->first + (child - graph_children(g, e)->first);
}

static bool each_satisfied(const struct counting *x, const struct graph_edge *e, uint32_t child)
{
        uint32_t parent = each_parent(x->graph, e, child);
        const struct ended_parent *ended = graph_ended_parent(x->graph, e->request);
        const struct request *from = ended ? NULL : request_find(x->core, e->request);

        return ended ? set_has(&ended->ok, parent) : !from || has_succeeded(from, parent);
}

/* ---- children */

static void ready(struct counting *x, uint32_t member)
{
        struct graph *g = x->graph;

        for (uint32_t n = graph_node(g, member), i = g->in_at[n]; g->each && i < g->in_at[n + 1]; i++) {
                const struct graph_edge *e = &g->edges[g->in[i]];

                if (e->when == DEPENDENCY_EACH && !each_satisfied(x, e, member))
                        return;
        }
        set_add(&g->ready, member);
        todo(x);
}

static void node_ready(struct counting *x, uint32_t node)
{
        uint32_t end = x->graph->nodes[node + 1];
        uint64_t from, to;

        for (uint64_t at = x->graph->nodes[node]; set_run(blocked(x), at, &from, &to) && from < end;
             at = to) {
                to = to < end ? to : end;
                if (x->graph->each == 0) {
                        set_add_range(&x->graph->ready, from, to);
                        todo(x);
                        continue;
                }
                for (uint64_t m = from; m < to; m++)
                        ready(x, (uint32_t)m);
        }
}

static struct set *doomed_set(struct counting *x, enum graph_fate fate)
{
        struct graph *g = x->graph;
        struct graph_doomed *last = g->doomed_count ? &g->doomed[g->doomed_count - 1] : NULL;

        for (uint32_t i = 0; i < 2 && last && i < g->doomed_count; i++, last--)
                if (last->request == x->cause && last->member == x->member && last->when == x->when &&
                    last->fate == fate)
                        return &last->members;
        MEM_GROW(g->doomed, g->doomed_cap, g->doomed_count + 1);
        g->doomed[g->doomed_count] = (struct graph_doomed){
                .request = x->cause, .member = x->member, .when = x->when, .fate = fate};
        return &g->doomed[g->doomed_count++].members;
}

/* Dooms the blocked members [first, end), part by part, since the part decides what happens to them. */
static void doom_run(struct counting *x, uint32_t first, uint32_t end)
{
        struct graph *g = x->graph;

        while (first < end) {
                const struct part *p = request_part(x->request, first, NULL);
                uint32_t to = request_cold(x->request)->edits ? first + 1 /* it may have a part of its own */
                              : end < p->first + p->count     ? end
                                                              : p->first + p->count;
                enum graph_fate fate = x->skip                              ? GRAPH_SKIP
                                       : p->job_template->dependency_remove ? GRAPH_REMOVE
                                                                            : GRAPH_HOLD;

                set_add_range(doomed_set(x, fate), first, to);
                set_add_range(&g->dooming, first, to);
                set_remove_range(&g->ready, first, to);
                if (fate != GRAPH_HOLD) {
                        set_add_range(&g->accounted, first, to);
                        MEM_GROW(g->falls, g->falls_cap, g->falls_count + 1);
                        g->falls[g->falls_count++] = (struct graph_fall){first, to, fate == GRAPH_SKIP};
                }
                first = to;
        }
        todo(x);
}

static void doom(struct counting *x, uint32_t first, uint32_t end)
{
        uint64_t from, to, next;

        for (uint64_t at = first; set_run(blocked(x), at, &from, &to) && from < end; at = to) {
                to = to < end ? to : end;
                while (from < to) { /* without those doomed already */
                        if (set_has(&x->graph->dooming, (uint32_t)from)) {
                                from++;
                                continue;
                        }
                        next = set_next(&x->graph->dooming, from);
                        next = next < to ? next : to;
                        doom_run(x, (uint32_t)from, (uint32_t)next);
                        from = next;
                }
        }
}

/* ---- edges */

static void edge_satisfied(struct counting *x, struct graph_edge *e)
{
        struct graph *g = x->graph;

        e->state = EDGE_SATISFIED;
        if (e->when == DEPENDENCY_STOP) {
                for (uint32_t k = 0; k < e->child_runs; k++)
                        set_add_range(&g->stops, graph_children(g, e)[k].first, graph_children(g, e)[k].end);
                todo(x);
                return;
        }
        for (uint32_t k = 0; k < e->child_runs; k++) {
                const struct graph_run run = graph_children(g, e)[k];

                for (uint32_t n = graph_node(g, run.first); n < g->node_count && g->nodes[n] < run.end; n++)
                        if (--g->unmet[n] == 0)
                                node_ready(x, n);
        }
}

/* The edge can never be satisfied: its children fail with their parents, or (`skip`) need not run. */
static void edge_never(struct counting *x, struct graph_edge *e, bool skip)
{
        struct graph *g = x->graph;

        e->state = skip ? EDGE_SKIPPED : EDGE_NEVER;
        x->skip = skip;
        if (e->when == DEPENDENCY_FAIL) {
                x->when = DEPENDENCY_FAIL;
                x->member = ALL;
        }
        for (uint32_t k = 0; k < e->child_runs; k++) {
                const struct graph_run run = graph_children(g, e)[k];

                for (uint32_t n = graph_node(g, run.first); n < g->node_count && g->nodes[n] < run.end; n++)
                        g->unmet[n] |= GRAPH_NEVER;
                doom(x, run.first, run.end);
        }
        x->skip = false;
}

/* Returns whether a parent has ended with the edge's exit code. */
static bool edge_has_code(const struct request *r, const struct graph *g, const struct graph_edge *e)
{
        const struct graph_run *parents = graph_parents(g, e);

        for (uint32_t k = 0; e->code && k < e->parent_runs; k++)
                for (uint64_t m = set_next(&request_cold(r)->failed, parents[k].first); m < parents[k].end;
                     m = set_next(&request_cold(r)->failed, m + 1))
                        if (request_exit(r, (uint32_t)m) == e->code)
                                return true;
        return false;
}

/* Returns whether the edge depends on jobs that have not ended, so that their present state decides. */
static bool edge_follows(const struct graph_edge *e)
{
        return e->when == DEPENDENCY_HELD || e->when == DEPENDENCY_START;
}

static enum graph_edge_state follow_state(const struct request *r, const struct graph *g,
                                          const struct graph_edge *e)
{
        const struct graph_run *parents = graph_parents(g, e);
        uint64_t ended = 0, started = 0;

        for (uint32_t k = 0; k < e->parent_runs; k++) {
                uint32_t ok, bad;

                if (e->when == DEPENDENCY_HELD &&
                    set_next(&request_cold(r)->held, parents[k].first) < parents[k].end)
                        return EDGE_SATISFIED;
                count_ended(r, parents[k].first, parents[k].end, &ok, &bad);
                ended += ok + bad;
                for (uint32_t m = parents[k].first; e->when == DEPENDENCY_START && m < parents[k].end; m++) {
                        const struct job *j = request_job(r, m);

                        started += j && job_state_runs(j->state);
                }
        }
        if (ended + started < graph_runs_members(parents, e->parent_runs))
                return EDGE_OPEN;
        return e->when == DEPENDENCY_HELD ? EDGE_SKIPPED : EDGE_SATISFIED;
}

static void follow(struct counting *x, struct graph_edge *e)
{
        enum graph_edge_state state =
                e->state == EDGE_OPEN ? follow_state(x->request, x->graph, e) : EDGE_OPEN;

        if (state == EDGE_SATISFIED)
                edge_satisfied(x, e);
        else if (state == EDGE_SKIPPED)
                edge_never(x, e, true);
}

/* Counts further parents of the edge that have ended: `ok` have succeeded, `bad` have not. */
static void edge_count(struct counting *x, struct graph_edge *e, uint32_t ok, uint32_t bad)
{
        if (e->state != EDGE_OPEN || e->when == DEPENDENCY_EACH || edge_follows(e) || ok + bad == 0)
                return;
        assert(ok + bad <= e->left);
        e->left -= ok + bad;
        e->failed |= bad > 0;
        if (e->when == DEPENDENCY_OK && e->failed)
                edge_never(x, e, edge_has_code(x->request, x->graph, e));
        else if (e->left == 0 && e->when == DEPENDENCY_FAIL && !e->failed)
                edge_never(x, e, false);
        else if (e->left == 0 && e->when == DEPENDENCY_RETRY && !e->failed)
                edge_never(x, e, true);
        else if (e->left == 0 && e->when == DEPENDENCY_RETRY && edge_has_code(x->request, x->graph, e))
                edge_never(x, e, false);
        else if (e->left == 0)
                edge_satisfied(x, e);
}

/* Handles the end of members [first, end) of the graph's own request. */
static void own_ended(struct counting *x, uint32_t first, uint32_t end, bool ok)
{
        struct graph *g = x->graph;

        for (uint32_t n = graph_node(g, first); n < g->node_count && g->nodes[n] < end; n++) {
                uint32_t from = g->nodes[n] > first ? g->nodes[n] : first;
                uint32_t to = g->nodes[n + 1] < end ? g->nodes[n + 1] : end;

                for (uint32_t i = g->out_at[n]; i < g->out_at[n + 1]; i++)
                        edge_count(x, &g->edges[g->out[i]], ok ? to - from : 0, ok ? 0 : to - from);
        }
}

/* Processes jobs that will be removed or skipped, one after the other. */
static void fall(struct counting *x)
{
        struct graph *g = x->graph;

        while (g->falls_count) {
                struct graph_fall f = g->falls[--g->falls_count];

                own_ended(x, f.first, f.end, f.ok);
        }
}

/* ---- counts of a request, derived from the states of its jobs */

static struct dependent *dependent_find(const struct request *from, uint64_t id)
{
        const struct request_cold *cold = request_cold(from);

        for (uint32_t k = 0; k < cold->dependent_count; k++)
                if (cold->dependents[k].id == id)
                        return &cold->dependents[k];
        return NULL;
}

static void dependent_drop(struct request_cold *cold, uint32_t at)
{
        cold->dependent_edges -= cold->dependents[at].edges;
        cold->dependents[at] = cold->dependents[--cold->dependent_count];
}

/* Links the dependent first for this request; its edges are counted anew. */
static struct dependent *dependent_link(struct request_cold *cold, const struct request *from, uint64_t id)
{
        struct dependent *d = dependent_find(from, id);

        if (d) {
                cold->dependent_edges -= d->edges;
        } else {
                MEM_GROW(cold->dependents, cold->dependent_cap, cold->dependent_count + 1);
                d = &cold->dependents[cold->dependent_count++];
        }
        *d = (struct dependent){.id = id};
        return d;
}

static void link_parents(struct core *c, const struct request *r)
{
        const struct graph *g = graph_of(r);
        uint64_t serial = ++c->dependencies->last_link;

        for (uint32_t i = 0; i < g->outer_count; i++) {
                struct request *from = request_find(c, g->edges[g->outer[i]].request);
                struct request_cold *cold;

                if (!from)
                        continue;
                cold = request_cold_make(from);
                if (cold->linked != serial) { /* then it is first in the list, and found at once */
                        struct dependent *d = dependent_link(cold, from, r->id), first = cold->dependents[0];

                        cold->dependents[0] = *d;
                        *d = first;
                        cold->linked = serial;
                }
                cold->dependents[0].edges++;
                cold->dependent_edges++;
        }
}

static uint32_t all_jobs(const struct core *c, const struct graph *g, uint64_t request)
{
        const struct ended_parent *ended = graph_ended_parent(g, request);
        const struct request *from = request_find(c, request);

        return ended ? ended->jobs : from ? from->count : 0;
}

static void graph_reset(struct core *c, struct graph *g)
{
        memset(g->unmet, 0, g->node_count * sizeof(*g->unmet));
        for (uint32_t i = 0; i < g->edge_count; i++) {
                struct graph_edge *e = &g->edges[i];
                struct graph_run *parents = &g->runs[e->run];

                if (e->request && parents->end == ALL && all_jobs(c, g, e->request))
                        parents->end = all_jobs(c, g, e->request);
                e->state = EDGE_OPEN;
                e->failed = false;
                if (e->when == DEPENDENCY_EACH)
                        continue;
                if (e->when == DEPENDENCY_STOP) {
                        e->left = (uint32_t)graph_runs_members(parents, e->parent_runs);
                        continue;
                }
                e->left = (uint32_t)graph_runs_members(parents, e->parent_runs);
                for (uint32_t k = 0; k < e->child_runs; k++) {
                        const struct graph_run *run = &graph_children(g, e)[k];

                        for (uint32_t n = graph_node(g, run->first);
                             n < g->node_count && g->nodes[n] < run->end; n++)
                                g->unmet[n]++;
                }
        }
        for (uint32_t i = 0; i < g->doomed_count; i++)
                set_deinit(&g->doomed[i].members);
        g->doomed_count = g->falls_count = 0;
        set_deinit(&g->ready);
        set_deinit(&g->dooming);
        set_deinit(&g->accounted);
        g->counted = true;
}

/* Returns the first of these members that ended without success, for the message. */
static uint32_t first_bad(const struct request *r, const struct graph_run *runs, uint32_t count)
{
        const struct request_cold *cold = request_cold(r);

        for (uint32_t k = 0; k < count; k++) {
                uint64_t failed = set_next(&cold->failed, runs[k].first);
                uint64_t removed = set_next(&cold->removed, runs[k].first);
                uint64_t first = failed < removed ? failed : removed;

                if (first < runs[k].end)
                        return (uint32_t)first;
        }
        return ALL;
}

/* Counts failures that other jobs of the parents' own graph handle as successes. */
static void count_handled(const struct request *from, const struct graph_run *run, uint32_t *ok,
                          uint32_t *bad)
{
        uint32_t failures =
                *bad && graph_of(from) ? (uint32_t)graph_failures(from, run->first, run->end, NULL) : *bad;

        *ok += *bad - failures;
        *bad = failures;
}

static void look_at_edge(struct counting *x, struct graph_edge *e)
{
        const struct graph *g = x->graph;
        const struct graph_run *parents = graph_parents(g, e);
        const struct ended_parent *ended = graph_ended_parent(g, e->request);
        const struct request *from = e->request ? request_find(x->core, e->request) : x->request;

        x->cause = e->request ? e->request : x->request->id;
        x->member = ALL;
        x->when = (enum dependency_when)e->when;
        if (edge_follows(e)) {
                follow(x, e);
                fall(x);
                return;
        }
        for (uint32_t k = 0; k < e->parent_runs; k++) {
                uint32_t ok = 0, bad = 0;

                if (ended) {
                        ok = (uint32_t)set_count_range(&ended->ok, parents[k].first, parents[k].end);
                        bad = parents[k].end - parents[k].first - ok;
                } else if (from) {
                        count_ended(from, parents[k].first, parents[k].end, &ok, &bad);
                        if (e->request)
                                count_handled(from, &parents[k], &ok, &bad);
                        x->member = bad ? first_bad(from, &parents[k], 1) : ALL;
                } else {
                        ok = e->left; /* the request was forgotten, which is possible only if no job waited
                                         for it */
                }
                edge_count(x, e, ok, bad);
                fall(x);
        }
}

static void look_at_each(struct counting *x, const struct graph_edge *e)
{
        const struct graph_run *children = graph_children(x->graph, e);
        const struct ended_parent *ended = graph_ended_parent(x->graph, e->request);
        const struct request *from = ended ? NULL : request_find(x->core, e->request);

        x->cause = e->request;
        x->when = DEPENDENCY_EACH;
        for (uint32_t m = children->first; m < children->end; m++) {
                uint32_t parent = each_parent(x->graph, e, m);

                if (ended ? set_has(&ended->ok, parent) : !from || !has_failed(from, parent))
                        continue;
                x->member = parent;
                doom(x, m, m + 1);
                fall(x);
        }
}

/* Checks whether one of these jobs has ended with the exit code that ends the graph. */
static void look_for_abort(struct core *c, struct request *r, const struct set *members)
{
        struct graph *g = graph_of(r);

        for (uint64_t m = set_first(members); g->has_aborts && !g->aborts && m != SET_END;
             m = set_next(members, m + 1)) {
                int32_t code = request_part(r, (uint32_t)m, NULL)->job_template->abort_code;

                if (code == 0 || request_exit(r, (uint32_t)m) != code)
                        continue;
                g->aborts = true;
                g->cause = (uint32_t)m;
                idmap_put(c->dependencies->todo, r->id, c);
        }
}

static void count_all(struct core *c, struct request *r)
{
        struct graph *g = graph_of(r);
        struct counting x = {.core = c, .request = r, .graph = g};

        graph_reset(c, g);
        link_parents(c, r);
        for (uint32_t i = 0; i < g->edge_count; i++)
                if (g->edges[i].when == DEPENDENCY_EACH)
                        look_at_each(&x, &g->edges[i]);
                else
                        look_at_edge(&x, &g->edges[i]);
        for (uint32_t n = 0; n < g->node_count; n++)
                if (g->unmet[n] == 0)
                        node_ready(&x, n);
        set_remove_all(&g->ready, &g->dooming);
        look_for_abort(c, r, &request_cold(r)->failed);
}

/* ---- */

/* Checks the number of edges from `from`, since each end of its jobs is examined in all edges of requests
 * that wait for it. */
static int check_edges(struct core *c, const struct request *from, uint32_t more, struct err *err)
{
        struct request_cold *cold = from->cold;

        if (more > EDGES_MAX)
                return err_set(err, CORE_INVALID,
                               "its jobs wait for jobs of other requests in more than %u ways: name whole "
                               "requests, or ranges of jobs",
                               EDGES_MAX);
        for (uint32_t i = 0; cold && cold->dependent_edges + more > EDGES_MAX && i < cold->dependent_count;) {
                const struct request *child = request_find(c, cold->dependents[i].id);

                if (child && set_count(&request_cold(child)->blocked))
                        i++;
                else
                        dependent_drop(cold, i);
        }
        if (cold && cold->dependent_edges + more > EDGES_MAX)
                return err_set(err, CORE_INVALID,
                               "jobs wait for request %llu in more than %u ways: name the whole request, or "
                               "ranges of its jobs",
                               (unsigned long long)from->id, EDGES_MAX);
        return 0;
}

int dependency_check(struct core *c, struct request *draft, struct err *err)
{
        struct graph *g = graph_of(draft);

        for (uint32_t i = 0; g && i < g->outer_count; i++) {
                const struct graph_edge *e = &g->edges[g->outer[i]];
                const struct ended_parent *ended = graph_ended_parent(g, e->request);
                const struct request *from = ended ? NULL : request_find(c, e->request);
                struct graph_run *parents = &g->runs[e->run];
                const struct graph_run *children = graph_children(g, e);
                uint32_t jobs = ended ? ended->jobs : from ? from->count : 0, parent_count, child_count;
                int result;

                if (!ended && (!from || from->owner != draft->owner))
                        return err_set(err, CORE_INVALID, "there is no request %llu of yours to wait for",
                                       (unsigned long long)e->request);
                if (!ended && (result = check_edges(c, from, g->outer_count, err)) != 0)
                        return result;
                if (parents->end == ALL)
                        parents->end = jobs;
                if (parents->end > jobs || parents->first >= jobs)
                        return err_set(err, CORE_INVALID,
                                       "request %llu, which is to be waited for, has only the jobs 0 to %u",
                                       (unsigned long long)e->request, jobs - 1);
                parent_count = parents->end - parents->first;
                child_count = children->end - children->first;
                if (e->when == DEPENDENCY_EACH && parent_count != child_count)
                        return err_set(err, CORE_INVALID,
                                       "each of %u jobs is to wait for one of request %llu, where %u are "
                                       "named: the numbers must be the same",
                                       child_count, (unsigned long long)e->request, parent_count);
        }
        return 0;
}

void dependency_begin(struct core *c, struct request *r)
{
        struct event e = {.type = EVENT_WAITS, .request = r->id};

        if (!graph_of(r))
                return;
        graph_all_children(graph_of(r), &e.members);
        core_emit(c, &e, NULL);
        event_deinit(&e);
        count_all(c, r);
}

void dependency_ready(struct core *c)
{
        for (struct request *r = c->requests->first; r; r = r->next)
                if (graph_of(r) && (set_count(&request_cold(r)->blocked) || !request_ended(r)))
                        count_all(c, r);
}

bool dependency_keeps(struct core *c, const struct request *r)
{
        for (uint32_t i = 0; i < request_cold(r)->dependent_count;) {
                struct request_cold *cold = r->cold;
                const struct request *child = request_find(c, cold->dependents[i].id);

                if (child && set_count(&request_cold(child)->blocked))
                        return true;
                dependent_drop(cold, i);
        }
        return false;
}

/* ---- events */

/* Handles the end of members of `from` for an edge of another request. Telling it twice changes nothing. */
static void outer_ended(struct counting *x, struct graph_edge *e, const struct request *from,
                        const struct set *members)
{
        const struct graph_run *parents = graph_parents(x->graph, e);
        uint64_t first, end;

        if (e->when != DEPENDENCY_EACH) {
                e->left = (uint32_t)graph_runs_members(parents, e->parent_runs);
                look_at_edge(x, e);
                return;
        }
        for (uint64_t at = parents->first; set_run(members, at, &first, &end) && first < parents->end;
             at = end)
                for (uint64_t m = first; m < end && m < parents->end; m++) {
                        uint32_t child = graph_children(x->graph, e)->first + (uint32_t)m - parents->first;

                        if (!set_has(blocked(x), child) || set_has(&x->graph->dooming, child))
                                continue;
                        x->member = (uint32_t)m;
                        if (has_failed(from, (uint32_t)m))
                                doom(x, child, child + 1);
                        else if (has_succeeded(from, (uint32_t)m) &&
                                 x->graph->unmet[graph_node(x->graph, child)] == 0)
                                ready(x, child);
                }
        fall(x);
}

/* Tells dependent requests, between turns and not with each event, since a thousand requests may wait for
 * one of a million jobs. */
static void tell_dependents(struct core *c, const struct request *r, const struct set *members)
{
        for (uint32_t i = 0; i < request_cold(r)->dependent_count; i++) {
                struct request *child = request_find(c, request_cold(r)->dependents[i].id);
                struct graph *g = child ? graph_of(child) : NULL;
                struct counting x = {.core = c, .request = child, .graph = g, .cause = r->id};

                for (uint32_t k = 0; g && g->counted && k < g->outer_count; k++) {
                        struct graph_edge *e = &g->edges[g->outer[k]];

                        x.when = (enum dependency_when)e->when;
                        x.member = ALL;
                        if (e->request == r->id && e->state == EDGE_OPEN)
                                outer_ended(&x, e, r, members);
                }
        }
}

static void mark_ended(struct core *c, const struct request *r, const struct set *members)
{
        struct set *marked = idmap_get(c->dependencies->parents, r->id);

        if (request_cold(r)->dependent_count == 0)
                return;
        if (!marked) {
                marked = mem_new(struct set);
                idmap_put(c->dependencies->parents, r->id, marked);
        }
        set_add_all(marked, members);
}

static void tell_all_dependents(struct core *c)
{
        size_t at = 0;
        uint64_t id;
        void *value;

        while (idmap_next(c->dependencies->parents, &at, &id, &value)) {
                const struct request *r = request_find(c, id);
                struct set *members = idmap_take(c->dependencies->parents, id);

                if (r)
                        tell_dependents(c, r, members);
                set_deinit(members);
                free(members);
                at = 0;
        }
}

static void tell_own(struct core *c, struct request *r, const struct set *members, bool ok)
{
        struct graph *g = graph_of(r);
        struct counting x = {.core = c, .request = r, .graph = g, .cause = r->id};
        uint64_t first, end, next;

        if (!g || !g->counted)
                return;
        for (uint64_t at = 0; set_run(members, at, &first, &end); at = end)
                while (first < end) { /* without those counted before they were removed */
                        if (set_remove(&g->accounted, (uint32_t)first)) {
                                first++;
                                continue;
                        }
                        next = set_next(&g->accounted, first);
                        next = next < end ? next : end;
                        x.member = (uint32_t)first;
                        x.when = DEPENDENCY_OK;
                        own_ended(&x, (uint32_t)first, (uint32_t)next, ok);
                        fall(&x);
                        first = next;
                }
}

/* Handles those of the members that have ended now. */
static void ended(struct core *c, struct request *r, const struct set *members)
{
        const struct request_cold *cold = request_cold(r);
        struct set ok = {0}, bad = {0}, removed = {0};

        set_copy(&ok, members);
        set_keep_all(&ok, &cold->completed);
        set_copy(&bad, &ok);
        set_keep_all(&bad, &cold->failed);
        set_remove_all(&ok, &bad);
        set_copy(&removed, members);
        set_keep_all(&removed, &cold->removed);
        set_add_all(&bad, &removed);
        if (graph_of(r) && graph_of(r)->has_aborts)
                look_for_abort(c, r, &bad);
        mark_ended(c, r, members);
        tell_own(c, r, &ok, true);
        tell_own(c, r, &bad, false);
        set_deinit(&ok);
        set_deinit(&bad);
        set_deinit(&removed);
}

/* Examines released members again: some were held by their owner when it was found that they can never
 * start. */
static void released(struct core *c, struct request *r, const struct set *members)
{
        struct graph *g = graph_of(r);
        struct set waits = {0};

        if (!g || !g->counted || set_count(&request_cold(r)->blocked) == 0)
                return;
        set_copy(&waits, members);
        set_keep_all(&waits, &request_cold(r)->blocked);
        if (set_count(&waits))
                count_all(c, r);
        set_deinit(&waits);
}

/* Handles jobs that were held or started, for edges that depend on that. */
static void followed(struct core *c, struct request *r, const struct set *members)
{
        struct graph *g = graph_of(r);
        struct counting x = {.core = c, .request = r, .graph = g, .cause = r->id, .member = ALL};
        uint64_t first, end;

        if (!g || !g->counted || !g->follows)
                return;
        for (uint64_t at = 0; set_run(members, at, &first, &end); at = end)
                for (uint32_t n = graph_node(g, (uint32_t)first); n < g->node_count && g->nodes[n] < end; n++)
                        for (uint32_t i = g->out_at[n]; i < g->out_at[n + 1]; i++) {
                                struct graph_edge *e = &g->edges[g->out[i]];

                                x.when = (enum dependency_when)e->when;
                                if (edge_follows(e))
                                        follow(&x, e);
                        }
        fall(&x);
}

void dependency_event(struct core *c, const struct event *e)
{
        struct request *r = request_find(c, e->request);

        if (!r || !r->cold || (!r->cold->graph && r->cold->dependent_count == 0))
                return;
        switch (e->type) {
        case EVENT_EXITED:
        case EVENT_LOST:
        case EVENT_REFUSED:
        case EVENT_SKIPPED:
        case EVENT_REMOVED: ended(c, r, &e->members); break;
        case EVENT_RELEASED: released(c, r, &e->members); break;
        default: break;
        }
        followed(c, r, &e->members);
}

/* ---- resulting events */

static void emit_ready(struct core *c, const struct request *r, const struct set *members)
{
        struct event e = {.type = EVENT_READY, .request = r->id};

        set_copy(&e.members, members);
        set_keep_all(&e.members, &request_cold(r)->blocked);
        if (set_count(&e.members))
                core_emit(c, &e, NULL);
        event_deinit(&e);
}

static void say_why(char *to, size_t n, const struct graph_doomed *d)
{
        char who[64];

        if (d->member == ALL)
                snprintf(who, sizeof(who), "request %llu", (unsigned long long)d->request);
        else
                snprintf(who, sizeof(who), "job %llu.%u", (unsigned long long)d->request, d->member);
        if (d->fate == GRAPH_SKIP && d->when == DEPENDENCY_OK)
                snprintf(to, n, "skipped: %s ended with the exit code that says it is not needed", who);
        else if (d->fate == GRAPH_SKIP && d->when == DEPENDENCY_HELD)
                snprintf(to, n, "skipped: %s ended and was not held", who);
        else if (d->fate == GRAPH_SKIP)
                snprintf(to, n, "skipped: %s succeeded, no other attempt is needed", who);
        else if (d->when == DEPENDENCY_RETRY)
                snprintf(to, n, "%s failed with the exit code after which it is not tried again", who);
        else if (d->when == DEPENDENCY_FAIL)
                snprintf(to, n, "waits for %s to fail, but it succeeded", who);
        else
                snprintf(to, n, "depends on %s, which did not succeed", who);
}

static void emit_doomed(struct core *c, const struct request *r, struct graph_doomed *d)
{
        const struct request_cold *cold = request_cold(r);
        struct event e = {.type = d->fate == GRAPH_SKIP     ? EVENT_SKIPPED
                                  : d->fate == GRAPH_REMOVE ? EVENT_REMOVED
                                                            : EVENT_HELD,
                          .request = r->id,
                          .code = d->fate == GRAPH_HOLD ? CORE_HOLD_DEPENDENCY : 0};
        struct set held = {0};
        char reason[160];

        say_why(reason, sizeof(reason), d);
        e.reason = str_of(reason);
        set_copy(&e.members, &d->members);
        set_keep_all(&e.members, &cold->waiting);
        if (d->fate != GRAPH_HOLD) {
                set_copy(&held, &d->members);
                set_keep_all(&held, &cold->held);
                set_keep_all(&held, &cold->blocked);
                set_add_all(&e.members, &held);
                set_deinit(&held);
        }
        if (set_count(&e.members))
                core_emit(c, &e, NULL);
        if (d->fate != GRAPH_HOLD)
                history_file_slice(c, FILE_NOW);
        else
                emit_ready(c, r, &e.members);
        event_deinit(&e);
}

/* Ends these members: waiting ones now, those with an attempt once their agent has stopped it. They are
 * removed, or (`over`) completed, since their work is done. */
static void end_members(struct core *c, struct request *r, const struct set *members, bool over,
                        const char *reason)
{
        struct event e = {
                .type = over ? EVENT_SKIPPED : EVENT_REMOVED, .request = r->id, .reason = str_of(reason)};

        request_idle_all(r, &e.members);
        set_add_all(&e.members, &request_cold(r)->held);
        set_keep_all(&e.members, members);
        if (set_count(&e.members))
                core_emit(c, &e, NULL);
        event_deinit(&e);
        SET_FOREACH (members, m) {
                struct job *j = request_job(r, (uint32_t)m);

                if (!j || !j->queue || (j->state == JOB_VACATING && j->goal != JOB_IDLE))
                        continue;
                e = (struct event){.type = EVENT_VACATING,
                                   .request = r->id,
                                   .next = over ? JOB_COMPLETED : JOB_REMOVED,
                                   .reason = str_of(reason)};
                set_add(&e.members, (uint32_t)m);
                core_emit(c, &e, NULL);
                c->world.control(c->world.arg, j->queue->agent->name, CORE_REMOVE, r->id, j->fence,
                                 &e.members);
                event_deinit(&e);
        }
        history_file_slice(c, FILE_NOW);
}

/* Removes all jobs of the graph except those that stay. */
static void abort_graph(struct core *c, struct request *r)
{
        struct graph *g = graph_of(r);
        struct set all = {0};
        char reason[160];

        g->aborts = false;
        snprintf(reason, sizeof(reason), "job %llu.%u ended with exit code %d, which ends the graph",
                 (unsigned long long)r->id, g->cause, (int)request_exit(r, g->cause));
        for (uint32_t i = 0; i < r->part_count; i++)
                if (!r->parts[i].job_template->abort_stays)
                        set_add_range(&all, r->parts[i].first, r->parts[i].first + r->parts[i].count);
        set_remove_all(&all, &request_cold(r)->completed);
        set_remove_all(&all, &request_cold(r)->removed);
        end_members(c, r, &all, false, reason);
        set_deinit(&all);
}

static void settle_ends(struct core *c, struct request *r)
{
        struct graph *g = graph_of(r);
        struct set stops = g->stops;

        g->stops = (struct set){0};
        if (g->aborts)
                abort_graph(c, r);
        if (set_count(&stops))
                end_members(c, r, &stops, true, "the jobs that it goes along with have ended");
        set_deinit(&stops);
}

static void settle_request(struct core *c, struct request *r)
{
        struct graph *g = graph_of(r);
        struct graph_doomed *doomed = g->doomed;
        uint32_t count = g->doomed_count;
        struct set ready = g->ready;

        g->doomed = NULL;
        g->doomed_count = g->doomed_cap = 0;
        g->ready = (struct set){0};
        for (uint32_t i = 0; i < count; i++) { /* before jobs that start because others were skipped */
                emit_doomed(c, r, &doomed[i]);
                /* not earlier: the consequences of this one must not find another end for those behind it */
                set_remove_all(&g->dooming, &doomed[i].members);
                set_deinit(&doomed[i].members);
        }
        emit_ready(c, r, &ready);
        settle_ends(c, r);
        set_deinit(&ready);
        free(doomed);
}

void dependency_settle(struct core *c)
{
        struct idmap *todo = c->dependencies->todo;

        while (idmap_count(todo) || idmap_count(c->dependencies->parents)) {
                struct request *r;
                size_t at = 0;
                uint64_t id;

                tell_all_dependents(c);
                if (!idmap_next(todo, &at, &id, NULL))
                        break;
                idmap_take(todo, id);
                r = request_find(c, id);
                if (r && graph_of(r))
                        settle_request(c, r);
        }
}

/* ---- */

static char sentence[200];

/* Returns the edge's state by the present states of its parents. */
static enum graph_edge_state state_now(struct core *c, const struct request *r, const struct graph_edge *e)
{
        const struct graph *g = graph_of(r);
        const struct request *from = e->request ? request_find(c, e->request) : r;
        uint64_t ok = 0, bad = 0, all = graph_runs_members(graph_parents(g, e), e->parent_runs);

        if (!from || e->when == DEPENDENCY_STOP)
                return from ? EDGE_SATISFIED : (enum graph_edge_state)e->state;
        if (edge_follows(e))
                return follow_state(r, g, e);
        for (uint32_t k = 0; k < e->parent_runs; k++) {
                uint32_t run_ok, run_bad;

                count_ended(from, graph_parents(g, e)[k].first, graph_parents(g, e)[k].end, &run_ok,
                            &run_bad);
                if (e->request)
                        count_handled(from, &graph_parents(g, e)[k], &run_ok, &run_bad);
                ok += run_ok;
                bad += run_bad;
        }
        if (e->when == DEPENDENCY_OK && bad)
                return edge_has_code(from, g, e) ? EDGE_SKIPPED : EDGE_NEVER;
        if (ok + bad < all)
                return EDGE_OPEN;
        if (e->when == DEPENDENCY_RETRY)
                return !bad ? EDGE_SKIPPED : edge_has_code(from, g, e) ? EDGE_NEVER : EDGE_SATISFIED;
        return e->when == DEPENDENCY_FAIL && !bad ? EDGE_NEVER : EDGE_SATISFIED;
}

/* Returns the state of an edge for this member. */
static enum graph_edge_state state_for(struct core *c, const struct request *r, const struct graph_edge *e,
                                       uint32_t member)
{
        const struct request *from = e->request ? request_find(c, e->request) : r;
        uint32_t parent;

        if (e->when != DEPENDENCY_EACH)
                return state_now(c, r, e);
        parent = each_parent(graph_of(r), e, member);
        if (!from || has_succeeded(from, parent))
                return EDGE_SATISFIED;
        return has_failed(from, parent) ? EDGE_NEVER : EDGE_OPEN;
}

/* Returns whether a job that could never start as required was held and then released, so that it waits for
 * nothing. */
static bool was_released(struct core *c, const struct request *r, uint32_t member)
{
        const struct graph *g = graph_of(r);

        if (request_part(r, member, NULL)->job_template->dependency_remove)
                return false;
        for (uint32_t n = graph_node(g, member), i = g->in_at[n]; i < g->in_at[n + 1]; i++) {
                const struct graph_edge *e = &g->edges[g->in[i]];
                enum graph_edge_state state = state_for(c, r, e, member);

                /* Another parent may have ended later with the exit code that skips. */
                if (state == EDGE_NEVER || (state == EDGE_SKIPPED && e->when == DEPENDENCY_OK))
                        return true;
        }
        return false;
}

static bool was_skipped(struct core *c, const struct request *r, uint32_t member)
{
        const struct graph *g = graph_of(r);

        if (!set_has(&request_cold(r)->completed, member) || set_has(&request_cold(r)->failed, member))
                return false;
        for (uint32_t n = graph_node(g, member), i = g->in_at[n]; i < g->in_at[n + 1]; i++)
                if (state_for(c, r, &g->edges[g->in[i]], member) == EDGE_SKIPPED ||
                    g->edges[g->in[i]].when == DEPENDENCY_STOP)
                        return true;
        return false;
}

static const char *edge_invariant(struct core *c, const struct request *r, const struct graph_edge *e)
{
        const struct graph *g = graph_of(r);
        const struct request_cold *cold = request_cold(r);
        bool each = e->when == DEPENDENCY_EACH;
        enum graph_edge_state now = each ? EDGE_OPEN : state_now(c, r, e);

        if (edge_follows(e)) /* a held parent may have been released */
                return NULL;
        for (uint32_t k = 0; now != EDGE_SATISFIED && k < e->child_runs; k++)
                for (uint32_t m = graph_children(g, e)[k].first; m < graph_children(g, e)[k].end; m++) {
                        if (set_has(&cold->blocked, m) || set_has(&cold->removed, m) ||
                            (each && state_for(c, r, e, m) == EDGE_SATISFIED) || was_released(c, r, m) ||
                            was_skipped(c, r, m))
                                continue;
                        snprintf(sentence, sizeof(sentence), "%llu.%u does not wait for its parents",
                                 (unsigned long long)r->id, m);
                        return sentence;
                }
        return NULL;
}

static const char *request_invariant(struct core *c, const struct request *r)
{
        const struct request_cold *cold = request_cold(r);
        const struct graph *g = cold->graph;
        struct set both = {0};
        const char *bad = NULL;

        set_copy(&both, &cold->waiting);
        set_remove_all(&both, &cold->blocked);
        set_remove_all(&both, &cold->delayed);
        if (set_count(&both))
                bad = "a job waits, and neither for others nor for the end of a pause";
        set_deinit(&both);
        for (uint32_t i = 0; !bad && g && g->counted && i < g->edge_count; i++)
                bad = edge_invariant(c, r, &g->edges[i]);
        for (uint64_t m = set_first(&cold->waiting); !bad && g && g->counted && m != SET_END;
             m = set_next(&cold->waiting, m + 1)) {
                if (g->unmet[graph_node(g, (uint32_t)m)] || g->each || set_has(&g->ready, (uint32_t)m) ||
                    set_has(&cold->delayed, m))
                        continue;
                snprintf(sentence, sizeof(sentence), "%llu.%u waits for nothing", (unsigned long long)r->id,
                         (unsigned)m);
                bad = sentence;
        }
        return bad;
}

const char *dependency_invariant(struct core *c)
{
        const char *bad = NULL;

        for (const struct request *r = c->requests->first; r && !bad; r = r->next)
                if (request_cold(r)->graph || set_count(&request_cold(r)->waiting))
                        bad = request_invariant(c, r);
        return bad;
}
