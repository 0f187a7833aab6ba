/* The tails of an owner are in a list, oldest first. Each counts its size in KiB, but at least UNITS_MIN,
 * so that the number of short tails is bounded too. */
#include "server/files/tails.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/pack.h"
#include "server/loop/turn.h"

#define PREFIX     "tail/"
#define UNITS_MIN  4u /* KiB: the size of a tail in memory and in the store beside its text */
#define VERSION    1
#define WITH_STEPS 2 /* version number of the form with steps */

struct owner {
        char *name;
        struct entry *oldest, *newest;
        uint64_t units;
};
struct entry {
        struct entry *older, *newer; /* of the same owner */
        struct owner *owner;
        uint64_t serial, request;
        uint32_t member, fence, units;
};
struct tails {
        struct map *by_job, *owners;
        uint64_t units, last; /* last: the last serial */
};

struct key {
        char room[12];
};

static struct key key_of(uint64_t request, uint32_t member)
{
        struct key k;

        memcpy(k.room, &request, 8);
        memcpy(k.room + 8, &member, 4);
        return k;
}

static struct entry *find_tail(const struct tails *t, uint64_t request, uint32_t member)
{
        struct key k = key_of(request, member);

        return map_get(t->by_job, str_make(k.room, sizeof(k.room)));
}

static void write_name(const struct entry *e, struct buf *out)
{
        buf_printf(out, PREFIX "%016llx/%llu.%u.%u.%u/%s", (unsigned long long)e->serial,
                   (unsigned long long)e->request, e->member, e->fence, e->units, e->owner->name);
}

static struct owner *owner_get(struct tails *t, struct str name)
{
        struct owner *o = map_get(t->owners, name);

        if (!o) {
                o = mem_new(struct owner);
                o->name = str_dupz(name);
                map_put(t->owners, name, o);
        }
        return o;
}

/* Links an entry, all other members of which are set. */
static void link_entry(struct tails *t, struct entry *e)
{
        struct key k = key_of(e->request, e->member);
        struct owner *o = e->owner;

        e->older = o->newest;
        *(e->older ? &e->older->newer : &o->oldest) = e;
        o->newest = e;
        o->units += e->units;
        t->units += e->units;
        if (e->serial > t->last)
                t->last = e->serial;
        map_put(t->by_job, str_make(k.room, sizeof(k.room)), e);
}

static void entry_free(struct tails *t, struct entry *e)
{
        struct key k = key_of(e->request, e->member);
        struct owner *o = e->owner;

        map_take(t->by_job, str_make(k.room, sizeof(k.room)));
        *(e->older ? &e->older->newer : &o->oldest) = e->newer;
        *(e->newer ? &e->newer->older : &o->newest) = e->older;
        o->units -= e->units;
        t->units -= e->units;
        free(e);
        if (!o->oldest) {
                map_take(t->owners, str_of(o->name));
                free(o->name);
                free(o);
        }
}

static void drop_tail(struct server *s, struct entry *e)
{
        BUF_CLEANUP struct buf name = {0};

        write_name(e, &name);
        store_batch_blob_delete(turn_batch(s->turn), buf_view(&name));
        entry_free(s->tails, e);
}

static struct owner *who_has_most(const struct tails *t)
{
        struct owner *most = NULL;
        size_t at = 0;
        void *v;

        while (map_next(t->owners, &at, NULL, &v))
                if (!most || ((struct owner *)v)->units > most->units)
                        most = v;
        return most;
}

static void make_room(struct server *s)
{
        uint64_t most = config_keep_printed(&server_settings(s)->keep) >> 10;
        struct owner *o;

        while (s->tails->units > most && (o = who_has_most(s->tails)))
                drop_tail(s, o->oldest);
}

static void pack_step(struct buf *out, const struct command_step *s)
{
        pack_u64(out, s->signaled);
        pack_i64(out, s->exit_code);
        pack_i64(out, s->started_ms);
        pack_i64(out, s->ended_ms);
        pack_u64(out, s->printed[0]);
        pack_u64(out, s->printed[1]);
}

void tails_put(struct server *s, const struct tail *put)
{
        struct tails *t = s->tails;
        struct entry *e = find_tail(t, put->request, put->member);
        BUF_CLEANUP struct buf name = {0}, value = {0};

        if (put->bytes[0].n + put->bytes[1].n + put->step_count == 0 ||
            config_keep_printed(&server_settings(s)->keep) == 0)
                return;
        if (e)
                drop_tail(s, e);
        pack_u64(&value, put->step_count ? WITH_STEPS : VERSION);
        pack_str(&value, put->agent);
        for (int k = 0; k < 2; k++) {
                pack_u64(&value, put->size[k]);
                pack_str(&value, put->bytes[k]);
        }
        for (size_t i = 0; i < put->step_count; i++)
                pack_step(&value, &put->steps[i]);
        e = mem_new(struct entry);
        e->owner = owner_get(t, put->owner);
        e->serial = t->last + 1;
        e->request = put->request;
        e->member = put->member;
        e->fence = put->fence;
        e->units = (uint32_t)((value.n + 1023) >> 10);
        if (e->units < UNITS_MIN)
                e->units = UNITS_MIN;
        link_entry(t, e);
        write_name(e, &name);
        store_batch_blob_put(turn_batch(s->turn), buf_view(&name), buf_view(&value));
        make_room(s);
}

bool tails_find(const struct server *s, uint64_t request, uint32_t member, struct buf *ret_name,
                uint32_t *ret_fence)
{
        const struct entry *e = find_tail(s->tails, request, member);

        if (!e)
                return false;
        write_name(e, ret_name);
        *ret_fence = e->fence;
        return true;
}

void tails_forget(struct server *s, uint64_t request, uint32_t member)
{
        struct entry *e = find_tail(s->tails, request, member);

        if (e)
                drop_tail(s, e);
}

/* ---- reading */

void tail_read_deinit(struct tail_read *r)
{
        buf_deinit(&r->agent);
        buf_deinit(&r->bytes[0]);
        buf_deinit(&r->bytes[1]);
        buf_deinit(&r->steps);
}

/* Reads "tail/SERIAL/REQUEST.MEMBER.FENCE.UNITS/OWNER". The owner is a view of the name. */
static bool read_name(struct str name, struct entry *e, struct str *ret_owner)
{
        unsigned long long serial, request;
        char room[96];
        int end = 0;

        snprintf(room, sizeof(room), STR_FMT, STR_ARG(str_head(name, sizeof(room) - 1)));
        if (sscanf(room, PREFIX "%16llx/%llu.%u.%u.%u/%n", &serial, &request, &e->member, &e->fence,
                   &e->units, &end) != 5 ||
            end == 0)
                return false;
        e->serial = serial;
        e->request = request;
        *ret_owner = str_skip(name, (size_t)end);
        return true;
}

bool tails_next_step(struct str *steps, struct command_step *ret)
{
        struct unpack u = unpack_from(*steps);

        if (!steps->n)
                return false;
        ret->signaled = unpack_u64(&u) != 0;
        ret->exit_code = (int32_t)unpack_i64(&u);
        ret->started_ms = unpack_i64(&u);
        ret->ended_ms = unpack_i64(&u);
        ret->printed[0] = unpack_u64(&u);
        ret->printed[1] = unpack_u64(&u);
        *steps = str_make((const char *)u.p, u.bad ? 0 : (size_t)(u.end - u.p));
        return !u.bad;
}

int tails_read(struct server *s, struct str name, struct tail_read *ret)
{
        BUF_CLEANUP struct buf value = {0};
        struct entry e = {0};
        struct unpack u;
        struct str owner;
        int r = store_blob_get(s->store, name, &value, NULL);

        if (r != 0)
                return r;
        u = unpack_from(buf_view(&value));
        uint64_t version = unpack_u64(&u);
        if (!read_name(name, &e, &owner) || (version != VERSION && version != WITH_STEPS))
                return STORE_NOT_FOUND; /* written by a later version */
        ret->fence = e.fence;
        buf_str(&ret->agent, unpack_str(&u));
        for (int k = 0; k < 2; k++) {
                ret->size[k] = unpack_u64(&u);
                buf_str(&ret->bytes[k], unpack_str(&u));
        }
        if (version == WITH_STEPS && !u.bad) {
                buf_add(&ret->steps, u.p, (size_t)(u.end - u.p));
                u.p = u.end;
        }
        return unpack_done(&u) ? 0 : STORE_NOT_FOUND;
}

/* ---- opening */

static int on_name(void *arg, struct str name)
{
        struct tails *t = arg;
        struct entry *e = mem_new(struct entry);
        struct str owner;

        if (!read_name(name, e, &owner) || find_tail(t, e->request, e->member)) {
                free(e);
                return 0;
        }
        e->owner = owner_get(t, owner);
        link_entry(t, e);
        return 0;
}

int tails_open(struct server *s, struct tails **ret, struct err *err)
{
        struct tails *t = mem_new(struct tails);

        t->by_job = map_new();
        t->owners = map_new();
        *ret = t;
        return store_blob_list(s->store, STR(PREFIX), on_name, t, err);
}

void tails_free(struct tails *t)
{
        size_t at = 0;
        void *v;

        if (!t)
                return;
        while (at = 0, map_next(t->by_job, &at, NULL, &v))
                entry_free(t, v);
        map_free(t->by_job);
        map_free(t->owners);
        free(t);
}
