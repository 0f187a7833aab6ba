#include "server/files/objects_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/pack.h"
#include "core/query.h"

#define OWNED_MS   (23 * 3600000LL) /* an hour less than what is not referred to is kept */
#define COLLECT_MS (24 * 3600000LL)
#define EVERY_MS   3600000
#define OBJECT_MAX (64ull << 30)

/* What one owner may upload, of whom the settings say nothing: this part of the file system, or on a small
 * one so much. */
#define HELD_SHARE 4
#define HELD_LEAST (1ull << 30)

struct owned {
        int64_t at_ms;
        uint64_t size;
        char hash[SPOOL_HASH_TEXT];
};

struct spool *objects_spool(struct server *s)
{
        return s->objects->spool;
}

static struct str key2(struct buf *b, struct str first, struct str second)
{
        buf_reset(b);
        buf_str(b, first);
        buf_char(b, '/');
        buf_str(b, second);
        return buf_view(b);
}

static struct owned *owned_new(struct str hash, int64_t at_ms, uint64_t size)
{
        struct owned *w = mem_new(struct owned);

        *w = (struct owned){.at_ms = at_ms, .size = size};
        snprintf(w->hash, sizeof(w->hash), STR_FMT, STR_ARG(hash));
        return w;
}

static void add_owned(struct objects *o, struct str hash, struct str owner, struct str upload, int64_t at_ms,
                      uint64_t size)
{
        BUF_CLEANUP struct buf key = {0};
        struct owned *w = map_get(o->owned, key2(&key, hash, owner));

        if (w) {
                w->at_ms = at_ms;
        } else {
                map_put(o->owned, buf_view(&key), owned_new(hash, at_ms, size));
                holdings_add(o->holdings, owner, size);
        }
        if (upload.n)
                free(map_put(o->uploads, key2(&key, upload, owner), owned_new(hash, at_ms, size)));
}

/* ---- opening */

struct loading {
        struct server *server;
        struct objects *objects;
};

static int on_owned(void *arg, struct str name)
{
        struct loading *l = arg;
        BUF_CLEANUP struct buf value = {0};
        struct str rest = name, kind, hash, upload;
        uint64_t size = 0;
        struct unpack u;
        int64_t at_ms;
        int fd;

        str_cut(&rest, '/', &kind);
        str_cut(&rest, '/', &hash);
        if (store_blob_get(l->server->store, name, &value, NULL) != 0)
                return 0;
        u = unpack_from(buf_view(&value));
        at_ms = unpack_i64(&u);
        upload = unpack_str(&u);
        if (u.bad)
                return 0;
        if (u.p < u.end)
                size = unpack_u64(&u);
        else if (spool_object_open(l->objects->spool, hash, &fd, &size) == 0)
                close(fd); /* written down before sizes were */
        add_owned(l->objects, hash, rest, upload, at_ms, size);
        return 0;
}

static int on_stored(void *arg, struct str name)
{
        struct objects *o = ((struct loading *)arg)->objects;

        map_put(o->stored, str_skip(name, sizeof("stored/") - 1), o);
        return 0;
}

int objects_open(struct server *s, struct objects **ret, struct err *err)
{
        struct objects *o = mem_new(struct objects);
        struct loading l = {s, o};
        uint64_t held = HELD_LEAST;
        int r;

        struct statvfs v;

        o->owned = map_new();
        o->uploads = map_new();
        o->stored = map_new();
        *ret = o;
        r = spool_open(s->paths.spool, OBJECT_MAX, &o->spool, err);
        if (r != 0)
                return r;
        if (statvfs(s->paths.spool, &v) == 0 && v.f_blocks / HELD_SHARE > held / v.f_frsize)
                held = (uint64_t)v.f_blocks / HELD_SHARE * v.f_frsize;
        o->holdings = holdings_new(o->spool, &s->config.limits, held);
        r = store_blob_list(s->store, STR("owned/"), on_owned, &l, err);
        if (r == 0)
                r = store_blob_list(s->store, STR("stored/"), on_stored, &l, err);
        if (r == 0)
                r = outputs_open(s, &o->outputs, err);
        return r;
}

void objects_free(struct objects *o)
{
        if (!o)
                return;
        map_free_values(o->owned);
        map_free_values(o->uploads);
        map_free(o->stored);
        outputs_free(o->outputs);
        holdings_free(o->holdings);
        spool_close(o->spool);
        free(o);
}

/* ---- uploads and submits */

struct holdings *objects_holdings(struct server *s)
{
        return s->objects->holdings;
}

void objects_uploaded(struct server *s, struct str owner, struct str upload, const char *hash, uint64_t size)
{
        BUF_CLEANUP struct buf name = {0}, value = {0};
        int64_t now = clock_wall_ms();

        add_owned(s->objects, str_of(hash), owner, upload, now, size);
        buf_printf(&name, "owned/%s/" STR_FMT, hash, STR_ARG(owner));
        pack_i64(&value, now);
        pack_str(&value, upload);
        pack_u64(&value, size);
        store_batch_blob_put(turn_batch(s->turn), buf_view(&name), buf_view(&value));
}

const char *objects_find_upload(struct server *s, const char *who, const char *upload)
{
        BUF_CLEANUP struct buf key = {0};
        struct owned *w = map_get(s->objects->uploads, key2(&key, str_of(upload), str_of(who)));

        if (!w)
                w = map_get(s->objects->owned,
                            key2(&key, str_of(upload), str_of(who))); /* named by its hash */
        return w ? w->hash : NULL;
}

int objects_check_submit(struct server *s, const struct call *c, const struct submission *sub,
                         struct err *err)
{
        BUF_CLEANUP struct buf key = {0};

        if (core_request_by_uuid(s->core, sub->uuid))
                return 0;
        for (size_t i = 0; i < sub->spooled_count; i++) {
                char hash[SPOOL_HASH_TEXT];
                struct owned *w;

                hex_print(hash, sub->spooled[i].sha256, 32);
                w = map_get(s->objects->owned, key2(&key, str_of(hash), str_of(c->who)));
                if (!w || w->at_ms + OWNED_MS < clock_wall_ms())
                        return err_set(err, -EACCES,
                                       "the input file " STR_FMT " was not uploaded: upload it first",
                                       STR_ARG(sub->spooled[i].name));
        }
        return 0;
}

int objects_read_whole(struct server *s, const char *hash, struct buf *ret, struct err *err)
{
        uint64_t size;
        int fd, r = spool_object_open(s->objects->spool, str_of(hash), &fd, &size);

        if (r != 0)
                return err_set(err, r, "the uploaded items are not there any more");
        if (size > OBJECTS_WHOLE_MAX) {
                close(fd);
                return err_set(err, -E2BIG, "items of more than %u MiB", OBJECTS_WHOLE_MAX >> 20);
        }
        while (ret->n < size) {
                char *room = buf_room(ret, size - ret->n);
                ssize_t got = room ? pread(fd, room, size - ret->n, (off_t)ret->n) : -1;

                if (got <= 0)
                        break;
                ret->n += (size_t)got;
        }
        close(fd);
        return ret->n == size ? 0 : err_set(err, -EIO, "the uploaded items cannot be read");
}

/* ---- results */

struct str objects_stored_key(struct buf *b, uint64_t request, uint32_t member, uint32_t fence,
                              const char *hash)
{
        buf_reset(b);
        buf_printf(b, "%" PRIu64 ".%u.%u/%s", request, member, fence, hash);
        return buf_view(b);
}

void objects_take_outputs(struct server *s, struct core_result *r, struct buf *room)
{
        struct objects *o = s->objects;
        struct unpack u = unpack_from(r->outputs);
        BUF_CLEANUP struct buf key = {0}, name = {0}, list = {0};
        struct map *taken = map_new(); /* files alike are one object */
        uint64_t n, good = 0;

        buf_reset(room);
        for (n = unpack_u64(&u); n > 0 && !u.bad; n--) {
                struct str file = unpack_str(&u);
                unsigned char sha[32];
                char hash[SPOOL_HASH_TEXT];
                uint64_t size, mode;

                if (u.bad || u.end - u.p < 32)
                        break;
                memcpy(sha, u.p, 32);
                u.p += 32;
                size = unpack_u64(&u);
                mode = unpack_u64(&u);
                hex_print(hash, sha, 32);
                objects_stored_key(&key, r->request, r->member, r->fence, hash);
                if (u.bad || (!map_take(o->stored, buf_view(&key)) && !map_get(taken, str_of(hash)))) {
                        if (!outputs_has(o->outputs, str_of(hash)) || u.bad)
                                log_warn("msg=\"an output that was not stored is left out\" job=%" PRIu64
                                         ".%u file=\"%s\"",
                                         r->request, r->member, LOG_TEXT(file));
                        continue;
                }
                buf_reset(&name);
                buf_printf(&name, "stored/" STR_FMT, STR_ARG(buf_view(&key)));
                store_batch_blob_delete(turn_batch(s->turn), buf_view(&name));
                outputs_keep(s, o->outputs, hash);
                map_put(taken, str_of(hash), o);
                pack_str(&list, file);
                buf_add(&list, sha, 32);
                pack_u64(&list, size);
                pack_u64(&list, mode);
                good++;
        }
        if (good) {
                pack_u64(room, good);
                buf_str(room, buf_view(&list));
        }
        r->outputs = buf_view(room);
        map_free(taken);
}

/* ---- collecting */

struct collect {
        struct task task;
        struct map *wanted; /* hashes */
};

static void collect_free(struct task *task)
{
        map_free(((struct collect *)task)->wanted);
        free(task);
}

static void collect_done(struct server *s, struct task *task)
{
        s->objects->collecting = false;
        collect_free(task);
}

static bool is_wanted(void *arg, struct str hash)
{
        return map_get(((struct collect *)arg)->wanted, hash) != NULL;
}

static void collect_run(struct server *s, struct task *task)
{
        struct collect *x = (struct collect *)task;
        int64_t before = clock_wall_ms() - COLLECT_MS;
        uint64_t bytes = 0;
        struct err err = {0};

        spool_upload_expire(s->objects->spool, before);
        if (spool_collect(s->objects->spool, before, is_wanted, x, &bytes, &err) != 0)
                log_warn("msg=\"the spool was not tidied\" why=\"%s\"", LOG_TEXT(str_of(err.text)));
        else if (bytes)
                log_info("msg=\"the spool was tidied\" bytes=%" PRIu64, bytes);
        task->run = collect_done;
        server_to_core(s, task);
}

static void add_stored(struct map *to, const struct map *stored)
{
        struct str key;
        size_t at = 0;

        while (map_next(stored, &at, &key, NULL))
                map_put(to, str_skip(key, (size_t)str_find(key, '/') + 1), to);
}

/* The keys, each behind a line end, of what is a day old and not among `needed` (NULL: nothing is). */
static void add_old(struct buf *out, const struct map *from, const struct map *needed)
{
        int64_t before = clock_wall_ms() - COLLECT_MS;
        struct str key;
        size_t at = 0;
        void *v;

        while (map_next(from, &at, &key, &v))
                if (((struct owned *)v)->at_ms <= before && !(needed && map_get(needed, key))) {
                        buf_char(out, '\n');
                        buf_str(out, key);
                }
}

/* `needed` has "HASH/PRINCIPAL" of what requests name. */
static void forget_owned(struct server *s, const struct map *needed)
{
        struct objects *o = s->objects;
        BUF_CLEANUP struct buf owned = {0}, uploads = {0};
        struct str rest, key;

        add_old(&owned, o->owned, needed);
        add_old(&uploads, o->uploads, NULL);
        for (rest = str_skip(buf_view(&owned), 1); str_cut(&rest, '\n', &key) && key.n;) {
                BUF_CLEANUP struct buf name = {0};
                struct owned *w = map_take(o->owned, key);

                if (!w)
                        continue; /* cut off at the buffer's end: next time */
                buf_printf(&name, "owned/" STR_FMT, STR_ARG(key));
                store_batch_blob_delete(turn_batch(s->turn), buf_view(&name));
                holdings_take(o->holdings, str_skip(key, SPOOL_HASH_TEXT), w->size);
                free(w);
        }
        for (rest = str_skip(buf_view(&uploads), 1); str_cut(&rest, '\n', &key) && key.n;)
                free(map_take(o->uploads, key));
}

/* The files of all requests: their hashes, and whose they are. */
static void add_inputs(struct server *s, struct map *wanted, struct map *needed)
{
        BUF_CLEANUP struct buf key = {0};

        for (uint64_t id = core_request_next(s->core, 0); id; id = core_request_next(s->core, id)) {
                const struct submission_file *files;
                struct core_request r;
                size_t count;

                if (core_request_spooled(s->core, id, &files, &count) != 0 || count == 0 ||
                    core_request_get(s->core, id, &r) != 0)
                        continue;
                for (size_t i = 0; i < count; i++) {
                        char hash[SPOOL_HASH_TEXT];

                        hex_print(hash, files[i].sha256, 32);
                        map_put(wanted, str_of(hash), s);
                        map_put(needed, key2(&key, str_of(hash), r.owner), s);
                }
        }
}

size_t objects_unkeep(struct server *s, int64_t before_ms, size_t most)
{
        return outputs_prune(s, s->objects->outputs, before_ms, most);
}

void objects_tick(struct server *s)
{
        struct objects *o = s->objects;
        struct map *needed;
        struct collect *x;
        struct str output;

        if (o->collecting || turn_full(s->turn) ||
            (o->collected_ms && clock_boot_ms() - o->collected_ms < EVERY_MS))
                return;
        o->collected_ms = clock_boot_ms();
        o->collecting = true;
        needed = map_new();
        x = mem_new(struct collect);
        x->task.run = collect_run;
        x->task.drop = collect_free;
        x->wanted = map_new();
        for (size_t at = 0; outputs_next(o->outputs, &at, &output);)
                map_put(x->wanted, output, x);
        add_stored(x->wanted, o->stored);
        add_inputs(s, x->wanted, needed);
        forget_owned(s, needed);
        map_free(needed);
        server_to_reader(s, &x->task);
}
