/* Nodes that have the same description, folder, retries and names of variables are a group, and one part of
 * the form for each queue statement of the description: its rows are the nodes. Where that cannot be (the
 * statement has a list of its own, or a variable is needed before a job is made of the row) the description
 * is read for each node by itself. */
#include <errno.h>
#include <stdarg.h>

#include "jdl/dag/reader.h"

struct group {
        uint32_t *nodes, count, cap;
        size_t part_from, part_to; /* of the form */
        bool alone;                /* one node, which has all rows */
};

static void group_key(const struct dag_node *n, struct buf *key)
{
        buf_printf(key, "%s%c%p%c%s%c%lld %lld %d%d%d", n->submit, 0, (const void *)n->text.p, 0,
                   n->dir ? n->dir : "", 0, (long long)n->retry, (long long)n->unless, n->has_unless,
                   n->has_priority, n->final);
        for (uint32_t i = 0; i < n->var_count; i++) {
                buf_char(key, '\0');
                buf_addz(key, n->vars[i].name);
        }
}

/* ---- files of a node with a folder of its own */

struct folder {
        const struct form_world *world;
        const char *dir;
};

static const char *folder_path(const struct folder *f, const char *path, struct buf *b)
{
        if (!f->dir || path[0] == '/')
                return path;
        buf_printf(b, "%s/%s", f->dir, path);
        return buf_z(b);
}

static int folder_read(void *arg, const char *path, struct buf *ret)
{
        const struct folder *f = arg;
        BUF_CLEANUP struct buf b = {0};

        return f->world->read_file(f->world->arg, folder_path(f, path, &b), ret);
}

static int folder_glob(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path),
                       void *to)
{
        const struct folder *f = arg;

        if (f->dir && pattern[0] != '/')
                return -ENOTSUP;
        return f->world->glob(f->world->arg, pattern, want, each, to);
}

static const char *folder_getenv(void *arg, const char *name)
{
        const struct folder *f = arg;

        return f->world->getenv(f->world->arg, name);
}

static int folder_run(void *arg, const char *command, struct buf *ret)
{
        const struct folder *f = arg;

        return f->dir ? -ENOTSUP : f->world->run(f->world->arg, command, ret);
}

/* ---- reading a description */

#define LINES_MAX 80

struct lines {
        char *own[LINES_MAX];
        unsigned count;
        const char *all[LINES_MAX + 256];
        size_t all_count;
};

static void add_line(struct lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_line(struct lines *l, const char *fmt, ...)
{
        struct buf b = {0};
        va_list ap;

        if (l->count == LINES_MAX)
                return;
        va_start(ap, fmt);
        buf_vprintf(&b, fmt, ap);
        va_end(ap);
        l->own[l->count++] = buf_take(&b);
}

static void lines_make(struct lines *l, const struct dag_reader *r, const struct dag_node *n, bool alone)
{
        const struct condor_options *o = r->options->condor;

        *l = (struct lines){.count = 0};
        if (alone)
                add_line(l, "JOB = %s", n->name);
        if (n->retry >= 0)
                add_line(l, "max_retries = %lld", (long long)n->retry);
        if (n->retry >= 0 && n->has_unless)
                add_line(l, "retry_until = %lld", (long long)n->unless);
        if (n->has_priority && alone)
                add_line(l, "priority = %lld", (long long)n->priority);
        else if (n->has_priority)
                add_line(l, "priority = $(DAGNodePriority)");
        for (uint32_t i = 0; i < n->var_count; i++)
                if (n->vars[i].name[0] == '+' && alone)
                        add_line(l, "%s = %s", n->vars[i].name, n->vars[i].value);
                else if (n->vars[i].name[0] == '+')
                        add_line(l, "%s = $(DAGNodeVar%s)", n->vars[i].name, n->vars[i].name + 1);
                else if (alone)
                        add_line(l, "%s = %s", n->vars[i].name, n->vars[i].value);
        add_line(l, "+DAGNodeName = \"$(JOB)\"");
        add_line(l, "on_dependency_failure = remove");
        for (size_t i = 0; i < o->extra_count && l->all_count < 256; i++)
                l->all[l->all_count++] = o->extra[i];
        for (unsigned i = 0; i < l->count; i++)
                l->all[l->all_count++] = l->own[i];
}

static void lines_deinit(struct lines *l)
{
        for (unsigned i = 0; i < l->count; i++)
                free(l->own[i]);
}

static void add_value(struct buf *out, const char *value)
{
        for (; *value; value++)
                buf_char(out, *value == '\n' || *value == '\r' ? ' ' : *value);
}

/* Names of the columns, and their values for each node. */
static void make_items(const struct dag_reader *r, const struct group *g, struct condor_items *items,
                       char **names, struct buf *rows)
{
        const struct dag_node *first = &r->nodes[g->nodes[0]];
        size_t n = 0;

        names[n++] = mem_dupz("JOB");
        if (first->has_priority)
                names[n++] = mem_dupz("DAGNodePriority");
        for (uint32_t i = 0; i < first->var_count; i++) {
                struct buf b = {0};

                buf_printf(&b, "%s%s", first->vars[i].name[0] == '+' ? "DAGNodeVar" : "",
                           first->vars[i].name + (first->vars[i].name[0] == '+'));
                names[n++] = buf_take(&b);
        }
        for (uint32_t k = 0; k < g->count; k++) {
                const struct dag_node *node = &r->nodes[g->nodes[k]];

                buf_addz(rows, node->name);
                if (first->has_priority)
                        buf_printf(rows, "\x1f%lld", (long long)node->priority);
                for (uint32_t i = 0; i < node->var_count; i++) {
                        buf_char(rows, '\x1f');
                        add_value(rows, node->vars[i].value);
                }
                buf_char(rows, '\n');
        }
        *items = (struct condor_items){.variables = (const char *const *)names,
                                       .variable_count = n,
                                       .rows = buf_view(rows),
                                       .row_count = g->count};
}

static int read_description(struct dag_reader *r, struct group *g, bool alone)
{
        const struct dag_node *n = &r->nodes[g->nodes[0]];
        struct folder folder = {r->world, n->dir};
        struct form_world w = *r->world;
        struct condor_options o = *r->options->condor;
        BUF_CLEANUP struct buf text = {.max = CONDOR_TEXT_MAX}, cwd = {0}, path = {0}, rows = {0};
        struct condor_items items;
        char *names[LINES_MAX + 2] = {NULL};
        const struct dag_text *inside = map_get(r->descriptions, str_of(n->submit));
        struct lines lines;
        int rc = 0;

        if (n->var_count > LINES_MAX - 10)
                return dag_fail(r, n->file, n->line, "node %s has more than %d variables", n->name,
                                LINES_MAX - 10);
        w.arg = &folder;
        w.read_file = folder_read;
        w.glob = folder_glob;
        w.getenv = folder_getenv;
        w.run = folder_run;
        if (n->dir && n->dir[0] != '/')
                buf_printf(&cwd, "%s/%s", r->world->cwd, n->dir);
        else if (n->dir)
                buf_addz(&cwd, n->dir);
        if (n->dir)
                w.cwd = buf_z(&cwd);
        folder_path(&folder, n->submit, &path);
        if (!n->text.p && inside) {
                buf_str(&text, buf_view(&inside->text));
        } else if (!n->text.p) {
                rc = folder_read(&folder, n->submit, &text);
                if (rc)
                        return dag_fail(r, n->file, n->line,
                                        "the submit description of node %s, %s, cannot be read", n->name,
                                        n->submit);
        }
        lines_make(&lines, r, n, alone);
        o.extra = lines.all;
        o.extra_count = lines.all_count;
        o.node_names = true;
        if (!alone) {
                make_items(r, g, &items, names, &rows);
                o.items = &items;
        }
        g->part_from = r->form->part_count;
        rc = condor_parse(&w, path.n ? buf_z(&path) : n->submit, n->text.p ? n->text : buf_view(&text), &o,
                          r->form, r->err);
        g->part_to = r->form->part_count;
        g->alone = alone;
        lines_deinit(&lines);
        for (size_t i = 0; i < LINES_MAX + 2; i++)
                free(names[i]);
        return rc;
}

/* ---- groups */

struct groups {
        struct group *all;
        uint32_t count, cap;
};

static void drop_parts(struct form *f, size_t to)
{
        while (f->part_count > to)
                form_drop_part(f);
}

static struct group *new_group(struct groups *gs)
{
        MEM_GROW(gs->all, gs->cap, gs->count + 1);
        gs->all[gs->count] = (struct group){0};
        return &gs->all[gs->count++];
}

static void put(struct dag_reader *r, struct groups *gs, uint32_t group, uint32_t node)
{
        struct group *g = &gs->all[group];

        MEM_GROW(g->nodes, g->cap, g->count + 1);
        r->nodes[node].group = group;
        r->nodes[node].row = g->count;
        g->nodes[g->count++] = node;
}

static void make_groups(struct dag_reader *r, struct groups *gs)
{
        struct map *by_key = map_new();

        for (uint32_t i = 0; i < r->node_count; i++) {
                BUF_CLEANUP struct buf key = {0};
                uint32_t at;

                if (r->nodes[i].done || r->nodes[i].noop)
                        continue;
                group_key(&r->nodes[i], &key);
                at = (uint32_t)(uintptr_t)map_get(by_key, buf_view(&key));
                if (at == 0) {
                        new_group(gs);
                        at = gs->count;
                        map_put(by_key, buf_view(&key), (void *)(uintptr_t)at);
                }
                put(r, gs, at - 1, i);
        }
        map_free(by_key);
}

/* One by one, when that may help. */
static int read_alone(struct dag_reader *r, struct groups *gs, uint32_t group)
{
        uint32_t count = gs->all[group].count, *nodes = gs->all[group].nodes;
        int rc = 0;

        gs->all[group].nodes = NULL;
        gs->all[group].count = gs->all[group].cap = 0;
        for (uint32_t i = 0; !rc && i < count; i++) {
                uint32_t own = i ? gs->count : group;

                if (i)
                        new_group(gs);
                put(r, gs, own, nodes[i]);
                rc = read_description(r, &gs->all[own], true);
        }
        free(nodes);
        return rc;
}

static int make_parts(struct dag_reader *r, struct groups *gs)
{
        uint32_t count = gs->count;
        int rc = 0;

        for (uint32_t i = 0; !rc && i < count; i++) {
                size_t parts = r->form->part_count;

                rc = read_description(r, &gs->all[i], false);
                if (rc == 0 || rc == -E2BIG || gs->all[i].count > DAG_ALONE_MAX)
                        continue;
                drop_parts(r->form, parts);
                rc = read_alone(r, gs, i);
        }
        return rc;
}

/* ---- edges */

#define NOOP_DEPTH_MAX 10000u

struct making {
        struct dag_reader *reader;
        struct groups groups;
        uint32_t *first;    /* member of each part of the form */
        struct set *before; /* of NOOP nodes: the members that they wait for */
        bool *seen, *under_way;
        unsigned depth; /* of NOOP nodes that wait for NOOP nodes */
};

/* The members that a node has: some in each part of its group. */
static void add_members(const struct making *x, const struct dag_node *n, struct set *to)
{
        const struct group *g = &x->groups.all[n->group];

        for (size_t p = g->part_from; p < g->part_to; p++) {
                const struct form_part *part = &x->reader->form->parts[p];
                uint64_t from = x->first[p], count = part->steps;

                if (g->alone)
                        count *= part->rows;
                else
                        from += n->row * part->steps;
                set_add_range(to, from, from + count);
        }
}

static int add_parents(struct making *x, uint32_t node, struct set *to);

/* The nodes that all arrows to the NOOP node come from. */
static int look_through(struct making *x, uint32_t node)
{
        struct dag_reader *r = x->reader;
        int rc = 0;

        if (x->under_way[node])
                return dag_fail(r, r->nodes[node].file, r->nodes[node].line, "node %s waits for itself",
                                r->nodes[node].name);
        if (x->seen[node])
                return 0;
        if (++x->depth > NOOP_DEPTH_MAX)
                return dag_fail(r, r->nodes[node].file, r->nodes[node].line,
                                "more than %u NOOP nodes wait for each other in a row", NOOP_DEPTH_MAX);
        x->under_way[node] = true;
        for (uint32_t i = 0; !rc && i < r->arrow_count; i++) {
                const struct dag_arrow *a = &r->arrows[i];
                bool mine = false;

                for (uint32_t k = 0; k < a->children; k++)
                        mine |= a->ends[a->parents + k] == node;
                for (uint32_t k = 0; mine && !rc && k < a->parents; k++)
                        rc = add_parents(x, a->ends[k], &x->before[node]);
        }
        x->depth--;
        x->under_way[node] = false;
        x->seen[node] = true;
        return rc;
}

static int add_parents(struct making *x, uint32_t node, struct set *to)
{
        const struct dag_node *n = &x->reader->nodes[node];
        int rc = 0;

        if (n->done)
                return 0;
        if (!n->noop) {
                add_members(x, n, to);
                return 0;
        }
        rc = look_through(x, node);
        if (!rc)
                set_add_all(to, &x->before[node]);
        return rc;
}

static int make_edge(struct making *x, const struct dag_arrow *a, uint64_t *ret_edges)
{
        struct buf *out = &x->reader->form->edges;
        struct set parents = {0}, children = {0};
        int rc = 0;

        for (uint32_t k = 0; !rc && k < a->parents; k++)
                rc = add_parents(x, a->ends[k], &parents);
        for (uint32_t k = 0; k < a->children; k++) {
                const struct dag_node *n = &x->reader->nodes[a->ends[a->parents + k]];

                if (!n->done && !n->noop)
                        add_members(x, n, &children);
        }
        if (!rc && set_count(&parents) && set_count(&children)) {
                if (out->n)
                        buf_char(out, ';');
                set_print(out, &parents);
                buf_char(out, '>');
                set_print(out, &children);
        }
        *ret_edges += (uint64_t)a->parents * a->children;
        set_deinit(&parents);
        set_deinit(&children);
        return rc;
}

/* The FINAL node waits until all others have ended, however. */
static void make_final(struct making *x)
{
        struct buf *out = &x->reader->form->edges;
        struct set all = {0}, last = {0};

        for (uint32_t i = 0; i < x->reader->node_count; i++) {
                const struct dag_node *n = &x->reader->nodes[i];

                if (!n->done && !n->noop)
                        add_members(x, n, n->final ? &last : &all);
        }
        if (set_count(&all) && set_count(&last)) {
                if (out->n)
                        buf_char(out, ';');
                set_print(out, &all);
                buf_char(out, '>');
                set_print(out, &last);
                buf_addz(out, ":any");
        }
        set_deinit(&all);
        set_deinit(&last);
}

static int make_edges(struct making *x, uint64_t *ret_edges)
{
        struct dag_reader *r = x->reader;
        uint64_t at = 0;
        int rc = 0;

        x->first = mem_array(NULL, r->form->part_count + 1, sizeof(*x->first));
        for (size_t p = 0; p < r->form->part_count; p++) {
                x->first[p] = (uint32_t)at;
                at += r->form->parts[p].rows * r->form->parts[p].steps;
        }
        x->before = mem_zalloc((r->node_count + 1) * sizeof(*x->before));
        x->seen = mem_zalloc(r->node_count + 1);
        x->under_way = mem_zalloc(r->node_count + 1);
        r->form->edges.max = FORM_TEXT_MAX;
        for (uint32_t i = 0; !rc && i < r->arrow_count; i++)
                rc = make_edge(x, &r->arrows[i], ret_edges);
        if (!rc)
                make_final(x);
        if (!rc && buf_check(&r->form->edges))
                rc = err_set(r->err, -E2BIG, "the arrows of the DAG take more than %u MiB",
                             FORM_TEXT_MAX >> 20);
        for (uint32_t i = 0; i < r->node_count; i++)
                set_deinit(&x->before[i]);
        free(x->before);
        free(x->seen);
        free(x->under_way);
        free(x->first);
        return rc;
}

int dag_make_form(struct dag_reader *r, uint64_t *ret_edges)
{
        struct making x = {.reader = r};
        int rc;

        make_groups(r, &x.groups);
        if (x.groups.count == 0)
                return err_set(r->err, -EINVAL, "the DAG has no node that runs: all are done, or NOOP");
        rc = make_parts(r, &x.groups);
        if (!rc)
                rc = make_edges(&x, ret_edges);
        for (uint32_t i = 0; i < x.groups.count; i++)
                free(x.groups.all[i].nodes);
        free(x.groups.all);
        return rc;
}
