/* Counts the jobs that a job waits for, and finds out whether they ever end by themselves. */
#include "core/core.h"
#include "core/model/core_parts.h"
#include "core/model/graph.h"
#include "core/query.h"

static void count_dependency(const struct request *from, const struct graph_run *run,
                             struct core_dependency *d)
{
        const struct request_cold *cold = request_cold(from);
        uint64_t failed = set_count_range(&cold->failed, run->first, run->end);

        d->succeeded += set_count_range(&cold->completed, run->first, run->end) - failed;
        d->failed += failed + set_count_range(&cold->removed, run->first, run->end);
}

static void describe(struct core *c, const struct request *r, const struct graph_edge *e, uint32_t member,
                     struct core_dependency *d)
{
        const struct graph *g = request_cold(r)->graph;
        const struct graph_run *parents = graph_parents(g, e);
        const struct ended_parent *ended = graph_ended_parent(g, e->request);
        const struct request *from = e->request ? request_find(c, e->request) : r;
        uint32_t jobs = ended ? ended->jobs : from ? from->count : 0;

        *d = (struct core_dependency){.request = e->request ? e->request : r->id,
                                      .when = (enum dependency_when)e->when};
        for (uint32_t k = 0; k < e->parent_runs; k++) {
                struct graph_run run = parents[k];

                if (e->when == DEPENDENCY_EACH) {
                        run.first += member - graph_children(g, e)->first;
                        run.end = run.first + 1;
                }
                set_add_range(&d->members, run.first, run.end);
                d->total += run.end - run.first;
                if (ended)
                        d->succeeded += set_count_range(&ended->ok, run.first, run.end);
                else if (from)
                        count_dependency(from, &run, d);
                else
                        d->succeeded = d->total;
        }
        if (ended)
                d->failed = d->total - d->succeeded;
        d->all = d->total == jobs;
        d->never = e->when == DEPENDENCY_FAIL || e->when == DEPENDENCY_RETRY
                           ? d->succeeded == d->total
                           : (e->when == DEPENDENCY_OK || e->when == DEPENDENCY_EACH) && d->failed > 0;
        d->satisfied = !d->never && d->succeeded + d->failed == d->total;
}

int core_job_dependencies(struct core *c, uint64_t request, uint32_t member,
                          void (*fn)(void *arg, const struct core_dependency *d), void *arg)
{
        const struct request *r = request_find(c, request);
        const struct graph *g;

        if (!r || member >= r->count)
                return CORE_UNKNOWN;
        g = request_cold(r)->graph;
        if (!g || !set_has(&request_cold(r)->blocked, member))
                return 0;
        for (uint32_t n = graph_node(g, member), i = g->in_at[n]; i < g->in_at[n + 1]; i++) {
                struct core_dependency d;

                if (g->edges[g->in[i]].when == DEPENDENCY_STOP)
                        continue;
                describe(c, r, &g->edges[g->in[i]], member, &d);
                fn(arg, &d);
                set_deinit(&d.members);
        }
        return 0;
}

/* ---- requests that go on only after a release */

#define STUCK_REQUESTS_MAX 1000u
#define STUCK_EDGES_MAX    100000u

struct stuck { /* requests to examine: those that were asked for, and all that they wait for */
        struct core *core;
        struct idmap *seen;
        uint64_t list[STUCK_REQUESTS_MAX];
        unsigned count, edges;
};

/* Returns whether no job of the request has an attempt, could get one, or is about to become ready. */
static bool is_still(const struct request *r)
{
        const struct request_cold *cold = request_cold(r);
        const struct graph *g = cold->graph;

        return r->active == 0 && r->idle == 0 && set_count(&cold->delayed) == 0 &&
               !(g && (set_count(&g->ready) || set_count(&g->dooming) || set_count(&g->stops) || g->aborts));
}

static bool has_ended(const struct request *r)
{
        const struct request_cold *cold = request_cold(r);

        return set_count(&cold->completed) + set_count(&cold->removed) == r->count;
}

/* Adds a request, unless it has ended. Returns false if there are too many. */
static bool stuck_add(struct stuck *x, uint64_t id)
{
        struct request *r = request_find(x->core, id);

        if (!r || has_ended(r) || idmap_get(x->seen, id))
                return true;
        if (x->count == STUCK_REQUESTS_MAX)
                return false;
        idmap_put(x->seen, id, r);
        x->list[x->count++] = id;
        return true;
}

/* Adds the requests that this one still waits for. Returns false if there are too many. */
static bool stuck_add_parents(struct stuck *x, const struct request *r)
{
        const struct graph *g = request_cold(r)->graph;
        bool fits = true;

        for (uint32_t i = 0; g && i < g->outer_count && fits; i++) {
                const struct graph_edge *e = &g->edges[g->outer[i]];

                fits = x->edges++ < STUCK_EDGES_MAX && (e->state != EDGE_OPEN || stuck_add(x, e->request));
        }
        return fits;
}

bool core_are_stuck(struct core *c, const uint64_t *ids, size_t count, uint64_t *ret_request,
                    uint32_t *ret_member)
{
        struct stuck x = {.core = c, .seen = idmap_new()};
        const struct request *holds = NULL;
        bool stuck = true;

        for (size_t i = 0; i < count && stuck; i++)
                stuck = stuck_add(&x, ids[i]);
        for (unsigned i = 0; i < x.count && stuck; i++) {
                const struct request *r = request_find(c, x.list[i]);

                if (!holds && set_count(&request_cold(r)->held))
                        holds = r;
                stuck = is_still(r) && stuck_add_parents(&x, r);
        }
        idmap_free(x.seen);
        if (!stuck || !holds)
                return false;
        *ret_request = holds->id;
        *ret_member = (uint32_t)set_first(&request_cold(holds)->held);
        return true;
}
