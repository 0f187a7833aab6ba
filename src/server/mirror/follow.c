/* The follower: groups into its store, and what it lacks from the leader.
 *
 *   idle ---- a group that names files ----> pulling them ----> idle
 *   idle ---- its store is of no use ----> copying the database, then the files ----> idle
 *
 * A group is taken when its files are here, since who reads it after a takeover expects them. A copied
 * database takes the place of the old one by rename, when it is complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pack.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "base/system/uuid.h"
#include "server/mirror/state.h"

#define ANSWER_MAX    (1u << 30) /* of the list of files, and of a snapshot */
#define COPY_MS       (12 * 3600000LL)
#define OWNER         STR("mirror")
#define HASH_TEXT     64
#define GROUP_MAX     ((size_t)1 << 30)
#define SNAPSHOT_LEFT 100000 /* records before a snapshot that stay, as in history/snapshot.c */

struct mirror_pull {
        bool whole;                   /* of a copy; otherwise of a group */
        struct http_request *request; /* that brought the group; NULL: its sender has gone */
        struct relation_beat beat;
        struct buf hashes; /* of files that are missing, HASH_TEXT bytes each */
        size_t at;
        char upload[UUID_TEXT];
        uint64_t offset;
        bool failed;
        struct http_call *call;
        int fd; /* of the database that comes; -1: none */
};

static void pull_free(struct mirror *m)
{
        struct mirror_pull *p = m->pull;

        if (!p)
                return;
        http_call_cancel(p->call);
        if (p->request)
                http_on_close(p->request, NULL, NULL);
        if (p->fd >= 0)
                close(p->fd);
        buf_deinit(&p->hashes);
        free(p);
        m->pull = NULL;
}

void follow_stop(struct mirror *m)
{
        pull_free(m);
        buf_reset(&m->group);
}

/* ---- the store */

struct commit {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool done;
        int result;
        struct err err;
};

static void on_committed(void *arg, int result, uint64_t last_seq, struct store_batch *batch,
                         const struct err *err)
{
        struct commit *c = arg;

        (void)last_seq;
        store_batch_free(batch);
        pthread_mutex_lock(&c->lock);
        c->done = true;
        c->result = result;
        if (err)
                c->err = *err;
        pthread_cond_signal(&c->changed);
        pthread_mutex_unlock(&c->lock);
}

static int commit(struct mirror *m, struct store_batch *b, struct err *err)
{
        struct commit c = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

        store_append(m->copy, m->term, b, on_committed, &c);
        pthread_mutex_lock(&c.lock);
        while (!c.done)
                pthread_cond_wait(&c.changed, &c.lock);
        pthread_mutex_unlock(&c.lock);
        return c.result == 0 ? 0 : err_set(err, c.result, "%s", c.err.text);
}

static int read_at(struct store *store, struct relation_at *ret, struct err *err)
{
        BUF_CLEANUP struct buf data = {.max = MIRROR_FIELD};
        struct unpack u;
        int r = store_blob_get(store, MIRROR_AT, &data, err);

        *ret = (struct relation_at){0};
        if (r != 0)
                return r == STORE_NOT_FOUND ? 0 : r;
        u = unpack_from(buf_view(&data));
        ret->line = unpack_u64(&u);
        ret->serial = unpack_u64(&u);
        return u.bad ? err_set(err, -EBADMSG, "the mirror's position in the store is damaged") : 0;
}

static int open_copy(struct mirror *m, struct err *err)
{
        const struct store_place place = {0};
        BUF_CLEANUP struct buf address = {0}, data = {0};
        struct relation_at at = {0};
        uint64_t snapshot = 0;
        int r;

        buf_printf(&address, "sqlite:%s", m->server->paths.store);
        r = store_open_at(buf_z(&address), &place, &m->copy, NULL, err);
        if (r == 0)
                r = store_term_take(m->copy, &m->term, err);
        if (r == 0)
                r = read_at(m->copy, &at, err);
        if (r == 0 && store_snapshot_get(m->copy, &snapshot, &data, NULL) != 0)
                snapshot = 0;
        pthread_mutex_lock(&m->lock);
        m->r.at = m->r.join_at = at;
        m->snapshot = snapshot;
        pthread_mutex_unlock(&m->lock);
        return r;
}

static void cannot_follow(const struct mirror *m, const struct err *err)
{
        log_error("msg=\"the copy of the queue cannot be used\" why=\"%s\" peer=%s",
                  LOG_TEXT(str_of(err->text)), m->config->peer);
        mirror_end(m);
}

void mirror_follow_open(struct mirror *m)
{
        struct err err = {0};
        int r = spool_open(m->server->paths.spool, 0, &m->spool, &err);

        if (r == 0 && access(m->server->paths.store, F_OK) == 0)
                r = open_copy(m, &err);
        if (r != 0)
                cannot_follow(m, &err);
}

void mirror_follow_close(struct mirror *m)
{
        follow_stop(m);
        store_close(m->copy);
        m->copy = NULL;
        spool_close(m->spool);
        m->spool = NULL;
}

/* ---- files */

static bool is_hash(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!(s.p[i] >= '0' && s.p[i] <= '9') && !(s.p[i] >= 'a' && s.p[i] <= 'f'))
                        return false;
        return s.n == HASH_TEXT;
}

static void want(struct mirror *m, struct str hash)
{
        int fd;

        if (!is_hash(hash))
                return;
        if (spool_object_open(m->spool, hash, &fd, NULL) == 0)
                close(fd);
        else
                buf_str(&m->pull->hashes, hash);
}

/* owned/HASH/…, stored/JOB/HASH and kept/HASH: see files/objects.h. */
static void want_of_blob(void *arg, struct str name)
{
        struct str rest = name, word;

        if (!str_cut(&rest, '/', &word))
                return;
        if (str_eqz(word, "owned") && str_cut(&rest, '/', &word))
                want(arg, word);
        else if (str_eqz(word, "stored") && str_cut(&rest, '/', &word))
                want(arg, rest);
        else if (str_eqz(word, "kept"))
                want(arg, rest);
}

static void on_part(void *arg, int status, struct str part)
{
        struct mirror *m = arg;
        struct mirror_pull *p = m->pull;
        uint64_t size;

        if (status != 200 || p->failed)
                return;
        p->failed = spool_upload_write(m->spool, p->upload, p->offset, part, &size, NULL) != 0;
        p->offset += part.n;
}

static void pull_next(struct mirror *m);

static void on_file(void *arg, int status, struct str body, const struct err *err)
{
        struct mirror *m = arg;
        struct mirror_pull *p = m->pull;
        char got[SPOOL_HASH_TEXT], hash[HASH_TEXT + 1];
        uint64_t size;

        (void)body;
        p->call = NULL;
        snprintf(hash, sizeof(hash), "%.*s", HASH_TEXT, p->hashes.p + p->at);
        if (status == 200 && !p->failed &&
            spool_finish_one(m->spool, p->upload, hash, got, &size, NULL) == 0) {
                p->at += HASH_TEXT;
        } else {
                spool_upload_drop(m->spool, p->upload);
                if (status == 404) { /* its last job has ended since */
                        p->at += HASH_TEXT;
                } else {
                        log_warn("msg=\"a file cannot be copied from the mirror\" file=%s status=%d "
                                 "why=\"%s\"",
                                 hash, status, LOG_TEXT(str_of(err ? err->text : "")));
                        p->failed = true;
                }
        }
        pull_next(m);
}

static void pull_file(struct mirror *m)
{
        struct mirror_pull *p = m->pull;
        BUF_CLEANUP struct buf path = {0};
        uint64_t size;
        struct err err;

        p->failed = false;
        p->offset = 0;
        uuid_new(p->upload);
        if (spool_upload_begin(m->spool, p->upload, OWNER, &size, &err) != 0) {
                p->failed = true;
                pull_next(m);
                return;
        }
        buf_printf(&path, "/mirror/object/%.*s", HASH_TEXT, p->hashes.p + p->at);
        const struct http_call_spec spec = {
                .method = "GET", .path = buf_z(&path), .timeout_ms = COPY_MS, .part = on_part};
        p->call = http_client_call(m->client, &spec, on_file, m);
}

/* ---- groups */

static void sender_gone(void *arg, struct http_request *r)
{
        (void)r;
        ((struct mirror_pull *)arg)->request = NULL;
}

/* The group must have the position that it was sent for, and begin with it. */
static bool is_for(struct str ops, struct relation_at at)
{
        BUF_CLEANUP struct buf expected = {0}, position = {0};
        struct store_batch *b = store_batch_new();
        bool is;

        pack_u64(&position, at.line);
        pack_u64(&position, at.serial);
        store_batch_blob_put(b, MIRROR_AT, buf_view(&position));
        store_batch_pack(b, &expected);
        is = str_starts(ops, buf_view(&expected));
        store_batch_free(b);
        return is;
}

/* Returns whether it is durable. */
static bool take_group(struct mirror *m)
{
        struct store_batch *b;
        struct err err = {0};
        int r = is_for(buf_view(&m->group), m->group_at) ? store_batch_read(buf_view(&m->group), &b)
                                                         : -EBADMSG;

        if (r == 0)
                r = commit(m, b, &err);
        else
                err_set(&err, r, "what the leader has sent is malformed");
        if (r == STORE_FULL)
                log_warn("msg=\"the disk is full: the copy of the queue falls behind\" peer=%s",
                         m->config->peer);
        else if (r != 0)
                cannot_follow(m, &err);
        pthread_mutex_lock(&m->lock);
        if (r == 0) {
                window_add(&m->window, m->r.at, m->group_at, &m->group);
                m->r.at = m->group_at;
        }
        pthread_mutex_unlock(&m->lock);
        buf_reset(&m->group);
        return r == 0;
}

/* Returns whether a group from `before` may be taken. */
static bool takes(struct mirror *m, const struct relation_beat *b, struct relation_at before)
{
        bool is;

        pthread_mutex_lock(&m->lock);
        if (relation_heard(&m->r, b, clock_boot_ms()))
                mirror_keep(m);
        is = m->r.kept.role == RELATION_FOLLOWS && m->r.kept.epoch == b->epoch && !m->copying && m->copy &&
             relation_at_is(before, m->r.at);
        pthread_mutex_unlock(&m->lock);
        return is;
}

void follow_append(struct mirror *m, struct http_request *r, const struct relation_beat *b)
{
        struct relation_at before = {serve_number(r, "before_line"), serve_number(r, "before_serial")};
        struct relation_at to = {serve_number(r, "to_line"), serve_number(r, "to_serial")};
        uint64_t offset = serve_number(r, "offset"), size = serve_number(r, "size");
        struct str body = http_body(r);

        if (m->pull) {
                serve_refuse(r, 409, "files are being copied");
                return;
        }
        if (!takes(m, b, before)) {
                serve_said(m, r);
                return;
        }
        if (offset == 0) {
                buf_reset(&m->group);
                m->group_at = to;
        }
        if (!relation_at_is(to, m->group_at) || offset != m->group.n || size > GROUP_MAX ||
            body.n > size - offset || (body.n == 0 && offset < size)) {
                serve_refuse(r, 409, "this is not the next piece");
                return;
        }
        buf_str(&m->group, body);
        if (m->group.n < size) {
                serve_refuse(r, 202, "go on");
                return;
        }
        m->pull = mem_new(struct mirror_pull);
        *m->pull = (struct mirror_pull){.request = r, .beat = *b, .fd = -1};
        http_on_close(r, sender_gone, m->pull);
        store_ops_blobs(buf_view(&m->group), want_of_blob, m);
        pull_next(m);
}

/* ---- copying everything */

static void name_beside(const struct mirror *m, const char *end, struct buf *ret)
{
        buf_printf(ret, "%s%s", m->server->paths.store, end);
}

/* Puts the copied database in the place of the old one, which is kept beside it. */
static int replace_database(struct mirror *m, struct err *err)
{
        static const char *const beside[] = {"-wal", "-shm", ".mark", NULL};
        BUF_CLEANUP struct buf from = {0}, old = {0};
        struct relation_at at;
        struct store_batch *b;
        int folder, r;

        store_close(m->copy);
        m->copy = NULL;
        name_beside(m, ".copy", &from);
        name_beside(m, ".replaced", &old);
        rename(m->server->paths.store, buf_z(&old));
        for (size_t i = 0; beside[i]; i++) {
                BUF_CLEANUP struct buf name = {0};

                name_beside(m, beside[i], &name);
                unlink(buf_z(&name));
        }
        if (rename(buf_z(&from), m->server->paths.store) < 0)
                return err_set(err, -errno, "cannot rename %s", buf_z(&from));
        folder = open(m->server->paths.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0 || fsync(folder) < 0)
                return err_set(err, -EIO, "cannot flush %s", m->server->paths.dir);
        close(folder);
        r = open_copy(m, err);
        if (r != 0)
                return r;
        /* a commit makes the mark, without which the next opening would take the copy for an old backup */
        pthread_mutex_lock(&m->lock);
        at = m->r.at;
        window_deinit(&m->window);
        m->window = (struct window){0};
        pthread_mutex_unlock(&m->lock);
        BUF_CLEANUP struct buf position = {0};
        pack_u64(&position, at.line);
        pack_u64(&position, at.serial);
        b = store_batch_new();
        store_batch_blob_put(b, MIRROR_AT, buf_view(&position));
        return commit(m, b, err);
}

static void end_copy(struct mirror *m, bool good)
{
        struct err err = {0};

        if (good && replace_database(m, &err) != 0)
                cannot_follow(m, &err);
        pthread_mutex_lock(&m->lock);
        m->copying = false;
        pthread_mutex_unlock(&m->lock);
        if (good)
                log_info("msg=\"the queue of the mirror's leader was copied\" peer=%s", m->config->peer);
        pull_free(m);
}

/* Continues with the next missing file, and when all are here with what waited for them. */
static void pull_next(struct mirror *m)
{
        struct mirror_pull *p = m->pull;

        if (!p->failed && p->at < p->hashes.n) {
                pull_file(m);
                return;
        }
        if (p->whole) {
                end_copy(m, !p->failed);
                return;
        }
        struct http_request *r = p->request;
        bool good = !p->failed;

        pull_free(m);
        good = good && take_group(m);
        if (r && good)
                serve_said(m, r);
        else if (r)
                serve_refuse(r, 409, "a file cannot be copied, or the disk is full");
}

static void on_list(void *arg, int status, struct str body, const struct err *err)
{
        struct mirror *m = arg;
        struct str rest = body, line;

        (void)err;
        m->pull->call = NULL;
        m->pull->failed = status != 200;
        while (status == 200 && rest.n && str_cut(&rest, '\n', &line))
                want(m, line);
        pull_next(m);
}

static void on_database(void *arg, int status, struct str body, const struct err *err)
{
        struct mirror *m = arg;
        struct mirror_pull *p = m->pull;

        (void)body;
        p->call = NULL;
        if (status != 200 || fsync(p->fd) < 0) {
                log_warn("msg=\"the queue cannot be copied from the mirror's leader\" status=%d why=\"%s\"",
                         status, LOG_TEXT(str_of(err ? err->text : "")));
                end_copy(m, false);
                return;
        }
        close(p->fd);
        p->fd = -1;
        const struct http_call_spec spec = {
                .method = "GET", .path = "/mirror/objects", .timeout_ms = COPY_MS, .max = ANSWER_MAX};
        p->call = http_client_call(m->client, &spec, on_list, m);
}

void follow_copy(struct mirror *m, struct relation_at useless)
{
        BUF_CLEANUP struct buf name = {0};
        bool may;

        if (m->pull)
                return;
        pthread_mutex_lock(&m->lock);
        may = m->r.kept.role == RELATION_FOLLOWS && !m->r.kept.joined && relation_at_is(m->r.at, useless);
        if (may) {
                m->copying = true;
                m->r.at = (struct relation_at){0};
        }
        pthread_mutex_unlock(&m->lock);
        if (!may)
                return;
        log_info("msg=\"copying the queue of the mirror's leader\" peer=%s", m->config->peer);
        m->pull = mem_new(struct mirror_pull);
        m->pull->whole = true;
        name_beside(m, ".copy", &name);
        m->pull->fd = open(buf_z(&name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (m->pull->fd < 0) {
                log_error("msg=\"cannot open %s\" error=\"%s\"", LOG_TEXT(buf_view(&name)), strerror(errno));
                end_copy(m, false);
                return;
        }
        const struct http_call_spec spec = {.method = "GET",
                                            .path = "/mirror/database",
                                            .timeout_ms = COPY_MS,
                                            .fd = m->pull->fd,
                                            .to_fd = true};
        m->pull->call = http_client_call(m->client, &spec, on_database, m);
}

/* ---- snapshots: the follower makes none, and cuts its log by the leader's */

static void on_snapshot(void *arg, int status, struct str body, const struct err *err)
{
        struct mirror *m = arg;
        struct unpack u = unpack_from(body);
        struct err why = {0};
        uint64_t seq;
        struct str data;
        int r;

        (void)err;
        m->snapshot_call = NULL;
        if (status != 200 || !m->copy)
                return;
        seq = unpack_u64(&u);
        data = unpack_str(&u);
        if (u.bad || seq > store_last_seq(m->copy))
                return;
        r = store_snapshot_put(m->copy, m->term, seq, data, seq > SNAPSHOT_LEFT ? seq - SNAPSHOT_LEFT : 0,
                               &why);
        if (r != 0)
                log_warn("msg=\"the leader's snapshot cannot be kept\" why=\"%s\"",
                         LOG_TEXT(str_of(why.text)));
        pthread_mutex_lock(&m->lock);
        m->snapshot = seq;
        pthread_mutex_unlock(&m->lock);
}

void follow_snapshot(struct mirror *m, uint64_t seq)
{
        if (m->snapshot_call || m->pull || !m->copy || seq <= m->snapshot || seq > store_last_seq(m->copy))
                return;
        const struct http_call_spec spec = {
                .method = "GET", .path = "/mirror/snapshot", .timeout_ms = COPY_MS, .max = ANSWER_MAX};
        m->snapshot_call = http_client_call(m->client, &spec, on_snapshot, m);
}
