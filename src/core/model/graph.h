/* graph: which jobs of a request wait for which others.
 *
 * An edge leads from parents, runs of members of this request or of another one, to children, runs of members
 * of this one. The members between two ends of runs are a node: they wait for the same edges. A node counts
 * the edges that are not satisfied, and an edge counts its parents that still count; so a statement that
 * makes a thousand jobs wait for a thousand others takes two runs.
 *
 * The graph is read from what was submitted, and its counts are made of the states of jobs: nothing of it is
 * in the log or in snapshots. What is there is the set of members that wait (request_cold.blocked), which
 * EVENT_WAITS and EVENT_READY change. A shadow has no graph. core/dependency says what follows from it.
 */
#pragma once
#include "base/err.h"
#include "base/set.h"
#include "core/model/dependency.h"
#include "core/model/names.h"

struct request;
struct submission;
struct submission_past;

#define GRAPH_LINKS_MAX (4u << 20) /* of nodes with edges: bounds memory, and what one end may set off */
#define GRAPH_NEVER     (1u << 31) /* unmet: some edge cannot be satisfied any more */

struct graph_run { /* [first, end) */
        uint32_t first, end;
};
enum graph_edge_state { EDGE_OPEN, EDGE_SATISFIED, EDGE_NEVER, EDGE_SKIPPED };
struct graph_fall {
        uint32_t first, end;
        bool ok; /* skipped: they have succeeded */
};
struct graph_edge {
        uint64_t request;                 /* of the parents; 0: this one */
        uint32_t run;                     /* of its runs the first: those of parents, then of children */
        uint32_t parent_runs, child_runs; /* how many */
        uint32_t left;                    /* parents that still count */
        int32_t code;                     /* exit code that means something else; 0: none */
        unsigned when : 4;                /* enum dependency_when */
        unsigned state : 2;               /* enum graph_edge_state; of DEPENDENCY_EACH always EDGE_OPEN */
        unsigned failed : 1;              /* some parent has not succeeded */
};
/* The ways to deal with members that can never start as they were meant to. */
enum graph_fate { GRAPH_HOLD, GRAPH_REMOVE, GRAPH_SKIP };
/* Such members, of one cause. */
struct graph_doomed {
        struct set members;
        uint64_t request; /* that did not end as it should */
        uint32_t member;  /* of it; UINT32_MAX: all of its jobs */
        enum dependency_when when;
        enum graph_fate fate;
};
struct graph {
        struct graph_edge *edges;
        uint32_t edge_count, edge_cap;
        struct graph_run *runs;
        uint32_t run_count, run_cap;
        uint32_t *outer, outer_count, outer_cap; /* edges from other requests */
        uint32_t each;                           /* how many of these are DEPENDENCY_EACH */
        uint32_t *nodes, node_count;  /* first members; behind the last stands the request's count */
        uint32_t *unmet;              /* of each node */
        uint32_t *out_at, *out;       /* edges of which node i is a parent: out[out_at[i]…]; */
        uint32_t *in_at, *in;         /* of which it is a child, likewise */
        struct submission_past *past; /* jobs of requests that were forgotten before the submit */
        uint32_t past_count;
        bool counted;         /* the counts are there, and edges from other requests are known to these */
        struct set ready;     /* wait for nothing any more: EVENT_READY is to come */
        struct set dooming;   /* all members of `doomed` */
        struct set accounted; /* of these, those that are to be removed or skipped: edges count them */
        struct graph_doomed *doomed;
        uint32_t doomed_count, doomed_cap;
        struct graph_fall *falls; /* runs of `accounted` that edges do not count yet */
        uint32_t falls_count, falls_cap;
        struct set stops; /* members whose work is over, as the others' is: they are ended */
        bool handles;     /* some edge is DEPENDENCY_POST or DEPENDENCY_RETRY */
        bool follows;     /* some edge looks at held or started jobs */
        bool has_aborts;  /* some part has an exit code that ends the graph */
        bool aborts;      /* a job ended with such a code: `cause` */
        uint32_t cause;
};

/* The graph of the request, whose parts are loaded. *ret NULL: it has none. 0; -EINVAL with err: it names
 * jobs that are not there, or jobs that wait for each other in a circle. */
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
uint32_t graph_node(const struct graph *g, uint32_t member); /* in which it is */
bool graph_runs_have(const struct graph_run *runs, uint32_t count, uint32_t member);
uint64_t graph_runs_members(const struct graph_run *runs, uint32_t count);
/* All members that are some edge's children. */
void graph_all_children(const struct graph *g, struct set *to);
/* A member that has failed, or was removed: do other jobs, another attempt of it or the one behind it that
 * stands for it, decide what that means? It is no failure of the request then. */
bool graph_handles(const struct graph *g, const struct request *r, uint32_t member);
/* How many of these members failed or were removed, but for those; *ret_removed, which may be NULL: how many
 * of the result were removed. Also of a request without a graph. */
uint64_t graph_failures(const struct request *r, uint32_t first, uint32_t end, uint64_t *ret_removed);
/* The record of a request that was forgotten before the submit; NULL: there is none. */
const struct submission_past *graph_past(const struct graph *g, uint64_t request);
