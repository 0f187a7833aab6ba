#include "server/config_limits.h"

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

static int add(struct config_limits *l, const char *pool, const struct doc *d, struct str name,
               struct err *err)
{
        struct buf full = {0};
        uint64_t units;
        int r = doc_count(d, &units, err);

        if (r != 0)
                return r;
        if (units > INT32_MAX) {
                err_set(err, -EINVAL, "%s must be under 2147483648", d->key.p);
                return doc_where(err, -EINVAL, d);
        }
        buf_printf(&full, "%s" STR_FMT, pool, STR_ARG(name));
        MEM_GROW(l->v, l->cap, l->count + 1);
        l->v[l->count++] = (struct config_limit){buf_take(&full), (int64_t)units};
        return 0;
}

static int need_map(const struct doc *d, struct err *err)
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
        int r = need_map(d, err);

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
                r = add(at, "", x, x->key, err);
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

/* max_running, max_queued and max_spool, of everybody or of one user. */
static int read_user(struct config_limits *l, const struct doc *d, struct str user, struct err *err)
{
        const struct doc *running = doc_get(d, "max_running"), *queued = doc_get(d, "max_queued");
        const struct doc *spool = doc_get(d, "max_spool");
        int r = 0;

        if (running)
                r = add(l, "user/", running, user, err);
        if (r == 0 && queued)
                r = add(l, "queued/", queued, user, err);
        if (r == 0 && spool)
                r = add_spool(l, spool, user, err);
        return r;
}

int config_limits_read_users(void *at, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"max_running", "max_queued", "max_spool", NULL};
        int r = need_map(d, err);

        if (r == 0)
                r = read_user(at, d, STR("*"), err);
        for (const struct doc *x = d->first; x && r == 0; x = x->next) {
                if (str_find(x->key, '@') > 0) {
                        r = doc_only(x, keys, err);
                        if (r == 0)
                                r = read_user(at, x, x->key, err);
                } else if (!str_eqz(x->key, keys[0]) && !str_eqz(x->key, keys[1]) &&
                           !str_eqz(x->key, keys[2])) {
                        err_set(err, -EINVAL,
                                "'" STR_FMT
                                "' is neither max_running, max_queued, max_spool nor a user (name@domain)",
                                STR_ARG(x->key));
                        r = doc_where(err, -EINVAL, x);
                }
        }
        return r;
}

void config_limits_apply(const struct config_limits *l, struct core *c)
{
        for (size_t i = 0; i < l->count; i++)
                core_limit_set(c, str_of(l->v[i].name), l->v[i].units);
}
