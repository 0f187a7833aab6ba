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

/* Returns whether no job of the request has an attempt, could get one, or is about to become ready. */
static bool is_still(const struct request *r)
{
        const struct request_cold *cold = request_cold(r);
        const struct graph *g = cold->graph;
        struct set free = {0};
        bool still;

        if (r->active > 0 || r->idle > 0 ||
            (g && (set_count(&g->ready) || set_count(&g->dooming) || set_count(&g->stops) || g->aborts)))
                return false;
        set_add_all(&free, &cold->waiting);
        set_remove_all(&free, &cold->blocked);
        still = set_count(&free) == 0;
        set_deinit(&free);
        return still;
}

static bool has_ended(const struct request *r)
{
        const struct request_cold *cold = request_cold(r);

        return set_count(&cold->completed) + set_count(&cold->removed) == r->count;
}

/* Adds the requests that the request still waits for. Returns false if there are too many. */
static bool add_parents(struct core *c, const struct request *r, struct idmap *seen, uint64_t *list,
                        unsigned *count)
{
        const struct graph *g = request_cold(r)->graph;

        for (uint32_t i = 0; g && i < g->outer_count; i++) {
                const struct graph_edge *e = &g->edges[g->outer[i]];
                struct request *from = e->state == EDGE_OPEN ? request_find(c, e->request) : NULL;

                if (!from || has_ended(from) || idmap_get(seen, from->id))
                        continue;
                if (*count == STUCK_REQUESTS_MAX)
                        return false;
                idmap_put(seen, from->id, from);
                list[(*count)++] = from->id;
        }
        return true;
}

bool core_request_is_stuck(struct core *c, uint64_t id, uint64_t *ret_request, uint32_t *ret_member)
{
        const struct request *r = request_find(c, id);
        uint64_t list[STUCK_REQUESTS_MAX];
        unsigned count = 1;
        uint64_t request = 0, member = 0;
        struct idmap *seen;
        bool stuck = true;

        if (!r || !is_still(r) || has_ended(r))
                return false;
        seen = idmap_new();
        idmap_put(seen, id, seen);
        list[0] = id;
        for (unsigned i = 0; i < count && stuck; i++) {
                const struct set *held;

                r = request_find(c, list[i]);
                held = &request_cold(r)->held;
                if (!request && set_count(held)) {
                        request = r->id;
                        member = set_first(held);
                }
                stuck = is_still(r) && add_parents(c, r, seen, list, &count);
        }
        idmap_free(seen);
        if (!stuck || !request)
                return false;
        *ret_request = request;
        *ret_member = (uint32_t)member;
        return true;
}
