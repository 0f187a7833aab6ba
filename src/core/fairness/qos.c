#include "core/fairness/qos.h"

#include <errno.h>

#include "base/map.h"
#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/fairness/order.h"
#include "core/model/core_parts.h"

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
}

static bool name_of(struct core *c, const struct ad *ad, struct str *ret)
{
        return ad_find(ad, c->attr.QOS) && eval_string(&c->eval, ad, NULL, c->attr.QOS, ret) && ret->n > 0;
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
