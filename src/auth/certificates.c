#include "auth/certificates.h"

#include <errno.h>

#include "base/map.h"
#include "base/pack.h"

#define ISSUED         "issued/"
#define REVOKED        "revoked/"
#define RECORD_VERSION 3 /* version 1 had no ceiling, version 2 no `most` */

struct entry {
        char serial[41]; /* in the form of cert_facts */
        char name[CSR_NAME_MAX + 1];
        int64_t from_ms, until_ms, revoked_ms;
        char *owners, *tags, *labels, *most; /* of the ceiling; NULL: no limit */
};

static void certificates_entry_free(struct entry *e)
{
        if (!e)
                return;
        free(e->owners);
        free(e->tags);
        free(e->labels);
        free(e->most);
        free(e);
}

static void set_ceiling(struct entry *e, const struct cert_ceiling *c)
{
        e->owners = str_dupz(c->owners);
        e->tags = str_dupz(c->tags);
        e->labels = str_dupz(c->labels);
        e->most = str_dupz(c->most);
}

struct certificates {
        struct map *by_serial; /* case-insensitive */
};

static void put_certificate(struct store_batch *b, const char *prefix, const char *serial,
                            const struct buf *record)
{
        BUF_CLEANUP struct buf name = {0};

        buf_printf(&name, "%s%s", prefix, serial);
        if (record)
                store_batch_blob_put(b, buf_view(&name), buf_view(record));
        else
                store_batch_blob_delete(b, buf_view(&name));
}

static bool read_issued(struct entry *e, struct str record)
{
        struct unpack u = unpack_from(record);
        uint64_t version = unpack_u64(&u);
        struct cert_ceiling ceiling = {0};
        struct str name;

        if (version == 0 || version > RECORD_VERSION)
                return false;
        name = unpack_str(&u);
        e->from_ms = unpack_i64(&u);
        e->until_ms = unpack_i64(&u);
        if (version > 1) {
                ceiling.owners = unpack_str(&u);
                ceiling.tags = unpack_str(&u);
                ceiling.labels = unpack_str(&u);
        }
        if (version > 2)
                ceiling.most = unpack_str(&u);
        if (!unpack_done(&u) || name.n > CSR_NAME_MAX)
                return false;
        set_ceiling(e, &ceiling);
        memcpy(e->name, name.p, name.n);
        return true;
}

static bool read_revoked(struct entry *e, struct str record)
{
        struct unpack u = unpack_from(record);

        if (unpack_max(&u, RECORD_VERSION) == 0)
                return false;
        e->revoked_ms = unpack_i64(&u);
        return unpack_done(&u);
}

static int certificates_load_one(struct certificates *cs, struct store *s, struct str name, struct err *err)
{
        BUF_CLEANUP struct buf record = {0};
        bool issued = str_starts(name, STR(ISSUED));
        struct str serial = str_skip(name, issued ? sizeof(ISSUED) - 1 : sizeof(REVOKED) - 1);
        struct entry *e = map_get(cs->by_serial, serial);
        int r = store_blob_get(s, name, &record, err);

        if (r)
                return r;
        if (!e && serial.n < sizeof(e->serial)) {
                e = mem_new(struct entry);
                memcpy(e->serial, serial.p, serial.n);
                map_put(cs->by_serial, serial, e);
        }
        if (e && (issued ? read_issued(e, buf_view(&record)) : read_revoked(e, buf_view(&record))))
                return 0;
        return err_set(err, -EBADMSG, "the record \"" STR_FMT "\" of the store cannot be read",
                       STR_ARG(name));
}

static int certificates_add_name(void *arg, struct str name)
{
        buf_str(arg, name);
        buf_char(arg, '\n');
        return 0;
}

int certificates_load(struct store *s, struct certificates **ret, struct err *err)
{
        BUF_CLEANUP struct buf names = {0};
        struct certificates *cs;
        struct str rest, name;
        int r = store_blob_list(s, STR(ISSUED), certificates_add_name, &names, err);

        if (r == 0)
                r = store_blob_list(s, STR(REVOKED), certificates_add_name, &names, err);
        if (r)
                return r;
        cs = mem_new(struct certificates);
        cs->by_serial = map_new_nocase();
        rest = buf_view(&names);
        while (r == 0 && str_cut(&rest, '\n', &name))
                if (name.n)
                        r = certificates_load_one(cs, s, name, err);
        if (r) {
                certificates_free(cs);
                return r;
        }
        *ret = cs;
        return 0;
}

void certificates_free(struct certificates *cs)
{
        size_t at = 0;
        void *e;

        if (!cs)
                return;
        while (map_next(cs->by_serial, &at, NULL, &e))
                certificates_entry_free(e);
        map_free(cs->by_serial);
        free(cs);
}

void certificates_add(struct certificates *cs, const struct cert_facts *facts,
                      const struct cert_ceiling *ceiling, struct store_batch *b)
{
        BUF_CLEANUP struct buf record = {0};
        struct entry *e = mem_new(struct entry);

        memcpy(e->serial, facts->serial, sizeof(e->serial));
        memcpy(e->name, facts->name, sizeof(e->name));
        e->from_ms = facts->from_ms;
        e->until_ms = facts->until_ms;
        set_ceiling(e, ceiling ? ceiling : &(struct cert_ceiling){0});
        certificates_entry_free(map_put(cs->by_serial, str_of(e->serial), e));
        pack_u64(&record, *e->most ? RECORD_VERSION : RECORD_VERSION - 1); /* an older server reads it */
        pack_str(&record, str_of(e->name));
        pack_i64(&record, e->from_ms);
        pack_i64(&record, e->until_ms);
        pack_str(&record, str_of(e->owners));
        pack_str(&record, str_of(e->tags));
        pack_str(&record, str_of(e->labels));
        if (*e->most)
                pack_str(&record, str_of(e->most));
        put_certificate(b, ISSUED, e->serial, &record);
}

bool certificates_believed(const struct certificates *cs, struct str serial)
{
        const struct entry *e = map_get(cs->by_serial, serial);

        return e && e->name[0] && !e->revoked_ms;
}

static void revoke(struct entry *e, int64_t now_ms, struct store_batch *b)
{
        BUF_CLEANUP struct buf record = {0};

        e->revoked_ms = now_ms ? now_ms : 1;
        pack_u64(&record, 1); /* its form has not changed since */
        pack_i64(&record, e->revoked_ms);
        put_certificate(b, REVOKED, e->serial, &record);
}

size_t certificates_revoke(struct certificates *cs, struct str name, int64_t now_ms, struct store_batch *b)
{
        size_t at = 0, count = 0;
        void *p;

        while (map_next(cs->by_serial, &at, NULL, &p)) {
                struct entry *e = p;

                if (e->revoked_ms || !str_eqz(name, e->name))
                        continue;
                revoke(e, now_ms, b);
                count++;
        }
        return count;
}

bool certificates_enough(const struct certificates *cs, struct str name, int64_t now_ms)
{
        size_t at = 0, count = 0;
        void *p;

        while (count < CERTIFICATES_OF_ONE && map_next(cs->by_serial, &at, NULL, &p)) {
                const struct entry *e = p;

                count += e->until_ms > now_ms && str_eqz(name, e->name);
        }
        return count >= CERTIFICATES_OF_ONE;
}

void certificates_prune(struct certificates *cs, int64_t now_ms, struct store_batch *b)
{
        BUF_CLEANUP struct buf ended = {0};
        struct str rest, serial;
        size_t at = 0;
        void *p;

        while (map_next(cs->by_serial, &at, NULL, &p))
                if (((struct entry *)p)->until_ms < now_ms)
                        buf_printf(&ended, "%s\n", ((struct entry *)p)->serial);
        rest = buf_view(&ended);
        while (str_cut(&rest, '\n', &serial)) {
                struct entry *e = serial.n ? map_take(cs->by_serial, serial) : NULL;

                if (!e)
                        continue;
                put_certificate(b, ISSUED, e->serial, NULL);
                put_certificate(b, REVOKED, e->serial, NULL);
                certificates_entry_free(e);
        }
}

static struct certificate shown(const struct entry *e)
{
        return (struct certificate){
                .name = e->name,
                .serial = e->serial,
                .from_ms = e->from_ms,
                .until_ms = e->until_ms,
                .revoked_ms = e->revoked_ms,
                .ceiling = {str_of(e->owners), str_of(e->tags), str_of(e->labels), str_of(e->most)},
        };
}

bool certificates_next(const struct certificates *cs, size_t *at, struct certificate *ret)
{
        void *p;

        if (!map_next(cs->by_serial, at, NULL, &p))
                return false;
        *ret = shown(p);
        return true;
}

bool certificates_find(const struct certificates *cs, struct str serial, struct certificate *ret)
{
        const struct entry *e = map_get(cs->by_serial, serial);

        if (!certificates_believed(cs, serial))
                return false;
        *ret = shown(e);
        return true;
}
