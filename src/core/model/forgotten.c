/* Entries are in a list of all ordered by time, and in one list for each owner. A uuid is found by a keyed
 * hash; entries with the same hash are chained.
 */
#include "core/model/forgotten.h"

#include <assert.h>
#include <errno.h>

#include "base/map.h"
#include "base/mem.h"

struct entry {
        unsigned char uuid[16];
        uint64_t id, digest;
        int64_t at_ms;
        struct holder *holder;
        struct entry *next, *prev;    /* list of all, the oldest first */
        struct entry *his_next;       /* list of the owner's */
        struct entry *same_hash_next; /* chain of a hash */
};
struct holder {
        struct entry *first, *last;
        size_t count;
        char name[];
};
struct forgotten {
        struct map *holders;
        struct idmap *uuids;
        struct entry *first, *last;
        size_t count;
};

struct forgotten *forgotten_new(void)
{
        struct forgotten *f = mem_new(struct forgotten);

        f->holders = map_new();
        f->uuids = idmap_new();
        return f;
}

static uint64_t hash_of(const unsigned char uuid[16])
{
        return map_hash(uuid, 16);
}

static void uuid_drop(struct forgotten *f, struct entry *e)
{
        struct entry *at = idmap_get(f->uuids, hash_of(e->uuid));

        if (at != e) {
                while (at->same_hash_next != e)
                        at = at->same_hash_next;
                at->same_hash_next = e->same_hash_next;
        } else if (e->same_hash_next) {
                idmap_put(f->uuids, hash_of(e->uuid), e->same_hash_next);
        } else {
                idmap_take(f->uuids, hash_of(e->uuid));
        }
}

/* Drops the owner's oldest entry. */
static void drop_oldest(struct forgotten *f, struct holder *h)
{
        struct entry *e = h->first;

        h->first = e->his_next;
        if (--h->count == 0) {
                map_take(f->holders, str_of(h->name));
                free(h);
        }
        *(e->prev ? &e->prev->next : &f->first) = e->next;
        *(e->next ? &e->next->prev : &f->last) = e->prev;
        f->count--;
        uuid_drop(f, e);
        free(e);
}

void forgotten_free(struct forgotten *f)
{
        if (!f)
                return;
        while (f->first) {
                assert(f->first->holder->first == f->first);
                drop_oldest(f, f->first->holder);
        }
        map_free(f->holders);
        idmap_free(f->uuids);
        free(f);
}

static struct holder *holder_get(struct forgotten *f, struct str name)
{
        struct holder *h = map_get(f->holders, name);

        if (h)
                return h;
        h = mem_zalloc(sizeof(*h) + name.n + 1);
        if (name.n)
                memcpy(h->name, name.p, name.n);
        map_put(f->holders, name, h);
        return h;
}

static struct entry *find_uuid(const struct forgotten *f, const unsigned char uuid[16], struct str owner)
{
        struct entry *e = idmap_get(f->uuids, hash_of(uuid));

        while (e && (memcmp(e->uuid, uuid, sizeof(e->uuid)) != 0 || !str_eqz(owner, e->holder->name)))
                e = e->same_hash_next;
        return e;
}

static void append(struct forgotten *f, const struct forgotten_request *r, int64_t at_ms)
{
        struct holder *h = holder_get(f, r->owner);
        struct entry *e = mem_new(struct entry);

        *e = (struct entry){.id = r->id, .digest = r->digest, .at_ms = at_ms, .holder = h, .prev = f->last};
        memcpy(e->uuid, r->uuid, sizeof(e->uuid));
        *(f->last ? &f->last->next : &f->first) = e;
        f->last = e;
        *(h->count ? &h->last->his_next : &h->first) = e;
        h->last = e;
        h->count++;
        f->count++;
        e->same_hash_next = idmap_put(f->uuids, hash_of(e->uuid), e);
        if (h->count > FORGOTTEN_MAX)
                drop_oldest(f, h);
}

void forgotten_add(struct forgotten *f, const struct forgotten_request *r, int64_t at_ms)
{
        while (f->first && f->first->at_ms < at_ms - FORGOTTEN_MS)
                drop_oldest(f, f->first->holder);
        append(f, r, at_ms);
}

bool forgotten_find(const struct forgotten *f, const unsigned char uuid[16], struct str owner,
                    struct forgotten_request *ret)
{
        const struct entry *e = find_uuid(f, uuid, owner);

        if (!e)
                return false;
        *ret = (struct forgotten_request){.id = e->id, .digest = e->digest, .owner = str_of(e->holder->name)};
        memcpy(ret->uuid, e->uuid, sizeof(ret->uuid));
        return true;
}

size_t forgotten_count(const struct forgotten *f)
{
        return f->count;
}

/* ---- packed form */

void forgotten_pack_one(struct buf *out, const struct forgotten_request *r)
{
        pack_str(out, str_make((const char *)r->uuid, sizeof(r->uuid)));
        pack_u64(out, r->digest);
        pack_str(out, r->owner);
}

static void unpack_one(struct unpack *u, struct forgotten_request *ret)
{
        struct str uuid = unpack_str(u);

        *ret = (struct forgotten_request){.digest = unpack_u64(u)};
        ret->owner = unpack_str(u);
        if (uuid.n == sizeof(ret->uuid))
                memcpy(ret->uuid, uuid.p, uuid.n);
        else
                u->bad = true;
}

int forgotten_unpack_one(struct str values, struct forgotten_request *ret)
{
        struct unpack u = unpack_from(values);

        unpack_one(&u, ret);
        return unpack_done(&u) ? 0 : -EBADMSG;
}

void forgotten_pack(const struct forgotten *f, struct buf *out)
{
        pack_u64(out, f->count);
        for (const struct entry *e = f->first; e; e = e->next) {
                struct forgotten_request r = {.digest = e->digest, .owner = str_of(e->holder->name)};

                memcpy(r.uuid, e->uuid, sizeof(r.uuid));
                pack_u64(out, e->id);
                pack_i64(out, e->at_ms);
                forgotten_pack_one(out, &r);
        }
}

void forgotten_unpack(struct forgotten *f, struct unpack *u)
{
        for (uint64_t n = unpack_u64(u); n > 0 && !u->bad; n--) {
                struct forgotten_request r;
                uint64_t id = unpack_u64(u);
                int64_t at_ms = unpack_i64(u);

                unpack_one(u, &r);
                r.id = id;
                if (!u->bad)
                        append(f, &r, at_ms);
        }
}
