/* graph: the dependencies between jobs of a request, and on jobs of other requests.
 *
 * An edge leads from parents, runs of members of this request or of another one, to children, runs of members
 * of this one. The members between two neighbouring ends of runs form a node: they wait for the same edges. A
 * node counts its unsatisfied edges, and an edge counts its parents that have not ended, so a statement that
 * makes a thousand jobs wait for a thousand others takes two runs.
 *
 * The graph is read from the submission, and its counts are derived from the states of jobs; neither is in
 * the log or in snapshots. Only the set of members that wait is (request_cold.blocked), which EVENT_WAITS and
 * EVENT_READY change. A shadow has no graph. core/dependency acts on the graph.
 */
#pragma once
#include "base/err.h"
#include "base/set.h"
#include "core/model/dependency.h"
#include "core/model/names.h"

struct request;
struct submission;
struct ended_parent;

/* Links between nodes and edges: limits memory, and the work that one ended job may cause. */
#define GRAPH_LINKS_MAX (4u << 20)
#define GRAPH_NEVER     (1u << 31) /* flag in `unmet`: some edge can never be satisfied */

struct graph_run { /* [first, end) */
        uint32_t first, end;
};
enum graph_edge_state { EDGE_OPEN, EDGE_SATISFIED, EDGE_NEVER, EDGE_SKIPPED };
struct graph_fall {
        uint32_t first, end;
        bool ok; /* the members are skipped, and so have succeeded */
};
struct graph_edge {
        uint64_t request; /* request of the parents; 0: the same request */
        uint32_t run;     /* index of the edge's first run: runs of parents, then runs of children */
        uint32_t parent_runs, child_runs; /* numbers of runs */
        uint32_t left;                    /* parents that the edge still waits for */
        int32_t code;                     /* exit code with a special meaning; 0: none */
        unsigned when : 4;                /* enum dependency_when */
        unsigned state : 2;               /* enum graph_edge_state; always EDGE_OPEN with DEPENDENCY_EACH */
        unsigned failed : 1;              /* some parent has not succeeded */
};
/* Treatment of members that can never start as intended. */
enum graph_fate { GRAPH_HOLD, GRAPH_REMOVE, GRAPH_SKIP };
/* Members that can never start as intended, for one common cause. */
struct graph_doomed {
        struct set members;
        uint64_t request; /* the request with the job that did not end as required */
        uint32_t member;  /* the job; UINT32_MAX: all jobs of the request */
        enum dependency_when when;
        enum graph_fate fate;
};
struct graph {
        struct graph_edge *edges;
        uint32_t edge_count, edge_cap;
        struct graph_run *runs;
        uint32_t run_count, run_cap;
        uint32_t *outer, outer_count, outer_cap; /* edges from other requests */
        uint32_t each;                           /* number of edges in `outer` with DEPENDENCY_EACH */
        uint32_t *nodes, node_count; /* first members of the nodes, followed by the request's member count */
        uint32_t *unmet;             /* number of unsatisfied edges of each node, and GRAPH_NEVER */
        /* Edges with node i as a parent: out[out_at[i]] and on, up to out_at[i + 1]. */
        uint32_t *out_at, *out;
        uint32_t *in_at, *in;               /* edges with node i as a child, likewise */
        struct ended_parent *ended_parents; /* jobs of requests that were forgotten before the submit */
        uint32_t ended_parent_count;
        bool counted;     /* the counts are computed, and other requests know the edges that lead from them */
        struct set ready; /* members that wait for nothing any more; EVENT_READY follows */
        struct set dooming;   /* all members of `doomed` */
        struct set accounted; /* members of `dooming` to be removed or skipped, which edges count as ended */
        struct graph_doomed *doomed;
        uint32_t doomed_count, doomed_cap;
        struct graph_fall *falls; /* runs of `accounted` that edges have yet to count */
        uint32_t falls_count, falls_cap;
        struct set stops; /* members to be ended, since the jobs that they accompany have ended */
        bool handles;     /* some edge is DEPENDENCY_POST or DEPENDENCY_RETRY */
        bool follows;     /* some edge waits for a job to be held or started */
        bool has_aborts;  /* some part has an exit code that ends the graph */
        bool aborts;      /* the job `cause` has ended with such a code */
        uint32_t cause;
};

/* Reads the graph of a request whose parts are loaded. *ret NULL: the request has none. Returns 0; -EINVAL
 * with err: an edge names a job that does not exist, or jobs wait for each other in a circle. */
int graph_load(struct core *c, struct request *r, const struct submission *s, struct graph **ret,
               struct err *err);
void graph_free(struct graph *g); /* NULL is fine */
size_t graph_bytes(const struct graph *g);

static inline const struct graph_run *graph_parents(const struct graph *g, const struct graph_edge *e)
{
        return &g->runs[e->run];
}
static inline const struct graph_run *graph_children(const struct graph *g, const struct graph_edge *e)
{
        return &g->runs[e->run + e->parent_runs];
}
uint32_t graph_node(const struct graph *g, uint32_t member); /* index of the member's node */
uint64_t graph_runs_members(const struct graph_run *runs, uint32_t count);
/* Adds all members that are children of some edge. */
void graph_all_children(const struct graph *g, struct set *to);
/* Returns whether other jobs decide what the failure or removal of this member means: another attempt of its
 * node, or the job whose result replaces the member's. The member then does not count as a failure of the
 * request. */
bool graph_handles(const struct graph *g, const struct request *r, uint32_t member);
/* Returns how many members of [first, end) have failed or were removed, without those for which graph_handles
 * is true. *ret_removed (may be NULL): how many of these were removed. Also for a request without a graph. */
uint64_t graph_failures(const struct request *r, uint32_t first, uint32_t end, uint64_t *ret_removed);
/* Returns the record of a request that was forgotten before the submit; NULL: there is none. */
const struct ended_parent *graph_ended_parent(const struct graph *g, uint64_t request);
