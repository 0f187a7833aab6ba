/* Messages sent in one turn of the loop leave in one write: the stream gathers them. */
#include "wire/session.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "wire/unpack.h"

#define SESSION_MAGIC 0x73657373u
#define HEAD          4u
#define CONNECT_MS    20000 /* handshake included: a server that thousands come back to lets them wait */
#define KEEP_MEMORY   (256u << 10) /* a larger arena is not kept between messages */

struct session {
        unsigned magic;
        enum session_role role;
        struct stream *stream;
        struct buf *in; /* the stream's, once something has come */
        const struct session_ops *ops;
        void *arg;
        size_t frame_max;
        struct arena arena;
        struct buf room; /* buffer in which a message is packed */
        bool over;       /* finished or failed: no more messages are told */
        bool paused;     /* paused by the owner */
        bool gone;       /* freed by the owner while a function of ours runs */
        unsigned busy;
};

static void session_release(struct session *s)
{
        arena_deinit(&s->arena);
        buf_deinit(&s->room);
        s->magic = 0;
        free(s);
}

static void session_leave(struct session *s)
{
        if (--s->busy == 0 && s->gone)
                session_release(s);
}

static void session_ready(void *arg, struct stream *st)
{
        struct session *s = arg;

        (void)st;
        if (s->ops->ready)
                s->ops->ready(s->arg, s);
}

static void session_closed(void *arg, struct stream *st, const struct err *why)
{
        struct session *s = arg;

        (void)st;
        s->over = true;
        s->ops->closed(s->arg, s, why);
}

__attribute__((format(printf, 2, 3))) static void session_fail(struct session *s, const char *fmt, ...)
{
        struct err why;
        va_list ap;

        va_start(ap, fmt);
        err_vset(&why, 0, fmt, ap);
        va_end(ap);
        s->over = true;
        stream_abort(s->stream, &why);
}

static void session_frame(struct session *s, struct str bytes)
{
        const ProtobufCMessage *m;
        bool known;

        m = unpack_message(&s->arena,
                           s->role == SESSION_SERVER ? &drover__to_server__descriptor
                                                     : &drover__to_agent__descriptor,
                           bytes);
        if (!m) {
                session_fail(s, "a frame of %zu bytes is not a message of the protocol", bytes.n);
                return;
        }
        if (s->role == SESSION_SERVER)
                known = ((const Drover__ToServer *)m)->kind_case != DROVER__TO_SERVER__KIND__NOT_SET;
        else
                known = ((const Drover__ToAgent *)m)->kind_case != DROVER__TO_AGENT__KIND__NOT_SET;
        if (known) /* otherwise a kind that only a newer peer knows */
                s->ops->message(s->arg, s, m);
        if (s->arena.used > KEEP_MEMORY)
                arena_deinit(&s->arena);
}

static void session_data(void *arg, struct stream *st, struct buf *in)
{
        struct session *s = arg;
        size_t at = 0;

        (void)st;
        assert(s->magic == SESSION_MAGIC);
        s->in = in;
        s->busy++;
        while (!s->over && !s->paused && in->n - at >= HEAD) {
                const unsigned char *head = (const unsigned char *)in->p + at;
                size_t n = head[0] | head[1] << 8 | head[2] << 16 | (size_t)head[3] << 24;

                if (n > s->frame_max) {
                        session_fail(s, "a frame of %zu bytes is over the limit of %zu", n, s->frame_max);
                        break;
                }
                if (in->n - at - HEAD < n)
                        break;
                session_frame(s, str_make(in->p + at + HEAD, n));
                at += HEAD + n;
        }
        if (!s->gone)
                buf_consume(in, s->over ? in->n : at);
        session_leave(s);
}

static const struct stream_ops session_stream_ops = {
        .ready = session_ready,
        .data = session_data,
        .closed = session_closed,
};

static struct session *session_new(enum session_role role, const struct session_ops *ops, void *arg)
{
        struct session *s = mem_new(struct session);

        s->magic = SESSION_MAGIC;
        s->role = role;
        s->ops = ops;
        s->arg = arg;
        s->frame_max = role == SESSION_SERVER ? SESSION_FRAME_HELLO : SESSION_FRAME_MAX;
        return s;
}

struct session *session_connect(struct loop *l, const char *address, struct tls_context *tls,
                                int64_t silence_ms, const struct session_ops *ops, void *arg)
{
        struct stream_limits limits = {
                .read_max = SESSION_FRAME_MAX + HEAD, .silence_ms = silence_ms, .handshake_ms = CONNECT_MS};
        struct session *s = session_new(SESSION_AGENT, ops, arg);

        s->stream = stream_connect(l, address, tls, &limits, &session_stream_ops, s);
        return s;
}

struct session *session_accept(struct loop *l, int fd, struct tls_context *tls, int64_t silence_ms,
                               const struct session_ops *ops, void *arg)
{
        struct stream_limits limits = {
                .read_max = SESSION_FRAME_HELLO + HEAD, .silence_ms = silence_ms, .handshake_ms = 5000};
        struct session *s = session_new(SESSION_SERVER, ops, arg);

        s->stream = stream_accept(l, fd, tls, &limits, &session_stream_ops, s);
        stream_yield(s->stream); /* of many agents, to the API */
        return s;
}

void session_free(struct session *s)
{
        if (!s)
                return;
        assert(s->magic == SESSION_MAGIC && !s->gone);
        s->gone = s->over = true;
        stream_free(s->stream);
        s->stream = NULL;
        if (!s->busy)
                session_release(s);
}

void session_send(struct session *s, const ProtobufCMessage *m)
{
        size_t n = protobuf_c_message_get_packed_size(m);
        unsigned char *p;

        assert(s->magic == SESSION_MAGIC);
        if (s->over)
                return;
        if (n > SESSION_FRAME_MAX) {
                session_fail(s, "a message of %zu bytes is over the limit of %u and cannot be sent", n,
                             SESSION_FRAME_MAX);
                return;
        }
        buf_reset(&s->room);
        p = buf_room(&s->room, HEAD + n);
        for (unsigned i = 0; i < HEAD; i++)
                p[i] = (unsigned char)(n >> 8 * i);
        protobuf_c_message_pack(m, p + HEAD);
        stream_write(s->stream, p, HEAD + n);
        if (s->room.cap > KEEP_MEMORY)
                buf_deinit(&s->room);
}

void session_finish(struct session *s)
{
        s->over = true;
        stream_finish(s->stream);
}

void session_frame_max(struct session *s, size_t max)
{
        s->frame_max = max < SESSION_FRAME_MAX ? max : SESSION_FRAME_MAX;
        stream_read_max(s->stream, s->frame_max + HEAD);
}

void session_pause(struct session *s)
{
        s->paused = true;
}

void session_read_on(struct session *s)
{
        s->paused = false;
        if (s->over || !s->in)
                return;
        s->busy++;
        session_data(s, s->stream, s->in);
        if (!s->gone)
                stream_resume(s->stream);
        session_leave(s);
}

struct stream *session_stream(struct session *s)
{
        return s->stream;
}
