/* Every file is read twice: first for statements that make nodes, then for those that name them, so that
 * statements may be in any order. */
#include "jdl/dag/dag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "jdl/dag/reader.h"

int dag_fail(struct dag_reader *r, const char *file, unsigned line, const char *fmt, ...)
{
        BUF_CLEANUP struct buf text = {.max = 4096};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        return err_set(r->err, -EINVAL, "%s:%u: %s", file, line, buf_z(&text));
}

const char *dag_keep(struct dag_reader *r, struct str s)
{
        struct dag_text *t = mem_new(struct dag_text);

        t->name = str_dupz(s);
        MEM_GROW(r->texts, r->text_cap, r->text_count + 1);
        r->texts[r->text_count++] = t;
        return t->name;
}

/* ---- one file, or a splice of it */

struct source {
        struct dag_reader *reader;
        const char *file;
        struct str prefix;               /* prefix of names: "S+"; empty: none */
        const char *dir;                 /* folder of files; NULL: none */
        struct str rest;                 /* lines that were not read yet */
        unsigned line, next;             /* line of the statement; line after it */
        uint32_t first_node;             /* first node of this file and its splices */
        bool names;                      /* second time: statements that name nodes */
        struct dag_splice *splice;       /* splice that this file is; NULL: none */
        struct buf joined;               /* a statement of several lines */
        const struct dag_script *script; /* script of the statement SCRIPT */
        enum dag_role role;
        bool before; /* VARS ... PREPEND */
};

/* Takes the next statement, without comments and blank lines. Returns false at the end. */
static bool next_statement(struct source *s, struct str *ret)
{
        struct str line;

        while (str_cut(&s->rest, '\n', &line)) {
                s->line = s->next++;
                line = str_trim(line);
                if (line.n == 0 || line.p[0] == '#')
                        continue;
                buf_reset(&s->joined);
                while (str_ends(line, STR("\\"))) {
                        buf_str(&s->joined, str_head(line, line.n - 1));
                        buf_char(&s->joined, ' ');
                        if (!str_cut(&s->rest, '\n', &line))
                                line = STR_NONE;
                        s->next++;
                        line = str_trim(line);
                }
                if (s->joined.n) {
                        buf_str(&s->joined, line);
                        line = str_trim(buf_view(&s->joined));
                }
                *ret = line;
                return true;
        }
        return false;
}

#define PINS_MAX     10000u

#define FAIL(s, ...) dag_fail((s)->reader, (s)->file, (s)->line, __VA_ARGS__)

static struct str word(struct str *rest)
{
        struct str w = STR_NONE;

        str_word(rest, &w);
        return w;
}

static bool name_ok(struct str name)
{
        for (size_t i = 0; i < name.n; i++)
                if (name.p[i] <= ' ' || name.p[i] == '+' || name.p[i] == '/' || name.p[i] == 0x7f ||
                    name.p[i] == '"' || name.p[i] == '\\')
                        return false;
        return name.n > 0 && name.n < 200 && !str_ieqz(name, "PARENT") && !str_ieqz(name, "CHILD") &&
               !str_ieqz(name, "ALL_NODES");
}

static void whole_name(const struct source *s, struct str name, struct buf *out)
{
        buf_str(out, s->prefix);
        buf_str(out, name);
}

/* The lines up to one that begins with a closing brace; *ret_rest is what stands behind that. */
static int read_inline(struct source *s, struct buf *out, struct str *ret_rest)
{
        struct str line;
        unsigned from = s->line;

        while (str_cut(&s->rest, '\n', &line)) {
                s->next++;
                if (str_starts(str_trim(line), STR("}"))) {
                        *ret_rest = str_trim(str_skip(str_trim(line), 1));
                        return 0;
                }
                buf_str(out, line);
                buf_char(out, '\n');
        }
        s->line = from;
        return FAIL(s, "the description in braces has no line with } at its end");
}

static struct dag_text *keep_inline(struct source *s, struct buf *text)
{
        struct dag_text *t;

        dag_keep(s->reader, str_of(s->file));
        t = s->reader->texts[s->reader->text_count - 1];
        t->text = *text;
        *text = (struct buf){0};
        return t;
}

static const char *join_dir(struct source *s, struct str dir)
{
        BUF_CLEANUP struct buf b = {0};

        if (dir.n == 0)
                return s->dir;
        if (dir.p[0] != '/' && s->dir)
                buf_printf(&b, "%s/", s->dir);
        buf_str(&b, dir);
        return dag_keep(s->reader, buf_view(&b));
}

/* ---- statements that make nodes */

static int node_options(struct source *s, struct dag_node *n, struct str rest)
{
        struct str w;

        while ((w = word(&rest)).n) {
                if (str_ieqz(w, "DIR")) {
                        w = word(&rest);
                        if (w.n == 0)
                                return FAIL(s, "DIR needs a folder");
                        n->dir = join_dir(s, w);
                } else if (str_ieqz(w, "NOOP")) {
                        n->noop = true;
                } else if (str_ieqz(w, "DONE")) {
                        n->done = true;
                } else {
                        return FAIL(s, "\"" STR_FMT "\" is not DIR, NOOP or DONE", STR_ARG(w));
                }
        }
        return 0;
}

static int job(struct source *s, struct str rest, enum dag_kind kind)
{
        struct dag_reader *r = s->reader;
        struct str name = word(&rest), submit = word(&rest);
        BUF_CLEANUP struct buf whole = {0}, text = {.max = CONDOR_TEXT_MAX};
        struct dag_node n = {.retry = -1, .kind = kind, .line = s->line, .file = s->file, .dir = s->dir};
        struct dag_text *inside = NULL;
        int rc;

        if (!name_ok(name))
                return FAIL(s,
                            "\"" STR_FMT "\" cannot be the name of a node: it has no blanks, +, / or quotes",
                            STR_ARG(name));
        if (submit.n == 0)
                return FAIL(s, "node " STR_FMT " has no submit description", STR_ARG(name));
        whole_name(s, name, &whole);
        if (map_get(r->by_name, buf_view(&whole)))
                return FAIL(s, "there is a node %s already", buf_z(&whole));
        if (r->node_count == DAG_NODES_MAX)
                return err_set(r->err, -E2BIG, "%s:%u: a DAG has at most %u nodes", s->file, s->line,
                               DAG_NODES_MAX);
        if (kind != DAG_NODE && s->prefix.n)
                return FAIL(s, "a FINAL, SERVICE or PROVISIONER node cannot stand in a splice");
        if (str_eqz(submit, "{")) {
                rc = read_inline(s, &text, &rest);
                if (rc)
                        return rc;
                inside = keep_inline(s, &text);
        }
        rc = node_options(s, &n, rest);
        if (rc)
                return rc;
        n.name = str_dupz(buf_view(&whole));
        n.submit = str_dupz(inside ? str_of(inside->name) : submit);
        n.text = inside ? buf_view(&inside->text) : STR_NONE;
        if (inside && !n.text.p)
                n.text = STR("");
        MEM_GROW(r->nodes, r->node_cap, r->node_count + 1);
        r->nodes[r->node_count++] = n;
        map_put(r->by_name, buf_view(&whole), (void *)(uintptr_t)r->node_count);
        return 0;
}

static int submit_description(struct source *s, struct str rest)
{
        struct str name = word(&rest);
        BUF_CLEANUP struct buf text = {.max = CONDOR_TEXT_MAX};
        int rc;

        if (name.n == 0 || !str_eqz(str_trim(rest), "{"))
                return FAIL(s, "SUBMIT-DESCRIPTION needs a name, and a { at the end of its line");
        if (map_get(s->reader->descriptions, name))
                return FAIL(s, "there is a submit description " STR_FMT " already", STR_ARG(name));
        rc = read_inline(s, &text, &rest);
        if (!rc)
                map_put(s->reader->descriptions, name, keep_inline(s, &text));
        return rc;
}

static int read_file(struct source *s, struct str text);

/* Reads on in another file. */
static int open_file(struct source *s, struct str name, struct str prefix, const char *dir, bool names,
                     uint32_t first_node, struct dag_splice *splice)
{
        BUF_CLEANUP struct buf text = {.max = FORM_TEXT_MAX}, path = {0};
        struct source inner = {
                .reader = s->reader, .prefix = prefix, .dir = dir, .names = names, .splice = splice};
        int rc;

        if (++s->reader->depth > DAG_INCLUDE_MAX)
                return FAIL(s, "files are included or spliced into each other more than %d deep",
                            DAG_INCLUDE_MAX);
        if (++s->reader->file_count > DAG_FILES_MAX)
                return FAIL(s, "more than %u files are included and spliced into each other", DAG_FILES_MAX);
        if (dir && name.n && name.p[0] != '/')
                buf_printf(&path, "%s/", dir);
        buf_str(&path, name);
        inner.file = dag_keep(s->reader, buf_view(&path));
        inner.first_node = first_node;
        rc = s->reader->world->read_file(s->reader->world->arg, inner.file, &text);
        if (rc)
                FAIL(s, "%s cannot be read: %s", inner.file,
                     rc == -ENOENT   ? "no such file"
                     : rc == -EACCES ? "permission denied"
                                     : "it is no file, or too large");
        else
                rc = read_file(&inner, buf_view(&text));
        buf_deinit(&inner.joined);
        s->reader->depth--;
        return rc;
}

static int include(struct source *s, struct str rest)
{
        struct str name = word(&rest);

        if (name.n == 0)
                return FAIL(s, "INCLUDE needs a file");
        return open_file(s, name, s->prefix, s->dir, s->names, s->first_node, s->splice);
}

static void add_end(uint32_t **list, uint32_t *count, uint32_t *cap, uint32_t node)
{
        MEM_GROW(*list, *cap, *count + 1);
        (*list)[(*count)++] = node;
}

/* Both times of the inner file, so that its arrows are known. */
static int splice(struct source *s, struct str rest)
{
        struct dag_reader *r = s->reader;
        struct str name = word(&rest), file = word(&rest), w = word(&rest), dir = STR_NONE;
        BUF_CLEANUP struct buf whole = {0};
        uint32_t from = r->node_count, caps[2] = {0};
        struct dag_splice *x;
        int rc;

        if (!name_ok(name) || file.n == 0)
                return FAIL(s, "SPLICE needs a name and a file");
        if (str_ieqz(w, "DIR"))
                dir = word(&rest);
        if ((w.n && dir.n == 0) || word(&rest).n)
                return FAIL(s, "behind the file of a splice comes nothing, or DIR and a folder");
        whole_name(s, name, &whole);
        if (map_get(r->splices, buf_view(&whole)) || map_get(r->by_name, buf_view(&whole)))
                return FAIL(s, "there is a node or a splice %s already", buf_z(&whole));
        x = mem_new(struct dag_splice);
        map_put(r->splices, buf_view(&whole), x);
        buf_char(&whole, '+');
        for (int names = 0; names < 2; names++) {
                rc = open_file(s, file, buf_view(&whole), join_dir(s, dir), names, from, x);
                if (rc)
                        return rc;
        }
        if (r->node_count == from)
                return FAIL(s, "the splice has no nodes");
        for (uint32_t i = from; i < r->node_count; i++) {
                if (!r->nodes[i].has_parent)
                        add_end(&x->first, &x->first_count, &caps[0], i);
                if (!r->nodes[i].has_child)
                        add_end(&x->last, &x->last_count, &caps[1], i);
        }
        return 0;
}

/* ---- statements that name nodes */

/* The node's number, or UINT32_MAX. */
static uint32_t find_node(const struct source *s, struct str name)
{
        BUF_CLEANUP struct buf whole = {0};

        whole_name(s, name, &whole);
        return (uint32_t)(uintptr_t)map_get(s->reader->by_name, buf_view(&whole)) - 1;
}

static int no_node(struct source *s, struct str name)
{
        BUF_CLEANUP struct buf whole = {0};

        whole_name(s, name, &whole);
        if (map_get(s->reader->splices, buf_view(&whole)))
                return FAIL(s, "%s is a splice, and this is said of a node", buf_z(&whole));
        return FAIL(s, "there is no node %s", buf_z(&whole));
}

static int add_ends(struct source *s, struct str name, bool parents, uint32_t **list, uint32_t *count,
                    uint32_t *cap)
{
        BUF_CLEANUP struct buf whole = {0};
        uint32_t node = find_node(s, name);
        const struct dag_splice *x;

        if (node != UINT32_MAX) {
                if (s->reader->nodes[node].kind != DAG_NODE)
                        return FAIL(s,
                                    "a FINAL, SERVICE or PROVISIONER node has neither parents nor children");
                add_end(list, count, cap, node);
                return 0;
        }
        whole_name(s, name, &whole);
        x = map_get(s->reader->splices, buf_view(&whole));
        if (!x)
                return no_node(s, name);
        for (uint32_t i = 0; i < (parents ? x->last_count : x->first_count); i++)
                add_end(list, count, cap, parents ? x->last[i] : x->first[i]);
        return 0;
}

static int parent(struct source *s, struct str rest)
{
        struct dag_reader *r = s->reader;
        struct dag_arrow a = {0};
        uint32_t count = 0, cap = 0;
        bool children = false;
        struct str w;
        int rc = 0;

        while (!rc && (w = word(&rest)).n) {
                if (str_ieqz(w, "CHILD") && !children) {
                        children = true;
                        a.parents = count;
                } else {
                        rc = add_ends(s, w, !children, &a.ends, &count, &cap);
                }
        }
        a.children = count - a.parents;
        if (!rc && (!children || a.parents == 0 || a.children == 0))
                rc = FAIL(s, "PARENT needs nodes, CHILD, and nodes");
        MEM_GROW(r->arrows, r->arrow_cap, r->arrow_count + 1);
        r->arrows[r->arrow_count++] = a;
        for (uint32_t i = 0; !rc && i < count; i++)
                *(i < a.parents ? &r->nodes[a.ends[i]].has_child : &r->nodes[a.ends[i]].has_parent) = true;
        return rc;
}

/* PIN_IN and PIN_OUT of a splice: its nodes that CONNECT takes, by numbers from 1. */
static int pin(struct source *s, struct str rest, unsigned side)
{
        struct str name = word(&rest), number = word(&rest);
        struct dag_splice *x = s->splice;
        uint32_t node = find_node(s, name);
        uint64_t n = 0;

        if (!x)
                return FAIL(s, "pins are for files that are spliced");
        if (node == UINT32_MAX)
                return no_node(s, name);
        if (str_to_u64(number, &n) != 0 || n == 0 || n > PINS_MAX || word(&rest).n)
                return FAIL(s, "a pin needs a node and a number from 1 to %u", PINS_MAX);
        if (n > x->pin_count[side]) {
                x->pins[side] = mem_array(x->pins[side], n, sizeof(*x->pins[side]));
                memset(x->pins[side] + x->pin_count[side], 0,
                       (n - x->pin_count[side]) * sizeof(*x->pins[side]));
                x->pin_count[side] = (uint32_t)n;
        }
        struct dag_pin *p = &x->pins[side][n - 1];
        add_end(&p->nodes, &p->count, &p->cap, node);
        return 0;
}

static int pin_in(struct source *s, struct str rest)
{
        return pin(s, rest, 0);
}

static int pin_out(struct source *s, struct str rest)
{
        return pin(s, rest, 1);
}

static const struct dag_splice *find_splice(struct source *s, struct str name)
{
        BUF_CLEANUP struct buf whole = {0};

        whole_name(s, name, &whole);
        return map_get(s->reader->splices, buf_view(&whole));
}

/* The nodes of each pin out of the first splice are parents of those of the pin in of the second. */
static int connect(struct source *s, struct str rest)
{
        struct dag_reader *r = s->reader;
        struct str from = word(&rest), to = word(&rest);
        const struct dag_splice *a = find_splice(s, from), *b = find_splice(s, to);

        if (!a || !b)
                return FAIL(s, "there is no splice " STR_FMT, STR_ARG(a ? to : from));
        if (a->pin_count[1] == 0 || a->pin_count[1] != b->pin_count[0])
                return FAIL(
                        s, "splice " STR_FMT " has %u pins out, and " STR_FMT " %u in: there must be as many",
                        STR_ARG(from), a->pin_count[1], STR_ARG(to), b->pin_count[0]);
        for (uint32_t i = 0; i < a->pin_count[1]; i++) {
                const struct dag_pin *out = &a->pins[1][i], *in = &b->pins[0][i];
                struct dag_arrow arrow = {.parents = out->count, .children = in->count};

                if (out->count == 0 || in->count == 0)
                        return FAIL(s, "pin %u has no node", i + 1);
                arrow.ends = mem_array(NULL, out->count + in->count, sizeof(*arrow.ends));
                memcpy(arrow.ends, out->nodes, out->count * sizeof(*arrow.ends));
                memcpy(arrow.ends + out->count, in->nodes, in->count * sizeof(*arrow.ends));
                for (uint32_t k = 0; k < out->count; k++)
                        r->nodes[out->nodes[k]].has_child = true;
                for (uint32_t k = 0; k < in->count; k++)
                        r->nodes[in->nodes[k]].has_parent = true;
                MEM_GROW(r->arrows, r->arrow_cap, r->arrow_count + 1);
                r->arrows[r->arrow_count++] = arrow;
        }
        return 0;
}

/* Calls fn for the node, or for all of this file and its splices. */
static int each_node(struct source *s, struct str name,
                     int (*fn)(struct source *s, struct dag_node *n, struct str rest), struct str rest)
{
        uint32_t node = find_node(s, name);
        int rc = 0;

        if (!str_ieqz(name, "ALL_NODES"))
                return node == UINT32_MAX ? no_node(s, name) : fn(s, &s->reader->nodes[node], rest);
        for (uint32_t i = s->first_node; !rc && i < s->reader->node_count; i++)
                if (s->reader->nodes[i].kind == DAG_NODE)
                        rc = fn(s, &s->reader->nodes[i], rest);
        return rc;
}

/* NAME="VALUE" with \" and \\ in it. */
static int read_var(struct source *s, struct str *rest, struct str *ret_name, struct buf *ret_value)
{
        ptrdiff_t eq = str_find(*rest, '=');
        struct str at;

        *ret_name = str_trim(eq < 0 ? *rest : str_head(*rest, (size_t)eq));
        at = eq < 0 ? STR_NONE : str_trim_left(str_skip(*rest, (size_t)eq + 1));
        if (eq < 0 || ret_name->n == 0 || at.n == 0 || at.p[0] != '"')
                return FAIL(s, "a variable is written as name=\"value\"");
        for (size_t i = 1; i < at.n; i++) {
                char c = at.p[i];

                if (c == '"') {
                        *rest = str_trim_left(str_skip(at, i + 1));
                        return 0;
                }
                if (c == '\\' && i + 1 < at.n && (at.p[i + 1] == '"' || at.p[i + 1] == '\\'))
                        c = at.p[++i];
                buf_char(ret_value, c == '\x1f' ? ' ' : c);
        }
        return FAIL(s, "the value of " STR_FMT " has no quote at its end", STR_ARG(*ret_name));
}

/* Macros whose value is known when the job starts become references that are filled in then. */
static void late_macro(struct buf *value, const char *macro, const char *fill)
{
        struct buf out = {0};
        struct str rest = buf_view(value);
        ptrdiff_t at;

        if (str_search(rest, str_of(macro)) < 0)
                return;
        while ((at = str_search(rest, str_of(macro))) >= 0) {
                buf_str(&out, str_head(rest, (size_t)at));
                buf_addz(&out, fill);
                rest = str_skip(rest, (size_t)at + strlen(macro));
        }
        buf_str(&out, rest);
        buf_deinit(value);
        *value = out;
}

static int set_vars(struct source *s, struct dag_node *n, struct str rest)
{
        static const char *const known[] = {"DAG_PARENT_NAMES", "DAGManJobId"};

        while (rest.n) {
                BUF_CLEANUP struct buf value = {0}, plus = {0};
                struct str name, own;
                uint32_t i;
                int rc = read_var(s, &rest, &name, &value);

                if (rc)
                        return rc;
                if (str_istarts(name, STR("My."))) { /* another way to write +Name */
                        buf_char(&plus, '+');
                        buf_str(&plus, str_skip(name, 3));
                        name = buf_view(&plus);
                }
                own = str_starts(name, STR("+")) ? str_skip(name, 1) : name;
                for (i = 0; i < own.n; i++)
                        if (!(own.p[i] == '_' || (own.p[i] >= '0' && own.p[i] <= '9') ||
                              ((own.p[i] | 32) >= 'a' && (own.p[i] | 32) <= 'z')))
                                return FAIL(s, "\"" STR_FMT "\" cannot be the name of a variable",
                                            STR_ARG(name));
                if (own.n == 0 || str_istarts(own, STR("queue")))
                        return FAIL(s, "the name of a variable cannot begin with queue, or be empty");
                for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
                        BUF_CLEANUP struct buf macro = {0};

                        buf_printf(&macro, "$(%s)", known[i]);
                        if (str_search(buf_view(&value), buf_view(&macro)) >= 0)
                                return FAIL(s,
                                            "%s in a variable is not supported: it is not known before "
                                            "the node starts",
                                            buf_z(&macro));
                }
                n->tries |= str_search(buf_view(&value), STR("$(RETRY)")) >= 0;
                late_macro(&value, "$(DAG_STATUS)", "$$([DAGStatus])");
                late_macro(&value, "$(FAILED_COUNT)", "$$([DAGFailedCount])");
                for (i = 0; i < n->var_count && !str_ieqz(name, n->vars[i].name); i++)
                        ;
                if (i == n->var_count) {
                        n->vars = mem_array(n->vars, n->var_count + 1, sizeof(*n->vars));
                        n->vars[n->var_count++] = (struct dag_var){.name = str_dupz(name)};
                } else {
                        free(n->vars[i].value);
                }
                n->vars[i].before = s->before;
                /* doubled quotes become one where they stand between quotes, before a job is made */
                n->before |= s->before || str_search(buf_view(&value), STR("\"\"")) >= 0;
                n->vars[i].value = buf_take(&value);
                if (!n->vars[i].value)
                        n->vars[i].value = str_dupz(STR(""));
        }
        return 0;
}

static int vars(struct source *s, struct str rest)
{
        struct str name = word(&rest), after = rest, w = word(&after);

        s->before = str_ieqz(w, "PREPEND");
        if (s->before || str_ieqz(w, "APPEND"))
                rest = after;
        rest = str_trim(rest);
        if (rest.n == 0)
                return FAIL(s, "VARS needs a node and name=\"value\"");
        return each_node(s, name, set_vars, rest);
}

static int set_retry(struct source *s, struct dag_node *n, struct str rest)
{
        struct str times = word(&rest), w = word(&rest), value = word(&rest);

        if (str_to_i64(times, &n->retry) != 0 || n->retry < 0 || n->retry > 1000000)
                return FAIL(s, "RETRY needs a node and a number");
        n->has_unless = w.n > 0;
        if (w.n && (!str_ieqz(w, "UNLESS-EXIT") || str_to_i64(value, &n->unless) != 0))
                return FAIL(s, "behind the number of a RETRY comes nothing, or UNLESS-EXIT and a number");
        return 0;
}

static int set_priority(struct source *s, struct dag_node *n, struct str rest)
{
        n->has_priority = true;
        if (str_to_i64(str_trim(rest), &n->priority) != 0 || n->priority > INT32_MAX ||
            n->priority < INT32_MIN)
                return FAIL(s, "PRIORITY needs a node and a whole number");
        return 0;
}

static int set_done(struct source *s, struct dag_node *n, struct str rest)
{
        if (str_trim(rest).n)
                return FAIL(s, "behind the node of a DONE comes nothing");
        n->done = n->kind == DAG_NODE; /* others run each time */
        return 0;
}

static int retry(struct source *s, struct str rest)
{
        struct str name = word(&rest);

        return each_node(s, name, set_retry, rest);
}

static int priority(struct source *s, struct str rest)
{
        struct str name = word(&rest);

        return each_node(s, name, set_priority, rest);
}

static int done_nodes(struct source *s, struct str rest)
{
        struct str name = word(&rest);

        return each_node(s, name, set_done, rest);
}

static int node(struct source *s, struct str rest)
{
        return job(s, rest, DAG_NODE);
}

static int the_only(struct source *s, struct str rest, enum dag_kind kind, const char *word_is)
{
        for (uint32_t i = 0; i < s->reader->node_count; i++)
                if (s->reader->nodes[i].kind == kind)
                        return FAIL(s, "there is a %s node already: %s", word_is, s->reader->nodes[i].name);
        return job(s, rest, kind);
}

static int final(struct source *s, struct str rest)
{
        return the_only(s, rest, DAG_FINAL, "FINAL");
}

static int provisioner(struct source *s, struct str rest)
{
        return the_only(s, rest, DAG_PROVISIONER, "PROVISIONER");
}

static int service(struct source *s, struct str rest)
{
        return job(s, rest, DAG_SERVICE);
}

/* Sets a path of a statement, relative to the folder of its file. */
static void set_file(struct source *s, char **to, struct str name)
{
        BUF_CLEANUP struct buf path = {0};

        if (s->dir && name.p[0] != '/')
                buf_printf(&path, "%s/", s->dir);
        buf_str(&path, name);
        free(*to);
        *to = buf_take(&path);
}

/* ---- scripts, aborts, categories */

static int set_script(struct source *s, struct dag_node *n, struct str rest)
{
        (void)rest;
        if (n->kind == DAG_SERVICE || n->kind == DAG_PROVISIONER)
                return FAIL(s, "a SERVICE or PROVISIONER node has no scripts");
        n->scripts[s->role] = s->script;
        return 0;
}

static bool debug_type(struct str word, enum dag_debug *ret)
{
        if (str_ieqz(word, "STDOUT"))
                *ret = DAG_DEBUG_STDOUT;
        else if (str_ieqz(word, "STDERR"))
                *ret = DAG_DEBUG_STDERR;
        else if (str_ieqz(word, "ALL"))
                *ret = DAG_DEBUG_ALL;
        else
                return false;
        return true;
}

/* SCRIPT [DEFER status seconds] [DEBUG file type] PRE|POST|HOLD node command */
static int script(struct source *s, struct str rest)
{
        static const struct {
                const char *word;
                enum dag_role role;
        } roles[] = {{"PRE", DAG_PRE}, {"POST", DAG_POST}, {"HOLD", DAG_HOLD}};
        struct dag_reader *r = s->reader;
        struct dag_script *x = mem_new(struct dag_script);
        struct str w = word(&rest), name;

        MEM_GROW(r->scripts, r->script_cap, r->script_count + 1);
        r->scripts[r->script_count++] = x;
        if (str_ieqz(w, "DEFER")) {
                struct str status = word(&rest), seconds = word(&rest);

                x->defers = true;
                if (str_to_i64(status, &x->defer_status) != 0 || x->defer_status < 1 ||
                    x->defer_status > 255 || str_to_i64(seconds, &x->defer_s) != 0 || x->defer_s < 0 ||
                    x->defer_s > 1000000)
                        return FAIL(s, "DEFER needs an exit code from 1 to 255 and a number of seconds");
                w = word(&rest);
        }
        if (str_ieqz(w, "DEBUG")) {
                struct str file = word(&rest), type = word(&rest);

                if (file.n == 0 || str_find(file, '\'') >= 0 || !debug_type(type, &x->debug))
                        return FAIL(
                                s, "DEBUG needs a file, whose name has no quotes, and STDOUT, STDERR or ALL");
                set_file(s, &x->debug_file, file);
                w = word(&rest);
        }
        s->role = DAG_ROLES;
        for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
                if (str_ieqz(w, roles[i].word))
                        s->role = roles[i].role;
        name = word(&rest);
        rest = str_trim(rest);
        if (s->role == DAG_ROLES || rest.n == 0)
                return FAIL(s, "SCRIPT needs PRE, POST or HOLD, a node and a command");
        x->command = str_dupz(rest);
        s->script = x;
        return each_node(s, name, set_script, STR_NONE);
}

static int set_pre_skip(struct source *s, struct dag_node *n, struct str rest)
{
        n->has_pre_skip = true;
        if (str_to_i64(str_trim(rest), &n->pre_skip) != 0 || n->pre_skip < 1 || n->pre_skip > 255)
                return FAIL(s, "PRE_SKIP needs a node and an exit code from 1 to 255");
        return 0;
}

static int pre_skip(struct source *s, struct str rest)
{
        struct str name = word(&rest);

        return each_node(s, name, set_pre_skip, rest);
}

static int set_abort(struct source *s, struct dag_node *n, struct str rest)
{
        struct str code = word(&rest), w = word(&rest), value = word(&rest);

        n->has_abort = true;
        if (str_to_i64(code, &n->abort) != 0 || n->abort < 1 || n->abort > 255)
                return FAIL(s, "ABORT-DAG-ON needs a node and an exit code from 1 to 255");
        n->has_abort_return = w.n > 0;
        if (w.n && (!str_ieqz(w, "RETURN") || str_to_i64(value, &n->abort_return) != 0 ||
                    n->abort_return < 0 || n->abort_return > 255))
                return FAIL(s,
                            "behind the exit code of an ABORT-DAG-ON comes nothing, or RETURN and a number "
                            "from 0 to 255");
        return 0;
}

static int abort_on(struct source *s, struct str rest)
{
        struct str name = word(&rest);

        return each_node(s, name, set_abort, rest);
}

/* A name that begins with + is the same in all splices. */
static struct dag_category *category_get(struct source *s, struct str name, const char **ret_name)
{
        BUF_CLEANUP struct buf whole = {0};
        struct dag_category *x;

        if (str_starts(name, STR("+")))
                buf_str(&whole, str_skip(name, 1));
        else
                whole_name(s, name, &whole);
        x = map_get(s->reader->categories, buf_view(&whole));
        if (!x) {
                x = mem_new(struct dag_category);
                x->number = (uint32_t)map_count(s->reader->categories);
                map_put(s->reader->categories, buf_view(&whole), x);
        }
        if (ret_name)
                *ret_name = dag_keep(s->reader, buf_view(&whole));
        return x;
}

static int set_category(struct source *s, struct dag_node *n, struct str rest)
{
        struct str name = word(&rest);

        if (name.n == 0 || word(&rest).n)
                return FAIL(s, "CATEGORY needs a node and a name");
        n->category = category_get(s, name, &n->category_name);
        return 0;
}

static int category(struct source *s, struct str rest)
{
        struct str name = word(&rest);

        return each_node(s, name, set_category, rest);
}

static int max_jobs(struct source *s, struct str rest)
{
        struct str name = word(&rest), number = word(&rest);
        uint64_t n;

        if (name.n == 0 || str_to_u64(number, &n) != 0 || n > 1000000000 || word(&rest).n)
                return FAIL(s, "MAXJOBS needs the name of a category and a number");
        category_get(s, name, NULL)->max = n;
        return 0;
}

/* ---- statements about the whole graph */

static void add_setting(struct dag_setting **list, uint32_t *count, uint32_t *cap, struct str name,
                        struct str value)
{
        MEM_GROW(*list, *cap, *count + 1);
        (*list)[(*count)++] = (struct dag_setting){str_dupz(name), str_dupz(value)};
}

static int dot(struct source *s, struct str rest)
{
        struct dag_files *f = s->reader->files;
        struct str w = word(&rest);

        if (w.n == 0)
                return FAIL(s, "DOT needs a file");
        set_file(s, &f->dot, w);
        while ((w = word(&rest)).n) {
                if (str_ieqz(w, "UPDATE") || str_ieqz(w, "DONT-UPDATE")) {
                        f->dot_update = str_ieqz(w, "UPDATE");
                } else if (str_ieqz(w, "OVERWRITE") || str_ieqz(w, "DONT-OVERWRITE")) {
                        f->dot_keep = !str_ieqz(w, "OVERWRITE");
                } else if (str_ieqz(w, "INCLUDE") && (w = word(&rest)).n) {
                        set_file(s, &f->dot_include, w);
                } else {
                        return FAIL(s, "behind the file of a DOT come UPDATE or DONT-UPDATE, OVERWRITE or "
                                       "DONT-OVERWRITE, and INCLUDE with a file");
                }
        }
        return 0;
}

static int status_file(struct source *s, struct str rest)
{
        struct str name = word(&rest), w;

        if (name.n == 0)
                return FAIL(s, "NODE_STATUS_FILE needs a file");
        set_file(s, &s->reader->files->status, name);
        while ((w = word(&rest)).n)
                if (!str_ieqz(w, "ALWAYS-UPDATE") &&
                    (str_to_i64(w, &s->reader->files->status_s) != 0 || s->reader->files->status_s < 0))
                        return FAIL(s, "behind the file of a NODE_STATUS_FILE come a number of seconds and "
                                       "ALWAYS-UPDATE");
        return 0;
}

static int jobstate_log(struct source *s, struct str rest)
{
        struct str name = word(&rest);

        if (name.n == 0 || word(&rest).n)
                return FAIL(s, "JOBSTATE_LOG needs a file");
        set_file(s, &s->reader->files->jobstate, name);
        return 0;
}

/* Beside the DAG file, in the folder save_files, where no other is named. */
static int save_point(struct source *s, struct str rest)
{
        struct str name = word(&rest), file = word(&rest);
        struct dag_files *f = s->reader->files;
        BUF_CLEANUP struct buf whole = {0}, path = {0};
        const char *own = strrchr(s->file, '/');

        if (find_node(s, name) == UINT32_MAX)
                return no_node(s, name);
        whole_name(s, name, &whole);
        if (file.n && str_find(file, '/') < 0)
                buf_addz(&path, "save_files/");
        if (file.n)
                buf_str(&path, file);
        else
                buf_printf(&path, "save_files/%s-%s.save", buf_z(&whole), own ? own + 1 : s->file);
        MEM_GROW(f->saves, f->save_cap, f->save_count + 1);
        f->saves[f->save_count] = (struct dag_save){.node = str_dupz(buf_view(&whole))};
        set_file(s, &f->saves[f->save_count++].file, buf_view(&path));
        return 0;
}

/* A graph in a graph is read with the outer one: EXTERNAL, which DAGMan reads when it is its turn, too. */
static int subdag(struct source *s, struct str rest)
{
        struct str w = word(&rest);

        if (!str_ieqz(w, "EXTERNAL") && !str_ieqz(w, "INLINE"))
                return FAIL(s, "SUBDAG needs EXTERNAL, a name and a file");
        return splice(s, str_trim(rest));
}

/* ENV SET name=value;name=value, and ENV GET name name */
static int env(struct source *s, struct str rest)
{
        struct dag_reader *r = s->reader;
        struct str w = word(&rest), one;
        bool set = str_ieqz(w, "SET"), any = false;

        if (!set && !str_ieqz(w, "GET"))
                return FAIL(s, "ENV needs SET and name=value;name=value, or GET and names");
        rest = str_trim(rest);
        while (set ? str_cut(&rest, ';', &one) : (one = word(&rest)).n > 0) {
                ptrdiff_t eq = str_find(one, '=');
                BUF_CLEANUP struct buf name = {0};
                const char *value;

                one = str_trim(one);
                if (one.n == 0)
                        continue;
                buf_str(&name, set && eq >= 0 ? str_trim(str_head(one, (size_t)eq)) : one);
                if ((set && eq < 0) || !name.n || str_find(buf_view(&name), '"') >= 0)
                        return FAIL(s, "ENV needs SET and name=value;name=value, or GET and names");
                any = true;
                value = set ? NULL : r->world->getenv(r->world->arg, buf_z(&name));
                if (set || value)
                        add_setting(&r->environment, &r->environment_count, &r->environment_cap,
                                    buf_view(&name),
                                    set ? str_trim(str_skip(one, (size_t)eq + 1)) : str_of(value));
        }
        return any ? 0 : FAIL(s, "ENV names no variable");
}

static int set_job_attr(struct source *s, struct str rest)
{
        struct dag_reader *r = s->reader;
        ptrdiff_t eq = str_find(rest, '=');
        struct str name = eq < 0 ? STR_NONE : str_trim(str_head(rest, (size_t)eq));

        if (name.n == 0 || str_find(name, ' ') >= 0)
                return FAIL(s, "SET_JOB_ATTR needs name = value");
        add_setting(&r->attributes, &r->attribute_count, &r->attribute_cap, name,
                    str_trim(str_skip(rest, (size_t)eq + 1)));
        return 0;
}

/* Reads one line of a DAGMan configuration. Returns false if the name is known and the value is wrong. */
static bool configure(struct source *s, struct str name, struct str value)
{
        struct {
                const char *name;
                uint64_t *to;
        } known[] = {{"DAGMAN_MAX_JOBS_SUBMITTED", &s->reader->max_jobs},
                     {"DAGMAN_MAX_PRE_SCRIPTS", &s->reader->max_pre},
                     {"DAGMAN_MAX_POST_SCRIPTS", &s->reader->max_post}};
        static const char *const not_needed[] = {"DAGMAN_MAX_JOBS_IDLE", "DAGMAN_MAX_SUBMITS_PER_INTERVAL",
                                                 "DAGMAN_USER_LOG_SCAN_INTERVAL", "DAGMAN_SUBMIT_DELAY"};

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (str_ieqz(name, known[i].name))
                        return str_to_u64(value, known[i].to) == 0 && *known[i].to <= 1000000000;
        for (size_t i = 0; i < sizeof(not_needed) / sizeof(not_needed[0]); i++)
                if (str_ieqz(name, not_needed[i]))
                        return true;
        form_warn(s->reader->form, s->line, STR_FMT " in %s is not applied: there is no DAGMan here",
                  STR_ARG(name), s->file);
        return true;
}

static int config(struct source *s, struct str rest)
{
        struct str name = word(&rest), line, text;
        BUF_CLEANUP struct buf file = {.max = CONDOR_TEXT_MAX}, path = {0};
        struct source inner = {.reader = s->reader};
        int rc;

        if (name.n == 0 || word(&rest).n)
                return FAIL(s, "CONFIG needs a file");
        if (s->dir && name.p[0] != '/')
                buf_printf(&path, "%s/", s->dir);
        buf_str(&path, name);
        inner.file = dag_keep(s->reader, buf_view(&path));
        rc = s->reader->world->read_file(s->reader->world->arg, inner.file, &file);
        if (rc)
                return FAIL(s, "%s cannot be read: %s", inner.file,
                            rc == -ENOENT ? "no such file"
                                          : "it is no file, too large, or not yours to read");
        for (text = buf_view(&file); str_cut(&text, '\n', &line);) {
                ptrdiff_t eq;

                inner.line++;
                line = str_trim(line);
                if (line.n == 0 || line.p[0] == '#')
                        continue;
                eq = str_find(line, '=');
                if (eq < 0 || !configure(&inner, str_trim(str_head(line, (size_t)eq)),
                                         str_trim(str_skip(line, (size_t)eq + 1))))
                        return FAIL(&inner, "\"" STR_FMT "\" is no setting with a value that it can have",
                                    STR_ARG(str_head(line, 80)));
        }
        return 0;
}

static int reject(struct source *s, struct str rest)
{
        return FAIL(s, "the file says REJECT: it is not meant to be submitted" STR_FMT STR_FMT,
                    STR_ARG(rest.n ? STR(": ") : STR_NONE), STR_ARG(rest));
}

/* ---- */

static const struct {
        const char *word;
        int (*make)(struct source *s, struct str rest); /* the first time */
        int (*name)(struct source *s, struct str rest); /* the second time */
} keywords[] = {
        {"JOB", node, NULL},
        {"NODE", node, NULL},
        {"FINAL", final, NULL},
        {"SPLICE", splice, NULL},
        {"INCLUDE", include, include},
        {"SUBMIT-DESCRIPTION", submit_description, NULL},
        {"PARENT", NULL, parent},
        {"VARS", NULL, vars},
        {"RETRY", NULL, retry},
        {"PRIORITY", NULL, priority},
        {"DONE", NULL, done_nodes},
        {"CONNECT", NULL, connect},
        {"PIN_IN", NULL, pin_in},
        {"PIN_OUT", NULL, pin_out},
        {"REJECT", reject, NULL},
        {"DATA", node, NULL},
        {"SUBDAG", subdag, NULL},
        {"SCRIPT", NULL, script},
        {"PRE_SKIP", NULL, pre_skip},
        {"ABORT-DAG-ON", NULL, abort_on},
        {"PROVISIONER", provisioner, NULL},
        {"SERVICE", service, NULL},
        {"CATEGORY", NULL, category},
        {"MAXJOBS", NULL, max_jobs},
        {"CONFIG", config, NULL},
        {"ENV", env, NULL},
        {"SET_JOB_ATTR", set_job_attr, NULL},
        {"DOT", dot, NULL},
        {"NODE_STATUS_FILE", status_file, NULL},
        {"JOBSTATE_LOG", jobstate_log, NULL},
        {"SAVE_POINT_FILE", NULL, save_point},
};

static int statement(struct source *s, struct str line)
{
        struct str rest = line, w = word(&rest);

        rest = str_trim(rest);
        for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
                if (!str_ieqz(w, keywords[i].word))
                        continue;
                if (!s->names)
                        return keywords[i].make ? keywords[i].make(s, rest) : 0;
                if (keywords[i].name)
                        return keywords[i].name(s, rest);
                /* The lines of a description are no statements. */
                if (str_ends(rest, STR("{")) && keywords[i].make != splice && keywords[i].make != subdag &&
                    keywords[i].make != include) {
                        BUF_CLEANUP struct buf text = {.max = CONDOR_TEXT_MAX};

                        return read_inline(s, &text, &rest);
                }
                return 0;
        }
        return FAIL(s, "unknown keyword \"" STR_FMT "\"", STR_ARG(str_head(w, 60)));
}

static int read_file(struct source *s, struct str text)
{
        struct str line;
        int rc = 0;

        s->rest = text;
        s->next = 1;
        while (!rc && next_statement(s, &line))
                rc = statement(s, line);
        return rc;
}

static int read_rescue(struct dag_reader *r, const char *name, struct str text)
{
        struct source s = {.reader = r, .file = name, .rest = text, .next = 1};
        struct str line;
        int rc = 0;

        while (!rc && next_statement(&s, &line)) {
                struct str rest = line, w = word(&rest);

                if (str_ieqz(w, "DONE"))
                        rc = done_nodes(&s, str_trim(rest));
                else if (!str_ieqz(w, "RETRY")) /* retries that are left: counted anew */
                        rc = dag_fail(r, name, s.line, "a rescue file has DONE and RETRY lines, not " STR_FMT,
                                      STR_ARG(str_head(w, 60)));
        }
        buf_deinit(&s.joined);
        return rc;
}

static void settings_deinit(struct dag_setting *list, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                free(list[i].name);
                free(list[i].value);
        }
        free(list);
}

static void reader_deinit(struct dag_reader *r)
{
        void *value;

        for (uint32_t i = 0; i < r->node_count; i++) {
                struct dag_node *n = &r->nodes[i];

                for (uint32_t k = 0; k < n->var_count; k++) {
                        free(n->vars[k].name);
                        free(n->vars[k].value);
                }
                free(n->vars);
                free(n->name);
                free(n->submit);
        }
        for (uint32_t i = 0; i < r->arrow_count; i++)
                free(r->arrows[i].ends);
        for (size_t at = 0; map_next(r->splices, &at, NULL, &value);) {
                struct dag_splice *x = value;

                for (unsigned side = 0; side < 2; side++) {
                        for (uint32_t k = 0; k < x->pin_count[side]; k++)
                                free(x->pins[side][k].nodes);
                        free(x->pins[side]);
                }
                free(x->first);
                free(x->last);
                free(x);
        }
        for (uint32_t i = 0; i < r->text_count; i++) {
                free(r->texts[i]->name);
                buf_deinit(&r->texts[i]->text);
                free(r->texts[i]);
        }
        for (uint32_t i = 0; i < r->script_count; i++) {
                free(r->scripts[i]->command);
                free(r->scripts[i]->debug_file);
                free(r->scripts[i]);
        }
        settings_deinit(r->attributes, r->attribute_count);
        settings_deinit(r->environment, r->environment_count);
        for (size_t at = 0; map_next(r->categories, &at, NULL, &value);)
                free(value);
        map_free(r->categories);
        free(r->scripts);
        free(r->units);
        free(r->nodes);
        free(r->arrows);
        free(r->texts);
        map_free(r->by_name);
        map_free(r->splices);
        map_free(r->descriptions);
}

static int parse(struct dag_reader *r, const char *file, struct str text, struct dag_summary *ret)
{
        struct dag_summary sum = {0};
        int rc = 0;

        for (int names = 0; !rc && names < 2; names++) {
                struct source s = {.reader = r, .file = file, .names = names};

                rc = read_file(&s, text);
                buf_deinit(&s.joined);
        }
        for (size_t i = 0; !rc && i < r->options->rescue_count; i++)
                rc = read_rescue(r, r->options->rescue_names[i], r->options->rescues[i]);
        if (!rc && r->node_count == 0)
                rc = err_set(r->err, -EINVAL, "%s: there is no node in it", file);
        for (uint32_t i = 0; i < r->node_count; i++)
                sum.done += r->nodes[i].done;
        sum.nodes = r->node_count;
        sum.names.max = FORM_TEXT_MAX;
        sum.files = *r->files;
        *r->files = (struct dag_files){0};
        if (!rc && sum.done == sum.nodes)
                rc = err_set(r->err, -ENOENT, "%s: all its nodes are done", file);
        if (!rc)
                rc = dag_make_form(r, &sum.edges);
        for (uint32_t i = 0; !rc && r->options->names && i < r->node_count; i++)
                if (r->nodes[i].kind == DAG_NODE && r->nodes[i].role_count > 0)
                        buf_printf(&sum.names, "%s\n", r->nodes[i].name);
        *ret = sum;
        return rc;
}

void dag_files_deinit(struct dag_files *f)
{
        for (uint32_t i = 0; i < f->save_count; i++) {
                free(f->saves[i].node);
                free(f->saves[i].file);
        }
        free(f->saves);
        free(f->dot);
        free(f->dot_include);
        free(f->status);
        free(f->jobstate);
        *f = (struct dag_files){0};
}

int dag_parse(const struct form_world *w, const char *file, struct str text, const struct dag_options *o,
              struct form *ret, struct dag_summary *ret_summary, struct err *err)
{
        struct dag_files files = {0};
        struct dag_reader r = {.world = w,
                               .files = &files,
                               .options = o,
                               .form = ret,
                               .err = err,
                               .max_pre = o->max_pre,
                               .max_post = o->max_post};
        int rc;

        r.by_name = map_new();
        r.splices = map_new();
        r.descriptions = map_new();
        r.categories = map_new();
        rc = parse(&r, file, text, ret_summary);
        reader_deinit(&r);
        return rc;
}
