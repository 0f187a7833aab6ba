/* reader: one dag_parse under way, shared by the files of this folder.
 *
 *   dag.c    the statements of DAG files, splices and includes
 *   script.c scripts of nodes to submit descriptions
 *   nodes.c  nodes and arrows to parts and edges of the form
 */
#pragma once
#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"
#include "jdl/dag/dag.h"

struct dag_var {
        char *name, *value;
        bool before; /* the description may override it */
};
/* Jobs that run for a node, in this order; each attempt has its own. */
enum dag_role { DAG_PRE, DAG_JOB, DAG_POST, DAG_HOLD, DAG_ROLES };
enum dag_kind { DAG_NODE, DAG_FINAL, DAG_SERVICE, DAG_PROVISIONER };
enum dag_debug { DAG_DEBUG_NONE, DAG_DEBUG_STDOUT, DAG_DEBUG_STDERR, DAG_DEBUG_ALL };
struct dag_script {
        char *command;        /* with its arguments */
        enum dag_debug debug; /* what of its output is also appended to debug_file */
        char *debug_file;     /* from the folder of the submit; NULL: none */
        bool defers;          /* run again after defer_s seconds if it ends with defer_status */
        int64_t defer_status, defer_s;
};
struct dag_category {
        uint64_t max; /* 0: any number */
        uint32_t number;
};
/* Role of a node in one of its attempts: a row of some parts. */
struct dag_unit {
        uint32_t node, group, row;
        uint16_t attempt;
        uint8_t role;
};
struct dag_node {
        char *name;      /* with the names of the splices that it is in: "S+A" */
        char *submit;    /* file, or name of an inline description */
        struct str text; /* text of an inline description; p NULL: a file */
        const char *dir; /* NULL: none */
        struct dag_var *vars;
        uint32_t var_count;
        int64_t retry, priority, unless; /* retry -1: not said */
        int64_t abort, abort_return, pre_skip;
        enum dag_kind kind;
        bool has_priority, has_unless, has_abort, has_abort_return, has_pre_skip, done, noop;
        bool has_parent, has_child;
        bool before; /* some variable must precede its description, which is read for this node alone */
        bool tries;  /* its variables use the attempt's number: each attempt is a job of its own */
        const struct dag_script *scripts[DAG_ROLES]; /* NULL: none */
        const struct dag_category *category;         /* NULL: none */
        const char *category_name;
        unsigned line;
        const char *file;
        /* nodes.c */
        uint32_t unit; /* number of its first unit */
        /* number of attempts that are jobs of their own; a job of one attempt may be retried */
        uint16_t attempts;
        uint8_t roles[DAG_ROLES], role_count; /* roles that the node has */
};
struct dag_arrow {
        uint32_t *ends; /* parents, then children */
        uint32_t parents, children;
};
struct dag_splice {
        uint32_t *first, *last; /* nodes without parents, and nodes without children */
        uint32_t first_count, last_count;
        struct dag_pin *pins[2]; /* in, out */
        uint32_t pin_count[2];
};
struct dag_pin {
        uint32_t *nodes, count, cap;
};
struct dag_text { /* a file that was read, or an inline description */
        char *name;
        struct buf text;
};
struct dag_setting { /* setting of the graph: name and value */
        char *name, *value;
};
struct dag_reader {
        const struct form_world *world;
        const struct dag_options *options;
        struct form *form;
        struct err *err;
        struct dag_node *nodes;
        uint32_t node_count, node_cap;
        uint32_t file_count;      /* number of files read */
        struct map *by_name;      /* number of the node, plus one */
        struct map *splices;      /* struct dag_splice, by whole name */
        struct map *descriptions; /* struct dag_text of each SUBMIT-DESCRIPTION */
        struct dag_arrow *arrows;
        uint32_t arrow_count, arrow_cap;
        struct dag_text **texts;
        uint32_t text_count, text_cap;
        unsigned depth;
        struct dag_script **scripts;
        uint32_t script_count, script_cap;
        struct map *categories;                       /* struct dag_category, by whole name */
        struct dag_setting *attributes, *environment; /* SET_JOB_ATTR and ENV */
        uint32_t attribute_count, attribute_cap, environment_count, environment_cap;
        uint64_t max_jobs, max_pre, max_post; /* 0: any number */
        struct dag_files *files;
        struct dag_unit *units;
        uint32_t unit_count, unit_cap;
};

/* Puts "FILE:LINE: text" into the reader's err. Returns -EINVAL. */
int dag_fail(struct dag_reader *r, const char *file, unsigned line, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
/* returns a copy that lives as long as the reader */
const char *dag_keep(struct dag_reader *r, struct str s);

bool dag_node_runs(const struct dag_node *n); /* true if the node is not done and has some job */
/* script.c: appends the description of a node's role that is a script. Returns 0, or -EINVAL. */
int dag_script_text(struct dag_reader *r, const struct dag_node *n, enum dag_role role, struct buf *out);

/* nodes.c: fills the form, after all nodes and arrows were read. */
int dag_make_form(struct dag_reader *r, uint64_t *ret_edges);
