#include "server/files/objects.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/format/hex.h"
#include "base/map.h"
#include "base/pack.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "core/query.h"
#include "server/agents/message.h"
#include "server/files/holdings.h"
#include "server/files/outputs.h"
#include "server/loop/turn.h"
#include "spool/spool.h"

/* an hour less than the time for which the spool keeps files that nothing refers to */
#define OWNED_MS   (23 * 3600000LL)
#define COLLECT_MS (24 * 3600000LL)
#define EVERY_MS   3600000
#define OBJECT_MAX (64ull << 30)

/* The default limit of one owner's uploads: this fraction of the file system, but at least HELD_LEAST. */
#define HELD_SHARE 4
#define HELD_LEAST (1ull << 30)

#define READ_MAX   (1u << 20)
#define WRITE_MAX  (4u << 20)

struct objects {
        struct spool *spool;
        struct map *owned;   /* "HASH/PRINCIPAL" → struct owned */
        struct map *uploads; /* "ID/PRINCIPAL" → struct owned: the object that the upload became */
        struct map *stored;  /* "JOB.FENCE/HASH" → this struct */
        struct outputs *outputs;
        struct holdings *holdings;
        int64_t collected_ms;
        bool collecting;
};
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
                close(fd); /* from a version that did not record sizes */
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
                            key2(&key, str_of(upload), str_of(who))); /* the file is named by its hash */
        return w ? w->hash : NULL;
}

int objects_check_submit(struct server *s, const struct call *c, const struct submission *sub,
                         struct err *err)
{
        BUF_CLEANUP struct buf key = {0};

        if (core_request_by_uuid(s->core, sub->uuid, str_of(c->who)))
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

/* ---- outputs of jobs */

/* Writes "JOB.FENCE/HASH" to b, the key of a file that an attempt has delivered. */
static struct str stored_key(struct buf *b, uint64_t request, uint32_t member, uint32_t fence,
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
        struct map *taken = map_new(); /* equal files are one object */
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
                stored_key(&key, r->request, r->member, r->fence, hash);
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

/* ---- transfers
 *
 * An agent's reads and writes of the spool go from the core thread, which checks the permission, to the
 * reader thread, which may wait for the disk. A file that was written is then recorded by the core thread. */

struct transfer { /* one read or write on its way through the reader thread */
        struct task task;
        struct command *command; /* owned */
        struct message *reply;
        char hash[SPOOL_HASH_TEXT];
        char upload[UUID_TEXT];
        char *owner;
        Drover__SpoolStored *stored;
        Drover__SpoolData *data;
};

static void transfer_drop(struct task *task)
{
        struct transfer *t = (struct transfer *)task;

        command_free(t->command);
        if (t->reply)
                message_free(t->reply);
        free(t->owner);
        free(t);
}

static struct transfer *transfer_new(struct command *c, const unsigned char sha256[32],
                                     Drover__ToAgent__KindCase kind)
{
        struct transfer *t = mem_new(struct transfer);

        t->task.drop = transfer_drop;
        t->command = command_take(c);
        hex_print(t->hash, sha256, 32);
        t->reply = message_new(c->session, kind);
        return t;
}

static ProtobufCBinaryData hash_for(struct message *m, const unsigned char sha256[32])
{
        return (ProtobufCBinaryData){.len = 32, .data = (uint8_t *)arena_dup(&m->arena, sha256, 32)};
}

/* Reader or core thread: sends the answer at once, because it reports no change of state. */
static void transfer_answer(struct server *s, struct transfer *t)
{
        struct message *m = t->reply;

        t->reply = NULL;
        transfer_drop(&t->task);
        server_to_io(s, &m->task);
}

static void data_error(struct transfer *t, const char *text)
{
        t->data->error = message_text(t->reply, str_of(text));
}

static void read_run(struct server *s, struct task *task)
{
        struct transfer *t = (struct transfer *)task;
        const struct command_spool_read *x = &t->command->spool_read;
        uint64_t size = 0, offset = x->offset, length = x->length;
        ssize_t got = 0;
        int fd;

        if (spool_object_open(s->objects->spool, str_of(t->hash), &fd, &size) != 0) {
                data_error(t, "the file is not in the spool");
                transfer_answer(s, t);
                return;
        }
        length = length > READ_MAX ? READ_MAX : length;
        t->data->size = size;
        t->data->data.data = message_alloc(t->reply, length);
        if (offset < size)
                got = pread(fd, t->data->data.data, length, (off_t)offset);
        close(fd);
        if (got < 0)
                data_error(t, "the file cannot be read");
        else
                t->data->data.len = (size_t)got;
        transfer_answer(s, t);
}

static bool is_input(struct server *s, uint64_t request, const unsigned char hash[32])
{
        const struct submission_file *files;
        size_t count;

        if (core_request_spooled(s->core, request, &files, &count) != 0)
                return false;
        for (size_t i = 0; i < count; i++)
                if (memcmp(files[i].sha256, hash, 32) == 0)
                        return true;
        return false;
}

void objects_read(struct server *s, struct command *c, struct agent *a)
{
        const struct command_spool_read *x = &c->spool_read;
        struct transfer *t = transfer_new(c, x->sha256, DROVER__TO_AGENT__KIND_SPOOL_DATA);
        struct core_request r;

        t->data = message_alloc(t->reply, sizeof(*t->data));
        drover__spool_data__init(t->data);
        t->reply->to_agent.spool_data = t->data;
        t->data->sha256 = hash_for(t->reply, x->sha256);
        t->data->offset = x->offset;
        if (core_request_get(s->core, x->request, &r) != 0 || !owners_allow(&a->owners, r.owner) ||
            ((!is_input(s, x->request, x->sha256) ||
              !core_has_part(s->core, a->name, x->request, CORE_PART_ANY)) &&
             !core_checkpoint_has(s->core, a->name, x->request, x->sha256))) {
                data_error(t, "this agent runs no job that has this file");
                transfer_answer(s, t);
                return;
        }
        t->task.run = read_run;
        server_to_reader(s, &t->task);
}

/* Core thread: the object is in the spool. It is recorded durably before the agent is answered. */
static void write_done(struct server *s, struct task *task)
{
        struct transfer *t = (struct transfer *)task;
        const struct command_spool_write *x = &t->command->spool_write;
        BUF_CLEANUP struct buf key = {0}, name = {0};
        struct message *m = t->reply;

        stored_key(&key, x->request, x->member, x->fence, t->hash);
        map_put(s->objects->stored, buf_view(&key), s->objects);
        buf_printf(&name, "stored/" STR_FMT, STR_ARG(buf_view(&key)));
        store_batch_blob_put(turn_batch(s->turn), buf_view(&name), STR("1"));
        t->reply = NULL;
        transfer_drop(task);
        message_send(s, m, TURN_DURABLE);
}

static const char *spool_text(int r)
{
        switch (r) {
        case SPOOL_WRONG_HASH: return "the bytes are not those that were announced";
        case SPOOL_FULL: return "the server's disk is full";
        case SPOOL_TOO_BIG: return "the file is too big for the spool";
        case SPOOL_NOT_FOUND: return "the upload is not there any more";
        default: return "the spool cannot be written";
        }
}

static void write_run(struct server *s, struct task *task)
{
        struct transfer *t = (struct transfer *)task;
        const struct command_spool_write *x = &t->command->spool_write;
        struct spool *sp = s->objects->spool;
        char hash[SPOOL_HASH_TEXT];
        uint64_t size = 0;
        struct err err = {0};
        int r = spool_upload_begin(sp, t->upload, str_of(t->owner), &size, &err);

        if (r == 0)
                r = spool_upload_write(sp, t->upload, x->offset, x->data, &size, &err);
        t->stored->stored = size;
        if (r == 0 && x->last) {
                r = spool_finish_one(sp, t->upload, t->hash, hash, &size, &err);
                t->stored->complete = r == 0;
        }
        t->stored->full = r == SPOOL_FULL;
        if (r != 0 && r != SPOOL_WRONG_OFFSET)
                t->stored->error =
                        message_text(t->reply, str_of(err.text[0] && r < 0 ? err.text : spool_text(r)));
        if (t->stored->complete) {
                t->task.run = write_done;
                server_to_core(s, &t->task);
        } else {
                transfer_answer(s, t);
        }
}

/* Derives the id of an upload from its content, so that a restarted agent resumes it. */
static void upload_id(char room[UUID_TEXT], const struct command_spool_write *x)
{
        unsigned char b[16];
        uint64_t mix[2] = {x->request * 0x9e3779b97f4a7c15u,
                           ((uint64_t)x->member << 32 | x->fence) * 0xc2b2ae3d27d4eb4fu};

        for (size_t i = 0; i < 16; i++)
                b[i] = x->sha256[i] ^ (unsigned char)(mix[i / 8] >> (i % 8 * 8));
        hex_print_uuid(room, b);
}

void objects_write(struct server *s, struct command *c, struct agent *a)
{
        const struct command_spool_write *x = &c->spool_write;
        struct transfer *t = transfer_new(c, x->sha256, DROVER__TO_AGENT__KIND_SPOOL_STORED);
        struct core_request r;

        t->stored = message_alloc(t->reply, sizeof(*t->stored));
        drover__spool_stored__init(t->stored);
        t->reply->to_agent.spool_stored = t->stored;
        t->stored->sha256 = hash_for(t->reply, x->sha256);
        if (core_request_get(s->core, x->request, &r) != 0 ||
            !core_has_attempt(s->core, a->name, x->request, x->member, x->fence)) {
                t->stored->error = message_text(t->reply, STR("this attempt is not the job's any more"));
        } else if (turn_full(s->turn)) {
                t->stored->full = true;
                t->stored->error = message_text(t->reply, STR("the server's disk is full"));
        } else if (x->data.n > WRITE_MAX) {
                t->stored->error = message_text(t->reply, STR("a piece of more than 4 MiB"));
        } else {
                upload_id(t->upload, x);
                t->owner = str_dupz(r.owner);
                t->task.run = write_run;
                server_to_reader(s, &t->task);
                return;
        }
        transfer_answer(s, t);
}

/* ---- removal of unneeded files */

struct collect {
        struct task task;
        struct map *wanted; /* by hash */
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

/* Appends, each after a newline, the keys of files that are a day old and not in `needed` (NULL: no file
 * is needed). */
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

/* `needed` has "HASH/PRINCIPAL" for each file that a request names. */
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
                        continue; /* it did not fit the buffer: next time */
                buf_printf(&name, "owned/" STR_FMT, STR_ARG(key));
                store_batch_blob_delete(turn_batch(s->turn), buf_view(&name));
                holdings_take(o->holdings, str_skip(key, SPOOL_HASH_TEXT), w->size);
                free(w);
        }
        for (rest = str_skip(buf_view(&uploads), 1); str_cut(&rest, '\n', &key) && key.n;)
                free(map_take(o->uploads, key));
}

/* Adds the input files of all requests: their hashes, and the owners who need them. */
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
