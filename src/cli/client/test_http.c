/* The client against a server of one thread that plays lines: what is sent, in which pieces, and when it
 * closes. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/client/http.h"

#define PAUSE "\001" /* in a play: send what stands before on its own */
#define CLOSE "\002" /* close the connection, and accept another */

static char path[108];
static struct {
        int listener;
        const char *play; /* one answer for each request */
        struct buf heard;
} server;

/* Reads one request, whose body is what its Content-Length says. */
static bool hear(int fd)
{
        size_t from = server.heard.n;
        char bytes[4096];

        for (;;) {
                struct str text = str_skip(buf_view(&server.heard), from);
                ptrdiff_t end = str_search(text, STR("\r\n\r\n")), length = str_search(text, STR("Length: "));
                int64_t body = 0;
                ssize_t n;

                if (end >= 0 && length >= 0 && length < end) {
                        struct str rest = str_skip(text, (size_t)length + 8), number;

                        str_cut(&rest, '\r', &number);
                        str_to_i64(number, &body);
                }
                if (end >= 0 && text.n >= (size_t)end + 4 + (size_t)body)
                        return true;
                n = read(fd, bytes, sizeof(bytes));
                if (n <= 0)
                        return false;
                buf_add(&server.heard, bytes, (size_t)n);
        }
}

static void *serve(void *arg)
{
        const char *p = server.play;
        int fd = accept(server.listener, NULL, NULL);

        (void)arg;
        while (*p && hear(fd)) {
                while (*p && *p != '\003') {
                        size_t n = strcspn(p, "\001\002\003");

                        send(fd, p, n, MSG_NOSIGNAL);
                        p += n;
                        if (*p == '\001') {
                                usleep(1000);
                                p++;
                        } else if (*p == '\002') {
                                close(fd);
                                p++;
                                fd = *p ? accept(server.listener, NULL, NULL) : -1;
                                break;
                        }
                }
                if (*p == '\003')
                        p++;
        }
        /* Silent, but there, until the client goes. */
        while (fd >= 0 && recv(fd, &(char){0}, 1, 0) > 0)
                ;
        if (fd >= 0)
                close(fd);
        return NULL;
}

static pthread_t start(const char *play)
{
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        pthread_t thread;

        snprintf(path, sizeof(path), "/tmp/drover-test-http-%d", (int)getpid());
        unlink(path);
        memcpy(a.sun_path, path, sizeof(path));
        server.play = play;
        buf_reset(&server.heard);
        server.listener = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(bind(server.listener, (struct sockaddr *)&a, sizeof(a)), 0);
        assert_int_equal(listen(server.listener, 5), 0);
        assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
        return thread;
}

static void end(pthread_t thread, struct http *h)
{
        http_free(h);
        pthread_join(thread, NULL);
        close(server.listener);
        unlink(path);
}

static const struct http_request get = {.method = "GET", .path = "/x", .timeout_ms = 5000, .fd = -1};

static void by_length_and_in_chunks(void **state)
{
        pthread_t t = start("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel" PAUSE "lo\003"
                            "HTTP/1.1 404 No\r" PAUSE "\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r" PAUSE
                            "\n0a\r\n0123456789\r\n0\r\n\r\n\003"
                            "HTTP/1.1 204 OK\r\n\r\n\003");
        struct http *h = http_new(path);
        struct http_answer a;
        struct err err;

        (void)state;
        assert_int_equal(http_call(h, &get, &a, &err), 0);
        assert_int_equal(a.status, 200);
        assert_string_equal(buf_z(&a.body), "hello");
        http_answer_deinit(&a);
        assert_int_equal(http_call(h, &get, &a, &err), 0);
        assert_int_equal(a.status, 404);
        assert_string_equal(buf_z(&a.body), "abc0123456789");
        http_answer_deinit(&a);
        assert_int_equal(
                http_call(h,
                          &(struct http_request){.method = "POST", .path = "/y", .body = STR("{}"), .fd = -1},
                          &a, &err),
                0);
        assert_int_equal(a.status, 204);
        http_answer_deinit(&a);
        end(t, h);
        assert_non_null(strstr(buf_z(&server.heard),
                               "POST /y HTTP/1.1\r\nHost: drover\r\n"
                               "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"));
        buf_deinit(&server.heard);
}

static void a_closed_connection_is_opened_again(void **state)
{
        pthread_t t = start("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na" CLOSE
                            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end" CLOSE);
        struct http *h = http_new(path);
        struct http_answer a;
        struct err err;

        (void)state;
        assert_int_equal(http_call(h, &get, &a, &err), 0);
        http_answer_deinit(&a);
        usleep(20000); /* the close arrives */
        assert_int_equal(http_call(h, &get, &a, &err), 0);
        assert_string_equal(buf_z(&a.body), "to the end");
        http_answer_deinit(&a);
        end(t, h);
        buf_deinit(&server.heard);
}

static void breaks_are_told(void **state)
{
        static const struct {
                const char *play;
                int rc;
        } rows[] = {
                {CLOSE, HTTP_LOST},
                {"HTTP/1.1 200 OK\r\nContent-Len" CLOSE, HTTP_LOST},
                {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort" CLOSE, HTTP_LOST},
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n" CLOSE, HTTP_LOST},
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nshort\r\n\003", HTTP_GARBLED},
                {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n\003", HTTP_GARBLED},
                {"SSH-2.0-OpenSSH_9.2\r\n\r\n\003", HTTP_GARBLED}};

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                pthread_t t = start(rows[i].play);
                struct http *h = http_new(path);
                struct http_answer a;
                struct err err = {""};

                assert_int_equal(http_call(h, &get, &a, &err), rows[i].rc);
                assert_true(err.text[0]);
                http_answer_deinit(&a);
                end(t, h);
        }
        buf_deinit(&server.heard);
}

static void silence_has_an_end(void **state)
{
        pthread_t t = start("HTTP/1.1 200 OK\r\n" PAUSE "\003");
        struct http *h = http_new(path);
        struct http_answer a;
        struct err err;

        (void)state;
        assert_int_equal(
                http_call(h, &(struct http_request){.method = "GET", .path = "/", .timeout_ms = 30, .fd = -1},
                          &a, &err),
                HTTP_TIMEOUT);
        http_answer_deinit(&a);
        end(t, h);
        buf_deinit(&server.heard);
}

static void nobody_there(void **state)
{
        struct http *h = http_new("/nonexistent/api.sock");
        struct http_answer a;
        struct err err;

        (void)state;
        assert_int_equal(http_call(h, &get, &a, &err), HTTP_NO_SERVER);
        http_answer_deinit(&a);
        http_free(h);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(by_length_and_in_chunks),
                cmocka_unit_test(a_closed_connection_is_opened_again), cmocka_unit_test(breaks_are_told),
                cmocka_unit_test(silence_has_an_end), cmocka_unit_test(nobody_there)};

        return cmocka_run_group_tests_name("cli http", tests, NULL, NULL);
}
