#include "server/config/reservations.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/format/doc.h"

#define DAY_MS    86400000
#define COUNT_MAX 1000u
#define CPUS_MAX  1000000000u

void config_reservations_deinit(struct config_reservations *r)
{
        free(r->users);
        *r = (struct config_reservations){0};
}

static int reservations_add_user(void *arg, struct str word, struct err *err)
{
        struct buf *users = arg;

        if (!word.n || str_find(word, ',') >= 0 || (!str_eqz(word, "*") && str_find(word, '@') < 0))
                return err_set(err, -EINVAL, "\"" STR_FMT "\" is not a user: write ann@lab, *@lab or *",
                               STR_ARG(word));
        if (users->n)
                buf_char(users, ',');
        buf_str(users, word);
        return 0;
}

static int read_count(const struct doc *map, const char *key, uint64_t most, uint64_t *ret, struct err *err)
{
        const struct doc *d = doc_get(map, key);
        int r = d ? doc_count(d, ret, err) : 0;

        if (r != 0 || !d || (*ret > 0 && *ret <= most))
                return r;
        err_set(err, -EINVAL, "%s must be from 1 to %llu", key, (unsigned long long)most);
        return doc_where(err, -EINVAL, d);
}

int config_reservations_read(void *place, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"users", "cpus", "duration", "ahead", "count", NULL};
        struct config_reservations *c = place;
        BUF_CLEANUP struct buf users = {0};
        const struct doc *one;
        uint64_t cpus = 0, count = 0, duration_ms = 0, ahead_ms = 0;
        int r = doc_only(d, keys, err);

        config_reservations_deinit(c);
        if (r == 0 && (one = doc_get(d, "users")) != NULL)
                r = doc_words(one, reservations_add_user, &users, err);
        if (r == 0)
                r = read_count(d, "cpus", CPUS_MAX, &cpus, err);
        if (r == 0)
                r = read_count(d, "count", COUNT_MAX, &count, err);
        if (r == 0 && (one = doc_get(d, "duration")) != NULL)
                r = doc_duration(one, &duration_ms, err);
        if (r == 0 && (one = doc_get(d, "ahead")) != NULL)
                r = doc_duration(one, &ahead_ms, err);
        if (r != 0)
                return r;
        c->users = users.n ? buf_take(&users) : NULL;
        c->cpus = (int64_t)cpus;
        c->count = (uint32_t)count;
        c->duration_ms = (int64_t)duration_ms;
        c->ahead_ms = (int64_t)ahead_ms;
        return 0;
}
