#include "ev/tls.h"

#include <errno.h>

#include "ev/stream.h"
#include "ev/test_help.h"

struct end {
        struct loop *loop;
        struct stream *s;
        struct buf got;
        int ready, closed;
        struct err why;
        char name[64], serial[64];
        bool echo;
        size_t want;
};
struct world {
        struct loop *loop;
        char *folder;
        struct listener *listener;
        struct tls_context *server_tls, *client_tls;
        struct end server, client;
        /* ours, a certificate each; and those of strangers */
        struct help_cert ca, server_cert, client_cert, alien_ca, alien_cert;
        struct help_cert old_cert, young_cert;
};

static void end_ready(void *arg, struct stream *s)
{
        struct end *e = arg;

        e->ready++;
        snprintf(e->name, sizeof(e->name), STR_FMT, STR_ARG(stream_peer_name(s)));
        snprintf(e->serial, sizeof(e->serial), STR_FMT, STR_ARG(stream_peer_serial(s)));
}

static void end_data(void *arg, struct stream *s, struct buf *in)
{
        struct end *e = arg;

        if (e->echo)
                stream_write(s, in->p, in->n);
        buf_add(&e->got, in->p, in->n);
        buf_consume(in, in->n);
        if (e->want && e->got.n >= e->want)
                loop_stop(e->loop);
}

static void end_closed(void *arg, struct stream *s, const struct err *why)
{
        struct end *e = arg;

        e->closed++;
        e->why = *why;
        stream_free(s);
        e->s = NULL;
        loop_stop(e->loop);
}

static const struct stream_ops ops = {end_ready, end_data, NULL, end_closed};

static void accepted(void *arg, int fd)
{
        struct world *w = arg;

        w->server.s = stream_accept(w->loop, fd, w->server_tls, NULL, &ops, &w->server);
}

static int setup(void **state)
{
        struct world *w = mem_new(struct world);
        BUF_CLEANUP struct buf address = {0};
        BUF_CLEANUP struct buf chain = {0};
        struct err err;
        long day = 24 * 3600;

        w->loop = w->server.loop = w->client.loop = loop_new();
        w->folder = help_folder();
        buf_printf(&address, "unix:%s/s", w->folder);
        assert_int_equal(listener_new(w->loop, buf_z(&address), 0600, accepted, w, &w->listener, &err), 0);
        help_cert_make(&w->ca, NULL, "our ca", 1, -60, day);
        help_cert_make(&w->server_cert, &w->ca, "server.example", 2, -60, day);
        help_cert_make(&w->client_cert, &w->ca, "n1@example", 0xabc, -60, day);
        help_cert_make(&w->old_cert, &w->ca, "n1@example", 4, -2 * day, -60);
        help_cert_make(&w->young_cert, &w->ca, "n1@example", 5, day, 2 * day);
        help_cert_make(&w->alien_ca, NULL, "our ca", 1, -60, day); /* the same name */
        help_cert_make(&w->alien_cert, &w->alien_ca, "server.example", 2, -60, day);
        /* what a server sends whose clients may have to pin: its own and the CA's */
        buf_addz(&chain, w->server_cert.cert_pem);
        buf_addz(&chain, w->ca.cert_pem);
        free(w->server_cert.cert_pem);
        w->server_cert.cert_pem = buf_take(&chain);
        *state = w;
        return 0;
}

static void hang_up(struct world *w)
{
        struct end *ends[] = {&w->server, &w->client};

        for (int i = 0; i < 2; i++) {
                struct end *e = ends[i];

                stream_free(e->s);
                buf_deinit(&e->got);
                *e = (struct end){.loop = w->loop};
        }
        tls_unref(w->server_tls);
        tls_unref(w->client_tls);
        w->server_tls = w->client_tls = NULL;
}

static int teardown(void **state)
{
        struct world *w = *state;
        struct help_cert *certs[] = {&w->ca,         &w->server_cert, &w->client_cert, &w->alien_ca,
                                     &w->alien_cert, &w->old_cert,    &w->young_cert};

        hang_up(w);
        listener_free(w->listener);
        loop_free(w->loop);
        for (size_t i = 0; i < sizeof(certs) / sizeof(*certs); i++)
                help_cert_free(certs[i]);
        help_folder_remove(w->folder);
        free(w);
        return 0;
}

/* Two ends that are not there any more would be freed by nobody: each dial begins with none. */
static void dial(struct world *w, const struct tls_config *server, const struct tls_config *client)
{
        struct err err = {""};

        hang_up(w);
        if (tls_server_new(server, &w->server_tls, &err) < 0 ||
            tls_client_new(client, &w->client_tls, &err) < 0)
                fail_msg("%s", err.text);
        w->client.s =
                stream_connect(w->loop, listener_address(w->listener), w->client_tls, NULL, &ops, &w->client);
}

static struct tls_config config(const struct help_cert *ca, const struct help_cert *cert)
{
        struct tls_config c = {.ask_client = true};

        if (ca)
                c.ca_pem = str_of(ca->cert_pem);
        if (cert) {
                c.cert_pem = str_of(cert->cert_pem);
                c.key_pem = str_of(cert->key_pem);
        }
        return c;
}

/* Runs until something was echoed, or both ends are closed. */
static void converse(struct world *w)
{
        w->server.echo = true;
        w->client.want = 2;
        stream_write(w->client.s, "hi", 2);
        while (w->client.got.n < 2 && !(w->client.closed && w->server.closed))
                help_run(w->loop);
}

static void test_both_known(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->server_cert), client = config(&w->ca, &w->client_cert);

        dial(w, &server, &client);
        converse(w);
        assert_string_equal(buf_z(&w->client.got), "hi");
        assert_string_equal(w->server.name, "n1@example");
        assert_string_equal(w->server.serial, "0ABC");
        assert_string_equal(w->client.name, "server.example");
        client.server_name = "server.example";
        dial(w, &server, &client);
        converse(w);
        assert_string_equal(buf_z(&w->client.got), "hi");
        client.server_name = "other.example";
        dial(w, &server, &client);
        converse(w);
        assert_int_equal(w->client.ready, 0);
        assert_non_null(strstr(w->client.why.text, "certificate is refused: hostname mismatch"));
}

static void test_client_without_certificate(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->server_cert), client = config(&w->ca, NULL);

        dial(w, &server, &client);
        converse(w);
        assert_string_equal(buf_z(&w->client.got), "hi");
        assert_string_equal(w->server.name, "");
        assert_string_equal(w->server.serial, "");
}

/* Whoever made it had a clock that was ahead. */
static void test_certificates_that_begin_later(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->young_cert), client = config(&w->ca, &w->young_cert);

        dial(w, &server, &client);
        converse(w);
        assert_string_equal(buf_z(&w->client.got), "hi");
        assert_string_equal(w->server.name, "n1@example");
        assert_string_equal(w->client.name, "n1@example");
}

static void test_a_certificate_is_made_anew(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->old_cert), client = config(&w->ca, &w->client_cert);
        struct tls_config fresh = config(&w->ca, &w->server_cert);

        dial(w, &server, &client);
        assert_int_equal(tls_server_renew(w->server_tls, fresh.cert_pem, client.key_pem, NULL), -EINVAL);
        assert_int_equal(tls_server_renew(w->server_tls, fresh.cert_pem, fresh.key_pem, NULL), 0);
        converse(w);
        assert_string_equal(buf_z(&w->client.got), "hi");
        assert_string_equal(w->client.name, "server.example");
}

static void test_wrong_clients(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->server_cert);
        const struct {
                const struct help_cert *cert;
                const char *server_why, *client_why;
        } cases[] = {
                {&w->alien_cert, "certificate is refused", "the peer says:"},
                {&w->alien_ca, "certificate is refused", "the peer says:"}, /* signed by itself */
                {&w->old_cert, "certificate is refused: certificate has expired", "certificate expired"},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct tls_config client = config(&w->ca, cases[i].cert);

                dial(w, &server, &client);
                converse(w);
                assert_int_equal(w->server.ready, 0);
                assert_int_equal(w->server.got.n, 0);
                if (!strstr(w->server.why.text, cases[i].server_why))
                        fail_msg("case %zu: server: %s", i, w->server.why.text);
                if (!strstr(w->client.why.text, cases[i].client_why))
                        fail_msg("case %zu: client: %s", i, w->client.why.text);
        }
}

static void test_wrong_servers(void **state)
{
        struct world *w = *state;
        struct tls_config client = config(&w->ca, &w->client_cert);
        const struct {
                const struct help_cert *cert;
                const char *why;
        } cases[] = {
                {&w->alien_cert, "certificate is refused"},
                {&w->alien_ca, "certificate is refused"},
                {&w->old_cert, "certificate is refused: certificate has expired"},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct tls_config server = config(&w->ca, cases[i].cert);

                dial(w, &server, &client);
                converse(w);
                assert_int_equal(w->client.ready, 0);
                assert_int_equal(w->server.got.n, 0);
                if (!strstr(w->client.why.text, cases[i].why))
                        fail_msg("case %zu: client: %s", i, w->client.why.text);
                assert_non_null(strstr(w->server.why.text, "the peer says:"));
        }
}

/* An agent's certificate is of our CA, but doesn't make its holder a server; nor a server's an agent. */
static void test_each_in_its_role(void **state)
{
        struct world *w = *state;
        struct help_cert agent = {0}, other = {0};
        struct tls_config server, client;

        help_cert_make_for(&agent, &w->ca, "n1@example", 7, -60, 3600, "clientAuth");
        help_cert_make_for(&other, &w->ca, "server.example", 8, -60, 3600, "serverAuth");
        server = config(&w->ca, &other);
        client = config(&w->ca, &agent);
        dial(w, &server, &client);
        converse(w);
        assert_string_equal(buf_z(&w->client.got), "hi");
        server = config(&w->ca, &agent);
        dial(w, &server, &client);
        converse(w);
        assert_int_equal(w->client.ready, 0);
        assert_non_null(strstr(w->client.why.text, "certificate is refused: unsu")); /* unsuitable purpose */
        server = config(&w->ca, &other);
        client = config(&w->ca, &other);
        dial(w, &server, &client);
        converse(w);
        assert_int_equal(w->server.ready, 0);
        hang_up(w);
        help_cert_free(&agent);
        help_cert_free(&other);
}

static void test_pinned(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->server_cert), client = config(NULL, NULL);
        BUF_CLEANUP struct buf mixed = {0};

        client.ca_fingerprint = str_of(w->ca.fingerprint);
        dial(w, &server, &client);
        converse(w);
        assert_string_equal(buf_z(&w->client.got), "hi");
        client.ca_fingerprint = str_of(w->alien_ca.fingerprint);
        dial(w, &server, &client);
        converse(w);
        assert_int_equal(w->client.ready, 0);
        assert_non_null(strstr(w->client.why.text, "not the one that was named"));
        /* somebody who shows our CA's certificate, but whose own it did not sign */
        client.ca_fingerprint = str_of(w->ca.fingerprint);
        buf_addz(&mixed, w->alien_cert.cert_pem);
        buf_addz(&mixed, w->ca.cert_pem);
        server = config(&w->ca, &w->alien_cert);
        server.cert_pem = buf_view(&mixed);
        dial(w, &server, &client);
        converse(w);
        assert_int_equal(w->client.ready, 0);
        assert_non_null(strstr(w->client.why.text, "certificate is refused"));
        /* and an expired one that it did sign */
        buf_reset(&mixed);
        buf_addz(&mixed, w->old_cert.cert_pem);
        buf_addz(&mixed, w->ca.cert_pem);
        server = config(&w->ca, &w->old_cert);
        server.cert_pem = buf_view(&mixed);
        dial(w, &server, &client);
        converse(w);
        assert_int_equal(w->client.ready, 0);
        assert_non_null(strstr(w->client.why.text, "expired"));
}

static void test_bad_configuration(void **state)
{
        struct world *w = *state;
        struct tls_config good = config(&w->ca, &w->server_cert), c;
        struct tls_context *t;
        struct err err;

        c = good;
        c.key_pem = str_of(w->client_cert.key_pem);
        assert_int_equal(tls_server_new(&c, &t, &err), -EINVAL);
        assert_non_null(strstr(err.text, "private key"));
        c = good;
        c.cert_pem = STR("nonsense");
        assert_int_equal(tls_server_new(&c, &t, &err), -EINVAL);
        c = good;
        c.ca_pem = STR("nonsense");
        assert_int_equal(tls_client_new(&c, &t, &err), -EINVAL);
        c = good;
        c.cert_pem = STR_NONE;
        assert_int_equal(tls_server_new(&c, &t, &err), -EINVAL);
        c = config(NULL, NULL);
        assert_int_equal(tls_client_new(&c, &t, &err), -EINVAL); /* nobody to believe */
        c.ca_fingerprint = STR("abc");
        assert_int_equal(tls_client_new(&c, &t, &err), -EINVAL);
}

static void test_much_both_ways(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->server_cert), client = config(&w->ca, &w->client_cert);
        MEM_CLEANUP char *much = mem_alloc(8 << 20);

        for (size_t i = 0; i < 8 << 20; i++)
                much[i] = (char)(i * 2654435761u >> 13);
        dial(w, &server, &client);
        w->server.echo = true;
        w->client.want = 8 << 20;
        for (size_t at = 0; at < 8 << 20; at += 1 << 18) {
                stream_write(w->client.s, much + at, 1 << 18);
                if (at % (1 << 20) == 0)
                        help_run_ms(w->loop, 1);
        }
        while (w->client.got.n < 8 << 20 && !w->client.closed)
                help_run(w->loop);
        assert_int_equal(w->client.got.n, 8 << 20);
        assert_memory_equal(w->client.got.p, much, 8 << 20);
}

static void test_the_end_comes_after_the_last_bytes(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->server_cert), client = config(&w->ca, &w->client_cert);
        MEM_CLEANUP char *much = mem_zalloc(1 << 20);

        for (int round = 0; round < 3; round++) {
                dial(w, &server, &client);
                while (!w->server.ready)
                        help_run_ms(w->loop, 5);
                if (round == 0) { /* politely */
                        stream_write(w->client.s, much, 1 << 20);
                        stream_finish(w->client.s);
                } else if (round == 1) { /* with a close_notify */
                        stream_write(w->client.s, much, 1000);
                        help_run_ms(w->loop, 1);
                        stream_free(w->client.s);
                        w->client.s = NULL;
                } else { /* the connection just ends */
                        struct err why = {"enough"};

                        stream_write(w->client.s, much, 1000);
                        help_run_ms(w->loop, 1);
                        stream_abort(w->client.s, &why);
                }
                while (!w->server.closed)
                        help_run(w->loop);
                assert_int_equal(w->server.got.n, round ? 1000 : 1 << 20);
                assert_string_equal(w->server.why.text, "the peer closed the connection");
        }
}

static void test_nothing_leaves_in_the_clear(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->server_cert), client = config(&w->ca, NULL);

        dial(w, &server, &client);
        tls_unref(w->server_tls); /* the server speaks no TLS and sends back what it gets: the handshake fails
                                   */
        w->server_tls = NULL;
        w->server.echo = true;
        stream_write(w->client.s, "the secret token", 16);
        while (!w->client.closed || !w->server.closed)
                help_run(w->loop);
        assert_true(w->server.got.n > 0);
        assert_true(str_search(buf_view(&w->server.got), STR("secret")) < 0);
}

static void test_garbage(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->server_cert), client = config(&w->ca, NULL);
        static const char *const garbage[] = {"GET / HTTP/1.1\r\n\r\n",
                                              "\x16\x03\x01\xff\xff\xff\xff\xff\xff\xff", "\x16\x03\x01"};

        for (size_t i = 0; i < sizeof(garbage) / sizeof(*garbage); i++) {
                dial(w, &server, &client);
                stream_free(w->client.s);
                w->client.s =
                        stream_connect(w->loop, listener_address(w->listener), NULL, NULL, &ops, &w->client);
                stream_write(w->client.s, garbage[i], strlen(garbage[i]));
                stream_finish(w->client.s);
                w->server.closed = 0;
                help_run_ms(w->loop, 20);
                stream_free(w->client.s);
                w->client.s = NULL;
                while (!w->server.closed)
                        help_run(w->loop);
                assert_int_equal(w->server.ready, 0);
                assert_non_null(strstr(w->server.why.text, "TLS handshake: "));
        }
}

static const unsigned char our_secret[TLS_SECRET_BYTES] = "the one",
                           other_secret[TLS_SECRET_BYTES] = "another";

/* The server that is killed says no goodbye; the next one is there with what it is configured with. */
static void come_back(struct world *w, const struct tls_config *server)
{
        const struct err killed = {"killed"};
        struct tls_context *kept = w->client_tls;
        struct err err = {""};

        if (w->server.s)
                stream_abort(w->server.s, &killed);
        while (w->server.s || w->client.s)
                help_run(w->loop);
        w->client_tls = NULL;
        hang_up(w);
        w->client_tls = kept;
        if (tls_server_new(server, &w->server_tls, &err) < 0)
                fail_msg("%s", err.text);
        w->client.s =
                stream_connect(w->loop, listener_address(w->listener), w->client_tls, NULL, &ops, &w->client);
}

/* Converses, so that the client has its ticket when it gets its answer. */
static void get_ticket(struct world *w)
{
        while (!w->server.ready && !w->server.closed)
                help_run_ms(w->loop, 1);
        if (w->server.s)
                stream_send_ticket(w->server.s);
        converse(w);
}

static void check_resumed(struct world *w, bool resumed)
{
        converse(w);
        assert_string_equal(buf_z(&w->client.got), "hi");
        assert_int_equal(stream_resumed(w->server.s), resumed);
        assert_int_equal(stream_resumed(w->client.s), resumed);
}

static void test_a_session_is_resumed(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->server_cert), client = config(&w->ca, &w->client_cert);

        server.ticket_secret = our_secret;
        dial(w, &server, &client);
        get_ticket(w);
        check_resumed(w, false);
        for (int i = 0; i < 3; i++) { /* without another ticket, too */
                come_back(w, &server);
                check_resumed(w, true);
                assert_string_equal(w->server.name, "n1@example");
                assert_string_equal(w->server.serial, "0ABC");
                assert_string_equal(w->client.name, "server.example");
                if (i == 1)
                        get_ticket(w);
        }
        server.ticket_secret = other_secret;
        come_back(w, &server);
        check_resumed(w, false);
        assert_string_equal(w->server.name, "n1@example");
        server.ticket_secret = NULL;
        come_back(w, &server);
        check_resumed(w, false);
}

static void test_tickets_are_for_certificates_of_our_ca(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->server_cert), client = config(&w->ca, NULL);
        struct tls_config other = config(&w->alien_ca, &w->server_cert);

        server.ticket_secret = other.ticket_secret = our_secret;
        dial(w, &server, &client);
        get_ticket(w); /* it has no certificate */
        come_back(w, &server);
        check_resumed(w, false);
        client = config(&w->ca, &w->client_cert);
        dial(w, &server, &client);
        get_ticket(w);
        come_back(w, &other);
        converse(w);
        assert_int_equal(w->server.ready, 0);
        assert_non_null(strstr(w->server.why.text, "certificate is refused"));
        come_back(w, &server);
        check_resumed(w, true);
}

static void test_a_ticket_ends_with_its_certificate(void **state)
{
        struct world *w = *state;
        struct tls_config server = config(&w->ca, &w->server_cert), client;
        struct help_cert brief = {0};
        int64_t until_ms;

        server.ticket_secret = our_secret;
        for (long life_s = 3;; life_s *= 2) { /* longer where it ends before the first handshake does */
                until_ms = clock_wall_ms() + life_s * 1000;
                help_cert_make(&brief, &w->ca, "n1@example", 6, -60, life_s);
                client = config(&w->ca, &brief);
                dial(w, &server, &client);
                get_ticket(w);
                if (w->client.got.n)
                        break;
                help_cert_free(&brief);
        }
        while (clock_wall_ms() < until_ms + 1000)
                help_run_ms(w->loop, 100);
        come_back(w, &server);
        converse(w);
        assert_int_equal(w->server.ready, 0);
        assert_non_null(strstr(w->server.why.text, "certificate has expired"));
        hang_up(w);
        help_cert_free(&brief);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_both_known, setup, teardown),
                cmocka_unit_test_setup_teardown(test_client_without_certificate, setup, teardown),
                cmocka_unit_test_setup_teardown(test_certificates_that_begin_later, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_certificate_is_made_anew, setup, teardown),
                cmocka_unit_test_setup_teardown(test_wrong_clients, setup, teardown),
                cmocka_unit_test_setup_teardown(test_wrong_servers, setup, teardown),
                cmocka_unit_test_setup_teardown(test_each_in_its_role, setup, teardown),
                cmocka_unit_test_setup_teardown(test_pinned, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bad_configuration, setup, teardown),
                cmocka_unit_test_setup_teardown(test_much_both_ways, setup, teardown),
                cmocka_unit_test_setup_teardown(test_the_end_comes_after_the_last_bytes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nothing_leaves_in_the_clear, setup, teardown),
                cmocka_unit_test_setup_teardown(test_garbage, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_session_is_resumed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_tickets_are_for_certificates_of_our_ca, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_ticket_ends_with_its_certificate, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
