/* What the two servers ask each other; docs/protocol.md, section 15, has the calls and their parameters.
 *
 * POST /mirror/beat is answered with where this server is, and so is POST /mirror/append when it has taken a
 * group; GET /mirror/database, /mirror/objects, /mirror/object/HASH and /mirror/snapshot are for a follower
 * that copies. A peer without the secret learns nothing. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pack.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "server/mirror/state.h"

#define CHUNK   (1u << 20)
#define PENDING (4u << 20)
#define TOLD_MS 100 /* until the answer that this server has left is with the leader */
#define BINARY  "application/octet-stream"

void serve_refuse(struct http_request *r, int status, const char *why)
{
        BUF_CLEANUP struct buf body = {0};

        buf_printf(&body, "%s\n", why);
        http_reply(r, status, "text/plain", &body);
}

/* ---- beats */

void serve_write_beat(struct buf *to, const struct relation_beat *b)
{
        buf_printf(to, "?epoch=%llu&join=%llu&line=%llu&serial=%llu&joined=%d&leave=%d&hand_over=%d",
                   (unsigned long long)b->epoch, (unsigned long long)b->join, (unsigned long long)b->at.line,
                   (unsigned long long)b->at.serial, b->joined, b->leave, b->hand_over);
}

static bool read_number(const struct http_request *r, const char *name, uint64_t *ret)
{
        struct str text;

        return http_query(r, name, &text) && str_to_u64(text, ret) == 0;
}

uint64_t serve_number(const struct http_request *r, const char *name)
{
        uint64_t v = 0;

        return read_number(r, name, &v) ? v : 0;
}

static bool read_beat(const struct http_request *r, struct relation_beat *ret)
{
        uint64_t joined = 0, leave = 0, hand_over = 0;
        bool good = read_number(r, "epoch", &ret->epoch) && read_number(r, "join", &ret->join) &&
                    read_number(r, "line", &ret->at.line) && read_number(r, "serial", &ret->at.serial) &&
                    read_number(r, "joined", &joined) && read_number(r, "leave", &leave) &&
                    read_number(r, "hand_over", &hand_over);

        ret->joined = joined;
        ret->leave = leave;
        ret->hand_over = hand_over;
        return good;
}

bool serve_read_said(struct str text, struct relation_said *ret)
{
        uint64_t n[6] = {0};
        struct str rest = str_trim(text), word;

        for (size_t i = 0; i < 6; i++) {
                if (!str_cut(&rest, ' ', &word)) {
                        word = rest;
                        rest = STR_NONE;
                }
                if (str_to_u64(word, &n[i]) != 0)
                        return false;
        }
        *ret = (struct relation_said){n[0], n[1], {n[2], n[3]}, n[4] != 0, n[5] != 0};
        return true;
}

void serve_said(struct mirror *m, struct http_request *r)
{
        BUF_CLEANUP struct buf body = {0};
        struct relation_said said;

        pthread_mutex_lock(&m->lock);
        relation_say(&m->r, &said);
        if (m->leaving) /* it is not to be joined again */
                said.at = (struct relation_at){0};
        pthread_mutex_unlock(&m->lock);
        buf_printf(&body, "%llu %llu %llu %llu %d %d\n", (unsigned long long)said.epoch,
                   (unsigned long long)said.join, (unsigned long long)said.at.line,
                   (unsigned long long)said.at.serial, said.leads, said.joined);
        http_reply(r, 200, "text/plain", &body);
}

static void take_beat(struct mirror *m, struct http_request *r)
{
        struct relation_at useless = {0};
        uint64_t snapshot = 0;
        bool copy;
        struct relation_beat b;
        bool led, joined, joins, now;

        if (!read_beat(r, &b)) {
                serve_refuse(r, 400, "a parameter is missing");
                return;
        }
        copy = read_number(r, "useless_line", &useless.line) &&
               read_number(r, "useless_serial", &useless.serial);
        snapshot = serve_number(r, "snapshot");
        pthread_mutex_lock(&m->lock);
        led = m->go && !m->ending;
        joined = m->r.kept.joined;
        if (relation_heard(&m->r, &b, clock_boot_ms()))
                mirror_keep(m);
        joins = m->r.kept.joined;
        now = m->r.kept.role == RELATION_FOLLOWS && b.epoch == m->r.kept.epoch;
        if (now)
                m->peer_heard_ms = clock_boot_ms();
        if (led && m->r.kept.role == RELATION_FOLLOWS)
                mirror_deposed(m);
        pthread_mutex_unlock(&m->lock);
        if (now && joined != joins)
                log_info("msg=\"%s\" peer=%s",
                         joins ? "this server has all that the leader has, and takes over when that has gone"
                               : "this server follows, and has not all that the leader has",
                         m->config->peer);
        if (now && copy)
                follow_copy(m, useless);
        if (now && snapshot)
                follow_snapshot(m, snapshot);
        serve_said(m, r);
        if (m->leaving)
                timer_start(m->leave, TOLD_MS);
        if (now && b.hand_over)
                timer_start(m->look, 0);
}

static void append_read(void *arg, struct http_request *r)
{
        struct mirror *m = arg;
        struct relation_beat b;

        if (!read_beat(r, &b))
                serve_refuse(r, 400, "a parameter is missing");
        else
                follow_append(m, r, &b);
}

/* ---- files for the follower */

struct sending {
        int fd;
};

static void sending_free(struct sending *x)
{
        close(x->fd);
        free(x);
}

static void sending_closed(void *arg, struct http_request *r)
{
        (void)r;
        sending_free(arg);
}

static void send_more(void *arg, struct http_request *r)
{
        struct sending *x = arg;
        BUF_CLEANUP struct buf chunk = {0};

        while (http_reply_pending(r) < PENDING) {
                ssize_t n = read(x->fd, buf_room(&chunk, CHUNK), CHUNK);

                if (n < 0) {
                        log_error("msg=\"cannot read what the mirror's follower copies\" error=\"%s\"",
                                  strerror(errno));
                        n = 0;
                }
                if (n == 0) {
                        http_on_close(r, NULL, NULL);
                        http_reply_end(r);
                        sending_free(x);
                        return;
                }
                chunk.n = (size_t)n;
                http_reply_chunk(r, &chunk);
        }
}

/* Takes the descriptor. */
static void send_file(struct http_request *r, int fd)
{
        struct sending *x = mem_new(struct sending);

        x->fd = fd;
        http_on_close(r, sending_closed, x);
        http_reply_start(r, 200, BINARY, send_more, x);
        send_more(x, r);
}

static void send_object(struct mirror *m, struct http_request *r, struct str hash)
{
        struct spool *spool;
        struct err err;
        int fd = -1, e = spool_open_objects(m->server->paths.spool, &spool, &err);

        if (e == 0) {
                e = spool_object_open(spool, hash, &fd, NULL);
                spool_close(spool);
        }
        if (e == SPOOL_NOT_FOUND)
                serve_refuse(r, 404, "there is no such file");
        else if (e != 0) /* descriptors are short, or the disk is: the follower must not take it for gone */
                serve_refuse(r, 503, "the file cannot be read now");
        else
                send_file(r, fd);
}

static int list_object(void *arg, struct str hash, uint64_t size, int64_t arrived_ms)
{
        (void)size;
        (void)arrived_ms;
        buf_str(arg, hash);
        buf_char(arg, '\n');
        return 0;
}

static void send_objects(struct mirror *m, struct http_request *r)
{
        BUF_CLEANUP struct buf list = {0};
        struct spool *spool;
        struct err err;
        int e = spool_open_objects(m->server->paths.spool, &spool, &err);

        if (e == 0) {
                e = spool_object_list(spool, list_object, &list, &err);
                spool_close(spool);
        }
        if (e != 0)
                serve_refuse(r, 503, err.text);
        else
                http_reply(r, 200, "text/plain", &list);
}

static void send_snapshot(struct mirror *m, struct http_request *r)
{
        BUF_CLEANUP struct buf data = {0}, body = {0};
        uint64_t seq = 0;
        int e;

        pthread_mutex_lock(&m->lock); /* the store is not closed meanwhile */
        e = m->store ? store_snapshot_get(m->store, &seq, &data, NULL) : STORE_NOT_FOUND;
        pthread_mutex_unlock(&m->lock);
        if (e != 0) {
                serve_refuse(r, 404, "there is no snapshot");
                return;
        }
        pack_u64(&body, seq);
        pack_str(&body, buf_view(&data));
        http_reply(r, 200, BINARY, &body);
}

/* ---- the database is copied by a thread of its own, since that takes long */

struct mirror_copy {
        struct task task;
        struct mirror *mirror;
        struct http_request *request; /* NULL: it has gone */
        pthread_t thread;
        char *name;
        int result;
        struct err err;
};

static void copy_closed(void *arg, struct http_request *r)
{
        (void)r;
        ((struct mirror_copy *)arg)->request = NULL;
}

static void copy_made(struct server *s, struct task *t)
{
        struct mirror_copy *x = (struct mirror_copy *)t;
        struct mirror *m = s->mirror;
        int fd = -1;

        pthread_join(x->thread, NULL);
        m->serving = NULL;
        if (x->result == 0)
                fd = open(x->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        unlink(x->name);
        if (x->result != 0)
                log_error("msg=\"the database cannot be copied for the mirror\" why=\"%s\"",
                          LOG_TEXT(str_of(x->err.text)));
        if (x->request && fd < 0)
                serve_refuse(x->request, 503, "the database cannot be copied");
        else if (x->request)
                send_file(x->request, fd);
        else if (fd >= 0)
                close(fd);
        free(x->name);
        free(x);
}

static void *make_copy(void *arg)
{
        struct mirror_copy *x = arg;

        x->result = store_copy(x->mirror->server->paths.store, x->name, &x->err);
        mailbox_post(thread_mail(x->mirror->thread), &x->task.mail);
        return NULL;
}

static void send_database(struct mirror *m, struct http_request *r)
{
        struct mirror_copy *x;
        struct buf name = {0};

        if (m->serving) {
                serve_refuse(r, 503, "the database is being copied");
                return;
        }
        x = m->serving = mem_new(struct mirror_copy);
        buf_printf(&name, "%s.sent", m->server->paths.store);
        x->name = buf_take(&name);
        unlink(x->name);
        x->mirror = m;
        x->request = r;
        x->task.run = copy_made;
        http_on_close(r, copy_closed, x);
        if (pthread_create(&x->thread, NULL, make_copy, x) != 0) {
                m->serving = NULL;
                http_on_close(r, NULL, NULL);
                serve_refuse(r, 503, "cannot start a thread");
                free(x->name);
                free(x);
        }
}

void serve_stop(struct mirror *m)
{
        if (!m->serving)
                return;
        pthread_join(m->serving->thread, NULL); /* its task is dropped with the thread's */
        unlink(m->serving->name);
        free(m->serving->name);
}

/* ---- requests of the other server */

static bool knows_secret(const struct mirror *m, const struct http_request *r)
{
        struct str header = http_header(r, "Authorization"), given = str_skip(header, 7);
        unsigned char differs = 0;

        if (!str_istarts(header, STR("Bearer ")) || given.n != sizeof(m->secret) - 1)
                return false;
        for (size_t i = 0; i < given.n; i++)
                differs |= (unsigned char)given.p[i] ^ (unsigned char)m->secret[i];
        return differs == 0;
}

void serve_request(void *arg, struct http_request *r)
{
        static const char object[] = "/mirror/object/";
        struct mirror *m = arg;
        struct str path = http_path(r);
        bool get = http_method(r) == HTTP_GET;

        if (!knows_secret(m, r)) {
                serve_refuse(r, 401,
                             "this is for the other server of the mirror, which has the same credential.key");
                return;
        }
        http_trust(r);
        if (!get && str_eqz(path, "/mirror/beat"))
                take_beat(m, r);
        else if (!get && str_eqz(path, "/mirror/append"))
                http_read_body(r, STR("mirror"), append_read, m);
        else if (get && str_eqz(path, "/mirror/database"))
                send_database(m, r);
        else if (get && str_eqz(path, "/mirror/objects"))
                send_objects(m, r);
        else if (get && str_eqz(path, "/mirror/snapshot"))
                send_snapshot(m, r);
        else if (get && str_starts(path, str_of(object)))
                send_object(m, r, str_skip(path, sizeof(object) - 1));
        else
                serve_refuse(r, 404, "there is nothing here");
}
