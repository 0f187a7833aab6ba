/* A stream that is open, or on its way to its end; the diagram is in stream_private.h. */
#include "ev/stream.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "ev/stream_private.h"
#include "ev/ticket.h"

#define READ_CHUNK  65536u
#define READ_TURN   (4u * READ_CHUNK) /* bytes taken from one peer before others have their turn */
#define WRITE_CHUNK (256u << 10)
#define WRITE_TURN  (4u << 20)
#define KEEP_MEMORY 16384u /* an empty buffer larger than this gives its memory back */
#define FINISH_MS   10000  /* without progress while finishing */

static void stream_turn(void *arg);

static void stream_defer(struct stream *s)
{
        if (s->yields)
                loop_defer_yield(s->loop, stream_turn, s);
        else
                loop_defer(s->loop, stream_turn, s);
}

void stream_soon(struct stream *s)
{
        if (!s->turn && !s->in_turn)
                stream_defer(s);
        s->turn = true;
}

void stream_drop_descriptor(struct stream *s)
{
        watch_free(s->watch);
        s->watch = NULL;
        SSL_free(s->ssl);
        s->ssl = NULL;
        if (s->fd >= 0)
                close(s->fd);
        s->fd = -1;
}

void stream_die(struct stream *s, const char *fmt, ...)
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

/* Sets the readiness that the descriptor is watched for, from the stream's state. */
void stream_interest(struct stream *s)
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

/* ---- sending */

/* The bytes that wait are counted (http.h), so their buffer must not be much larger. */
static void give_back_memory(struct buf *b)
{
        struct buf rest = {0};

        if (b->cap <= KEEP_MEMORY || b->n > b->cap / 4)
                return;
        buf_str(&rest, buf_view(b));
        buf_deinit(b);
        *b = rest;
}

/* Sends as much as the socket takes, without callbacks. */
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
                give_back_memory(&s->out);
                s->out_at = 0;
        }
        stream_interest(s);
}

/* ---- receiving */

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
                        stream_soon(s); /* the socket does not report bytes that OpenSSL has already read */
                stream_interest(s);
        }
}

/* ---- turns */

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

void stream_event(void *arg, int what)
{
        struct stream *s = arg;

        stream_enter(s);
        switch (s->state) {
        case CONNECTING: stream_connected(s); break;
        case HANDSHAKE:
                if (loop_take_costly(s->loop)) /* a flood of handshakes does not delay other streams */
                        stream_handshake(s);
                break;
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

void stream_timed_out(void *arg)
{
        struct stream *s = arg; /* no callbacks */
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
                if (s->in.n >= s->limits.read_max) /* the silence is ours: reading is stopped */
                        timer_start(s->timer, s->limits.silence_ms);
                else if (quiet_ms < s->limits.silence_ms)
                        timer_start(s->timer, s->limits.silence_ms - quiet_ms);
                else
                        stream_die(s, "silent for %lld s", (long long)(s->limits.silence_ms + 999) / 1000);
                break;
        default: break;
        }
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
        timer_start(s->timer, STREAM_LINGER_MS);
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
                        stream_defer(s);
        } else if (!s->gone) {
                struct err why = s->why;

                s->turn = false;
                s->ops->closed(s->arg, s, &why);
        }
        stream_leave(s);
}

/* ---- calls of the owner */

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

void stream_read_max(struct stream *s, size_t max)
{
        s->limits.read_max = max;
        stream_resume(s);
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

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int stream_peer_pidfd(const struct stream *s)
{
        int fd;
        socklen_t size = sizeof(fd);

        if (!s->is_unix || s->address)
                return -ENOTSUP;
        if (getsockopt(s->fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0)
                return fd;
        if (errno != ENOPROTOOPT)
                return -ESRCH;
        fd = (int)syscall(SYS_pidfd_open, s->pid, 0);
        return fd < 0 ? -ESRCH : fd;
}

struct str stream_peer_name(const struct stream *s)
{
        return buf_view(&s->peer_name);
}

struct str stream_peer_serial(const struct stream *s)
{
        return buf_view(&s->peer_serial);
}

void stream_yield(struct stream *s)
{
        s->yields = true;
        if (s->watch)
                watch_yield(s->watch);
}

void stream_send_ticket(struct stream *s)
{
        if (s->state == OPEN && s->ssl && tls_gives_tickets(s->tls) && s->peer_serial.n)
                ticket_send(s->ssl);
}

bool stream_resumed(const struct stream *s)
{
        return s->ssl && SSL_session_reused(s->ssl);
}
