#include "server/config/order.h"

#include <errno.h>

#include "base/buf.h"
#include "core/accounts/share.h"

#define POINTS_MAX 1e9 /* sums of products of two such numbers can still be compared exactly enough */

static void users_deinit(struct config_users *u)
{
        for (size_t i = 0; i < u->count; i++)
                free(u->v[i]);
        free(u->v);
}

void config_order_deinit(struct config_order *o)
{
        for (size_t i = 0; i < o->account_count; i++) {
                free(o->accounts[i].group);
                users_deinit(&o->accounts[i].users);
        }
        for (size_t i = 0; i < o->qos_count; i++) {
                free(o->qos[i].name);
                users_deinit(&o->qos[i].users);
        }
        for (size_t i = 0; i < o->credential_count; i++)
                free(o->credentials[i].name);
        free(o->accounts);
        free(o->qos);
        free(o->credentials);
        *o = (struct config_order){.account_count = 0};
}

static int read_points(const struct doc *d, double *ret, struct err *err)
{
        int r = doc_number(d, ret, err);

        if (r == 0 && (*ret > POINTS_MAX || *ret < -POINTS_MAX))
                r = doc_refuse(d, err, "must be from -1000000000 to 1000000000");
        return r;
}

static int order_need_map(const struct doc *d, struct err *err)
{
        return d->kind == DOC_MAP || d->empty ? 0 : doc_refuse(d, err, "must be a list of 'name: ...' lines");
}

static int order_add_user(void *arg, struct str word, struct err *err)
{
        struct config_users *u = arg;

        if (str_find(word, '@') < 0 && !str_eqz(word, "*"))
                return err_set(err, -EINVAL, "'" STR_FMT "' is not a user: write name@domain, *@domain or *",
                               STR_ARG(word));
        u->v = mem_array(u->v, u->count + 1, sizeof(*u->v));
        u->v[u->count++] = str_dupz(word);
        return 0;
}

static int order_read_users(struct config_users *u, const struct doc *d, struct err *err)
{
        const struct doc *users = doc_get(d, "users");

        return users ? doc_words(users, order_add_user, u, err) : 0;
}

int config_order_read_share(void *at, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"half_life", "memory_per_cpu", NULL};
        const struct doc *half = doc_get(d, keys[0]), *memory = doc_get(d, keys[1]);
        struct config_order *o = at;
        uint64_t ms = 0, bytes = 0;
        int r = doc_only(d, keys, err);

        if (r == 0 && half)
                r = doc_duration(half, &ms, err);
        if (r == 0 && half && ms == 0)
                r = doc_refuse(half, err, "must be longer than that");
        if (r == 0 && memory)
                r = doc_size(memory, &bytes, err);
        o->share.half_life_ms = (int64_t)ms;
        o->share.memory_per_cpu_mib = (int64_t)(bytes >> 20);
        return r;
}

static bool order_name_ok(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!((s.p[i] >= '0' && s.p[i] <= '9') || ((s.p[i] | 32) >= 'a' && (s.p[i] | 32) <= 'z') ||
                      s.p[i] == '_' || s.p[i] == '-'))
                        return false;
        return s.n > 0 && s.n <= 64;
}

static int need_accounts(const struct doc *d, struct err *err)
{
        int r = order_need_map(d, err);

        return r ? r : doc_no_twins(d, err);
}

static int read_account(struct config_order *o, struct str parent, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"shares", "users", "accounts", NULL};
        const struct doc *shares = doc_get(d, "shares"), *below = doc_get(d, "accounts");
        struct config_account *a;
        struct buf name = {0};
        size_t at = o->account_count;
        int r = doc_only(d, keys, err);

        if (r == 0 && !order_name_ok(d->key))
                r = doc_refuse(d, err, "is not an account's name: letters, digits, _ and -");
        if (r != 0)
                return r;
        buf_printf(&name, STR_FMT "%s" STR_FMT, STR_ARG(parent), parent.n ? "." : "", STR_ARG(d->key));
        MEM_GROW(o->accounts, o->account_cap, o->account_count + 1);
        a = &o->accounts[o->account_count++];
        *a = (struct config_account){.group = buf_take(&name), .shares = 1};
        if (shares)
                r = doc_number(shares, &a->shares, err);
        if (r == 0 && !(a->shares > 0 && a->shares <= ACCOUNT_SHARES_MAX))
                r = doc_refuse(shares, err, "must be more than 0 and at most 1000000000");
        if (r == 0)
                r = order_read_users(&a->users, d, err);
        if (r == 0 && below)
                r = need_accounts(below, err);
        for (const struct doc *x = below ? below->first : NULL; x && r == 0; x = x->next)
                r = read_account(o, str_of(o->accounts[at].group), x, err);
        return r;
}

int config_order_read_accounts(void *at, const struct doc *d, struct err *err)
{
        int r = need_accounts(d, err);

        for (const struct doc *x = d->first; x && r == 0; x = x->next)
                r = read_account(at, STR_NONE, x, err);
        return r;
}

static int read_one_qos(struct config_order *o, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"priority", "users", "max_running", NULL};
        const struct doc *priority = doc_get(d, keys[0]), *running = doc_get(d, keys[2]);
        struct config_qos *q;
        uint64_t units = 0;
        int r = doc_only(d, keys, err);

        if (r == 0 && !order_name_ok(d->key))
                r = doc_refuse(d, err, "is not the name of a quality of service: letters, digits, _ and -");
        if (r != 0)
                return r;
        MEM_GROW(o->qos, o->qos_cap, o->qos_count + 1);
        q = &o->qos[o->qos_count++];
        *q = (struct config_qos){.name = str_dupz(d->key), .max_running = -1};
        if (priority)
                r = read_points(priority, &q->priority, err);
        if (r == 0 && running)
                r = doc_count(running, &units, err);
        if (r == 0 && units > INT32_MAX)
                r = doc_refuse(running, err, "must be under 2147483648");
        if (running)
                q->max_running = (int64_t)units;
        return r ? r : order_read_users(&q->users, d, err);
}

int config_order_read_qos(void *at, const struct doc *d, struct err *err)
{
        int r = order_need_map(d, err);

        for (const struct doc *x = d->first; x && r == 0; x = x->next)
                r = read_one_qos(at, x, err);
        return r;
}

int config_order_read_weights(void *at, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"fair_share", "qos",        "size",    "age",
                                           "user",       "credential", "waiting", NULL};
        struct config_order *o = at;
        double *const to[] = {&o->weights.fair_share, &o->weights.qos,  &o->weights.size,
                              &o->weights.age,        &o->weights.user, &o->weights.credential,
                              &o->weights.waiting};
        int r = doc_only(d, keys, err);

        o->weights = (struct order_weights){
                .given = true, .fair_share = 1, .qos = 1, .credential = 1, .waiting = 1};
        for (size_t i = 0; r == 0 && keys[i]; i++) {
                const struct doc *x = doc_get(d, keys[i]);

                if (x)
                        r = read_points(x, to[i], err);
        }
        if (r == 0 && (o->weights.fair_share < 0 || o->weights.age < 0 || o->weights.waiting < 0))
                r = doc_refuse(d, err, "must have no fair_share, age or waiting under 0");
        return r;
}

static int read_credential(struct config_order *o, enum core_credential what, const struct doc *d,
                           struct err *err)
{
        int r = order_need_map(d, err);

        for (const struct doc *x = d->first; x && r == 0; x = x->next) {
                struct config_credential *one;

                MEM_GROW(o->credentials, o->credential_cap, o->credential_count + 1);
                one = &o->credentials[o->credential_count++];
                *one = (struct config_credential){.what = what, .name = str_dupz(x->key)};
                r = read_points(x, &one->points, err);
        }
        return r;
}

int config_order_read_credentials(void *at, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"users", "groups", "accounts", "classes", NULL};
        int r = doc_only(d, keys, err);

        for (size_t i = 0; r == 0 && keys[i]; i++) {
                const struct doc *x = doc_get(d, keys[i]);

                if (x)
                        r = read_credential(at, (enum core_credential)i, x, err);
        }
        return r;
}

void config_order_config(const struct config_order *o, struct core_config *ret)
{
        ret->share = o->share;
        ret->weights = o->weights;
}

static struct str *views(const struct config_users *u)
{
        struct str *v = mem_array(NULL, u->count + 1, sizeof(*v));

        for (size_t i = 0; i < u->count; i++)
                v[i] = str_of(u->v[i]);
        return v;
}

int config_order_apply(const struct config_order *o, struct core *c, struct err *err)
{
        int r = 0;

        for (size_t i = 0; i < o->account_count && r == 0; i++) {
                const struct config_account *a = &o->accounts[i];
                MEM_CLEANUP struct str *users = views(&a->users);

                r = core_account_set(c, str_of(a->group), a->shares, users, a->users.count, err);
        }
        for (size_t i = 0; i < o->qos_count && r == 0; i++) {
                const struct config_qos *q = &o->qos[i];
                MEM_CLEANUP struct str *users = views(&q->users);
                BUF_CLEANUP struct buf name = {0};

                core_qos_set(c, str_of(q->name), q->priority, users, q->users.count);
                buf_printf(&name, "qos/%s", q->name);
                if (q->max_running >= 0)
                        core_limit_set(c, buf_view(&name), q->max_running);
        }
        for (size_t i = 0; i < o->credential_count && r == 0; i++)
                core_credential_set(c, o->credentials[i].what, str_of(o->credentials[i].name),
                                    o->credentials[i].points);
        return r;
}
