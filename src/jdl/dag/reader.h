/* reader: one dag_parse under way, shared by the files of this folder.
 *
 *   dag.c    the statements of DAG files, splices and includes
 *   nodes.c  nodes and arrows to parts and edges of the form
 */
#pragma once
#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"
#include "jdl/dag/dag.h"

struct dag_var {
        char *name, *value;
};
struct dag_node {
        char *name;      /* with the names of the splices that it is in: "S+A" */
        char *submit;    /* file, or name of an inline description */
        struct str text; /* of an inline description; p NULL: a file */
        const char *dir; /* NULL: none */
        struct dag_var *vars;
        uint32_t var_count;
        int64_t retry, priority, unless; /* retry -1: not said */
        bool has_priority, has_unless, done, noop, final;
        bool has_parent, has_child;
        unsigned line;
        const char *file;
        uint32_t group, row; /* nodes.c */
};
struct dag_arrow {
        uint32_t *ends; /* parents, then children */
        uint32_t parents, children;
};
struct dag_splice {
        uint32_t *first, *last; /* nodes without parents, and those without children */
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
struct dag_reader {
        const struct form_world *world;
        const struct dag_options *options;
        struct form *form;
        struct err *err;
        struct dag_node *nodes;
        uint32_t node_count, node_cap;
        struct map *by_name;      /* number of the node, and one */
        struct map *splices;      /* struct dag_splice, by whole name */
        struct map *descriptions; /* of SUBMIT-DESCRIPTION: struct dag_text */
        struct dag_arrow *arrows;
        uint32_t arrow_count, arrow_cap;
        struct dag_text **texts;
        uint32_t text_count, text_cap;
        unsigned depth;
};

/* "FILE:LINE: text" into the reader's err; returns -EINVAL. */
int dag_fail(struct dag_reader *r, const char *file, unsigned line, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
const char *dag_keep(struct dag_reader *r, struct str s); /* a copy that lives as long as the reader */

/* nodes.c: all nodes and arrows are there: fills the form. */
int dag_make_form(struct dag_reader *r, uint64_t *ret_edges);
