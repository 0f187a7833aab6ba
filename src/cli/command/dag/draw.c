/* On the terminal a small graph is a list of its nodes by level, each with its parents. In a larger one
 * each level is a line, and consecutive levels that are alike share one. A picture has a box for each node
 * of a level, or one box for all of them. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/command/dag/graph.h"
#include "cli/terminal/human.h"

#define LIST_MAX    100u /* nodes that are listed */
#define PARENTS_MAX 6u   /* parents listed with a node */
#define BAR         20u
#define NAMES_MAX   3u

/* Sorts points by level, and by name within a level. */
static const struct dag_graph *sorted_graph;

static int by_level(const void *a, const void *b)
{
        const struct dag_point *x = &sorted_graph->points[*(const uint32_t *)a],
                               *y = &sorted_graph->points[*(const uint32_t *)b];

        if (x->level != y->level)
                return x->level < y->level ? -1 : 1;
        return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static uint32_t *sorted_points(const struct dag_graph *g)
{
        uint32_t *list = mem_array(NULL, g->count + 1, sizeof(*list));

        for (uint32_t i = 0; i < g->count; i++)
                list[i] = i;
        sorted_graph = g;
        qsort(list, g->count, sizeof(*list), by_level);
        return list;
}

/* ---- terminal */

static void name_parents(const struct dag_graph *g, uint32_t point, struct buf *out)
{
        unsigned named = 0;

        for (size_t i = 0; i < g->link_count; i++) {
                const struct dag_link *l = &g->links[i];
                bool is_child = false;

                for (uint32_t k = 0; k < l->child_count; k++)
                        is_child |= l->children[k] == point;
                for (uint32_t k = 0; is_child && k < l->parent_count; k++)
                        if (l->parents[k] != point && named++ < PARENTS_MAX)
                                buf_printf(out, "%s%s", out->n ? " " : "", g->points[l->parents[k]].name);
        }
        if (named > PARENTS_MAX)
                buf_printf(out, " and %u more", named - PARENTS_MAX);
}

static void list_points(struct cli *cli, const struct dag_graph *g)
{
        static const struct table_column columns[] = {
                {"LEVEL", true, false}, {"NODE", false, true},  {"STATE", false, false},
                {"JOBS", true, false},  {"AFTER", false, true}, {"NOTE", false, true, false, true}};
        uint32_t *points = sorted_points(g);
        struct table t TABLE_CLEANUP;

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        for (size_t i = 0; i < g->count; i++) {
                const struct dag_point *p = &g->points[points[i]];
                enum dag_state s = dag_point_state(p);
                struct buf level BUF_CLEANUP = {0}, jobs BUF_CLEANUP = {0}, after BUF_CLEANUP = {0};

                if (i == 0 || g->points[points[i - 1]].level != p->level)
                        buf_printf(&level, "%u", p->level);
                table_text(&t, buf_view(&level));
                table_text(&t, str_of(p->name));
                table_text(&t, str_of(dag_states[s].name));
                table_paint(&t, dag_states[s].cell);
                buf_printf(&jobs, "%u", p->jobs);
                table_text(&t, buf_view(&jobs));
                name_parents(g, points[i], &after);
                table_text(&t, buf_view(&after));
                table_text(&t, str_of(s == DAG_STATE_DONE ? "" : p->note));
        }
        cli_print_table(cli, &t);
        free(points);
}

/* The states of the nodes of a level, or of consecutive levels that are alike. */
struct level {
        uint32_t first, last, nodes; /* nodes: number in each level */
        uint32_t sums[DAG_STATES];   /* over all these levels */
        uint32_t bad[NAMES_MAX], bad_count;
        enum dag_state only; /* the state of all nodes; DAG_STATES: they differ */
};

static void level_add(struct level *x, const struct dag_graph *g, uint32_t point)
{
        enum dag_state s = dag_point_state(&g->points[point]);

        x->only = x->nodes == 0 || x->only == s ? s : DAG_STATES;
        x->nodes++;
        x->sums[s]++;
        if (s == DAG_STATE_FAILED || s == DAG_STATE_HELD) {
                if (x->bad_count < NAMES_MAX)
                        x->bad[x->bad_count] = point;
                x->bad_count++;
        }
}

static void level_bar(const struct level *x, struct buf *out)
{
        uint32_t all = x->nodes * (x->last - x->first + 1), drawn = 0;
        uint64_t before = 0;

        for (unsigned s = 0; s < DAG_STATES; s++) {
                uint32_t to;

                before += x->sums[s];
                to = (uint32_t)(before * BAR / all);
                if (x->sums[s] && to == drawn && drawn < BAR)
                        to++; /* everything before is visible */
                for (; drawn < to; drawn++)
                        buf_char(out, dag_states[s].sign);
        }
}

static void level_row(struct table *t, const struct dag_graph *g, const struct level *x)
{
        struct buf levels BUF_CLEANUP = {0}, nodes BUF_CLEANUP = {0}, bar BUF_CLEANUP = {0},
                          text BUF_CLEANUP = {0};
        enum dag_state worst = DAG_STATE_WAITS;

        buf_printf(&levels, "%u", x->first);
        if (x->last > x->first)
                buf_printf(&levels, "-%u", x->last);
        buf_printf(&nodes, x->last > x->first ? "%u each" : "%u", x->nodes);
        level_bar(x, &bar);
        for (unsigned s = 0; s < DAG_STATES; s++) {
                if (x->sums[s] == 0)
                        continue;
                buf_printf(&text, "%s%u %s", text.n ? ", " : "", x->sums[s], dag_states[s].name);
                if (s == DAG_STATE_FAILED || s == DAG_STATE_HELD || s == DAG_STATE_RUNNING)
                        worst = worst == DAG_STATE_WAITS ? (enum dag_state)s : worst;
                else if (worst == DAG_STATE_WAITS)
                        worst = (enum dag_state)s;
        }
        for (uint32_t k = 0; k < x->bad_count && k < NAMES_MAX; k++)
                buf_printf(&text, "%s%s", k ? " " : ": ", g->points[x->bad[k]].name);
        if (x->bad_count > NAMES_MAX)
                buf_addz(&text, " and more");
        table_text(t, buf_view(&levels));
        table_text(t, buf_view(&nodes));
        table_text(t, buf_view(&bar));
        table_paint(t, dag_states[worst].cell);
        table_text(t, buf_view(&text));
}

static void list_levels(struct cli *cli, const struct dag_graph *g)
{
        static const struct table_column columns[] = {{"LEVEL", true, false},
                                                      {"NODES", true, false},
                                                      {"PROGRESS", false, false},
                                                      {"STATES", false, true}};
        uint32_t *points = sorted_points(g);
        struct level x = {0};
        bool any = false;
        struct table t TABLE_CLEANUP;

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        for (size_t i = 0; i < g->count;) {
                struct level one = {.first = g->points[points[i]].level};

                one.last = one.first;
                for (; i < g->count && g->points[points[i]].level == one.first; i++)
                        level_add(&one, g, points[i]);
                if (any && one.only != DAG_STATES && x.only == one.only && x.nodes == one.nodes) {
                        x.last = one.last;
                        x.sums[one.only] += one.nodes;
                        continue;
                }
                if (any)
                        level_row(&t, g, &x);
                x = one;
                any = true;
        }
        if (any)
                level_row(&t, g, &x);
        cli_print_table(cli, &t);
        free(points);
}

void dag_draw_terminal(struct cli *cli, const struct dag_graph *g)
{
        struct buf out BUF_CLEANUP = {0};

        if (g->count <= LIST_MAX)
                list_points(cli, g);
        else
                list_levels(cli, g);
        dag_graph_sum(g, &out);
        buf_char(&out, '\n');
        cli_print(&out);
}

/* ---- Graphviz */

static void add_quoted(struct buf *out, const char *name)
{
        buf_char(out, '"');
        for (; *name; name++) {
                if (*name == '"' || *name == '\\')
                        buf_char(out, '\\');
                buf_char(out, *name);
        }
        buf_char(out, '"');
}

/* Many-to-many dependencies go through a point between them. */
static void draw_add_arrows(struct buf *out, const struct dag_graph *g, const struct dag_link *l,
                            size_t number)
{
        const char *style = l->dashed ? " [style=dashed]" : "";
        bool point = l->parent_count > 1 && l->child_count > 1;

        if (point)
                buf_printf(out, "  \"point %zu\" [shape=point];\n", number);
        for (uint32_t i = 0; i < l->parent_count; i++)
                for (uint32_t k = 0; k < (point ? 1 : l->child_count); k++) {
                        buf_addz(out, "  ");
                        add_quoted(out, g->points[l->parents[i]].name);
                        buf_addz(out, " -> ");
                        if (point)
                                buf_printf(out, "\"point %zu\"", number);
                        else
                                add_quoted(out, g->points[l->children[k]].name);
                        buf_printf(out, "%s;\n", style);
                }
        for (uint32_t k = 0; point && k < l->child_count; k++) {
                buf_printf(out, "  \"point %zu\" -> ", number);
                add_quoted(out, g->points[l->children[k]].name);
                buf_printf(out, "%s;\n", style);
        }
}

void dag_draw_dot(const struct dag_graph *g, struct buf *out)
{
        buf_printf(out, "digraph \"request %llu\" {\n  node [shape=box, style=filled];\n",
                   (unsigned long long)g->request);
        for (size_t i = 0; i < g->count; i++) {
                const struct dag_state_row *row = &dag_states[dag_point_state(&g->points[i])];

                buf_addz(out, "  ");
                add_quoted(out, g->points[i].name);
                buf_printf(out, " [fillcolor=%s, tooltip=\"%s\"];\n", row->colour, row->name);
        }
        for (size_t i = 0; i < g->link_count; i++)
                draw_add_arrows(out, g, &g->links[i], i);
        buf_addz(out, "}\n");
}

/* ---- SVG: levels from top to bottom */

#define SVG_LEVELS_MAX 500u   /* the picture ends at this level, and says so */
#define SVG_WIDE       24u    /* nodes of a level that have their own boxes */
#define SVG_LINES_MAX  20000u /* arrows between boxes */
#define BOX_H          26u
#define GAP_X          14u
#define GAP_Y          34u

struct box {
        uint32_t x, y, w;
};

static void add_xml(struct buf *out, const char *text)
{
        for (; *text; text++) {
                if (*text == '&')
                        buf_addz(out, "&amp;");
                else if (*text == '<')
                        buf_addz(out, "&lt;");
                else if (*text == '>')
                        buf_addz(out, "&gt;");
                else if (*text == '"')
                        buf_addz(out, "&quot;");
                else
                        buf_char(out, (unsigned char)*text < ' ' ? '?' : *text);
        }
}

static uint32_t box_width(const char *name)
{
        size_t n = strlen(name);

        return 16 + 8 * (uint32_t)(n < 3 ? 3 : n > 30 ? 30 : n);
}

static void draw_box(struct buf *out, const struct box *b, const char *colour, const char *title,
                     const char *text)
{
        buf_printf(out, "<g><title>");
        add_xml(out, title);
        buf_printf(out,
                   "</title><rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" rx=\"4\" fill=\"%s\" "
                   "stroke=\"#444\"/><text x=\"%u\" y=\"%u\" text-anchor=\"middle\">",
                   b->x, b->y, b->w, BOX_H, colour, b->x + b->w / 2, b->y + 17);
        add_xml(out, text);
        buf_addz(out, "</text></g>\n");
}

/* Draws the boxes of one level, whose points are [from, to) of the list; returns its width. */
static uint32_t draw_level(const struct dag_graph *g, const uint32_t *points, size_t from, size_t to,
                           struct box *boxes, struct buf *out)
{
        uint32_t x = GAP_X, y = GAP_Y + g->points[points[from]].level * (BOX_H + GAP_Y);
        struct buf text BUF_CLEANUP = {0}, title BUF_CLEANUP = {0};
        struct level all = {0};

        if (to - from <= SVG_WIDE) {
                for (size_t i = from; i < to; i++) {
                        const struct dag_point *p = &g->points[points[i]];
                        const struct dag_state_row *row = &dag_states[dag_point_state(p)];

                        boxes[points[i]] = (struct box){x, y, box_width(p->name)};
                        buf_reset(&title);
                        buf_printf(&title, "%s: %s", p->name, row->name);
                        if (p->note)
                                buf_printf(&title, ", %s", p->note);
                        buf_reset(&text);
                        buf_str(&text,
                                str_head(str_of(p->name), strlen(p->name) < 30 ? strlen(p->name) : 30));
                        draw_box(out, &boxes[points[i]], row->colour, buf_z(&title), buf_z(&text));
                        x += boxes[points[i]].w + GAP_X;
                }
                return x;
        }
        for (size_t i = from; i < to; i++)
                level_add(&all, g, points[i]);
        buf_printf(&text, "%u nodes:", all.nodes);
        for (unsigned s = 0; s < DAG_STATES; s++)
                if (all.sums[s])
                        buf_printf(&text, " %u %s", all.sums[s], dag_states[s].name);
        for (size_t i = from; i < to; i++)
                boxes[points[i]] = (struct box){x, y, 16 + 8 * (uint32_t)text.n};
        draw_box(out, &boxes[points[from]],
                 all.sums[DAG_STATE_FAILED] ? dag_states[DAG_STATE_FAILED].colour
                 : all.only != DAG_STATES   ? dag_states[all.only].colour
                                            : "#eef",
                 buf_z(&text), buf_z(&text));
        return x + boxes[points[from]].w + GAP_X;
}

static bool same_box(const struct box *a, const struct box *b)
{
        return a->x == b->x && a->y == b->y;
}

static void draw_lines(const struct dag_graph *g, const struct box *boxes, struct buf *out)
{
        uint32_t lines = 0;

        for (size_t i = 0; i < g->link_count && lines < SVG_LINES_MAX; i++) {
                const struct dag_link *l = &g->links[i];

                for (uint32_t p = 0; p < l->parent_count && lines < SVG_LINES_MAX; p++) {
                        const struct box *from = &boxes[l->parents[p]];

                        if (from->w == 0 || (p && same_box(from, &boxes[l->parents[p - 1]])))
                                continue;
                        for (uint32_t c = 0; c < l->child_count && lines < SVG_LINES_MAX; c++) {
                                const struct box *to = &boxes[l->children[c]];

                                if (to->w == 0 || (c && same_box(to, &boxes[l->children[c - 1]])) ||
                                    same_box(from, to))
                                        continue;
                                buf_printf(out, "<path d=\"M%u %u L%u %u\"%s/>\n", from->x + from->w / 2,
                                           from->y + BOX_H, to->x + to->w / 2, to->y,
                                           l->dashed ? " stroke-dasharray=\"4 3\"" : "");
                                lines++;
                        }
                }
        }
}

void dag_draw_svg(const struct dag_graph *g, struct buf *out)
{
        struct box *boxes = mem_zalloc((g->count + 1) * sizeof(*boxes));
        uint32_t *points = sorted_points(g), width = 200, levels = 0, w;
        struct buf drawn BUF_CLEANUP = {0}, lines BUF_CLEANUP = {0}, sum BUF_CLEANUP = {0};
        size_t from = 0, to;

        for (; from < g->count && levels < SVG_LEVELS_MAX; from = to, levels++) {
                for (to = from;
                     to < g->count && g->points[points[to]].level == g->points[points[from]].level;)
                        to++;
                w = draw_level(g, points, from, to, boxes, &drawn);
                width = w > width ? w : width;
        }
        draw_lines(g, boxes, &lines);
        dag_graph_sum(g, &sum);
        if (from < g->count)
                buf_printf(&sum, "; the first %u levels of %u", SVG_LEVELS_MAX, g->level_count);
        width = width > 30 + 7 * sum.n ? width : 30 + 7 * (uint32_t)sum.n;
        buf_printf(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                   "font-family=\"sans-serif\" "
                   "font-size=\"12\">\n<text x=\"%u\" y=\"18\">",
                   width, GAP_Y + levels * (BOX_H + GAP_Y) + 10, GAP_X);
        add_xml(out, buf_z(&sum));
        buf_addz(out, "</text>\n<g stroke=\"#888\" fill=\"none\">\n");
        buf_str(out, buf_view(&lines));
        buf_addz(out, "</g>\n");
        buf_str(out, buf_view(&drawn));
        buf_addz(out, "</svg>\n");
        free(points);
        free(boxes);
}
