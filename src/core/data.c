/* Stores and labels as configured, and what agents hold and measured. */
#include "core/data.h"

#include <errno.h>

#include "base/mem.h"
#include "core/coming.h"
#include "core/near.h"
#include "core/state.h"

/* A file's size is kept in the place of a pointer to it; one more than the size, since NULL is "not there".
 */
static void *as_value(uint64_t bytes)
{
        return (void *)(uintptr_t)(bytes + 1);
}
static uint64_t as_bytes(const void *value)
{
        return (uint64_t)(uintptr_t)value - 1;
}

static struct str *dup_strs(const struct str *from, size_t count)
{
        struct str *to = mem_array(NULL, count + 1, sizeof(*to));

        for (size_t i = 0; i < count; i++)
                to[i] = str_make(mem_dup(from[i].p, from[i].n), from[i].n);
        return to;
}

static void free_strs(const struct str *v, size_t count)
{
        for (size_t i = 0; i < count; i++)
                free((char *)v[i].p);
        free((struct str *)v);
}

static void sites_deinit(struct sites *s)
{
        for (size_t i = 0; i < s->store_count; i++) {
                free((char *)s->stores[i].urls.name.p);
                free_strs(s->stores[i].urls.prefixes, s->stores[i].urls.prefix_count);
                free_strs(s->stores[i].labels, s->stores[i].label_count);
        }
        for (size_t i = 0; i < s->label_count; i++) {
                free((char *)s->labels[i].name.p);
                free_strs(s->labels[i].agents, s->labels[i].agent_count);
                free_strs(s->labels[i].datasets, s->labels[i].dataset_count);
        }
        free(s->stores);
        free(s->urls);
        free(s->store_labels);
        free(s->labels);
        *s = (struct sites){0};
}

int sites_label(const struct sites *s, struct str name)
{
        for (size_t i = 0; i < s->label_count; i++)
                if (str_eq(name, s->labels[i].name))
                        return (int)i;
        return -1;
}

/* A label that nothing but a store names still keeps everybody away: nobody is cleared for it. */
static int add_label(struct sites *s, struct str name, struct err *err)
{
        int at = sites_label(s, name);

        if (at >= 0)
                return at;
        if (s->label_count == CORE_LABELS_MAX)
                return err_set(err, -E2BIG, "more than %u labels", CORE_LABELS_MAX);
        s->labels[s->label_count++] = (struct core_label){.name = {mem_dup(name.p, name.n), name.n},
                                                          .agents = dup_strs(NULL, 0),
                                                          .datasets = dup_strs(NULL, 0)};
        return (int)s->label_count - 1;
}

static int copy_labels(struct sites *s, const struct core_data *d, struct err *err)
{
        for (size_t i = 0; i < d->label_count; i++) {
                const struct core_label *from = &d->labels[i];
                int at = add_label(s, from->name, err);
                struct core_label *to;

                if (at < 0)
                        return at;
                to = &s->labels[at];
                free_strs(to->agents, to->agent_count);
                free_strs(to->datasets, to->dataset_count);
                to->agents = dup_strs(from->agents, from->agent_count);
                to->agent_count = from->agent_count;
                to->datasets = dup_strs(from->datasets, from->dataset_count);
                to->dataset_count = from->dataset_count;
                to->not_spooled = from->not_spooled;
        }
        return 0;
}

static int copy_stores(struct sites *s, const struct core_data *d, struct err *err)
{
        if (d->store_count > CORE_STORES_MAX)
                return err_set(err, -E2BIG, "more than %u stores", CORE_STORES_MAX);
        s->stores = mem_zalloc((d->store_count + 1) * sizeof(*s->stores));
        s->urls = mem_zalloc((d->store_count + 1) * sizeof(*s->urls));
        s->store_labels = mem_zalloc((d->store_count + 1) * sizeof(*s->store_labels));
        for (size_t i = 0; i < d->store_count; i++) {
                const struct core_store *from = &d->stores[i];
                struct core_store *to = &s->stores[s->store_count++];

                *to = *from;
                to->urls.name = str_make(mem_dup(from->urls.name.p, from->urls.name.n), from->urls.name.n);
                to->urls.prefixes = dup_strs(from->urls.prefixes, from->urls.prefix_count);
                to->labels = dup_strs(from->labels, from->label_count);
                s->urls[i] = to->urls;
                for (size_t k = 0; k < from->label_count; k++) {
                        int at = add_label(s, from->labels[k], err);

                        if (at < 0)
                                return at;
                        s->store_labels[i] |= 1ull << at;
                }
        }
        return 0;
}

/* Links are by a store's number, which has changed. */
static void agents_again(struct core *c)
{
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                struct core_agent *a = value;

                a->cleared = label_cleared(c, a->name);
                if (a->data)
                        a->data->link_count = 0;
                for (struct queue *q = a->queues; q; q = q->next)
                        if (q->ad) {
                                index_queue_shown(c, q);
                                profile_update(c, q);
                        }
        }
}

/* Jobs that read from it at once: a limit of Drover's own. */
static void limit_store(struct core *c, const struct core_store *s)
{
        BUF_CLEANUP struct buf name = {0};

        buf_printf(&name, "store/" STR_FMT, STR_ARG(s->urls.name));
        if (s->concurrency)
                limits_set(c->limits, buf_view(&name), s->concurrency);
}

int core_data_set(struct core *c, const struct core_data *data, struct err *err)
{
        struct sites s = {0};
        void *agent;
        int r;

        s.labels = mem_zalloc(CORE_LABELS_MAX * sizeof(*s.labels));
        r = copy_labels(&s, data, err);
        if (r >= 0)
                r = copy_stores(&s, data, err);
        if (r < 0) {
                sites_deinit(&s);
                return r;
        }
        for (size_t at = 0; map_next(c->agents, &at, NULL, &agent);)
                coming_forget(c, agent);
        sites_deinit(&c->sites);
        c->sites = s;
        for (size_t i = 0; i < s.store_count; i++)
                limit_store(c, &s.stores[i]);
        agents_again(c);
        for (struct request *q = c->first; q && !c->config.shadow; q = q->next)
                if (!request_ended(q))
                        request_data_load(c, q);
        core_rekey(c);
        return 0;
}

void data_deinit(struct core *c)
{
        sites_deinit(&c->sites);
        near_deinit(c);
        for (unsigned i = 0; i < c->profile_count; i++)
                profile_unref(c->profiles[i]);
        free(c->profiles);
        files_free(c->files);
        coming_deinit(c);
}

/* ---- what agents hold */

static struct agent_data *data_of(struct core_agent *a)
{
        if (!a->data) {
                a->data = mem_new(struct agent_data);
                a->data->held = idmap_new();
        }
        return a->data;
}

void agent_data_free(struct agent_data *d)
{
        if (!d)
                return;
        idmap_free(d->held);
        idmap_free(d->coming);
        free(d->loads);
        free(d->links);
        free(d);
}

void file_add_holder(struct idmap **files, uint64_t id, uint64_t bytes, struct core_agent *a)
{
        struct file *f;

        if (!*files)
                *files = idmap_new();
        f = idmap_get(*files, id);
        if (!f) {
                f = mem_new(struct file);
                idmap_put(*files, id, f);
        }
        f->bytes = bytes;
        MEM_GROW(f->holders, f->cap, f->count + 1);
        f->holders[f->count++] = a;
}

void file_drop_holder(struct idmap *files, uint64_t id, const struct core_agent *a)
{
        struct file *f = idmap_get(files, id);

        for (uint32_t i = 0; i < f->count; i++)
                if (f->holders[i] == a) {
                        f->holders[i] = f->holders[--f->count];
                        break;
                }
        if (f->count)
                return;
        idmap_take(files, id);
        free(f->holders);
        free(f);
}

void files_free(struct idmap *files)
{
        void *value;

        for (size_t at = 0; files && idmap_next(files, &at, NULL, &value);) {
                struct file *f = value;

                free(f->holders);
                free(f);
        }
        idmap_free(files);
}

static void drop(struct core *c, struct core_agent *a, uint64_t id)
{
        void *had = idmap_take(a->data->held, id);

        if (!had)
                return;
        a->data->bytes -= as_bytes(had);
        file_drop_holder(c->files, id, a);
        near_went(c, a, id);
}

static void drop_all(struct core *c, struct core_agent *a)
{
        uint64_t id;

        struct idmap *had = a->data->held;

        a->data->held = idmap_new();
        a->data->bytes = 0;
        for (size_t at = 0; idmap_next(had, &at, &id, NULL);) {
                file_drop_holder(c->files, id, a);
                near_went(c, a, id);
        }
        idmap_free(had);
}

void core_cache_delta(struct core *c, const char *agent, const struct core_file *added, size_t added_count,
                      const uint64_t *removed, size_t removed_count, bool full_reset)
{
        struct core_agent *a = agent_get(c, str_of(agent));
        struct agent_data *d = data_of(a);

        if (full_reset)
                drop_all(c, a);
        for (size_t i = 0; i < removed_count && !full_reset; i++)
                drop(c, a, removed[i]);
        for (size_t i = 0; i < added_count; i++) {
                const void *had = idmap_get(d->held, added[i].id);

                if (had && as_bytes(had) == added[i].bytes)
                        continue;
                drop(c, a, added[i].id);
                if (idmap_count(d->held) == CORE_FILES_MAX)
                        continue;
                idmap_put(d->held, added[i].id, as_value(added[i].bytes));
                d->bytes += added[i].bytes;
                coming_arrived(c, a, added[i].id);
                file_add_holder(&c->files, added[i].id, added[i].bytes, a);
                near_came(c, a, added[i].id);
        }
}

bool data_counts(const struct core *c)
{
        return c->files &&
               (c->config.placement == CORE_PLACE_COST || c->config.placement == CORE_PLACE_CACHED);
}

bool agent_holds(const struct core_agent *a, uint64_t file)
{
        return a->data && idmap_get(a->data->held, file);
}

bool core_cleared(struct core *c, const char *agent, struct str label)
{
        int at = sites_label(&c->sites, label);

        if (label.n == 0)
                return label_cleared(c, agent) != 0;
        return at >= 0 && (label_cleared(c, agent) >> at & 1);
}

/* ---- links */

static size_t store_named(const struct core *c, struct str name)
{
        for (size_t i = 0; i < c->sites.store_count; i++)
                if (str_eq(name, c->sites.stores[i].urls.name))
                        return i;
        return name.n ? FILE_STORE_NONE : c->sites.store_count;
}

void core_links(struct core *c, const char *agent, const struct core_link *links, size_t count)
{
        struct core_agent *a = agent_get(c, str_of(agent));
        struct agent_data *d = data_of(a);

        for (size_t i = 0; i < count; i++) {
                size_t at = store_named(c, links[i].store);

                if (at == FILE_STORE_NONE)
                        continue;
                if (at >= d->link_count) {
                        d->links = mem_array(d->links, at + 1, sizeof(*d->links));
                        memset(d->links + d->link_count, 0, (at + 1 - d->link_count) * sizeof(*d->links));
                        d->link_count = at + 1;
                }
                d->links[at] = (struct link){links[i].latency_us, links[i].bytes_per_s,
                                             links[i].bytes_per_s_out, c->now_ms};
        }
        for (struct queue *q = a->queues; q; q = q->next)
                if (q->ad)
                        profile_update(c, q);
}

void core_stores(struct core *c, void (*fn)(void *arg, const struct core_store_view *s), void *arg)
{
        size_t n;
        struct core_agent **all = agents_sorted(c, &n);
        struct core_link_view *links = mem_array(NULL, n + 1, sizeof(*links));

        for (size_t i = 0; i < c->sites.store_count; i++) {
                struct core_store_view v = {.store = &c->sites.stores[i], .links = links};

                for (size_t k = 0; k < n; k++) {
                        const struct agent_data *d = all[k]->data;

                        if (d && i < d->link_count && d->links[i].measured_ms)
                                links[v.link_count++] = (struct core_link_view){
                                        all[k]->name, d->links[i].latency_us, d->links[i].bytes_per_s,
                                        d->links[i].measured_ms};
                }
                fn(arg, &v);
        }
        free(links);
        free(all);
}

void core_bytes_moved(const struct core *c, struct core_moved *ret)
{
        *ret = c->moved;
}

/* Files know their holders, holders their files, and near sets what follows from both. */
const char *data_invariant(const struct core *c)
{
        uint64_t holders = 0, held = 0, id;
        void *value, *bytes;

        for (size_t at = 0; c->files && idmap_next(c->files, &at, &id, &value);) {
                const struct file *f = value;

                holders += f->count;
                for (uint32_t i = 0; i < f->count; i++)
                        if (!agent_holds(f->holders[i], id))
                                return "a file names an agent that does not hold it";
        }
        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                const struct agent_data *d = ((struct core_agent *)value)->data;
                uint64_t all = 0;

                for (size_t k = 0; d && idmap_next(d->held, &k, NULL, &bytes);)
                        all += as_bytes(bytes);
                held += d ? idmap_count(d->held) : 0;
                if (d && all != d->bytes)
                        return "an agent's files have another size than it counts";
        }
        if (!coming_ok(c))
                return "files that come to agents are counted wrongly";
        if (held != holders)
                return "agents hold files that do not name them";
        for (const struct request *r = c->first; r; r = r->next)
                for (size_t i = 0; i < r->part_count; i++)
                        if (!near_ok(c, r->parts[i].inputs))
                                return "a set of members near an agent is wrong";
        return NULL;
}
