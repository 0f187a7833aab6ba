#include "core/cost.h"

#include "core/estimate.h"
#include "core/state.h"

#define HOUR_MS 3600000.0
#define MS_MAX  ((int64_t)1 << 50)

struct sum {
        const struct agent_data *data; /* NULL: the agent has told nothing */
        const struct core_agent *agent;
        double fetch_us, image_us;
        struct core_cost *cost;
};

static double transfer_us(const struct agent_data *d, size_t store, uint64_t bytes, bool out)
{
        struct link l = {0};
        uint64_t rate;

        if (d && store < d->link_count)
                l = d->links[store];
        rate = out && l.bytes_per_s_out ? l.bytes_per_s_out : l.bytes_per_s;
        return (double)(l.measured_ms ? l.latency_us : COST_LATENCY_US) +
               (double)bytes * 1e6 / (double)(rate ? rate : COST_BYTES_PER_S);
}

static bool add_input(void *arg, const struct input *f)
{
        struct sum *s = arg;

        s->cost->bytes_in += f->bytes;
        if (agent_holds(s->agent, f->id))
                s->cost->bytes_held += f->bytes;
        else
                *(f->image ? &s->image_us : &s->fetch_us) += transfer_us(s->data, f->store, f->bytes, false);
        return true;
}

static int64_t to_ms(double us)
{
        return us < (double)MS_MAX ? (int64_t)(us / 1000) : MS_MAX;
}

static void add_price(const struct part *p, const struct queue *q, struct core_cost *ret)
{
        if (!(q->price > 0))
                return;
        ret->price = q->price * (double)p->template->cpus * (double)ret->run_ms / HOUR_MS;
        if (p->template->price_weight > 0)
                ret->price_ms = to_ms(ret->price * p->template->price_weight * 1e6);
}

void cost_of(struct core *c, const struct part *p, uint32_t member, const struct queue *q,
             struct core_cost *ret)
{
        struct sum s = {.data = q->agent->data, .agent = q->agent, .cost = ret};

        *ret = (struct core_cost){0};
        inputs_each(c, p->inputs, member, add_input, &s);
        ret->fetch_ms = to_ms(s.fetch_us);
        ret->image_ms = to_ms(s.image_us);
        ret->run_ms = estimate_run_ms(c, p, q, &ret->run_known);
        ret->bytes_out = estimate_bytes_out(p);
        if (ret->bytes_out)
                ret->send_ms = to_ms(transfer_us(s.data, p->output_store, ret->bytes_out, true));
        add_price(p, q, ret);
        ret->total_ms = ret->fetch_ms + ret->image_ms + ret->run_ms + ret->send_ms + ret->price_ms;
}

void cost_add_wait(struct core_cost *cost, int64_t wait_ms)
{
        cost->wait_ms += wait_ms;
        cost->total_ms += wait_ms;
}
