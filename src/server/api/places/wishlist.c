/* GET /v1/wishlist: which machines the queue would start and stop now, for whose jobs, and for each shape
 * why there are not more. */
#include "core/query.h"
#include "server/api/routes.h"
#include "server/provision/provision.h"

static double money(int64_t micro)
{
        return (double)micro / 1e6;
}

static void write_money(struct json *j, const char *key, int64_t micro)
{
        json_key(j, key);
        if (micro < 0)
                json_null(j);
        else
                json_double(j, money(micro));
}

static void write_provisioners(struct json *j, struct server *s)
{
        json_key(j, "provisioners");
        json_open(j, '[');
        for (size_t i = 0; i < provision_count(s); i++) {
                struct provision_status p;

                provision_status_get(s, i, &p);
                json_open(j, '{');
                json_kstrz(j, "name", p.name);
                json_kstrz(j, "kind", p.kind);
                json_kbool(j, "listed", p.listed);
                json_kint(j, "instances", (int64_t)p.instances);
                json_kint(j, "unwanted", (int64_t)p.unwanted);
                json_kstrz(j, "error", p.error);
                json_close(j, '}');
        }
        json_close(j, ']');
}

/* Writes owners of jobs only for callers who may see the jobs. */
static void write_who(struct json *j, struct call *c, const struct wishlist *w, size_t demand)
{
        const struct wishlist_demand *d = &w->who[demand];

        json_kstr(j, "account", w->demands[demand].account);
        if (!call_may(c, d->owner))
                return;
        json_kint(j, "request", (int64_t)d->request);
        json_kint(j, "job", d->member);
        json_kstr(j, "owner", d->owner);
}

static void write_wishes(struct json *j, struct call *c, const struct wishlist *w,
                         const struct wishlist_settings *s)
{
        json_key(j, "wishes");
        json_open(j, '[');
        for (size_t i = 0; i < w->plan.wish_count; i++) {
                const struct plan_wish *x = &w->plan.wishes[i];

                json_open(j, '{');
                json_kstr(j, "provisioner", s->shapes[x->shape].provisioner);
                json_kstr(j, "shape", w->shapes[x->shape].name);
                json_kint(j, "nodes", x->nodes);
                json_kbool(j, "minimum", x->demand == PLAN_NONE);
                if (x->demand != PLAN_NONE) {
                        json_kint(j, "jobs", (int64_t)w->demands[x->demand].jobs);
                        json_kint(j, "fetch_ms", w->demands[x->demand].fetch_ms[x->shape]);
                        if (x->lasts_ms)
                                json_kint(j, "lasts_ms", x->lasts_ms);
                        write_who(j, c, w, x->demand);
                }
                json_close(j, '}');
        }
        json_close(j, ']');
}

static void write_shapes(struct json *j, const struct wishlist *w, const struct wishlist_settings *s)
{
        json_key(j, "shapes");
        json_open(j, '[');
        for (size_t i = 0; i < w->in.shape_count; i++) {
                const struct plan_shape *x = &w->shapes[i];
                uint32_t most = s->plan.provisioners[x->provisioner].max;

                json_open(j, '{');
                json_kstr(j, "provisioner", s->shapes[i].provisioner);
                json_kstr(j, "shape", x->name);
                json_kint(j, "cpus", x->room.cpus);
                json_kint(j, "memory_mib", x->room.memory_mib);
                write_money(j, "price", x->price_micro);
                json_kint(j, "nodes", w->plan.shapes[i].nodes);
                json_kint(j, "wished", w->plan.shapes[i].wished);
                json_kint(j, "min", x->min);
                json_kint(j, "max", x->max < most ? x->max : most); /* a shape without max has a huge one */
                json_key(j, "boot_ms");
                if (x->boot_ms)
                        json_int(j, x->boot_ms);
                else
                        json_null(j);
                json_kstrz(j, "why", plan_reason_text(w->plan.shapes[i].why));
                json_kstrz(j, "closed", x->closed);
                json_close(j, '}');
        }
        json_close(j, ']');
}

static void write_demands(struct json *j, struct call *c, const struct wishlist *w)
{
        json_key(j, "demands");
        json_open(j, '[');
        for (size_t i = 0; i < w->in.demand_count; i++) {
                const struct plan_demand *d = &w->demands[i];
                uint64_t served = w->plan.demands[i].placed + w->plan.demands[i].wished;

                json_open(j, '{');
                json_kint(j, "jobs", (int64_t)d->jobs);
                json_kint(j, "at_a_time", (int64_t)d->slots);
                json_kint(j, "cpus", d->need.cpus);
                json_kint(j, "memory_mib", d->need.memory_mib);
                json_kint(j, "on_nodes", (int64_t)w->plan.demands[i].placed);
                json_kint(j, "on_wished", (int64_t)w->plan.demands[i].wished);
                json_kint(j, "left", (int64_t)(d->slots - served));
                json_kstrz(j, "why", served < d->slots ? plan_reason_text(w->plan.demands[i].why) : NULL);
                write_who(j, c, w, i);
                json_close(j, '}');
        }
        json_close(j, ']');
}

static void write_leaving(struct json *j, const struct wishlist *w)
{
        json_key(j, "leaving");
        json_open(j, '[');
        for (size_t i = 0; i < w->in.node_count; i++) {
                if (!w->plan.leaves[i])
                        continue;
                json_open(j, '{');
                json_kstrz(j, "name", w->names[i]);
                json_kstrz(j, "why",
                           w->plan.leaves[i] == PLAN_LEAVES_IDLE
                                   ? "it has nothing to do, and its time is over"
                                   : "the budget of the month is spent");
                json_close(j, '}');
        }
        json_close(j, ']');
}

static void read_wishlist(struct server *s, struct call *c)
{
        const struct wishlist_settings *settings = NULL;
        struct json j = {.out = &c->out};
        struct wishlist w = {0};

        if (provision_count(s))
                provision_wishlist(s, &w, &settings);
        json_open(&j, '{');
        write_provisioners(&j, s);
        write_money(&j, "spent_month", core_spent_micro(s->core));
        write_money(&j, "budget_month", s->config.provision.month_micro);
        write_money(&j, "budget_hour", s->config.provision.hour_micro);
        write_wishes(&j, c, &w, settings);
        write_shapes(&j, &w, settings);
        write_demands(&j, c, &w);
        write_leaving(&j, &w);
        json_kint(&j, "left_out", (int64_t)w.left_out);
        json_close(&j, '}');
        wishlist_deinit(&w);
        call_reply(c);
}

void api_wishlist(struct server *s, struct call *c)
{
        (void)s;
        call_yield_to_client(c, read_wishlist); /* a plan takes as long as a slice: one in a turn */
}
