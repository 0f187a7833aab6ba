/* Keeps the configured stores and labels, and what agents hold and have measured. */
#include "core/data/data.h"

#include <errno.h>

#include "base/mem.h"
#include "core/data/cost_class.h"
#include "core/data/data_state.h"
#include "core/data/inflight_transfers.h"
#include "core/data/inputs.h"
#include "core/data/label.h"
#include "core/data/locality.h"
#include "core/data/space.h"
#include "core/index/index.h"
#include "core/model/core_parts.h"
#include "core/model/cost_class.h"
#include "core/model/pending_match.h"

#define DOWN_WHY_MAX 300u

/* The map's value is the file's size plus one, since NULL means absent. */
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
                for (size_t k = 0; k < s->stores[i].from_count; k++)
                        free((char *)(uintptr_t)s->stores[i].from[k].name.p);
                free((void *)(uintptr_t)s->stores[i].from);
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

/* Adds a label that only a store names: no agent is cleared for it. */
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

static struct core_store_from *dup_froms(const struct core_store_from *v, size_t n)
{
        struct core_store_from *ret = mem_zalloc((n + 1) * sizeof(*ret));

        for (size_t i = 0; i < n; i++)
                ret[i] = (struct core_store_from){str_make(mem_dup(v[i].name.p, v[i].name.n), v[i].name.n),
                                                  v[i].concurrency};
        return ret;
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
                to->from = dup_froms(from->from, from->from_count);
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

static void links_drop(struct agent_data *d)
{
        for (size_t i = 0; i < d->link_count; i++)
                free(d->links[i].down_why);
        d->link_count = d->down_count = 0;
}

/* Resets agents' links, which are indexed by the changed numbers of stores. */
static void agents_again(struct core *c)
{
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                struct core_agent *a = value;

                a->cleared = label_cleared(c, a->name);
                if (a->data)
                        links_drop(a->data);
                for (struct queue *q = a->queues; q; q = q->next)
                        if (q->ad) {
                                index_queue_shown(c, q);
                                cost_class_update(c, q);
                        }
        }
}

static void limit_set(struct core *c, const char *what, struct str store, struct str from, uint32_t max)
{
        BUF_CLEANUP struct buf name = {0};

        buf_printf(&name, "%s/" STR_FMT, what, STR_ARG(store));
        if (from.n)
                buf_printf(&name, "/" STR_FMT, STR_ARG(from));
        if (max)
                limits_set(c->limits, buf_view(&name), max);
}

/* Sets the limits on jobs that read from a store, write into it, and copy into it from another one. */
static void limit_store(struct core *c, const struct core_store *s)
{
        limit_set(c, "store", s->urls.name, STR_NONE, s->concurrency);
        limit_set(c, "store_in", s->urls.name, STR_NONE, s->concurrency_in);
        for (size_t i = 0; i < s->from_count; i++)
                limit_set(c, "store_from", s->urls.name, s->from[i].name, s->from[i].concurrency);
}

int data_set(struct core *c, const struct core_data *data, struct err *err)
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
                inflight_forget(c, agent);
        sites_deinit(&c->data->sites);
        c->data->sites = s;
        for (size_t i = 0; i < s.store_count; i++)
                limit_store(c, &s.stores[i]);
        space_settings(c);
        agents_again(c);
        for (struct request *q = c->requests->first; q && !c->config.shadow; q = q->next)
                if (!request_ended(q))
                        request_data_load(c, q);
        return 0;
}

void data_init(struct core *c)
{
        c->data = mem_new(struct data);
        locality_init(c);
        space_init(c);
}

static void agent_data_free(struct agent_data *d)
{
        if (!d)
                return;
        idmap_free(d->held);
        idmap_free(d->inflight);
        free(d->loads);
        links_drop(d);
        free(d->links);
        locality_late_free(d->late);
        free(d);
}

void data_deinit(struct core *c)
{
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                struct core_agent *a = value;

                for (struct queue *q = a->queues; q; q = q->next)
                        cost_class_unref(q->cost_class);
                agent_data_free(a->data);
        }
        sites_deinit(&c->data->sites);
        locality_deinit(c);
        for (unsigned i = 0; i < c->data->cost_class_count; i++)
                cost_class_unref(c->data->cost_classes[i]);
        free(c->data->cost_classes);
        files_free(c->data->files);
        inflight_deinit(c);
        space_deinit(c);
        free(c->data);
}

/* ---- files held by agents */

static struct agent_data *data_of(struct core_agent *a)
{
        if (!a->data) {
                a->data = mem_new(struct agent_data);
                a->data->held = idmap_new();
        }
        return a->data;
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

static void drop_file(struct core *c, struct core_agent *a, uint64_t id)
{
        void *had = idmap_take(a->data->held, id);

        if (!had)
                return;
        a->data->bytes -= as_bytes(had);
        file_drop_holder(c->data->files, id, a);
        locality_changed(c, a, id);
}

/* Adds a file, or notes its size. `before`: the files that the agent held, after it has begun to report all
 * anew; NULL: it reports changes. */
static void hold_file(struct core *c, struct core_agent *a, const struct core_file *f, struct idmap *before)
{
        struct agent_data *d = a->data;
        void *had = idmap_get(d->held, f->id);
        bool held = had != NULL;

        if ((had && as_bytes(had) == f->bytes) || (!had && idmap_count(d->held) == CORE_FILES_MAX))
                return;
        if (had)
                d->bytes -= as_bytes(had);
        else
                held = before && idmap_take(before, f->id);
        idmap_put(d->held, f->id, as_value(f->bytes));
        d->bytes += f->bytes;
        inflight_arrived(c, a, f->id);
        if (held) {
                ((struct file *)idmap_get(c->data->files, f->id))->bytes = f->bytes;
                return;
        }
        file_add_holder(&c->data->files, f->id, f->bytes, a);
        locality_changed(c, a, f->id);
}

static void look_again(struct core *c, struct core_agent *a)
{
        for (struct queue *q = a->queues; q; q = q->next)
                if (q->offers && q->jobs_left > 0)
                        queue_look_again(c, q);
}

void core_cache_delta(struct core *c, const char *agent, const struct core_file *added, size_t added_count,
                      const uint64_t *removed, size_t removed_count, bool full_reset)
{
        struct core_agent *a = agent_get(c, str_of(agent));
        struct agent_data *d = data_of(a);
        struct idmap *before = NULL;
        uint64_t id;

        if (full_reset) {
                before = d->held;
                d->held = idmap_new();
                d->bytes = 0;
        }
        for (size_t i = 0; i < removed_count && !full_reset; i++)
                drop_file(c, a, removed[i]);
        for (size_t i = 0; i < added_count; i++)
                hold_file(c, a, &added[i], before);
        for (size_t at = 0; before && idmap_next(before, &at, &id, NULL);) {
                file_drop_holder(c->data->files, id, a);
                locality_changed(c, a, id);
        }
        idmap_free(before);
        locality_follow(c, a);
        if (d->down_count && added_count)
                look_again(c, a); /* a job may be waiting for the new files */
}

bool agent_holds(const struct core_agent *a, uint64_t file)
{
        return a->data && idmap_get(a->data->held, file);
}

bool core_cleared(struct core *c, const char *agent, struct str label)
{
        int at = sites_label(&c->data->sites, label);

        if (label.n == 0)
                return label_cleared(c, agent) != 0;
        return at >= 0 && (label_cleared(c, agent) >> at & 1);
}

/* ---- links */

static size_t store_named(const struct core *c, struct str name)
{
        for (size_t i = 0; i < c->data->sites.store_count; i++)
                if (str_eq(name, c->data->sites.stores[i].urls.name))
                        return i;
        return name.n ? FILE_STORE_NONE : c->data->sites.store_count;
}

const struct link *agent_link_down(const struct core_agent *a, size_t store)
{
        const struct agent_data *d = a->data;

        return d && d->down_count && store < d->link_count && d->links[store].down_ms ? &d->links[store]
                                                                                      : NULL;
}

/* Records a link. Returns true if it was down and is up now. */
static bool link_set(struct agent_data *d, struct link *l, const struct core_link *said, int64_t now_ms)
{
        bool was = l->down_ms, is = said->down_ms > 0, measured = said->latency_us || said->bytes_per_s;

        free(l->down_why);
        d->down_count += (unsigned)is - (unsigned)was;
        *l = (struct link){.latency_us = said->latency_us,
                           .bytes_per_s = said->bytes_per_s,
                           .bytes_per_s_out = said->bytes_per_s_out,
                           .measured_ms = !measured && is ? 0 : now_ms,
                           .down_ms = is ? said->down_ms : 0,
                           .down_why = is ? str_dupz(str_head(said->down_why, DOWN_WHY_MAX)) : NULL,
                           .stale = is && l->stale};
        if (l->measured_ms && said->measured_ms > 0 && said->measured_ms < now_ms)
                l->measured_ms = said->measured_ms;
        return was && !is;
}

static void links_moved(struct core *c, struct core_agent *a)
{
        for (struct queue *q = a->queues; q; q = q->next)
                if (q->ad)
                        cost_class_update(c, q);
}

void links_forget_down(struct core *c, struct core_agent *a)
{
        struct agent_data *d = a->data;

        if (!d || d->down_count == 0)
                return;
        for (size_t i = 0; i < d->link_count; i++) {
                free(d->links[i].down_why);
                d->links[i].down_why = NULL;
                d->links[i].down_ms = 0;
                d->links[i].stale = false;
        }
        d->down_count = 0;
        links_moved(c, a);
}

void core_links(struct core *c, const char *agent, const struct core_link *links, size_t count)
{
        struct core_agent *a = agent_get(c, str_of(agent));
        struct agent_data *d = data_of(a);
        bool up = false;

        for (size_t i = 0; i < count; i++) {
                size_t at = store_named(c, links[i].store);

                if (at == FILE_STORE_NONE)
                        continue;
                if (at >= d->link_count) {
                        d->links = mem_array(d->links, at + 1, sizeof(*d->links));
                        memset(d->links + d->link_count, 0, (at + 1 - d->link_count) * sizeof(*d->links));
                        d->link_count = at + 1;
                }
                up |= link_set(d, &d->links[at], &links[i], c->now_ms);
                if (links[i].free_known && at < c->data->sites.store_count)
                        space_measured(c, at, a, links[i].free_bytes);
        }
        links_moved(c, a);
        if (up)
                look_again(c, a);
}

void core_stores(struct core *c, void (*fn)(void *arg, const struct core_store_view *s), void *arg)
{
        size_t n;
        struct core_agent **all = agents_sorted(c, &n);
        struct core_link_view *links = mem_array(NULL, n + 1, sizeof(*links));
        size_t lot_count, lot = 0;
        struct lot **lots = space_sorted(c, &lot_count);

        for (size_t i = 0; i < c->data->sites.store_count; i++) {
                struct core_store_view v = {.store = &c->data->sites.stores[i], .links = links};
                struct space_view space;

                for (size_t k = 0; k < n; k++) {
                        const struct agent_data *d = all[k]->data;

                        const struct link *l = d && i < d->link_count ? &d->links[i] : NULL;

                        if (l && (l->measured_ms || l->down_ms))
                                links[v.link_count++] =
                                        (struct core_link_view){all[k]->name,   l->latency_us, l->bytes_per_s,
                                                                l->measured_ms, l->down_ms,    l->down_why};
                }
                if (space_look(c, i, &space))
                        v.space = &space;
                for (lot = 0; lot < lot_count && !str_eqz(v.store->urls.name, lots[lot]->store);)
                        lot++;
                v.lots = lots + lot;
                while (lot + v.lot_count < lot_count &&
                       str_eqz(v.store->urls.name, lots[lot + v.lot_count]->store))
                        v.lot_count++;
                fn(arg, &v);
        }
        free(lots);
        free(links);
        free(all);
}

/* ---- unreachable stores */

struct gave_back {
        const struct core_agent *agent;
        bool found;
};

static bool on_given_back(void *arg, const struct input *f)
{
        struct gave_back *x = arg;
        const struct link *l = agent_link_down(x->agent, f->store);

        if (l && !f->image && agent_holds(x->agent, f->id))
                x->agent->data->links[f->store].stale = true;
        return true;
}

void links_gave_back(struct core *c, const struct job *j)
{
        struct gave_back x = {.agent = j->queue->agent};
        const struct part *p = request_part(j->request, j->member, NULL);

        if (x.agent->data && x.agent->data->down_count)
                inputs_each(c, p->inputs, j->member, on_given_back, &x);
}

struct stores_used {
        bool v[CORE_STORES_MAX + 2];
};

static bool on_used(void *arg, const struct input *f)
{
        ((struct stores_used *)arg)->v[f->store] = true;
        return true;
}

static bool store_down(struct core *c, size_t store, struct core_store_down *ret)
{
        void *value;

        *ret = (struct core_store_down){.store = c->data->sites.stores[store].urls.name};
        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                const struct core_agent *a = value;
                const struct link *l = a->connected ? agent_link_down(a, store) : NULL;

                ret->of += a->connected;
                if (!l)
                        continue;
                if (ret->agents++ > 0 && (l->down_ms > ret->since_ms ||
                                          (l->down_ms == ret->since_ms && strcmp(a->name, ret->agent) > 0)))
                        continue;
                ret->agent = a->name;
                ret->since_ms = l->down_ms;
                ret->why = l->down_why;
        }
        return ret->agents > 0;
}

int core_job_stores_down(struct core *c, uint64_t request, uint32_t member,
                         void (*fn)(void *arg, const struct core_store_down *d), void *arg)
{
        const struct request *r = request_find(c, request);
        struct stores_used used = {0};
        struct core_store_down d;
        const struct part *p;

        if (!r || member >= r->count)
                return CORE_UNKNOWN;
        p = request_part(r, member, NULL);
        inputs_each(c, p->inputs, member, on_used, &used);
        used.v[p->output_store] = true;
        for (size_t i = 0; i < c->data->sites.store_count; i++)
                if (used.v[i] && store_down(c, i, &d))
                        fn(arg, &d);
        return 0;
}

void core_bytes_moved(const struct core *c, struct core_moved *ret)
{
        *ret = c->data->moved;
}

/* Checks that files, their holders, and the sets of localities agree. */
const char *data_invariant(const struct core *c)
{
        uint64_t holders = 0, held = 0, id;
        void *value, *bytes;

        for (size_t at = 0; c->data->files && idmap_next(c->data->files, &at, &id, &value);) {
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
        if (!inflight_ok(c))
                return "files that come to agents are counted wrongly";
        if (held != holders)
                return "agents hold files that do not name them";
        for (const struct request *r = c->requests->first; r; r = r->next)
                for (size_t i = 0; i < r->part_count; i++)
                        if (!locality_ok(c, r->parts[i].inputs))
                                return "a set of members near an agent is wrong";
        return NULL;
}
