#include "core/fairness/qos.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/fairness/order.h"
#include "core/model/core_parts.h"
#include "core/model/item.h"

static void drop_users(struct qos *q)
{
        for (size_t i = 0; i < q->user_count; i++)
                free(q->users[i]);
        free(q->users);
        q->users = NULL;
        q->user_count = 0;
}

void core_qos_set(struct core *c, struct str name, double priority, const struct str *users,
                  size_t user_count)
{
        struct qos *q = map_get(c->fairness->qualities, name);

        if (!q) {
                q = mem_new(struct qos);
                q->name = str_dupz(name);
                map_put(c->fairness->qualities, name, q);
        }
        q->priority = priority;
        drop_users(q);
        q->users = mem_array(NULL, user_count, sizeof(*q->users));
        for (; q->user_count < user_count; q->user_count++)
                q->users[q->user_count] = str_dupz(users[q->user_count]);
}

void qos_deinit(struct core *c)
{
        void *value;

        for (size_t at = 0; map_next(c->fairness->qualities, &at, NULL, &value);) {
                struct qos *q = value;

                drop_users(q);
                free(q->name);
                free(q);
        }
        map_free(c->fairness->qualities);
        map_free_values(c->fairness->credentials);
}

static bool name_of(struct core *c, const struct ad *ad, struct str *ret)
{
        return ad_find(ad, c->attr.QOS) && item_text(c, ad, c->attr.QOS, ret) && ret->n > 0;
}

const struct qos *qos_of(struct core *c, const struct ad *ad)
{
        struct str name;

        return name_of(c, ad, &name) ? map_get(c->fairness->qualities, name) : NULL;
}

static bool may_use(const struct qos *q, struct str owner)
{
        for (size_t i = 0; i < q->user_count; i++)
                if (share_is_user(q->users[i], owner))
                        return true;
        return q->user_count == 0;
}

int qos_check(struct core *c, struct str owner, const struct ad *ad, struct err *err)
{
        struct buf BUF_CLEANUP mine = {.max = 256};
        const struct qos *q;
        struct str name;
        void *value;

        if (!name_of(c, ad, &name))
                return 0;
        q = map_get(c->fairness->qualities, name);
        if (q && may_use(q, owner))
                return 0;
        for (size_t at = 0; map_next(c->fairness->qualities, &at, NULL, &value);)
                if (may_use(value, owner))
                        buf_printf(&mine, "%s%s", mine.n ? ", " : "", ((struct qos *)value)->name);
        return err_set(err, -EINVAL, "quality of service '" STR_FMT "': %s; " STR_FMT " may use %s",
                       STR_ARG(name), q ? "this user is not listed there" : "there is no such",
                       STR_ARG(owner), mine.n ? buf_z(&mine) : "none: leave it out");
}

/* ---- credentials */

static void credential_key(struct buf *out, enum core_credential what, struct str name)
{
        buf_printf(out, "%d " STR_FMT, (int)what, STR_ARG(name));
}

void core_credential_set(struct core *c, enum core_credential what, struct str name, double points)
{
        BUF_CLEANUP struct buf key = {0};
        double *v = mem_new(double);

        credential_key(&key, what, name);
        *v = points;
        if (what == CORE_CREDENTIAL_CLASS && c->fairness->class_name_count == 0) {
                const struct attributes *a = &c->attr;
                const symbol names[] = {a->BatchQueue, a->SlurmPartition, a->GridEngineQueue,
                                        a->PbsQueue,   a->HtcondorQueue,  a->KubernetesQueue};

                _Static_assert(sizeof(names) == sizeof(c->fairness->class_names), "all of them");
                memcpy(c->fairness->class_names, names, sizeof(names));
                c->fairness->class_name_count = sizeof(names) / sizeof(names[0]);
                c->classes->keyed++; /* classes have these in their keys from now on */
        }
        free(map_put(c->fairness->credentials, buf_view(&key), v));
}

static double credential_of(const struct core *c, enum core_credential what, struct str name)
{
        BUF_CLEANUP struct buf key = {0};
        const double *v;

        credential_key(&key, what, name);
        v = map_get(c->fairness->credentials, buf_view(&key));
        return v ? *v : 0;
}

const symbol *credential_names(const struct core *c, size_t *count)
{
        *count = c->fairness->class_name_count;
        return c->fairness->class_names;
}

/* Points of the first queue that the ad names. */
static double class_points(struct core *c, const struct ad *ad)
{
        struct str name;

        for (size_t i = 0; i < c->fairness->class_name_count; i++) {
                symbol s = c->fairness->class_names[i];

                if (ad_find(ad, s) && eval_string(&c->eval, ad, NULL, s, &name))
                        return credential_of(c, CORE_CREDENTIAL_CLASS, name);
        }
        return 0;
}

double credential_points(struct core *c, struct str owner, struct str group, const struct ad *ad)
{
        ptrdiff_t at = str_rfind(owner, '@');
        double points;

        if (map_count(c->fairness->credentials) == 0)
                return 0;
        points = credential_of(c, CORE_CREDENTIAL_USER, owner) + class_points(c, ad);
        if (at >= 0)
                points += credential_of(c, CORE_CREDENTIAL_GROUP, str_skip(owner, (size_t)at + 1));
        while (group.n) {
                BUF_CLEANUP struct buf key = {0};
                ptrdiff_t dot = str_rfind(group, '.');
                const double *v;

                credential_key(&key, CORE_CREDENTIAL_ACCOUNT, group);
                v = map_get(c->fairness->credentials, buf_view(&key));
                if (v)
                        return points + *v;
                group = str_head(group, dot > 0 ? (size_t)dot : 0);
        }
        return points;
}
