#include "server/config/mirror.h"

#include <errno.h>
#include <string.h>

#include "base/format/doc.h"
#include "base/mem.h"

#define LEASE_DEFAULT_MS 10000
#define LEASE_LEAST_MS   1000
#define LEASE_MOST_MS    600000

static int read_address(const struct doc *map, const char *key, char **ret, struct err *err)
{
        const struct doc *d = doc_get(map, key);
        struct str text;
        int r;

        if (!d) {
                err_set(err, -EINVAL, "mirror needs %s: HOST:PORT", key);
                return doc_where(err, -EINVAL, map);
        }
        r = doc_text(d, &text, err);
        if (r == 0 && !memchr(text.p, ':', text.n))
                return doc_refuse(d, err, "must be HOST:PORT");
        if (r == 0)
                *ret = str_dupz(text);
        return r;
}

/* Reads a word that is one of two. */
static int mirror_read_choice(const struct doc *map, const char *key, const char *no, const char *yes,
                              bool *ret, struct err *err)
{
        const struct doc *d = doc_get(map, key);

        if (!d)
                return 0;
        if (d->kind == DOC_WORD && (str_eqz(d->text, no) || str_eqz(d->text, yes))) {
                *ret = str_eqz(d->text, yes);
                return 0;
        }
        err_set(err, -EINVAL, "%s must be %s or %s", key, no, yes);
        return doc_where(err, -EINVAL, d);
}

int config_mirror_read(void *place, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"listen", "peer", "lease", "takeover", "submits", NULL};
        struct config_mirror *c = place;
        const struct doc *lease = doc_get(d, "lease");
        uint64_t ms = LEASE_DEFAULT_MS;
        int r = d->kind == DOC_MAP ? doc_only(d, keys, err) : doc_refuse(d, err, "must be a map");

        if (r == 0)
                r = read_address(d, "listen", &c->listen, err);
        if (r == 0)
                r = read_address(d, "peer", &c->peer, err);
        if (r == 0 && lease)
                r = doc_duration(lease, &ms, err);
        if (r == 0 && (ms < LEASE_LEAST_MS || ms > LEASE_MOST_MS))
                r = doc_refuse(lease, err, "must be from 1s to 10min");
        c->lease_ms = (int64_t)ms;
        if (r == 0)
                r = mirror_read_choice(d, "takeover", "automatic", "manual", &c->manual, err);
        if (r == 0)
                r = mirror_read_choice(d, "submits", "any", "mirrored", &c->all, err);
        return r;
}

void config_mirror_deinit(struct config_mirror *c)
{
        free(c->listen);
        free(c->peer);
        *c = (struct config_mirror){0};
}
