/* Replies. To a request whose client went away all of these do nothing but, at the end, free it. */
#include <assert.h>
#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "ev/http_private.h"

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

/* RFC 9110 6.6.1; made once a second. */
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
                         (unsigned char)*value < ' ' ? ' ' : *value); /* no second field smuggled in */
        buf_addz(&r->fields, "\r\n");
}

/* length NULL: not known. */
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

/* Decides to close after the reply if the body was not read to its end, or the peer is a stranger, which has
 * one request. */
static void reply_decide_close(struct http_request *r)
{
        if (r->conn && (r->body_state != BODY_READ || !http_conn_known(r->conn)))
                r->close = true;
}

static void reply_over(struct http_request *r)
{
        struct http_conn *c = r->conn;
        bool close = r->close;

        r->reply = REPLY_DONE;
        http_request_free(r);
        if (c)
                http_conn_next(c, close);
}

void http_reply(struct http_request *r, int status, const char *content_type, struct buf *body)
{
        BUF_CLEANUP struct buf out = {0};
        size_t n = body ? body->n : 0;

        assert(r->magic == HTTP_REQUEST_MAGIC && r->reply == REPLY_NONE);
        reply_decide_close(r);
        if (r->conn) {
                reply_head(r, status, content_type, &n, &out);
                if (n && n < 16384 && body_allowed(status) && r->head.method != HTTP_HEAD) {
                        buf_add(&out, body->p, n);
                        n = 0;
                }
                http_conn_send(r->conn, out.p, out.n);
                if (n && body_allowed(status) && r->head.method != HTTP_HEAD)
                        http_conn_send(r->conn, body->p, n);
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
                http_orphan_drained(r);
                return;
        }
        reply_head(r, status, content_type, NULL, &out);
        http_conn_send(r->conn, out.p, out.n);
}

void http_reply_chunk(struct http_request *r, struct buf *chunk)
{
        char size[24];
        int n;

        assert(r->magic == HTTP_REQUEST_MAGIC && r->reply == REPLY_CHUNKS);
        if (r->conn && chunk->n && r->head.method != HTTP_HEAD) {
                n = snprintf(size, sizeof(size), "%zx\r\n", chunk->n);
                if (!r->raw)
                        http_conn_send(r->conn, size, n);
                http_conn_send(r->conn, chunk->p, chunk->n);
                if (!r->raw)
                        http_conn_send(r->conn, "\r\n", 2);
        }
        if (!r->conn)
                http_orphan_drained(r);
        buf_reset(chunk);
}

size_t http_reply_pending(const struct http_request *r)
{
        return r->conn ? stream_pending(http_conn_stream(r->conn)) : 0;
}

void http_reply_end(struct http_request *r)
{
        assert(r->magic == HTTP_REQUEST_MAGIC && r->reply == REPLY_CHUNKS);
        if (r->conn && !r->raw)
                http_conn_send(r->conn, "0\r\n\r\n", 5);
        reply_over(r);
}
