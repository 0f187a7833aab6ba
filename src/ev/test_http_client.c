/* The client against our own server, on a unix socket and over TLS. */
#include <fcntl.h>
#include <unistd.h>

#include "ev/http.h"
#include "ev/http_client.h"
#include "ev/stream.h"
#include "ev/test_help.h"

struct side {
        struct loop *loop;
        struct http_server *server;
        struct http_client *client;
        char *folder, address[300];
        unsigned served, answered, wanted;
        int status;
        struct buf body;
        char error[200];
};

static void client_gone(void *arg, struct http_request *r)
{
        (void)arg, (void)r;
}

/* /echo gives the body back, /big so much in chunks, /never nothing, /hang
 * likewise and the loop stops, /who the bearer, /field one of the head.
 */
static void serve_whole(void *arg, struct http_request *r)
{
        struct side *s = arg;
        struct buf out = {0};

        s->served++;
        if (str_eqz(http_path(r), "/field")) {
                buf_str(&out, http_header(r, "X-Of-Ours"));
                http_reply(r, 200, "text/plain", &out);
        } else if (str_eqz(http_path(r), "/never")) {
                http_on_close(r, client_gone, NULL);
        } else if (str_eqz(http_path(r), "/hang")) {
                http_on_close(r, client_gone, NULL);
                loop_stop(s->loop);
        } else if (str_eqz(http_path(r), "/big")) {
                http_reply_start(r, 200, "text/plain", NULL, NULL);
                for (unsigned i = 0; i < 300; i++) {
                        buf_printf(&out, "%099u\n", i);
                        http_reply_chunk(r, &out);
                }
                http_reply_end(r);
        } else if (str_eqz(http_path(r), "/who")) {
                buf_str(&out, http_header(r, "Authorization"));
                http_reply(r, 200, "text/plain", &out);
        } else {
                buf_str(&out, http_body(r));
                http_reply(r, str_eqz(http_path(r), "/echo") ? 200 : 404, "text/plain", &out);
        }
        buf_deinit(&out);
}

static void serve(void *arg, struct http_request *r)
{
        http_trust(r);
        http_read_body(r, STR("somebody"), serve_whole, arg);
}

static void on_answer(void *arg, int status, struct str body, const struct err *err)
{
        struct side *s = arg;

        s->status = status;
        buf_reset(&s->body);
        buf_str(&s->body, body);
        snprintf(s->error, sizeof(s->error), "%s", status ? "" : err->text);
        if (++s->answered == s->wanted)
                loop_stop(s->loop);
}

static void listen_on(struct side *s, struct tls_context *tls)
{
        struct err err;

        s->server = http_server_new(s->loop, serve, s);
        if (http_server_listen(s->server, s->address, 0600, tls, NULL, &err) != 0)
                fail_msg("%s", err.text);
}

static int setup(void **state)
{
        struct side *s = mem_new(struct side);

        s->loop = loop_new();
        s->folder = help_folder();
        snprintf(s->address, sizeof(s->address), "unix:%s/s", s->folder);
        const struct http_client_config c = {.address = s->address, .bearer = "abc", .connections = 3};
        s->client = http_client_new(s->loop, &c);
        *state = s;
        return 0;
}

static int teardown(void **state)
{
        struct side *s = *state;

        http_client_free(s->client);
        if (s->server)
                http_server_free(s->server);
        loop_free(s->loop);
        help_folder_remove(s->folder);
        buf_deinit(&s->body);
        free(s);
        return 0;
}

static void ask(struct side *s, const char *method, const char *path, const char *body)
{
        const struct http_call_spec spec = {.method = method, .path = path, .body = str_of(body)};

        s->wanted++;
        http_client_call(s->client, &spec, on_answer, s);
}

static void test_answers(void **state)
{
        struct side *s = *state;

        listen_on(s, NULL);
        ask(s, "POST", "/echo?a=b", "hello");
        help_run(s->loop);
        assert_int_equal(s->status, 200);
        assert_string_equal(buf_z(&s->body), "hello");
        ask(s, "GET", "/who", "");
        help_run(s->loop);
        assert_string_equal(buf_z(&s->body), "Bearer abc");
        ask(s, "PUT", "/nothing", "x");
        help_run(s->loop);
        assert_int_equal(s->status, 404);
        ask(s, "GET", "/big", "");
        help_run(s->loop);
        assert_int_equal(s->body.n, 30000);
        assert_true(str_ends(buf_view(&s->body), STR("0299\n")));
}

static void test_many_at_once(void **state)
{
        struct side *s = *state;

        listen_on(s, NULL);
        for (unsigned i = 0; i < 500; i++)
                ask(s, "POST", "/echo", "x");
        help_run(s->loop);
        assert_int_equal(s->served, 500);
        assert_int_equal(s->status, 200);
}

static void test_nobody_there_and_back_again(void **state)
{
        struct side *s = *state;

        ask(s, "GET", "/echo", "");
        ask(s, "GET", "/echo", "");
        help_run(s->loop);
        assert_int_equal(s->status, 0);
        assert_true(*s->error);
        listen_on(s, NULL);
        ask(s, "POST", "/echo", "now");
        help_run(s->loop);
        assert_string_equal(buf_z(&s->body), "now");
        /* the open connection goes, and the next call does not notice */
        http_server_free(s->server);
        listen_on(s, NULL);
        ask(s, "POST", "/echo", "again");
        help_run(s->loop);
        assert_string_equal(buf_z(&s->body), "again");
        assert_int_equal(s->served, 2);
}

static void test_a_call_that_is_not_answered(void **state)
{
        struct side *s = *state;
        const struct http_call_spec spec = {.method = "GET", .path = "/never", .timeout_ms = 50};

        listen_on(s, NULL);
        s->wanted++;
        http_client_call(s->client, &spec, on_answer, s);
        help_run(s->loop);
        assert_int_equal(s->status, 0);
        assert_non_null(strstr(s->error, "in time"));
        assert_int_equal(s->served, 1);
        struct http_call *call = http_client_call(s->client, &spec, on_answer, s);
        http_call_cancel(call);
        ask(s, "POST", "/echo", "x");
        help_run(s->loop);
        assert_int_equal(s->answered, 2);
}

static void test_to_a_file(void **state)
{
        struct side *s = *state;
        char path[400], text[40000];

        snprintf(path, sizeof(path), "%s/file", s->folder);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        const struct http_call_spec spec = {.method = "GET", .path = "/big", .fd = fd, .to_fd = true};
        listen_on(s, NULL);
        s->wanted++;
        http_client_call(s->client, &spec, on_answer, s);
        help_run(s->loop);
        assert_int_equal(s->status, 200);
        assert_int_equal(s->body.n, 0);
        assert_int_equal(pread(fd, text, sizeof(text), 0), 30000);
        close(fd);
}

/* A call of its own address reaches that server, whoever else the client's is. */
static void test_another_server(void **state)
{
        struct side *s = *state;
        char other[300];
        const struct http_client_config c = {.address = "unix:/nowhere", .connections = 1};
        const struct http_call_spec spec = {
                .method = "POST", .path = "/echo", .address = other, .body = STR("here")};

        snprintf(other, sizeof(other), "%s", s->address);
        listen_on(s, NULL);
        http_client_free(s->client);
        s->client = http_client_new(s->loop, &c);
        s->wanted++;
        http_client_call(s->client, &spec, on_answer, s);
        help_run(s->loop);
        assert_string_equal(buf_z(&s->body), "here");
        ask(s, "POST", "/echo", "x");
        help_run(s->loop);
        assert_int_equal(s->status, 0);
        assert_non_null(strstr(s->error, "/nowhere"));
}

/* Calls to the earlier server have no answer: one under way, one in line, and one that must not be repeated.
 */
static void test_move(void **state)
{
        struct side *s = *state;
        const struct http_client_config c = {.address = s->address, .connections = 1};
        const struct http_call_spec once = {.method = "POST", .path = "/echo", .once = true};

        listen_on(s, NULL);
        http_client_free(s->client);
        s->client = http_client_new(s->loop, &c);
        ask(s, "GET", "/hang", "");
        ask(s, "POST", "/echo", "in line");
        help_run(s->loop);
        assert_int_equal(s->answered, 0);
        s->wanted++;
        http_client_call(s->client, &once, on_answer, s);
        http_client_move(s->client, "unix:/nowhere");
        help_run(s->loop);
        assert_int_equal(s->answered, 3);
        assert_int_equal(s->status, HTTP_NOT_SENT);
        http_client_move(s->client, s->address);
        ask(s, "POST", "/echo", "back");
        help_run(s->loop);
        assert_string_equal(buf_z(&s->body), "back");
        assert_int_equal(s->served, 2);
}

static void test_fields(void **state)
{
        struct side *s = *state;
        const struct http_call_spec spec = {
                .method = "GET", .path = "/field", .fields = "X-Of-Ours: 17\r\nX-More: 18\r\n"};

        listen_on(s, NULL);
        s->wanted++;
        http_client_call(s->client, &spec, on_answer, s);
        help_run(s->loop);
        assert_string_equal(buf_z(&s->body), "17");
}

struct pieces {
        struct side *side;
        size_t bytes;
        unsigned count;
        int status;
};

static void on_piece(void *arg, int status, struct str part)
{
        struct pieces *p = arg;

        p->bytes += part.n;
        p->count++;
        p->status = status;
}

static void on_pieces_end(void *arg, int status, struct str body, const struct err *err)
{
        struct pieces *p = arg;

        on_answer(p->side, status, body, err);
}

static void test_in_pieces(void **state)
{
        struct side *s = *state;
        struct pieces p = {.side = s};
        const struct http_call_spec spec = {.method = "GET", .path = "/big", .part = on_piece};

        listen_on(s, NULL);
        s->wanted++;
        http_client_call(s->client, &spec, on_pieces_end, &p);
        help_run(s->loop);
        assert_int_equal(s->status, 200);
        assert_int_equal(p.status, 200);
        assert_int_equal(p.bytes, 30000);
        assert_true(p.count > 0);
        assert_int_equal(s->body.n, 0);
}

/* What may be done once only has a connection of its own, of which nobody need guess whether it still lives:
 * it is made when the old one was closed under us, and is told as not sent when nobody is there. */
static void test_once(void **state)
{
        struct side *s = *state;
        struct http_call_spec spec = {.method = "POST", .path = "/echo", .body = STR("x"), .once = true};

        listen_on(s, NULL);
        ask(s, "POST", "/echo", "now");
        help_run(s->loop);
        http_server_free(s->server);
        listen_on(s, NULL);
        s->wanted++;
        http_client_call(s->client, &spec, on_answer, s);
        help_run(s->loop);
        assert_int_equal(s->status, 200);
        assert_int_equal(s->served, 2);
        http_server_free(s->server);
        s->server = NULL;
        s->wanted++;
        http_client_call(s->client, &spec, on_answer, s);
        help_run(s->loop);
        assert_int_equal(s->status, HTTP_NOT_SENT);
        assert_int_equal(s->served, 2);
}

/* ---- servers that are not ours: each connection is answered with these bytes, again and again if `endless`
 */

struct liar {
        struct loop *loop;
        struct str text;
        bool endless;
        struct stream *streams[8];
        unsigned n;
        size_t sent;
};

static void lie(struct liar *l, struct stream *st)
{
        do {
                stream_write(st, l->text.p, l->text.n);
                l->sent += l->text.n;
        } while (l->endless && stream_pending(st) < 100000);
}

static void on_lie_data(void *arg, struct stream *st, struct buf *in)
{
        if (str_search(buf_view(in), STR("\r\n\r\n")) < 0)
                return;
        buf_reset(in);
        lie(arg, st);
        if (!((struct liar *)arg)->endless)
                stream_finish(st);
}

static void on_lie_drained(void *arg, struct stream *st)
{
        if (((struct liar *)arg)->endless && ((struct liar *)arg)->sent)
                lie(arg, st);
}

static void on_lie_closed(void *arg, struct stream *st, const struct err *why)
{
        (void)arg, (void)st, (void)why;
}

static void on_lie(void *arg, int fd)
{
        static const struct stream_ops ops = {NULL, on_lie_data, on_lie_drained, on_lie_closed};
        struct liar *l = arg;

        assert_true(l->n < 8);
        l->streams[l->n++] = stream_accept(l->loop, fd, NULL, NULL, &ops, l);
}

/* Of what a server answers with these bytes: the status, and the body in s->body. Returns how often it was
 * asked. */
static unsigned lied_to(struct side *s, struct str text, bool endless, const struct http_call_spec *spec)
{
        struct liar l = {.loop = s->loop, .text = text, .endless = endless};
        struct listener *listener;
        struct err err;
        unsigned n;

        if (listener_new(s->loop, s->address, 0600, on_lie, &l, &listener, &err) != 0)
                fail_msg("%s", err.text);
        s->wanted++;
        http_client_call(s->client, spec, on_answer, s);
        help_run(s->loop);
        n = l.n;
        while (l.n)
                stream_free(l.streams[--l.n]);
        listener_free(listener);
        return n;
}

static void test_what_a_server_may_answer(void **state)
{
        static const struct {
                const char *text;
                int status;
                const char *body; /* or a word of the error */
        } cases[] = {
                {"HTTP/1.1 302 Found\r\nLocation: /who\r\nContent-Length: 2\r\n\r\nno", 302, "no"},
                {"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", 302, ""},
                {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", 200, "a"},
                {"HTTP/1.0 200 OK\r\n\r\nto the end", 200, "to the end"},
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", 200,
                 "abc"},
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 0, ""},
                {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 0, ""},
                {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc", 0, ""},
                {"SSH-2.0-OpenSSH\r\n\r\n", 0, "HTTP/0.9"},
        };
        struct side *s = *state;
        const struct http_call_spec spec = {.method = "GET", .path = "/x", .timeout_ms = 20000};

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                assert_int_equal(lied_to(s, str_of(cases[i].text), false, &spec), 1);
                if (s->status != cases[i].status)
                        fail_msg("status %d %s of %s", s->status, s->error, cases[i].text);
                if (s->status)
                        assert_string_equal(buf_z(&s->body), cases[i].body);
                else if (!*s->error || !strstr(s->error, cases[i].body))
                        fail_msg("%s of %s", s->error, cases[i].text);
        }
}

/* A head, or heads, without an end; a body without one. */
static void test_what_has_no_end(void **state)
{
        struct side *s = *state;
        struct http_call_spec spec = {.method = "GET", .path = "/x", .timeout_ms = 100000};
        BUF_CLEANUP struct buf body = {0};
        char path[400];

        lied_to(s, STR("HTTP/1.1 100 Continue\r\n\r\n"), true, &spec);
        assert_int_equal(s->status, 0);
        assert_non_null(strstr(s->error, "head of the answer is larger"));
        lied_to(s, STR("HTTP/1.1 200 OK\r\nX-Field: 0123456789\r\n"), true, &spec);
        assert_int_equal(s->status, 0);
        buf_addz(&body, "HTTP/1.1 200 OK\r\n\r\n");
        while (body.n < 60000)
                buf_addz(&body, "0123456789");
        lied_to(s, buf_view(&body), true, &spec);
        assert_int_equal(s->status, 0);
        assert_non_null(strstr(s->error, "larger than 65536 KiB"));
        spec.max = 64 << 10;
        lied_to(s, buf_view(&body), true, &spec);
        assert_int_equal(s->status, 0);
        assert_non_null(strstr(s->error, "larger than 64 KiB"));
        spec.max = 0;
        snprintf(path, sizeof(path), "%s/limited", s->folder);
        spec.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        spec.to_fd = spec.limited = true;
        spec.limit = 200000;
        lied_to(s, buf_view(&body), true, &spec);
        assert_int_equal(s->status, -1);
        assert_true(lseek(spec.fd, 0, SEEK_END) <= 200000);
        close(spec.fd);
}

static void free_the_client(void *arg, int status, struct str body, const struct err *err)
{
        struct side *s = arg;

        http_client_free(s->client);
        s->client = NULL;
        on_answer(s, status, body, err);
}

/* By an answer, while others wait in line, run, or have ended. */
static void test_freed_by_an_answer(void **state)
{
        struct side *s = *state;
        const struct http_call_spec spec = {.method = "POST", .path = "/echo", .body = STR("last")};

        listen_on(s, NULL);
        s->wanted++;
        http_client_call(s->client, &spec, free_the_client, s);
        for (unsigned i = 0; i < 20; i++)
                http_client_call(s->client, &spec, on_answer, NULL);
        help_run(s->loop);
        assert_int_equal(s->answered, 1);
        assert_string_equal(buf_z(&s->body), "last");
}

static void test_tls(void **state)
{
        struct side *s = *state;
        struct help_cert ca, other, cert;
        struct tls_context *server, *client, *wrong;
        struct err err;

        help_cert_make(&ca, NULL, "ca", 1, -10, 1000);
        help_cert_make(&other, NULL, "other", 1, -10, 1000);
        help_cert_make_for(&cert, &ca, "server", 2, -10, 1000, "serverAuth");
        BUF_CLEANUP struct buf chain = {0};
        buf_addz(&chain, cert.cert_pem);
        buf_addz(&chain, ca.cert_pem);
        const struct tls_config of_server = {.cert_pem = buf_view(&chain), .key_pem = str_of(cert.key_pem)};
        const struct tls_config of_client = {.ca_fingerprint = str_of(ca.fingerprint)};
        const struct tls_config of_wrong = {.ca_fingerprint = str_of(other.fingerprint)};
        assert_int_equal(tls_server_new(&of_server, &server, &err), 0);
        assert_int_equal(tls_client_new(&of_client, &client, &err), 0);
        assert_int_equal(tls_client_new(&of_wrong, &wrong, &err), 0);
        listen_on(s, server);
        http_client_free(s->client);
        struct http_client_config c = {.address = s->address, .tls = client};
        s->client = http_client_new(s->loop, &c);
        ask(s, "POST", "/echo", "secret");
        help_run(s->loop);
        assert_string_equal(buf_z(&s->body), "secret");
        http_client_free(s->client);
        c.tls = wrong;
        s->client = http_client_new(s->loop, &c);
        ask(s, "POST", "/echo", "secret");
        help_run(s->loop);
        assert_int_equal(s->status, 0);
        assert_int_equal(s->served, 1);
        tls_unref(server);
        tls_unref(client);
        tls_unref(wrong);
        help_cert_free(&ca);
        help_cert_free(&other);
        help_cert_free(&cert);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_at_once, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nobody_there_and_back_again, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_call_that_is_not_answered, setup, teardown),
                cmocka_unit_test_setup_teardown(test_to_a_file, setup, teardown),
                cmocka_unit_test_setup_teardown(test_fields, setup, teardown),
                cmocka_unit_test_setup_teardown(test_another_server, setup, teardown),
                cmocka_unit_test_setup_teardown(test_move, setup, teardown),
                cmocka_unit_test_setup_teardown(test_in_pieces, setup, teardown),
                cmocka_unit_test_setup_teardown(test_once, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_a_server_may_answer, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_has_no_end, setup, teardown),
                cmocka_unit_test_setup_teardown(test_freed_by_an_answer, setup, teardown),
                cmocka_unit_test_setup_teardown(test_tls, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
