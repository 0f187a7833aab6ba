/* dag_graph: a graph of jobs as its nodes, for those who show it or act on them: what the jobs with one
 * DAGNodeName do, what waits for what, and in which level each node is (one below the deepest of its
 * parents).
 */
#pragma once
#include "base/map.h"
#include "cli/terminal/cli.h"

enum dag_state {
        DAG_STATE_DONE,
        DAG_STATE_FAILED,
        DAG_STATE_REMOVED,
        DAG_STATE_HELD,
        DAG_STATE_RUNNING,
        DAG_STATE_IDLE,
        DAG_STATE_WAITS,
        DAG_STATES
};
struct dag_state_row {
        const char *name, *colour; /* for pictures */
        char sign;                 /* in bars */
        enum table_colour cell;
};
extern const struct dag_state_row dag_states[DAG_STATES];

/* The jobs of a node's last attempt: the POST script says how it ended, if there is one. */
enum dag_part { DAG_PART_PRE, DAG_PART_JOB, DAG_PART_POST, DAG_PARTS };
struct dag_point { /* a node */
        char *name, *note;
        uint32_t counts[DAG_STATES], jobs;
        bool has_parts; /* some job is a script, or of one of several attempts */
        int64_t attempt;
        uint32_t last[DAG_PARTS][DAG_STATES];
        int64_t started_ms, ended_ms; /* first start and last end of its jobs; 0: none yet */
        uint32_t level;               /* from 0 */
        uint32_t parents;             /* edges that lead to it */
};
struct dag_link { /* all of the parents to all of the children, as numbers of points, sorted */
        uint32_t *parents, *children, parent_count, child_count;
        bool dashed; /* it is not that they must succeed */
};
struct dag_graph {
        uint64_t request;
        struct dag_point *points;
        size_t count, cap;
        struct map *by_name;
        struct idmap *of_member; /* its point's number and one */
        struct dag_link *links;
        size_t link_count, link_cap;
        uint32_t level_count;
};

/* The nodes of a request, from a word like "7"; with `links` also what waits for what. 0, or an exit code
 * after an error was printed; the graph is to be deinitialised in any case. */
int dag_graph_read(struct cli *cli, const char *word, bool links, struct dag_graph *g);
void dag_graph_deinit(struct dag_graph *g);
enum dag_state dag_point_state(const struct dag_point *p);
/* Appends "6 nodes: 3 done, 1 failed, 2 removed". */
void dag_graph_sum(const struct dag_graph *g, struct buf *out);

/* ---- dag_draw.c: pictures of it */

void dag_draw_terminal(struct cli *cli, const struct dag_graph *g); /* nodes, or levels when there are many */
void dag_draw_dot(const struct dag_graph *g, struct buf *out);
void dag_draw_svg(const struct dag_graph *g, struct buf *out);
