/* A node has units: its job, and its scripts, in each attempt. Units that have the same description, folder,
 * retries and names of variables are a group, and one part of the form for each queue statement of the
 * description: its rows are the units. Where that cannot be (the statement has a list of its own, or a
 * variable is needed before a job is made of the row) the description is read for each unit by itself. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "jdl/dag/reader.h"
#include "jdl/stork/stork.h"

struct group {
        uint32_t *units, count, cap;
        size_t part_from, part_to; /* of the form */
        bool alone;                /* one unit, which has all rows */
};

static bool has_role(const struct dag_node *n, enum dag_role role)
{
        if (role == DAG_JOB)
                return !n->noop;
        return n->scripts[role] && (role != DAG_HOLD || !n->noop);
}

bool dag_node_runs(const struct dag_node *n)
{
        return !n->done && n->role_count > 0;
}

static bool names_attempt(const struct dag_node *n)
{
        return n->attempts > 1 || n->tries;
}

static const struct dag_unit *unit_of(const struct dag_reader *r, const struct dag_node *n, unsigned attempt,
                                      enum dag_role role)
{
        for (unsigned k = 0; k < n->role_count; k++)
                if (n->roles[k] == role)
                        return &r->units[n->unit + attempt * n->role_count + k];
        return NULL;
}

/* The role whose end is the attempt's. */
static enum dag_role decider(const struct dag_node *n)
{
        return n->scripts[DAG_POST] ? DAG_POST : n->noop ? DAG_PRE : DAG_JOB;
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

/* Returns whether a text refers to the macro, $(RETRY) or $(RETRY:0). Case does not matter. */
static bool refers(struct str text, struct str name)
{
        for (ptrdiff_t at; (at = str_search(text, STR("$("))) >= 0;) {
                text = str_skip(text, (size_t)at + 2);
                if (str_istarts(text, name) && text.n > name.n && strchr("):", text.p[name.n]))
                        return true;
        }
        return false;
}

static bool description_refers(const struct dag_reader *r, const struct dag_node *n, struct map *known)
{
        const struct dag_text *inside = map_get(r->descriptions, str_of(n->submit));
        BUF_CLEANUP struct buf key = {0}, text = {.max = CONDOR_TEXT_MAX};
        const struct folder folder = {r->world, n->dir};
        uintptr_t answer;

        if (n->text.p || inside)
                return refers(n->text.p ? n->text : buf_view(&inside->text), STR("RETRY"));
        buf_printf(&key, "%s%c%s", n->dir ? n->dir : "", 0, n->submit);
        answer = (uintptr_t)map_get(known, buf_view(&key));
        if (!answer) { /* a file that cannot be read is an error later */
                bool is = folder_read((void *)(uintptr_t)&folder, n->submit, &text) == 0 &&
                          refers(buf_view(&text), STR("RETRY"));

                answer = is ? 2 : 1;
                map_put(known, buf_view(&key), (void *)answer);
        }
        return answer == 2;
}

/* Nodes that are retried and use $(RETRY) in their descriptions have a job for each attempt, as those that
 * use it in VARS. */
static void find_tries(struct dag_reader *r)
{
        struct map *known = map_new();

        for (uint32_t i = 0; i < r->node_count; i++) {
                struct dag_node *n = &r->nodes[i];

                n->tries |= n->retry > 0 && !n->done && !n->noop && description_refers(r, n, known);
        }
        map_free(known);
}

/* An attempt of a node with scripts is their jobs and its own; without them its job runs again by itself. */
static int make_units(struct dag_reader *r)
{
        for (uint32_t i = 0; i < r->node_count; i++) {
                struct dag_node *n = &r->nodes[i];

                for (unsigned role = 0; role < DAG_ROLES; role++)
                        if (has_role(n, (enum dag_role)role))
                                n->roles[n->role_count++] = (uint8_t)role;
                n->unit = r->unit_count;
                n->attempts = 1;
                if (n->done)
                        continue;
                if (n->retry > 0 && (n->tries || n->scripts[DAG_PRE] || n->scripts[DAG_POST])) {
                        if (n->retry > DAG_TRIES_MAX)
                                return dag_fail(r, n->file, n->line,
                                                "node %s has scripts: it can be tried again %u times at most",
                                                n->name, DAG_TRIES_MAX);
                        n->attempts = (uint16_t)(n->retry + 1);
                }
                if (r->unit_count + (uint64_t)n->attempts * n->role_count > FORM_MEMBERS_MAX)
                        return err_set(
                                r->err, -E2BIG,
                                "%s:%u: the attempts and scripts of the DAG's nodes are more than %u jobs",
                                n->file, n->line, FORM_MEMBERS_MAX);
                for (unsigned a = 0; a < n->attempts; a++)
                        for (unsigned k = 0; k < n->role_count; k++) {
                                MEM_GROW(r->units, r->unit_cap, r->unit_count + 1);
                                r->units[r->unit_count++] = (struct dag_unit){
                                        .node = i, .attempt = (uint16_t)a, .role = n->roles[k]};
                        }
        }
        return 0;
}

static void group_key(const struct dag_node *n, const struct dag_unit *u, struct buf *key)
{
        buf_printf(key, "%s%c%p%c%s%c%lld %lld %d%d%d", n->submit, 0, (const void *)n->text.p, 0,
                   n->dir ? n->dir : "", 0, (long long)n->retry, (long long)n->unless, n->has_unless,
                   n->has_priority, n->kind);
        buf_printf(key, " %d %p %p %d %lld %d %lld %d", u->role, (const void *)n->scripts[u->role],
                   (const void *)n->category, n->has_abort, (long long)n->abort, n->has_abort_return,
                   (long long)n->abort_return, names_attempt(n));
        if (u->role == DAG_JOB)
                buf_printf(key, " %d", n->scripts[DAG_POST] != NULL);
        buf_printf(key, " %d", n->before);
        for (uint32_t i = 0; i < n->var_count; i++) {
                buf_char(key, '\0');
                buf_addz(key, n->vars[i].name);
        }
}

/* ---- reading a description */

#define LINES_MAX 80

struct lines {
        char *own[LINES_MAX];
        unsigned count;
        const char *all[LINES_MAX + 256];
        size_t all_count;
        const char *first[LINES_MAX]; /* before the description */
        size_t first_count;
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

static void add_first(struct lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_first(struct lines *l, const char *fmt, ...)
{
        struct buf b = {0};
        va_list ap;

        if (l->first_count == LINES_MAX)
                return;
        va_start(ap, fmt);
        buf_vprintf(&b, fmt, ap);
        va_end(ap);
        l->first[l->first_count++] = buf_take(&b);
}

/* A pool of this graph's jobs, of which `max` run at once; 0: no pool. */
static void add_pool(struct lines *l, const struct dag_reader *r, const char *what, uint32_t number,
                     uint64_t max)
{
        if (max == 0)
                return;
        add_line(l, "+JobCategory = \"%llx-%llx-%s%u\"", (unsigned long long)r->world->now_s,
                 (unsigned long long)r->world->random, what, number);
        add_line(l, "+JobCategoryMax = %llu", (unsigned long long)max);
}

/* Lines for the jobs and the scripts of an attempt. */
static void role_lines(struct lines *l, const struct dag_reader *r, const struct dag_node *n,
                       const struct dag_unit *u)
{
        static const char *const names[] = {[DAG_PRE] = "PRE", [DAG_POST] = "POST", [DAG_HOLD] = "HOLD"};

        if (names_attempt(n))
                add_line(l, "+DAGNodeRetry = $(RETRY)");
        if (u->role != DAG_JOB)
                add_line(l, "+DAGNodeScript = \"%s\"", names[u->role]);
        if (n->has_abort && (u->role == DAG_PRE || u->role == decider(n)))
                add_line(l, "+AbortGraphOn = %lld", (long long)n->abort);
        if (n->has_abort && n->has_abort_return)
                add_line(l, "+DAGAbortReturn = %lld", (long long)n->abort_return);
        if (n->kind == DAG_FINAL)
                add_line(l, "+OnGraphAbort = \"stay\"");
        if (u->role == DAG_PRE)
                add_pool(l, r, "pre", 0, r->max_pre);
        else if (u->role == DAG_POST)
                add_pool(l, r, "post", 0, r->max_post);
        else if (u->role == DAG_JOB && n->category)
                add_pool(l, r, "c", n->category->number, n->category->max);
        for (uint32_t i = 0; i < r->attribute_count; i++)
                add_line(l, "+%s = %s", r->attributes[i].name, r->attributes[i].value);
}

/* A job that is tried again by itself: not when it ended with an exit code that ends the node or the graph.
 */
static void retry_lines(struct lines *l, const struct dag_node *n)
{
        if (n->retry < 0 || n->attempts > 1)
                return;
        add_line(l, "max_retries = %lld", (long long)n->retry);
        if (n->has_unless && n->has_abort)
                add_line(l, "retry_until = ExitCode =?= %lld || ExitCode =?= %lld", (long long)n->unless,
                         (long long)n->abort);
        else if (n->has_unless || n->has_abort)
                add_line(l, "retry_until = %lld", (long long)(n->has_unless ? n->unless : n->abort));
}

/* text: the description. */
static void lines_make(struct lines *l, const struct dag_reader *r, const struct dag_unit *u, struct str text,
                       bool alone)
{
        const struct condor_options *o = r->options->condor;
        const struct dag_node *n = &r->nodes[u->node];

        *l = (struct lines){.count = 0};
        if (r->max_jobs) { /* what is appended may say otherwise */
                add_line(l, "max_materialize = %llu", (unsigned long long)r->max_jobs);
                l->all[l->all_count++] = l->own[0];
        }
        if (alone)
                add_line(l, "JOB = %s", n->name);
        if (alone && names_attempt(n))
                add_line(l, "RETRY = %u", u->attempt);
        if (!names_attempt(n) && refers(text, STR("RETRY")))
                add_line(l, "RETRY = 0");
        if (refers(text, STR("DAG_STATUS")))
                add_line(l, "DAG_STATUS = $$([DAGStatus])");
        if (refers(text, STR("FAILED_COUNT")))
                add_line(l, "FAILED_COUNT = $$([DAGFailedCount])");
        if (u->role == DAG_JOB)
                retry_lines(l, n);
        if (n->has_priority && alone)
                add_line(l, "priority = %lld", (long long)n->priority);
        else if (n->has_priority)
                add_line(l, "priority = $(DAGNodePriority)");
        for (uint32_t i = 0; i < n->var_count; i++)
                if (n->vars[i].before)
                        add_first(l, "%s = %s", n->vars[i].name, n->vars[i].value);
                else if (n->vars[i].name[0] == '+' && alone)
                        add_line(l, "%s = %s", n->vars[i].name, n->vars[i].value);
                else if (n->vars[i].name[0] == '+')
                        add_line(l, "%s = $(DAGNodeVar%s)", n->vars[i].name, n->vars[i].name + 1);
                else if (alone)
                        add_line(l, "%s = %s", n->vars[i].name, n->vars[i].value);
        add_line(l, "+DAGNodeName = \"$(JOB)\"");
        role_lines(l, r, n, u);
        add_line(l, "on_dependency_failure = remove");
        for (size_t i = 0; i < o->extra_count && l->all_count < 256; i++)
                l->all[l->all_count++] = o->extra[i];
        for (unsigned i = r->max_jobs != 0; i < l->count; i++)
                l->all[l->all_count++] = l->own[i];
}

static void lines_deinit(struct lines *l)
{
        for (size_t i = 0; i < l->first_count; i++)
                free((void *)(uintptr_t)l->first[i]);
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
        const struct dag_node *first = &r->nodes[r->units[g->units[0]].node];
        size_t n = 0;

        names[n++] = mem_dupz("JOB");
        if (names_attempt(first))
                names[n++] = mem_dupz("RETRY");
        if (first->has_priority)
                names[n++] = mem_dupz("DAGNodePriority");
        for (uint32_t i = 0; i < first->var_count; i++) {
                struct buf b = {0};

                buf_printf(&b, "%s%s", first->vars[i].name[0] == '+' ? "DAGNodeVar" : "",
                           first->vars[i].name + (first->vars[i].name[0] == '+'));
                names[n++] = buf_take(&b);
        }
        for (uint32_t k = 0; k < g->count; k++) {
                const struct dag_unit *u = &r->units[g->units[k]];
                const struct dag_node *node = &r->nodes[u->node];

                buf_addz(rows, node->name);
                if (names_attempt(first))
                        buf_printf(rows, "\x1f%u", u->attempt);
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

/* Ads of Stork's become the submit description that they stand for. */
static int placements(struct dag_reader *r, const struct dag_node *n, struct buf *text)
{
        BUF_CLEANUP struct buf out = {.max = CONDOR_TEXT_MAX};
        struct err why = {""};

        if (stork_submit(buf_view(text), &out, &why) != 0)
                return dag_fail(r, n->file, n->line, "node %s, %s: %s", n->name, n->submit, why.text);
        buf_reset(text);
        buf_str(text, buf_view(&out));
        return 0;
}

static int read_description(struct dag_reader *r, struct group *g, bool alone)
{
        const struct dag_unit *u = &r->units[g->units[0]];
        const struct dag_node *n = &r->nodes[u->node];
        struct folder folder = {r->world, n->dir};
        struct form_world w = *r->world;
        struct condor_options o = *r->options->condor;
        BUF_CLEANUP struct buf text = {.max = CONDOR_TEXT_MAX}, cwd = {0}, path = {0}, rows = {0};
        struct condor_items items;
        char *names[LINES_MAX + 3] = {NULL};
        const struct dag_text *inside = map_get(r->descriptions, str_of(n->submit));
        struct lines lines;
        int rc = 0;

        if (n->var_count + r->attribute_count > LINES_MAX - 20)
                return dag_fail(r, n->file, n->line, "node %s has more than %d variables", n->name,
                                LINES_MAX - 20);
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
        if (u->role != DAG_JOB) {
                rc = dag_script_text(r, n, (enum dag_role)u->role, &text);
                if (rc)
                        return rc;
        } else if (!n->text.p && inside) {
                buf_str(&text, buf_view(&inside->text));
        } else if (!n->text.p) {
                rc = folder_read(&folder, n->submit, &text);
                if (rc)
                        return dag_fail(r, n->file, n->line,
                                        "the submit description of node %s, %s, cannot be read", n->name,
                                        n->submit);
                if (stork_is(buf_view(&text))) {
                        rc = placements(r, n, &text);
                        if (rc)
                                return rc;
                }
        }
        struct str description = n->text.p && u->role == DAG_JOB ? n->text : buf_view(&text);
        lines_make(&lines, r, u, description, alone);
        o.extra = lines.all;
        o.extra_count = lines.all_count;
        if (lines.first_count) {
                o.first = lines.first;
                o.first_count = lines.first_count;
        }
        o.node_names = true;
        if (!alone) {
                make_items(r, g, &items, names, &rows);
                o.items = &items;
        }
        g->part_from = r->form->part_count;
        rc = condor_parse(&w, path.n ? buf_z(&path) : n->submit, description, &o, r->form, r->err);
        g->part_to = r->form->part_count;
        g->alone = alone;
        lines_deinit(&lines);
        for (size_t i = 0; i < LINES_MAX + 3; i++)
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

static void put_unit(struct dag_reader *r, struct groups *gs, uint32_t group, uint32_t unit)
{
        struct group *g = &gs->all[group];

        MEM_GROW(g->units, g->cap, g->count + 1);
        r->units[unit].group = group;
        r->units[unit].row = g->count;
        g->units[g->count++] = unit;
}

static void make_groups(struct dag_reader *r, struct groups *gs)
{
        struct map *by_key = map_new();

        for (uint32_t i = 0; i < r->unit_count; i++) {
                BUF_CLEANUP struct buf key = {0};
                uint32_t at;

                group_key(&r->nodes[r->units[i].node], &r->units[i], &key);
                at = (uint32_t)(uintptr_t)map_get(by_key, buf_view(&key));
                if (at == 0) {
                        new_group(gs);
                        at = gs->count;
                        map_put(by_key, buf_view(&key), (void *)(uintptr_t)at);
                }
                put_unit(r, gs, at - 1, i);
        }
        map_free(by_key);
}

/* One by one, when that may help. */
static int read_alone(struct dag_reader *r, struct groups *gs, uint32_t group)
{
        uint32_t count = gs->all[group].count, *units = gs->all[group].units;
        int rc = 0;

        gs->all[group].units = NULL;
        gs->all[group].count = gs->all[group].cap = 0;
        for (uint32_t i = 0; !rc && i < count; i++) {
                uint32_t own = i ? gs->count : group;

                if (i)
                        new_group(gs);
                put_unit(r, gs, own, units[i]);
                rc = read_description(r, &gs->all[own], true);
        }
        free(units);
        return rc;
}

static int make_parts(struct dag_reader *r, struct groups *gs)
{
        uint32_t count = gs->count;
        int rc = 0;

        for (uint32_t i = 0; !rc && i < count; i++) {
                size_t parts = r->form->part_count;

                if (!r->nodes[r->units[gs->all[i].units[0]].node].before)
                        rc = read_description(r, &gs->all[i], false);
                else if (gs->all[i].count <= DAG_ALONE_MAX)
                        rc = -EAGAIN;
                else
                        rc = err_set(r->err, -E2BIG, "more than %u nodes have VARS ... PREPEND",
                                     DAG_ALONE_MAX);
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

/* The members that a unit has: some in each part of its group. */
static void add_unit(const struct making *x, const struct dag_unit *u, struct set *to)
{
        const struct group *g = &x->groups.all[u->group];

        for (size_t p = g->part_from; p < g->part_to; p++) {
                const struct form_part *part = &x->reader->form->parts[p];
                uint64_t from = x->first[p], count = part->steps;

                if (g->alone)
                        count *= part->rows;
                else
                        from += u->row * part->steps;
                set_add_range(to, from, from + count);
        }
}

/* All jobs of the node; without scripts that look at whether it is held, they wait for nobody else. */
static void add_members(const struct making *x, const struct dag_node *n, struct set *to)
{
        for (uint32_t i = 0; dag_node_runs(n) && i < (uint32_t)n->attempts * n->role_count; i++)
                add_unit(x, &x->reader->units[n->unit + i], to);
}

/* Members whose end is the node's: of the last attempt, which is skipped when no more is needed. */
static void add_deciders(const struct making *x, const struct dag_node *n, struct set *to)
{
        add_unit(x, unit_of(x->reader, n, n->attempts - 1u, decider(n)), to);
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
        if (dag_node_runs(n)) {
                add_deciders(x, n, to);
                return 0;
        }
        rc = look_through(x, node);
        if (!rc)
                set_add_all(to, &x->before[node]);
        return rc;
}

static int make_edge(struct making *x, const struct dag_arrow *a, uint64_t *ret_edges)
{
        struct set parents = {0}, children = {0};
        int rc = 0;

        for (uint32_t k = 0; !rc && k < a->parents; k++)
                rc = add_parents(x, a->ends[k], &parents);
        for (uint32_t k = 0; k < a->children; k++) {
                const struct dag_node *n = &x->reader->nodes[a->ends[a->parents + k]];

                add_members(x, n, &children);
        }
        if (!rc)
                form_add_edge(x->reader->form, &parents, &children, "");
        *ret_edges += (uint64_t)a->parents * a->children;
        set_deinit(&parents);
        set_deinit(&children);
        return rc;
}

/* ---- what leads from one job of a node to another */

/* ":ok=4", ":retry". */
static const char *condition(char to[static 32], const char *when, bool has_code, int64_t code)
{
        if (has_code)
                snprintf(to, 32, ":%s=%lld", when, (long long)code);
        else
                snprintf(to, 32, ":%s", when);
        return to;
}

static void edge_between(struct making *x, const struct dag_unit *from, const struct dag_unit *to,
                         const struct dag_unit *to_too, const char *when)
{
        struct set parents = {0}, children = {0};

        if (from)
                add_unit(x, from, &parents);
        if (to)
                add_unit(x, to, &children);
        if (to_too)
                add_unit(x, to_too, &children);
        form_add_edge(x->reader->form, &parents, &children, when);
        set_deinit(&parents);
        set_deinit(&children);
}

/* The jobs of an attempt run when all before it have failed, and not with the exit code of UNLESS-EXIT. */
static void make_retry(struct making *x, const struct dag_node *n, unsigned attempt)
{
        struct set parents = {0}, children = {0};
        char when[32];

        for (unsigned k = 0; k < n->role_count; k++)
                if (n->roles[k] != DAG_HOLD)
                        add_unit(x, &x->reader->units[n->unit + attempt * n->role_count + k], &children);
        for (unsigned before = n->has_unless ? 0 : attempt - 1; before < attempt; before++) {
                set_deinit(&parents);
                add_unit(x, unit_of(x->reader, n, before, decider(n)), &parents);
                form_add_edge(x->reader->form, &parents, &children,
                              condition(when, "retry", n->has_unless, n->unless));
        }
        set_deinit(&parents);
        set_deinit(&children);
}

static void make_attempts(struct making *x, const struct dag_node *n)
{
        char when[32];

        if (!dag_node_runs(n) || (n->role_count == 1 && n->attempts == 1))
                return;
        for (unsigned a = 0; a < n->attempts; a++) {
                const struct dag_unit *pre = unit_of(x->reader, n, a, DAG_PRE),
                                      *its = unit_of(x->reader, n, a, DAG_JOB),
                                      *post = unit_of(x->reader, n, a, DAG_POST);

                edge_between(x, pre, its, post, condition(when, "ok", n->has_pre_skip, n->pre_skip));
                edge_between(x, its, post, NULL, ":post");
                edge_between(x, its, unit_of(x->reader, n, a, DAG_HOLD), NULL, ":held");
                if (a)
                        make_retry(x, n, a);
        }
}

/* The FINAL node waits until all others have ended, however; a PROVISIONER is waited for until it runs, and
 * it and the SERVICE nodes end when all others have ended. */
static void make_kinds(struct making *x)
{
        struct set all = {0}, of[DAG_PROVISIONER + 1];

        memset(of, 0, sizeof(of));
        for (uint32_t i = 0; i < x->reader->node_count; i++)
                add_members(x, &x->reader->nodes[i], &of[x->reader->nodes[i].kind]);
        form_add_edge(x->reader->form, &of[DAG_NODE], &of[DAG_FINAL], ":any");
        form_add_edge(x->reader->form, &of[DAG_PROVISIONER], &of[DAG_NODE], ":start");
        set_copy(&all, &of[DAG_NODE]);
        set_add_all(&all, &of[DAG_FINAL]);
        set_add_all(&of[DAG_SERVICE], &of[DAG_PROVISIONER]);
        form_add_edge(x->reader->form, &all, &of[DAG_SERVICE], ":stop");
        set_deinit(&all);
        for (unsigned k = 0; k <= DAG_PROVISIONER; k++)
                set_deinit(&of[k]);
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
        for (uint32_t i = 0; !rc && i < r->node_count; i++)
                make_attempts(x, &r->nodes[i]);
        if (!rc)
                make_kinds(x);
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

        find_tries(r);
        rc = make_units(r);
        if (rc)
                return rc;
        make_groups(r, &x.groups);
        if (x.groups.count == 0)
                return err_set(r->err, -EINVAL, "the DAG has no node that runs: all are done, or NOOP");
        rc = make_parts(r, &x.groups);
        if (!rc)
                rc = make_edges(&x, ret_edges);
        for (uint32_t i = 0; i < x.groups.count; i++)
                free(x.groups.all[i].units);
        free(x.groups.all);
        return rc;
}
