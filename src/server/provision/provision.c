#include "server/provision/provision.h"

#include <errno.h>
#include <stdio.h>

#include "auth/ca.h"
#include "base/map.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "core/query.h"
#include "provision/provisioner.h"
#include "server/access/access.h"
#include "server/agents/agents.h"
#include "server/loop/turn.h"

#define PLAN_MS      2000
#define PLAN_MAX_MS  5000
#define PLAN_SHARE   50 /* plans take at most this fraction (1/PLAN_SHARE) of the time */
#define STARTS_MAX   8u /* starts in progress at one provisioner */
#define STOPS_MAX    8u /* stops in progress at one provisioner, each of which may be a process */
#define MISSING_MAX  3u /* number of lists without the instance after which it counts as gone */

#define CLOSED_MAX   6u /* doublings of the pause */
#define STOPS_WARN   3u
#define STOP_MAX_MS  600000
#define DESCRIBE_MS  600000
#define DISK_MAX_KIB (1ll << 30) /* for a shape without a disk size */
#define TAG_MAX      160

struct driver {
        struct provision *all;
        struct provisioner *p;
        const struct config_provisioner *config;
        struct provisioner_settings settings;
        char *folder, *private;
        size_t number;
        bool listing, listed, describing;
        int64_t list_due_ms, describe_due_ms, quiet_until_ms; /* steady clock */
        unsigned starting, stopping;
        bool stops_wait; /* for others to be answered; a list then asks for them again */
        size_t instances, unwanted;
        size_t strangers;        /* unwanted instances without a record; the others count by their records */
        int64_t strangers_micro; /* their cost for an hour */
        char *error;             /* NULL: none */
};
struct shape {
        int64_t closed_until_ms; /* steady clock */
        unsigned failures;
        char *closed;              /* why the shape is not used; owned */
        int64_t price_micro, most; /* as the provider reports; -1: unknown */
        struct ad *ad, *base;
};
/* State of a node that need not outlive the server. */
struct going {
        unsigned missing; /* consecutive lists without its instance */
        bool starting;    /* a start was requested and not answered */
        bool seen;        /* in the last list */
        bool late;        /* the list that is being made was requested before the node was retired */
};
/* An instance that is to be stopped. */
struct stopping {
        bool asked; /* a stop was requested and not answered */
        unsigned tries;
        int64_t due_ms;
        bool seen; /* in the list that is being read */
};
struct provision {
        struct server *s;
        struct driver drivers[CONFIG_PROVISIONERS_MAX];
        size_t driver_count;
        struct shape shapes[CONFIG_SHAPES_MAX];
        bool closing;
        struct map *going, *stopping; /* keys: a node's name; "number of the provisioner/instance" */
        char prefix[64];
        int64_t plan_due_ms;
        /* the input of a plan */
        struct plan_provisioner provisioners[CONFIG_PROVISIONERS_MAX];
        struct str names[CONFIG_PROVISIONERS_MAX];
        struct plan_shape plan_shapes[CONFIG_SHAPES_MAX];
        struct wishlist_shape wish_shapes[CONFIG_SHAPES_MAX];
        struct plan_account accounts[CONFIG_PLAN_ACCOUNTS];
        struct wishlist_settings settings;
};

static struct going *going_get(struct provision *p, const char *name)
{
        struct going *g = map_get(p->going, str_of(name));

        if (!g) {
                g = mem_new(struct going);
                map_put(p->going, str_of(name), g);
        }
        return g;
}

static const struct config_provision *config_of(const struct provision *p)
{
        return &p->s->config.provision;
}

/* ---- answers of providers */

static void driver_failed(struct driver *d, const char *call, const struct provisioner_answer *a)
{
        BUF_CLEANUP struct buf text = {0};

        buf_printf(&text, "%s: " STR_FMT, call, STR_ARG(a->why));
        if (a->result == PROVISIONER_THROTTLED)
                d->quiet_until_ms = clock_boot_ms() + 3 * d->config->poll_ms;
        if (!d->error || strcmp(d->error, buf_z(&text)) != 0)
                log_warn("msg=\"a provisioner failed\" name=%s call=%s why=\"%s\"", d->config->name, call,
                         LOG_TEXT(a->why));
        free(d->error);
        d->error = buf_take(&text);
}

static void driver_works(struct driver *d)
{
        if (d->error)
                log_info("msg=\"a provisioner works again\" name=%s", d->config->name);
        free(d->error);
        d->error = NULL;
}

/* ---- stopping */

struct stop_call {
        struct driver *d;
        char *key;
};

static void on_stop(void *arg, const struct provisioner_answer *a)
{
        struct stop_call *x = arg;
        struct stopping *st = map_get(x->d->all->stopping, str_of(x->key));

        if (st)
                st->asked = false;
        if (--x->d->stopping == 0 && x->d->stops_wait) {
                x->d->stops_wait = false;
                x->d->list_due_ms = 0;
        }
        if (a->result != PROVISIONER_DONE && !x->d->all->closing)
                driver_failed(x->d, "stop", a);
        free(x->key);
        free(x);
}

/* Requests the stop, unless that was done a moment ago, or too many are in progress: a list may name
 * thousands of instances that nobody wants. */
static void instance_stop(struct driver *d, struct str id, struct str tag)
{
        BUF_CLEANUP struct buf key = {0};
        int64_t now = clock_boot_ms(), pause = d->config->poll_ms;
        struct stop_call *x;
        struct stopping *st;

        buf_printf(&key, "%zu/" STR_FMT, d->number, STR_ARG(id));
        st = map_get(d->all->stopping, buf_view(&key));
        if (!st) {
                st = mem_new(struct stopping);
                map_put(d->all->stopping, buf_view(&key), st);
        }
        st->seen = true;
        if (st->asked || now < st->due_ms)
                return;
        if (d->stopping == STOPS_MAX) {
                d->stops_wait = true;
                return;
        }
        if (st->tries++ == STOPS_WARN)
                log_warn("msg=\"an instance does not go, and costs: look at it\" provisioner=%s "
                         "instance=\"%s\" "
                         "tag=\"%s\"",
                         d->config->name, LOG_TEXT(id), LOG_TEXT(tag));
        for (unsigned i = 1; i < st->tries && pause < STOP_MAX_MS; i++)
                pause *= 2;
        st->asked = true;
        d->stopping++;
        st->due_ms = now + pause;
        x = mem_new(struct stop_call);
        *x = (struct stop_call){d, buf_take(&key)};
        d->p->kind->stop(d->p, id, tag, on_stop, x);
}

static void tag_of(const struct provision *p, const char *name, struct str launch, char tag[TAG_MAX])
{
        snprintf(tag, TAG_MAX, "%s%s." STR_FMT, p->prefix, name, STR_ARG(launch));
}

/* Retires the node in this turn's commit. Its instance is stopped when a later list shows it. */
static void node_retire(struct provision *p, const char *name, const char *why)
{
        struct core_node_order o = {
                .agent = name, .to = NODE_RETIRED, .by = STR(NODE_BY_WISH), .reason = str_of(why)};
        struct driver *d = NULL;
        struct core_node n;
        struct err err;

        if (core_node_set(p->s->core, &o, &err) != 0) {
                log_warn("msg=\"a node is not retired\" name=%s why=\"%s\"", name, err.text);
                return;
        }
        access_revoke(p->s, str_of(name));
        agents_expel(p->s, str_of(name), "its node was retired");
        core_node_get(p->s->core, name, &n);
        for (size_t i = 0; i < p->driver_count; i++)
                if (str_eqz(n.instance.provisioner, p->drivers[i].config->name))
                        d = &p->drivers[i];
        going_get(p, name)->missing = 0;
        going_get(p, name)->late = d && d->listing;
        if (d)
                d->list_due_ms = 0;
}

/* ---- lists */

struct names {
        char **v;
        size_t n, cap;
        struct str provisioner;
};

static void add_name(void *arg, const struct core_node *n)
{
        struct names *all = arg;

        if (!n->provisioned || !str_eq(n->instance.provisioner, all->provisioner))
                return;
        MEM_GROW(all->v, all->cap, all->n + 1);
        all->v[all->n++] = mem_dupz(n->name);
}

static void names_of(struct driver *d, struct names *ret)
{
        *ret = (struct names){.provisioner = str_of(d->config->name)};
        core_nodes(d->all->s->core, add_name, ret);
}

static void names_deinit(struct names *all)
{
        for (size_t i = 0; i < all->n; i++)
                free(all->v[i]);
        free(all->v);
}

enum claim {
        CLAIM_NONE,    /* no record knows the instance, or knows another one */
        CLAIM_RETIRED, /* the record's node is retired */
        CLAIM_WANTED,
};
/* Returns what records say of this instance, whose tag is ours. If two instances were started for one
 * record, only one belongs to it. */
static enum claim claim_of(struct driver *d, const struct provisioner_instance *x, struct core_node *ret)
{
        struct provision *p = d->all;
        struct str rest = str_skip(x->tag, strlen(p->prefix)), word;
        MEM_CLEANUP char *name = NULL;
        struct going *g;

        *ret = (struct core_node){0};
        if (!str_cut(&rest, '.', &word))
                return CLAIM_NONE;
        name = str_dupz(word);
        if (core_node_get(p->s->core, name, ret) != 0 || !ret->provisioned ||
            !str_eqz(ret->instance.provisioner, d->config->name)) {
                *ret = (struct core_node){0};
                return CLAIM_NONE;
        }
        g = going_get(p, ret->name);
        if (g->seen)
                return CLAIM_NONE;
        if (ret->state != NODE_RETIRED &&
            (!str_eq(ret->instance.launch, rest) || (ret->instance.id.n && !str_eq(ret->instance.id, x->id))))
                return CLAIM_NONE;
        g->seen = true;
        return ret->state == NODE_RETIRED ? CLAIM_RETIRED : CLAIM_WANTED;
}

static void learn_id(struct provision *p, const char *name, struct str id)
{
        struct core_node n;

        if (core_node_get(p->s->core, name, &n) != 0 || !n.provisioned || n.instance.id.n)
                return;
        n.instance.id = id;
        n.instance.cost_micro = 0;
        core_node_instance(p->s->core, name, &n.instance);
}

static int64_t dearest(const struct driver *d)
{
        const struct provision *p = d->all;
        int64_t most = 0;

        for (size_t i = 0; i < p->settings.plan.shape_count; i++)
                if (p->plan_shapes[i].provisioner == d->number && p->plan_shapes[i].price_micro > most)
                        most = p->plan_shapes[i].price_micro;
        return most;
}

/* A list may name an instance more than once: pages of a provider's list do while instances come and go. */
static void look_at_instances(struct driver *d, const struct provisioner_answer *a)
{
        struct provision *p = d->all;
        struct map *seen = map_new();

        d->instances = d->unwanted = d->strangers = 0;
        d->strangers_micro = 0;
        for (size_t i = 0; i < a->instance_count; i++) {
                const struct provisioner_instance *x = &a->instances[i];
                enum claim claim;
                struct core_node n;

                if (!str_starts(x->tag, str_of(p->prefix)) || x->tag.n >= TAG_MAX ||
                    map_put(seen, x->id, d) != NULL)
                        continue;
                d->instances++;
                claim = claim_of(d, x, &n);
                if (claim == CLAIM_WANTED) {
                        learn_id(p, n.name, x->id);
                        continue;
                }
                d->unwanted++;
                if (claim == CLAIM_NONE) {
                        d->strangers++;
                        d->strangers_micro += n.name ? n.instance.price_micro : dearest(d);
                }
                instance_stop(d, x->id, x->tag);
        }
        map_free(seen);
}

/* Handles the records whose instances are in no list any more. */
static void look_at_records(struct driver *d, const struct names *names)
{
        struct provision *p = d->all;

        for (size_t i = 0; i < names->n; i++) {
                struct going *g = going_get(p, names->v[i]);
                struct core_node n;

                g->missing = g->seen || g->late ? 0 : g->missing + 1;
                g->late = false;
                if (core_node_get(p->s->core, names->v[i], &n) != 0 || n.state == NODE_RETIRED ||
                    g->missing < MISSING_MAX || g->starting || n.connected)
                        continue;
                node_retire(p, names->v[i],
                            n.state == NODE_BOOTING ? "its machine was not started, or is gone"
                                                    : "its machine is gone");
        }
}

/* Forgets stopped instances that the list no longer has. */
static void forget_stopped(struct driver *d)
{
        BUF_CLEANUP struct buf prefix = {0};
        struct map *kept = map_new();
        struct str key;
        void *value;

        buf_printf(&prefix, "%zu/", d->number);
        for (size_t at = 0; map_next(d->all->stopping, &at, &key, &value);) {
                struct stopping *st = value;

                if (!str_starts(key, buf_view(&prefix)) || st->seen || st->asked)
                        map_put(kept, key, st);
                else
                        free(st);
                if (str_starts(key, buf_view(&prefix)))
                        st->seen = false;
        }
        map_free(d->all->stopping);
        d->all->stopping = kept;
}

static void on_list(void *arg, const struct provisioner_answer *a)
{
        struct driver *d = arg;
        struct provision *p = d->all;
        struct names names;

        d->listing = false;
        if (d->list_due_ms) /* 0: a node was retired, or stops were answered, meanwhile */
                d->list_due_ms = clock_boot_ms() + d->config->poll_ms;
        if (p->closing || turn_full(p->s->turn))
                return;
        if (a->result != PROVISIONER_DONE) {
                driver_failed(d, "list", a);
                return;
        }
        turn_begin(p->s->turn);
        driver_works(d);
        names_of(d, &names);
        for (size_t i = 0; i < names.n; i++)
                going_get(p, names.v[i])->seen = false;
        look_at_instances(d, a);
        look_at_records(d, &names);
        forget_stopped(d);
        names_deinit(&names);
        d->listed = true;
        turn_end(p->s->turn);
}

/* ---- shapes as the provider describes them */

struct asked {
        const struct driver *d;
        struct provisioner_shape v[CONFIG_SHAPES_MAX];
        size_t n;
};

static void count_machine(void *arg, const struct core_node *n)
{
        struct asked *x = arg;

        for (size_t i = 0; n->provisioned && n->state != NODE_RETIRED && i < x->n; i++)
                x->v[i].machines += str_eq(n->instance.shape, x->v[i].name) &&
                                    str_eqz(n->instance.provisioner, x->d->config->name);
}

/* The shapes of the driver, with the machines that there are. */
static void asked_make(const struct driver *d, struct asked *ret)
{
        const struct config_provision *c = config_of(d->all);

        *ret = (struct asked){.d = d};
        for (size_t i = 0; i < c->shape_count; i++)
                if (c->shapes[i].provisioner == d->number)
                        ret->v[ret->n++] = (struct provisioner_shape){
                                .name = str_of(c->shapes[i].name),
                                .with = str_of(c->shapes[i].with ? c->shapes[i].with : ""),
                                .cpus = c->shapes[i].cpus,
                                .memory_mib = c->shapes[i].memory_mib,
                                .disk_kib = c->shapes[i].disk_kib,
                                .price_micro = c->shapes[i].price_micro};
        core_nodes(d->all->s->core, count_machine, ret);
}

static void on_describe(void *arg, const struct provisioner_answer *a)
{
        struct driver *d = arg;
        struct provision *p = d->all;

        d->describing = false;
        if (p->closing)
                return;
        if (a->result != PROVISIONER_DONE) {
                driver_failed(d, "describe", a);
                return;
        }
        for (size_t i = 0; i < config_of(p)->shape_count; i++)
                for (size_t k = 0; k < a->offer_count && p->plan_shapes[i].provisioner == d->number; k++) {
                        const struct provisioner_offer *o = &a->offers[k];

                        if (!str_eq(o->shape, p->plan_shapes[i].name))
                                continue;
                        p->shapes[i].price_micro = o->price_micro;
                        p->shapes[i].most = o->most;
                        if (o->closed.n) {
                                free(p->shapes[i].closed);
                                p->shapes[i].closed = str_dupz(o->closed);
                                p->shapes[i].closed_until_ms = clock_boot_ms() + DESCRIBE_MS;
                        }
                }
}

/* ---- starting */

struct start_task {
        struct task task;
        struct provision *p;
        struct driver *d;
        size_t shape;
        int64_t price_micro;
        char *name;
        char launch[TOKEN_ID_TEXT];
        struct buf token;
};

static void start_free(struct start_task *x)
{
        if (x->token.n)
                explicit_bzero(x->token.p, x->token.n);
        buf_deinit(&x->token);
        free(x->name);
        free(x);
}

static void start_drop(struct task *t)
{
        start_free((struct start_task *)(void *)t);
}

static void shape_close(struct shape *sh, int64_t retry_ms, struct str why)
{
        unsigned k = sh->failures < CLOSED_MAX ? sh->failures : CLOSED_MAX;

        sh->failures++;
        sh->closed_until_ms = clock_boot_ms() + (retry_ms << k);
        free(sh->closed);
        sh->closed = str_dupz(why);
}

static void on_start(void *arg, const struct provisioner_answer *a)
{
        struct start_task *x = arg;
        struct provision *p = x->p;
        BUF_CLEANUP struct buf why = {0};
        struct core_node n;

        if (p->closing) {
                start_free(x);
                return;
        }
        x->d->starting--;
        going_get(p, x->name)->starting = false;
        going_get(p, x->name)->missing = 0;
        turn_begin(p->s->turn);
        core_node_get(p->s->core, x->name, &n);
        if (a->result == PROVISIONER_DONE) {
                driver_works(x->d);
                p->shapes[x->shape].failures = 0;
                if (str_eqz(n.instance.launch, x->launch))
                        learn_id(p, x->name, a->id);
        } else {
                driver_failed(x->d, "start", a);
                buf_printf(&why, "it could not be started: " STR_FMT, STR_ARG(a->why));
                if (a->result != PROVISIONER_THROTTLED)
                        shape_close(&p->shapes[x->shape], x->d->config->retry_ms, a->why);
                if (str_eqz(n.instance.launch, x->launch) && n.state == NODE_BOOTING)
                        node_retire(p, x->name, buf_z(&why));
        }
        turn_end(p->s->turn);
        start_free(x);
}

static void addresses_of(const struct driver *d, struct buf *out)
{
        buf_addz(out, d->config->addresses ? d->config->addresses : d->all->s->paths.agents);
}

/* Core thread: the decisions are durable, so the instances may be started. */
static void start_provisioners(struct server *s, struct task *t)
{
        struct start_task *x = (struct start_task *)(void *)t;
        const struct config_shape *shape = &s->config.provision.shapes[x->shape];
        BUF_CLEANUP struct buf addresses = {0};
        char tag[TAG_MAX];

        addresses_of(x->d, &addresses);
        tag_of(x->p, x->name, str_of(x->launch), tag);
        x->d->p->kind->start(
                x->d->p,
                &(struct provisioner_launch){.tag = str_of(tag),
                                             .name = str_of(x->name),
                                             .shape = str_of(shape->name),
                                             .token = buf_view(&x->token),
                                             .addresses = buf_view(&addresses),
                                             .with = str_of(shape->with ? shape->with : ""),
                                             .attributes = str_of(shape->attributes ? shape->attributes : ""),
                                             .cpus = shape->cpus,
                                             .memory_mib = shape->memory_mib,
                                             .disk_kib = shape->disk_kib,
                                             .price_micro = x->price_micro},
                on_start, x);
}

/* I/O thread: this task runs after the commit. */
static void start_is_durable(struct server *s, struct task *t)
{
        t->run = start_provisioners;
        server_to_core(s, t);
}

/* Returns the first node name that is free: the instance that had it before has been in no list since it
 * was retired. */
static char *name_find(struct provision *p, const struct driver *d, const struct config_shape *shape)
{
        for (unsigned i = 1; i <= 2 * d->config->max + STARTS_MAX; i++) {
                BUF_CLEANUP struct buf name = {0};
                struct core_node n;

                buf_printf(&name, "%s-%s-%u", d->config->name, shape->name, i);
                if (core_node_get(p->s->core, buf_z(&name), &n) != 0)
                        return buf_take(&name);
                if (n.state == NODE_RETIRED && n.provisioned && !n.connected && n.attempts == 0) {
                        const struct going *g = going_get(p, buf_z(&name));

                        if (g->missing > 0 && !g->starting)
                                return buf_take(&name);
                }
        }
        return NULL;
}

/* Makes the token of a machine, whose agent may offer the shape's processors, and a quarter more than its
 * memory: providers count memory differently. */
static int token_new(struct provision *p, const struct driver *d, const struct config_shape *shape,
                     const char *name, struct token *t, struct buf *ret_text, struct err *err)
{
        BUF_CLEANUP struct buf most = {0};
        struct access *a = p->s->access;
        int64_t now = clock_wall_ms();
        int r;

        if (shape->cpus > 0 && shape->memory_mib > 0)
                buf_printf(&most, "Cpus=%lld,Memory=%lld", (long long)shape->cpus,
                           (long long)(shape->memory_mib + shape->memory_mib / 4));
        *t = (struct token){.kind = TOKEN_AGENT,
                            .limited = true,
                            .uses_left = 1,
                            .created_ms = now,
                            .expires_ms = now + d->config->boot_limit_ms,
                            .name = str_of(name),
                            .created_by = str_of(a->own[0]   ? a->own[0]
                                                 : a->own[1] ? a->own[1]
                                                             : ""),
                            .tags = str_of(d->config->tags ? d->config->tags : ""),
                            .owners = str_of(d->config->owners ? d->config->owners : ""),
                            .labels = str_of(d->config->labels ? d->config->labels : ""),
                            .most = buf_view(&most)};
        token_make(t, str_of(ca_fingerprint(a->ca)), ret_text);
        r = tokens_add(a->tokens, t, turn_batch(p->s->turn), err);
        t->most = STR_NONE;
        return r;
}

static void launch(struct provision *p, size_t shape, struct str account)
{
        struct driver *d = &p->drivers[p->plan_shapes[shape].provisioner];
        const struct config_shape *c = &config_of(p)->shapes[shape];
        int64_t price = p->plan_shapes[shape].price_micro;
        struct node_instance i = {.provisioner = str_of(d->config->name),
                                  .shape = str_of(c->name),
                                  .account = account,
                                  .price_micro = price,
                                  .paid_until_ms = clock_wall_ms() + d->config->period_ms,
                                  .cost_micro = plan_period_micro(price, d->config->period_ms)};
        struct start_task *x;
        struct err err = {""};
        struct token token;

        if (d->starting >= STARTS_MAX || clock_boot_ms() < d->quiet_until_ms)
                return; /* the next plan will decide again */
        x = mem_new(struct start_task);
        *x = (struct start_task){.task = {.run = start_is_durable, .drop = start_drop},
                                 .p = p,
                                 .d = d,
                                 .shape = shape,
                                 .price_micro = price};
        x->name = name_find(p, d, c);
        if (!x->name || token_new(p, d, c, x->name, &token, &x->token, &err) != 0) {
                if (x->name)
                        log_warn("msg=\"no token for a node\" name=%s why=\"%s\"", x->name, err.text);
                start_free(x);
                return;
        }
        snprintf(x->launch, sizeof(x->launch), "%s", token.id);
        i.launch = str_of(x->launch);
        if (core_node_launch(p->s->core, x->name, &i, &err) != 0) {
                tokens_remove(p->s->access->tokens, str_of(x->launch), turn_batch(p->s->turn));
                log_warn("msg=\"a node is not started\" name=%s why=\"%s\"", x->name, err.text);
                start_free(x);
                return;
        }
        d->starting++;
        going_get(p, x->name)->starting = true;
        going_get(p, x->name)->missing = 0;
        turn_send(p->s->turn, &x->task, TURN_DURABLE);
}

/* ---- the plan */

/* The instances that the plan does not see as nodes, but that still cost. */
struct remains {
        struct provision *p;
        size_t all, of[CONFIG_PROVISIONERS_MAX];
        int64_t micro; /* for an hour */
};

/* The instance of a retired node counts until a list that was requested after that has not shown it. */
static void add_retired(void *arg, const struct core_node *n)
{
        struct remains *r = arg;

        if (!n->provisioned || n->state != NODE_RETIRED || going_get(r->p, n->name)->missing)
                return;
        for (size_t i = 0; i < r->p->driver_count; i++)
                if (str_eqz(n->instance.provisioner, r->p->drivers[i].config->name)) {
                        r->of[i]++;
                        r->all++;
                        r->micro += n->instance.price_micro;
                }
}

static void remains_count(struct provision *p, struct remains *ret)
{
        *ret = (struct remains){.p = p};
        for (size_t i = 0; i < p->driver_count; i++) {
                ret->of[i] = p->drivers[i].strangers;
                ret->all += p->drivers[i].strangers;
                ret->micro += p->drivers[i].strangers_micro;
        }
        core_nodes(p->s->core, add_retired, ret);
}

static void refresh(struct provision *p)
{
        const struct config_provision *c = config_of(p);
        int64_t now = clock_boot_ms();
        struct remains gone;
        bool full;

        remains_count(p, &gone);
        full = c->max && gone.all >= c->max;
        p->settings.plan.rules.max = c->max && !full ? c->max - (uint32_t)gone.all : 0;
        for (size_t i = 0; i < p->driver_count; i++) {
                const struct driver *d = &p->drivers[i];

                p->provisioners[i].max =
                        full || gone.of[i] >= d->config->max ? 0 : d->config->max - (uint32_t)gone.of[i];
                p->provisioners[i].stop_ms = d->config->stop_ms + PLAN_MAX_MS; /* the time of the next plan */
                if (p->provisioners[i].stop_ms > d->config->period_ms)
                        p->provisioners[i].stop_ms = d->config->period_ms;
        }
        for (size_t i = 0; i < c->shape_count; i++) {
                struct shape *sh = &p->shapes[i];
                struct plan_shape *to = &p->plan_shapes[i];

                to->price_micro = sh->price_micro >= 0 ? sh->price_micro : c->shapes[i].price_micro;
                to->max =
                        sh->most >= 0 && sh->most < c->shapes[i].max ? (uint32_t)sh->most : c->shapes[i].max;
                to->closed = now < sh->closed_until_ms ? sh->closed : NULL;
        }
        p->settings.plan.rules.hour_micro = c->hour_micro < 0            ? -1
                                            : c->hour_micro > gone.micro ? c->hour_micro - gone.micro
                                                                         : 0;
}

void provision_wishlist(struct server *s, struct wishlist *ret, const struct wishlist_settings **ret_settings)
{
        refresh(s->provision);
        wishlist_make(s->core, &s->provision->settings, ret);
        if (ret_settings)
                *ret_settings = &s->provision->settings;
}

/* Drains the node. One whose next period cannot be paid is retired at once if an admin has drained it. */
static void drain(struct provision *p, const char *name, enum plan_leave why, int64_t paid_left_ms)
{
        struct core_node n;
        struct core_node_order o = {
                .agent = name,
                .to = NODE_DRAINING,
                .by = STR(NODE_BY_WISH),
                .reason = why == PLAN_LEAVES_IDLE ? STR("it has nothing to do, and its time is over")
                                                  : STR("the budget of the month is spent"),
                .deadline_ms = why == PLAN_LEAVES_MONTH
                                       ? clock_wall_ms() + (paid_left_ms > 1 ? paid_left_ms / 2 : 1)
                                       : 0};

        if (why == PLAN_LEAVES_MONTH && core_node_get(p->s->core, name, &n) == 0 &&
            (n.state == NODE_DRAINED || n.state == NODE_DOWN))
                node_retire(p, name, "the budget of the month is spent");
        else
                core_node_set(p->s->core, &o, NULL);
}

static void carry_out(struct provision *p, const struct wishlist *w)
{
        struct drained {
                char *name;
                enum plan_leave why;
                int64_t left_ms;
        } *all = mem_zalloc((w->in.node_count + 1) * sizeof(*all));
        struct str accounts[PLAN_STARTS_MAX];
        size_t shapes[PLAN_STARTS_MAX], starts = 0, drains = 0;

        /* The answer of the wishlist is borrowed until the core changes. */
        for (size_t i = 0; i < w->in.node_count; i++)
                if (w->plan.leaves[i])
                        all[drains++] = (struct drained){mem_dupz(w->names[i]), w->plan.leaves[i],
                                                         w->nodes[i].paid_left_ms};
        for (size_t i = 0; i < w->plan.wish_count; i++)
                for (uint32_t k = 0; k < w->plan.wishes[i].nodes && starts < PLAN_STARTS_MAX; k++) {
                        size_t demand = w->plan.wishes[i].demand;

                        shapes[starts] = w->plan.wishes[i].shape;
                        accounts[starts++] = demand == PLAN_NONE ? STR_NONE : w->demands[demand].account;
                }
        for (size_t i = 0; i < starts; i++) {
                /* starting instances changes no account */
                MEM_CLEANUP char *account = str_dupz(accounts[i]);

                launch(p, shapes[i], str_of(account));
        }
        for (size_t i = 0; i < drains; i++) {
                drain(p, all[i].name, all[i].why, all[i].left_ms);
                free(all[i].name);
        }
        free(all);
}

static void plan(struct provision *p)
{
        int64_t begun = clock_boot_ms(), took;
        struct wishlist w;

        if (begun < p->plan_due_ms)
                return;
        for (size_t i = 0; i < p->driver_count; i++)
                if (!p->drivers[i].listed) /* the cost of existing instances must be known first */
                        return;
        provision_wishlist(p->s, &w, NULL);
        took = clock_boot_ms() - begun;
        carry_out(p, &w);
        for (size_t i = 0; i < w.in.shape_count;
             i++) /* attributes from the settings are not evaluated again */
                if (w.learned[i]) {
                        ad_free(p->shapes[i].ad);
                        p->wish_shapes[i].ad = p->shapes[i].ad = w.learned[i];
                        w.learned[i] = NULL;
                }
        wishlist_deinit(&w);
        took *= PLAN_SHARE;
        p->plan_due_ms = begun + (took < PLAN_MS ? PLAN_MS : took > PLAN_MAX_MS ? PLAN_MAX_MS : took);
}

/* ---- timer */

/* Adds the cost of the time that was used. */
static void pay(struct provision *p, const struct driver *d, const struct core_node *n)
{
        struct node_instance i = n->instance;
        int64_t now = clock_wall_ms(), periods;

        if (i.paid_until_ms > now || (n->state == NODE_RETIRED && !going_get(p, n->name)->seen))
                return;
        periods = (now - i.paid_until_ms) / d->config->period_ms + 1;
        i.paid_until_ms += periods * d->config->period_ms;
        i.cost_micro = plan_period_micro(i.price_micro, d->config->period_ms) * periods;
        core_node_instance(p->s->core, n->name, &i);
}

/* Moves the node to its next state if it is time for that. */
static void move_on(struct provision *p, const struct driver *d, const char *name)
{
        int64_t now = clock_wall_ms();
        BUF_CLEANUP struct buf why = {0};
        struct core_node n;

        if (core_node_get(p->s->core, name, &n) != 0)
                return;
        pay(p, d, &n);
        core_node_get(p->s->core, name, &n);
        if (n.state == NODE_BOOTING && now - n.since_ms > d->config->boot_limit_ms &&
            !going_get(p, name)->starting) {
                for (size_t i = 0; i < config_of(p)->shape_count; i++)
                        if (str_eq(p->plan_shapes[i].name, n.instance.shape) &&
                            p->plan_shapes[i].provisioner == d->number)
                                shape_close(&p->shapes[i], d->config->retry_ms,
                                            STR("the last one did not boot in time"));
                node_retire(p, name, "it did not boot in time");
        } else if (n.state == NODE_DRAINED && n.by && strcmp(n.by, NODE_BY_WISH) == 0) {
                node_retire(p, name, "it is drained");
        } else if (n.state == NODE_FAILED && (n.attempts == 0 || !n.connected)) {
                buf_printf(&why, "it has failed: %s", n.reason ? n.reason : "");
                node_retire(p, name, buf_z(&why));
        }
}

static void driver_tick(struct driver *d)
{
        int64_t now = clock_boot_ms();
        struct names names;

        names_of(d, &names);
        for (size_t i = 0; i < names.n; i++)
                move_on(d->all, d, names.v[i]);
        names_deinit(&names);
        if (now < d->quiet_until_ms)
                return;
        if (!d->listing && now >= d->list_due_ms) {
                d->listing = true;
                d->list_due_ms = now + d->config->poll_ms;
                d->p->kind->list(d->p, str_of(d->all->prefix), on_list, d);
        }
        if (!d->describing && now >= d->describe_due_ms) {
                struct asked x;

                d->describing = true;
                d->describe_due_ms = now + DESCRIBE_MS;
                asked_make(d, &x);
                d->p->kind->describe(d->p, x.v, x.n, on_describe, d);
        }
}

void provision_tick(struct server *s)
{
        struct provision *p = s->provision;

        if (!p || turn_full(s->turn) || atomic_load(&s->stopping))
                return;
        for (size_t i = 0; i < p->driver_count; i++)
                driver_tick(&p->drivers[i]);
        plan(p);
}

/* ---- status for people */

size_t provision_count(const struct server *s)
{
        return s->provision ? s->provision->driver_count : 0;
}

void provision_status_get(const struct server *s, size_t n, struct provision_status *ret)
{
        const struct driver *d = &s->provision->drivers[n];

        *ret = (struct provision_status){.name = d->config->name,
                                         .kind = d->config->kind,
                                         .listed = d->listed,
                                         .instances = d->instances,
                                         .unwanted = d->unwanted,
                                         .error = d->error};
}

/* ---- opening */

/* Makes the ad that an agent on an instance of this shape would offer. Attributes in the settings take
 * precedence. */
static int shape_ad(struct provision *p, const struct config_shape *c, struct shape *sh, struct err *err)
{
        struct symbols *y = core_symbols(p->s->core);
        BUF_CLEANUP struct buf base = {0}, own = {0};
        int64_t disk = c->disk_kib ? c->disk_kib : DISK_MAX_KIB;
        int r;

        buf_printf(
                &base,
                "[ Arch = \"X86_64\"; OpSys = \"LINUX\"; Runner = \"process\"; HasFileTransfer = true; "
                "Cpus = %lld; TotalCpus = %lld; Memory = %lld; TotalMemory = %lld; Disk = %lld; TotalDisk = "
                "%lld; Requirements = true ]",
                (long long)c->cpus, (long long)c->cpus, (long long)c->memory_mib, (long long)c->memory_mib,
                (long long)disk, (long long)disk);
        buf_printf(&own, "[ %s ]", c->attributes ? c->attributes : "");
        r = ad_parse(y, buf_view(&base), CLASSAD_NEW, &sh->base, err);
        if (r == 0)
                r = ad_parse(y, buf_view(&own), CLASSAD_NEW, &sh->ad, err);
        if (r != 0)
                return r;
        ad_set_parent(sh->ad, sh->base);
        return 0;
}

static int shape_open(struct provision *p, size_t n, struct err *err)
{
        const struct config_shape *c = &config_of(p)->shapes[n];
        const struct config_provisioner *of = &config_of(p)->provisioners[c->provisioner];

        p->shapes[n].price_micro = p->shapes[n].most = -1;
        p->plan_shapes[n] = (struct plan_shape){
                .name = str_of(c->name),
                .provisioner = c->provisioner,
                .room = {c->cpus, c->memory_mib, c->disk_kib ? c->disk_kib : DISK_MAX_KIB},
                .price_micro = c->price_micro,
                .min = c->min,
                .max = c->max};
        p->wish_shapes[n].provisioner = str_of(of->name);
        if (!owners_parse(str_of(of->owners ? of->owners : ""), &p->wish_shapes[n].owners))
                return err_set(err, -EINVAL, "provisioner %s: owners must be name@domain or *@domain",
                               of->name);
        if (shape_ad(p, c, &p->shapes[n], err) != 0)
                return err_prefix(err, -EINVAL, "the attributes of the shape %s", c->name);
        p->wish_shapes[n].ad = p->shapes[n].ad;
        return 0;
}

static int driver_open(struct provision *p, size_t n, struct err *err)
{
        const struct config_provisioner *c = &config_of(p)->provisioners[n];
        struct driver *d = &p->drivers[n];
        struct buf folder = {0};
        int r;

        buf_printf(&folder, "%s/provision/%s", p->s->paths.dir, c->name);
        *d = (struct driver){.all = p, .config = c, .number = n, .folder = buf_take(&folder)};
        d->private = p->s->paths.dir[0] == '/' ? mem_dupz(p->s->paths.dir) : realpath(p->s->paths.dir, NULL);
        d->settings = (struct provisioner_settings){.name = c->name,
                                                    .command = c->command,
                                                    .folder = d->folder,
                                                    .private = d->private,
                                                    .timeout_ms = c->timeout_ms};
        p->driver_count = n + 1;
        if (!d->private)
                return err_set(err, -errno, "the server's folder %s has no absolute path", p->s->paths.dir);
        p->names[n] = str_of(c->name);
        p->provisioners[n] = (struct plan_provisioner){
                .max = c->max, .period_ms = c->period_ms, .stop_ms = c->stop_ms, .idle_ms = c->idle_ms};
        r = provisioner_kind_find(str_of(c->kind))->open(p->s->loop, &d->settings, &d->p, err);
        return r == 0 ? 0 : err_prefix(err, r, "provisioner %s", c->name);
}

int provision_open(struct server *s, struct err *err)
{
        const struct config_provision *c = &s->config.provision;
        struct provision *p;
        int r = 0;

        if (c->provisioner_count == 0)
                return 0;
        s->provision = p = mem_new(struct provision);
        p->s = s;
        p->going = map_new();
        p->stopping = map_new();
        snprintf(p->prefix, sizeof(p->prefix), "drover.%s.", s->uuid);
        for (size_t i = 0; i < c->provisioner_count && r == 0; i++)
                r = driver_open(p, i, err);
        for (size_t i = 0; i < c->shape_count && r == 0; i++)
                r = shape_open(p, i, err);
        for (size_t i = 0; i < c->account_count; i++)
                p->accounts[i] = (struct plan_account){str_of(c->accounts[i].name), c->accounts[i].max};
        p->settings = (struct wishlist_settings){.plan = {.provisioners = p->provisioners,
                                                          .provisioner_count = p->driver_count,
                                                          .shapes = p->plan_shapes,
                                                          .shape_count = c->shape_count,
                                                          .accounts = p->accounts,
                                                          .account_count = c->account_count,
                                                          .rules = {.max = c->max,
                                                                    .hour_micro = c->hour_micro,
                                                                    .month_micro = c->month_micro}},
                                                 .shapes = p->wish_shapes,
                                                 .provisioners = p->names,
                                                 .horizon_ms = c->horizon_ms,
                                                 .wait_ms = c->wait_ms};
        return r;
}

void provision_free(struct provision *p)
{
        if (!p)
                return;
        p->closing = true;
        for (size_t i = 0; i < p->driver_count; i++) {
                if (p->drivers[i].p)
                        p->drivers[i].p->kind->close(p->drivers[i].p);
                free(p->drivers[i].folder);
                free(p->drivers[i].private);
                free(p->drivers[i].error);
        }
        for (size_t i = 0; i < p->settings.plan.shape_count; i++) {
                ad_free(p->shapes[i].ad);
                ad_free(p->shapes[i].base);
                free(p->shapes[i].closed);
                owners_deinit(&p->wish_shapes[i].owners);
        }
        map_free_values(p->going);
        map_free_values(p->stopping);
        free(p);
}
