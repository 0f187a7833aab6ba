#include "ev/http_client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "ev/http_parse.h"
#include "ev/stream.h"

#define CONNECTIONS 8
#define TIMEOUT_MS  60000
#define HEAD_MAX    65536

struct connection {
        struct http_client *client;
        struct connection *next;
        struct stream *stream;
        struct timer *deadline;
        struct http_call *call; /* under way; NULL: idle */
        bool ready, used;       /* used: it has answered before */
        /* the answer */
        bool headed, chunked, until_close, close_after;
        int status;
        size_t left;
        struct http_chunks chunks;
        struct buf body;
        size_t counted; /* of the body, in the client's budget */
};

struct http_call {
        struct http_client *client;
        struct http_call *next;
        struct connection *on; /* NULL: it waits in line */
        struct buf text;       /* what is sent */
        int64_t timeout_ms;
        int fd;
        bool limited;
        uint64_t limit;    /* bytes that may still come */
        bool to_fd, again; /* again: it may not be made once more */
        bool once;
        http_part_fn *part;
        http_call_fn *fn;
        void *arg;
};

struct http_client {
        struct loop *loop;
        char *address, *bearer;
        struct tls_context *tls;
        int64_t handshake_ms;
        struct http_budget own, *budget;
        unsigned max, count;
        struct connection *connections;
        struct http_call *first, **last; /* in line */
        struct timer *kick;
};

static void kick(void *arg);

struct http_client *http_client_new(struct loop *l, const struct http_client_config *config)
{
        struct http_client *c = mem_new(struct http_client);
        c->loop = l;
        c->address = mem_dupz(config->address);
        c->bearer = config->bearer ? mem_dupz(config->bearer) : NULL;
        c->tls = config->tls;
        c->handshake_ms = config->handshake_ms;
        c->budget = config->budget ? config->budget : &c->own;
        c->max = config->connections ? config->connections : CONNECTIONS;
        c->last = &c->first;
        c->kick = timer_new(l, kick, c);
        return c;
}

void http_client_bearer(struct http_client *c, const char *bearer)
{
        free(c->bearer);
        c->bearer = bearer ? mem_dupz(bearer) : NULL;
}

static void call_free(struct http_call *call)
{
        buf_deinit(&call->text);
        free(call);
}

static void count_body(struct connection *k, size_t bytes)
{
        struct http_budget *b = k->client->budget;
        b->used = b->used - k->counted + bytes;
        k->counted = bytes;
}

static void connection_free(struct connection *k)
{
        count_body(k, 0);
        struct connection **at = &k->client->connections;
        while (*at != k)
                at = &(*at)->next;
        *at = k->next;
        k->client->count--;
        stream_free(k->stream);
        timer_free(k->deadline);
        buf_deinit(&k->body);
        free(k);
}

void http_client_free(struct http_client *c)
{
        if (!c)
                return;
        while (c->connections) {
                if (c->connections->call)
                        call_free(c->connections->call);
                connection_free(c->connections);
        }
        for (struct http_call *call = c->first, *next; call; call = next) {
                next = call->next;
                call_free(call);
        }
        timer_free(c->kick);
        free(c->address);
        free(c->bearer);
        free(c);
}

/* ---- calls */

static void enqueue(struct http_client *c, struct http_call *call)
{
        call->on = NULL;
        call->next = NULL;
        *c->last = call;
        c->last = &call->next;
        timer_start(c->kick, 0);
}

struct http_call *http_client_call(struct http_client *c, const struct http_call_spec *spec, http_call_fn *fn,
                                   void *arg)
{
        struct http_call *call = mem_new(struct http_call);
        call->client = c;
        call->fn = fn;
        call->arg = arg;
        call->fd = spec->fd;
        call->to_fd = spec->to_fd;
        call->limited = spec->limited;
        call->limit = spec->limit;
        call->again = call->once = spec->once;
        call->part = spec->part;
        call->timeout_ms = spec->timeout_ms ? spec->timeout_ms : TIMEOUT_MS;
        buf_printf(&call->text, "%s %s HTTP/1.1\r\nHost: localhost\r\n", spec->method, spec->path);
        if (c->bearer)
                buf_printf(&call->text, "Authorization: Bearer %s\r\n", c->bearer);
        if (spec->fields)
                buf_addz(&call->text, spec->fields);
        if (spec->body.n || strcmp(spec->method, "GET") != 0)
                buf_printf(&call->text, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                           spec->type ? spec->type : "application/json", spec->body.n);
        buf_addz(&call->text, "\r\n");
        buf_str(&call->text, spec->body);
        enqueue(c, call);
        return call;
}

void http_call_cancel(struct http_call *call)
{
        if (!call)
                return;
        struct http_client *c = call->client;
        if (call->on) {
                connection_free(call->on); /* the answer would come to nobody */
        } else {
                struct http_call **at = &c->first;
                while (*at != call)
                        at = &(*at)->next;
                *at = call->next;
                if (!*at)
                        c->last = at;
        }
        call_free(call);
        timer_start(c->kick, 0);
}

/* ---- answers */

/* The call is over; the connection is idle, or gone (k NULL). */
static void answer(struct http_call *call, int status, struct str body, const struct err *err)
{
        struct http_client *c = call->client;
        timer_start(c->kick, 0);
        call->fn(call->arg, status, body, err);
        call_free(call);
}

static void fail(struct connection *k, const struct err *why)
{
        struct http_call *call = k->call;
        bool again = call && k->used && !k->headed && !call->again;
        struct http_client *c = k->client;
        int status = call && call->to_fd && k->status < 0 ? -1 : 0;
        struct err err = *why;
        if (!call && !k->ready && c->first) { /* nobody could be reached: the first in line is told */
                call = c->first;
                c->first = call->next;
                if (!c->first)
                        c->last = &c->first;
                status = call->once ? HTTP_NOT_SENT : 0;
        }
        connection_free(k);
        timer_start(c->kick, 0);
        if (again) {
                call->again = true;
                enqueue(c, call);
        } else if (call) {
                answer(call, status, STR(""), &err);
        }
}

static void finish(struct connection *k)
{
        static const struct err none;
        struct http_call *call = k->call;
        struct buf body = k->body;
        int status = k->status;
        k->body = (struct buf){0};
        count_body(k, 0);
        k->call = NULL;
        k->used = true;
        timer_stop(k->deadline);
        if (k->close_after)
                connection_free(k);
        answer(call, status, buf_view(&body), &none);
        buf_deinit(&body);
}

static bool field(struct str head, const char *name, struct str *ret)
{
        struct str line, key;
        while (head.n && str_cut(&head, '\n', &line)) {
                if (!str_cut(&line, ':', &key) || !str_ieqz(key, name))
                        continue;
                *ret = str_trim(line);
                return true;
        }
        return false;
}

/* 0; 1: more of it is to come; -1: it is not HTTP. */
static int read_one_head(struct connection *k, struct buf *in)
{
        ptrdiff_t end = str_search(buf_view(in), STR("\r\n\r\n"));
        if (end < 0)
                return in->n > HEAD_MAX ? -1 : 1;
        struct str head = str_head(buf_view(in), (size_t)end + 2), value;
        uint64_t n;
        if (!str_starts(head, STR("HTTP/1.")) || head.n < 12 ||
            str_to_u64(str_head(str_skip(head, 9), 3), &n) != 0)
                return -1;
        k->status = (int)n;
        k->chunked = field(head, "Transfer-Encoding", &value) && str_ieqz(value, "chunked");
        k->close_after = field(head, "Connection", &value) && str_ieqz(value, "close");
        k->until_close = false;
        k->left = 0;
        k->chunks = (struct http_chunks){0};
        if (k->chunked) {
                /* its own length */
        } else if (field(head, "Content-Length", &value)) {
                if (str_to_u64(value, &n) != 0)
                        return -1;
                k->left = (size_t)n;
        } else if (k->status != 204 && k->status != 304) {
                k->until_close = k->close_after = true;
        }
        buf_consume(in, (size_t)end + 4);
        k->headed = true;
        return 0;
}

/* Behind 100-continue and the like, of which there may be any number, the answer follows. */
static int read_head(struct connection *k, struct buf *in)
{
        int r;
        do {
                k->headed = false;
                r = read_one_head(k, in);
        } while (r == 0 && k->status / 100 == 1);
        return r;
}

/* What has come of the body goes where it belongs. False: it cannot. */
static bool keep_body(struct connection *k, struct err *err)
{
        if (k->call->part) {
                k->call->part(k->call->arg, k->status, buf_view(&k->body));
                buf_reset(&k->body);
                return true;
        }
        if (k->call->to_fd && k->status / 100 == 2) {
                if (k->call->limited && k->body.n > k->call->limit) {
                        k->status = -1;
                        err_set(err, -EFBIG, "it is larger than was said");
                        return false;
                }
                k->call->limit -= k->call->limited ? k->body.n : 0;
                int r = fs_write_all(k->call->fd, k->body.p, k->body.n);
                buf_reset(&k->body);
                if (r < 0) {
                        k->status = -1;
                        err_set(err, r, "cannot write: %s", strerror(-r));
                        return false;
                }
                return true;
        }
        if (k->body.n > HTTP_ANSWER_MAX) {
                err_set(err, -E2BIG, "the answer is larger than %u MiB", HTTP_ANSWER_MAX >> 20);
                return false;
        }
        count_body(k, k->body.n);
        if (k->client->budget->used > HTTP_BUDGET) {
                err_set(err, -E2BIG, "answers of more than %u MiB come at the same time", HTTP_BUDGET >> 20);
                return false;
        }
        return true;
}

static bool read_body(struct connection *k, struct buf *in, bool *ret_done, struct err *err)
{
        size_t used = in->n;
        if (k->chunked) {
                if (http_chunks_take(&k->chunks, buf_view(in), &used, &k->body, err) != 0)
                        return false;
                *ret_done = k->chunks.state == CHUNK_DONE;
        } else {
                if (!k->until_close && used > k->left)
                        used = k->left;
                buf_add(&k->body, in->p, used);
                if (!k->until_close)
                        k->left -= used;
                *ret_done = !k->until_close && k->left == 0;
        }
        buf_consume(in, used);
        return keep_body(k, err);
}

static void on_data(void *arg, struct stream *s, struct buf *in)
{
        struct connection *k = arg;
        struct err err = {"what came is not HTTP"};
        bool done = false;
        (void)s;
        if (!k->call) { /* nothing was asked */
                connection_free(k);
                return;
        }
        if (!k->headed) {
                int r = read_head(k, in);
                if (r > 0)
                        return;
                if (r < 0) {
                        fail(k, &err);
                        return;
                }
        }
        if (!read_body(k, in, &done, &err))
                fail(k, &err);
        else if (done)
                finish(k);
}

static void on_closed(void *arg, struct stream *s, const struct err *why)
{
        struct connection *k = arg;
        (void)s;
        if (k->call && k->headed && k->until_close)
                finish(k);
        else
                fail(k, why);
}

static void on_late(void *arg)
{
        struct connection *k = arg;
        struct err err;
        err_set(&err, -ETIMEDOUT, "it did not answer in time");
        k->used = false; /* not again */
        fail(k, &err);
}

/* ---- connections */

static void begin(struct connection *k, struct http_call *call)
{
        k->call = call;
        k->headed = false;
        k->status = 0;
        call->on = k;
        timer_start(k->deadline, call->timeout_ms);
        stream_write(k->stream, call->text.p, call->text.n);
}

static void on_ready(void *arg, struct stream *s)
{
        struct connection *k = arg;
        (void)s;
        k->ready = true;
        timer_start(k->client->kick, 0);
}

/* Opens one that is ready when it is; the call that it is for stays in line meanwhile, at the front. */
static struct connection *dial(struct http_client *c)
{
        static const struct stream_ops ops = {on_ready, on_data, NULL, on_closed};
        const struct stream_limits limits = {.handshake_ms = c->handshake_ms};
        struct connection *k = mem_new(struct connection);
        k->client = c;
        k->next = c->connections;
        c->connections = k;
        c->count++;
        k->deadline = timer_new(c->loop, on_late, k);
        k->stream = stream_connect(c->loop, c->address, c->tls, &limits, &ops, k);
        return k;
}

static void kick(void *arg)
{
        struct http_client *c = arg;
        unsigned dialling = 0, waiting = 0;
        for (struct connection *k = c->connections; k && c->first; k = k->next) {
                dialling += !k->ready && !k->call;
                if (!k->ready || k->call)
                        continue;
                struct http_call *call = c->first;
                c->first = call->next;
                if (!c->first)
                        c->last = &c->first;
                begin(k, call);
        }
        for (struct http_call *call = c->first; call; call = call->next)
                waiting++;
        while (dialling < waiting && c->count < c->max) {
                dial(c);
                dialling++;
        }
}
