#include "core/data/cost_class.h"

#include <math.h>

#include "base/mem.h"
#include "core/data/cost.h"
#include "core/data/data_state.h"
#include "core/estimate/estimate.h"
#include "core/index/index.h"
#include "core/model/core_parts.h"
#include "core/model/cost_class.h"

#define ALIKE 1.5 /* factor */

struct cost_class_link cost_class_link_of(const struct agent_data *d, size_t store)
{
        struct link l = d && store < d->link_count ? d->links[store] : (struct link){0};
        double rate = (double)(l.bytes_per_s ? l.bytes_per_s : COST_BYTES_PER_S);

        return (struct cost_class_link){
                .down = l.down_ms > 0,
                .latency_us = (double)(l.measured_ms ? l.latency_us : COST_LATENCY_US),
                .bytes_per_s = rate,
                .bytes_per_s_out = l.bytes_per_s_out ? (double)l.bytes_per_s_out : rate};
}

static double times(double a, double b)
{
        return a > b ? a / b : b / a;
}

static double slowness_apart(const struct cost_class *p, const struct queue *q)
{
        double x = times(p->slowness, estimate_slowness(q));

        return x * x * x;
}

static double larger(double a, double b)
{
        return a > b ? a : b;
}

/* Returns the distance of the queue from a cost class: 1 is equal, above ALIKE is a different class. */
static double apart(const struct core *c, const struct cost_class *p, const struct queue *q)
{
        double most = slowness_apart(p, q), price = q->price > 0 ? q->price : 0;

        if (p->link_count != c->data->sites.store_count + 1)
                return INFINITY;
        most = larger(most, times(p->wait_s + 60, q->wait_s + 60));
        if (times(p->price + 1e-9, price + 1e-9) > 1.01)
                most += 1000;
        if (p->search_order != q->search_order)
                most += 1000;
        for (size_t i = 0; i < p->link_count && most < INFINITY; i++) {
                struct cost_class_link l = cost_class_link_of(q->agent->data, i);

                most = larger(most, times(p->links[i].latency_us + 2000, l.latency_us + 2000));
                most = larger(most, times(p->links[i].bytes_per_s, l.bytes_per_s));
                most = larger(most, times(p->links[i].bytes_per_s_out, l.bytes_per_s_out));
                if (p->links[i].down != l.down)
                        most += 1000;
        }
        return most;
}

/* Adds a value to a mean with the weight of one member. */
static void blend(double *mean, double value, const struct cost_class *p)
{
        *mean += (value - *mean) / p->users;
}

static void add_to_means(struct cost_class *p, const struct queue *q)
{
        blend(&p->slowness, estimate_slowness(q), p);
        blend(&p->price, q->price > 0 ? q->price : 0, p);
        blend(&p->wait_s, q->wait_s, p);
        for (size_t i = 0; i < p->link_count; i++) {
                struct cost_class_link l = cost_class_link_of(q->agent->data, i);

                blend(&p->links[i].latency_us, l.latency_us, p);
                blend(&p->links[i].bytes_per_s, l.bytes_per_s, p);
                blend(&p->links[i].bytes_per_s_out, l.bytes_per_s_out, p);
                if (p->users == 1)
                        p->links[i].down = l.down;
        }
}

static void load_add(struct link_load *l, struct link_load more, bool there)
{
        l->bytes += there ? more.bytes : -more.bytes;
        l->files += there ? more.files : -more.files;
}

/* Adds the transfers to the queue's agent to the cost class, or removes them: once, however many queues the
 * agent has there. */
static void carry_loads(const struct queue *q, struct cost_class *p, bool there)
{
        const struct agent_data *d = q->agent->data;

        for (const struct queue *o = q->agent->queues; o; o = o->next)
                if (o != q && o->cost_class == p)
                        return;
        for (size_t i = 0; d && i < d->load_count && i < p->link_count; i++)
                load_add(&p->links[i].load, d->loads[i], there);
}

void cost_class_load(struct core *c, struct core_agent *a, size_t store, uint64_t bytes, bool begins)
{
        struct link_load one = {bytes, 1};
        struct agent_data *d = a->data;

        if (store > c->data->sites.store_count)
                return; /* made at the place, without a transfer */
        if (store >= d->load_count) {
                d->loads = mem_array(d->loads, store + 1, sizeof(*d->loads));
                memset(d->loads + d->load_count, 0, (store + 1 - d->load_count) * sizeof(*d->loads));
                d->load_count = store + 1;
        }
        load_add(&d->loads[store], one, begins);
        c->data->load_changes++;
        for (struct queue *q = a->queues; q; q = q->next) {
                struct cost_class *p = q->cost_class;

                if (!p || p->loaded == c->data->load_changes || store >= p->link_count)
                        continue;
                p->loaded = c->data->load_changes;
                load_add(&p->links[store].load, one, begins);
        }
}

/* Checks that each cost class's load is the sum over its agents. */
bool cost_class_loads_ok(const struct core *c)
{
        struct link_load all = {0};
        void *value;

        for (unsigned i = 0; i < c->data->cost_class_count; i++)
                for (size_t k = 0; k < c->data->cost_classes[i]->link_count; k++)
                        load_add(&all, c->data->cost_classes[i]->links[k].load, true);
        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                const struct core_agent *a = value;

                for (const struct queue *q = a->queues; q; q = q->next) {
                        const struct queue *o = a->queues;

                        while (o != q && o->cost_class != q->cost_class)
                                o = o->next;
                        for (size_t k = 0; o == q && q->cost_class && a->data && k < a->data->load_count; k++)
                                load_add(&all, a->data->loads[k], false);
                }
        }
        return all.bytes == 0 && all.files == 0;
}

static struct cost_class *cost_class_new(struct core *c, unsigned search_order)
{
        size_t n = c->data->sites.store_count + 1;
        struct cost_class *p = mem_zalloc(sizeof(*p) + n * sizeof(p->links[0]));

        p->link_count = n;
        p->search_order = search_order;
        c->data->ordered += search_order != SEARCH_ORDER_NONE;
        MEM_GROW(c->data->cost_classes, c->data->cost_class_cap, c->data->cost_class_count + 1);
        c->data->cost_classes[c->data->cost_class_count++] = cost_class_ref(p);
        return p;
}

static struct cost_class *nearest(struct core *c, const struct queue *q)
{
        double least = INFINITY;
        struct cost_class *found = NULL;

        for (unsigned i = 0; i < c->data->cost_class_count; i++) {
                double x = apart(c, c->data->cost_classes[i], q);

                if (x < least) {
                        least = x;
                        found = c->data->cost_classes[i];
                }
        }
        return found && (least <= ALIKE || c->data->cost_class_count >= COST_CLASSES_MAX)
                       ? found
                       : cost_class_new(c, q->search_order);
}

static void ring_add(struct cost_class *p, struct queue *q)
{
        if (!p->queues)
                p->queues = q->class_next = q->class_prev = q;
        q->class_next = p->queues;
        q->class_prev = p->queues->class_prev;
        q->class_prev->class_next = q;
        q->class_next->class_prev = q;
}

static void ring_take(struct cost_class *p, struct queue *q)
{
        q->class_prev->class_next = q->class_next;
        q->class_next->class_prev = q->class_prev;
        if (p->queues == q)
                p->queues = q->class_next == q ? NULL : q->class_next;
        q->class_next = q->class_prev = NULL;
}

static void cost_class_leave(struct core *c, struct queue *q)
{
        struct cost_class *p = q->cost_class;

        if (!p)
                return;
        carry_loads(q, p, false);
        ring_take(p, q);
        q->cost_class = NULL;
        if (--p->users == 0)
                for (unsigned i = 0; i < c->data->cost_class_count; i++)
                        if (c->data->cost_classes[i] == p) {
                                c->data->ordered -= p->search_order != SEARCH_ORDER_NONE;
                                c->data->cost_classes[i] = c->data->cost_classes[--c->data->cost_class_count];
                                p->refs--; /* the list's reference; the queue has its own */
                                break;
                        }
        cost_class_unref(p);
}

void cost_class_update(struct core *c, struct queue *q)
{
        struct cost_class *p = q->cost_class;

        if (c->config.shadow)
                return;
        if (!p || apart(c, p, q) > ALIKE) {
                cost_class_leave(c, q);
                p = nearest(c, q);
                q->cost_class = cost_class_ref(p);
                carry_loads(q, p, true);
                ring_add(p, q);
                p->users++;
                index_queue_moved(c, q);
        }
        add_to_means(p, q);
}

void cost_class_update_slowness(struct core *c, struct queue *q)
{
        if (!q->cost_class)
                return;
        if (slowness_apart(q->cost_class, q) > ALIKE)
                cost_class_update(c, q);
        else
                blend(&q->cost_class->slowness, estimate_slowness(q), q->cost_class);
}
