/* Requests, merges and choices are nodes. A node's files are known before anything runs: the outputs of its
 * requests' jobs, by the names and numbers of these jobs. So the request that reads them is divided as over
 * any dataset, and each of its jobs waits for those that write its files. */
#include "jdl/rdl/rdl.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/format/xml.h"
#include "base/job/macro.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"
#include "jdl/rdl/elements.h"
#include "jdl/rdl/spelling.h"
#include "jdl/script/script.h"
#include "jdl/sums/request.h"

#define REFERENCES_MAX 100000u
#define FILES_MAX      10000000u   /* that requests of one composite write for others */
#define SCRIPTS_MAX    (16u << 20) /* bytes of the scripts of all requests */
/* How often nodes are looked at for their outputs and jobs. Merges of the same merges have many ways to a
 * request. */
#define VISITS_MAX 1000000u

enum kind { NODE_REQUEST, NODE_MERGE, NODE_CHOICE };
enum state { NODE_NEW, NODE_UNDER_WAY, NODE_MADE };

struct node;
struct wait { /* one request waits for a node */
        struct node *first;
        const char *when; /* ":any", or "" for success */
        const struct xml *x;
};
struct output { /* of each job of a request */
        const struct xml *x;
        struct str name, to; /* to: with macros of the submit language */
};
struct nodes {
        struct node **v;
        size_t n, cap;
};
struct node {
        enum kind kind;
        enum state state;
        const char *id;
        const struct xml *x;
        struct nodes of; /* of a merge and a choice: its requests, in their order */
        struct wait *waits;
        size_t wait_count, wait_cap;
        struct node *instead; /* of a request: the alternative that must have failed before */
        bool read;            /* some request reads its outputs */
        /* once it is made: */
        struct set members; /* its jobs */
        struct output *outputs;
        size_t output_count, output_cap;
        size_t part;      /* of the form */
        struct set *rows; /* by row: the jobs whose outputs it reads; NULL: it reads none */
        size_t row_count;
        struct nodes inputs;    /* the nodes whose outputs are its files */
        const char *files_from; /* for people */
};
struct producer { /* of a line: the jobs that must have succeeded before there is the file */
        uint32_t first, end;
};
struct reader {
        const struct form_world *w;
        const struct sums_job *from;
        const struct condor_options *options;
        const struct xml *root;
        struct form *form;
        struct err *err;
        struct arena arena;
        struct map *ids;   /* every element that has an ID */
        struct map *nodes; /* those that are nodes, by ID */
        struct nodes all;  /* in the order of the file */
        struct producer *producers;
        size_t producer_count, producer_cap;
        unsigned references, visits;
        size_t scripts; /* bytes */
        bool folders;   /* the lines that were appended last have folders */
        struct node *making;
        struct set *rows;
        size_t row_cap;
};

/* ---- what language it is */

/* Returns the text behind the prolog, comments and declarations of XML. */
static struct str first_element(struct str text)
{
        static const char *const ends[][2] = {{"<!--", "-->"}, {"<?", "?>"}};

        for (;;) {
                bool skipped = false;
                size_t depth = 0, i;

                text = str_trim(text);
                for (unsigned k = 0; k < 2 && !skipped; k++) {
                        ptrdiff_t end = str_starts(text, str_of(ends[k][0]))
                                                ? str_search(text, str_of(ends[k][1]))
                                                : -1;

                        skipped = end >= 0;
                        if (skipped)
                                text = str_skip(text, (size_t)end + strlen(ends[k][1]));
                }
                if (skipped)
                        continue;
                if (!str_starts(text, STR("<!")))
                        return text;
                for (i = 0; i < text.n; i++) {
                        depth += text.p[i] == '<';
                        if (text.p[i] == '>' && --depth == 0)
                                break;
                }
                text = str_skip(text, i < text.n ? i + 1 : i);
        }
}

static bool is_yaml(struct str text)
{
        struct str line;

        while (str_cut(&text, '\n', &line)) {
                line = str_trim(line);
                if (line.n && line.p[0] != '#' && line.p[0] != '%' && !str_eqz(line, "---"))
                        return str_starts(line, STR("AbstractRequest:"));
        }
        return false;
}

bool rdl_is(struct str text)
{
        if (str_starts(text, STR("\xef\xbb\xbf")))
                text = str_skip(text, 3);
        text = str_trim(text);
        if (!str_starts(text, STR("<")))
                return is_yaml(text);
        text = first_element(text);
        return str_starts(text, STR("<AbstractRequest")) && text.n > 16 &&
               !isalnum((unsigned char)text.p[16]);
}

/* ---- names */

static void nodes_add(struct nodes *all, struct node *n)
{
        MEM_GROW(all->v, all->cap, all->n + 1);
        all->v[all->n++] = n;
}

static int add_id(struct reader *r, const struct xml *x, const char *id)
{
        const struct xml *before = map_get(r->ids, str_of(id));

        if (before)
                return schema_fail(x, r->err, " has the ID %s, as <%s> in line %u has", id, before->name,
                                   before->line);
        map_put(r->ids, str_of(id), (void *)(uintptr_t)x);
        return 0;
}

static int add_node(struct reader *r, const struct xml *x, enum kind kind, const char *id)
{
        struct node *n = arena_alloc(&r->arena, sizeof(*n));

        *n = (struct node){.kind = kind, .x = x, .id = id};
        nodes_add(&r->all, n);
        if (kind == NODE_REQUEST && r->all.n > RDL_REQUESTS_MAX)
                return schema_fail(x, r->err, ": a composite request has %u requests at most",
                                   RDL_REQUESTS_MAX);
        if (map_get(r->nodes, str_of(id)))
                return schema_fail(x, r->err, " is called %s, as another request is", id);
        map_put(r->nodes, str_of(id), n);
        return 0;
}

/* A request without an ID has its name, or its number. */
static int add_request(struct reader *r, const struct xml *x, unsigned number)
{
        struct str name = xml_text(xml_child(x, "RequestName"));
        const char *id = xml_get(x, "ID");
        BUF_CLEANUP struct buf own = {0};

        if (!sums_is_one_line(name) || str_find(name, '"') >= 0 || name.n > 64)
                return schema_fail(
                        x, r->err,
                        " has a <RequestName> with more than 64 bytes, a quote or a control character");
        if (id)
                return add_node(r, x, NODE_REQUEST, id);
        if (name.n)
                buf_str(&own, name);
        else
                buf_printf(&own, "request-%u", number);
        return add_node(r, x, NODE_REQUEST, arena_dup(&r->arena, buf_z(&own), own.n));
}

static int read_ids(struct reader *r)
{
        unsigned requests = 0;
        int rc = 0;

        for (const struct xml *x = r->root->first; x && rc == 0; x = x->next) {
                if (xml_get(x, "ID"))
                        rc = add_id(r, x, xml_get(x, "ID"));
                if (rc == 0 && xml_is(x, "Request"))
                        rc = add_request(r, x, ++requests);
        }
        for (const struct xml *x = r->root->first; x && rc == 0; x = x->next)
                for (const struct xml *i = xml_is(x, "WorkFlow") ? x->first : NULL; i && rc == 0;
                     i = i->next) {
                        if (xml_get(i, "id"))
                                rc = add_id(r, i, xml_get(i, "id"));
                        if (rc == 0 && !xml_is(i, "SetupRequestDependancy"))
                                rc = add_node(r, i, xml_is(i, "MergeRequests") ? NODE_MERGE : NODE_CHOICE,
                                              xml_get(i, "id"));
                }
        return rc;
}

/* Returns the element that `x` refers to by an attribute, which must have one of the names; NULL with err. */
static const struct xml *refer(struct reader *r, const struct xml *x, const char *attribute,
                               const char *const *names, const char *what)
{
        const char *id = xml_get(x, attribute);
        const struct xml *to = map_get(r->ids, str_of(id));

        for (size_t i = 0; to && names[i]; i++)
                if (xml_is(to, names[i]))
                        return to;
        if (to)
                schema_fail(x, r->err, " %s=\"%s\" is the ID of the <%s> in line %u: %s is expected",
                            attribute, id, to->name, to->line, what);
        else
                schema_fail(x, r->err, " %s=\"%s\" is no element's ID: %s is expected", attribute, id, what);
        return NULL;
}

static struct node *refer_node(struct reader *r, const struct xml *x)
{
        static const char *const names[] = {"Request", "MergeRequests", "ChooseBetweenRequests", NULL};
        const struct xml *to = refer(r, x, "idref", names, "a request, a merge or a choice");

        if (!to)
                return NULL;
        if (++r->references > REFERENCES_MAX) {
                schema_fail(x, r->err, ": there are more than %u references", REFERENCES_MAX);
                return NULL;
        }
        return map_get(r->nodes, str_of(xml_get(x, "idref")));
}

/* ---- the work flow */

static int read_group(struct reader *r, const struct xml *x)
{
        struct node *n = map_get(r->nodes, str_of(xml_get(x, "id")));

        for (const struct xml *i = xml_child(x, "RequestID"); i; i = xml_next(i, "RequestID")) {
                struct node *in = refer_node(r, i);

                if (!in)
                        return -EINVAL;
                for (size_t k = 0; k < n->of.n; k++)
                        if (n->of.v[k] == in)
                                return schema_fail(i, r->err, " names %s once more", in->id);
                if (n->kind == NODE_CHOICE && in->kind != NODE_REQUEST)
                        return schema_fail(i, r->err,
                                           " idref=\"%s\" is no request: a choice is between requests",
                                           in->id);
                if (n->kind == NODE_CHOICE && in->instead)
                        return schema_fail(i, r->err, " idref=\"%s\" is in a choice already", in->id);
                if (n->kind == NODE_CHOICE && n->of.n)
                        in->instead = n->of.v[n->of.n - 1];
                nodes_add(&n->of, in);
        }
        if (n->kind == NODE_CHOICE && n->of.n < 2)
                return schema_fail(x, r->err, " has one request: a choice is between two or more");
        return 0;
}

static int add_wait(struct reader *r, struct node *waiting, struct node *first, const char *when,
                    const struct xml *x, unsigned depth)
{
        int rc = 0;

        if (depth > XML_DEPTH_MAX)
                return schema_fail(x, r->err, ": merges are nested too deep");
        if (++r->references > REFERENCES_MAX)
                return schema_fail(x, r->err, ": there are more than %u references", REFERENCES_MAX);
        for (size_t i = 0; i < waiting->of.n && rc == 0; i++)
                rc = add_wait(r, waiting->of.v[i], first, when, x, depth + 1);
        if (waiting->kind != NODE_REQUEST)
                return rc;
        MEM_GROW(waiting->waits, waiting->wait_cap, waiting->wait_count + 1);
        waiting->waits[waiting->wait_count++] = (struct wait){first, when, x};
        return 0;
}

static int read_dependency(struct reader *r, const struct xml *x)
{
        const char *when = xml_get(x, "when");

        when = !when || strcmp(when, "ok") == 0 ? "" : strcmp(when, "any") == 0 ? ":any" : ":fail";
        for (const struct xml *w = xml_child(x, "RequestWaitingForInputID"); w;
             w = xml_next(w, "RequestWaitingForInputID"))
                for (const struct xml *f = xml_child(x, "RequestToBeDoneFirstID"); f;
                     f = xml_next(f, "RequestToBeDoneFirstID")) {
                        struct node *waiting = refer_node(r, w), *first = waiting ? refer_node(r, f) : NULL;
                        int rc = first ? add_wait(r, waiting, first, when, x, 0) : -EINVAL;

                        if (rc != 0)
                                return rc;
                }
        return 0;
}

static int read_workflow(struct reader *r)
{
        const struct xml *flow = xml_child(r->root, "WorkFlow");
        int rc = 0;

        for (const struct xml *x = flow ? flow->first : NULL; x && rc == 0; x = x->next)
                if (!xml_is(x, "SetupRequestDependancy"))
                        rc = read_group(r, x);
        for (const struct xml *x = flow ? flow->first : NULL; x && rc == 0; x = x->next)
                if (xml_is(x, "SetupRequestDependancy"))
                        rc = read_dependency(r, x);
        return rc;
}

/* Marks the requests whose outputs another one reads. */
static void mark(struct node *n)
{
        if (n->read)
                return;
        n->read = true;
        for (size_t i = 0; i < n->of.n; i++)
                mark(n->of.v[i]);
}

static void mark_id(struct reader *r, const char *id)
{
        struct node *n = id ? map_get(r->nodes, str_of(id)) : NULL;

        if (n)
                mark(n);
}

/* Without datasetRef and nProcesses a request reads what those write that it waits for. */
static bool reads_waits(const struct node *n)
{
        return !xml_get(n->x, "datasetRef") && !xml_get(n->x, "nProcesses");
}

static void mark_all(struct reader *r)
{
        for (const struct xml *x = xml_child(r->root, "Dataset"); x; x = xml_next(x, "Dataset"))
                for (const struct xml *i = xml_child(x, "DatasetRef"); i; i = xml_next(i, "DatasetRef"))
                        mark_id(r, xml_get(i, "idref"));
        for (size_t i = 0; i < r->all.n; i++) {
                struct node *n = r->all.v[i];

                if (n->kind != NODE_REQUEST)
                        continue;
                mark_id(r, xml_get(n->x, "datasetRef"));
                for (size_t k = 0; k < n->wait_count && reads_waits(n); k++)
                        if (!*n->waits[k].when)
                                mark(n->waits[k].first);
        }
}

/* ---- what a request refers to */

static const struct xml *task_of(struct reader *r, const struct node *n)
{
        static const char *const tasks[] = {"ScriptTask", "RootTask", "JavaTask", NULL};

        return refer(r, n->x, "taskRef", tasks, "a ScriptTask, RootTask or JavaTask");
}

/* *ret: NULL if the request refers to none. */
static int refer_one(struct reader *r, const struct node *n, const char *attribute, const char *name,
                     const struct xml **ret)
{
        const char *const names[] = {name, NULL};
        BUF_CLEANUP struct buf what = {0};

        *ret = NULL;
        if (!xml_get(n->x, attribute))
                return 0;
        buf_printf(&what, "%s %s", strchr("AE", name[0]) ? "an" : "a", name);
        *ret = refer(r, n->x, attribute, names, buf_z(&what));
        return *ret ? 0 : -EINVAL;
}

struct files { /* of a request */
        struct sums_input *v;
        size_t n, cap;
        bool folders; /* some of them are folders, whose files are known when the job begins */
};

static int make_node(struct reader *r, struct node *n, const struct xml *at);
static int node_lines(struct reader *r, const struct node *n, const struct xml *at, struct buf *out);

/* The outputs of a node become files of the request. */
static int add_flow(struct reader *r, struct node *n, struct node *from, const struct xml *at,
                    struct files *files)
{
        BUF_CLEANUP struct buf lines = {.max = FORM_TEXT_MAX}, name = {0};
        uint64_t tag = r->producer_count + 1;
        int rc = make_node(r, from, at);

        r->folders = false;
        if (rc == 0)
                rc = node_lines(r, from, at, &lines);
        if (rc != 0)
                return rc;
        files->folders |= r->folders;
        if (lines.n == 0)
                return schema_fail(at, r->err, ": %s has no <output>, so there are no files of it", from->id);
        if (buf_check(&lines))
                return schema_fail(at, r->err, ": the names of the files of %s take more than %u MiB",
                                   from->id, FORM_TEXT_MAX >> 20);
        buf_printf(&name, "outputs of %s", from->id);
        nodes_add(&n->inputs, from);
        MEM_GROW(files->v, files->cap, files->n + 1);
        files->v[files->n++] = (struct sums_input){.lines = arena_str(&r->arena, buf_view(&lines)),
                                                   .name = arena_dup(&r->arena, buf_z(&name), name.n),
                                                   .tag = tag,
                                                   .line = at->line};
        return 0;
}

/* A dataset's files, and those of the datasets and requests that it refers to. */
static int add_dataset(struct reader *r, struct node *n, const struct xml *x, struct files *files,
                       unsigned depth)
{
        static const char *const names[] = {"Dataset", "Request", "MergeRequests", "ChooseBetweenRequests",
                                            NULL};
        int rc = 0;

        if (depth > XML_DEPTH_MAX)
                return schema_fail(x, r->err, " refers to itself, or datasets are nested too deep");
        if (!x->first)
                return schema_fail(x, r->err, " is empty: <input> or <DatasetRef> is expected");
        for (const struct xml *i = x->first; i && rc == 0; i = i->next) {
                const struct xml *to =
                        xml_is(i, "DatasetRef")
                                ? refer(r, i, "idref", names, "a dataset, a request, a merge or a choice")
                                : NULL;

                if (xml_is(i, "DatasetRef") && !to)
                        return -EINVAL;
                if (++r->references > REFERENCES_MAX)
                        return schema_fail(i, r->err, ": there are more than %u references", REFERENCES_MAX);
                if (!to) {
                        MEM_GROW(files->v, files->cap, files->n + 1);
                        files->v[files->n++] = (struct sums_input){.element = i};
                } else if (xml_is(to, "Dataset")) {
                        rc = add_dataset(r, n, to, files, depth + 1);
                } else {
                        rc = add_flow(r, n, map_get(r->nodes, str_of(xml_get(i, "idref"))), i, files);
                }
        }
        return rc;
}

static int visit(struct reader *r, const struct xml *at)
{
        return ++r->visits <= VISITS_MAX
                       ? 0
                       : schema_fail(at, r->err,
                                     ": merges and choices of the same merges lead to requests in more than "
                                     "%u ways",
                                     VISITS_MAX);
}

/* Returns whether there are any, or a negative error. */
static int has_outputs(struct reader *r, const struct node *n)
{
        const struct xml *task =
                n->kind == NODE_REQUEST ? map_get(r->ids, str_of(xml_get(n->x, "taskRef"))) : NULL;
        int any = visit(r, n->x);

        if (any == 0)
                any = task && xml_child(task, "output");
        for (size_t i = 0; i < n->of.n && any == 0; i++)
                any = has_outputs(r, n->of.v[i]);
        return any;
}

static int add_files(struct reader *r, struct node *n, struct files *files, const struct xml **ret_dataset)
{
        static const char *const names[] = {"Dataset", "Request", "MergeRequests", "ChooseBetweenRequests",
                                            NULL};
        const char *id = xml_get(n->x, "datasetRef");
        const struct xml *to;
        int rc = 0;

        if (id && xml_get(n->x, "nProcesses"))
                return schema_fail(n->x, r->err,
                                   " has nProcesses, which is for jobs without files, and datasetRef; write "
                                   "maxFilesPerProcess in <ResourceSpecifications> to say how the files "
                                   "are cut");
        if (id) {
                to = refer(r, n->x, "datasetRef", names, "a dataset, a request, a merge or a choice");
                if (!to)
                        return -EINVAL;
                n->files_from = id;
                if (!xml_is(to, "Dataset"))
                        return add_flow(r, n, map_get(r->nodes, str_of(id)), n->x, files);
                *ret_dataset = to;
                return add_dataset(r, n, to, files, 0);
        }
        for (size_t i = 0; i < n->wait_count && rc == 0 && reads_waits(n); i++) {
                const struct wait *w = &n->waits[i];
                int any = *w->when ? 0 : has_outputs(r, w->first);

                if (any < 0)
                        return any;
                if (any) {
                        n->files_from = n->files_from ? "those before" : w->first->id;
                        rc = add_flow(r, n, w->first, w->x, files);
                }
        }
        return rc;
}

/* ---- outputs */

struct member { /* whose output is named */
        const struct form_part *part;
        struct str values; /* of its row */
        uint64_t number, row;
};

static enum macro_found look_up(void *arg, struct str name, struct buf *out)
{
        const struct member *m = arg;
        struct str rest = m->values, value;

        if (str_ieqz(name, "Process"))
                buf_printf(out, "%llu", (unsigned long long)m->number);
        else if (str_ieqz(name, "Row") || str_ieqz(name, "Step"))
                buf_printf(out, "%llu", (unsigned long long)m->row);
        else {
                for (size_t i = 0; i < m->part->variable_count && str_cut(&rest, '\x1f', &value); i++)
                        if (str_ieqz(name, m->part->variables[i]))
                                return macro_item(value, out);
                return MACRO_UNKNOWN;
        }
        return MACRO_FINAL;
}

static int add_producer(struct reader *r, const struct xml *at, uint64_t first, uint64_t end)
{
        if (r->producer_count == FILES_MAX)
                return schema_fail(at, r->err, ": requests write more than %u files for others", FILES_MAX);
        MEM_GROW(r->producers, r->producer_cap, r->producer_count + 1);
        r->producers[r->producer_count++] = (struct producer){(uint32_t)first, (uint32_t)end};
        return 0;
}

static bool is_pattern(struct str name)
{
        return memchr(name.p, '*', name.n) || memchr(name.p, '?', name.n) || memchr(name.p, '[', name.n);
}

/* Returns whether each job writes the files of the pattern into a folder that no other job writes into. */
static bool has_own_folder(const struct output *o)
{
        return str_starts(o->to, STR("/")) && str_ends(o->to, STR("/")) &&
               (str_search(o->to, STR("$(Process)")) >= 0 || str_search(o->to, STR("$(Row)")) >= 0 ||
                str_search(o->to, STR("$(Step)")) >= 0);
}

/* Returns whether an earlier pattern of the task has the same folder as output i. */
static bool is_same_folder(const struct node *n, size_t i)
{
        for (size_t k = 0; k < i; k++)
                if (is_pattern(n->outputs[k].name) && str_eq(n->outputs[k].to, n->outputs[i].to))
                        return true;
        return false;
}

static int request_lines(struct reader *r, const struct node *n, const struct xml *at, struct buf *out)
{
        const struct form_part *part = &r->form->parts[n->part];
        struct str rows = buf_view(&part->items);
        struct member m = {.part = part, .number = set_first(&n->members)};
        const struct macro_world w = {.arg = &m, .lookup = look_up, .work = r->options->work};
        uint64_t count = n->output_count ? part->rows * part->steps : 0;
        int rc = 0;

        for (m.row = 0; m.row < count && rc == 0; m.row++, m.number++) {
                if (part->variable_count)
                        str_cut(&rows, '\n', &m.values);
                for (size_t i = 0; i < n->output_count && rc == 0; i++) {
                        const struct output *o = &n->outputs[i];
                        size_t start = out->n;

                        if (is_pattern(o->name) && !has_own_folder(o))
                                return schema_fail(
                                        o->x, r->err,
                                        " is a pattern, and line %u reads what %s writes: which files there "
                                        "will be is not known before, so each job needs a folder for them, "
                                        "as "
                                        "toURL=\"file:/PATH/$JOBID/\"",
                                        at->line, n->id);
                        if (is_pattern(o->name) && is_same_folder(n, i))
                                continue;
                        r->folders |= is_pattern(o->name);
                        rc = macro_expand(&w, o->to, out, NULL, r->err);
                        if (rc != 0)
                                return schema_fail(o->x, r->err, " makes names of more than some MiB");
                        if (buf_check(out))
                                return 0; /* the caller says so */
                        if (!sums_is_one_line(str_skip(buf_view(out), start)))
                                return schema_fail(o->x, r->err, " has a control character in its name");
                        buf_char(out, '\n');
                        rc = add_producer(r, at, m.number, m.number + 1);
                }
        }
        return rc;
}

/* All alternatives must write the same files, since it is not known which of them will. */
static int choice_lines(struct reader *r, const struct node *n, const struct xml *at, struct buf *out)
{
        const struct node *last = n->of.v[n->of.n - 1];
        uint64_t first = set_first(&last->members), end = first + set_count(&last->members);
        size_t producers = r->producer_count;
        BUF_CLEANUP struct buf all = {.max = FORM_TEXT_MAX};
        int rc = node_lines(r, n->of.v[0], at, &all);

        for (size_t i = 1; i < n->of.n && rc == 0; i++) {
                BUF_CLEANUP struct buf other = {.max = FORM_TEXT_MAX};
                size_t count = r->producer_count;

                rc = node_lines(r, n->of.v[i], at, &other);
                r->producer_count = count;
                if (rc == 0 && !str_eq(buf_view(&all), buf_view(&other)))
                        return schema_fail(
                                n->x, r->err,
                                ": %s and %s write different files, so those of %s are not known; give both "
                                "the same <output>s (with $JOBINDEX, not $JOBID) and equally many jobs",
                                n->of.v[0]->id, n->of.v[i]->id, n->id);
        }
        for (size_t i = producers; i < r->producer_count; i++)
                r->producers[i] = (struct producer){(uint32_t)first, (uint32_t)end};
        buf_str(out, buf_view(&all));
        return rc;
}

/* Appends the names of the files that a node writes, one a line, and as many producers. */
static int node_lines(struct reader *r, const struct node *n, const struct xml *at, struct buf *out)
{
        int rc = visit(r, at);

        if (rc != 0)
                return rc;
        if (n->kind == NODE_REQUEST)
                return request_lines(r, n, at, out);
        if (n->kind == NODE_CHOICE)
                return choice_lines(r, n, at, out);
        for (size_t i = 0; i < n->of.n && rc == 0; i++)
                rc = node_lines(r, n->of.v[i], at, out);
        return rc;
}

/* ---- making a request */

/* Puts the files of folders in the place of these: in the list, and in the variables of the job. */
static const char expand_folders[] =
        "drover_list=$FILELIST FILELIST=$PWD/.rdl.list INPUTFILECOUNT=0\n"
        "while IFS= read -r drover_file; do\n"
        "        case $drover_file in\n"
        "        */) for drover_one in \"$drover_file\"*; do\n"
        "                    [ ! -f \"$drover_one\" ] || printf '%s\\n' \"$drover_one\"\n"
        "            done ;;\n"
        "        *) printf '%s\\n' \"$drover_file\" ;;\n"
        "        esac\n"
        "done <\"$drover_list\" >\"$FILELIST\"\n"
        "while IFS= read -r drover_file; do\n"
        "        [ $INPUTFILECOUNT -ge 1000 ] || export \"INPUTFILE$INPUTFILECOUNT=$drover_file\"\n"
        "        INPUTFILECOUNT=$((INPUTFILECOUNT + 1))\n"
        "done <\"$FILELIST\"\n"
        "export FILELIST INPUTFILECOUNT\n";

static void on_output(void *arg, const struct xml *x, struct str name, struct str to)
{
        struct reader *r = arg;
        struct node *n = r->making;

        MEM_GROW(n->outputs, n->output_cap, n->output_count + 1);
        n->outputs[n->output_count++] =
                (struct output){x, arena_str(&r->arena, name), arena_str(&r->arena, to)};
}

static void on_file(void *arg, uint64_t row, uint64_t tag)
{
        struct reader *r = arg;
        size_t before = r->row_cap;

        if (tag == 0 || tag > r->producer_count)
                return;
        if (row >= r->row_cap) {
                MEM_GROW(r->rows, r->row_cap, (size_t)row + 1);
                memset(r->rows + before, 0, (r->row_cap - before) * sizeof(*r->rows));
        }
        set_add_range(&r->rows[row], r->producers[tag - 1].first, r->producers[tag - 1].end);
}

/* Words of a shell for what runs the task. */
static int write_command(struct reader *r, const struct node *n, const struct xml *task,
                         const struct xml *application, struct buf *command, struct str *ret_shell)
{
        bool runs = application && !xml_get(application, "type");
        const char *type = application ? xml_get(application, "type") : NULL;
        struct str program = application ? str_trim(str_of(xml_get(application, "name"))) : STR_NONE;
        const char *jar = xml_get(task, "jar"), *class = xml_get(task, "class"),
                   *arguments = xml_get(task, "arguments");

        runs |= type && strcmp(type, "program") == 0;
        if (!runs)
                program = STR_NONE;
        *ret_shell = STR("/bin/sh");
        if (xml_is(task, "ScriptTask")) {
                *ret_shell = program; /* empty: csh, as in SUMS */
                buf_str(command, xml_text(xml_child(task, "Text")));
                return 0;
        }
        if (xml_is(task, "RootTask")) {
                BUF_CLEANUP struct buf call = {0};

                buf_printf(command, STR_FMT " -q -b ", STR_ARG(program.n ? program : STR("root")));
                buf_addz(&call, xml_get(task, "macro"));
                if (arguments)
                        buf_printf(&call, "(%s)", arguments);
                buf_char(command, '"');
                for (const char *z = buf_z(&call); *z; z++)
                        buf_printf(command, "%s%c", strchr("\"\\`", *z) ? "\\" : "", *z);
                buf_char(command, '"');
                return 0;
        }
        if (!jar == !class)
                return schema_fail(task, r->err, " has %s: a JavaTask has a jar or a class",
                                   jar ? "both a jar and a class" : "neither a jar nor a class");
        buf_printf(command, STR_FMT " %s", STR_ARG(program.n ? program : STR("java")), jar ? "-jar " : "");
        script_quote(command, str_of(jar ? jar : class));
        if (arguments)
                buf_printf(command, " %s", arguments);
        (void)n;
        return 0;
}

static int add_variables(struct reader *r, const struct xml *x, struct args *to)
{
        for (const struct xml *v = x ? xml_child(x, "Environment") : NULL; v;
             v = xml_next(v, "Environment")) {
                const char *name = xml_get(v, "name");
                BUF_CLEANUP struct buf one = {0};

                for (const char *z = name; *z; z++)
                        if (!isalnum((unsigned char)*z) && *z != '_')
                                return schema_fail(
                                        v, r->err,
                                        " name=\"%.100s\" is not right: letters, digits and _ are expected",
                                        name);
                if (isdigit((unsigned char)*name) || !sums_is_one_line(xml_text(v)))
                        return schema_fail(
                                v, r->err,
                                " is no variable: its name begins with a digit, or there is a control "
                                "character in it");
                buf_printf(&one, "%s=" STR_FMT, name, STR_ARG(xml_text(v)));
                args_add(to, buf_view(&one));
        }
        return 0;
}

/* Lines of the submit language for the application, and for the request as a node of a graph. */
static int write_lines(struct reader *r, const struct node *n, const struct xml *application,
                       const struct xml *limits, struct buf *out)
{
        const char *type = application ? xml_get(application, "type") : NULL,
                   *version = application ? xml_get(application, "ver") : NULL,
                   *name = application ? xml_get(application, "name") : NULL,
                   *priority = xml_get(limits, "priority"), *registers = xml_get(n->x, "register");
        bool module = type && strcmp(type, "module") == 0, files = false;

        if (name && (!sums_is_one_line(str_of(name)) || !sums_is_one_line(str_of(version))))
                return schema_fail(application, r->err, " has a control character in its name or version");
        if (type && strcmp(type, "preset") == 0) {
                buf_addz(out, "job_application = ");
                script_value(out, str_of(name));
                buf_char(out, '\n');
        }
        if (module) {
                buf_addz(out, "modules = ");
                script_value(out, str_of(name));
                buf_printf(out, "%s", version ? "/" : "");
                script_value(out, str_of(version));
                buf_char(out, '\n');
        } else if (version) {
                form_warn(r->form, application->line, "ver is not acted on: only a module has a version");
        }
        if (priority)
                buf_printf(out, "priority = %s\n", priority);
        if (registers) {
                if (!sums_is_one_line(str_of(registers)))
                        return schema_fail(n->x, r->err, " register has a control character in it");
                buf_addz(out, "register_outputs = ");
                script_value(out, str_of(registers));
                buf_char(out, '\n');
        }
        for (const struct xml *x = xml_child(task_of(r, n), "output"); x; x = xml_next(x, "output"))
                files |= str_istarts(str_trim(str_of(xml_get(x, "toURL"))), STR("file:"));
        if (files && n->read && r->w->no_folder)
                return schema_fail(
                        n->x, r->err,
                        " writes files that another request reads, and there is no submit folder "
                        "here to have them in: write them to URLs of a store, or use drover submit");
        if (files && n->read && r->options->filesystem_domain) /* there the next one finds them */
                buf_addz(out, "requirements = TARGET.FileSystemDomain == MY.FileSystemDomain\n");
        buf_printf(out,
                   "+DAGNodeName = \"%s\"\non_dependency_failure = remove\nwhen_to_transfer_output = "
                   "ON_SUCCESS\n",
                   n->id);
        return 0;
}

static int make_request(struct reader *r, struct node *n, struct files *files)
{
        static const struct xml nothing = {.name = (char *)"ResourceSpecifications", .text = (char *)""};
        const struct xml *task = task_of(r, n), *application = NULL, *limits = NULL, *data = NULL;
        struct sums_request request = {.file = r->from->file, .id = r->from->request_id, .composite = true};
        BUF_CLEANUP struct buf lines = {0}, command = {0}, script = {0};
        ARGS_CLEANUP struct args variables = {0};
        uint64_t first = form_members(r->form);
        struct str shell = STR_NONE;
        int rc = task ? refer_one(r, n, "appRef", "Application", &application) : -EINVAL;

        if (rc == 0)
                rc = refer_one(r, n, "resourceRef", "ResourceSpecifications", &limits);
        if (rc == 0)
                rc = add_files(r, n, files, &data);
        if (rc == 0)
                rc = write_command(r, n, task, application, &command, &shell);
        if (rc == 0)
                rc = add_variables(r, application, &variables);
        if (rc == 0)
                rc = add_variables(r, task, &variables);
        if (rc == 0)
                rc = write_lines(r, n, application, limits ? limits : &nothing, &lines);
        if (rc != 0)
                return rc;
        first = form_members(r->form); /* others were made meanwhile */
        buf_printf(&script, "export PROCESSID=$((PROCESSID - %llu)) JOBINDEX=$((JOBINDEX - %llu))\n",
                   (unsigned long long)first, (unsigned long long)first);
        if (files->folders)
                buf_addz(&script, expand_folders);
        sums_script(buf_view(&command), shell, files->n > 0 ? SUMS_INPUTS_THERE : SUMS_INPUTS_NONE, &script);
        r->scripts += script.n;
        if (r->scripts > SCRIPTS_MAX)
                return schema_fail(n->x, r->err, ": the scripts of all requests have more than %u MiB",
                                   SCRIPTS_MAX >> 20);
        request.task = task;
        request.limits = limits ? limits : &nothing;
        request.dataset = data ? data : &nothing;
        request.inputs = files->v;
        request.input_count = files->n;
        request.processes = sums_count(n->x, "nProcesses");
        request.name = xml_get(r->root, "name") ? str_trim(str_of(xml_get(r->root, "name"))) : str_of(n->id);
        request.lines = buf_view(&lines);
        request.variables = &variables;
        request.script = buf_view(&script);
        request.arg = r;
        request.on_output = on_output;
        request.on_file = on_file;
        r->making = n;
        rc = sums_make(r->w, &request, r->options, r->form, r->err);
        n->rows = r->rows;
        n->row_count = r->row_cap;
        r->rows = NULL;
        r->row_cap = 0;
        if (rc != 0)
                return rc;
        n->part = r->form->part_count - 1;
        r->form->parts[n->part].line = n->x->line;
        set_add_range(&n->members, first, form_members(r->form));
        return 0;
}

static int make_node(struct reader *r, struct node *n, const struct xml *at)
{
        struct files files = {0};
        int rc = 0;

        if (n->state == NODE_MADE)
                return 0;
        if (n->state == NODE_UNDER_WAY)
                return schema_fail(at, r->err, ": %s waits for itself", n->id);
        n->state = NODE_UNDER_WAY;
        for (size_t i = 0; i < n->wait_count && rc == 0; i++)
                rc = make_node(r, n->waits[i].first, n->waits[i].x);
        if (rc == 0 && n->instead)
                rc = make_node(r, n->instead, n->x);
        for (size_t i = 0; i < n->of.n && rc == 0; i++)
                rc = make_node(r, n->of.v[i], n->x);
        if (rc == 0 && n->kind == NODE_REQUEST)
                rc = make_request(r, n, &files);
        free(files.v);
        n->state = NODE_MADE;
        return rc;
}

/* ---- edges */

/* The jobs whose end is the node's: of a choice those of the last alternative, which are skipped when one
 * before has succeeded. */
static int add_deciders(struct reader *r, const struct node *n, struct set *to)
{
        int rc = visit(r, n->x);

        set_add_all(to, &n->members);
        for (size_t i = n->kind == NODE_CHOICE ? n->of.n - 1 : 0; i < n->of.n && rc == 0; i++)
                rc = add_deciders(r, n->of.v[i], to);
        return rc;
}

/* Rows that read the same files' jobs in a row have one edge. */
static void edges_of_rows(struct reader *r, const struct node *n)
{
        uint64_t first = set_first(&n->members);
        BUF_CLEANUP struct buf before = {0};
        size_t from = 0;

        for (size_t row = 0; row <= n->row_count; row++) {
                BUF_CLEANUP struct buf now = {0};
                struct set children = {0};

                if (row < n->row_count)
                        set_print(&now, &n->rows[row]);
                if (row < n->row_count && str_eq(buf_view(&now), buf_view(&before)))
                        continue;
                set_add_range(&children, first + from, first + row);
                if (row > from)
                        form_add_edge(r->form, &n->rows[from], &children, "");
                set_deinit(&children);
                buf_reset(&before);
                buf_str(&before, buf_view(&now));
                from = row;
        }
}

static bool reads(const struct node *n, const struct node *of)
{
        for (size_t i = 0; i < n->inputs.n; i++)
                if (n->inputs.v[i] == of)
                        return true;
        return false;
}

static int make_edges(struct reader *r)
{
        int rc = 0;

        r->form->edges.max = FORM_TEXT_MAX;
        for (size_t i = 0; i < r->all.n && rc == 0 && !buf_check(&r->form->edges); i++) {
                const struct node *n = r->all.v[i];
                struct set parents = {0};

                edges_of_rows(r, n);
                for (size_t k = 0; k < n->wait_count && rc == 0 && !buf_check(&r->form->edges); k++) {
                        const struct wait *w = &n->waits[k];

                        if (!*w->when && reads(n, w->first))
                                continue;
                        set_deinit(&parents);
                        rc = add_deciders(r, w->first, &parents);
                        form_add_edge(r->form, &parents, &n->members, w->when);
                }
                if (n->instead)
                        form_add_edge(r->form, &n->instead->members, &n->members, ":retry");
                set_deinit(&parents);
        }
        if (rc != 0)
                return rc;
        if (buf_check(&r->form->edges))
                return err_set(r->err, -E2BIG, "%s: what waits for what takes more than %u MiB",
                               r->from->file, FORM_TEXT_MAX >> 20);
        return 0;
}

/* ---- the table of a dry run */

static bool waits_for(const struct node *n, const struct node *first)
{
        for (size_t i = 0; i < n->wait_count; i++)
                if (n->waits[i].first == first)
                        return true;
        return false;
}

static void write_row(const struct node *n, struct buf *out)
{
        BUF_CLEANUP struct buf after = {0}, files = {0};
        const char *application = xml_get(n->x, "appRef");

        for (size_t i = 0; i < n->wait_count; i++)
                buf_printf(&after, "%s%s%s%s%s", i ? ", " : "", n->waits[i].first->id,
                           *n->waits[i].when ? " (" : "", n->waits[i].when + (*n->waits[i].when != 0),
                           *n->waits[i].when ? ")" : "");
        for (size_t i = 0; i < n->inputs.n; i++) {
                buf_printf(&files, "%s%s", i ? ", " : "", n->inputs.v[i]->id);
                if (!waits_for(n, n->inputs.v[i]))
                        buf_printf(&after, "%s%s", after.n ? ", " : "", n->inputs.v[i]->id);
        }
        if (n->instead)
                buf_printf(&after, "%sruns if %s fails", after.n ? "; " : "", n->instead->id);
        buf_printf(out, "  %-16s %8llu  %-16s %-16s %-20s %s\n", n->id,
                   (unsigned long long)set_count(&n->members), xml_get(n->x, "taskRef"),
                   application ? application : "-",
                   files.n         ? buf_z(&files)
                   : n->files_from ? n->files_from
                                   : "-",
                   after.n ? buf_z(&after) : "-");
}

static void write_table(struct reader *r)
{
        struct buf table = {0};
        const char *name = xml_get(r->root, "name");

        buf_printf(&table, "composite request%s%s: %llu jobs\n", name ? " " : "", name ? name : "",
                   (unsigned long long)form_members(r->form));
        buf_printf(&table, "  %-16s %8s  %-16s %-16s %-20s %s\n", "REQUEST", "JOBS", "TASK", "APPLICATION",
                   "FILES OF", "WAITS FOR");
        for (size_t i = 0; i < r->all.n; i++)
                if (r->all.v[i]->kind == NODE_REQUEST)
                        write_row(r->all.v[i], &table);
        for (size_t i = 0; i < r->all.n; i++) {
                const struct node *n = r->all.v[i];

                if (n->kind == NODE_REQUEST)
                        continue;
                buf_printf(&table, "  %s %s", n->kind == NODE_MERGE ? "merge" : "choice", n->id);
                for (size_t k = 0; k < n->of.n; k++)
                        buf_printf(&table, "%s %s",
                                   k == 0                  ? ":"
                                   : n->kind == NODE_MERGE ? " and"
                                                           : ", else",
                                   n->of.v[k]->id);
                buf_char(&table, '\n');
        }
        if (r->form->notes.n)
                buf_printf(&table, "\n" STR_FMT, STR_ARG(buf_view(&r->form->notes)));
        buf_deinit(&r->form->notes);
        r->form->notes = table;
}

/* ---- the whole description */

static int read_root(struct reader *r, struct xml **ret)
{
        BUF_CLEANUP struct buf text = {0};
        struct str given = r->from->text;
        int rc;

        if (given.n > RDL_TEXT_MAX)
                return err_set(r->err, -E2BIG, "%s has more than %u MiB", r->from->file, RDL_TEXT_MAX >> 20);
        if (is_yaml(given)) {
                if (r->from->entity_count)
                        return err_set(r->err, -EINVAL, "%s: entities are for descriptions in XML",
                                       r->from->file);
                return spelling_read(&rdl_schema, r->from->file, given, ret, r->err);
        }
        rc = entities_put_in(r->from->file, given, r->from->entities, r->from->entity_count, &text, r->err);
        return rc ? rc : xml_parse(r->from->file, buf_view(&text), ret, r->err);
}

static int check_name(struct reader *r)
{
        const char *name = xml_get(r->root, "name"), *version = xml_get(r->root, "version");

        if (name && !sums_is_one_line(str_of(name)))
                return schema_fail(r->root, r->err, " has a control character in its name");
        if (version && !str_istarts(str_of(version), STR("V0.5")) && !str_starts(str_of(version), STR("0.5")))
                form_warn(r->form, r->root->line, "version %.20s is read as V0.52 is", version);
        return 0;
}

static int read_all(struct reader *r)
{
        int rc = schema_check(&rdl_schema, r->root, r->err);

        if (rc == 0)
                rc = check_name(r);
        if (rc == 0)
                rc = read_ids(r);
        if (rc == 0)
                rc = read_workflow(r);
        if (rc != 0)
                return rc;
        mark_all(r);
        for (size_t i = 0; i < r->all.n && rc == 0; i++)
                rc = make_node(r, r->all.v[i], r->all.v[i]->x);
        if (rc == 0)
                rc = make_edges(r);
        if (rc == 0)
                write_table(r);
        return rc;
}

static void free_node(struct node *n)
{
        for (size_t i = 0; i < n->row_count; i++)
                set_deinit(&n->rows[i]);
        free(n->rows);
        free(n->of.v);
        free(n->inputs.v);
        free(n->waits);
        free(n->outputs);
        set_deinit(&n->members);
}

int rdl_parse(const struct form_world *w, const struct sums_job *job, const struct condor_options *o,
              struct form *ret, struct buf *ret_name, struct err *err)
{
        struct reader r = {.w = w, .from = job, .options = o, .form = ret, .err = err};
        struct xml *root = NULL;
        int rc = read_root(&r, &root);

        r.root = root;
        r.ids = map_new();
        r.nodes = map_new();
        if (rc == 0)
                rc = read_all(&r);
        if (rc == 0)
                buf_str(ret_name, str_trim(str_of(xml_get(root, "name"))));
        for (size_t i = 0; i < r.all.n; i++)
                free_node(r.all.v[i]);
        free(r.all.v);
        free(r.producers);
        map_free(r.ids);
        map_free(r.nodes);
        arena_deinit(&r.arena);
        xml_free(root);
        return rc;
}
