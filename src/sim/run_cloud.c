/* Nodes that come and go in a simulation: agents of a cluster with `cloud` exist only while the wishlist
 * wants them. The plan is the server's (core/wishlist), made every PLAN_MS; what the server's provisioners do
 * with it is done here: a node boots for some time, runs, is drained, and goes. An interrupted one is lost
 * with its jobs. Each such cluster is a provisioner with one shape. */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "core/wishlist/wishlist.h"
#include "sim/run_state.h"

#define PLAN_MS    15000
#define HORIZON_MS 600000 /* droverd's defaults */
#define HOUR_MS    3600000.0
#define MICRO      1e6
#define DISK_KIB   (1ll << 30)

struct cloud { /* one element for each cluster that comes and goes */
        size_t count;
        uint32_t *clusters;
        struct plan_provisioner *provisioners;
        struct plan_shape *plan_shapes;
        struct wishlist_shape *shapes;
        struct str *names;
        struct wishlist_settings settings;
};

static const struct sim_cloud *cloud_of(const struct place *p)
{
        return &p->cluster->cloud;
}

bool run_place_is_cloud(const struct place *p)
{
        return p->cluster->cloud.boot_ms > 0;
}

static struct ad *shape_ad(struct run *r, const struct sim_cluster *c)
{
        char text[320];
        struct ad *ad = NULL;
        int n = snprintf(text, sizeof(text),
                         "[ Cpus = %u; Memory = %" PRIu64
                         "; Disk = 1000000000; TotalCpus = %u; TotalMemory = %" PRIu64
                         "; Speed = %g; Requirements = TARGET.RequestCpus <= MY.TotalCpus ]",
                         c->cpus, c->memory_mib, c->cpus, c->memory_mib, c->speed);
        struct err err;

        if (ad_parse(core_symbols(sim_world_core(r->world)), str_make(text, (size_t)n), CLASSAD_NEW, &ad,
                     &err))
                sim_world_violation(r->world, "the ad of a shape: %s", err.text);
        return ad;
}

static void cloud_add(struct run *r, struct cloud *x, size_t cluster)
{
        const struct sim_cluster *c = &r->site->clusters[cluster];
        size_t n = x->count++;

        x->clusters[n] = (uint32_t)cluster;
        x->names[n] = str_of(c->name);
        x->provisioners[n] = (struct plan_provisioner){
                .max = c->agents,
                .period_ms = c->cloud.period_ms,
                .stop_ms = c->cloud.period_ms < 2 * PLAN_MS ? c->cloud.period_ms : 2 * PLAN_MS,
                .idle_ms = c->cloud.idle_ms};
        x->plan_shapes[n] = (struct plan_shape){.name = str_of(c->name),
                                                .provisioner = n,
                                                .room = {c->cpus, (int64_t)c->memory_mib, DISK_KIB},
                                                .price_micro = (int64_t)(c->price * MICRO),
                                                .max = c->agents};
        x->shapes[n] = (struct wishlist_shape){.provisioner = str_of(c->name), .ad = shape_ad(r, c)};
}

void run_cloud_make(struct run *r)
{
        size_t n = r->site->count;
        struct cloud *x;

        for (size_t k = 0; k < r->site->count; k++)
                n -= r->site->clusters[k].cloud.boot_ms == 0;
        if (n == 0)
                return;
        r->cloud = x = mem_new(struct cloud);
        x->clusters = mem_zalloc(n * sizeof(*x->clusters));
        x->provisioners = mem_zalloc(n * sizeof(*x->provisioners));
        x->plan_shapes = mem_zalloc(n * sizeof(*x->plan_shapes));
        x->shapes = mem_zalloc(n * sizeof(*x->shapes));
        x->names = mem_zalloc(n * sizeof(*x->names));
        for (size_t k = 0; k < r->site->count; k++)
                if (r->site->clusters[k].cloud.boot_ms)
                        cloud_add(r, x, k);
        x->settings =
                (struct wishlist_settings){.plan = {.provisioners = x->provisioners,
                                                    .provisioner_count = n,
                                                    .shapes = x->plan_shapes,
                                                    .shape_count = n,
                                                    .rules = {.max = r->site->budget.nodes,
                                                              .hour_micro = r->site->budget.hour_micro,
                                                              .month_micro = r->site->budget.month_micro}},
                                           .shapes = x->shapes,
                                           .provisioners = x->names,
                                           .horizon_ms = HORIZON_MS};
        r->plan.kind = TIMER_PLAN;
        run_timer_set(r, &r->plan, run_now(r));
}

void run_cloud_free(struct run *r)
{
        struct cloud *x = r->cloud;

        if (!x)
                return;
        for (size_t i = 0; i < x->count; i++)
                ad_free((struct ad *)(uintptr_t)x->shapes[i].ad);
        free(x->clusters);
        free(x->provisioners);
        free(x->plan_shapes);
        free(x->shapes);
        free(x->names);
        free(x);
}

/* ---- a node's life */

/* Never more nodes than allowed, and never more money for an hour or a month than the site has. */
static void check_budget(struct run *r)
{
        const struct sim_budget *b = &r->site->budget;
        int64_t micro = 0, spent = core_spent_micro(sim_world_core(r->world));
        uint32_t nodes = 0;

        for (size_t i = 0; i < r->place_count; i++)
                if (run_place_is_cloud(&r->places[i]) && r->places[i].launched_ms >= 0) {
                        nodes++;
                        micro += (int64_t)(r->places[i].cluster->price * MICRO);
                }
        if (b->nodes && nodes > b->nodes)
                sim_world_violation(r->world, "%u nodes, of which there may be %u", nodes, b->nodes);
        if (b->hour_micro >= 0 && micro > b->hour_micro)
                sim_world_violation(r->world, "nodes for %g an hour, which may cost %g",
                                    (double)micro / MICRO, (double)b->hour_micro / MICRO);
        if (b->month_micro >= 0 && spent > b->month_micro)
                sim_world_violation(r->world, "%g spent in a month, which may cost %g", (double)spent / MICRO,
                                    (double)b->month_micro / MICRO);
}

static void set_state(struct run *r, struct place *p, enum node_state to, const char *why,
                      int64_t deadline_ms)
{
        const struct core_node_order o = {.agent = p->name,
                                          .to = to,
                                          .by = STR(NODE_BY_WISH),
                                          .reason = str_of(why),
                                          .deadline_ms = deadline_ms};
        struct err err;

        if (core_node_set(sim_world_core(r->world), &o, &err))
                sim_world_violation(r->world, "%s: %s", p->name, err.text);
}

/* Counts the time since the node's start, and whole periods of it. */
static void settle(struct run *r, struct place *p)
{
        int64_t ms = run_now(r) - p->launched_ms, period = cloud_of(p)->period_ms;

        r->m->node_hours += (double)ms / HOUR_MS;
        ms += period - 1;
        ms -= ms % period;
        r->m->cost += p->cluster->price * (double)ms / HOUR_MS;
        p->launched_ms = -1;
}

static struct node_instance instance_of(const struct run *r, const struct place *p)
{
        int64_t price = (int64_t)(p->cluster->price * MICRO), period = cloud_of(p)->period_ms;

        return (struct node_instance){.provisioner = str_of(p->cluster->name),
                                      .shape = str_of(p->cluster->name),
                                      .launch = STR("1"),
                                      .price_micro = price,
                                      .paid_until_ms =
                                              run_now(r) - (run_now(r) - p->launched_ms) % period + period,
                                      .cost_micro = plan_period_micro(price, period)};
}

static void launch(struct run *r, size_t shape)
{
        uint32_t cluster = r->cloud->clusters[shape];

        for (size_t i = 0; i < r->place_count; i++) {
                struct place *p = &r->places[i];
                struct node_instance n;
                struct err err;

                if (p->cluster_index != cluster || p->launched_ms >= 0)
                        continue;
                p->launched_ms = run_now(r);
                n = instance_of(r, p);
                if (core_node_launch(sim_world_core(r->world), p->name, &n, &err))
                        sim_world_violation(r->world, "%s is not launched: %s", p->name, err.text);
                run_timer_set(r, &p->timer, run_now(r) + cloud_of(p)->boot_ms); /* run_place_start follows */
                r->m->nodes_started++;
                return;
        }
}

/* The node is gone: it was drained, or has been interrupted. */
void run_cloud_retire(struct run *r, struct place *p, const char *why)
{
        run_timer_stop(r, &p->timer);
        set_state(r, p, NODE_RETIRED, why, 0);
        settle(r, p);
}

static void look_at_node(struct run *r, struct place *p)
{
        struct core *core = sim_world_core(r->world);
        struct core_node n;

        if (p->launched_ms < 0 || core_node_get(core, p->name, &n))
                return;
        if (n.instance.paid_until_ms <= run_now(r)) {
                struct node_instance next = instance_of(r, p);

                core_node_instance(core, p->name, &next);
        }
        if (n.state == NODE_DRAINED) {
                p->up = false;
                core_agent_away(core, p->name);
                run_cloud_retire(r, p, "it is drained");
        }
}

struct leave {
        struct place *place;
        int64_t deadline_ms; /* 0: none */
};

void run_cloud_plan(struct run *r)
{
        struct wishlist w;

        for (size_t i = 0; i < r->place_count; i++)
                if (run_place_is_cloud(&r->places[i]))
                        look_at_node(r, &r->places[i]);
        wishlist_make(sim_world_core(r->world), &r->cloud->settings, &w);
        struct leave *leave = mem_zalloc((w.in.node_count + 1) * sizeof(*leave));
        size_t leaving = 0;

        for (size_t i = 0; i < w.in.node_count; i++)
                if (w.plan.leaves[i])
                        leave[leaving++] =
                                (struct leave){map_get(r->places_by_name, str_of(w.names[i])),
                                               w.plan.leaves[i] == PLAN_LEAVES_MONTH
                                                       ? run_now(r) + w.nodes[i].paid_left_ms / 2 + 1
                                                       : 0};
        for (size_t i = 0; i < w.plan.wish_count; i++)
                for (uint32_t k = 0; k < w.plan.wishes[i].nodes; k++)
                        launch(r, w.plan.wishes[i].shape);
        for (size_t i = 0; i < leaving; i++)
                set_state(r, leave[i].place, NODE_DRAINING,
                          leave[i].deadline_ms ? "the budget of the month is spent"
                                               : "it has nothing to do, and its time is over",
                          leave[i].deadline_ms);
        free(leave);
        wishlist_deinit(&w);
        check_budget(r);
        run_timer_set(r, &r->plan, run_now(r) + PLAN_MS);
}

/* Counts the nodes that are there at the end, and those that were there all the time. */
void run_cloud_end(struct run *r, int64_t makespan_ms)
{
        for (size_t i = 0; i < r->place_count; i++) {
                struct place *p = &r->places[i];

                if (!run_place_is_cloud(p)) {
                        r->m->node_hours += (double)makespan_ms / HOUR_MS;
                        r->m->cost += p->cluster->price * (double)makespan_ms / HOUR_MS;
                } else if (p->launched_ms >= 0) {
                        settle(r, p);
                }
        }
}
