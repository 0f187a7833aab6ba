#include "core/wishlist/wishlist.h"

#include "base/mem.h"
#include "classad/match.h"
#include "core/accounts/share.h"
#include "core/estimate/busy.h"
#include "core/estimate/estimate.h"
#include "core/model/core_parts.h"
#include "core/model/job_class.h"
#include "core/model/need.h"
#include "core/model/suits.h"

struct making {
        struct core *c;
        const struct wishlist_settings *s;
        struct wishlist *w;
        size_t node_cap;
        const struct ad **ads; /* ad of each shape */
        unsigned looked;       /* number of classes examined */
        bool shared;           /* an account that has had its share waits until all have */
        const struct job_class **deferred;
        size_t deferred_count;
};

static size_t shape_find(const struct wishlist_settings *s, const struct node_instance *i)
{
        for (size_t k = 0; k < s->plan.shape_count; k++)
                if (str_eq(s->plan.shapes[k].name, i->shape) &&
                    str_eq(s->shapes[k].provisioner, i->provisioner))
                        return k;
        return PLAN_NONE;
}

static size_t provisioner_find(const struct wishlist_settings *s, struct str name)
{
        for (size_t k = 0; k < s->plan.provisioner_count; k++)
                if (str_eq(s->provisioners[k], name))
                        return k;
        return PLAN_NONE;
}

/* ---- nodes */

/* Returns the node's queue with the most resources. */
static struct queue *queue_of(struct core *c, const struct core_agent *a)
{
        struct queue *best = NULL;
        int64_t most = -1, cpus;

        for (struct queue *q = a->queues; q; q = q->next) {
                cpus = 0;
                if (q->ad && eval_integer(&c->eval, q->ad, NULL, c->attr.TotalCpus, &cpus) && cpus > most) {
                        most = cpus;
                        best = q;
                }
        }
        return best;
}

static void room_of(struct core *c, const struct ad *ad, struct plan_room *ret)
{
        *ret = (struct plan_room){0};
        eval_integer(&c->eval, ad, NULL, c->attr.Cpus, &ret->cpus);
        eval_integer(&c->eval, ad, NULL, c->attr.Memory, &ret->memory_mib);
        eval_integer(&c->eval, ad, NULL, c->attr.Disk, &ret->disk_kib);
}

/* Computes the node's room within the horizon: everything it has where jobs end soon. */
static void room_for(struct making *m, const struct core_agent *a, const struct plan_shape *shape,
                     struct plan_room *ret)
{
        struct queue *q = queue_of(m->c, a);
        int64_t wait;

        *ret = (struct plan_room){0};
        if (!q || !agent_is_open(a, m->c->steady_ms))
                return;
        wait = q->attempts ? busy_wait_ms(m->c, q, 0) : BUSY_UNKNOWN;
        if (wait < m->s->horizon_ms / 4)
                *ret = shape->room;
        else if (q->offers && q->jobs_left > 0 && !q->closed && !q->unreachable)
                room_of(m->c, q->ad, ret);
}

static enum plan_node_state state_of(const struct core_agent *a)
{
        switch (node_state_of(&a->node)) {
        case NODE_BOOTING: return PLAN_NODE_BOOTS;
        case NODE_UP: return PLAN_NODE_RUNS;
        case NODE_FAILED: return PLAN_NODE_LEAVES;
        default:
                return a->node.by && strcmp(a->node.by, NODE_BY_WISH) == 0 ? PLAN_NODE_LEAVES
                                                                           : PLAN_NODE_CLOSED;
        }
}

static void node_add(struct making *m, const char *name, const struct plan_node *n)
{
        struct wishlist *w = m->w;

        if (w->in.node_count == m->node_cap) {
                m->node_cap = m->node_cap ? 2 * m->node_cap : 16;
                w->nodes = mem_array(w->nodes, m->node_cap, sizeof(*w->nodes));
                w->names = mem_array(w->names, m->node_cap, sizeof(*w->names));
        }
        w->names[w->in.node_count] = name;
        w->nodes[w->in.node_count++] = *n;
}

static void look_at_node(struct making *m, struct core_agent *a)
{
        struct plan_node n = {.idle_ms = -1};
        struct node_instance i;
        struct queue *q;

        if (agent_attempts(a) > 0)
                a->empty_since_ms = 0;
        else if (!a->empty_since_ms)
                a->empty_since_ms = m->c->steady_ms ? m->c->steady_ms : 1;
        if (!node_instance_of(&a->node, &i))
                return;
        n.shape = shape_find(m->s, &i);
        n.provisioner = provisioner_find(m->s, i.provisioner);
        if (n.shape != PLAN_NONE && a->node.boot_ms > m->w->boot_ms[n.shape])
                m->w->boot_ms[n.shape] = a->node.boot_ms;
        if (n.provisioner == PLAN_NONE || node_state_of(&a->node) == NODE_RETIRED)
                return;
        n.state = state_of(a);
        n.account = i.account;
        n.price_micro = i.price_micro;
        n.paid_left_ms = i.paid_until_ms - m->c->now_ms;
        if (a->empty_since_ms)
                n.idle_ms = m->c->steady_ms - a->empty_since_ms;
        if (n.shape != PLAN_NONE && n.state == PLAN_NODE_RUNS)
                room_for(m, a, &m->s->plan.shapes[n.shape], &n.free);
        q = n.shape != PLAN_NONE && !m->w->learned[n.shape] && a->connected ? queue_of(m->c, a) : NULL;
        if (q)
                m->ads[n.shape] = m->w->learned[n.shape] = queue_whole_ad(m->c, q);
        node_add(m, a->name, &n);
}

/* ---- jobs */

static struct str account_of(const struct job_class *k)
{
        struct str path = k->account ? str_of(k->account->path) : STR_NONE;
        ptrdiff_t slash = str_find(path, '/');

        return slash < 0 ? path : str_head(path, (size_t)slash);
}

static bool may_wish(struct core *c, const struct job_class *k)
{
        return !k->asleep && !k->leaks && !k->overrun && !k->waits.limit && !k->places && !k->labels &&
               !k->kept_back && k->not_before_ms <= c->now_ms;
}

static bool suits(struct making *m, const struct job_class *k, size_t shape)
{
        struct core *c = m->c;
        bool yes = owners_allow(&m->s->shapes[shape].owners, str_of(k->owner)) &&
                   match_one_way(&c->eval, k->ad, m->ads[shape]) &&
                   match_one_way(&c->eval, m->ads[shape], k->ad);

        eval_reset(&c->eval);
        return yes;
}

/* Finds the shapes that suit the class. Expressions within the limit of one evaluation may still take long,
 * so an account has a number of steps in each plan. */
static bool suits_any(struct making *m, const struct job_class *k, bool *fits)
{
        uint64_t before = m->c->eval.steps_all;
        bool any = false;

        if (!may_wish(m->c, k) || (k->account && k->account->wished.steps > WISHLIST_STEPS_OF_ONE))
                return false;
        for (size_t i = 0; i < m->s->plan.shape_count; i++)
                any |= fits[i] = suits(m, k, i);
        if (k->account)
                k->account->wished.steps += m->c->eval.steps_all - before;
        return any;
}

/* Returns how many of its jobs want to run at a time. */
static uint64_t slots_of(struct making *m, const struct job_class *k, uint64_t jobs)
{
        const struct part *p = job_class_first_part(k);
        bool known;
        int64_t run_ms;
        double slots;

        if (estimate_is_blind(m->c, p))
                return jobs;
        run_ms = estimate_run_ms(m->c, p, NULL, &known);
        if (!known || run_ms >= m->s->horizon_ms)
                return jobs;
        slots = (double)jobs * (double)(run_ms > 0 ? run_ms : 1) / (double)m->s->horizon_ms;
        return slots < 1 ? 1 : slots > (double)jobs ? jobs : (uint64_t)slots;
}

static bool alike(const struct making *m, const struct plan_demand *a, const struct plan_demand *b)
{
        return a->need.cpus == b->need.cpus && a->need.memory_mib == b->need.memory_mib &&
               a->need.disk_kib == b->need.disk_kib && str_eq(a->account, b->account) &&
               memcmp(a->suits, b->suits, m->s->plan.shape_count * sizeof(bool)) == 0;
}

static void defer_class(struct making *m, const struct job_class *k)
{
        if (m->deferred_count < WISHLIST_CLASSES_MAX)
                m->deferred[m->deferred_count++] = k;
        else
                m->w->left_out += k->idle;
}

static void demand_add(struct making *m, const struct job_class *k, const struct plan_demand *d)
{
        struct wishlist *w = m->w;
        const struct bucket *b = job_class_first_bucket(k);
        uint64_t first = set_next(&b->idle, 0);
        size_t i = 0;

        while (i < w->in.demand_count && !alike(m, &w->demands[i], d))
                i++;
        if (m->shared && i == w->in.demand_count && k->account &&
            k->account->wished.demands == WISHLIST_DEMANDS_OF_ONE) {
                defer_class(m, k);
                return;
        }
        if (i == WISHLIST_DEMANDS_MAX) {
                w->left_out += d->jobs;
                return;
        }
        if (i == w->in.demand_count) {
                bool *own = w->suits + i * (m->s->plan.shape_count + 1);

                memcpy(own, d->suits, m->s->plan.shape_count * sizeof(bool));
                w->demands[i] = *d;
                w->demands[i].suits = own;
                w->who[i] = (struct wishlist_demand){.request = b->request->id,
                                                     .member = first == SET_END ? 0 : (uint32_t)first,
                                                     .owner = str_of(k->owner)};
                w->in.demand_count++;
                if (k->account)
                        k->account->wished.demands++;
        } else {
                w->demands[i].jobs += d->jobs;
                w->demands[i].slots += d->slots;
        }
        w->who[i].classes++;
}

static void look_at_class(struct making *m, const struct job_class *k)
{
        struct core *c = m->c;
        size_t shapes = m->s->plan.shape_count;
        MEM_CLEANUP bool *fits = mem_zalloc((shapes + 1) * sizeof(*fits));
        struct plan_demand d = {.jobs = k->idle, .account = account_of(k), .suits = fits};
        uint64_t before;
        struct need need;

        if (c->now_ms - job_class_first_bucket(k)->request->submitted_ms < m->s->wait_ms)
                return;
        if (!suits_any(m, k, fits)) {
                m->w->left_out += k->idle;
                return;
        }
        before = c->eval.steps_all;
        need_of(c, k, k->ad, m->ads[0], &need);
        if (k->account)
                k->account->wished.steps += c->eval.steps_all - before;
        eval_reset(&c->eval);
        d.need = (struct plan_room){need.cpus, need.memory_mib, need.disk_kib};
        d.slots = slots_of(m, k, k->idle);
        demand_add(m, k, &d);
}

static void look_or_leave(struct making *m, const struct job_class *k)
{
        if (m->looked++ < WISHLIST_CLASSES_MAX)
                look_at_class(m, k);
        else
                m->w->left_out += k->idle;
}

/* Examines the classes, which are in no order, in turns of accounts: otherwise an account with many classes
 * could take up a whole plan. */
static void look_at_jobs(struct making *m)
{
        const struct map *all = m->c->classes->by_key;
        struct account *a;
        void *value;

        if (!m->s->plan.shape_count)
                return;
        for (size_t at = 0; map_next(all, &at, NULL, &value);)
                if ((a = ((const struct job_class *)value)->account))
                        memset(&a->wished, 0, sizeof(a->wished));
        m->deferred = mem_array(NULL, WISHLIST_CLASSES_MAX, sizeof(*m->deferred));
        m->shared = true;
        for (size_t at = 0; map_next(all, &at, NULL, &value);) {
                const struct job_class *k = value;

                if (k->idle && k->account && k->account->wished.classes++ >= WISHLIST_CLASSES_OF_ONE)
                        defer_class(m, k);
                else if (k->idle)
                        look_or_leave(m, k);
        }
        m->shared = false;
        for (size_t i = 0; i < m->deferred_count; i++)
                look_or_leave(m, m->deferred[i]);
        free(m->deferred);
}

void wishlist_make(struct core *c, const struct wishlist_settings *s, struct wishlist *ret)
{
        struct making m = {.c = c, .s = s, .w = ret};
        size_t shapes = s->plan.shape_count;
        void *value;

        *ret = (struct wishlist){.in = s->plan};
        ret->in.node_count = ret->in.demand_count = 0;
        ret->boot_ms = mem_zalloc((shapes + 1) * sizeof(*ret->boot_ms));
        ret->suits = mem_zalloc(WISHLIST_DEMANDS_MAX * (shapes + 1) * sizeof(bool));
        ret->demands = mem_zalloc(WISHLIST_DEMANDS_MAX * sizeof(*ret->demands));
        ret->who = mem_zalloc(WISHLIST_DEMANDS_MAX * sizeof(*ret->who));
        ret->shapes = mem_zalloc((shapes + 1) * sizeof(*ret->shapes));
        ret->learned = mem_zalloc((shapes + 1) * sizeof(*ret->learned));
        m.ads = mem_zalloc((shapes + 1) * sizeof(*m.ads));
        for (size_t i = 0; i < shapes; i++)
                m.ads[i] = s->shapes[i].ad;
        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);)
                look_at_node(&m, value);
        look_at_jobs(&m);
        for (size_t i = 0; i < shapes; i++) {
                ret->shapes[i] = s->plan.shapes[i];
                ret->shapes[i].boot_ms = ret->boot_ms[i];
        }
        free(m.ads);
        ret->in.shapes = ret->shapes;
        ret->in.nodes = ret->nodes;
        ret->in.demands = ret->demands;
        ret->in.rules.spent_micro = core_spent_micro(c);
        plan_make(&ret->in, &ret->plan);
}

void wishlist_deinit(struct wishlist *w)
{
        for (size_t i = 0; w->learned && i < w->in.shape_count; i++)
                ad_free(w->learned[i]);
        free(w->learned);
        plan_deinit(&w->plan);
        free(w->suits);
        free(w->boot_ms);
        free(w->shapes);
        free(w->nodes);
        free(w->names);
        free(w->demands);
        free(w->who);
        *w = (struct wishlist){0};
}
