/* A stream is a non-blocking socket, with OpenSSL on it or not, and two buffers. The event library tells
 * readiness and time only; its own buffered TLS sockets are not used, because in 2.1.12 they tell the end of
 * a connection before the bytes that came just ahead of it, and retry an unfinished SSL_write from a buffer
 * that may have moved.
 *
 *   RESOLVING -> CONNECTING -> HANDSHAKE -> OPEN -> FINISHING -> DEAD      (from any state to DEAD)
 *
 *   RESOLVING   stream_resolved()    a name is looked up
 *   CONNECTING  stream_connected()   connect() runs; address after address is tried
 *   HANDSHAKE   stream_handshake()   TLS
 *   OPEN        stream_read() stream_push()
 *   FINISHING   stream_linger()      stream_finish() was called; when all is sent the sending side is shut
 * down, and what the peer still sends is thrown away until it closes too: closing with unread bytes would
 * make TCP take back what we sent last DEAD        the descriptor is closed; `closed` comes at the end of the
 * turn and is the last callback
 *
 * `ready`, `drained` and `closed` come from stream_turn(), at the end of the loop's turn, so that no call of
 * the owner calls him back; the same turn also sends what was written since the last one, in as few writes as
 * it takes. */
#include "ev/stream.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ev/private.h"
#include "ev/resolve.h"

#define STREAM_MAGIC 0x73747265u
#define READ_CHUNK   65536u
#define READ_TURN    (4u * READ_CHUNK) /* bytes taken from one peer before others have their turn */
#define WRITE_CHUNK  (256u << 10)
#define WRITE_TURN   (4u << 20)
#define KEEP_MEMORY  16384u /* an empty buffer larger than this gives its memory back */
#define FINISH_MS    10000  /* without progress while finishing */
#define LINGER_MS    2000   /* for the peer to close after us */

enum state { RESOLVING, CONNECTING, HANDSHAKE, OPEN, FINISHING, DEAD };

struct stream {
        unsigned magic;
        struct loop *loop;
        const struct stream_ops *ops;
        void *arg;
        struct stream_limits limits;
        enum state state;
        int fd;
        struct watch *watch;
        struct tls_context *tls;
        SSL *ssl;
        bool read_wants_write, write_wants_read; /* TLS, seldom: a key update */
        struct buf in, out;
        size_t out_at; /* bytes of out that are sent */
        struct timer *timer;
        int64_t heard_ns;
        bool turn;    /* stream_turn is deferred, or is to run again */
        bool in_turn; /* stream_turn runs */
        bool tell_ready, tell_drained, half_closed;
        bool refused;  /* a handshake failed: FINISHING only to let the alert arrive */
        bool gone;     /* freed by its owner while a function of ours runs */
        unsigned busy; /* functions of ours that run */
        struct err why;
        char *address;
        struct resolve *resolve;
        struct addrinfo *addresses, *address_next;
        struct buf peer, peer_name, peer_serial;
        bool is_unix;
        uid_t uid;
        pid_t pid;
};

static void stream_turn(void *arg);
static void stream_event(void *arg, int what);
static void stream_try_next(struct stream *s);

/* Something is to be done at the end of this turn. */
static void stream_soon(struct stream *s)
{
        if (!s->turn && !s->in_turn)
                loop_defer(s->loop, stream_turn, s);
        s->turn = true;
}

static void stream_drop_descriptor(struct stream *s)
{
        watch_free(s->watch);
        s->watch = NULL;
        SSL_free(s->ssl);
        s->ssl = NULL;
        if (s->fd >= 0)
                close(s->fd);
        s->fd = -1;
}

__attribute__((format(printf, 2, 3))) static void stream_die(struct stream *s, const char *fmt, ...)
{
        va_list ap;

        if (s->state == DEAD)
                return;
        va_start(ap, fmt);
        err_vset(&s->why, 0, fmt, ap);
        va_end(ap);
        s->state = DEAD;
        timer_stop(s->timer);
        resolve_cancel(s->resolve);
        s->resolve = NULL;
        stream_drop_descriptor(s);
        stream_soon(s);
}

/* What the descriptor is to be watched for, from the state of things. */
static void stream_interest(struct stream *s)
{
        int what = 0;

        if (s->state == OPEN || s->state == FINISHING) {
                if (s->state == FINISHING || s->in.n < s->limits.read_max || s->write_wants_read)
                        what |= WATCH_READ;
                if ((s->out.n > s->out_at && !s->write_wants_read) || s->read_wants_write)
                        what |= WATCH_WRITE;
                watch_set(s->watch, what);
        }
}

/* ---- bytes in and out: a count, 0 at the end of the stream, -EAGAIN, or another -errno with s->why set */

static ssize_t stream_tls_result(struct stream *s, int done, bool *other_way, int other)
{
        int code = SSL_get_error(s->ssl, done);

        *other_way = code == other;
        switch (code) {
        case SSL_ERROR_WANT_READ:
        case SSL_ERROR_WANT_WRITE: return -EAGAIN;
        case SSL_ERROR_ZERO_RETURN: return 0;
        default: tls_explain(s->ssl, errno, &s->why); return -EIO;
        }
}

static ssize_t stream_get(struct stream *s, char *room, size_t n)
{
        ssize_t done;

        if (s->ssl) {
                size_t got = 0;
                ERR_clear_error();
                errno = 0;
                done = SSL_read_ex(s->ssl, room, n, &got);
                if (done == 1) {
                        s->read_wants_write = false;
                        return got;
                }
                return stream_tls_result(s, done, &s->read_wants_write, SSL_ERROR_WANT_WRITE);
        }
        do
                done = recv(s->fd, room, n, 0);
        while (done < 0 && errno == EINTR);
        if (done >= 0)
                return done;
        if (errno != EAGAIN)
                err_set(&s->why, 0, "%s", strerror(errno));
        return -errno;
}

static ssize_t stream_put(struct stream *s, const char *p, size_t n)
{
        ssize_t done;

        if (s->ssl) {
                size_t put = 0;
                ERR_clear_error();
                errno = 0;
                done = SSL_write_ex(s->ssl, p, n, &put);
                if (done == 1) {
                        s->write_wants_read = false;
                        return put;
                }
                done = stream_tls_result(s, done, &s->write_wants_read, SSL_ERROR_WANT_READ);
                return done ? done : -EPIPE;
        }
        do
                done = send(s->fd, p, n, MSG_NOSIGNAL);
        while (done < 0 && errno == EINTR);
        if (done >= 0)
                return done;
        if (errno != EAGAIN)
                err_set(&s->why, 0, "%s", strerror(errno));
        return -errno;
}

/* Sends what it can; calls nobody back. */
static void stream_push(struct stream *s)
{
        size_t sent = 0;

        if ((s->state != OPEN && s->state != FINISHING) || s->refused)
                return;
        while (s->out.n > s->out_at && sent < WRITE_TURN) {
                size_t left = s->out.n - s->out_at;
                ssize_t n = stream_put(s, s->out.p + s->out_at, left < WRITE_CHUNK ? left : WRITE_CHUNK);
                if (n == -EAGAIN)
                        break;
                if (n < 0) {
                        struct err why = s->why;
                        stream_die(s, "sending failed: %s", why.text);
                        return;
                }
                s->out_at += n;
                sent += n;
        }
        if (sent && s->state == FINISHING)
                timer_start(s->timer, FINISH_MS);
        if (s->out_at == s->out.n && sent) {
                s->tell_drained = true;
                s->out_at = 0;
                buf_reset(&s->out);
                if (s->out.cap > KEEP_MEMORY)
                        buf_deinit(&s->out);
        } else if (s->out_at > s->out.n / 2) {
                buf_consume(&s->out, s->out_at);
                s->out_at = 0;
        }
        stream_interest(s);
}

static void stream_linger(struct stream *s)
{
        if (s->half_closed || s->out.n > s->out_at)
                return;
        s->half_closed = true;
        if (s->ssl) {
                ERR_clear_error();
                SSL_shutdown(s->ssl);
        }
        shutdown(s->fd, SHUT_WR);
        timer_start(s->timer, LINGER_MS);
}

static void stream_refused(struct stream *s)
{
        struct err why = s->why;

        stream_die(s, "TLS handshake: %s", why.text);
}

static void stream_discard(struct stream *s)
{
        char room[READ_CHUNK];
        ssize_t n;
        int rounds = 4;

        buf_reset(&s->in);
        do
                n = stream_get(s, room, sizeof(room));
        while (n > 0 && --rounds > 0);
        if (n > 0 || n == -EAGAIN)
                return;
        if (s->refused)
                stream_refused(s);
        else if (s->half_closed)
                stream_die(s, "closed by us");
        else
                stream_die(s, "the peer closed the connection before all was sent");
}

static void stream_read(struct stream *s)
{
        static _Thread_local char room[READ_CHUNK];
        size_t got = 0;
        ssize_t n = -EAGAIN;
        struct err why;

        while (got < READ_TURN && s->in.n < s->limits.read_max) {
                size_t space = s->limits.read_max - s->in.n;
                n = stream_get(s, room, space < READ_CHUNK ? space : READ_CHUNK);
                if (n <= 0)
                        break;
                buf_add(&s->in, room, n);
                got += n;
                if (!s->ssl && (size_t)n < READ_CHUNK) { /* most likely that was all */
                        n = -EAGAIN;
                        break;
                }
        }
        why = s->why;
        if (got) {
                s->heard_ns = clock_mono_ns();
                s->ops->data(s->arg, s, &s->in);
                if (!s->in.n && s->in.cap > KEEP_MEMORY)
                        buf_deinit(&s->in);
        }
        if (s->state == DEAD)
                return;
        if (n == 0) {
                stream_die(s, "the peer closed the connection");
        } else if (n < 0 && n != -EAGAIN) {
                stream_die(s, "%s", why.text);
        } else {
                if (n > 0 && s->ssl && SSL_pending(s->ssl) > 0)
                        stream_soon(s); /* the socket will not tell of what OpenSSL has already */
                stream_interest(s);
        }
}

/* ---- coming to be */

static void stream_open(struct stream *s)
{
        s->state = OPEN;
        s->heard_ns = clock_mono_ns();
        if (s->ssl)
                tls_peer(s->ssl, &s->peer_name, &s->peer_serial);
        timer_stop(s->timer);
        if (s->limits.silence_ms)
                timer_start(s->timer, s->limits.silence_ms);
        s->tell_ready = true;
        stream_soon(s);
}

static void stream_handshake(struct stream *s)
{
        int done;

        ERR_clear_error();
        errno = 0;
        done = SSL_do_handshake(s->ssl);
        if (done == 1) {
                stream_open(s);
                return;
        }
        switch (SSL_get_error(s->ssl, done)) {
        case SSL_ERROR_WANT_READ: watch_set(s->watch, WATCH_READ); break;
        case SSL_ERROR_WANT_WRITE: watch_set(s->watch, WATCH_WRITE); break;
        default:
                tls_explain(s->ssl, errno, &s->why);
                /* as in FINISHING: closing at once could take back the alert that tells the peer why */
                SSL_free(s->ssl);
                s->ssl = NULL;
                buf_deinit(&s->out); /* nothing of it may leave in the clear */
                s->out_at = 0;
                shutdown(s->fd, SHUT_WR);
                s->state = FINISHING;
                s->refused = s->half_closed = true;
                timer_start(s->timer, LINGER_MS);
                stream_interest(s);
        }
}

/* The socket is connected. */
static void stream_begin(struct stream *s)
{
        int one = 1;

        if (!s->is_unix)
                setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (!s->watch)
                s->watch = watch_new(s->loop, s->fd, 0, stream_event, s);
        watch_set(s->watch, 0);
        if (!s->tls) {
                stream_open(s);
                return;
        }
        s->ssl = tls_connection(s->tls, s->fd);
        s->state = HANDSHAKE;
        watch_set(s->watch, tls_is_server(s->tls) ? WATCH_READ : WATCH_WRITE);
}

static void stream_connected(struct stream *s)
{
        int error = 0;
        socklen_t size = sizeof(error);

        if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
                error = errno;
        if (!error) {
                stream_begin(s);
                return;
        }
        err_set(&s->why, 0, "%s", strerror(error));
        stream_try_next(s);
}

static void stream_release(struct stream *s)
{
        buf_deinit(&s->in);
        buf_deinit(&s->out);
        buf_deinit(&s->peer);
        buf_deinit(&s->peer_name);
        buf_deinit(&s->peer_serial);
        free(s->address);
        s->magic = 0;
        free(s);
}

static void stream_enter(struct stream *s)
{
        assert(s->magic == STREAM_MAGIC);
        s->busy++;
}

static void stream_leave(struct stream *s)
{
        if (--s->busy == 0 && s->gone)
                stream_release(s);
}

static void stream_event(void *arg, int what)
{
        struct stream *s = arg;

        stream_enter(s);
        switch (s->state) {
        case CONNECTING: stream_connected(s); break;
        case HANDSHAKE: stream_handshake(s); break;
        case FINISHING:
                if (what & WATCH_WRITE || s->write_wants_read)
                        stream_push(s);
                if (s->state == FINISHING && (what & WATCH_READ || s->read_wants_write))
                        stream_discard(s);
                break;
        case OPEN:
                if (what & WATCH_READ || s->read_wants_write)
                        stream_read(s);
                if (what & WATCH_WRITE || s->write_wants_read)
                        stream_push(s);
                break;
        default: break;
        }
        if (s->tell_drained && s->state != DEAD)
                stream_soon(s);
        stream_leave(s);
}

static void stream_timed_out(void *arg)
{
        struct stream *s = arg; /* calls nobody back */
        int64_t quiet_ms = (clock_mono_ns() - s->heard_ns) / 1000000;

        switch (s->state) {
        case RESOLVING: stream_die(s, "%s: the host's name was not found in time", s->address); break;
        case CONNECTING: stream_die(s, "cannot connect to %s: no answer in time", s->address); break;
        case HANDSHAKE: stream_die(s, "TLS handshake: no answer in time"); break;
        case FINISHING:
                if (s->refused)
                        stream_refused(s);
                else
                        stream_die(s, s->half_closed ? "closed by us" : "the peer took nothing for too long");
                break;
        case OPEN:
                if (!s->limits.silence_ms)
                        break;
                if (s->in.n >= s->limits.read_max) /* it is we who don't listen */
                        timer_start(s->timer, s->limits.silence_ms);
                else if (quiet_ms < s->limits.silence_ms)
                        timer_start(s->timer, s->limits.silence_ms - quiet_ms);
                else
                        stream_die(s, "silent for %lld s", (long long)(s->limits.silence_ms + 999) / 1000);
                break;
        default: break;
        }
}

static void stream_turn(void *arg)
{
        struct stream *s = arg;

        stream_enter(s);
        s->in_turn = true;
        s->turn = false;
        if (s->tell_ready && s->state != DEAD) {
                s->tell_ready = false;
                stream_interest(s);
                if (s->ops->ready)
                        s->ops->ready(s->arg, s);
        }
        stream_push(s);
        if (s->tell_drained && s->state == OPEN && s->out_at == s->out.n) {
                s->tell_drained = false;
                if (s->ops->drained)
                        s->ops->drained(s->arg, s);
        }
        if (s->state == FINISHING)
                stream_linger(s);
        if (s->state == OPEN && s->ssl && SSL_pending(s->ssl) > 0 && s->in.n < s->limits.read_max)
                stream_read(s);
        s->in_turn = false;
        if (s->state != DEAD) {
                if (s->turn)
                        loop_defer(s->loop, stream_turn, s);
        } else if (!s->gone) {
                struct err why = s->why;
                s->turn = false;
                s->ops->closed(s->arg, s, &why);
        }
        stream_leave(s);
}

static struct stream *stream_new(struct loop *l, struct tls_context *tls, const struct stream_limits *limits,
                                 const struct stream_ops *ops, void *arg)
{
        struct stream *s = mem_new(struct stream);

        s->magic = STREAM_MAGIC;
        s->loop = l;
        s->ops = ops;
        s->arg = arg;
        s->fd = -1;
        if (limits)
                s->limits = *limits;
        if (!s->limits.read_max)
                s->limits.read_max = 1u << 20;
        if (!s->limits.write_max)
                s->limits.write_max = 64u << 20;
        if (!s->limits.handshake_ms)
                s->limits.handshake_ms = 10000;
        s->tls = tls;
        if (tls)
                tls_ref(tls);
        s->timer = timer_new(l, stream_timed_out, s);
        timer_start(s->timer, s->limits.handshake_ms);
        return s;
}

static int stream_unix_address(const char *path, struct sockaddr_un *ret)
{
        *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
        if (strlen(path) >= sizeof(ret->sun_path))
                return -ENAMETOOLONG;
        memcpy(ret->sun_path, path, strlen(path) + 1);
        return 0;
}

/* Starts to connect; false: failed, s->why says how. */
static bool stream_dial(struct stream *s, const struct sockaddr *to, socklen_t size)
{
        stream_drop_descriptor(s);
        s->fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (s->fd >= 0 && connect(s->fd, to, size) == 0) {
                stream_begin(s);
                return true;
        }
        if (s->fd >= 0 && errno == EINPROGRESS) {
                s->state = CONNECTING;
                s->watch = watch_new(s->loop, s->fd, WATCH_WRITE, stream_event, s);
                return true;
        }
        err_set(&s->why, 0, "%s", strerror(errno));
        return false;
}

static void stream_try_next(struct stream *s)
{
        struct err why;

        while (s->address_next) {
                struct addrinfo *a = s->address_next;
                s->address_next = a->ai_next;
                if (stream_dial(s, a->ai_addr, a->ai_addrlen))
                        return;
        }
        why = s->why;
        stream_die(s, "cannot connect to %s: %s", s->address, why.text);
}

static void stream_resolved(void *arg, int error, struct addrinfo *list, const struct err *why)
{
        struct stream *s = arg;

        s->resolve = NULL;
        if (error) {
                stream_die(s, "%s", why->text);
                return;
        }
        s->addresses = s->address_next = list;
        stream_try_next(s);
}

struct stream *stream_connect(struct loop *l, const char *address, struct tls_context *tls,
                              const struct stream_limits *limits, const struct stream_ops *ops, void *arg)
{
        struct stream *s = stream_new(l, tls, limits, ops, arg);
        MEM_CLEANUP char *host = NULL;
        MEM_CLEANUP char *port = NULL;
        struct sockaddr_un to;
        struct err why;

        s->state = RESOLVING;
        s->address = mem_dupz(address);
        buf_addz(&s->peer, address);
        if (strncmp(address, "unix:", 5) == 0) {
                s->is_unix = true;
                if (stream_unix_address(address + 5, &to) < 0)
                        stream_die(s, "%s: the path of a unix socket may have 107 bytes", address);
                else if (!stream_dial(s, (struct sockaddr *)&to, sizeof(to)))
                        stream_try_next(s);
        } else if (resolve_split(address, &host, &port, &why) < 0) {
                stream_die(s, "%s", why.text);
        } else {
                s->resolve = resolve_start(l, host, port, stream_resolved, s);
        }
        return s;
}

/* Who is at the other end of an accepted socket. */
static void stream_learn_peer(struct stream *s)
{
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof(from);
        char host[INET6_ADDRSTRLEN + 24], port[8];
        struct ucred cred;

        if (getpeername(s->fd, (struct sockaddr *)&from, &size) == 0 && from.ss_family != AF_UNIX) {
                if (getnameinfo((struct sockaddr *)&from, size, host, sizeof(host), port, sizeof(port),
                                NI_NUMERICHOST | NI_NUMERICSERV) != 0)
                        return;
                buf_printf(&s->peer, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
                return;
        }
        size = sizeof(cred);
        if (getsockopt(s->fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
                return;
        s->is_unix = true;
        s->uid = cred.uid;
        s->pid = cred.pid;
        buf_printf(&s->peer, "unix uid=%u pid=%d", (unsigned)cred.uid, (int)cred.pid);
}

struct stream *stream_accept(struct loop *l, int fd, struct tls_context *tls,
                             const struct stream_limits *limits, const struct stream_ops *ops, void *arg)
{
        struct stream *s = stream_new(l, tls, limits, ops, arg);

        s->fd = fd;
        s->state = CONNECTING;
        stream_learn_peer(s);
        stream_begin(s);
        return s;
}

void stream_free(struct stream *s)
{
        if (!s)
                return;
        assert(s->magic == STREAM_MAGIC);
        assert(!s->gone);
        if (s->state == OPEN)
                stream_push(s); /* a last word goes out if the kernel takes it */
        s->gone = true;
        if (s->turn)
                loop_defer_cancel(s->loop, stream_turn, s);
        resolve_cancel(s->resolve);
        s->resolve = NULL;
        if (s->addresses)
                freeaddrinfo(s->addresses);
        s->addresses = s->address_next = NULL;
        if (s->ssl && s->state == OPEN && s->out_at == s->out.n) {
                ERR_clear_error();
                SSL_shutdown(s->ssl); /* says goodbye; waits for nothing */
        }
        s->state = DEAD;
        stream_drop_descriptor(s);
        timer_free(s->timer);
        s->timer = NULL;
        tls_unref(s->tls);
        s->tls = NULL;
        if (!s->busy)
                stream_release(s);
}

/* ---- what the owner does */

void stream_write(struct stream *s, const void *p, size_t n)
{
        assert(s->magic == STREAM_MAGIC);
        if (s->state == DEAD || s->state == FINISHING || !n)
                return;
        if (stream_pending(s) + n > s->limits.write_max) {
                stream_push(s);
                if (s->state == DEAD)
                        return;
                if (stream_pending(s) + n > s->limits.write_max) {
                        stream_die(s, "peer too slow: %zu bytes wait to be sent", stream_pending(s));
                        return;
                }
        }
        buf_add(&s->out, p, n);
        if (s->state == OPEN)
                stream_soon(s);
}

void stream_finish(struct stream *s)
{
        if (s->state == DEAD || s->state == FINISHING)
                return;
        if (s->state != OPEN) {
                stream_die(s, "closed by us");
                return;
        }
        s->state = FINISHING;
        timer_start(s->timer, FINISH_MS);
        stream_interest(s);
        stream_soon(s);
}

void stream_abort(struct stream *s, const struct err *why)
{
        stream_die(s, "%s", why->text);
}

void stream_resume(struct stream *s)
{
        stream_interest(s);
        if (s->state == OPEN && s->ssl && SSL_pending(s->ssl) > 0)
                stream_soon(s);
}

size_t stream_pending(const struct stream *s)
{
        return s->out.n - s->out_at;
}

void stream_silence(struct stream *s, int64_t ms)
{
        s->limits.silence_ms = ms;
        if (s->state == OPEN && ms)
                timer_start(s->timer, ms);
}

struct str stream_peer(const struct stream *s)
{
        return buf_view(&s->peer);
}

int stream_peer_uid(const struct stream *s, uid_t *ret, pid_t *ret_pid)
{
        if (!s->is_unix || s->address)
                return -ENOTSUP;
        *ret = s->uid;
        if (ret_pid)
                *ret_pid = s->pid;
        return 0;
}

struct str stream_peer_name(const struct stream *s)
{
        return buf_view(&s->peer_name);
}

struct str stream_peer_serial(const struct stream *s)
{
        return buf_view(&s->peer_serial);
}
