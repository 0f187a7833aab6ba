/* dag_graph: a graph of jobs by its nodes, for commands that show it or act on it: the states of the jobs
 * with one DAGNodeName, the dependencies, and the level of each node (one below the deepest of its parents).
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
        const char *name, *colour; /* colour: for pictures */
        char sign;                 /* character in bars */
        enum table_colour cell;
};
extern const struct dag_state_row dag_states[DAG_STATES];

/* Jobs of a node's last attempt. The POST script, if there is one, decides how the attempt ended. */
enum dag_part { DAG_PART_PRE, DAG_PART_JOB, DAG_PART_POST, DAG_PARTS };
struct dag_point { /* a node */
        char *name, *note;
        uint32_t counts[DAG_STATES], jobs;
        bool has_parts; /* some job is a script, or belongs to one of several attempts */
        int64_t attempt;
        uint32_t last[DAG_PARTS][DAG_STATES];
        int64_t started_ms, ended_ms; /* first start and last end of its jobs; 0: none yet */
        uint32_t level;               /* from 0 */
        uint32_t parents;             /* number of incoming edges */
};
struct dag_link { /* edges from all of the parents to all of the children, as sorted numbers of points */
        uint32_t *parents, *children, parent_count, child_count;
        bool dashed; /* the condition is not that the parents succeed */
};
struct dag_graph {
        uint64_t request;
        struct dag_point *points;
        size_t count, cap;
        struct map *by_name;
        struct idmap *of_member; /* number of its point, plus one */
        struct dag_link *links;
        size_t link_count, link_cap;
        uint32_t level_count;
};

/* Reads the nodes of a request, given by a word like "7"; with `links` also its dependencies. Returns 0, or
 * an exit code after an error was printed. The graph must be deinitialised in any case. */
int dag_graph_read(struct cli *cli, const char *word, bool links, struct dag_graph *g);
void dag_graph_deinit(struct dag_graph *g);
enum dag_state dag_point_state(const struct dag_point *p);
/* Appends "6 nodes: 3 done, 1 failed, 2 removed". */
void dag_graph_sum(const struct dag_graph *g, struct buf *out);

/* ---- draw.c: pictures of it */

/* prints nodes, or levels if there are many nodes */
void dag_draw_terminal(struct cli *cli, const struct dag_graph *g);
void dag_draw_dot(const struct dag_graph *g, struct buf *out);
void dag_draw_svg(const struct dag_graph *g, struct buf *out);
