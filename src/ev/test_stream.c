#include "ev/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "ev/test_help.h"

/* One end of a connection, with what happened to it. */
struct end {
        struct loop *loop;
        struct stream *s;
        struct buf got;
        int ready, drained, closed;
        struct err why;
        size_t want; /* stop the loop when so many bytes have come */
        bool echo, hold, free_in_data, free_in_ready, stop_on_close, stop_on_ready;
        char peer_name[64], peer_serial[64];
};
struct world {
        struct loop *loop;
        char *folder;
        struct buf address;
        struct listener *listener;
        struct tls_context *tls;
        struct stream_limits limits; /* of the accepted end */
        struct end server, client;
        int accepted;
};

static void end_ready(void *arg, struct stream *s)
{
        struct end *e = arg;
        struct str name = stream_peer_name(s), serial = stream_peer_serial(s);

        e->ready++;
        snprintf(e->peer_name, sizeof(e->peer_name), STR_FMT, STR_ARG(name));
        snprintf(e->peer_serial, sizeof(e->peer_serial), STR_FMT, STR_ARG(serial));
        if (e->free_in_ready) {
                stream_free(s);
                e->s = NULL;
        }
        if (e->stop_on_ready)
                loop_stop(e->loop);
}

static void end_data(void *arg, struct stream *s, struct buf *in)
{
        struct end *e = arg;

        if (e->free_in_data) {
                stream_free(s);
                e->s = NULL;
                return;
        }
        if (e->hold)
                return;
        if (e->echo)
                stream_write(s, in->p, in->n);
        buf_add(&e->got, in->p, in->n);
        buf_consume(in, in->n);
        if (e->want && e->got.n >= e->want)
                loop_stop(e->loop);
}

static void end_drained(void *arg, struct stream *s)
{
        struct end *e = arg;

        assert_int_equal(stream_pending(s), 0);
        e->drained++;
}

static void end_closed(void *arg, struct stream *s, const struct err *why)
{
        struct end *e = arg;

        assert_ptr_equal(s, e->s);
        e->closed++;
        e->why = *why;
        stream_free(s);
        e->s = NULL;
        if (e->stop_on_close)
                loop_stop(e->loop);
}

static const struct stream_ops end_ops = {end_ready, end_data, end_drained, end_closed};

static void world_accepted(void *arg, int fd)
{
        struct world *w = arg;

        assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        w->accepted++;
        if (w->server.s) {
                close(fd);
                return;
        }
        w->server.s = stream_accept(w->loop, fd, w->tls, &w->limits, &end_ops, &w->server);
}

static void world_listen(struct world *w, const char *address)
{
        struct err err;

        if (address)
                buf_addz(&w->address, address);
        else
                buf_printf(&w->address, "unix:%s/s", w->folder);
        assert_int_equal(
                listener_new(w->loop, buf_z(&w->address), 0600, world_accepted, w, &w->listener, &err), 0);
}

static struct stream *world_connect(struct world *w, struct tls_context *tls)
{
        struct stream_limits limits = {.handshake_ms = 5000};

        w->client.s =
                stream_connect(w->loop, listener_address(w->listener), tls, &limits, &end_ops, &w->client);
        return w->client.s;
}

static int setup(void **state)
{
        struct world *w = mem_new(struct world);

        w->loop = loop_new();
        w->folder = help_folder();
        w->server.loop = w->client.loop = w->loop;
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        stream_free(w->server.s);
        stream_free(w->client.s);
        listener_free(w->listener);
        tls_unref(w->tls);
        loop_free(w->loop);
        buf_deinit(&w->server.got);
        buf_deinit(&w->client.got);
        buf_deinit(&w->address);
        help_folder_remove(w->folder);
        free(w);
        return 0;
}

static void test_echo(void **state)
{
        struct world *w = *state;
        uid_t uid = 0;
        pid_t pid = 0;

        world_listen(w, NULL);
        w->server.echo = true;
        w->client.want = 10;
        world_connect(w, NULL);
        stream_write(w->client.s, "hello", 5); /* before it is connected */
        stream_write(w->client.s, "world", 5);
        help_run(w->loop);
        assert_string_equal(buf_z(&w->client.got), "helloworld");
        assert_int_equal(w->client.ready, 1);
        assert_int_equal(w->server.ready, 1);
        assert_int_equal(stream_peer_uid(w->server.s, &uid, &pid), 0);
        assert_int_equal(uid, getuid());
        assert_int_equal(pid, getpid());
        assert_true(str_starts(stream_peer(w->server.s), STR("unix uid=")));
        assert_int_equal(stream_peer_name(w->server.s).n, 0);
}

static void test_echo_tcp(void **state)
{
        struct world *w = *state;
        uid_t uid;

        world_listen(w, "127.0.0.1:0");
        w->server.echo = true;
        w->client.want = 5;
        world_connect(w, NULL);
        stream_write(w->client.s, "hello", 5);
        help_run(w->loop);
        assert_true(str_starts(stream_peer(w->server.s), STR("127.0.0.1:")));
        assert_int_equal(stream_peer_uid(w->server.s, &uid, NULL), -ENOTSUP);
}

static void test_host_name(void **state)
{
        struct world *w = *state;
        BUF_CLEANUP struct buf address = {0};

        world_listen(w, "127.0.0.1:0");
        buf_printf(&address, "localhost%s", strrchr(listener_address(w->listener), ':'));
        w->client.want = 1;
        w->server.echo = true;
        w->client.s = stream_connect(w->loop, buf_z(&address), NULL, NULL, &end_ops, &w->client);
        stream_write(w->client.s, "x", 1);
        help_run(w->loop);
        assert_int_equal(w->client.ready, 1);
}

static void test_cannot_connect(void **state)
{
        struct world *w = *state;
        static const char *const bad[] = {
                "unix:/nowhere/at/all",   "127.0.0.1:1", "127.0.0.1", "a:b:c", "::1:80", "127.0.0.1:99999",
                "no-such-host.invalid:80"};
        char longer[200] = "unix:/";

        w->client.stop_on_close = true;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                w->client.s = stream_connect(w->loop, bad[i], NULL, NULL, &end_ops, &w->client);
                assert_int_equal(w->client.closed, i); /* never at once */
                stream_write(w->client.s, "x", 1);
                help_run(w->loop);
                assert_int_equal(w->client.closed, i + 1);
                assert_true(strlen(w->client.why.text) > 10);
        }
        memset(longer + 6, 'x', 150);
        w->client.s = stream_connect(w->loop, longer, NULL, NULL, &end_ops, &w->client);
        help_run(w->loop);
        assert_non_null(strstr(w->client.why.text, "107"));
        assert_int_equal(w->client.ready, 0);
        /* freed while a name is looked up, and while connecting */
        stream_free(stream_connect(w->loop, "no-such-host.invalid:80", NULL, NULL, &end_ops, &w->client));
        stream_free(stream_connect(w->loop, "192.0.2.1:80", NULL, NULL, &end_ops, &w->client));
        help_run_ms(w->loop, 50);
}

static void test_last_bytes_come_before_the_end(void **state)
{
        struct world *w = *state;

        world_listen(w, NULL);
        w->client.stop_on_close = true;
        w->server.hold = false;
        w->server.stop_on_ready = true;
        world_connect(w, NULL);
        help_run(w->loop);
        /* the client sends what nobody reads in time: closing must not take back what the server said last */
        stream_write(w->client.s, "unread", 6);
        stream_write(w->server.s, "goodbye", 7);
        stream_finish(w->server.s);
        stream_write(w->server.s, "ignored", 7);
        help_run(w->loop);
        assert_string_equal(buf_z(&w->client.got), "goodbye");
        assert_string_equal(w->client.why.text, "the peer closed the connection");
        help_run_ms(w->loop, 50);
        assert_int_equal(w->server.closed, 1);
        assert_string_equal(w->server.why.text, "closed by us");
}

static void test_reading_stops_at_read_max(void **state)
{
        struct world *w = *state;
        MEM_CLEANUP char *much = mem_zalloc(4 << 20);

        w->limits.read_max = 10000;
        w->limits.silence_ms = 100; /* does not count while we don't listen */
        w->server.hold = true;
        world_listen(w, NULL);
        world_connect(w, NULL);
        stream_write(w->client.s, much, 4 << 20);
        help_run_ms(w->loop, 300);
        assert_int_equal(w->server.closed, 0);
        assert_true(stream_pending(w->client.s) > 2 << 20); /* the rest stays with the sender */
        w->server.hold = false;
        w->server.want = (4 << 20) - 10000;
        stream_resume(w->server.s); /* nothing was consumed: nothing comes */
        help_run_ms(w->loop, 50);
        assert_int_equal(w->server.got.n, 0);
}

static void test_slow_reader_is_closed(void **state)
{
        struct world *w = *state;
        MEM_CLEANUP char *much = mem_zalloc(1 << 20);

        w->limits.write_max = 2 << 20;
        world_listen(w, NULL);
        w->server.stop_on_ready = true;
        world_connect(w, NULL);
        help_run(w->loop);
        w->client.hold = true;
        for (int i = 0; i < 100; i++) {
                stream_write(w->server.s, much, 1 << 20);
                assert_true(stream_pending(w->server.s) <= 2 << 20);
        }
        assert_int_equal(w->server.closed, 0); /* not from within stream_write */
        w->server.stop_on_close = true;
        help_run(w->loop);
        assert_non_null(strstr(w->server.why.text, "peer too slow"));
}

static void test_drained(void **state)
{
        struct world *w = *state;
        MEM_CLEANUP char *much = mem_zalloc(8 << 20);

        world_listen(w, NULL);
        w->client.want = 8 << 20;
        world_connect(w, NULL);
        w->server.stop_on_ready = true;
        help_run(w->loop);
        assert_int_equal(w->server.drained, 0);
        stream_write(w->server.s, much, 8 << 20);
        help_run(w->loop);
        help_run_ms(w->loop, 20);
        assert_int_equal(w->client.got.n, 8 << 20);
        assert_int_equal(w->server.drained, 1);
}

static void test_freed_in_callbacks(void **state)
{
        struct world *w = *state;

        world_listen(w, NULL);
        w->server.free_in_data = true;
        w->client.stop_on_close = true;
        world_connect(w, NULL);
        stream_write(w->client.s, "x", 1);
        help_run(w->loop);
        assert_null(w->server.s);
        w->server.free_in_data = false;
        w->server.free_in_ready = true;
        world_connect(w, NULL);
        help_run(w->loop);
        assert_int_equal(w->server.closed, 0); /* a freed stream says nothing */
        assert_int_equal(w->client.closed, 2);
}

static void test_last_word_before_free(void **state)
{
        struct world *w = *state;

        world_listen(w, NULL);
        w->client.stop_on_close = true;
        w->server.stop_on_ready = true;
        world_connect(w, NULL);
        help_run(w->loop);
        stream_write(w->server.s, "goodbye", 7);
        stream_free(w->server.s);
        w->server.s = NULL;
        help_run(w->loop);
        assert_string_equal(buf_z(&w->client.got), "goodbye");
}

static void test_silence(void **state)
{
        struct world *w = *state;

        w->limits.silence_ms = 60;
        world_listen(w, NULL);
        w->server.stop_on_close = true;
        world_connect(w, NULL);
        help_run(w->loop);
        assert_non_null(strstr(w->server.why.text, "silent"));
        assert_int_equal(w->client.closed + w->server.closed, 1);
}

static void test_handshake_limit(void **state)
{
        struct world *w = *state;
        struct help_cert ca = {0}, cert = {0};
        struct tls_config config = {0};
        struct err err;

        help_cert_make(&ca, NULL, "ca", 1, -60, 3600);
        help_cert_make(&cert, &ca, "server", 2, -60, 3600);
        config.cert_pem = str_of(cert.cert_pem);
        config.key_pem = str_of(cert.key_pem);
        assert_int_equal(tls_server_new(&config, &w->tls, &err), 0);
        w->limits.handshake_ms = 60;
        world_listen(w, NULL);
        w->server.stop_on_close = true;
        world_connect(w, NULL); /* speaks no TLS: says nothing */
        help_run(w->loop);
        assert_non_null(strstr(w->server.why.text, "no answer in time"));
        assert_int_equal(w->server.ready, 0);
        help_cert_free(&ca);
        help_cert_free(&cert);
}

static void test_unix_path(void **state)
{
        struct world *w = *state;
        struct listener *second;
        struct stat st;
        struct err err;
        BUF_CLEANUP struct buf path = {0};
        int fd;

        world_listen(w, NULL);
        buf_str(&path, str_skip(buf_view(&w->address), 5));
        assert_int_equal(stat(buf_z(&path), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(listener_new(w->loop, buf_z(&w->address), 0600, world_accepted, w, &second, &err),
                         -EADDRINUSE);
        /* a socket that nobody listens on any more is replaced, and the old one's end doesn't remove the new
         */
        assert_int_equal(unlink(buf_z(&path)), 0);
        assert_int_equal(listener_new(w->loop, buf_z(&w->address), 0666, world_accepted, w, &second, &err),
                         0);
        listener_free(w->listener);
        w->listener = second;
        assert_int_equal(stat(buf_z(&path), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0666);
        listener_free(w->listener);
        w->listener = NULL;
        assert_int_equal(stat(buf_z(&path), &st), -1);
        fd = open(buf_z(&path), O_CREAT | O_WRONLY, 0600);
        close(fd);
        assert_int_equal(listener_new(w->loop, buf_z(&w->address), 0600, world_accepted, w, &second, &err),
                         -EADDRINUSE);
        assert_non_null(strstr(err.text, "not a socket"));
        unlink(buf_z(&path));
        /* what a killed server leaves behind */
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        snprintf(at.sun_path, sizeof(at.sun_path), "%s", buf_z(&path));
        assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
        close(fd);
        assert_int_equal(
                listener_new(w->loop, buf_z(&w->address), 0600, world_accepted, w, &w->listener, &err), 0);
}

static void test_out_of_descriptors(void **state)
{
        struct world *w = *state;
        struct rlimit before, low;
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), used = dup(fd);
        struct timespec cpu0, cpu1;
        int64_t spent_ms;

        world_listen(w, NULL);
        snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", w->folder);
        help_run_ms(w->loop, 1);
        struct timer *t = timer_new(w->loop, NULL, NULL);
        timer_free(t);
        getrlimit(RLIMIT_NOFILE, &before);
        low = before;
        low.rlim_cur = used; /* nothing above may be opened */
        assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
        setrlimit(RLIMIT_NOFILE, &low);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu0);
        help_run_ms(w->loop, 500);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu1);
        setrlimit(RLIMIT_NOFILE, &before);
        spent_ms = (cpu1.tv_sec - cpu0.tv_sec) * 1000 + (cpu1.tv_nsec - cpu0.tv_nsec) / 1000000;
        assert_int_equal(w->accepted, 0);
        assert_true(spent_ms < 250); /* it did not spin */
        help_run_ms(w->loop, 300);
        assert_int_equal(w->accepted, 1);
        close(fd);
        close(used);
}

static void test_no_descriptor_to_dial_with(void **state)
{
        struct world *w = *state;
        static const char *const addresses[] = {"unix:/tmp/x", "127.0.0.1:80", "localhost:80"};
        struct rlimit before, none;

        w->client.stop_on_close = true;
        getrlimit(RLIMIT_NOFILE, &before);
        none = before;
        none.rlim_cur = 3;
        setrlimit(RLIMIT_NOFILE, &none);
        for (int i = 0; i < 3; i++) {
                w->client.s = stream_connect(w->loop, addresses[i], NULL, NULL, &end_ops, &w->client);
                help_run(w->loop);
                assert_int_equal(w->client.closed, i + 1);
                assert_non_null(strstr(w->client.why.text, "Too many open files"));
        }
        stream_free(stream_connect(w->loop, addresses[2], NULL, NULL, &end_ops, &w->client));
        help_run_ms(w->loop, 5);
        setrlimit(RLIMIT_NOFILE, &before);
        assert_int_equal(w->client.closed, 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_echo, setup, teardown),
                cmocka_unit_test_setup_teardown(test_echo_tcp, setup, teardown),
                cmocka_unit_test_setup_teardown(test_host_name, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cannot_connect, setup, teardown),
                cmocka_unit_test_setup_teardown(test_last_bytes_come_before_the_end, setup, teardown),
                cmocka_unit_test_setup_teardown(test_reading_stops_at_read_max, setup, teardown),
                cmocka_unit_test_setup_teardown(test_slow_reader_is_closed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_drained, setup, teardown),
                cmocka_unit_test_setup_teardown(test_freed_in_callbacks, setup, teardown),
                cmocka_unit_test_setup_teardown(test_last_word_before_free, setup, teardown),
                cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
                cmocka_unit_test_setup_teardown(test_handshake_limit, setup, teardown),
                cmocka_unit_test_setup_teardown(test_unix_path, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_descriptor_to_dial_with, setup, teardown),
                cmocka_unit_test_setup_teardown(test_out_of_descriptors, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
