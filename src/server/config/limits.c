#include "server/config/limits.h"

#include <errno.h>

#include "base/buf.h"
#include "core/core.h"

void config_limits_deinit(struct config_limits *l)
{
        for (size_t i = 0; i < l->count; i++)
                free(l->v[i].name);
        free(l->v);
        for (size_t i = 0; i < l->spool_count; i++)
                free(l->spool[i].user);
        free(l->spool);
        *l = (struct config_limits){0};
}

static void add_limit(struct config_limits *l, const char *pool, struct str name, uint64_t units)
{
        struct buf full = {0};

        buf_printf(&full, "%s" STR_FMT, pool, STR_ARG(name));
        MEM_GROW(l->v, l->cap, l->count + 1);
        l->v[l->count++] = (struct config_limit){buf_take(&full), (int64_t)units};
}

static int add_count(struct config_limits *l, const char *pool, const struct doc *d, struct str name,
                     struct err *err)
{
        uint64_t units;
        int r = doc_count(d, &units, err);

        if (r != 0)
                return r;
        if (units > INT32_MAX) {
                err_set(err, -EINVAL, "%s must be under 2147483648", d->key.p);
                return doc_where(err, -EINVAL, d);
        }
        add_limit(l, pool, name, units);
        return 0;
}

static int add_kib(struct config_limits *l, const char *pool, const struct doc *d, struct str name,
                   struct err *err)
{
        uint64_t bytes;
        int r = doc_size(d, &bytes, err);

        if (r == 0)
                add_limit(l, pool, name, bytes / 1024);
        return r;
}

static int limits_need_map(const struct doc *d, struct err *err)
{
        if (d->kind == DOC_MAP || d->empty)
                return 0;
        err_set(err, -EINVAL, "%s must be a list of 'name: number' lines", d->key.p);
        return doc_where(err, -EINVAL, d);
}

static bool limit_name_ok(struct str name)
{
        struct str family = str_ends(name, STR(".*")) ? str_head(name, name.n - 2) : name;

        for (size_t i = 0; i < family.n; i++) {
                char c = family.p[i];

                if (!((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '.'))
                        return false;
        }
        return family.n > 0 && family.n <= LIMIT_NAME_MAX;
}

int config_limits_read(void *at, const struct doc *d, struct err *err)
{
        int r = limits_need_map(d, err);

        if (r == 0)
                r = doc_no_twins(d, err);
        for (const struct doc *x = d->first; x && r == 0; x = x->next) {
                if (!limit_name_ok(x->key)) {
                        err_set(err, -EINVAL,
                                "'" STR_FMT
                                "' is not the name of a limit: letters, digits, _ and dots, or NAME.*",
                                STR_ARG(x->key));
                        return doc_where(err, -EINVAL, x);
                }
                r = add_count(at, "", x, x->key, err);
        }
        return r;
}

static int add_spool(struct config_limits *l, const struct doc *d, struct str user, struct err *err)
{
        uint64_t bytes;
        int r = doc_size(d, &bytes, err);

        if (r != 0)
                return r;
        MEM_GROW(l->spool, l->spool_cap, l->spool_count + 1);
        l->spool[l->spool_count++] = (struct config_spool){str_dupz(user), bytes};
        return 0;
}

static const char *const user_keys[] = {"max_running", "max_queued",     "max_queued_bytes",
                                        "max_spool",   "max_placements", NULL};

static bool is_user_key(struct str key)
{
        for (size_t i = 0; user_keys[i]; i++)
                if (str_eqz(key, user_keys[i]))
                        return true;
        return false;
}

/* Reads the limits of one user, or of all. */
static int read_user(struct config_limits *l, const struct doc *d, struct str user, struct err *err)
{
        const struct doc *running = doc_get(d, "max_running"), *queued = doc_get(d, "max_queued");
        const struct doc *bytes = doc_get(d, "max_queued_bytes"), *spool = doc_get(d, "max_spool");
        const struct doc *placements = doc_get(d, "max_placements");
        int r = 0;

        if (running)
                r = add_count(l, "user/", running, user, err);
        if (r == 0 && placements)
                r = add_count(l, "placing/", placements, user, err);
        if (r == 0 && queued)
                r = add_count(l, "queued/", queued, user, err);
        if (r == 0 && bytes)
                r = add_kib(l, "queued_kib/", bytes, user, err);
        if (r == 0 && spool)
                r = add_spool(l, spool, user, err);
        return r;
}

int config_limits_read_users(void *at, const struct doc *d, struct err *err)
{
        int r = limits_need_map(d, err);

        if (r == 0)
                r = read_user(at, d, STR("*"), err);
        for (const struct doc *x = d->first; x && r == 0; x = x->next) {
                if (str_find(x->key, '@') > 0) {
                        r = doc_only(x, user_keys, err);
                        if (r == 0)
                                r = read_user(at, x, x->key, err);
                } else if (!is_user_key(x->key)) {
                        err_set(err, -EINVAL,
                                "'" STR_FMT "' is neither max_running, max_queued, max_queued_bytes, "
                                "max_spool, max_placements nor a user (name@domain)",
                                STR_ARG(x->key));
                        r = doc_where(err, -EINVAL, x);
                }
        }
        return r;
}

void config_limits_apply(const struct config_limits *l, uint64_t memory_bytes, struct core *c)
{
        core_limit_set(c, STR("queued/*"), CONFIG_QUEUED_DEFAULT);
        core_limit_set(c, STR("queued_kib/*"), (int64_t)(memory_bytes / 4 / 1024));
        for (size_t i = 0; i < l->count; i++)
                core_limit_set(c, str_of(l->v[i].name), l->v[i].units);
}
