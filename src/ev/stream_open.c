/* Opening of a stream: names, addresses, connecting, TLS; or a socket that a listener has accepted. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/un.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "ev/stream_private.h"

static void stream_try_next(struct stream *s);

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

void stream_handshake(struct stream *s)
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
                timer_start(s->timer, STREAM_LINGER_MS);
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
        if (s->yields)
                watch_yield(s->watch);
        watch_set(s->watch, 0);
        if (!s->tls) {
                stream_open(s);
                return;
        }
        s->ssl = tls_connection(s->tls, s->fd);
        s->state = HANDSHAKE;
        watch_set(s->watch, tls_is_server(s->tls) ? WATCH_READ : WATCH_WRITE);
}

void stream_connected(struct stream *s)
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

/* Records the peer of an accepted socket. */
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
