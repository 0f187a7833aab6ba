/* The client against our own server, on a unix socket and over TLS. */
#include <fcntl.h>

#include "ev/http.h"
#include "ev/http_client.h"
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

/* /echo gives the body back, /big so much in chunks, /never nothing, /who the bearer, /field one of the head.
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

/* What may be done once only is not asked for again when the connection was closed under it. */
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
        assert_int_equal(s->status, 0);
        assert_int_equal(s->served, 1);
        s->wanted++;
        http_client_call(s->client, &spec, on_answer, s);
        help_run(s->loop);
        assert_int_equal(s->status, 200);
        assert_int_equal(s->served, 2);
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
                cmocka_unit_test_setup_teardown(test_in_pieces, setup, teardown),
                cmocka_unit_test_setup_teardown(test_once, setup, teardown),
                cmocka_unit_test_setup_teardown(test_tls, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
