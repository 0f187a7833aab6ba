/* Queries about limits: units in use, by whom, and who waits. */
#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/fairness/charge.h"
#include "core/match/dispatch.h"
#include "core/model/core_parts.h"
#include "core/query.h"

static void query_limit_view(const struct limit *x, struct core_limit *ret)
{
        *ret = (struct core_limit){
                .name = x->name, .max = x->max == LIMIT_NONE ? -1 : x->max, .used = x->used};
        for (const struct limit_waiter *w = x->line; w; w = w->next)
                ret->waiting += container_of(w, const struct job_class, waits)->idle;
}

struct each {
        void (*fn)(void *arg, const struct core_limit *l);
        void *arg;
};

static void on_limit(void *arg, struct limit *x)
{
        struct each *e = arg;
        struct core_limit l;

        query_limit_view(x, &l);
        e->fn(e->arg, &l);
}

void core_limits(struct core *c, void (*fn)(void *arg, const struct core_limit *l), void *arg)
{
        struct each e = {fn, arg};

        limits_each(c->limits, on_limit, &e);
}

/* Returns the units of the limit that this attempt holds. */
static int64_t units_of(const struct job *j, const struct limit *x)
{
        if (x == charge_user(j->request))
                return 1;
        for (size_t i = 0; j->draws && i < j->draws->count; i++)
                if (j->draws->v[i].limit == x)
                        return j->draws->v[i].units;
        return 0;
}

static int by_units(const void *a, const void *b)
{
        const struct core_limit_user *x = a, *y = b;

        return x->units != y->units ? (x->units < y->units) - (x->units > y->units)
                                    : strcmp(x->owner, y->owner);
}

struct users {
        struct core_limit_user *v;
        size_t n, cap;
        struct map *by_owner; /* owner → place in v, from 1 */
};

static void users_add(struct users *u, const char *owner, int64_t units)
{
        size_t at = (size_t)(uintptr_t)map_get(u->by_owner, str_of(owner));

        if (!at) {
                MEM_GROW(u->v, u->cap, u->n + 1);
                u->v[u->n++] = (struct core_limit_user){.owner = owner};
                at = u->n;
                map_put(u->by_owner, str_of(owner), (void *)(uintptr_t)at);
        }
        u->v[at - 1].jobs++;
        u->v[at - 1].units += units;
}

void core_limit_users(struct core *c, const char *name,
                      void (*fn)(void *arg, const struct core_limit_user *u), void *arg)
{
        const struct limit *x = limits_find(c->limits, str_of(name));
        struct users u = {.by_owner = map_new()};
        void *value;

        for (size_t at = 0; x && map_next(c->agents, &at, NULL, &value);)
                for (const struct queue *q = ((struct core_agent *)value)->queues; q; q = q->next)
                        for (const struct job *j = q->attempts; j; j = j->next) {
                                int64_t units = units_of(j, x);

                                if (units)
                                        users_add(&u, request_owner(j->request), units);
                        }
        if (u.n)
                qsort(u.v, u.n, sizeof(*u.v), by_units);
        for (size_t i = 0; i < u.n; i++)
                fn(arg, &u.v[i]);
        free(u.v);
        map_free(u.by_owner);
}

int core_job_limit(struct core *c, uint64_t request, uint32_t member, struct core_limit *ret,
                   int64_t *ret_units)
{
        struct request *r = request_find(c, request);
        const struct bucket *b = r && member < r->count ? request_bucket(c, r, member) : NULL;
        struct limit *x;

        if (!b || !b->job_class || !set_has(&b->idle, member) ||
            charge_room(b->job_class, b->job_class->draws, &x) > 0)
                return CORE_UNKNOWN;
        query_limit_view(x, ret);
        *ret_units = 1;
        for (size_t i = 0; b->job_class->draws && i < b->job_class->draws->count; i++)
                if (b->job_class->draws->v[i].limit == x)
                        *ret_units = b->job_class->draws->v[i].units;
        return 0;
}

int core_job_throttle(struct core *c, uint64_t request, uint32_t member, uint64_t *ret_under_way,
                      uint64_t *ret_most)
{
        struct request *r = request_find(c, request);
        const struct bucket *b = r && member < r->count ? request_bucket(c, r, member) : NULL;

        if (!b || !set_has(&b->idle, member) || dispatch_room(r, member, 0))
                return CORE_UNKNOWN;
        *ret_under_way = dispatch_under_way(r);
        *ret_most = (uint64_t)request_part(r, member, NULL)->job_template->jobs_max;
        return 0;
}

int core_account_set(struct core *c, struct str group, double shares, const struct str *users,
                     size_t user_count, struct err *err)
{
        return shares_set_group(c->shares, group, shares, users, user_count, err) ? CORE_INVALID : 0;
}

void core_limit_set(struct core *c, struct str name, int64_t units)
{
        limits_set(c->limits, name, units);
}
