/* The reader keeps one buffer `in` of what has arrived; the head is cut from its front, then the body goes to
 * a sink as it comes, by Content-Length, in chunks, or until the connection ends. After a whole answer what
 * is left in `in` would be garbage, and the connection is not used again. */
#include "cli/client/http.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/format/hex.h"
#include "base/mem.h"
#include "base/system/clock.h"

struct http {
        char *path, *token, *owner; /* NULL: none */
        int fd;
        struct buf in;
        int64_t deadline_ms;
};

struct head {
        int status;
        int64_t length; /* -1: not told */
        bool chunked, close;
        int64_t standby_ms;
};

void http_answer_deinit(struct http_answer *a)
{
        buf_deinit(&a->body);
}

struct http *http_new(const char *socket_path)
{
        struct http *h = mem_new(struct http);

        h->path = mem_dupz(socket_path);
        h->fd = -1;
        return h;
}

void http_set_token(struct http *h, const char *token)
{
        free(h->token);
        h->token = mem_dupz(token);
}

void http_set_owner(struct http *h, const char *owner)
{
        free(h->owner);
        h->owner = mem_dupz(owner);
}

static void drop_connection(struct http *h)
{
        if (h->fd >= 0)
                close(h->fd);
        h->fd = -1;
        buf_reset(&h->in);
}

void http_free(struct http *h)
{
        if (!h)
                return;
        drop_connection(h);
        buf_deinit(&h->in);
        free(h->path);
        free(h->token);
        free(h->owner);
        free(h);
}

static int wait_for(struct http *h, short events, struct err *err)
{
        struct pollfd p = {.fd = h->fd, .events = events};
        int64_t left = h->deadline_ms - clock_mono_ns() / 1000000;
        int n = poll(&p, 1, left > 0 ? (int)left : 0);

        if (n < 0 && errno != EINTR)
                return err_set(err, -errno, "poll: %s", strerror(errno));
        if (n == 0)
                return err_set(err, HTTP_TIMEOUT, "the server didn't answer in time");
        return 0;
}

static int dial(struct http *h, struct err *err)
{
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        size_t n = strlen(h->path);

        if (n >= sizeof(a.sun_path))
                return err_set(err, HTTP_NO_SERVER, "the socket's path is too long: %s", h->path);
        memcpy(a.sun_path, h->path, n + 1);
        h->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (h->fd < 0)
                return err_set(err, -errno, "socket: %s", strerror(errno));
        /* A unix socket connects at once or waits for room in the server's backlog; a signal may break the
         * wait. */
        while (connect(h->fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
                int e = errno;

                if (e == EINTR)
                        continue;
                drop_connection(h);
                if (e == EACCES)
                        return err_set(err, HTTP_DENIED, "you may not open %s: %s", h->path, strerror(e));
                return err_set(err, HTTP_NO_SERVER, "nothing answers at %s: %s", h->path, strerror(e));
        }
        return 0;
}

static int send_all(struct http *h, struct str bytes, struct err *err)
{
        while (bytes.n > 0) {
                ssize_t n = send(h->fd, bytes.p, bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);
                int rc;

                if (n >= 0) {
                        bytes = str_skip(bytes, (size_t)n);
                        continue;
                }
                if (errno == EAGAIN) {
                        rc = wait_for(h, POLLOUT, err);
                        if (rc != 0)
                                return rc;
                } else if (errno != EINTR) {
                        return err_set(err, HTTP_LOST, "the connection to the server was lost: %s",
                                       strerror(errno));
                }
        }
        return 0;
}

/* Reads some bytes more into h->in. HTTP_LOST at the end of the stream. */
static int more(struct http *h, struct err *err)
{
        for (;;) {
                char *room = buf_room(&h->in, 65536);
                ssize_t n = recv(h->fd, room, 65536, MSG_DONTWAIT);
                int rc;

                if (n > 0) {
                        h->in.n += (size_t)n;
                        return 0;
                }
                if (n == 0)
                        return err_set(err, HTTP_LOST,
                                       "the server closed the connection before it had answered");
                if (errno == EAGAIN) {
                        rc = wait_for(h, POLLIN, err);
                        if (rc != 0)
                                return rc;
                } else if (errno != EINTR) {
                        return err_set(err, HTTP_LOST, "the connection to the server was lost: %s",
                                       strerror(errno));
                }
        }
}

/* Cuts a line, without its end, from the front of *text. */
static bool http_take_line(struct str *text, struct str *ret)
{
        ptrdiff_t at = str_find(*text, '\n');

        if (at < 0)
                return false;
        *ret = str_head(*text, (size_t)at);
        *text = str_skip(*text, (size_t)at + 1);
        if (ret->n && ret->p[ret->n - 1] == '\r')
                ret->n--;
        return true;
}

static int parse_head(struct str text, struct head *ret, struct err *err)
{
        struct str line, name, value;
        int64_t status;

        *ret = (struct head){.length = -1, .standby_ms = -1};
        if (!http_take_line(&text, &line) || !str_starts(line, STR("HTTP/1.")) || line.n < 12 ||
            str_to_i64(str_head(str_skip(line, 9), 3), &status) != 0)
                return err_set(err, HTTP_GARBLED, "the answer is not from a Drover server");
        ret->status = (int)status;
        ret->close = str_starts(line, STR("HTTP/1.0"));
        while (http_take_line(&text, &line) && line.n) {
                value = line;
                str_cut(&value, ':', &name);
                value = str_trim(value);
                if (str_ieqz(name, "Content-Length") &&
                    (str_to_i64(value, &ret->length) != 0 || ret->length < 0))
                        return err_set(err, HTTP_GARBLED, "the server's answer has an invalid length");
                if (str_ieqz(name, "Transfer-Encoding"))
                        ret->chunked = str_ieqz(value, "chunked");
                if (str_ieqz(name, "Drover-Standby") && str_to_i64(value, &ret->standby_ms) != 0)
                        return err_set(err, HTTP_GARBLED, "the server's answer has an invalid age");
                if (str_ieqz(name, "Connection"))
                        ret->close = str_ieqz(value, "close");
        }
        if (ret->status == 204 || ret->status == 304)
                ret->length = 0;
        return 0;
}

/* Reads up to the blank line and takes the head from the front of h->in. */
static int read_head(struct http *h, struct head *ret, struct err *err)
{
        size_t seen = 0;
        int rc;

        for (;;) {
                struct str view = buf_view(&h->in);
                ptrdiff_t at = str_search(str_skip(view, seen), STR("\r\n\r\n"));

                if (at >= 0) {
                        size_t n = seen + (size_t)at + 4;

                        rc = parse_head(str_head(view, n), ret, err);
                        buf_consume(&h->in, n);
                        return rc;
                }
                if (view.n > HTTP_HEAD_MAX)
                        return err_set(err, HTTP_GARBLED, "the answer is not from a Drover server");
                seen = view.n > 3 ? view.n - 3 : 0;
                rc = more(h, err);
                if (rc != 0)
                        return rc;
        }
}

static int sink(const struct http_request *r, struct http_answer *a, struct str bytes, struct err *err)
{
        if (r->fd < 0 || a->status / 100 != 2) {
                buf_str(&a->body, bytes);
                if (a->body.overflow)
                        return err_set(err, HTTP_GARBLED, "the server's answer is over %u bytes",
                                       HTTP_BODY_MAX);
                return 0;
        }
        while (bytes.n > 0) {
                ssize_t n = write(r->fd, bytes.p, bytes.n);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return err_set(err, HTTP_LOCAL, "%s", strerror(errno));
                bytes = str_skip(bytes, (size_t)n);
                a->written += (uint64_t)n;
        }
        return 0;
}

/* Moves `length` bytes from the connection to the sink. */
static int read_exact(struct http *h, const struct http_request *r, struct http_answer *a, uint64_t length,
                      struct err *err)
{
        while (length > 0) {
                struct str bytes = str_head(buf_view(&h->in), length < SIZE_MAX ? (size_t)length : SIZE_MAX);
                int rc = bytes.n ? sink(r, a, bytes, err) : more(h, err);

                if (rc != 0)
                        return rc;
                length -= bytes.n;
                buf_consume(&h->in, bytes.n);
        }
        return 0;
}

static int read_line(struct http *h, struct buf *line, struct err *err)
{
        struct str rest, text;
        int rc;

        for (;;) {
                rest = buf_view(&h->in);
                if (http_take_line(&rest, &text)) {
                        buf_reset(line);
                        buf_str(line, text);
                        buf_consume(&h->in, h->in.n - rest.n);
                        return 0;
                }
                if (h->in.n > HTTP_HEAD_MAX)
                        return err_set(err, HTTP_GARBLED, "the server's answer has a line without an end");
                rc = more(h, err);
                if (rc != 0)
                        return rc;
        }
}

static int chunk_size(struct str line, uint64_t *ret)
{
        uint64_t v = 0;
        size_t i = 0;

        for (; i < line.n && i < 15; i++) {
                int d = hex_digit(line.p[i]);

                if (d < 0)
                        break;
                v = v * 16 + (uint64_t)d;
        }
        *ret = v;
        return i > 0 && (i == line.n || line.p[i] == ';' || line.p[i] == ' ') ? 0 : -EINVAL;
}

static int read_chunks(struct http *h, const struct http_request *r, struct http_answer *a, struct err *err)
{
        struct buf line BUF_CLEANUP = {0};
        uint64_t n;
        int rc;

        for (;;) {
                rc = read_line(h, &line, err);
                if (rc == 0 && chunk_size(buf_view(&line), &n) != 0)
                        rc = err_set(err, HTTP_GARBLED, "the server's answer has invalid chunks");
                if (rc == 0 && n > 0) {
                        rc = read_exact(h, r, a, n, err);
                        if (rc == 0)
                                rc = read_line(h, &line, err);
                } else if (rc == 0) {
                        do
                                rc = read_line(h, &line, err);
                        while (rc == 0 && line.n > 0);
                        return rc;
                }
                if (rc != 0)
                        return rc;
        }
}

static int read_to_end(struct http *h, const struct http_request *r, struct http_answer *a, struct err *err)
{
        int rc;

        for (;;) {
                rc = sink(r, a, buf_view(&h->in), err);
                buf_reset(&h->in);
                if (rc == 0)
                        rc = more(h, err);
                if (rc == HTTP_LOST)
                        return 0;
                if (rc != 0)
                        return rc;
        }
}

static int exchange(struct http *h, const struct http_request *r, struct str request, struct http_answer *a,
                    struct err *err)
{
        struct head head;
        struct err ignored;
        int rc, sent;

        sent = send_all(h, request, err);
        if (sent == 0)
                sent = send_all(h, r->body, err);
        /* A server that refuses a body answers before it has read it all: what it says is worth more. */
        if (sent != 0 && sent != HTTP_LOST)
                return sent;
        do
                rc = read_head(h, &head, sent ? &ignored : err);
        while (rc == 0 && head.status < 200);
        if (rc != 0)
                return sent ? sent : rc;
        a->status = head.status;
        a->standby_ms = head.standby_ms;
        if (head.chunked)
                rc = read_chunks(h, r, a, err);
        else if (head.length >= 0)
                rc = read_exact(h, r, a, (uint64_t)head.length, err);
        else
                rc = read_to_end(h, r, a, err);
        if (rc != 0 || sent != 0 || head.close || h->in.n || (!head.chunked && head.length < 0))
                drop_connection(h);
        return rc;
}

/* The server may have closed an idle connection: then it is readable (with nothing to read) before we send.
 */
static bool stale(struct http *h)
{
        struct pollfd p = {.fd = h->fd, .events = POLLIN};

        return poll(&p, 1, 0) != 0;
}

int http_call(struct http *h, const struct http_request *r, struct http_answer *ret, struct err *err)
{
        struct buf request BUF_CLEANUP = {0};
        int rc;

        *ret = (struct http_answer){.body.max = HTTP_BODY_MAX, .standby_ms = -1};
        h->deadline_ms = clock_mono_ns() / 1000000 + (r->timeout_ms ? r->timeout_ms : 60000);
        if (h->fd >= 0 && stale(h))
                drop_connection(h);
        if (h->fd < 0) {
                rc = dial(h, err);
                if (rc != 0)
                        return rc;
        }
        buf_printf(&request, "%s %s HTTP/1.1\r\nHost: drover\r\n", r->method, r->path);
        if (h->owner)
                buf_printf(&request, "Drover-Owner: %s\r\n", h->owner);
        if (h->token)
                buf_printf(&request, "Authorization: Bearer %s\r\n", h->token);
        if (r->body.n || strcmp(r->method, "GET") != 0)
                buf_printf(&request, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                           r->type ? r->type : "application/json", r->body.n);
        buf_addz(&request, "\r\n");
        rc = exchange(h, r, buf_view(&request), ret, err);
        if (rc != 0)
                drop_connection(h);
        return rc;
}
