#include "core/cost.h"

#include "core/coming.h"
#include "core/estimate.h"
#include "core/state.h"

#define HOUR_MS 3600000.0
#define MS_MAX  ((int64_t)1 << 50)

struct sum {
        const struct profile *profile;
        const struct core_agent *agent;
        double fetch_us, image_us, environment_us;
        struct core_cost *cost;
};

/* `store` may be one that came after the profile was made, or none (INPUT_MADE). */
static double transfer_us(const struct profile *p, size_t store, double files, double bytes, bool out)
{
        const struct profile_link *l = p && store < p->link_count ? &p->links[store] : NULL;

        if (!l)
                return files * COST_LATENCY_US + bytes * 1e6 / COST_BYTES_PER_S;
        return files * l->latency_us + bytes * 1e6 / (out ? l->bytes_per_s_out : l->bytes_per_s);
}

static bool add_input(void *arg, const struct input *f)
{
        struct sum *s = arg;

        s->cost->bytes_in += f->bytes;
        if (agent_holds(s->agent, f->id)) {
                s->cost->bytes_held += f->bytes;
        } else {
                double share = coming_to(s->agent, f->id) ? COMING_PART : 1;

                *(f->image         ? &s->image_us
                  : f->environment ? &s->environment_us
                                   : &s->fetch_us) +=
                        transfer_us(s->profile, f->store, share, share * (double)f->bytes, false);
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
        ret->price = price * (double)p->template->cpus * (double)ret->run_ms / HOUR_MS;
        if (p->template->price_weight > 0)
                ret->price_ms = to_ms(ret->price * p->template->price_weight * 1e6);
}

/* What is the same whatever is held. */
static void add_place(struct core *c, const struct part *p, const struct profile *x, double price,
                      struct core_cost *ret)
{
        ret->run_ms = estimate_run_at_ms(c, p, x ? x->slowness : 1, &ret->run_known);
        ret->bytes_out = estimate_bytes_out(p);
        if (ret->bytes_out)
                ret->send_ms = to_ms(transfer_us(x, p->output_store, 1, (double)ret->bytes_out, true));
        add_price(p, price, ret);
        ret->wait_ms = x ? (int64_t)(x->wait_s * 1000) : 0;
        ret->total_ms = ret->wait_ms + cost_input_ms(ret) + ret->run_ms + ret->send_ms + ret->price_ms;
}

void cost_of(struct core *c, const struct part *p, uint32_t member, const struct queue *q,
             struct core_cost *ret)
{
        struct sum s = {.profile = q->profile, .agent = q->agent, .cost = ret};

        *ret = (struct core_cost){0};
        inputs_each(c, p->inputs, member, add_input, &s);
        ret->fetch_ms = to_ms(s.fetch_us);
        ret->image_ms = to_ms(s.image_us);
        ret->environment_ms = to_ms(s.environment_us);
        add_place(c, p, q->profile, q->price, ret);
}

/* ---- of places that are alike */

void cost_load_add(struct cost_load *l, const struct input *f, double share)
{
        unsigned i = 0;

        while (i < l->count && l->stores[i].store != f->store)
                i++;
        if (i == COST_STORES_MAX)
                i--; /* as if it came from the last one */
        if (i == l->count)
                l->stores[l->count++] = (struct cost_store){.store = f->store};
        l->stores[i].files += share;
        l->stores[i].bytes += share * (double)f->bytes;
}

int64_t cost_of_load_ms(struct core *c, const struct part *p, const struct cost_load *l,
                        const struct profile *x)
{
        struct core_cost cost = {0};
        double us = 0;

        for (unsigned i = 0; i < l->count; i++)
                us += transfer_us(x, l->stores[i].store, l->stores[i].files, l->stores[i].bytes, false);
        cost.fetch_ms = to_ms(us);
        add_place(c, p, x, x->price, &cost);
        return cost.total_ms;
}

void cost_wait(struct core_cost *cost, int64_t wait_ms)
{
        if (wait_ms <= cost->wait_ms)
                return;
        cost->total_ms += wait_ms - cost->wait_ms;
        cost->wait_ms = wait_ms;
}
