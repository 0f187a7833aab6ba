#include "core/data/cost.h"

#include "core/data/cost_class.h"
#include "core/data/data_state.h"
#include "core/data/inflight_transfers.h"
#include "core/data/inputs.h"
#include "core/estimate/estimate.h"
#include "core/model/core_parts.h"
#include "core/model/cost_class.h"

#define HOUR_MS 3600000.0
#define MS_MAX  ((int64_t)1 << 50)

struct sum {
        const struct cost_class *cost_class;
        const struct core_agent *agent;
        double fetch_us, image_us, environment_us;
        struct cost_load load; /* files to be fetched */
        bool misses;           /* the agent cannot reach some store */
        struct core_cost *cost;
};

/* Returns the time of a transfer. `store` may be newer than the cost class, or none (INPUT_MADE). */
static double transfer_us(const struct cost_class *p, size_t store, double files, double bytes, bool out)
{
        const struct cost_class_link *l = p && store < p->link_count ? &p->links[store] : NULL;

        if (!l)
                return files * COST_LATENCY_US + bytes * 1e6 / COST_BYTES_PER_S;
        return files * l->latency_us + bytes * 1e6 / (out ? l->bytes_per_s_out : l->bytes_per_s);
}

/* Returns the delay of a load by transfers in progress on the same links. A part of those is done already;
 * and as transfers share a link evenly, a small one waits not for the end of large ones, but for as much of
 * each as its own size. */
static double link_us(const struct cost_class *p, const struct cost_load *l)
{
        double us = 0;

        for (unsigned i = 0; p && i < l->count; i++) {
                const struct cost_store *s = &l->stores[i];
                const struct cost_class_link *k = s->store < p->link_count ? &p->links[s->store] : NULL;
                double bytes, even;

                if (!k || k->load.files == 0)
                        continue;
                bytes = (double)k->load.bytes - s->inflight_bytes;
                even = ((double)k->load.files - s->inflight_files) * s->bytes;
                bytes = even < bytes ? even : bytes;
                us += bytes > 0 ? INFLIGHT_PART * bytes * 1e6 / k->bytes_per_s : 0;
        }
        return us;
}

/* Returns whether the agent cannot reach the store that it must ask for the file. */
static bool is_down(const struct core_agent *a, const struct input *f)
{
        const struct link *l = agent_link_down(a, f->store);

        return l && ((l->stale && !f->image) || !agent_holds(a, f->id));
}

static bool add_input(void *arg, const struct input *f)
{
        struct sum *s = arg;

        s->cost->bytes_in += f->bytes;
        s->cost->unsized += f->bytes == 0 && !f->image && !f->environment;
        if (s->misses && is_down(s->agent, f))
                s->cost->down = true;
        if (agent_holds(s->agent, f->id)) {
                s->cost->bytes_held += f->bytes;
        } else {
                double share = inflight_to(s->agent, f->id) ? INFLIGHT_PART : 1;

                *(f->image         ? &s->image_us
                  : f->environment ? &s->environment_us
                                   : &s->fetch_us) +=
                        transfer_us(s->cost_class, f->store, share, share * (double)f->bytes, false);
                cost_load_add(&s->load, f, share);
        }
        return true;
}

static int64_t to_ms(double us)
{
        return us < (double)MS_MAX ? (int64_t)(us / 1000) : MS_MAX;
}

static void add_price(const struct part *p, double price, struct core_cost *ret)
{
        if (!(price > 0))
                return;
        ret->price = price * (double)p->job_template->cpus * (double)ret->run_ms / HOUR_MS;
        if (p->job_template->price_weight > 0)
                ret->price_ms = to_ms(ret->price * p->job_template->price_weight * 1e6);
}

void cost_set_run(const struct part *p, const struct queue *q, int64_t run_ms, struct core_cost *cost)
{
        cost->total_ms += run_ms - cost->run_ms - cost->price_ms;
        cost->run_ms = run_ms;
        cost->price = 0;
        cost->price_ms = 0;
        add_price(p, q->price, cost);
        cost->total_ms += cost->price_ms;
}

/* Adds the terms that do not depend on the files held. */
static void add_place(struct core *c, const struct part *p, const struct cost_class *x, double price,
                      struct core_cost *ret)
{
        ret->run_ms = estimate_run_at_ms(c, p, x ? x->slowness : 1, &ret->run_known);
        ret->bytes_out = estimate_bytes_out(p);
        if (ret->bytes_out)
                ret->send_ms = to_ms(transfer_us(x, p->output_store, 1, (double)ret->bytes_out, true));
        add_price(p, price, ret);
        ret->wait_ms = x ? (int64_t)(x->wait_s * 1000) : 0;
        ret->total_ms = ret->wait_ms + cost_input_ms(ret) + ret->run_ms + ret->send_ms + ret->price_ms;
        if (ret->down)
                ret->total_ms = COST_NOWHERE;
}

void cost_of(struct core *c, const struct part *p, uint32_t member, const struct queue *q,
             struct core_cost *ret)
{
        struct sum s; /* only those entries of its load that are counted are read, and so set */

        s.cost_class = q->cost_class;
        s.agent = q->agent;
        s.fetch_us = s.image_us = s.environment_us = 0;
        s.load.count = 0;
        s.cost = ret;
        s.misses = agent_data_misses_stores(q->agent->data);
        *ret = (struct core_cost){.down = s.misses && agent_link_down(q->agent, p->output_store)};
        inputs_each(c, p->inputs, member, add_input, &s);
        ret->fetch_ms = to_ms(s.fetch_us);
        ret->image_ms = to_ms(s.image_us);
        ret->environment_ms = to_ms(s.environment_us);
        ret->link_ms = to_ms(link_us(q->cost_class, &s.load));
        add_place(c, p, q->cost_class, q->price, ret);
}

struct look_down {
        const struct core_agent *agent;
        size_t store;
};

static bool look_down(void *arg, const struct input *f)
{
        struct look_down *x = arg;

        if (is_down(x->agent, f))
                x->store = f->store;
        return x->store == FILE_STORE_NONE;
}

size_t cost_store_down(struct core *c, const struct part *p, uint32_t member, const struct queue *q)
{
        struct look_down x = {q->agent, FILE_STORE_NONE};

        if (!q->agent->data || q->agent->data->down_count == 0)
                return FILE_STORE_NONE;
        inputs_each(c, p->inputs, member, look_down, &x);
        if (x.store == FILE_STORE_NONE && agent_link_down(q->agent, p->output_store))
                return p->output_store;
        return x.store;
}

bool cost_reaches(struct core *c, const struct part *p, uint32_t member, const struct queue *q)
{
        return cost_store_down(c, p, member, q) == FILE_STORE_NONE;
}

static bool add_new(void *arg, const struct input *f)
{
        struct sum *s = arg;

        if (!agent_holds(s->agent, f->id) && !inflight_to(s->agent, f->id))
                s->fetch_us += transfer_us(s->cost_class, f->store, 1, (double)f->bytes, false);
        return true;
}

int64_t cost_new_transfers_ms(struct core *c, const struct part *p, uint32_t member, const struct queue *q)
{
        struct sum s;

        s.cost_class = q->cost_class;
        s.agent = q->agent;
        s.fetch_us = 0;
        inputs_each(c, p->inputs, member, add_new, &s);
        return to_ms(s.fetch_us);
}

/* ---- cost classes */

void cost_load_add(struct cost_load *l, const struct input *f, double share)
{
        unsigned i = 0;

        while (i < l->count && l->stores[i].store != f->store)
                i++;
        if (i == COST_STORES_MAX)
                i--; /* counted for the last store */
        if (i == l->count)
                l->stores[l->count++] = (struct cost_store){.store = f->store};
        l->stores[i].files += share;
        l->stores[i].bytes += share * (double)f->bytes;
        if (share < 1) {
                l->stores[i].inflight_files++;
                l->stores[i].inflight_bytes += (double)f->bytes;
        }
}

static bool add_whole(void *arg, const struct input *f)
{
        cost_load_add(arg, f, 1);
        return true;
}

void cost_load_of(struct core *c, const struct part *p, uint32_t member, struct cost_load *ret)
{
        ret->count = 0;
        inputs_each(c, p->inputs, member, add_whole, ret);
}

int64_t cost_load_fetch_by_ms(const struct cost_load *l, const struct core_agent *a)
{
        double us = 0;

        for (unsigned i = 0; i < l->count; i++) {
                struct cost_class_link k = cost_class_link_of(a ? a->data : NULL, l->stores[i].store);

                us += l->stores[i].files * k.latency_us + l->stores[i].bytes * 1e6 / k.bytes_per_s;
        }
        return to_ms(us);
}

int64_t cost_load_fetch_ms(const struct cost_load *l, const struct cost_class *x)
{
        double us = 0;

        for (unsigned i = 0; i < l->count; i++)
                us += transfer_us(x, l->stores[i].store, l->stores[i].files, l->stores[i].bytes, false);
        return to_ms(us);
}

static bool is_down_at(const struct cost_class *x, size_t store)
{
        return store < x->link_count && x->links[store].down;
}

int64_t cost_of_load_ms(struct core *c, const struct part *p, const struct cost_load *l,
                        const struct cost_class *x)
{
        struct core_cost cost = {.down = is_down_at(x, p->output_store)};
        double us = 0;

        for (unsigned i = 0; i < l->count; i++) {
                us += transfer_us(x, l->stores[i].store, l->stores[i].files, l->stores[i].bytes, false);
                cost.down |= l->stores[i].files > 0 && is_down_at(x, l->stores[i].store);
        }
        cost.fetch_ms = to_ms(us);
        cost.link_ms = to_ms(link_us(x, l));
        add_place(c, p, x, x->price, &cost);
        return cost.total_ms;
}

void cost_wait(struct core_cost *cost, int64_t wait_ms)
{
        int64_t more = wait_ms - cost->wait_ms, less;

        if (more <= 0)
                return;
        less = more < cost->link_ms ? more : cost->link_ms;
        cost->total_ms += more - less;
        cost->wait_ms = wait_ms;
        cost->link_ms -= less;
}

void cost_without_traffic(struct core_cost *cost)
{
        cost->total_ms -= cost->link_ms;
        cost->link_ms = 0;
}

bool cost_reaches_first(struct core *c, const struct job_class *k, const struct queue *q)
{
        return !k->idle || cost_reaches(c, job_class_first_part(k),
                                        (uint32_t)set_first(&job_class_first_bucket(k)->idle), q);
}
