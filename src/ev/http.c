/* The HTTP server: its connections, on streams, and replies.
 *
 *   HEAD -> BUSY -> HEAD ...            (BUSY -> BODY -> BUSY when the handler wants a body; any ->
 *                                       CLOSING)
 *
 *   HEAD     conn_take_head()  at first and between requests
 *   BUSY     the handler has the request
 *   BODY     conn_take_body()
 *   CLOSING  the last reply is being sent
 *
 * In HEAD the timer counts from the first byte of a head; before that the connection may be idle. Bytes
 * received in BUSY (a body that was not asked for yet, further requests) wait in the stream, which stops
 * reading at READ_MAX, or at HEAD_MAX_ALIEN if the peer is a stranger. Because the stream reads until
 * then, a client that disconnects is noticed. */
#include "ev/http.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/mem.h"
#include "base/share.h"
#include "base/system/clock.h"
#include "ev/admission.h"
#include "ev/http_parse.h"
#include "ev/private.h"
#include "ev/stream.h"

#define HTTP_REQUEST_MAGIC 0x68747265u
#define CONN_MAGIC         0x68747063u
#define READ_MAX           65536u
#define WRITE_MAX          (128u << 20)
#define HEAD_MAX           16384u
#define HEAD_MAX_ALIEN     4096u /* of a stranger: a peer over TCP, until http_trust */
#define HEAD_MS            5000
#define BODY_MS            60000
#define IDLE_MS            60000
#define STALL_MS           60000 /* for a reply of which the client reads nothing */
#define CONNECTIONS_MAX    4096u
#define STRANGERS_MAX      512u
#define BODIES_MAX         (256u << 20)
#define REPLIES_MAX        (512u << 20)
#define BEHIND_MAX         65536u /* unread bytes of replies above which the client's next request waits */
#define BODY_UNIT          65536u /* unit in which bodies are counted; smaller ones are bounded by CONNECTIONS_MAX */

/* BODY_READ: also for a request without a body */
enum http_body_state { BODY_UNREAD, BODY_COMES, BODY_READ };
enum http_reply_state { REPLY_NONE, REPLY_CHUNKS, REPLY_DONE };

/* A request. A connection has one at a time; the next is read when the reply to the previous one has
 * ended. */
struct http_request {
        unsigned magic;
        struct loop *loop;
        /* NULL: an orphan, whose client has disconnected and whose handler has set no on_close */
        struct http_conn *conn;
        bool orphan_soon;   /* orphan_drained is deferred */
        struct arena arena; /* memory of the head and its decoded parts */
        struct http_head head;
        enum http_body_state body_state;
        struct buf body;
        size_t body_max; /* 0: HTTP_BODY_MAX */
        http_handler_fn *body_fn;
        void *body_arg;
        struct share *bodies; /* the server's share of bodies, while this request has places in it */
        char *body_holder;
        size_t body_units; /* number of places taken */
        enum http_reply_state reply;
        bool one_chunk;    /* http_reply frames the body as a chunk */
        bool raw;          /* a reply in pieces without chunked encoding: to HTTP/1.0 or HEAD */
        bool close;        /* close the connection after the reply */
        struct buf fields; /* header fields of the reply */
        void (*on_close)(void *arg, struct http_request *r);
        void *on_close_arg;
        void (*drained)(void *arg, struct http_request *r);
        void *drained_arg;
};

enum conn_state { HEAD, BODY, BUSY, CLOSING };

struct http_conn {
        unsigned magic;
        struct http_server *server;
        struct http_conn *next, **link;
        struct stream *stream;
        struct buf *in; /* the stream's buffer */
        enum conn_state state;
        struct timer *timer;
        bool began; /* bytes of a head were received */
        bool known; /* the peer is not a stranger */
        unsigned note;
        bool processing, again;
        struct admission_place place;
        int64_t head_by_ms; /* when a stranger's head must be complete */
        struct http_request *request;
        struct http_chunks chunks;
        uint64_t written, sent; /* totals; sent: as of the timer's last check */
};

struct http_listen {
        struct http_listen *next;
        struct http_server *server;
        struct listener *listener;
        struct tls_context *tls;
        bool local; /* a unix socket: the kernel identifies the peer */
};

struct http_server {
        struct loop *loop;
        http_handler_fn *fn;
        void *arg;
        struct http_limits limits;
        struct http_listen *listens;
        struct http_conn *conns;
        struct admission *admission;
        struct share *bodies; /* in units */
};

/* ---- requests */

static struct http_request *http_request_new(struct http_conn *c)
{
        struct http_request *r = mem_new(struct http_request);

        r->magic = HTTP_REQUEST_MAGIC;
        r->conn = c;
        r->loop = c->server->loop;
        return r;
}

static void orphan_drained(void *arg)
{
        struct http_request *r = arg;

        r->orphan_soon = false;
        if (r->reply == REPLY_CHUNKS && r->drained)
                r->drained(r->drained_arg, r);
}

/* Calls an orphan's `drained` at the end of the turn, so that its handler continues and finishes the reply.
 */
static void orphan_drained_soon(struct http_request *r)
{
        assert(!r->conn);
        if (!r->orphan_soon)
                loop_defer(r->loop, orphan_drained, r);
        r->orphan_soon = true;
}

static void request_free(struct http_request *r)
{
        assert(r->magic == HTTP_REQUEST_MAGIC);
        if (r->conn)
                r->conn->request = NULL;
        if (r->orphan_soon)
                loop_defer_cancel(r->loop, orphan_drained, r);
        for (; r->body_units; r->body_units--)
                share_give(r->bodies, str_of(r->body_holder));
        free(r->body_holder);
        arena_deinit(&r->arena);
        buf_deinit(&r->body);
        buf_deinit(&r->fields);
        r->magic = 0;
        free(r);
}

/* ---- connections */

static void conn_process_later(void *arg);

/* Detaches the connection from its request, whose handler still has it; the connection continues or ends. */
static void conn_leave_request(struct http_conn *c)
{
        struct http_request *r = c->request;

        c->request = NULL;
        r->conn = NULL;
        if (r->on_close)
                r->on_close(r->on_close_arg, r);
        if (r->on_close || r->body_state == BODY_COMES)
                request_free(r);
        else /* the handler will reply; the reply is discarded */
                orphan_drained_soon(r);
}

static void conn_free(struct http_conn *c)
{
        assert(c->magic == CONN_MAGIC && !c->processing);
        if (c->request)
                conn_leave_request(c);
        loop_defer_cancel(c->server->loop, conn_process_later, c);
        *c->link = c->next;
        if (c->next)
                c->next->link = c->link;
        admission_give(&c->place);
        timer_free(c->timer);
        stream_free(c->stream);
        c->magic = 0;
        free(c);
}

/* Refuses a request that is malformed, too large or too slow, in its head or its body. If the head is
 * refused, the handler never sees the request. */
static void conn_refuse(struct http_conn *c, int status, const char *code, const char *message)
{
        BUF_CLEANUP struct buf body = {0};
        struct json j = {.out = &body};
        struct http_request *r;

        if (c->state == BODY)
                conn_leave_request(c);
        r = c->request ? c->request : http_request_new(c);
        c->request = r;
        json_open(&j, '{');
        json_key(&j, "error");
        json_open(&j, '{');
        json_kstrz(&j, "code", code);
        json_kstrz(&j, "message", message);
        json_close(&j, '}');
        json_close(&j, '}');
        c->state = BUSY;
        r->close = true;
        http_reply(r, status, NULL, &body);
}

static const char *refuse_code(int status)
{
        switch (status) {
        case 413: return "too_large";
        case 431: return "head_too_large";
        case 501: return "not_implemented";
        case 505: return "version";
        default: return "bad_request";
        }
}

static void conn_timed_out(void *arg)
{
        struct http_conn *c = arg;
        uint64_t sent = c->written - stream_pending(c->stream);
        struct err why;

        switch (c->state) {
        case HEAD:
                if (!c->began)
                        stream_finish(c->stream);
                else
                        conn_refuse(c, 408, "timeout", "the head of the request did not come in time");
                break;
        case BODY: conn_refuse(c, 408, "timeout", "the body of the request did not come in time"); break;
        default:
                if (stream_pending(c->stream) && sent == c->sent) {
                        err_set(&why, 0, "the client took nothing for too long");
                        stream_abort(c->stream, &why);
                        break;
                }
                c->sent = sent;
                timer_start(c->timer, c->server->limits.stall_ms);
        }
}

static void conn_busy(struct http_conn *c)
{
        c->state = BUSY;
        c->sent = c->written - stream_pending(c->stream);
        timer_start(c->timer, c->server->limits.stall_ms);
}

/* Both return whether to continue; false: more bytes must be received first, or the request was refused.
 * Calling the handler is the last thing that they do. */
static bool conn_take_head(struct http_conn *c)
{
        struct http_request *r;
        struct err err = {""};
        size_t size, max = c->known ? HEAD_MAX : HEAD_MAX_ALIEN;
        int status;

        while (c->in->n >= 2 && c->in->p[0] == '\r' && c->in->p[1] == '\n' && !c->began)
                buf_consume(c->in, 2); /* RFC 9112 2.2: empty lines before a request */
        if (!c->in->n)
                return false;
        if (!c->began && c->known) /* a stranger's time began with the connection */
                timer_start(c->timer, c->server->limits.head_ms);
        c->began = true;
        size = http_head_size(buf_view(c->in));
        if (size > max || (!size && c->in->n >= max)) {
                conn_refuse(c, 431, "head_too_large", "the head of the request is too large");
                return false;
        }
        if (!size)
                return false;
        r = c->request = http_request_new(c);
        status = http_head_parse(&r->arena, arena_str(&r->arena, str_make(c->in->p, size)), &r->head, &err);
        buf_consume(c->in, size);
        c->began = false;
        if (status) {
                conn_refuse(c, status, refuse_code(status), err.text);
                return false;
        }
        r->close = !r->head.keep_alive;
        if (!r->head.length && !r->head.chunked)
                r->body_state = BODY_READ;
        conn_busy(c);
        c->server->fn(c->server->arg, r);
        return true;
}

/* Returns whether the body may take that many bytes: its holder's share may be used up. */
static bool body_has_room(struct http_request *r, size_t size)
{
        for (; r->body_units < size / BODY_UNIT; r->body_units++)
                if (!share_take(r->bodies, str_of(r->body_holder)))
                        return false;
        return true;
}

/* Returns whether a reply may take that many bytes: as in base/share.h, a holder may have no more than is
 * free. */
static bool reply_has_room(const struct http_conn *c, size_t size)
{
        size_t all = 0, own = size, max = c->server->limits.replies;

        for (const struct http_conn *o = c->server->conns; o; o = o->next) {
                all += stream_pending(o->stream);
                if (strcmp(o->place.holder, c->place.holder) == 0)
                        own += stream_pending(o->stream);
        }
        return all < max && own <= max - all;
}

static bool body_is_too_large(const struct http_request *r, size_t size)
{
        return r->body_max && size > r->body_max;
}

static void conn_refuse_large(struct http_conn *c)
{
        struct err text = {""};

        err_set(&text, 413, "a body may have %zu bytes here", c->request->body_max);
        conn_refuse(c, 413, refuse_code(413), text.text);
}

static bool conn_take_body(struct http_conn *c)
{
        struct http_request *r = c->request;
        struct err err = {""};
        size_t used = 0;
        int status = 0;
        bool whole;

        if (body_is_too_large(r, r->head.chunked ? 0 : r->head.length)) {
                conn_refuse_large(c);
                return false;
        }
        if (!body_has_room(r, r->body.n + c->in->n)) {
                conn_refuse(c, 503, "busy",
                            "too many large requests of yours are on their way at once: send this one later");
                return false;
        }
        if (r->head.chunked) {
                status = http_chunks_take(&c->chunks, buf_view(c->in), &used, &r->body, &err);
                whole = c->chunks.state == CHUNK_DONE;
        } else {
                used = r->head.length - r->body.n;
                if (used > c->in->n)
                        used = c->in->n;
                buf_add(&r->body, c->in->p, used);
                whole = r->body.n == r->head.length;
        }
        if (status) {
                conn_refuse(c, status, refuse_code(status), err.text);
                return false;
        }
        buf_consume(c->in, used);
        if (body_is_too_large(r, r->body.n)) {
                conn_refuse_large(c);
                return false;
        }
        if (!whole)
                return false;
        r->body_state = BODY_READ;
        conn_busy(c);
        r->body_fn(r->body_arg, r);
        return true;
}

/* Takes requests from the bytes received. Loops while handlers answer at once. */
static void conn_process(struct http_conn *c)
{
        bool more = true;

        assert(c->magic == CONN_MAGIC);
        if (c->processing || !c->in)
                return;
        c->processing = true;
        while (more) {
                switch (c->state) {
                case HEAD: more = stream_pending(c->stream) < BEHIND_MAX && conn_take_head(c); break;
                case BODY: more = conn_take_body(c); break;
                case BUSY: more = false; break;
                case CLOSING:
                        buf_consume(c->in, c->in->n);
                        more = false;
                        break;
                }
        }
        c->processing = false;
        stream_resume(c->stream);
}

static void conn_process_soon(struct http_conn *c)
{
        if (!c->processing && !c->again) {
                c->again = true;
                loop_defer(c->server->loop, conn_process_later, c);
        }
}

static void conn_process_later(void *arg)
{
        struct http_conn *c = arg;

        c->again = false;
        conn_process(c);
}

/* Continues with the connection after a reply has ended and its request is freed: closes it, or reads the
 * next request. */
static void conn_next(struct http_conn *c, bool close)
{
        assert(c->magic == CONN_MAGIC && !c->request);
        if (close) {
                c->state = CLOSING;
                stream_finish(c->stream);
                return;
        }
        c->state = HEAD;
        c->began = false;
        timer_start(c->timer, c->server->limits.idle_ms);
        conn_process_soon(c);
}

static void conn_send(struct http_conn *c, const void *p, size_t n)
{
        struct err why;

        if (n >= BEHIND_MAX && !reply_has_room(c, n)) {
                err_set(&why, 0, "too many large replies of yours wait for you to take them");
                stream_abort(c->stream, &why);
                return;
        }
        c->written += n;
        stream_write(c->stream, p, n);
}

void http_read_body(struct http_request *r, struct str holder, http_handler_fn *fn, void *arg)
{
        struct http_conn *c = r->conn;

        assert(r->magic == HTTP_REQUEST_MAGIC && r->body_state != BODY_COMES && r->reply == REPLY_NONE);
        if (r->body_state == BODY_READ) {
                fn(arg, r);
                return;
        }
        r->body_state = BODY_COMES;
        if (!c) { /* an orphan receives no body */
                request_free(r);
                return;
        }
        r->body_fn = fn;
        r->body_arg = arg;
        r->bodies = c->server->bodies;
        r->body_holder = str_dupz(holder);
        c->state = BODY;
        c->chunks = (struct http_chunks){0};
        timer_start(c->timer, c->server->limits.body_ms);
        if (r->head.expect_continue && !c->in->n)
                conn_send(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
        conn_process_soon(c);
}

/* Returns whether the peer is known, that is, not a stranger. */
static bool conn_known(const struct http_conn *c)
{
        return c->known;
}

static struct stream *conn_stream(struct http_conn *c)
{
        return c->stream;
}

static void conn_trust(struct http_conn *c)
{
        c->known = true;
        admission_known(&c->place);
        stream_read_max(c->stream, READ_MAX);
}

static void conn_ready(void *arg, struct stream *s)
{
        struct http_conn *c = arg;

        if (stream_peer_name(s).n)
                conn_trust(c);
        timer_start(c->timer, c->known ? c->server->limits.head_ms : c->head_by_ms - clock_boot_ms());
}

static void conn_data(void *arg, struct stream *s, struct buf *in)
{
        struct http_conn *c = arg;

        (void)s;
        c->in = in;
        conn_process(c);
}

static void conn_drained(void *arg, struct stream *s)
{
        struct http_conn *c = arg;
        struct http_request *r = c->request;

        (void)s;
        if (r && c->state == BUSY && r->reply == REPLY_CHUNKS && r->drained)
                r->drained(r->drained_arg, r);
        else if (c->state == HEAD) /* the next request may have waited for that */
                conn_process_soon(c);
}

static void conn_closed(void *arg, struct stream *s, const struct err *why)
{
        (void)s;
        (void)why;
        conn_free(arg);
}

static const struct stream_ops conn_ops = {conn_ready, conn_data, conn_drained, conn_closed};

static void server_accepted(void *arg, int fd)
{
        struct http_listen *h = arg;
        struct http_server *s = h->server;
        struct stream_limits limits = {
                .read_max = HEAD_MAX_ALIEN, .write_max = WRITE_MAX, .handshake_ms = s->limits.head_ms};
        struct admission_place place;
        struct http_conn *c;

        if (!admission_take(s->admission, fd, !h->local, &place)) {
                close(fd);
                return;
        }
        c = mem_new(struct http_conn);
        c->magic = CONN_MAGIC;
        c->server = s;
        c->timer = timer_new(s->loop, conn_timed_out, c);
        c->next = s->conns;
        c->link = &s->conns;
        if (c->next)
                c->next->link = &c->next;
        s->conns = c;
        c->place = place;
        c->head_by_ms = clock_boot_ms() + s->limits.head_ms;
        c->stream = stream_accept(s->loop, fd, h->tls, &limits, &conn_ops, c);
        if (h->local)
                conn_trust(c);
}

/* ---- the server */

struct http_server *http_server_new(struct loop *l, http_handler_fn *fn, void *arg)
{
        struct http_server *s = mem_new(struct http_server);

        s->loop = l;
        s->fn = fn;
        s->arg = arg;
        s->admission = admission_new(CONNECTIONS_MAX, STRANGERS_MAX);
        s->bodies = share_new(BODIES_MAX / BODY_UNIT);
        http_server_limits(s, &(struct http_limits){0});
        return s;
}

void http_server_limits(struct http_server *s, const struct http_limits *limits)
{
        s->limits.head_ms = limits->head_ms ? limits->head_ms : HEAD_MS;
        s->limits.body_ms = limits->body_ms ? limits->body_ms : BODY_MS;
        s->limits.idle_ms = limits->idle_ms ? limits->idle_ms : IDLE_MS;
        s->limits.stall_ms = limits->stall_ms ? limits->stall_ms : STALL_MS;
        if (s->conns)
                return;
        s->limits.replies = limits->replies ? limits->replies : REPLIES_MAX;
        if (limits->connections || limits->strangers) {
                admission_free(s->admission);
                s->admission = admission_new(limits->connections ? limits->connections : CONNECTIONS_MAX,
                                             limits->strangers ? limits->strangers : STRANGERS_MAX);
        }
        if (limits->bodies) {
                share_free(s->bodies);
                s->bodies = share_new(limits->bodies / BODY_UNIT);
        }
}

int http_server_listen(struct http_server *s, const char *address, mode_t mode, struct tls_context *tls,
                       const char **ret_address, struct err *err)
{
        struct http_listen *h = mem_new(struct http_listen);
        int r;

        h->server = s;
        r = listener_new(s->loop, address, mode, server_accepted, h, &h->listener, err);
        if (r < 0) {
                free(h);
                return r;
        }
        h->local = str_starts(str_of(address), STR("unix:"));
        h->tls = tls;
        if (tls)
                tls_ref(tls);
        h->next = s->listens;
        s->listens = h;
        if (ret_address)
                *ret_address = listener_address(h->listener);
        return 0;
}

void http_server_free(struct http_server *s)
{
        if (!s)
                return;
        while (s->listens) {
                struct http_listen *h = s->listens;

                s->listens = h->next;
                listener_free(h->listener);
                tls_unref(h->tls);
                free(h);
        }
        while (s->conns)
                conn_free(s->conns);
        admission_free(s->admission);
        share_free(s->bodies);
        free(s);
}

/* ---- accessors of a request for its handler */

enum http_method http_method(const struct http_request *r)
{
        return r->head.method;
}

struct str http_path(const struct http_request *r)
{
        return r->head.path;
}

bool http_query(const struct http_request *r, const char *name, struct str *ret)
{
        return http_query_nth(r, name, 0, ret);
}

bool http_query_nth(const struct http_request *r, const char *name, size_t n, struct str *ret)
{
        struct arena *a = (struct arena *)&r->arena;
        struct str rest = r->head.query, pair;

        while (str_cut(&rest, '&', &pair)) {
                struct str key, value = pair, plain;

                if (!str_cut(&value, '=', &key) || http_decode(a, key, true, &plain) < 0 ||
                    !str_eqz(plain, name))
                        continue;
                if (http_decode(a, value, true, &plain) < 0 || n-- > 0)
                        continue;
                *ret = plain;
                return true;
        }
        return false;
}

struct str http_header(const struct http_request *r, const char *name)
{
        return http_head_field(&r->head, name);
}

void http_limit_body(struct http_request *r, size_t bytes)
{
        r->body_max = bytes;
}

struct str http_body(const struct http_request *r)
{
        return buf_view(&r->body);
}

bool http_body_hold(struct http_request *r, struct str holder)
{
        size_t units = r->body_units;

        if (!r->bodies)
                return true;
        for (; r->body_units; r->body_units--)
                share_give(r->bodies, str_of(r->body_holder));
        free(r->body_holder);
        r->body_holder = str_dupz(holder);
        return body_has_room(r, units * BODY_UNIT);
}

bool http_body_grow(struct http_request *r, size_t size)
{
        size_t before = r->body_units;

        if (!r->bodies || body_has_room(r, before * BODY_UNIT + size))
                return true;
        for (; r->body_units > before; r->body_units--)
                share_give(r->bodies, str_of(r->body_holder));
        return false;
}

void http_body_shrink(struct http_request *r, size_t size)
{
        for (size_t units = size / BODY_UNIT; r->bodies && units && r->body_units; units--, r->body_units--)
                share_give(r->bodies, str_of(r->body_holder));
}

int http_peer_uid(const struct http_request *r, uid_t *ret, pid_t *ret_pid)
{
        return r->conn ? stream_peer_uid(r->conn->stream, ret, ret_pid) : -ENOTSUP;
}

int http_peer_pidfd(const struct http_request *r)
{
        return r->conn ? stream_peer_pidfd(r->conn->stream) : -ENOTSUP;
}

struct str http_peer_holder(const struct http_request *r)
{
        return r->conn ? str_of(r->conn->place.holder) : STR_NONE;
}

unsigned http_peer_note(const struct http_request *r)
{
        return r->conn ? r->conn->note : 0;
}

void http_set_peer_note(struct http_request *r, unsigned note)
{
        if (r->conn)
                r->conn->note = note;
}

void http_trust(struct http_request *r)
{
        if (r->conn)
                conn_trust(r->conn);
}

void http_on_close(struct http_request *r, void (*fn)(void *arg, struct http_request *r), void *arg)
{
        r->on_close = fn;
        r->on_close_arg = arg;
}

/* ---- replies. To a request whose client has disconnected they send nothing; the last call frees it. */

static const struct {
        int status;
        const char *text;
} reasons[] = {
        {100, "Continue"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
};

static const char *reason_of(int status)
{
        for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
                if (reasons[i].status == status)
                        return reasons[i].text;
        return "Status";
}

/* RFC 9110 6.6.1; formatted once a second. */
static const char *date_now(void)
{
        static _Thread_local char text[40];
        static _Thread_local int64_t made;
        int64_t now = clock_wall_ms() / 1000;
        time_t t = now;
        struct tm tm;

        if (now != made) {
                gmtime_r(&t, &tm);
                strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
                made = now;
        }
        return text;
}

static bool body_allowed(int status)
{
        return status >= 200 && status != 204 && status != 304;
}

void http_add_header(struct http_request *r, const char *name, const char *value)
{
        assert(r->magic == HTTP_REQUEST_MAGIC && r->reply == REPLY_NONE);
        assert(!strpbrk(name, "\r\n: "));
        buf_printf(&r->fields, "%s: ", name);
        for (; *value; value++)
                buf_char(&r->fields,
                         (unsigned char)*value < ' ' ? ' ' : *value); /* prevents a second header field */
        buf_addz(&r->fields, "\r\n");
}

/* length NULL: unknown. */
static void reply_head(struct http_request *r, int status, const char *content_type, const size_t *length,
                       struct buf *out)
{
        bool body = body_allowed(status);

        buf_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, reason_of(status), date_now());
        if (body)
                buf_printf(out, "Content-Type: %s\r\n", content_type ? content_type : "application/json");
        if (body && length)
                buf_printf(out, "Content-Length: %zu\r\n", *length);
        else if (body && !r->head.old)
                buf_addz(out, "Transfer-Encoding: chunked\r\n");
        if (r->close)
                buf_addz(out, "Connection: close\r\n");
        else if (r->head.old)
                buf_addz(out, "Connection: keep-alive\r\n");
        buf_str(out, buf_view(&r->fields));
        buf_addz(out, "\r\n");
}

/* Closes the connection after the reply if the body was not read to its end, or if the peer is a stranger,
 * which may send only one request. */
static void reply_decide_close(struct http_request *r)
{
        if (r->conn && (r->body_state != BODY_READ || !conn_known(r->conn)))
                r->close = true;
}

static void reply_over(struct http_request *r)
{
        struct http_conn *c = r->conn;
        bool close = r->close;

        r->reply = REPLY_DONE;
        request_free(r);
        if (c)
                conn_next(c, close);
}

void http_reply_as_asked(struct http_request *r)
{
        r->one_chunk = r->head.chunked && r->head.method != HTTP_HEAD;
}

void http_reply(struct http_request *r, int status, const char *content_type, struct buf *body)
{
        BUF_CLEANUP struct buf out = {0};
        size_t n = body ? body->n : 0;
        bool chunk = r->one_chunk && n > 0 && body_allowed(status);

        assert(r->magic == HTTP_REQUEST_MAGIC && r->reply == REPLY_NONE);
        reply_decide_close(r);
        if (r->conn) {
                reply_head(r, status, content_type, chunk ? NULL : &n, &out);
                if (chunk)
                        buf_printf(&out, "%zx\r\n", n);
                if (n && n < 16384 && body_allowed(status) && r->head.method != HTTP_HEAD) {
                        buf_add(&out, body->p, n);
                        n = 0;
                }
                conn_send(r->conn, out.p, out.n);
                if (n && body_allowed(status) && r->head.method != HTTP_HEAD)
                        conn_send(r->conn, body->p, n);
                if (chunk)
                        conn_send(r->conn, "\r\n0\r\n\r\n", 7);
        }
        if (body)
                buf_reset(body);
        reply_over(r);
}

void http_reply_start(struct http_request *r, int status, const char *content_type,
                      void (*drained)(void *arg, struct http_request *r), void *arg)
{
        BUF_CLEANUP struct buf out = {0};

        assert(r->magic == HTTP_REQUEST_MAGIC && r->reply == REPLY_NONE && body_allowed(status));
        r->reply = REPLY_CHUNKS;
        r->drained = drained;
        r->drained_arg = arg;
        r->raw = r->head.old || r->head.method == HTTP_HEAD;
        reply_decide_close(r);
        if (r->head.old)
                r->close = true; /* the end of the connection is the end of the reply */
        if (!r->conn) {
                orphan_drained_soon(r);
                return;
        }
        reply_head(r, status, content_type, NULL, &out);
        conn_send(r->conn, out.p, out.n);
}

void http_reply_chunk(struct http_request *r, struct buf *chunk)
{
        char size[24];
        int n;

        assert(r->magic == HTTP_REQUEST_MAGIC && r->reply == REPLY_CHUNKS);
        if (r->conn && chunk->n && r->head.method != HTTP_HEAD) {
                n = snprintf(size, sizeof(size), "%zx\r\n", chunk->n);
                if (!r->raw)
                        conn_send(r->conn, size, n);
                conn_send(r->conn, chunk->p, chunk->n);
                if (!r->raw)
                        conn_send(r->conn, "\r\n", 2);
        }
        if (!r->conn)
                orphan_drained_soon(r);
        buf_reset(chunk);
}

size_t http_reply_pending(const struct http_request *r)
{
        return r->conn ? stream_pending(conn_stream(r->conn)) : 0;
}

void http_reply_end(struct http_request *r)
{
        assert(r->magic == HTTP_REQUEST_MAGIC && r->reply == REPLY_CHUNKS);
        if (r->conn && !r->raw)
                conn_send(r->conn, "0\r\n\r\n", 5);
        reply_over(r);
}
