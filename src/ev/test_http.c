#include "ev/http.h"

#include <errno.h>

#include "ev/stream.h"
#include "ev/test_help.h"

#define BIG (100u << 20)

/* freed memory is to be used again, or the memory test would measure what the sanitizer keeps back */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
        return "quarantine_size_mb=4";
}

struct client {
        struct loop *loop;
        struct stream *s;
        struct buf got;
        size_t total; /* bytes that came; `got` keeps only the first 64 KiB */
        bool closed, slow;
        size_t want;
        struct buf *in;
        struct timer *sip;
};
struct world {
        struct loop *loop;
        char *folder;
        struct http_server *server;
        const char *address;
        struct client client;
        struct http_request *waiting;
        struct timer *later;
        int heads, handled, gone; /* heads that came; requests that are whole */
        size_t left, pending_max; /* of /big */
        struct buf seen;
};

/* ---- client */

static void client_sip(void *arg)
{
        struct client *c = arg;

        if (!c->s)
                return;
        if (c->in && c->in->n) {
                c->total += c->in->n;
                buf_consume(c->in, c->in->n);
                stream_resume(c->s);
        }
        timer_start(c->sip, 1);
}

static void client_data(void *arg, struct stream *s, struct buf *in)
{
        struct client *c = arg;

        (void)s;
        c->in = in;
        if (c->slow)
                return;
        if (c->got.n < 65536)
                buf_add(&c->got, in->p, in->n);
        c->total += in->n;
        buf_consume(in, in->n);
        if (c->want && c->total >= c->want)
                loop_stop(c->loop);
}

static void client_closed(void *arg, struct stream *s, const struct err *why)
{
        struct client *c = arg;

        (void)why;
        if (c->in)
                c->total += c->in->n;
        c->closed = true;
        c->s = NULL;
        stream_free(s);
        loop_stop(c->loop);
}

static const struct stream_ops client_ops = {NULL, client_data, NULL, client_closed};

static void client_open(struct world *w, struct client *c, struct tls_context *tls, size_t read_max)
{
        struct stream_limits limits = {.read_max = read_max};

        buf_reset(&c->got);
        c->loop = w->loop;
        c->closed = false;
        c->total = 0;
        c->in = NULL;
        c->s = stream_connect(w->loop, w->address, tls, &limits, &client_ops, c);
}

/* Sends the text and gives what came until the server closed. */
static const char *ask(struct world *w, const char *text)
{
        client_open(w, &w->client, NULL, 0);
        stream_write(w->client.s, text, strlen(text));
        while (!w->client.closed)
                help_run(w->loop);
        return buf_z(&w->client.got);
}

static size_t count(const char *text, const char *what)
{
        size_t n = 0;

        for (; (text = strstr(text, what)); text++)
                n++;
        return n;
}

/* ---- handler */

static void big_drained(void *arg, struct http_request *r)
{
        struct world *w = arg;
        struct buf chunk = {0};
        size_t n = w->left < 256 << 10 ? w->left : 256 << 10;

        if (http_reply_pending(r) > w->pending_max)
                w->pending_max = http_reply_pending(r);
        if (!n) {
                http_reply_end(r);
                return;
        }
        memset(buf_room(&chunk, n), 'x', n);
        chunk.n = n;
        w->left -= n;
        http_reply_chunk(r, &chunk);
        assert_int_equal(chunk.n, 0);
        buf_deinit(&chunk);
}

static void went(void *arg, struct http_request *r)
{
        struct world *w = arg;

        assert_ptr_equal(r, w->waiting);
        w->waiting = NULL;
        w->gone++;
        loop_stop(w->loop);
}

static void answer_later(void *arg)
{
        struct world *w = arg;
        struct buf body = {0};

        buf_addz(&body, "late");
        http_reply(w->waiting, 200, "text/plain", &body);
        buf_deinit(&body);
        w->waiting = NULL;
}

static void handle_whole(void *arg, struct http_request *r)
{
        struct world *w = arg;
        struct str path = http_path(r), q;
        BUF_CLEANUP struct buf body = {0};

        w->handled++;
        if (str_eqz(path, "/hello")) {
                buf_addz(&body, "hi");
                http_add_header(r, "X-Evil", "a\r\nX-Second: b");
                http_reply(r, 200, "text/plain", &body);
        } else if (str_eqz(path, "/echo")) {
                buf_str(&body, http_body(r));
                http_reply(r, 200, NULL, &body);
        } else if (str_eqz(path, "/grow")) {
                http_reply(r, http_body_grow(r, (size_t)(http_body(r).p[0] - '0') << 20) ? 200 : 503, NULL,
                           NULL);
        } else if (str_eqz(path, "/again")) { /* grows and shrinks five times */
                bool room = true;

                for (int i = 0; i < 5 && room; i++) {
                        room = http_body_grow(r, 5 << 20);
                        assert_false(http_body_grow(r, 2 << 20)); /* which counts for nothing */
                        http_body_shrink(r, 5 << 20);
                }
                http_reply(r, room ? 200 : 503, NULL, NULL);
        } else if (str_eqz(path, "/hold")) {
                assert_true(http_body_hold(r, STR("another")));
                w->waiting = r;
        } else if (str_eqz(path, "/query me")) {
                buf_printf(&body, "%d/", http_query(r, "none", &q));
                if (http_query(r, "a b", &q))
                        buf_printf(&body, STR_FMT, STR_ARG(q));
                buf_printf(&body, "/" STR_FMT "/" STR_FMT, STR_ARG(http_header(r, "x-one")),
                           STR_ARG(http_header(r, "absent")));
                http_reply(r, 200, NULL, &body);
        } else if (str_eqz(path, "/none")) {
                http_reply(r, 204, NULL, NULL);
        } else if (str_eqz(path, "/wait") || str_eqz(path, "/orphan")) {
                w->waiting = r;
                if (str_eqz(path, "/wait"))
                        http_on_close(r, went, w);
        } else if (str_eqz(path, "/later")) {
                w->waiting = r;
                timer_start(w->later, 20);
        } else if (str_eqz(path, "/pieces")) {
                http_reply_start(r, 200, "text/plain", NULL, NULL);
                for (int i = 0; i < 3; i++) {
                        buf_printf(&body, "piece%d;", i);
                        http_reply_chunk(r, &body);
                }
                http_reply_end(r);
        } else if (str_eqz(path, "/big")) {
                w->left = BIG;
                http_reply_start(r, 200, "text/plain", big_drained, w);
        } else if (str_eqz(path, "/large")) {
                memset(buf_room(&body, 1 << 20), 'y', 1 << 20);
                body.n = 1 << 20;
                http_reply(r, 200, "text/plain", &body);
        } else if (str_eqz(path, "/who")) {
                uid_t uid = 12345;
                int code = http_peer_uid(r, &uid, NULL);

                buf_printf(&body, "%d %d", code, (int)uid);
                http_reply(r, 200, NULL, &body);
        } else {
                buf_addz(&body, "{}");
                http_reply(r, 404, NULL, &body);
        }
}

static void handle(void *arg, struct http_request *r)
{
        struct world *w = arg;
        BUF_CLEANUP struct buf body = {0};

        w->heads++;
        if (str_eqz(http_path(r), "/forbidden"))
                http_reply(r, 401, NULL, &body);
        else if (str_eqz(http_header(r, "Authorization"), "none"))
                w->waiting = r;
        else
                http_read_body(r, STR("somebody"), handle_whole, w);
}

static int setup(void **state)
{
        struct world *w = mem_new(struct world);
        BUF_CLEANUP struct buf address = {0};
        struct err err;

        w->loop = loop_new();
        w->folder = help_folder();
        w->server = http_server_new(w->loop, handle, w);
        w->later = timer_new(w->loop, answer_later, w);
        buf_printf(&address, "unix:%s/s", w->folder);
        assert_int_equal(http_server_listen(w->server, buf_z(&address), 0600, NULL, &w->address, &err), 0);
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        stream_free(w->client.s);
        timer_free(w->client.sip);
        timer_free(w->later);
        http_server_free(w->server);
        loop_free(w->loop);
        buf_deinit(&w->client.got);
        buf_deinit(&w->seen);
        help_folder_remove(w->folder);
        free(w);
        return 0;
}

#define GET(path)      "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define GET_LAST(path) "GET " path " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

static void test_one(void **state)
{
        const char *got = ask(*state, GET_LAST("/hello"));

        assert_true(strncmp(got, "HTTP/1.1 200 OK\r\n", 17) == 0);
        assert_non_null(strstr(got, "\r\nContent-Length: 2\r\n"));
        assert_non_null(strstr(got, "\r\nContent-Type: text/plain\r\n"));
        assert_non_null(strstr(got, "\r\nConnection: close\r\n"));
        assert_non_null(strstr(got, "\r\nDate: "));
        assert_string_equal(strstr(got, "\r\n\r\n"), "\r\n\r\nhi");
        assert_null(strstr(got, "\r\nX-Second")); /* a header's value cannot make another header */
}

static void test_pipelined_in_order(void **state)
{
        struct world *w = *state;
        const char *got =
                ask(w, "\r\n" GET("/hello") GET("/later") GET("/none") GET("/nowhere") GET_LAST("/pieces"));
        const char *a = strstr(got, "hi"), *b = strstr(got, "late"), *c = strstr(got, " 204 "),
                   *d = strstr(got, " 404 "),
                   *e = strstr(got, "7\r\npiece0;\r\n7\r\npiece1;\r\n7\r\npiece2;\r\n0\r\n\r\n");

        assert_int_equal(w->handled, 5);
        assert_true(a && b && c && d && e && a < b && b < c && c < d && d < e);
        assert_int_equal(count(got, "HTTP/1.1 "), 5);
}

static void test_many_pipelined(void **state)
{
        struct world *w = *state;
        BUF_CLEANUP struct buf text = {0};

        for (int i = 0; i < 5000; i++)
                buf_addz(&text, GET("/none"));
        buf_addz(&text, GET_LAST("/none"));
        ask(w, buf_z(&text));
        assert_int_equal(w->handled, 5001);
}

static void test_keep_alive(void **state)
{
        struct world *w = *state;

        client_open(w, &w->client, NULL, 0);
        for (int i = 1; i <= 3; i++) {
                stream_write(w->client.s, GET("/hello"), strlen(GET("/hello")));
                w->client.want = w->client.total + 1;
                help_run(w->loop);
                assert_int_equal(w->handled, i);
                assert_false(w->client.closed);
        }
}

static void test_slow_bytes(void **state)
{
        struct world *w = *state;
        const char *text =
                "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nabcde";

        client_open(w, &w->client, NULL, 0);
        for (; *text; text++) {
                stream_write(w->client.s, text, 1);
                help_run_ms(w->loop, 1);
        }
        while (!w->client.closed)
                help_run(w->loop);
        assert_non_null(strstr(buf_z(&w->client.got), "\r\n\r\nabcde"));
}

static void test_query(void **state)
{
        const char *got = ask(*state, "GET /query%20me?x=1&a+b=c%2Fd+%26&y HTTP/1.1\r\nHost: x\r\n"
                                      "X-One:  one two \t\r\nConnection: close\r\n\r\n");

        assert_non_null(strstr(got, "\r\n\r\n0/c/d &/one two/"));
}

static void test_chunked_body(void **state)
{
        const char *got = ask(
                *state, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "3\r\nabc\r\nA;ext=1\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n" GET_LAST("/hello"));

        assert_non_null(strstr(got, "\r\n\r\nabc0123456789HTTP/1.1 200"));
}

static void test_old_version(void **state)
{
        struct world *w = *state;
        const char *got = ask(w, "GET /pieces HTTP/1.0\r\n\r\n");

        assert_null(strstr(got, "chunked"));
        assert_non_null(strstr(got, "\r\n\r\npiece0;piece1;piece2;"));
        got = ask(w, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /hello HTTP/1.0\r\n\r\n");
        assert_int_equal(count(got, "200 OK"), 2);
}

static void test_head_method(void **state)
{
        const char *got =
                ask(*state, "HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\nHEAD /pieces HTTP/1.1\r\nHost: x\r\n\r\n"
                            "HEAD /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");

        assert_int_equal(count(got, "200 OK"), 3);
        assert_null(strstr(got, "hi"));
        assert_null(strstr(got, "piece0"));
        assert_null(strstr(got, "yy"));
        assert_non_null(strstr(got, "Content-Length: 1048576"));
}

static void test_continue(void **state)
{
        struct world *w = *state;
        const char *head = "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n"
                           "Connection: close\r\n\r\n";

        client_open(w, &w->client, NULL, 0);
        stream_write(w->client.s, head, strlen(head));
        w->client.want = 25;
        help_run(w->loop);
        assert_string_equal(buf_z(&w->client.got), "HTTP/1.1 100 Continue\r\n\r\n");
        assert_int_equal(w->handled, 0);
        w->client.want = 0;
        stream_write(w->client.s, "body", 4);
        while (!w->client.closed)
                help_run(w->loop);
        assert_non_null(strstr(buf_z(&w->client.got), "\r\n\r\nbody"));
}

static void test_refused(void **state)
{
        struct world *w = *state;
        static const struct {
                const char *text, *status;
        } cases[] = {
                {"garbage\r\n\r\n", " 400 "},
                {"\x16\x03\x01 hello\r\n\r\n", " 400 "},
                {"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", " 400 "},
                {"GET / HTTP/1.1\r\n\r\n", " 400 "},
                {"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", " 400 "},
                {"GET nopath HTTP/1.1\r\nHost: x\r\n\r\n", " 400 "},
                {"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", " 400 "},
                {"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", " 400 "},
                {"GET /hello?a=1&dry_run=%00 HTTP/1.1\r\nHost: x\r\n\r\n", " 400 "},
                {"GET /hello?dry%_run=1 HTTP/1.1\r\nHost: x\r\n\r\n", " 400 "},
                {"GET /%4 HTTP/1.1\r\nHost: x\r\n\r\n", " 400 "},
                {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", " 400 "},
                {"GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", " 400 "},
                {"GET / HTTP/1.1\r\nHost: x\r\nnocolon\r\n\r\n", " 400 "},
                {"GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n", " 400 "},
                {"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", " 400 "},
                {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", " 505 "},
                {"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", " 501 "},
                {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", " 400 "},
                {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", " 400 "},
                {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n", " 400 "},
                {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", " 400 "},
                {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
                 " 400 "},
                {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", " 501 "},
                {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", " 400 "},
                {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", " 400 "},
                {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
                 " 413 "},
                {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8388609\r\n\r\n", " 413 "},
                {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n", " 413 "},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                const char *got = ask(w, cases[i].text);

                if (!strstr(got, cases[i].status))
                        fail_msg("case %zu: %s gave %s", i, cases[i].text, got);
                assert_int_equal(count(got, "\r\nDate: "), 1);
                assert_non_null(strstr(got, "{\"error\":{\"code\":\""));
        }
        assert_int_equal(w->handled, 0);
}

static void test_head_limits(void **state)
{
        struct world *w = *state;
        BUF_CLEANUP struct buf text = {0};

        buf_addz(&text, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA: ");
        while (text.n < 16380)
                buf_char(&text, 'a');
        buf_addz(&text, "\r\n\r\n");
        assert_int_equal(text.n, 16384);
        assert_non_null(strstr(ask(w, buf_z(&text)), " 200 "));
        buf_truncate(&text, text.n - 4);
        buf_addz(&text, "b\r\n\r\n");
        assert_non_null(strstr(ask(w, buf_z(&text)), " 431 "));
        buf_reset(&text);
        for (int i = 0; i < 100000; i++)
                buf_addz(&text, "endless");
        assert_non_null(strstr(ask(w, buf_z(&text)), " 431 "));
        buf_reset(&text);
        buf_addz(&text, "GET /hello HTTP/1.1\r\nHost: x\r\n");
        for (int i = 0; i < 64; i++)
                buf_addz(&text, "A: b\r\n");
        buf_addz(&text, "\r\n");
        assert_non_null(strstr(ask(w, buf_z(&text)), " 431 "));
}

static void test_largest_body(void **state)
{
        struct world *w = *state;
        BUF_CLEANUP struct buf text = {0};

        buf_addz(&text,
                 "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 8388608\r\n\r\n");
        memset(buf_room(&text, 8 << 20), 'z', 8 << 20);
        text.n += 8 << 20;
        ask(w, buf_z(&text));
        assert_true(w->client.total > 8 << 20);
        assert_int_equal(w->handled, 1);
}

#define GROW(mib)            "POST /grow HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\n" mib
#define BIG_POST(path, more) "POST " path " HTTP/1.1\r\nHost: x\r\nContent-Length: 8388608\r\n" more "\r\n"

/* Who is refused by what his head says has sent a body for nothing: it is not kept. */
static void test_head_before_body(void **state)
{
        struct world *w = *state;
        const char *got = ask(w, BIG_POST("/forbidden", "Expect: 100-continue\r\n"));

        assert_true(strncmp(got, "HTTP/1.1 401 ", 13) == 0);
        assert_non_null(strstr(got, "\r\nConnection: close\r\n"));
        /* what follows is its body, and no request */
        ask(w, "POST /forbidden HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n" GET("/hello"));
        assert_int_equal(w->heads, 2);
        assert_int_equal(w->handled, 0);
}

/* As long as nobody has said that he may, a peer's body waits with the peer. */
static void test_body_waits_for_its_reader(void **state)
{
        struct world *w = *state;
        BUF_CLEANUP struct buf text = {0};
        struct err err;

        assert_int_equal(http_server_listen(w->server, "127.0.0.1:0", 0, NULL, &w->address, &err), 0);
        buf_addz(&text, BIG_POST("/echo", "Connection: close\r\nAuthorization: none\r\n"));
        memset(buf_room(&text, 8 << 20), 'z', 8 << 20);
        text.n += 8 << 20;
        client_open(w, &w->client, NULL, 0);
        stream_write(w->client.s, text.p, text.n);
        while (!w->waiting)
                help_run_ms(w->loop, 5);
        help_run_ms(w->loop, 50);
        assert_int_equal(http_body(w->waiting).n, 0);
        assert_true(stream_pending(w->client.s) > 1 << 20);
        http_trust(w->waiting);
        http_read_body(w->waiting, STR("alice"), handle_whole, w);
        while (!w->client.closed)
                help_run(w->loop);
        assert_true(w->client.total > 8 << 20);
        assert_int_equal(w->handled, 1);
}

static void test_client_gone_in_body(void **state)
{
        struct world *w = *state;

        client_open(w, &w->client, NULL, 0);
        stream_write(w->client.s, BIG_POST("/wait", "Authorization: none\r\n"),
                     strlen(BIG_POST("/wait", "Authorization: none\r\n")));
        while (!w->waiting)
                help_run_ms(w->loop, 5);
        http_on_close(w->waiting, went, w);
        http_read_body(w->waiting, STR("alice"), handle_whole, w);
        stream_free(w->client.s);
        w->client.s = NULL;
        while (!w->gone)
                help_run(w->loop);
        assert_int_equal(w->handled, 0);
}

/* The handler is told of a body that does not come to its end, as of a client that goes. */
static void test_bad_body_is_told(void **state)
{
        struct world *w = *state;
        const char *head = "POST /wait HTTP/1.1\r\nHost: x\r\nAuthorization: none\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n";

        client_open(w, &w->client, NULL, 0);
        stream_write(w->client.s, head, strlen(head));
        while (!w->waiting)
                help_run_ms(w->loop, 5);
        http_on_close(w->waiting, went, w);
        http_read_body(w->waiting, STR("alice"), handle_whole, w);
        stream_write(w->client.s, "zz\r\n", 4);
        while (!w->client.closed)
                help_run(w->loop);
        assert_int_equal(w->gone, 1);
        assert_int_equal(w->handled, 0);
        assert_non_null(strstr(buf_z(&w->client.got), " 400 "));
}

/* One holder's bodies leave room for those of others. */
static void test_bodies_are_shared(void **state)
{
        struct world *w = *state;
        struct http_limits limits = {.bodies = 12 << 20};
        struct client hog = {0};
        BUF_CLEANUP struct buf text = {0};

        http_server_limits(w->server, &limits);
        client_open(w, &hog, NULL, 0);
        buf_addz(&text, BIG_POST("/echo", ""));
        memset(buf_room(&text, 5 << 20), 'z', 5 << 20);
        text.n += 5 << 20;
        stream_write(hog.s, text.p, text.n);
        while (stream_pending(hog.s))
                help_run_ms(w->loop, 5);
        help_run_ms(w->loop, 50);
        assert_non_null(strstr(ask(w, buf_z(&text)), " 503 "));
        stream_free(hog.s);
        buf_deinit(&hog.got);
        help_run_ms(w->loop, 50);
        memset(buf_room(&text, 3 << 20), 'z', 3 << 20);
        text.n += 3 << 20;
        assert_non_null(strstr(ask(w, buf_z(&text)), " 503 ")); /* more than half of all is for nobody */
}

/* A body counts for whom it shows, once that is known. */
static void test_bodies_find_their_holder(void **state)
{
        struct world *w = *state;
        struct http_limits limits = {.bodies = 12 << 20};
        struct client first = {0};
        BUF_CLEANUP struct buf text = {0};

        http_server_limits(w->server, &limits);
        client_open(w, &first, NULL, 0);
        buf_addz(&text, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 3145728\r\n\r\n");
        memset(buf_room(&text, 3 << 20), 'z', 3 << 20);
        text.n += 3 << 20;
        stream_write(first.s, text.p, text.n);
        while (!w->waiting)
                help_run_ms(w->loop, 5);
        assert_non_null(
                strstr(ask(w, GROW("4")), " 200 ")); /* with 3 MiB of the same holder there is no room */
        stream_free(first.s);
        buf_deinit(&first.got);
        answer_later(w);
}

/* Memory that a handler takes for a body counts for its holder, until the request has ended. */
static void test_bodies_that_grow(void **state)
{
        struct world *w = *state;
        struct http_limits limits = {.bodies = 12 << 20};

        http_server_limits(w->server, &limits);
        for (int i = 0; i < 4; i++)
                assert_non_null(strstr(ask(w, GROW("5")), " 200 "));
        assert_non_null(strstr(
                ask(w, "POST /again HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"),
                " 200 "));
        assert_non_null(strstr(ask(w, GROW("7")), " 503 "));
        assert_non_null(strstr(ask(w, GROW("5")), " 200 "));
}

static void test_client_gone(void **state)
{
        struct world *w = *state;

        client_open(w, &w->client, NULL, 0);
        stream_write(w->client.s, GET("/wait"), strlen(GET("/wait")));
        help_run_ms(w->loop, 50);
        assert_non_null(w->waiting);
        assert_int_equal(w->gone, 0);
        /* with a pipelined request waiting behind it */
        stream_write(w->client.s, GET("/hello"), strlen(GET("/hello")));
        help_run_ms(w->loop, 20);
        assert_int_equal(w->handled, 1);
        stream_free(w->client.s);
        w->client.s = NULL;
        help_run(w->loop);
        assert_int_equal(w->gone, 1);
        assert_null(w->waiting);
        assert_int_equal(w->handled, 1);
}

static void test_wait_answered(void **state)
{
        struct world *w = *state;

        client_open(w, &w->client, NULL, 0);
        stream_write(w->client.s, GET("/wait"), strlen(GET("/wait")));
        help_run_ms(w->loop, 50);
        answer_later(w);
        w->client.want = 1;
        help_run(w->loop);
        assert_non_null(strstr(buf_z(&w->client.got), "late"));
        stream_free(w->client.s); /* between requests: nobody is told */
        w->client.s = NULL;
        help_run_ms(w->loop, 50);
        assert_int_equal(w->gone, 0);
}

static void test_orphan_is_answered_to_nobody(void **state)
{
        struct world *w = *state;

        client_open(w, &w->client, NULL, 0);
        stream_write(w->client.s, GET("/orphan"), strlen(GET("/orphan")));
        help_run_ms(w->loop, 50);
        stream_free(w->client.s);
        w->client.s = NULL;
        help_run_ms(w->loop, 50);
        assert_int_equal(http_reply_pending(w->waiting), 0);
        answer_later(w);
}

static void test_server_ends_with_waiting(void **state)
{
        struct world *w = *state;

        client_open(w, &w->client, NULL, 0);
        stream_write(w->client.s, GET("/wait"), strlen(GET("/wait")));
        help_run_ms(w->loop, 50);
        http_server_free(w->server);
        w->server = NULL;
        assert_int_equal(w->gone, 1);
}

static long memory_kb(void)
{
        long pages = 0, resident = 0;
        FILE *f = fopen("/proc/self/statm", "r");

        assert_int_equal(fscanf(f, "%ld %ld", &pages, &resident), 2);
        fclose(f);
        return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void test_big_reply_to_slow_client(void **state)
{
        struct world *w = *state;
        long before = memory_kb();

        w->client.slow = true;
        w->client.sip = timer_new(w->loop, client_sip, &w->client);
        client_open(w, &w->client, NULL, 1 << 20);
        stream_write(w->client.s, GET_LAST("/big"), strlen(GET_LAST("/big")));
        timer_start(w->client.sip, 1);
        while (!w->client.closed)
                help_run(w->loop);
        assert_true(w->client.total > BIG && w->client.total < BIG + (1 << 20));
        assert_true(w->pending_max < 1 << 20);
        assert_true(memory_kb() - before < 20 << 10);
}

/* Requests without end of a client that reads no replies. */
static void test_who_reads_nothing_is_asked_nothing(void **state)
{
        struct world *w = *state;

        w->client.slow = true;
        client_open(w, &w->client, NULL, 1000);
        for (int i = 0; i < 30; i++)
                stream_write(w->client.s, GET("/large"), strlen(GET("/large")));
        help_run_ms(w->loop, 200);
        assert_int_equal(w->handled, 1);
}

/* Replies that one holder does not take leave room for those of others. */
static void test_replies_are_shared(void **state)
{
        struct world *w = *state;
        struct http_limits limits = {.replies = 6 << 20};
        struct client hogs[4] = {0};

        http_server_limits(w->server, &limits);
        for (int i = 0; i < 4; i++) {
                hogs[i].slow = true;
                client_open(w, &hogs[i], NULL, 1000);
                stream_write(hogs[i].s, GET("/large"), strlen(GET("/large")));
                help_run_ms(w->loop, 50);
                if (i == 1) {
                        ask(w, GET_LAST("/large"));
                        assert_true(w->client.total > 1 << 20);
                }
        }
        ask(w, GET_LAST("/large"));
        assert_true(w->client.total < 1000);
        assert_non_null(strstr(ask(w, GET_LAST("/hello")), " 200 "));
        for (int i = 0; i < 4; i++) {
                stream_free(hogs[i].s);
                buf_deinit(&hogs[i].got);
        }
}

static void test_client_gone_while_streaming(void **state)
{
        struct world *w = *state;

        w->client.slow = true;
        client_open(w, &w->client, NULL, 1000);
        stream_write(w->client.s, GET("/big"), strlen(GET("/big")));
        help_run_ms(w->loop, 50);
        assert_int_equal(w->handled, 1);
        stream_free(w->client.s);
        w->client.s = NULL;
        help_run_ms(w->loop, 50);
        for (int i = 0; w->left && i < 100;
             i++) /* no on_close: the handler talks to nobody until it is done */
                help_run_ms(w->loop, 50);
        assert_int_equal(w->left, 0);
}

static void test_tcp_strangers_have_less(void **state)
{
        struct world *w = *state;
        BUF_CLEANUP struct buf text = {0};
        struct err err;
        const char *got;

        assert_int_equal(http_server_listen(w->server, "127.0.0.1:0", 0, NULL, &w->address, &err), 0);
        got = ask(w, GET_LAST("/who"));
        assert_non_null(strstr(got, "\r\n\r\n-95 12345"));
        buf_addz(&text, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA: ");
        while (text.n < 4094)
                buf_char(&text, 'a');
        buf_addz(&text, "\r\n\r\n");
        assert_non_null(strstr(ask(w, buf_z(&text)), " 431 "));
}

/* One who opens all that he can leaves room for others. */
static void test_connections_are_shared(void **state)
{
        struct world *w = *state;
        struct client others[2] = {{0}, {0}};
        struct http_limits limits = {.connections = 4};
        struct err err;

        http_server_limits(w->server, &limits);
        for (int i = 0; i < 2; i++) {
                client_open(w, &others[i], NULL, 0);
                stream_write(others[i].s, GET("/hello"), strlen(GET("/hello")));
                while (others[i].total == 0)
                        help_run_ms(w->loop, 5);
        }
        assert_string_equal(ask(w, GET_LAST("/hello")), "");
        assert_int_equal(http_server_listen(w->server, "127.0.0.1:0", 0, NULL, &w->address, &err), 0);
        assert_non_null(strstr(ask(w, GET_LAST("/hello")), " 200 "));
        for (int i = 0; i < 2; i++) {
                stream_free(others[i].s);
                buf_deinit(&others[i].got);
        }
}

static void test_tls(void **state)
{
        struct world *w = *state;
        struct help_cert ca = {0}, server = {0}, client = {0};
        struct tls_context *ours, *theirs;
        struct tls_config config = {.ask_client = true};
        struct err err;

        help_cert_make(&ca, NULL, "ca", 1, -60, 3600);
        help_cert_make(&server, &ca, "server", 2, -60, 3600);
        help_cert_make(&client, &ca, "alice@local", 3, -60, 3600);
        config.ca_pem = str_of(ca.cert_pem);
        config.cert_pem = str_of(server.cert_pem);
        config.key_pem = str_of(server.key_pem);
        assert_int_equal(tls_server_new(&config, &ours, &err), 0);
        config.cert_pem = str_of(client.cert_pem);
        config.key_pem = str_of(client.key_pem);
        assert_int_equal(tls_client_new(&config, &theirs, &err), 0);
        assert_int_equal(http_server_listen(w->server, "127.0.0.1:0", 0, ours, &w->address, &err), 0);
        client_open(w, &w->client, theirs, 0);
        stream_write(w->client.s, GET("/large"), strlen(GET("/large")));
        stream_write(w->client.s, GET_LAST("/who"), strlen(GET_LAST("/who")));
        while (!w->client.closed)
                help_run(w->loop);
        assert_int_equal(w->handled, 2);
        assert_true(w->client.total > 1 << 20);
        /* and a client that speaks no TLS */
        ask(w, GET_LAST("/hello"));
        assert_int_equal(w->handled, 2);
        tls_unref(ours);
        tls_unref(theirs);
        help_cert_free(&ca);
        help_cert_free(&server);
        help_cert_free(&client);
}

static void test_time_limits(void **state)
{
        struct world *w = *state;
        struct http_limits limits = {.head_ms = 100, .body_ms = 200, .idle_ms = 300, .stall_ms = 400};
        static const struct {
                const char *text, *answer;
                int64_t after_ms;
        } cases[] = {
                {"", "", 100},
                {"GET / HT", " 408 ", 100},
                {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na", " 408 ", 200},
                {GET("/hello"), " 200 ", 300},
        };

        http_server_limits(w->server, &limits);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                int64_t before = clock_mono_ns(), took_ms;
                const char *got = ask(w, cases[i].text);

                took_ms = (clock_mono_ns() - before) / 1000000;
                if (took_ms < cases[i].after_ms || !strstr(got, cases[i].answer))
                        fail_msg("case %zu: after %lld ms: %s", i, (long long)took_ms, got);
        }
        /* a byte now and then makes no new term */
        client_open(w, &w->client, NULL, 0);
        for (int i = 0; i < 100 && !w->client.closed; i++) {
                stream_write(w->client.s, "G", 1);
                help_run_ms(w->loop, 10);
        }
        assert_true(w->client.closed);
        assert_non_null(strstr(buf_z(&w->client.got), " 408 "));
}

static void test_stalled_client_is_dropped(void **state)
{
        struct world *w = *state;
        struct http_limits limits = {.stall_ms = 100};

        http_server_limits(w->server, &limits);
        w->client.slow = true;
        client_open(w, &w->client, NULL, 1000);
        stream_write(w->client.s, GET("/big"), strlen(GET("/big")));
        help_run_ms(w->loop, 50);
        assert_int_equal(w->handled, 1);
        assert_true(w->left > 0);
        /* once it is dropped its request is an orphan, and the handler talks to nobody until it is done */
        for (int i = 0; w->left && i < 200; i++)
                help_run_ms(w->loop, 50);
        assert_int_equal(w->left, 0);
        assert_non_null(w->client.s); /* it was not the client that went */
        /* one that waits for its answer is not stalled */
        w->client.slow = false;
        stream_free(w->client.s);
        client_open(w, &w->client, NULL, 0);
        stream_write(w->client.s, GET("/wait"), strlen(GET("/wait")));
        help_run_ms(w->loop, 400);
        assert_non_null(w->waiting);
        assert_false(w->client.closed);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_one, setup, teardown),
                cmocka_unit_test_setup_teardown(test_pipelined_in_order, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_pipelined, setup, teardown),
                cmocka_unit_test_setup_teardown(test_keep_alive, setup, teardown),
                cmocka_unit_test_setup_teardown(test_slow_bytes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_query, setup, teardown),
                cmocka_unit_test_setup_teardown(test_chunked_body, setup, teardown),
                cmocka_unit_test_setup_teardown(test_old_version, setup, teardown),
                cmocka_unit_test_setup_teardown(test_head_method, setup, teardown),
                cmocka_unit_test_setup_teardown(test_continue, setup, teardown),
                cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_head_limits, setup, teardown),
                cmocka_unit_test_setup_teardown(test_largest_body, setup, teardown),
                cmocka_unit_test_setup_teardown(test_head_before_body, setup, teardown),
                cmocka_unit_test_setup_teardown(test_body_waits_for_its_reader, setup, teardown),
                cmocka_unit_test_setup_teardown(test_client_gone_in_body, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bad_body_is_told, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bodies_are_shared, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bodies_find_their_holder, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bodies_that_grow, setup, teardown),
                cmocka_unit_test_setup_teardown(test_client_gone, setup, teardown),
                cmocka_unit_test_setup_teardown(test_wait_answered, setup, teardown),
                cmocka_unit_test_setup_teardown(test_orphan_is_answered_to_nobody, setup, teardown),
                cmocka_unit_test_setup_teardown(test_server_ends_with_waiting, setup, teardown),
                cmocka_unit_test_setup_teardown(test_big_reply_to_slow_client, setup, teardown),
                cmocka_unit_test_setup_teardown(test_who_reads_nothing_is_asked_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_replies_are_shared, setup, teardown),
                cmocka_unit_test_setup_teardown(test_client_gone_while_streaming, setup, teardown),
                cmocka_unit_test_setup_teardown(test_tcp_strangers_have_less, setup, teardown),
                cmocka_unit_test_setup_teardown(test_connections_are_shared, setup, teardown),
                cmocka_unit_test_setup_teardown(test_tls, setup, teardown),
                cmocka_unit_test_setup_teardown(test_time_limits, setup, teardown),
                cmocka_unit_test_setup_teardown(test_stalled_client_is_dropped, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
