#include "server/files/catalog_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/pack.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "catalog/catalog.h"
#include "server/loop/turn.h"

#define VERSION     1
#define PREFIX      "catalog/"
#define FROM        PREFIX "from"
#define PIECE       (4u << 20)
#define SPARE_BYTES (256ull << 20) /* left free on the disk, because the server's log needs it too */
/* A new base is due when the log has so many changes, or bytes beside twice those of the catalog. */
#define CHANGES_MAX 100000u
#define BYTES_FREE  (64ull << 20)
#define TELL_MS     5000 /* between two lines in the log while changes are read */

struct catalog_log {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool stopping;

        /* catalog thread: of the log since its base; the bytes since the catalog was opened */
        uint64_t changes, bytes;
        bool damaged;    /* the file is not to be used any more */
        bool made_again; /* since the start; a second time the cause is not the file */
};

struct base {
        struct catalog_position at;
        uint64_t pieces; /* 0: there is no base, and so no log */
};

/* One commit, on its way through the threads. */
struct write {
        struct task task;
        struct catalog_log *log;
        struct buf name, data; /* of a blob; empty: none */
        struct args removed;   /* names of blobs */
        bool done;             /* these three: with the lock */
        bool abandoned;        /* nobody waits any more */
        int result;
};

struct catalog_log *catalog_log_new(void)
{
        struct catalog_log *l = mem_new(struct catalog_log);

        pthread_mutex_init(&l->lock, NULL);
        pthread_cond_init(&l->changed, NULL);
        return l;
}

void catalog_log_free(struct catalog_log *l)
{
        if (!l)
                return;
        pthread_cond_destroy(&l->changed);
        pthread_mutex_destroy(&l->lock);
        free(l);
}

void catalog_log_stop(struct catalog_log *l)
{
        pthread_mutex_lock(&l->lock);
        l->stopping = true;
        pthread_cond_broadcast(&l->changed);
        pthread_mutex_unlock(&l->lock);
}

/* ---- commits in the store */

static void write_free(struct write *w)
{
        buf_deinit(&w->name);
        buf_deinit(&w->data);
        args_deinit(&w->removed);
        free(w);
}

/* Any thread: tells the one that waits; or nobody waits, and w is freed. */
static void write_end(struct write *w, int result)
{
        struct catalog_log *l = w->log;
        bool abandoned;

        pthread_mutex_lock(&l->lock);
        w->done = true;
        w->result = result;
        abandoned = w->abandoned;
        pthread_cond_broadcast(&l->changed);
        pthread_mutex_unlock(&l->lock);
        if (abandoned)
                write_free(w);
}

static void on_dropped(struct task *t)
{
        write_end((struct write *)t, -ECANCELED);
}

static void on_durable(struct server *s, struct task *t)
{
        (void)s;
        write_end((struct write *)t, 0);
}

/* Core thread. */
static void on_core(struct server *s, struct task *t)
{
        struct write *w = (struct write *)t;

        if (turn_full(s->turn)) {
                write_end(w, CATALOG_FULL);
                return;
        }
        if (w->name.n)
                store_batch_blob_put(turn_batch(s->turn), buf_view(&w->name), buf_view(&w->data));
        for (size_t i = 0; i < w->removed.n; i++)
                store_batch_blob_delete(turn_batch(s->turn), str_of(w->removed.v[i]));
        t->run = on_durable;
        turn_send(s->turn, t, TURN_DURABLE);
}

static struct write *write_new(struct server *s)
{
        struct write *w = mem_new(struct write);

        w->log = s->catalog_log;
        w->task.run = on_core;
        w->task.drop = on_dropped;
        return w;
}

/* Catalog thread: commits it, and waits until it is durable. Takes w. Returns 0; CATALOG_FULL; or -ECANCELED
 * when the server stops, and whether it is durable is not known; with err. */
static int commit(struct server *s, struct write *w, struct err *err)
{
        struct catalog_log *l = s->catalog_log;
        bool done;
        int r = -ECANCELED;

        server_to_core(s, &w->task);
        pthread_mutex_lock(&l->lock);
        while (!w->done && !l->stopping)
                pthread_cond_wait(&l->changed, &l->lock);
        done = w->done;
        w->abandoned = !done;
        if (done)
                r = w->result;
        pthread_mutex_unlock(&l->lock);
        if (done)
                write_free(w);
        if (r == CATALOG_FULL)
                return err_set(err, r, "the disk is full");
        return r == 0 ? 0 : err_set(err, r, "the server is stopping");
}

static int append(void *arg, struct catalog_position at, struct str change, struct err *err)
{
        struct server *s = arg;
        struct write *w = write_new(s);
        int r;

        buf_printf(&w->name, PREFIX "log.%020" PRIu64, at.number);
        buf_str(&w->data, change);
        r = commit(s, w, err);
        if (r == 0) {
                s->catalog_log->changes++;
                s->catalog_log->bytes += change.n;
        }
        return r;
}

/* ---- the base */

/* The errors of the store have the numbers of others of the catalog. */
static int from_store(int r)
{
        return r == STORE_FULL ? CATALOG_FULL : r > 0 ? -EIO : r;
}

/* Returns 1, 0 when there is no such blob, or an error. */
static int read_blob(struct server *s, struct str name, struct buf *data, struct err *err)
{
        int r = store_blob_get(s->store, name, data, err);

        return r == 0 ? 1 : r == STORE_NOT_FOUND ? 0 : from_store(r);
}

static void piece_name(struct buf *to, uint64_t number, uint64_t piece)
{
        buf_reset(to);
        buf_printf(to, PREFIX "base.%020" PRIu64 ".%06" PRIu64, number, piece);
}

static int read_base(struct server *s, struct base *ret, struct err *err)
{
        BUF_CLEANUP struct buf data = {0};
        struct unpack u;
        uint64_t version;
        int r = read_blob(s, STR(FROM), &data, err);

        *ret = (struct base){0};
        if (r != 1)
                return r;
        u = unpack_from(buf_view(&data));
        version = unpack_u64(&u);
        if (version > VERSION)
                return err_set(err, CATALOG_TOO_NEW,
                               "the log of the catalog is of a newer version: run that version");
        ret->at.number = unpack_u64(&u);
        ret->at.id = unpack_u64(&u);
        ret->pieces = unpack_u64(&u);
        return unpack_done(&u) && ret->pieces
                       ? 0
                       : err_set(err, CATALOG_CORRUPT, "the base of the catalog's log is damaged");
}

/* Stores the pieces of an open file. */
static int put_pieces(struct server *s, int fd, struct base *base, struct err *err)
{
        char *room = mem_array(NULL, PIECE, 1);
        int r = 0;

        for (ssize_t n = 1; r == 0;) {
                struct write *w;

                n = pread(fd, room, PIECE, (off_t)(base->pieces * PIECE));
                if (n < 0)
                        r = err_set(err, -errno, "cannot read the copy of the catalog: %s", strerror(errno));
                if (n <= 0)
                        break;
                w = write_new(s);
                piece_name(&w->name, base->at.number, base->pieces++);
                buf_add(&w->data, room, (size_t)n);
                r = commit(s, w, err);
        }
        free(room);
        return r;
}

struct listing {
        struct args *to;
        struct str kept; /* the first name of the base's that is not one of its pieces */
        struct str base; /* its first piece */
};

static int on_old_part(void *arg, struct str name)
{
        struct listing *l = arg;

        if (!str_eq(name, STR(FROM)) && (str_cmp(name, l->base) < 0 || str_cmp(name, l->kept) >= 0))
                args_add(l->to, name);
        return 0;
}

/* Names the base in the log, and removes all else that is there. A base without pieces ends the log. */
static int begin_log(struct server *s, const struct base *base, struct err *err)
{
        BUF_CLEANUP struct buf first = {0}, end = {0};
        struct write *w = write_new(s);
        struct listing l = {.to = &w->removed};
        int r;

        piece_name(&first, base->at.number, 0);
        piece_name(&end, base->at.number, base->pieces);
        l.base = buf_view(&first);
        l.kept = buf_view(&end);
        r = store_blob_list(s->store, STR(PREFIX), on_old_part, &l, err);
        if (r != 0) {
                write_free(w);
                return from_store(r);
        }
        if (base->pieces) {
                buf_addz(&w->name, FROM);
                pack_u64(&w->data, VERSION);
                pack_u64(&w->data, base->at.number);
                pack_u64(&w->data, base->at.id);
                pack_u64(&w->data, base->pieces);
        } else {
                args_add(&w->removed, STR(FROM));
        }
        r = commit(s, w, err);
        if (r == 0)
                s->catalog_log->changes = s->catalog_log->bytes = 0;
        return r;
}

static int check_copy(const char *path, struct err *err)
{
        BUF_CLEANUP struct buf address = {0};
        struct catalog *copy;
        int r;

        buf_printf(&address, "sqlite:%s", path);
        r = catalog_open(buf_z(&address), &copy, err);
        if (r == 0) {
                r = catalog_check(copy, err);
                catalog_close(copy);
        }
        return r;
}

/* Makes the log begin with a copy of the catalog as it is. */
static int put_base(struct server *s, struct err *err)
{
        BUF_CLEANUP struct buf copy = {0};
        struct base base = {.at = catalog_position(s->catalog)};
        int64_t began = clock_boot_ms();
        int fd, r;

        buf_printf(&copy, "%s.base", s->paths.catalog);
        unlink(buf_z(&copy)); /* of a server that was killed */
        r = store_copy(s->paths.catalog, buf_z(&copy), err);
        if (r != 0)
                return from_store(r);
        r = check_copy(buf_z(&copy), err);
        if (r != 0) {
                unlink(buf_z(&copy));
                return r;
        }
        fd = open(buf_z(&copy), O_RDONLY | O_CLOEXEC);
        r = fd < 0 ? err_set(err, -errno, "cannot open %s: %s", buf_z(&copy), strerror(errno)) : 0;
        if (r == 0)
                r = put_pieces(s, fd, &base, err);
        if (fd >= 0)
                close(fd);
        unlink(buf_z(&copy));
        if (r == 0)
                r = begin_log(s, &base, err);
        if (r == 0)
                log_info("msg=\"the log of the catalog begins with a copy of it\" change=%" PRIu64
                         " pieces=%" PRIu64 " ms=%lld",
                         base.at.number, base.pieces, (long long)(clock_boot_ms() - began));
        return r;
}

/* Returns whether the log is so much larger than the catalog that it begins anew. */
static bool is_due(struct server *s)
{
        const struct catalog_log *l = s->catalog_log;
        struct stat st;

        return l->changes >= CHANGES_MAX ||
               (l->bytes > BYTES_FREE &&
                (stat(s->paths.catalog, &st) != 0 || l->bytes - BYTES_FREE > 2 * (uint64_t)st.st_size));
}

/* ---- a server's own file */

static int open_file(struct server *s, struct err *err)
{
        BUF_CLEANUP struct buf address = {0};

        buf_printf(&address, "sqlite:%s", s->paths.catalog);
        return catalog_open(buf_z(&address), &s->catalog, err);
}

static void close_file(struct server *s)
{
        catalog_close(s->catalog);
        s->catalog = NULL;
}

/* Moves the file away, with what SQLite has beside it, or removes it. */
static void put_aside(struct server *s, bool keep)
{
        static const char *const ends[] = {"", "-wal", "-shm"};
        BUF_CLEANUP struct buf from = {0}, to = {0};
        int64_t now = clock_wall_ms() / 1000;

        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
                buf_reset(&from);
                buf_reset(&to);
                buf_printf(&from, "%s%s", s->paths.catalog, ends[i]);
                buf_printf(&to, "%s.aside-%lld%s", s->paths.catalog, (long long)now, ends[i]);
                if (keep)
                        rename(buf_z(&from), buf_z(&to));
                else
                        unlink(buf_z(&from));
        }
        if (keep)
                log_warn("msg=\"this server's own catalog is not that of the queue, or is damaged, and was "
                         "moved away\" "
                         "file=\"%s.aside-%lld\"",
                         s->paths.catalog, (long long)now);
}

/* Writes the base's pieces into a file. */
static int write_pieces(struct server *s, const struct base *base, int fd, struct err *err)
{
        BUF_CLEANUP struct buf name = {0}, data = {0};
        int r = 0;

        for (uint64_t i = 0; r == 0 && i < base->pieces; i++) {
                piece_name(&name, base->at.number, i);
                buf_reset(&data);
                r = read_blob(s, buf_view(&name), &data, err);
                r = r == 1   ? 0
                    : r == 0 ? err_set(err, -ENODATA, "the base of the catalog's log lacks a piece")
                             : r;
                if (r == 0 && fs_write_all(fd, data.p, data.n) != 0)
                        r = err_set(err, errno == ENOSPC ? CATALOG_FULL : -errno, "cannot write %s.new: %s",
                                    s->paths.catalog, strerror(errno));
        }
        if (r == 0 && fsync(fd) != 0)
                r = err_set(err, -errno, "cannot write %s.new: %s", s->paths.catalog, strerror(errno));
        return r;
}

/* Replaces the file by the base of the log. The catalog is closed. keep: the old file is kept under another
 * name. */
static int restore(struct server *s, const struct base *base, bool keep, struct err *err)
{
        BUF_CLEANUP struct buf path = {0};
        int fd, r;

        buf_printf(&path, "%s.new", s->paths.catalog);
        fd = open(buf_z(&path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
                return err_set(err, -errno, "cannot open %s: %s", buf_z(&path), strerror(errno));
        r = write_pieces(s, base, fd, err);
        close(fd);
        if (r == 0) {
                put_aside(s, keep);
                if (rename(buf_z(&path), s->paths.catalog) != 0)
                        r = err_set(err, -errno, "cannot rename %s: %s", buf_z(&path), strerror(errno));
        }
        if (r == 0)
                return open_file(s, err);
        unlink(buf_z(&path));
        return r;
}

/* Returns 1 if the log has the catalog's last change; 0; or an error. */
static int is_of_log(struct server *s, const struct base *base, struct err *err)
{
        BUF_CLEANUP struct buf name = {0}, change = {0};
        struct catalog_position own = catalog_position(s->catalog), at;
        int r;

        if (own.number <= base->at.number)
                return own.number == base->at.number && own.id == base->at.id;
        buf_printf(&name, PREFIX "log.%020" PRIu64, own.number);
        r = read_blob(s, buf_view(&name), &change, err);
        if (r != 1)
                return r;
        r = catalog_change_at(buf_view(&change), &at, err);
        return r == 0 ? at.number == own.number && at.id == own.id : r;
}

/* Makes the changes that the log has and the catalog has not. */
static int apply_log(struct server *s, const struct base *base, struct err *err)
{
        BUF_CLEANUP struct buf name = {0}, change = {0};
        uint64_t began = catalog_position(s->catalog).number, n = began;
        int64_t told = clock_boot_ms();
        int r;

        for (;; n++) {
                if (atomic_load(&s->stopping))
                        return err_set(err, -ECANCELED, "the server is stopping");
                buf_reset(&name);
                buf_reset(&change);
                buf_printf(&name, PREFIX "log.%020" PRIu64, n + 1);
                r = read_blob(s, buf_view(&name), &change, err);
                if (r == 0)
                        break;
                r = r == 1 ? catalog_apply(s->catalog, buf_view(&change), err) : r;
                if (r != 0)
                        return r;
                if (clock_boot_ms() - told > TELL_MS) {
                        told = clock_boot_ms();
                        log_info("msg=\"the catalog is made from its log\" change=%" PRIu64, n + 1);
                }
        }
        if (n > began)
                log_info("msg=\"the catalog has the changes of its log\" changes=%" PRIu64 " last=%" PRIu64,
                         n - began, n);
        s->catalog_log->changes = n - base->at.number;
        s->catalog_log->bytes = 0;
        return 0;
}

/* Opens the file, and brings it to the end of the log, or makes it from the log. */
static int open_by_log(struct server *s, const struct base *base, struct err *err)
{
        bool keep = true; /* a file whose content is not in the log, or that somebody may want to look at */
        int r = s->catalog_log->damaged ? CATALOG_CORRUPT : open_file(s, err);

        if (r == 0) {
                struct catalog_about about = {0};

                keep = catalog_position(s->catalog).number == 0 &&
                       catalog_about(s->catalog, &about, err) == 0 && about.files + about.datasets > 0;
                r = is_of_log(s, base, err);
                if (r == 1)
                        r = apply_log(s, base, err);
                else if (r == 0)
                        r = CATALOG_CORRUPT; /* another catalog */
                if (r == 0)
                        return 0;
                close_file(s);
        }
        if (r != CATALOG_CORRUPT)
                return r;
        r = restore(s, base, keep, err);
        if (r == 0)
                r = apply_log(s, base, err);
        if (r == 0)
                s->catalog_log->damaged = false;
        return r;
}

/* Opens the catalog of a server whose store outlives it. */
static int open_logged(struct server *s, struct err *err)
{
        struct base base;
        int r = read_base(s, &base, err);

        if (r == 0)
                r = base.pieces ? open_by_log(s, &base, err) : open_file(s, err);
        if (r == 0)
                r = catalog_log(s->catalog, append, s, err);
        return r == 0 && !base.pieces ? put_base(s, err) : r;
}

/* Opens the catalog of a server that is alone, and ends the log that it had before. */
static int open_alone(struct server *s, struct err *err)
{
        struct base base;
        int r = read_base(s, &base, err);

        if (r != 0 || !base.pieces)
                r = r == 0 ? open_file(s, err) : r;
        else
                r = open_by_log(s, &base, err);
        if (r == 0 && base.pieces)
                r = begin_log(s, &(struct base){0}, err);
        if (r == 0 && catalog_position(s->catalog).number)
                r = catalog_log(s->catalog, NULL, NULL, err);
        return r;
}

/* ---- opening */

static bool is_logged(const struct server *s)
{
        return s->config.mirror.peer || config_postgres(&s->config);
}

bool catalog_log_distrust(struct server *s)
{
        struct catalog_log *l = s->catalog_log;
        struct base base;

        if (!is_logged(s) || l->made_again || read_base(s, &base, NULL) != 0 || !base.pieces)
                return false;
        log_error("msg=\"the catalog of files is damaged, and is made again from its log\" file=\"%s\"",
                  s->paths.catalog);
        l->damaged = l->made_again = true;
        close_file(s);
        return true;
}

static void renew_base(struct server *s)
{
        struct err err = {0};
        int r = put_base(s, &err);

        if (r == 0 || (r == CATALOG_CORRUPT && catalog_log_distrust(s)))
                return;
        log_warn("msg=\"the log of the catalog cannot begin anew\" error=\"%s\"", LOG_TEXT(str_of(err.text)));
        s->catalog_log->changes = s->catalog_log->bytes = 0; /* it is tried later */
}

int catalog_log_open(struct server *s, struct err *err)
{
        int r;

        if (s->catalog && catalog_is_behind(s->catalog))
                close_file(s);
        if (s->catalog && is_logged(s) && is_due(s))
                renew_base(s);
        if (s->catalog)
                return 0;
        r = is_logged(s) ? open_logged(s, err) : open_alone(s, err);
        if (r != 0 && s->catalog)
                close_file(s);
        return r;
}

bool catalog_log_has_room(struct server *s)
{
        struct statvfs v;

        return statvfs(s->paths.dir, &v) != 0 || (uint64_t)v.f_bavail * v.f_frsize >= SPARE_BYTES;
}

/* Catalog thread. */
static void open_early(struct server *s, struct task *t)
{
        struct err err = {0};
        struct base base;
        int r = read_base(s, &base, &err);

        if (r == 0 && base.pieces)
                r = catalog_log_open(s, &err);
        if (r != 0)
                log_warn("msg=\"the catalog of files cannot be read\" error=\"%s\"",
                         LOG_TEXT(str_of(err.text)));
        free(t);
}

void catalog_log_start(struct server *s)
{
        struct task *t;

        if (!is_logged(s))
                return;
        t = mem_new(struct task);
        t->run = open_early;
        server_to_catalog(s, t);
}
