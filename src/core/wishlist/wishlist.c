#include "core/wishlist/wishlist.h"

#include "base/mem.h"
#include "classad/match.h"
#include "core/accounts/share.h"
#include "core/data/cost.h"
#include "core/data/data_state.h"
#include "core/data/inputs.h"
#include "core/estimate/busy.h"
#include "core/estimate/estimate.h"
#include "core/model/core_parts.h"
#include "core/model/job_class.h"
#include "core/model/need.h"
#include "core/model/suits.h"

#define SAMPLES 16u /* jobs of a class that are looked at */

struct making {
        struct core *c;
        const struct wishlist_settings *s;
        struct wishlist *w;
        size_t node_cap;
        const struct ad **ads; /* ad of each shape */
        /* for each shape: an agent, present or past, whose links a new one will have; NULL: none known */
        const struct core_agent **like;
        unsigned looked; /* number of classes examined */
        bool shared;     /* an account that has had its share waits until all have */
        double *slots;   /* for each demand: places at a time that its jobs want */
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
        if (n.shape != PLAN_NONE && a->data && a->data->link_count && (a->connected || !m->like[n.shape]))
                m->like[n.shape] = a;
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
        uint64_t before = core_steps(m->c);
        bool any = false;

        if (!may_wish(m->c, k) || (k->account && k->account->wished.steps > WISHLIST_STEPS_OF_ONE))
                return false;
        for (size_t i = 0; i < m->s->plan.shape_count; i++)
                any |= fits[i] = suits(m, k, i);
        if (k->account)
                k->account->wished.steps += core_steps(m->c) - before;
        return any;
}

/* Returns how many of some jobs want to run at a time, if each is busy so long. */
static double slots_of(const struct making *m, uint64_t jobs, int64_t busy_ms)
{
        if (busy_ms >= m->s->horizon_ms)
                return (double)jobs;
        return (double)jobs * (double)busy_ms / (double)m->s->horizon_ms;
}

/* Sets how long the member, which stands for d->jobs, runs, and how long a new node of each shape takes to
 * fetch its files. What the provider has put into a machine is not known. Returns how many of the jobs want
 * to run at a time. */
static double set_times(struct making *m, const struct part *p, uint32_t member, int64_t *fetch_ms,
                        struct plan_demand *d)
{
        int64_t least = INT64_MAX;
        struct cost_load load;
        bool known = false;

        cost_load_of(m->c, p, member, &load);
        for (size_t i = 0; i < m->s->plan.shape_count; i++) {
                fetch_ms[i] = cost_load_fetch_by_ms(&load, m->like[i]);
                if (d->suits[i] && fetch_ms[i] < least)
                        least = fetch_ms[i];
        }
        d->fetch_ms = fetch_ms;
        d->run_ms = estimate_is_blind(m->c, p) ? 0 : estimate_run_ms(m->c, p, NULL, &known);
        if (!known) {
                d->run_ms = 0;
                return (double)d->jobs;
        }
        d->run_ms = d->run_ms > 0 ? d->run_ms : 1;
        return slots_of(m, d->jobs, d->run_ms + least);
}

static bool times_alike(int64_t a, int64_t b)
{
        int64_t apart = a > b ? a - b : b - a;

        return apart <= 10000 || apart <= (a > b ? a : b) / 4;
}

/* Returns whether new nodes of all shapes take about as long for the two. */
static bool data_alike(const struct making *m, const struct plan_demand *a, const struct plan_demand *b)
{
        for (size_t i = 0; i < m->s->plan.shape_count; i++)
                if (a->suits[i] && !times_alike(a->fetch_ms[i], b->fetch_ms[i]))
                        return false;
        return true;
}

static bool alike(const struct making *m, const struct plan_demand *a, const struct plan_demand *b)
{
        return a->need.cpus == b->need.cpus && a->need.memory_mib == b->need.memory_mib &&
               a->need.disk_kib == b->need.disk_kib && str_eq(a->account, b->account) &&
               memcmp(a->suits, b->suits, m->s->plan.shape_count * sizeof(bool)) == 0 && data_alike(m, a, b);
}

static void defer_class(struct making *m, const struct job_class *k)
{
        if (m->deferred_count < WISHLIST_CLASSES_MAX)
                m->deferred[m->deferred_count++] = k;
        else
                m->w->left_out += k->idle;
}

/* Adds jobs of the class, of which the member is one. Returns the number of their demand; PLAN_NONE: the
 * class is deferred, or left out. `joined`: the demand of other jobs of the class, which takes these too if
 * there is no room for one of their own; PLAN_NONE: they are the first. */
static size_t demand_add(struct making *m, const struct bucket *b, uint32_t member,
                         const struct plan_demand *d, double slots, size_t joined)
{
        const struct job_class *k = b->job_class;
        struct wishlist *w = m->w;
        size_t i = 0;

        while (i < w->in.demand_count && !alike(m, &w->demands[i], d))
                i++;
        if (i == w->in.demand_count &&
            (i == WISHLIST_DEMANDS_MAX ||
             (m->shared && k->account && k->account->wished.demands == WISHLIST_DEMANDS_OF_ONE))) {
                if (joined == PLAN_NONE) {
                        if (i < WISHLIST_DEMANDS_MAX)
                                defer_class(m, k);
                        else
                                w->left_out += k->idle;
                        return PLAN_NONE;
                }
                i = joined;
        }
        if (i == w->in.demand_count) {
                bool *own = w->suits + i * (m->s->plan.shape_count + 1);
                int64_t *fetch_ms = w->fetch_ms + i * (m->s->plan.shape_count + 1);

                memcpy(own, d->suits, m->s->plan.shape_count * sizeof(bool));
                memcpy(fetch_ms, d->fetch_ms, m->s->plan.shape_count * sizeof(*fetch_ms));
                w->demands[i] = *d;
                w->demands[i].suits = own;
                w->demands[i].fetch_ms = fetch_ms;
                w->who[i] = (struct wishlist_demand){
                        .request = b->request->id, .member = member, .owner = str_of(k->owner)};
                w->in.demand_count++;
                if (k->account)
                        k->account->wished.demands++;
        } else {
                /* of the group's run times the longest that is known */
                if (d->run_ms > w->demands[i].run_ms)
                        w->demands[i].run_ms = d->run_ms;
                w->demands[i].jobs += d->jobs;
        }
        m->slots[i] += slots;
        return i;
}

/* The jobs of a class may read different files and run for different times: some of them, spread over its
 * requests and their members, stand for all. */
static void add_samples(struct making *m, const struct job_class *k, struct plan_demand *d)
{
        MEM_CLEANUP int64_t *fetch_ms = mem_zalloc((m->s->plan.shape_count + 1) * sizeof(*fetch_ms));
        size_t all = k->buckets.count, count = all < SAMPLES ? all : SAMPLES, joined = PLAN_NONE;
        uint64_t weight = 0, seen = 0, added = 0;

        for (size_t i = 0; i < count; i++)
                weight += set_count(
                        &container_of(k->buckets.nodes[i * all / count], struct bucket, node)->idle);
        for (size_t i = 0; i < count; i++) {
                const struct bucket *b = container_of(k->buckets.nodes[i * all / count], struct bucket, node);
                const struct part *p = request_part_at(b->request, b->part);
                uint64_t first = set_first(&b->idle), end = b->request->count, idle = set_count(&b->idle),
                         most = p->inputs ? SAMPLES / count : 1, n = idle < most ? idle : most;

                for (uint64_t j = 0; j < n; j++) {
                        uint64_t upto;

                        seen += idle * (j + 1) / n - idle * j / n;
                        upto = (uint64_t)((double)k->idle * (double)seen / (double)weight);
                        d->jobs = upto - added;
                        added = upto;
                        if (d->jobs) {
                                uint64_t at = set_next(&b->idle, first + (end - first) * j / n);
                                uint32_t member = (uint32_t)(at == SET_END ? first : at);
                                double slots = set_times(m, p, member, fetch_ms, d);

                                joined = demand_add(m, b, member, d, slots, joined);
                                if (joined == PLAN_NONE)
                                        return;
                        }
                }
        }
}

static void look_at_class(struct making *m, const struct job_class *k)
{
        struct core *c = m->c;
        MEM_CLEANUP bool *fits = mem_zalloc((m->s->plan.shape_count + 1) * sizeof(*fits));
        struct plan_demand d = {.account = account_of(k), .suits = fits};
        uint64_t before;
        struct need need;

        if (c->now_ms - job_class_first_bucket(k)->request->submitted_ms < m->s->wait_ms)
                return;
        if (!suits_any(m, k, fits)) {
                m->w->left_out += k->idle;
                return;
        }
        before = core_steps(c);
        need_of(c, k, k->ad, m->ads[0], &need);
        if (!need_is_possible(&need)) { /* no machine runs it, and it would make room there for others */
                m->w->left_out += k->idle;
                eval_reset(&c->eval);
                return;
        }
        d.need = (struct plan_room){need.cpus, need.memory_mib, need.disk_kib};
        add_samples(m, k, &d);
        if (k->account)
                k->account->wished.steps += core_steps(c) - before;
        eval_reset(&c->eval);
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
        for (size_t i = 0; i < m->w->in.demand_count; i++) {
                struct plan_demand *d = &m->w->demands[i];

                d->slots = m->slots[i] < 1                 ? 1
                           : m->slots[i] < (double)d->jobs ? (uint64_t)m->slots[i]
                                                           : d->jobs;
        }
}

void wishlist_make(struct core *c, const struct wishlist_settings *s, struct wishlist *ret)
{
        struct making m = {.c = c, .s = s, .w = ret};
        size_t shapes = s->plan.shape_count;
        void *value;

        *ret = (struct wishlist){.in = s->plan};
        ret->in.node_count = ret->in.demand_count = 0;
        ret->boot_ms = mem_zalloc((shapes + 1) * sizeof(*ret->boot_ms));
        ret->fetch_ms = mem_zalloc(WISHLIST_DEMANDS_MAX * (shapes + 1) * sizeof(*ret->fetch_ms));
        ret->suits = mem_zalloc(WISHLIST_DEMANDS_MAX * (shapes + 1) * sizeof(bool));
        ret->demands = mem_zalloc(WISHLIST_DEMANDS_MAX * sizeof(*ret->demands));
        ret->who = mem_zalloc(WISHLIST_DEMANDS_MAX * sizeof(*ret->who));
        ret->shapes = mem_zalloc((shapes + 1) * sizeof(*ret->shapes));
        ret->learned = mem_zalloc((shapes + 1) * sizeof(*ret->learned));
        m.ads = mem_zalloc((shapes + 1) * sizeof(*m.ads));
        m.slots = mem_zalloc(WISHLIST_DEMANDS_MAX * sizeof(*m.slots));
        m.like = mem_zalloc((shapes + 1) * sizeof(*m.like));
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
        free(m.like);
        free(m.slots);
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
        free(w->fetch_ms);
        free(w->boot_ms);
        free(w->shapes);
        free(w->nodes);
        free(w->names);
        free(w->demands);
        free(w->who);
        *w = (struct wishlist){0};
}
