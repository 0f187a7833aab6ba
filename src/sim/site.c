#include "sim/site.h"

#include <errno.h>

#include "base/format/doc.h"
#include "base/mem.h"

#define CACHE_DEFAULT      (1ull << 40)
#define MEMORY_DEFAULT_MIB 4096u /* a processor */
#define REPAIR_DEFAULT_MS  3600000
#define CUT_DEFAULT_MS     300000
#define OUTAGES_MAX        10000u
#define OUTAGE_MAX_MS      (INT64_C(100) * 365 * 86400000)
#define WATTS_MAX          1e6

void sim_site_init(struct sim_site *s)
{
        *s = (struct sim_site){.near = {1000000000, 1000}, .far = {50000000, 20000}, .budget = {-1, -1, 0}};
}

void sim_site_deinit(struct sim_site *s)
{
        for (size_t i = 0; i < s->count; i++) {
                free(s->clusters[i].name);
                free(s->clusters[i].links);
                free(s->clusters[i].outages);
        }
        free(s->clusters);
        *s = (struct sim_site){0};
}

struct sim_cluster *sim_site_add(struct sim_site *s, struct str name, uint32_t agents, uint32_t cpus)
{
        struct sim_cluster *c;

        MEM_GROW(s->clusters, s->cap, s->count + 1);
        c = &s->clusters[s->count++];
        *c = (struct sim_cluster){.name = str_dupz(name),
                                  .agents = agents,
                                  .cpus = cpus,
                                  .memory_mib = (uint64_t)cpus * MEMORY_DEFAULT_MIB,
                                  .cache_bytes = CACHE_DEFAULT,
                                  .speed = 1,
                                  .repair_ms = REPAIR_DEFAULT_MS,
                                  .cut_for_ms = CUT_DEFAULT_MS};
        return c;
}

int sim_site_find(const struct sim_site *s, struct str name)
{
        for (size_t i = 0; i < s->count; i++)
                if (str_eqz(name, s->clusters[i].name))
                        return (int)i;
        return -1;
}

/* ---- reading */
static int read_ms(const struct doc *map, const char *key, int64_t *ms, struct err *err)
{
        const struct doc *d = doc_get(map, key);
        uint64_t v;
        int r = d ? doc_duration(d, &v, err) : 0;

        if (d && r == 0)
                *ms = (int64_t)v;
        return r;
}

static int read_count(const struct doc *map, const char *key, uint64_t max, uint32_t *ret, struct err *err)
{
        const struct doc *d = doc_get(map, key);
        uint64_t v;
        int r = d ? doc_count(d, &v, err) : 0;

        if (!d || r)
                return r;
        if (v < 1 || v > max)
                return doc_where(
                        err, err_set(err, -EINVAL, "%s must be from 1 to %llu", key, (unsigned long long)max),
                        d);
        *ret = (uint32_t)v;
        return 0;
}

static int read_speed(const struct doc *map, double *ret, struct err *err)
{
        const struct doc *d = doc_get(map, "speed");
        double v;
        int r = d ? doc_number(d, &v, err) : 0;

        if (!d || r)
                return r;
        if (v < 0.01 || v > 100)
                return doc_where(err, err_set(err, -EINVAL, "speed must be from 0.01 to 100"), d);
        *ret = v;
        return 0;
}

static int read_link(const struct doc *d, struct sim_link *ret, struct err *err)
{
        static const char *const keys[] = {"bandwidth", "latency", NULL};
        const struct doc *bandwidth = doc_get(d, "bandwidth"), *latency = doc_get(d, "latency");
        uint64_t ms;
        int r = doc_only(d, keys, err);

        if (r == 0 && bandwidth)
                r = doc_size(bandwidth, &ret->bytes_per_s, err);
        if (r == 0 && bandwidth && ret->bytes_per_s == 0)
                r = doc_where(err, err_set(err, -EINVAL, "bandwidth must be above 0"), bandwidth);
        if (r == 0 && latency) {
                r = doc_duration(latency, &ms, err);
                if (r == 0)
                        ret->latency_us = ms * 1000;
        }
        return r;
}

static int read_outages(const struct doc *list, struct sim_cluster *c, struct err *err)
{
        static const char *const keys[] = {"from", "for", NULL};

        if (!list)
                return 0;
        if (list->kind != DOC_LIST || list->count > OUTAGES_MAX)
                return doc_where(err,
                                 err_set(err, -EINVAL, "outages must be a list of %u at most", OUTAGES_MAX),
                                 list);
        c->outages = mem_array(NULL, list->count + 1, sizeof(*c->outages));
        for (const struct doc *d = list->first; d; d = d->next) {
                struct sim_outage o = {-1, 0, SIM_ALL_AGENTS};
                int r = doc_only(d, keys, err);

                if (r == 0)
                        r = read_ms(d, "from", &o.from_ms, err);
                if (r == 0)
                        r = read_ms(d, "for", &o.to_ms, err);
                if (r)
                        return r;
                if (o.from_ms < 0 || o.to_ms <= 0 || o.from_ms > OUTAGE_MAX_MS || o.to_ms > OUTAGE_MAX_MS)
                        return doc_where(
                                err,
                                err_set(err, -EINVAL,
                                        "an outage needs \"from\" and \"for\", as in {from: 2d, for: 6h}"),
                                d);
                o.to_ms += o.from_ms;
                c->outages[c->outage_count++] = o;
        }
        return 0;
}

static int read_watts(const struct doc *map, struct sim_cluster *c, struct err *err)
{
        static const char *const keys[] = {"idle", "busy", NULL};
        const struct doc *idle = doc_get(map, "idle"), *busy = doc_get(map, "busy");
        int r = map ? doc_only(map, keys, err) : 0;

        if (r == 0 && idle)
                r = doc_number(idle, &c->idle_watts, err);
        if (r == 0 && busy)
                r = doc_number(busy, &c->busy_watts, err);
        if (r == 0 && (c->idle_watts < 0 || c->busy_watts < c->idle_watts || c->busy_watts > WATTS_MAX))
                r = doc_where(err,
                              err_set(err, -EINVAL,
                                      "watts must be those of a processor, of a busy one no fewer than of an "
                                      "idle one, as in {idle: 3, busy: 12}"),
                              map);
        return r;
}

static int read_cloud(const struct doc *map, struct sim_cluster *c, struct err *err)
{
        static const char *const keys[] = {"boot", "idle", "period", "interrupted", NULL};
        int r = doc_only(map, keys, err);

        c->cloud = (struct sim_cloud){.idle_ms = 300000, .period_ms = 60000}; /* droverd's defaults */
        if (r == 0)
                r = read_ms(map, "boot", &c->cloud.boot_ms, err);
        if (r == 0)
                r = read_ms(map, "idle", &c->cloud.idle_ms, err);
        if (r == 0)
                r = read_ms(map, "period", &c->cloud.period_ms, err);
        if (r == 0)
                r = read_ms(map, "interrupted", &c->cloud.interrupted_ms, err);
        if (r == 0 && (c->cloud.boot_ms <= 0 || c->cloud.period_ms <= 0))
                r = doc_where(err,
                              err_set(err, -EINVAL,
                                      "a cloud needs \"boot\", and a period, as in {boot: 2m, period: 1m}"),
                              map);
        if (r == 0 && (c->outage_count || c->mtbf_ms))
                r = doc_where(
                        err,
                        err_set(err, -EINVAL,
                                "agents that come and go have no mtbf and no outages, but \"interrupted\""),
                        map);
        return r;
}

static int read_price(const struct doc *map, double *ret, struct err *err)
{
        const struct doc *d = doc_get(map, "price");
        int r = d ? doc_number(d, ret, err) : 0;

        if (r == 0 && d && (*ret < 0 || *ret > 1e6))
                r = doc_where(err, err_set(err, -EINVAL, "price must be from 0 to 1000000"), d);
        return r;
}

static int read_money(const struct doc *map, const char *name, int64_t *ret_micro, struct err *err)
{
        const struct doc *d = doc_get(map, name);
        double value = 0;
        int r = d ? doc_number(d, &value, err) : 0;

        if (r || !d)
                return r;
        if (value < 0 || value > 1e9)
                return doc_where(err, err_set(err, -EINVAL, "%s must be from 0 to 1000000000", name), d);
        *ret_micro = (int64_t)(value * 1e6);
        return 0;
}

static int read_budget(const struct doc *map, struct sim_budget *b, struct err *err)
{
        static const char *const keys[] = {"budget_hour", "budget_month", "max_nodes", NULL};
        int r = doc_only(map, keys, err);

        if (r == 0)
                r = read_money(map, "budget_hour", &b->hour_micro, err);
        if (r == 0)
                r = read_money(map, "budget_month", &b->month_micro, err);
        return r ? r : read_count(map, "max_nodes", SIM_AGENTS_MAX, &b->nodes, err);
}

static int read_cluster(struct sim_site *s, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"name",        "agents", "cpus",   "memory",  "speed",   "cache",
                                           "start-delay", "mtbf",   "repair", "links",   "outages", "watts",
                                           "price",       "cloud",  "cut",    "cut-for", NULL};
        const struct doc *name = doc_get(d, "name"), *memory = doc_get(d, "memory"),
                         *cache = doc_get(d, "cache");
        struct sim_cluster *c;
        struct str text;
        uint32_t agents = 1, cpus = 1;
        uint64_t bytes;
        int r = doc_only(d, keys, err);

        if (r == 0 && !name)
                r = doc_where(err, err_set(err, -EINVAL, "a cluster needs a name"), d);
        if (r == 0)
                r = doc_text(name, &text, err);
        if (r == 0 && sim_site_find(s, text) >= 0)
                r = doc_where(err,
                              err_set(err, -EINVAL, "there are two clusters \"" STR_FMT "\"", STR_ARG(text)),
                              name);
        if (r == 0)
                r = read_count(d, "agents", SIM_AGENTS_MAX, &agents, err);
        if (r == 0)
                r = read_count(d, "cpus", 10000000, &cpus, err);
        if (r)
                return r;
        c = sim_site_add(s, text, agents, cpus);
        if (memory && (r = doc_size(memory, &bytes, err)) == 0)
                c->memory_mib = bytes >> 20;
        if (r == 0 && cache)
                r = doc_size(cache, &c->cache_bytes, err);
        if (r == 0)
                r = read_speed(d, &c->speed, err);
        if (r == 0)
                r = read_ms(d, "start-delay", &c->start_delay_ms, err);
        if (r == 0)
                r = read_ms(d, "mtbf", &c->mtbf_ms, err);
        if (r == 0)
                r = read_ms(d, "repair", &c->repair_ms, err);
        if (r == 0)
                r = read_ms(d, "cut", &c->cut_ms, err);
        if (r == 0)
                r = read_ms(d, "cut-for", &c->cut_for_ms, err);
        if (r == 0)
                r = read_outages(doc_get(d, "outages"), c, err);
        if (r == 0)
                r = read_watts(doc_get(d, "watts"), c, err);
        if (r == 0)
                r = read_price(d, &c->price, err);
        if (r == 0 && doc_get(d, "cloud"))
                r = read_cloud(doc_get(d, "cloud"), c, err);
        return r;
}

static void links_room(const struct sim_site *s, struct sim_cluster *c)
{
        c->links = mem_array(c->links, s->count, sizeof(*c->links));
        for (; c->link_count < s->count; c->link_count++)
                c->links[c->link_count] = (struct sim_link){0};
}

/* Links name clusters that may stand further down, so they are read when all are there. */
static int read_links(struct sim_site *s, struct sim_cluster *c, const struct doc *links, struct err *err)
{
        if (!links)
                return 0;
        if (links->kind != DOC_MAP)
                return doc_where(err, err_set(err, -EINVAL, "links must be a map of clusters"), links);
        links_room(s, c);
        for (const struct doc *l = links->first; l; l = l->next) {
                int to = sim_site_find(s, l->key), r;

                if (to < 0)
                        return doc_where(err,
                                         err_set(err, -EINVAL,
                                                 "a link to \"" STR_FMT "\": there is no such cluster",
                                                 STR_ARG(l->key)),
                                         l);
                r = read_link(l, &c->links[to], err);
                if (r)
                        return r;
        }
        return 0;
}

static int site_read_document(struct sim_site *s, const char *name, const struct doc *root, struct err *err)
{
        static const char *const keys[] = {"clusters", "near", "far", "provision", NULL};
        const struct doc *clusters = doc_get(root, "clusters"), *near = doc_get(root, "near"),
                         *far = doc_get(root, "far");
        size_t at = s->count;
        int r;

        if (!clusters || clusters->kind != DOC_LIST || clusters->count == 0)
                return err_set(err, -EINVAL, "%s: a list of clusters is needed", name);
        r = doc_only(root, keys, err);
        if (r == 0 && near)
                r = read_link(near, &s->near, err);
        if (r == 0 && far)
                r = read_link(far, &s->far, err);
        if (r == 0 && doc_get(root, "provision"))
                r = read_budget(doc_get(root, "provision"), &s->budget, err);
        if (r == 0 && clusters->count > SIM_CLUSTERS_MAX)
                r = doc_where(err, err_set(err, -EINVAL, "more than %u clusters", SIM_CLUSTERS_MAX),
                              clusters);
        for (const struct doc *d = clusters->first; d && r == 0; d = d->next)
                r = read_cluster(s, d, err);
        for (const struct doc *d = clusters->first; d && r == 0; d = d->next)
                r = read_links(s, &s->clusters[at++], doc_get(d, "links"), err);
        return r;
}

int sim_site_read(struct sim_site *s, const char *name, struct str text, struct err *err)
{
        struct doc *root;
        int r = doc_parse(name, text, &root, err);

        if (r == 0)
                r = site_read_document(s, name, root, err);
        else
                root = NULL;
        doc_free(root);
        return r;
}

void sim_site_finish(struct sim_site *s)
{
        for (size_t i = 0; i < s->count; i++) {
                struct sim_cluster *c = &s->clusters[i];

                links_room(s, c);
                for (size_t k = 0; k < s->count; k++) {
                        const struct sim_link *otherwise = i == k ? &s->near : &s->far;

                        if (c->links[k].bytes_per_s == 0)
                                c->links[k].bytes_per_s = otherwise->bytes_per_s;
                        if (c->links[k].latency_us == 0)
                                c->links[k].latency_us = otherwise->latency_us;
                }
        }
}

uint64_t sim_site_agents(const struct sim_site *s)
{
        uint64_t n = 0;

        for (size_t i = 0; i < s->count; i++)
                n += s->clusters[i].agents;
        return n;
}

uint64_t sim_site_cpus(const struct sim_site *s)
{
        uint64_t n = 0;

        for (size_t i = 0; i < s->count; i++)
                n += (uint64_t)s->clusters[i].agents * s->clusters[i].cpus;
        return n;
}

double sim_site_idle_watts(const struct sim_site *s)
{
        double watts = 0;

        for (size_t i = 0; i < s->count; i++)
                watts += (double)s->clusters[i].agents * s->clusters[i].cpus * s->clusters[i].idle_watts;
        return watts;
}

double sim_site_price(const struct sim_site *s)
{
        double price = 0;

        for (size_t i = 0; i < s->count; i++)
                price += s->clusters[i].agents * s->clusters[i].price;
        return price;
}

bool sim_site_has_nodes(const struct sim_site *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->clusters[i].price > 0 || s->clusters[i].cloud.boot_ms)
                        return true;
        return false;
}

bool sim_site_has_watts(const struct sim_site *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->clusters[i].busy_watts > 0)
                        return true;
        return false;
}
