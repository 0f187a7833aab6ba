/* Counts the jobs that a job waits for. */
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
