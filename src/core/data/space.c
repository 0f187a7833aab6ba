/* Records are found by the name that the limit of a lot has: each name of the store, the owner and the lot is
 * written so that different names stay different, since names of limits have few characters and no case. */
#include "core/data/space.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/pack.h"
#include "core/data/data_state.h"
#include "core/data/inputs.h"
#include "core/model/core_parts.h"

#define ORDER_VERSION 1
#define RECORDS_MAX   (1u << 24)

struct measure {
        const struct core_agent *agent;
        int64_t level; /* what was free, and what had been written before it was measured */
};
struct space_store {
        struct limit *space, *lots; /* space/STORE and lots/STORE */
        uint32_t lot_count;
        uint64_t reserved, unwritten; /* sums over its lots: of sizes, and of what is not used of them */
        uint64_t files;               /* outside of lots */
        uint64_t capacity;            /* 0: not configured */
        struct measure *measures;     /* the last one of each connected agent */
        size_t measure_count;
        int64_t level;   /* the highest of these */
        int64_t written; /* bytes in all; below 0: more were removed */
};
struct space {
        struct map *lots;     /* by key; struct lot */
        struct map *stores;   /* by name; struct space_store */
        int64_t first_end_ms; /* of a lot */
        bool stale;           /* first_end_ms is to be found again */
};

static struct space *space_of(const struct core *c)
{
        return c->data->space;
}

/* ---- names */

/* Appends a name in characters that names of limits may have. */
static void add_name(struct buf *out, struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                char x = s.p[i];

                if ((x >= 'a' && x <= 'z') || (x >= '0' && x <= '9') || x == '-' || x == '@' ||
                    (x == '.' && i > 0 && i + 1 < s.n))
                        buf_char(out, x);
                else
                        buf_printf(out, "_%02x", (unsigned char)x);
        }
}

static void limit_name(struct buf *out, const char *family, struct str store)
{
        buf_printf(out, "%s/", family);
        add_name(out, store);
}

static void lot_key(struct buf *out, struct str store, struct str owner, struct str name)
{
        limit_name(out, "lot", store);
        buf_char(out, '/');
        add_name(out, owner);
        buf_char(out, '/');
        for (size_t i = 0; i < name.n; i++) /* without regard to case */
                buf_char(out, (char)(name.p[i] >= 'A' && name.p[i] <= 'Z' ? name.p[i] | 32 : name.p[i]));
}

bool space_name_ok(struct str name)
{
        if (name.n == 0 || name.n > SPACE_NAME_MAX)
                return false;
        for (size_t i = 0; i < name.n; i++) {
                char x = (char)(name.p[i] | 32);

                if (!(x >= 'a' && x <= 'z') && !(name.p[i] >= '0' && name.p[i] <= '9') && name.p[i] != '_' &&
                    name.p[i] != '-')
                        return false;
        }
        return true;
}

/* ---- limits */

static int64_t units_in(uint64_t bytes)
{
        return (int64_t)(bytes >> SPACE_UNIT_SHIFT);
}

/* Returns the bytes that claims outside of lots may have in all. */
static uint64_t room_of(const struct space_store *s)
{
        uint64_t taken = s->reserved + s->files, left = s->capacity > taken ? s->capacity - taken : 0;
        int64_t free_bytes;

        if (s->measure_count == 0)
                return left;
        free_bytes = s->level - s->written - (int64_t)s->unwritten;
        return free_bytes <= 0 ? 0 : (uint64_t)free_bytes < left ? (uint64_t)free_bytes : left;
}

/* Sets the limits of a store to what its records leave. */
static void store_follow(struct core *c, struct space_store *s)
{
        int64_t space = s->space->max, lots = s->lots->max;

        limits_set_one(c->limits, s->space, s->capacity ? units_in(room_of(s)) : LIMIT_NONE);
        limits_set_one(c->limits, s->lots, (int64_t)SPACE_LOTS_MAX - s->lot_count);
        if (s->space->max > space)
                c->listeners.limit_grew(c, s->space);
        if (s->lots->max > lots)
                c->listeners.limit_grew(c, s->lots);
}

static void lot_follow(struct core *c, struct lot *x)
{
        int64_t was = x->limit ? x->limit->max : 0;

        if (!x->limit)
                return;
        limits_set_one(c->limits, x->limit,
                       x->closed ? x->limit->used : units_in(x->size_bytes - x->used_bytes));
        if (x->limit->max > was)
                c->listeners.limit_grew(c, x->limit);
}

static struct space_store *store_find(const struct core *c, struct str name)
{
        return map_get(space_of(c)->stores, name);
}

static struct space_store *store_get(struct core *c, struct str name)
{
        BUF_CLEANUP struct buf space = {0}, lots = {0};
        struct space_store *s = store_find(c, name);

        if (s)
                return s;
        s = mem_new(struct space_store);
        limit_name(&space, "space", name);
        limit_name(&lots, "lots", name);
        s->space = limits_get(c->limits, buf_view(&space));
        s->lots = limits_get(c->limits, buf_view(&lots));
        map_put(space_of(c)->stores, name, s);
        store_follow(c, s);
        return s;
}

/* ---- records */

struct lot *space_find(const struct core *c, struct str store, struct str owner, struct str name)
{
        BUF_CLEANUP struct buf key = {0};

        lot_key(&key, store, owner, name);
        return map_get(space_of(c)->lots, buf_view(&key));
}

int64_t space_first_end_ms(const struct core *c)
{
        struct space *s = space_of(c);
        const struct lot *x;
        size_t at = 0;

        if (!s->stale)
                return s->first_end_ms;
        s->stale = false;
        s->first_end_ms = INT64_MAX;
        while ((x = space_next(c, &at)))
                s->first_end_ms = x->expires_ms < s->first_end_ms ? x->expires_ms : s->first_end_ms;
        return s->first_end_ms;
}

struct lot *space_next(const struct core *c, size_t *at)
{
        void *value = NULL;

        return map_next(space_of(c)->lots, at, NULL, &value) ? value : NULL;
}

uint64_t lot_claimed(const struct lot *x)
{
        return x->limit ? (uint64_t)x->limit->used << SPACE_UNIT_SHIFT : 0;
}

static struct lot *lot_new(struct core *c, struct str store, struct str owner, struct str name)
{
        BUF_CLEANUP struct buf key = {0};
        struct lot *x = mem_new(struct lot);

        lot_key(&key, store, owner, name);
        x->store = str_dupz(store);
        x->owner = str_dupz(owner);
        x->name = str_dupz(name);
        x->expires_ms = name.n ? 0 : INT64_MAX;
        if (name.n) {
                x->limit = limits_get(c->limits, buf_view(&key));
                store_get(c, store)->lot_count++;
        }
        map_put(space_of(c)->lots, buf_view(&key), x);
        return x;
}

static void lot_free(struct lot *x)
{
        free(x->store);
        free(x->owner);
        free(x->name);
        free(x);
}

static void lot_remove(struct core *c, struct lot *x)
{
        BUF_CLEANUP struct buf key = {0};
        struct space_store *s = store_get(c, str_of(x->store));

        lot_key(&key, str_of(x->store), str_of(x->owner), str_of(x->name));
        map_take(space_of(c)->lots, buf_view(&key));
        if (x->limit) {
                s->lot_count--;
                limits_unset(c->limits, x->limit);
        }
        lot_free(x);
}

/* Counts the record in its store's sums (sign 1), or takes it out (sign -1). */
static void lot_count(struct space_store *s, const struct lot *x, int sign)
{
        if (x->limit) {
                s->reserved += (uint64_t)sign * x->size_bytes;
                s->unwritten += (uint64_t)sign * (x->size_bytes - x->used_bytes);
        } else {
                s->files += (uint64_t)sign * x->used_bytes;
        }
}

static void files_add(struct core *c, struct str store, struct str owner, uint64_t bytes)
{
        struct lot *x = space_find(c, store, owner, STR_NONE);

        if (bytes == 0)
                return;
        if (!x)
                x = lot_new(c, store, owner, STR_NONE);
        x->used_bytes += bytes;
        store_get(c, store)->files += bytes;
}

void space_close(struct core *c, struct lot *x)
{
        x->closed = true;
        lot_follow(c, x);
}

/* ---- orders */

void space_order_pack(struct buf *out, const struct space_order *o)
{
        pack_u64(out, ORDER_VERSION);
        pack_u64(out, o->op);
        pack_str(out, o->store);
        pack_str(out, o->owner);
        pack_str(out, o->name);
        pack_u64(out, o->bytes);
        pack_i64(out, o->until_ms);
}

static int apply_reserve(struct core *c, const struct space_order *o, struct lot *x, struct space_store *s)
{
        if (o->bytes == 0 || (x && o->bytes > INT64_MAX - x->size_bytes))
                return -EBADMSG;
        if (!x)
                x = lot_new(c, o->store, o->owner, o->name);
        x->size_bytes += o->bytes;
        x->expires_ms = o->until_ms > x->expires_ms ? o->until_ms : x->expires_ms;
        x->closed = false;
        s->reserved += o->bytes;
        s->unwritten += o->bytes;
        lot_follow(c, x);
        return 0;
}

static int apply_write(struct core *c, const struct space_order *o, struct lot *x, struct space_store *s)
{
        s->written += (int64_t)o->bytes;
        if (!o->name.n) {
                files_add(c, o->store, o->owner, o->bytes);
                return 0;
        }
        if (!x || o->bytes > x->size_bytes - x->used_bytes)
                return -EBADMSG;
        lot_count(s, x, -1);
        x->used_bytes += o->bytes;
        lot_count(s, x, 1);
        lot_follow(c, x);
        return 0;
}

static void apply_remove(struct core *c, const struct space_order *o, struct lot *x, struct space_store *s)
{
        uint64_t bytes = !x ? 0 : o->bytes < x->used_bytes ? o->bytes : x->used_bytes;

        if (!x)
                return;
        s->written -= (int64_t)bytes;
        lot_count(s, x, -1);
        x->used_bytes -= bytes;
        lot_count(s, x, 1);
        if (x->limit)
                lot_follow(c, x);
        else if (x->used_bytes == 0)
                lot_remove(c, x);
}

static int apply_end(struct core *c, const struct space_order *o, struct lot *x, struct space_store *s)
{
        uint64_t used = x ? x->used_bytes : 0;

        if (!x || !x->limit || x->limit->used)
                return -EBADMSG;
        lot_count(s, x, -1);
        lot_remove(c, x);
        files_add(c, o->store, o->owner, used);
        return 0;
}

static void apply_set(struct core *c, const struct space_order *o, struct lot *x, struct space_store *s)
{
        if (x) {
                s->files -= x->used_bytes;
                lot_remove(c, x);
        }
        files_add(c, o->store, o->owner, o->bytes);
}

static int order_apply(struct core *c, const struct space_order *o)
{
        struct lot *x = space_find(c, o->store, o->owner, o->name);
        struct space_store *s = store_get(c, o->store);
        int r = 0;

        space_of(c)->stale = true;
        switch (o->op) {
        case SPACE_RESERVE: r = o->name.n ? apply_reserve(c, o, x, s) : -EBADMSG; break;
        case SPACE_WRITE: r = apply_write(c, o, x, s); break;
        case SPACE_REMOVE: apply_remove(c, o, x, s); break;
        case SPACE_RELEASE:
                if (!x || !x->limit)
                        return -EBADMSG;
                x->expires_ms = o->until_ms;
                break;
        case SPACE_END: r = apply_end(c, o, x, s); break;
        case SPACE_SET:
                if (o->name.n)
                        return -EBADMSG;
                apply_set(c, o, x, s);
                break;
        case SPACE_OPS: return -EBADMSG;
        }
        store_follow(c, s);
        return r;
}

int space_apply(struct core *c, struct str record, struct err *err)
{
        struct unpack u = unpack_from(record);
        uint64_t version = unpack_u64(&u);
        struct space_order o = {.op = (enum space_op)unpack_max(&u, SPACE_OPS - 1)};

        o.store = unpack_str(&u);
        o.owner = unpack_str(&u);
        o.name = unpack_str(&u);
        o.bytes = unpack_max(&u, INT64_MAX / 4);
        o.until_ms = unpack_i64(&u);
        if (version != ORDER_VERSION || !unpack_done(&u) || o.op == 0 || !o.store.n || !o.owner.n ||
            (o.name.n && !space_name_ok(o.name)) || order_apply(c, &o) != 0)
                return err_set(err, -EBADMSG, "an order for a store's space is damaged");
        return 0;
}

/* ---- looking */

static uint64_t measured_free(const struct space_store *s)
{
        int64_t now = s->level - s->written;

        return s->measure_count == 0 ? UINT64_MAX : now > 0 ? (uint64_t)now : 0;
}

bool space_look(const struct core *c, size_t store, struct space_view *ret)
{
        const struct space_store *s = store_find(c, c->data->sites.stores[store].urls.name);
        uint64_t claimed, room;

        if (!s || !s->capacity)
                return false;
        claimed = (uint64_t)s->space->used << SPACE_UNIT_SHIFT;
        room = room_of(s);
        *ret = (struct space_view){.capacity = s->capacity,
                                   .reserved = s->reserved,
                                   .files = s->files,
                                   .claimed = claimed,
                                   .left = room > claimed ? room - claimed : 0,
                                   .measured_free = measured_free(s)};
        return true;
}

/* ---- claims */

static bool add_size(void *arg, const struct input *f)
{
        uint64_t *sum = arg;

        *sum = f->bytes && *sum != UINT64_MAX ? *sum + f->bytes : UINT64_MAX;
        return true;
}

/* Returns the size of all that the part's members read, if it is known before they run; else UINT64_MAX. */
static uint64_t size_read(struct core *c, const struct part *p)
{
        uint64_t sum = 0;

        if (!p->inputs || p->count != 1)
                return UINT64_MAX;
        inputs_each(c, p->inputs, p->first, add_size, &sum);
        return sum;
}

uint32_t space_claim(struct core *c, const struct part *p)
{
        const struct job_template *t = p->job_template;
        const struct core_store *s =
                p->output_store < c->data->sites.store_count ? &c->data->sites.stores[p->output_store] : NULL;
        uint64_t bytes = UINT64_MAX, units;

        if (!s || !s->capacity_bytes || t->lot_act == LOT_REMOVE || t->lot_act == LOT_RELEASE ||
            t->lot_act == LOT_NOTHING)
                return 0;
        if (t->bytes_out_said >= 0)
                bytes = (uint64_t)t->bytes_out_said;
        else if (t->lot_act == LOT_COPY)
                bytes = size_read(c, p);
        if (bytes == UINT64_MAX) {
                bytes = s->file_bytes ? s->file_bytes : SPACE_FILE_BYTES;
                bytes = bytes < s->capacity_bytes ? bytes : s->capacity_bytes;
        }
        units = (bytes >> SPACE_UNIT_SHIFT) + ((bytes & ((1u << SPACE_UNIT_SHIFT) - 1)) != 0);
        return units == 0 ? 1 : units > INT32_MAX ? INT32_MAX : (uint32_t)units;
}

void space_draws(const struct core *c, const struct space_draw *d, struct buf *out)
{
        struct str store = c->data->sites.stores[d->store].urls.name;

        if (d->name.n && !d->reserves)
                lot_key(out, store, d->owner, d->name);
        else
                limit_name(out, "space", store);
        buf_printf(out, ":%u,", d->units);
        if (d->reserves) {
                limit_name(out, "lots", store);
                buf_char(out, ',');
        }
}

bool space_draws_ok(const struct core *c, size_t store, struct str owner, struct str name)
{
        BUF_CLEANUP struct buf key = {0};

        lot_key(&key, c->data->sites.stores[store].urls.name, owner, name);
        return key.n <= LIMIT_NAME_MAX;
}

int64_t space_drawn(const struct draws *d)
{
        for (size_t i = 0; d && i < d->count; i++)
                if (str_starts(str_of(d->v[i].limit->name), STR("space/")) ||
                    str_starts(str_of(d->v[i].limit->name), STR("lot/")))
                        return d->v[i].units;
        return 0;
}

/* ---- the rest of the core */

void space_init(struct core *c)
{
        struct space *s = c->data->space = mem_new(struct space);

        s->lots = map_new();
        s->stores = map_new();
        s->stale = true;
        limits_set(c->limits, STR("lot/*"), 0); /* of lots that are not there */
}

void space_deinit(struct core *c)
{
        struct space *s = space_of(c);
        void *value;

        for (size_t at = 0; map_next(s->lots, &at, NULL, &value);)
                lot_free(value);
        map_free(s->lots);
        for (size_t at = 0; map_next(s->stores, &at, NULL, &value);)
                free(((struct space_store *)value)->measures);
        map_free_values(s->stores);
        free(s);
}

void space_settings(struct core *c)
{
        const struct sites *sites = &c->data->sites;
        void *value;

        for (size_t at = 0; map_next(space_of(c)->stores, &at, NULL, &value);)
                ((struct space_store *)value)->capacity = 0;
        for (size_t i = 0; i < sites->store_count; i++)
                if (sites->stores[i].capacity_bytes)
                        store_get(c, sites->stores[i].urls.name)->capacity = sites->stores[i].capacity_bytes;
        for (size_t at = 0; map_next(space_of(c)->stores, &at, NULL, &value);)
                store_follow(c, value);
        for (size_t at = 0; map_next(space_of(c)->lots, &at, NULL, &value);)
                lot_follow(c, value);
}

/* ---- measurements */

static void level_follow(struct core *c, struct space_store *s)
{
        s->level = INT64_MIN;
        for (size_t i = 0; i < s->measure_count; i++)
                s->level = s->measures[i].level > s->level ? s->measures[i].level : s->level;
        store_follow(c, s);
}

void space_measured(struct core *c, size_t store, const struct core_agent *agent, uint64_t free_bytes)
{
        struct space_store *s = store_find(c, c->data->sites.stores[store].urls.name);
        size_t i = 0;

        if (!s || !s->capacity)
                return;
        while (i < s->measure_count && s->measures[i].agent != agent)
                i++;
        if (i == s->measure_count)
                s->measures = mem_array(s->measures, ++s->measure_count, sizeof(*s->measures));
        s->measures[i] = (struct measure){
                agent, (int64_t)(free_bytes < INT64_MAX / 4 ? free_bytes : INT64_MAX / 4) + s->written};
        level_follow(c, s);
}

void space_agent_away(struct core *c, const struct core_agent *agent)
{
        void *value;

        for (size_t at = 0; map_next(space_of(c)->stores, &at, NULL, &value);) {
                struct space_store *s = value;

                for (size_t i = 0; i < s->measure_count; i++)
                        if (s->measures[i].agent == agent) {
                                s->measures[i] = s->measures[--s->measure_count];
                                level_follow(c, s);
                                break;
                        }
        }
}

/* ---- snapshots */

static int by_names(const void *a, const void *b)
{
        const struct lot *x = *(struct lot *const *)a, *y = *(struct lot *const *)b;
        int order = strcmp(x->store, y->store);

        if (!order)
                order = strcmp(x->owner, y->owner);
        return order ? order : strcmp(x->name, y->name);
}

struct lot **space_sorted(const struct core *c, size_t *ret_count)
{
        struct lot **all = mem_array(NULL, map_count(space_of(c)->lots) + 1, sizeof(struct lot *)), *x;
        size_t n = 0, at = 0;

        while ((x = space_next(c, &at)))
                all[n++] = x;
        if (n)
                qsort(all, n, sizeof(*all), by_names);
        *ret_count = n;
        return all;
}

void space_pack(const struct core *c, struct buf *out)
{
        size_t n;
        MEM_CLEANUP struct lot **all = space_sorted(c, &n);

        pack_u64(out, n);
        for (size_t i = 0; i < n; i++) {
                const struct lot *x = all[i];

                pack_str(out, str_of(x->store));
                pack_str(out, str_of(x->owner));
                pack_str(out, str_of(x->name));
                pack_u64(out, x->size_bytes);
                pack_u64(out, x->used_bytes);
                pack_i64(out, x->expires_ms);
        }
}

void space_unpack(struct core *c, struct unpack *in)
{
        for (uint64_t n = unpack_max(in, RECORDS_MAX); n > 0 && !in->bad; n--) {
                struct str store = unpack_str(in), owner = unpack_str(in), name = unpack_str(in);
                uint64_t size = unpack_max(in, INT64_MAX), used = unpack_max(in, INT64_MAX);
                int64_t expires_ms = unpack_i64(in);
                struct lot *x;

                space_of(c)->stale = true;
                in->bad |= !store.n || !owner.n || (name.n && (!space_name_ok(name) || used > size)) ||
                           space_find(c, store, owner, name);
                if (in->bad)
                        break;
                x = lot_new(c, store, owner, name);
                x->size_bytes = size;
                x->used_bytes = used;
                x->expires_ms = expires_ms;
                lot_count(store_get(c, store), x, 1);
                lot_follow(c, x);
                store_follow(c, store_get(c, store));
        }
}

/* ---- invariants */

static const char *check_store(const struct core *c, struct str name, const struct space_store *s)
{
        uint64_t reserved = 0, unwritten = 0, files = 0;
        uint32_t lots = 0;
        const struct lot *x;
        size_t at = 0;

        while ((x = space_next(c, &at))) {
                if (!str_eqz(name, x->store))
                        continue;
                if (!x->limit) {
                        files += x->used_bytes;
                        continue;
                }
                lots++;
                reserved += x->size_bytes;
                unwritten += x->size_bytes - x->used_bytes;
                if (x->used_bytes > x->size_bytes || lot_claimed(x) > x->size_bytes - x->used_bytes)
                        return "the files of a lot, and what jobs may still write there, are more than its "
                               "size";
        }
        if (reserved != s->reserved || unwritten != s->unwritten || files != s->files || lots != s->lot_count)
                return "the lots and files of a store are summed wrongly";
        return NULL;
}

const char *space_invariant(struct core *c)
{
        struct str name;
        void *value;

        for (size_t at = 0; map_next(space_of(c)->stores, &at, &name, &value);) {
                const char *bad = check_store(c, name, value);

                if (bad)
                        return bad;
        }
        return NULL;
}
