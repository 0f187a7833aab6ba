/* Members are put into an order in which each comes behind those that it waits for. A file is there from its
 * stage-in, which belongs to the first member that reads it, or from the member that writes it; it is gone
 * with its clean-up, which belongs to the last that reads it. What a file takes of the limited space is bytes
 * that nobody had yet, or those of files whose last reader comes before: so all arrows of the plan go
 * forwards, and make no circle.
 */
#include "jdl/dag/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/job/macro.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"

#define NONE UINT32_MAX

struct file {
        char *url, *staged;
        uint32_t producer; /* member; NONE: no node writes it */
        uint32_t *readers; /* members */
        uint32_t reader_count, reader_cap;
        uint32_t first, last; /* their places in the order */
        bool stays;           /* the file stays where its author put it */
};
struct group {             /* placement jobs of one link */
        char *what, *link; /* stage-in, stage-out, clean-up */
        struct buf rows;   /* rows of its queue statement */
        uint32_t *files;
        uint32_t count, cap;
        uint32_t base; /* number of its first member */
};
struct freed { /* bytes that a clean-up has given back */
        uint32_t file, last;
        uint64_t bytes;
};
struct plan {
        const struct form_world *world;
        const struct dag_plan_options *options;
        struct form *form;
        struct err *err;
        struct map *by_url;
        struct file *files;
        uint32_t file_count, file_cap;
        struct group *groups;
        uint32_t group_count, group_cap;
        uint32_t *place; /* of each member in the order */
        uint32_t members, skipped_parts;
        uint32_t *in, *out, *gone; /* of each file: its row in the group of that kind, as a member; NONE */
        uint64_t peak;
        struct buf lot; /* name of the lot; empty: none */
};

/* ---- texts of attributes */

/* The contents of an attribute that is one string literal. False: it is none, or not there. */
static bool attribute_string(const struct form_part *p, const char *name, struct buf *out)
{
        const struct form_attribute *a = form_get(p, str_of(name));
        struct str s = a ? str_of(a->text) : STR_NONE;

        if (s.n < 2 || s.p[0] != '"' || s.p[s.n - 1] != '"')
                return false;
        for (size_t i = 1; i + 1 < s.n; i++) {
                i += s.p[i] == '\\' && i + 2 < s.n;
                buf_char(out, s.p[i]);
        }
        return true;
}

static void set_string(struct form_part *p, const char *name, struct str text, bool late)
{
        BUF_CLEANUP struct buf b = {0};

        buf_char(&b, '"');
        for (size_t i = 0; i < text.n; i++) {
                if (text.p[i] == '"' || text.p[i] == '\\')
                        buf_char(&b, '\\');
                buf_char(&b, text.p[i]);
        }
        buf_char(&b, '"');
        form_set(p, str_of(name), buf_view(&b), 0);
        form_set_late(p, str_of(name), late);
}

struct row { /* of a part: the values of its variables */
        const struct form_part *part;
        struct str values;
};

static enum macro_found look_up(void *arg, struct str name, struct buf *out)
{
        const struct row *r = arg;
        struct str rest = r->values, value;

        for (size_t i = 0; i < r->part->variable_count; i++) {
                if (!str_cut(&rest, '\x1f', &value))
                        value = STR_NONE;
                if (str_ieqz(name, r->part->variables[i]))
                        return macro_item(value, out);
        }
        return MACRO_LATE;
}

/* The text as this row has it. False: that differs by job, too. */
static bool expand(const struct row *r, struct str text, struct buf *out)
{
        struct macro_world w = {.arg = (void *)(uintptr_t)r, .lookup = look_up};
        bool late = false;

        return macro_expand(&w, text, out, &late, NULL) == 0 && !late;
}

static bool is_far(struct str url)
{
        ptrdiff_t at = str_search(url, STR("://"));

        return at > 0 && !str_starts(url, STR("file:")) && !memchr(url.p, ',', url.n) &&
               !memchr(url.p, '\n', url.n) && !memchr(url.p, '\x1f', url.n) && !memchr(url.p, ' ', url.n);
}

/* ---- which files there are */

static struct file *file_get(struct plan *p, struct str url)
{
        uintptr_t number = (uintptr_t)map_get(p->by_url, url);

        if (number)
                return &p->files[number - 1];
        MEM_GROW(p->files, p->file_cap, p->file_count + 1);
        struct file *f = &p->files[p->file_count++];

        *f = (struct file){.url = str_dupz(url), .producer = NONE};
        f->stays = str_starts(url, str_of(p->options->stage)) || url.p[url.n - 1] == '/';
        map_put(p->by_url, url, (void *)(uintptr_t)p->file_count);
        return f;
}

static void add_reader(struct file *f, uint32_t member)
{
        if (f->reader_count && f->readers[f->reader_count - 1] == member)
                return;
        MEM_GROW(f->readers, f->reader_cap, f->reader_count + 1);
        f->readers[f->reader_count++] = member;
}

/* For each URL of a part's row: where it stands in the text. */
typedef void url_fn(struct plan *p, uint32_t member, bool plain, struct str url, struct str before,
                    void *arg);

/* Elements of a list; of outputs what is behind their names. What stands between is told as `before`. */
static void each_url(struct plan *p, struct str text, bool outputs, uint32_t member, bool plain, url_fn *fn,
                     void *arg)
{
        struct str element;

        while (str_cut(&text, outputs ? ';' : ',', &element)) {
                struct str url = str_trim(element), name = STR_NONE;

                if (outputs && !str_cut(&url, '=', &name))
                        continue;
                fn(p, member, plain, str_trim(url), str_trim(name), arg);
        }
}

static void see_input(struct plan *p, uint32_t member, bool plain, struct str url, struct str name, void *arg)
{
        (void)name;
        (void)arg;
        if (!is_far(url))
                return;
        struct file *f = file_get(p, url);

        f->stays |= !plain;
        add_reader(f, member);
}

static void see_output(struct plan *p, uint32_t member, bool plain, struct str url, struct str name,
                       void *arg)
{
        (void)name;
        (void)arg;
        if (!is_far(url))
                return;
        struct file *f = file_get(p, url);

        f->stays |= !plain || f->producer != NONE; /* two write it: nobody knows which is meant */
        f->producer = member;
}

/* A part whose texts differ by job, or which is no program's, is left as it is. */
static bool is_plain(const struct form_part *part)
{
        const struct form_attribute *r = form_get(part, STR("RegisterOutputs"));
        bool registers = r && strcasecmp(r->text, "false") != 0 && strcasecmp(r->text, "\"false\"") != 0;

        return !form_get(part, STR("DapType")) && part->steps == 1 &&
               !form_get(part, STR("OutputDestination")) && !registers;
}

/* Calls fn for the URLs of each row of each part. */
static void each_part(struct plan *p, const char *attribute, bool outputs, url_fn *fn)
{
        uint64_t member = 0;

        for (size_t i = 0; i < p->form->part_count; i++) {
                const struct form_part *part = &p->form->parts[i];
                BUF_CLEANUP struct buf text = {0};
                struct str rows = buf_view(&part->items);
                bool plain = is_plain(part), has = attribute_string(part, attribute, &text);

                for (uint64_t row = 0; row < part->rows; row++, member += part->steps) {
                        struct row r = {part, STR_NONE};
                        BUF_CLEANUP struct buf expanded = {0};

                        str_cut(&rows, '\n', &r.values);
                        if (has)
                                plain = expand(&r, buf_view(&text), &expanded) && plain;
                        if (has)
                                each_url(p, buf_view(&expanded), outputs, (uint32_t)member, plain, fn, NULL);
                }
                p->skipped_parts += has && !plain && !form_get(part, STR("DapType"));
        }
}

/* ---- the order */

struct order {
        uint32_t *left, *next, *to; /* arrows to be gone through; lists of what is behind each point */
        uint32_t *arrows, *head;
        uint32_t arrow_count, arrow_cap, points, point_cap;
};

static uint32_t point_new(struct order *x)
{
        if (x->points == x->point_cap) {
                x->point_cap *= 2;
                x->left = mem_array(x->left, x->point_cap, sizeof(*x->left));
                x->head = mem_array(x->head, x->point_cap, sizeof(*x->head));
        }
        x->left[x->points] = 0;
        x->head[x->points] = NONE;
        return x->points++;
}

static void arrow_new(struct order *x, uint32_t from, uint32_t to)
{
        if (x->arrow_count == x->arrow_cap) {
                x->arrow_cap = x->arrow_cap ? x->arrow_cap * 2 : 1024;
                x->to = mem_array(x->to, x->arrow_cap, sizeof(*x->to));
                x->next = mem_array(x->next, x->arrow_cap, sizeof(*x->next));
        }
        x->to[x->arrow_count] = to;
        x->next[x->arrow_count] = x->head[from];
        x->head[from] = x->arrow_count++;
        x->left[to]++;
}

/* An edge of the form is a point of its own, between its parents and its children. Those that tell of
 * attempts of one node, or end others, say nothing of an order. */
static int read_edges(struct plan *p, struct order *x)
{
        struct str rest = buf_view(&p->form->edges), edge, parents, children;

        while (str_cut(&rest, ';', &edge)) {
                struct set from = {0}, to = {0};
                uint32_t between;
                int rc;

                str_cut(&edge, '>', &parents);
                str_cut(&edge, ':', &children); /* its condition is left */
                if (str_starts(edge, STR("stop")) || str_starts(edge, STR("retry")) ||
                    str_starts(edge, STR("held")))
                        continue;
                rc = set_parse(&from, parents, p->members);
                if (!rc)
                        rc = set_parse(&to, children, p->members);
                between = point_new(x);
                for (uint64_t m = set_next(&from, 0); !rc && m != SET_END; m = set_next(&from, m + 1))
                        arrow_new(x, (uint32_t)m, between);
                for (uint64_t m = set_next(&to, 0); !rc && m != SET_END; m = set_next(&to, m + 1))
                        arrow_new(x, between, (uint32_t)m);
                set_deinit(&from);
                set_deinit(&to);
                if (rc)
                        return err_set(p->err, -EINVAL, "the arrows of the graph cannot be read");
        }
        return 0;
}

static int make_order(struct plan *p)
{
        struct order x = {.point_cap = p->members + 1024};
        uint32_t *queue, count = 0, place = 0;
        int rc;

        x.left = mem_array(NULL, x.point_cap, sizeof(*x.left));
        x.head = mem_array(NULL, x.point_cap, sizeof(*x.head));
        for (uint32_t i = 0; i < p->members; i++)
                point_new(&x);
        rc = read_edges(p, &x);
        queue = mem_array(NULL, x.points + 1, sizeof(*queue));
        for (uint32_t i = 0; i < x.points; i++)
                if (x.left[i] == 0)
                        queue[count++] = i;
        for (uint32_t at = 0; !rc && at < count; at++) {
                if (queue[at] < p->members)
                        p->place[queue[at]] = place++;
                for (uint32_t a = x.head[queue[at]]; a != NONE; a = x.next[a])
                        if (--x.left[x.to[a]] == 0)
                                queue[count++] = x.to[a];
        }
        if (!rc && count < x.points)
                rc = err_set(p->err, -EINVAL, "the graph has a circle");
        free(queue);
        free(x.left);
        free(x.head);
        free(x.to);
        free(x.next);
        return rc;
}

/* ---- the jobs of the plan */

static struct str link_of(const char *url)
{
        struct str s = str_of(url);
        ptrdiff_t at = str_search(s, STR("://")), slash = str_search(str_skip(s, (size_t)at + 3), STR("/"));

        return slash < 0 ? s : str_head(s, (size_t)(at + 3 + slash));
}

static struct group *group_get(struct plan *p, const char *what, struct str link)
{
        for (uint32_t i = 0; i < p->group_count; i++)
                if (!strcmp(p->groups[i].what, what) && str_eqz(link, p->groups[i].link))
                        return &p->groups[i];
        MEM_GROW(p->groups, p->group_cap, p->group_count + 1);
        struct group *g = &p->groups[p->group_count++];

        *g = (struct group){.what = mem_dupz(what), .link = str_dupz(link)};
        return g;
}

static void group_add(struct plan *p, const char *what, struct str link, uint32_t file, const char *from,
                      const char *to)
{
        struct group *g = group_get(p, what, link);

        MEM_GROW(g->files, g->cap, g->count + 1);
        g->files[g->count++] = file;
        buf_printf(&g->rows, "%s%s%s\n", from, to ? "\x1f" : "", to ? to : "");
}

static void name_staged(struct plan *p, uint32_t i)
{
        struct file *f = &p->files[i];
        struct str url = str_of(f->url), base;
        ptrdiff_t end = str_search(url, STR("?"));
        struct buf b = {0};

        url = end < 0 ? url : str_head(url, (size_t)end);
        base = str_skip(url, (size_t)str_rfind(url, '/') + 1);
        buf_printf(&b, "%s%s/%u/" STR_FMT, p->options->stage, p->options->tag, i, STR_ARG(base));
        f->staged = buf_take(&b);
}

static void choose_jobs(struct plan *p)
{
        for (uint32_t i = 0; i < p->file_count; i++) {
                struct file *f = &p->files[i];

                f->stays |= f->producer == NONE && f->reader_count == 0;
                if (f->stays)
                        continue;
                name_staged(p, i);
                f->first = f->producer == NONE ? NONE : p->place[f->producer];
                f->last = f->producer == NONE ? 0 : f->first;
                for (uint32_t k = 0; k < f->reader_count; k++) {
                        uint32_t at = p->place[f->readers[k]];

                        if (f->producer == NONE && at < f->first)
                                f->first = at;
                        if (at > f->last)
                                f->last = at;
                }
                if (f->producer == NONE)
                        group_add(p, "stage-in", link_of(f->url), i, f->url, f->staged);
                else
                        group_add(p, "stage-out", link_of(f->url), i, f->staged, f->url);
                group_add(p, "clean-up", link_of(f->staged), i, f->staged, NULL);
        }
}

static int add_group(struct plan *p, struct group *g)
{
        BUF_CLEANUP struct buf text = {0};
        struct condor_options o = *p->options->condor;
        bool copies = strcmp(g->what, "clean-up") != 0;
        const char *variables[] = {"PlanFrom", "PlanTo"};
        const struct condor_items items = {.variables = variables,
                                           .variable_count = copies ? 2 : 1,
                                           .rows = buf_view(&g->rows),
                                           .row_count = g->count};

        buf_printf(&text, "universe = data\ndap_type = %s\nsrc_url = $(PlanFrom)\n%s",
                   copies ? "transfer" : "rm", copies ? "dest_url = $(PlanTo)\n" : "");
        if (p->lot.n && strcmp(g->what, "stage-out") != 0)
                buf_printf(&text, "reserve_id = %s\n", buf_z(&p->lot));
        if (p->lot.n && copies && strcmp(g->what, "stage-out") != 0)
                buf_printf(&text, "transfer_output_size = %lluB\n",
                           (unsigned long long)p->options->file_size);
        if (p->options->registers && strcmp(g->what, "stage-out") == 0)
                buf_printf(&text, "register_outputs = %s\n", p->options->registers);
        buf_printf(&text, "on_dependency_failure = remove\ndescription = %s %s\nqueue\n", g->what, g->link);
        o.items = &items;
        g->base = (uint32_t)form_members(p->form);
        return condor_parse(p->world, g->what, buf_view(&text), &o, p->form, p->err);
}

static int add_groups(struct plan *p)
{
        int rc = 0;

        for (uint32_t i = 0; i < p->group_count && !rc; i++) {
                struct group *g = &p->groups[i];
                uint32_t *of = !strcmp(g->what, "stage-in")    ? p->in
                               : !strcmp(g->what, "stage-out") ? p->out
                                                               : p->gone;

                rc = add_group(p, g);
                for (uint32_t k = 0; k < g->count; k++)
                        of[g->files[k]] = g->base + k;
        }
        return rc;
}

/* ---- arrows */

static void arrow(struct plan *p, uint32_t from, uint32_t to)
{
        buf_printf(&p->form->edges, "%s%u>%u", p->form->edges.n ? ";" : "", from, to);
}

static void arrows_of_file(struct plan *p, uint32_t i)
{
        const struct file *f = &p->files[i];

        for (uint32_t k = 0; k < f->reader_count; k++) {
                if (f->producer == NONE)
                        arrow(p, p->in[i], f->readers[k]);
                arrow(p, f->readers[k], p->gone[i]);
        }
        if (f->producer != NONE) {
                arrow(p, f->producer, p->out[i]);
                arrow(p, p->out[i], p->gone[i]);
        }
}

static int by_first(const void *a, const void *b, void *arg)
{
        const struct plan *p = arg;
        uint32_t x = p->files[*(const uint32_t *)a].first, y = p->files[*(const uint32_t *)b].first;

        return x < y ? -1 : x > y;
}

/* Orders files so that bytes that are freed first are used first. */
static int by_last(const void *a, const void *b)
{
        const struct freed *x = a, *y = b;

        return x->last < y->last ? -1 : x->last > y->last;
}

/* The file takes its bytes: those that are unused, then those of files that were removed before. */
static int take_bytes(struct plan *p, uint32_t i, uint64_t *unused, struct freed *freed, uint32_t count)
{
        const struct file *f = &p->files[i];
        uint64_t want = p->options->file_size, n = want < *unused ? want : *unused;

        *unused -= n;
        want -= n;
        for (uint32_t k = 0; k < count && want; k++) {
                if (freed[k].bytes == 0 || freed[k].last >= f->first)
                        continue;
                n = want < freed[k].bytes ? want : freed[k].bytes;
                freed[k].bytes -= n;
                want -= n;
                arrow(p, p->gone[freed[k].file], f->producer == NONE ? p->in[i] : f->producer);
        }
        if (want == 0)
                return 0;
        return err_set(
                p->err, -EINVAL,
                "the files of one node, and those that must be there beside them, take more than --space: "
                "%s finds no room",
                f->url);
}

static int bound_space(struct plan *p)
{
        uint32_t *order = mem_array(NULL, p->file_count + 1, sizeof(*order)), count = 0;
        struct freed *freed = mem_array(NULL, p->file_count + 1, sizeof(*freed));
        uint64_t unused = p->options->space;
        int rc = 0;

        for (uint32_t i = 0; i < p->file_count; i++)
                if (!p->files[i].stays) {
                        freed[count] = (struct freed){i, p->files[i].last, p->options->file_size};
                        order[count++] = i;
                }
        qsort_r(order, count, sizeof(*order), by_first, p);
        qsort(freed, count, sizeof(*freed), by_last);
        for (uint32_t k = 0; k < count && !rc; k++)
                rc = take_bytes(p, order[k], &unused, freed, count);
        p->peak = p->options->space - unused;
        free(order);
        free(freed);
        return rc;
}

/* ---- the parts, changed */

/* Into arg: the list of URLs again, with staged files in the place of those that are staged. */
struct rewriting {
        struct buf *out;
        bool changed;
};

static void rewrite_url(struct plan *p, uint32_t member, bool plain, struct str url, struct str name,
                        void *arg)
{
        struct rewriting *x = arg;
        uintptr_t number = is_far(url) ? (uintptr_t)map_get(p->by_url, url) : 0;
        const struct file *f = number && !p->files[number - 1].stays ? &p->files[number - 1] : NULL;

        (void)member;
        (void)plain;
        (void)name;
        if (x->out->n)
                buf_char(x->out, ',');
        if (f)
                buf_addz(x->out, f->staged);
        else
                buf_str(x->out, url);
        x->changed |= f != NULL;
}

static void add_values(struct form_part *part, const struct buf *texts)
{
        struct buf items = {.max = part->items.max};
        struct str rows = buf_view(&part->items), row;

        for (uint64_t i = 0; i < part->rows; i++) {
                if (part->variable_count > 1 && str_cut(&rows, '\n', &row))
                        buf_printf(&items, STR_FMT "\x1f", STR_ARG(row));
                buf_str(&items, buf_view(&texts[i]));
                buf_char(&items, '\n');
        }
        buf_deinit(&part->items);
        part->items = items;
}

/* What stands for the element of a list: itself where nothing of it is staged; one text for all rows, or a
 * variable with a value for each. A list is cut before its variables are filled in, so each element has its
 * own. */
static bool change_element(struct plan *p, struct form_part *part, struct str element, const char *variable,
                           unsigned number, struct buf *out)
{
        struct buf *texts = mem_zalloc((part->rows + 1) * sizeof(*texts));
        struct str rows = buf_view(&part->items);
        BUF_CLEANUP struct buf name = {0};
        bool alike = true, changed = false;

        for (uint64_t i = 0; i < part->rows; i++) {
                struct row r = {part, STR_NONE};
                struct rewriting x = {&texts[i], false};
                BUF_CLEANUP struct buf expanded = {0};

                str_cut(&rows, '\n', &r.values);
                if (expand(&r, element, &expanded))
                        each_url(p, buf_view(&expanded), false, 0, true, rewrite_url, &x);
                alike = alike && str_eq(buf_view(&texts[i]), buf_view(&texts[0]));
                changed |= x.changed;
        }
        if (!changed) {
                buf_str(out, element);
        } else if (alike) {
                buf_str(out, buf_view(&texts[0]));
        } else {
                buf_printf(&name, "%s%u", variable, number);
                form_add_variable(part, buf_view(&name));
                add_values(part, texts);
                buf_printf(out, "$(%s)", buf_z(&name));
        }
        for (uint64_t i = 0; i < part->rows; i++)
                buf_deinit(&texts[i]);
        free(texts);
        return changed;
}

/* Returns how many elements were changed. */
static unsigned change_part(struct plan *p, struct form_part *part, const char *attribute, bool outputs,
                            const char *variable)
{
        BUF_CLEANUP struct buf text = {0}, out = {0};
        struct str rest, element, name;
        unsigned changed = 0;

        if (!is_plain(part) || !attribute_string(part, attribute, &text))
                return 0;
        rest = buf_view(&text);
        for (unsigned k = 0; macro_cut(&rest, outputs ? ';' : ',', &element); k++) {
                if (k)
                        buf_char(&out, outputs ? ';' : ',');
                if (outputs && macro_cut(&element, '=', &name))
                        buf_printf(&out, STR_FMT "=", STR_ARG(name));
                changed += change_element(p, part, str_trim(element), variable, k, &out);
        }
        if (changed)
                set_string(part, attribute, buf_view(&out), macro_present(buf_view(&out)));
        return changed;
}

/* ---- the lot */

/* Has the part's jobs write their `count` staged files in the lot. */
static void write_in_lot(struct plan *p, struct form_part *part, unsigned count)
{
        BUF_CLEANUP struct buf mib = {0};

        if (!p->lot.n || count == 0)
                return;
        set_string(part, "ReserveId", buf_view(&p->lot), false);
        buf_printf(&mib, "%llu", (unsigned long long)((count * p->options->file_size - 1) >> 20) + 1);
        form_set(part, STR("TransferOutputSizeMB"), buf_view(&mib), 0);
}

/* Adds a job that makes or ends the lot; *ret_member is its number. */
static int add_lot_job(struct plan *p, const char *type, uint32_t *ret_member)
{
        BUF_CLEANUP struct buf text = {0};

        buf_printf(&text,
                   "universe = data\ndap_type = %s\nsrc_url = %s\nreserve_id = %s\n"
                   "on_dependency_failure = remove\ndescription = %s %s\n",
                   type, p->options->stage, buf_z(&p->lot), type, p->options->stage);
        if (strcmp(type, "reserve") == 0)
                buf_printf(&text, "reserve_size = %lluB\nduration = %llu\n",
                           (unsigned long long)p->options->space, (unsigned long long)p->options->reserve_s);
        buf_addz(&text, "queue\n");
        *ret_member = (uint32_t)form_members(p->form);
        return condor_parse(p->world, type, buf_view(&text), p->options->condor, p->form, p->err);
}

/* Whatever writes a staged file waits for the lot; the lot ends when all jobs have ended, however. */
static int add_lot(struct plan *p)
{
        uint32_t first, last;
        int rc = add_lot_job(p, "reserve", &first);

        if (!rc)
                rc = add_lot_job(p, "release", &last);
        for (uint32_t i = 0; i < p->file_count && !rc; i++)
                if (!p->files[i].stays)
                        arrow(p, first, p->files[i].producer == NONE ? p->in[i] : p->files[i].producer);
        if (!rc)
                buf_printf(&p->form->edges, "%s0-%u>%u:any", p->form->edges.n ? ";" : "", first, last);
        return rc;
}

/* ---- the whole */

static void report(const struct plan *p, struct buf *out)
{
        for (uint32_t i = 0; i < p->group_count; i++)
                buf_printf(out, "%-9s  %s  %u %s\n", p->groups[i].what, p->groups[i].link, p->groups[i].count,
                           p->groups[i].count == 1 ? "file" : "files");
        if (p->lot.n && p->group_count)
                buf_printf(out, "reserve    %s  %llu MiB for %llu s\n", p->options->stage,
                           (unsigned long long)(p->options->space >> 20),
                           (unsigned long long)p->options->reserve_s);
        if (p->options->space)
                buf_printf(out, "space      %llu MiB at most, of %llu MiB\n",
                           (unsigned long long)(p->peak >> 20),
                           (unsigned long long)(p->options->space >> 20));
        for (uint32_t i = 0; p->options->registers && i < p->group_count; i++)
                if (strcmp(p->groups[i].what, "stage-out") == 0)
                        buf_printf(out, "register   %s  %u %s\n", p->groups[i].link, p->groups[i].count,
                                   p->groups[i].count == 1 ? "file" : "files");
        if (p->skipped_parts)
                buf_printf(out, "unchanged  %u %s\n", p->skipped_parts,
                           p->skipped_parts == 1 ? "submit description: its files differ by job, register "
                                                   "themselves or have no "
                                                   "names before they are there"
                                                 : "submit descriptions: their files differ by job, register "
                                                   "themselves or have no "
                                                   "names before they are there");
        if (p->group_count == 0)
                buf_addz(out, "no file has to be staged\n");
}

static void plan_deinit(struct plan *p)
{
        for (uint32_t i = 0; i < p->file_count; i++) {
                free(p->files[i].url);
                free(p->files[i].staged);
                free(p->files[i].readers);
        }
        for (uint32_t i = 0; i < p->group_count; i++) {
                free(p->groups[i].what);
                free(p->groups[i].link);
                free(p->groups[i].files);
                buf_deinit(&p->groups[i].rows);
        }
        free(p->files);
        free(p->groups);
        free(p->place);
        free(p->in);
        free(p->out);
        free(p->gone);
        map_free(p->by_url);
        buf_deinit(&p->lot);
}

static int make_plan(struct plan *p)
{
        size_t parts = p->form->part_count;
        int rc;

        each_part(p, "TransferInput", false, see_input);
        each_part(p, "TransferOutputRemaps", true, see_output);
        rc = make_order(p);
        if (rc)
                return rc;
        choose_jobs(p);
        p->in = mem_array(NULL, p->file_count + 1, sizeof(*p->in));
        p->out = mem_array(NULL, p->file_count + 1, sizeof(*p->out));
        p->gone = mem_array(NULL, p->file_count + 1, sizeof(*p->gone));
        for (size_t i = 0; i < parts; i++) {
                change_part(p, &p->form->parts[i], "TransferInput", false, "PlanInput");
                write_in_lot(p, &p->form->parts[i],
                             change_part(p, &p->form->parts[i], "TransferOutputRemaps", true, "PlanOutput"));
        }
        rc = add_groups(p);
        for (uint32_t i = 0; i < p->file_count && !rc; i++)
                if (!p->files[i].stays)
                        arrows_of_file(p, i);
        if (!rc && p->options->space)
                rc = bound_space(p);
        if (!rc && p->lot.n && p->group_count)
                rc = add_lot(p);
        if (!rc && buf_check(&p->form->edges))
                rc = err_set(p->err, -E2BIG, "the arrows of the plan take more than %u MiB",
                             FORM_TEXT_MAX >> 20);
        return rc;
}

int dag_plan(const struct form_world *w, const struct dag_plan_options *o, struct form *form, struct buf *ret,
             struct err *err)
{
        struct plan p = {.world = w,
                         .options = o,
                         .form = form,
                         .err = err,
                         .by_url = map_new(),
                         .members = (uint32_t)form_members(form)};
        int rc;

        p.place = mem_array(NULL, p.members + 1, sizeof(*p.place));
        form->edges.max = FORM_TEXT_MAX;
        if (o->space && o->reserve_s)
                buf_printf(&p.lot, "plan-%.12s", o->tag);
        rc = make_plan(&p);
        if (!rc)
                report(&p, ret);
        plan_deinit(&p);
        return rc;
}
