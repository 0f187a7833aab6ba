#include "server/api/places/pool_kinds.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/u64.h"
#include "classad/print.h"
#include "core/model/attributes.h"
#include "place/pool_kind.h"
#include "server/access/origin.h"
#include "server/loop/expressions.h"

#define FINE_MAX 64u /* above this number of kinds, numbers are left out of their keys */
/* further queues are left out: each costs a few microseconds of the core thread */
#define QUEUES_MAX     4000u
#define ATTRIBUTES_MAX 200u  /* of one kind */
#define VALUE_MAX      1024u /* bytes of a value's text */
#define CLAUSES_MAX    4096u /* bytes of a kind's requirements */
#define RESOURCES_MAX  8u

/* Numbers of the places that are summed for each kind, so that a job's Requirements may use them. */
static const char *const sums[] = {"TotalCpus", "TotalMemory", "NodeCpus", "NodeMemory"};
/* The job's identity and history differ at another server. */
static const char *const of_the_job[] = {"Owner",           "User",
                                         "AcctGroup",       "AcctGroupUser",
                                         "AccountingGroup", "QOS",
                                         "ClusterId",       "ProcId",
                                         "QDate",           "GlobalJobId",
                                         "JobPrio",         "JobStatus",
                                         "UserLog",         "SubmitHost",
                                         "NumJobStarts",    "JobRunCount",
                                         "NumShadowStarts", "DroverOriginOwner",
                                         "DroverOriginJob", ORIGIN_TRACE,
                                         "DroverPath",      "FileSystemDomain"};

static bool is_among(const char *const *names, size_t count, struct str name)
{
        for (size_t i = 0; i < count; i++)
                if (str_ieqz(name, names[i]))
                        return true;
        return false;
}
#define IS_AMONG(list, name) is_among(list, sizeof(list) / sizeof(*(list)), name)

struct size {
        uint64_t all, free, largest;
};
struct shown {
        symbol name;
        char *text;
        bool number;
};
struct resource {
        symbol name;
        struct size size, machine; /* machine: the largest of the agent's process queues */
};
struct kind {
        struct shown *shown;
        size_t shown_count, shown_cap;
        char *requirements; /* "": none */
        uint64_t places;
        struct size cpus, memory_mib, machine_cpus, machine_memory_mib;
        uint64_t largest_disk_mib;
        struct resource resources[RESOURCES_MAX];
        unsigned resource_count;
};
struct pool_kinds {
        struct core *core;
        struct symbols *symbols;
        struct eval eval;
        struct attributes attr;
        symbol total_cpus, total_memory, total_disk, free_cpus, free_memory, node_cpus, node_memory;
        struct kind **kinds;
        size_t count, cap, queues;
        struct map *by_key;
        char *agent; /* agent of the previous queue */
        bool coarse; /* numbers and sizes are left out of the keys */
};

struct pool_kinds *pool_kinds_new(struct core *c, int64_t now_s)
{
        struct pool_kinds *k = mem_new(struct pool_kinds);
        struct symbols *y = core_symbols(c);

        k->core = c;
        k->symbols = y;
        k->by_key = map_new();
        k->total_cpus = symbols_intern(y, STR("TotalCpus"));
        k->total_memory = symbols_intern(y, STR("TotalMemory"));
        k->total_disk = symbols_intern(y, STR("TotalDisk"));
        k->free_cpus = symbols_intern(y, STR("FreeCpus"));
        k->free_memory = symbols_intern(y, STR("FreeMemory"));
        k->node_cpus = symbols_intern(y, STR("NodeCpus"));
        k->node_memory = symbols_intern(y, STR("NodeMemory"));
        attributes_intern(&k->attr, y);
        expressions_read_init(&k->eval, now_s);
        return k;
}

static void kind_free(struct kind *x)
{
        for (size_t i = 0; i < x->shown_count; i++)
                free(x->shown[i].text);
        free(x->shown);
        free(x->requirements);
        free(x);
}

void pool_kinds_free(struct pool_kinds *k)
{
        if (!k)
                return;
        for (size_t i = 0; i < k->count; i++)
                kind_free(k->kinds[i]);
        free(k->kinds);
        map_free(k->by_key);
        eval_deinit(&k->eval);
        free(k->agent);
        free(k);
}

/* ---- attributes of a queue */

static uint64_t pool_kinds_number(struct pool_kinds *k, const struct ad *ad, symbol name)
{
        double v = 0;

        if (name)
                eval_real(&k->eval, ad, NULL, name, &v);
        return v > 0 && v < 1e15 ? (uint64_t)v : 0;
}

/* Returns the symbol TotalNAME if NAME is a countable resource, that is, if the ad has both; 0: it is not. */
static symbol resource_total(const struct pool_kinds *k, const struct ad *ad, struct str name)
{
        BUF_CLEANUP struct buf b = {0};
        struct value has, all;
        symbol total;

        buf_printf(&b, "Total" STR_FMT, STR_ARG(name));
        total = symbols_find(k->symbols, buf_view(&b));
        return total && ad_literal(ad, total, &all) && all.type == VALUE_INTEGER &&
                               ad_literal(ad, symbols_find(k->symbols, name), &has) &&
                               has.type == VALUE_INTEGER
                       ? total
                       : 0;
}

static bool is_of_resource(const struct pool_kinds *k, const struct ad *ad, struct str name)
{
        static const char *const heads[] = {"", "Total", "Node", "Free"};

        for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
                struct str head = str_of(heads[i]);

                if (name.n > head.n && str_istarts(name, head) &&
                    resource_total(k, ad, str_skip(name, head.n)))
                        return true;
        }
        return false;
}

static void on_any(void *arg, symbol name, bool target)
{
        (void)name;
        (void)target;
        *(bool *)arg = true;
}

/* Returns whether the expression has the same value for every job at any time; if so, writes its text. */
static bool stands_still(struct pool_kinds *k, const struct ad *ad, const struct expr *e, struct buf *text,
                         bool *ret_number)
{
        struct expr_uses uses;
        bool depends = false;
        struct value v;

        *ret_number = false;
        if (!expr_literal(e, &v)) {
                expr_references(e, ad, on_any, &depends, &uses);
                if (depends || uses.uses_time || uses.uses_random || uses.uses_more)
                        return false;
                expr_print(text, e, k->symbols);
                return !text->overflow;
        }
        if (v.type == VALUE_UNDEFINED || v.type == VALUE_ERROR)
                return false;
        *ret_number = v.type == VALUE_INTEGER || v.type == VALUE_REAL;
        expr_print(text, e, k->symbols);
        return !text->overflow;
}

static int by_name(const void *a, const void *b)
{
        const struct shown *x = a, *y = b;

        return (x->name > y->name) - (x->name < y->name);
}

static void show_kind(struct pool_kinds *k, const struct ad *ad, struct kind *x)
{
        const struct expr *e;
        uint32_t at = 0;
        symbol name;

        while (ad_next(ad, &at, &name, &e) && x->shown_count < ATTRIBUTES_MAX) {
                BUF_CLEANUP struct buf text = {.max = VALUE_MAX};
                struct str word = symbols_name(k->symbols, name);
                bool is_number;

                if (pool_kind_leaves_out(word) || is_of_resource(k, ad, word) ||
                    !stands_still(k, ad, e, &text, &is_number))
                        continue;
                MEM_GROW(x->shown, x->shown_cap, x->shown_count + 1);
                x->shown[x->shown_count++] = (struct shown){name, str_dupz(buf_view(&text)), is_number};
        }
        if (x->shown_count)
                qsort(x->shown, x->shown_count, sizeof(*x->shown), by_name);
}

/* ---- requirements of a queue */

struct looks {
        const struct pool_kinds *k;
        const struct kind *kind;
        bool stays;
};

static bool is_shown(const struct kind *x, symbol name)
{
        for (size_t i = 0; i < x->shown_count; i++)
                if (x->shown[i].name == name)
                        return true;
        return false;
}

static void on_reference(void *arg, symbol name, bool target)
{
        struct looks *l = arg;
        struct str word = symbols_name(l->k->symbols, name);

        l->stays |= target ? IS_AMONG(of_the_job, word) : !is_shown(l->kind, name) && !IS_AMONG(sums, word);
}

static void ask_kind(const struct pool_kinds *k, const struct ad *ad, struct kind *x)
{
        const struct expr *e = ad_find(ad, k->attr.Requirements);
        BUF_CLEANUP struct buf all = {.max = CLAUSES_MAX};

        for (unsigned n = 0; e && n < expr_clause_count(e); n++) {
                BUF_CLEANUP struct buf one = {.max = CLAUSES_MAX};
                struct looks l = {k, x, false};
                struct expr_uses uses;

                expr_clause_references(e, n, ad, on_reference, &l, &uses);
                if (l.stays || uses.uses_time || uses.uses_random || uses.uses_more)
                        continue;
                buf_char(&one, '(');
                expr_print_clause(&one, e, n, k->symbols);
                buf_char(&one, ')');
                if (one.overflow || all.n + one.n + 4 > CLAUSES_MAX || str_eqz(buf_view(&one), "(true)") ||
                    str_search(buf_view(&all), buf_view(&one)) >=
                            0) /* each hop adds clauses, which may be there already */
                        continue;
                buf_printf(&all, "%s" STR_FMT, all.n ? " && " : "", STR_ARG(buf_view(&one)));
        }
        x->requirements = str_dupz(buf_view(&all));
}

/* ---- kinds */

static void make_key(const struct pool_kinds *k, const struct ad *ad, const struct kind *x, struct buf *key)
{
        struct value v;

        for (size_t i = 0; i < x->shown_count; i++)
                if (!k->coarse || !x->shown[i].number)
                        buf_printf(key, "%u=%s\n", (unsigned)x->shown[i].name, x->shown[i].text);
        buf_printf(key, "%s\n", x->requirements);
        if (k->coarse)
                return;
        if (ad_literal(ad, k->node_cpus, &v) || ad_literal(ad, k->total_cpus, &v))
                value_print(key, &v);
        buf_char(key, ' ');
        if (ad_literal(ad, k->node_memory, &v) || ad_literal(ad, k->total_memory, &v))
                value_print(key, &v);
}

/* Keeps only the attributes that both show with the same value. */
static void intersect(struct kind *x, const struct kind *with)
{
        size_t kept = 0;

        for (size_t i = 0, at = 0; i < x->shown_count; i++) {
                while (at < with->shown_count && with->shown[at].name < x->shown[i].name)
                        at++;
                if (at < with->shown_count && with->shown[at].name == x->shown[i].name &&
                    !strcmp(with->shown[at].text, x->shown[i].text))
                        x->shown[kept++] = x->shown[i];
                else
                        free(x->shown[i].text);
        }
        x->shown_count = kept;
}

static void size_add(struct size *to, const struct size *s)
{
        to->all += s->all;
        to->free += s->free;
        to->largest = u64_max(to->largest, s->largest);
}

static void size_most(struct size *to, const struct size *s)
{
        to->all = u64_max(to->all, s->all);
        to->free = u64_max(to->free, s->free);
        to->largest = u64_max(to->largest, s->largest);
}

static struct resource *resource_get(struct kind *x, symbol name)
{
        for (unsigned i = 0; i < x->resource_count; i++)
                if (x->resources[i].name == name)
                        return &x->resources[i];
        if (x->resource_count == RESOURCES_MAX)
                return NULL;
        x->resources[x->resource_count] = (struct resource){.name = name};
        return &x->resources[x->resource_count++];
}

/* Ends an agent: its process queues share one machine, so the largest counts. */
static void machine_end(struct kind *x)
{
        size_add(&x->cpus, &x->machine_cpus);
        size_add(&x->memory_mib, &x->machine_memory_mib);
        x->machine_cpus = x->machine_memory_mib = (struct size){0};
        for (unsigned i = 0; i < x->resource_count; i++) {
                size_add(&x->resources[i].size, &x->resources[i].machine);
                x->resources[i].machine = (struct size){0};
        }
}

static void count_resources(struct pool_kinds *k, const struct core_queue_view *q, bool local, struct kind *x)
{
        const struct expr *e;
        uint32_t at = 0;
        symbol name;

        while (ad_next(q->ad, &at, &name, &e)) {
                struct str word = symbols_name(k->symbols, name);
                symbol total = str_istarts(word, STR("Total")) || str_ieqz(word, "Cpus") ||
                                               str_ieqz(word, "Memory") || str_ieqz(word, "Disk")
                                       ? 0
                                       : resource_total(k, q->ad, word);
                struct resource *r = total ? resource_get(x, name) : NULL;
                BUF_CLEANUP struct buf node = {0};
                struct size s;

                if (!r)
                        continue;
                buf_printf(&node, "Node" STR_FMT, STR_ARG(word));
                s = (struct size){pool_kinds_number(k, q->ad, total),
                                  q->offers ? pool_kinds_number(k, q->ad, name) : 0,
                                  pool_kinds_number(k, q->ad, symbols_find(k->symbols, buf_view(&node)))};
                if (!s.largest)
                        s.largest = s.all;
                (local ? size_most : size_add)(local ? &r->machine : &r->size, &s);
        }
}

static void count_room(struct pool_kinds *k, const struct core_queue_view *q, struct kind *x)
{
        struct str runner = STR_NONE;
        bool local =
                eval_string(&k->eval, q->ad, NULL, k->attr.Runner, &runner) && str_eqz(runner, "process");
        struct size cpus = {pool_kinds_number(k, q->ad, k->total_cpus),
                            q->offers ? pool_kinds_number(k, q->ad, k->free_cpus) : 0,
                            pool_kinds_number(k, q->ad, k->node_cpus)};
        struct size memory = {pool_kinds_number(k, q->ad, k->total_memory),
                              q->offers ? pool_kinds_number(k, q->ad, k->free_memory) : 0,
                              pool_kinds_number(k, q->ad, k->node_memory)};

        cpus.largest = cpus.largest ? cpus.largest : cpus.all;
        memory.largest = memory.largest ? memory.largest : memory.all;
        (local ? size_most : size_add)(local ? &x->machine_cpus : &x->cpus, &cpus);
        (local ? size_most : size_add)(local ? &x->machine_memory_mib : &x->memory_mib, &memory);
        count_resources(k, q, local, x);
        x->largest_disk_mib = u64_max(x->largest_disk_mib, pool_kinds_number(k, q->ad, k->total_disk) >> 10);
        x->places++;
}

static void pool_kinds_end_agent(struct pool_kinds *k, const char *next)
{
        if (k->agent && next && !strcmp(k->agent, next))
                return;
        for (size_t i = 0; i < k->count; i++)
                machine_end(k->kinds[i]);
        free(k->agent);
        k->agent = next ? mem_dupz(next) : NULL;
}

void pool_kinds_add(struct pool_kinds *k, const struct core_queue_view *q)
{
        BUF_CLEANUP struct buf key = {0};
        struct kind *x, *is;

        if (++k->queues > QUEUES_MAX || !ad_find(q->ad, k->total_cpus))
                return;
        pool_kinds_end_agent(k, q->agent);
        x = mem_new(struct kind);
        show_kind(k, q->ad, x);
        ask_kind(k, q->ad, x);
        make_key(k, q->ad, x, &key);
        is = map_get(k->by_key, buf_view(&key));
        if (is) {
                intersect(is, x);
        } else if (k->count < FINE_MAX) {
                MEM_GROW(k->kinds, k->cap, k->count + 1);
                map_put(k->by_key, buf_view(&key), k->kinds[k->count++] = x);
                is = x;
                x = NULL;
        }
        if (x)
                kind_free(x);
        if (is)
                count_room(k, q, is);
        eval_reset(&k->eval);
        expressions_read_next(&k->eval);
}

/* ---- reducing the number */

static void merge(struct kind *into, struct kind *x)
{
        intersect(into, x);
        size_add(&into->cpus, &x->cpus);
        size_add(&into->memory_mib, &x->memory_mib);
        into->largest_disk_mib = u64_max(into->largest_disk_mib, x->largest_disk_mib);
        into->places += x->places;
        for (unsigned i = 0; i < x->resource_count; i++) {
                struct resource *r = resource_get(into, x->resources[i].name);

                if (r)
                        size_add(&r->size, &x->resources[i].size);
        }
        kind_free(x);
}

/* Merges kinds that differ only in numbers and sizes. */
static void make_fewer(struct pool_kinds *k)
{
        struct map *by_key = map_new();
        size_t kept = 0;

        k->coarse = true;
        for (size_t i = 0; i < k->count; i++) {
                BUF_CLEANUP struct buf key = {0};
                struct kind *is;

                make_key(k, NULL, k->kinds[i], &key);
                is = map_get(by_key, buf_view(&key));
                if (is) {
                        merge(is, k->kinds[i]);
                } else {
                        map_put(by_key, buf_view(&key), k->kinds[i]);
                        k->kinds[kept++] = k->kinds[i];
                }
        }
        k->count = kept;
        map_free(by_key);
}

static void write_size(struct json *j, const char *all, const char *free_name, const char *largest,
                       const struct size *s)
{
        json_kint(j, all, (int64_t)s->all);
        json_kint(j, free_name, (int64_t)s->free);
        json_kint(j, largest, (int64_t)s->largest);
}

static void write_kind(const struct pool_kinds *k, struct json *j, const struct kind *x)
{
        json_open(j, '{');
        json_kint(j, "places", (int64_t)x->places);
        write_size(j, "cpus", "free_cpus", "largest_cpus", &x->cpus);
        write_size(j, "memory_mib", "free_memory_mib", "largest_memory_mib", &x->memory_mib);
        json_kint(j, "largest_disk_mib", (int64_t)x->largest_disk_mib);
        json_key(j, "resources");
        json_open(j, '[');
        for (unsigned i = 0; i < x->resource_count; i++) {
                json_open(j, '{');
                json_kstr(j, "name", symbols_name(k->symbols, x->resources[i].name));
                write_size(j, "all", "free", "largest", &x->resources[i].size);
                json_close(j, '}');
        }
        json_close(j, ']');
        json_key(j, "attributes");
        json_open(j, '{');
        for (size_t i = 0; i < x->shown_count; i++) {
                MEM_CLEANUP char *name = str_dupz(symbols_name(k->symbols, x->shown[i].name));

                json_kstrz(j, name, x->shown[i].text);
        }
        json_close(j, '}');
        json_kstrz(j, "requirements", x->requirements);
        json_close(j, '}');
}

void pool_kinds_write(struct pool_kinds *k, struct json *j)
{
        pool_kinds_end_agent(k, NULL);
        if (k->count > POOL_KINDS_MAX)
                make_fewer(k);
        json_key(j, "kinds");
        json_open(j, '[');
        for (size_t i = 0; i < k->count && i < POOL_KINDS_MAX; i++)
                write_kind(k, j, k->kinds[i]);
        json_close(j, ']');
}
