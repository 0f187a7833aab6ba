/* What a manager hears, on a socket of the test's. */
#include "ev/service.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ev/test_help.h"

struct side {
        struct loop *loop;
        char *folder, path[300];
        int fd;
        unsigned count; /* WATCHDOG=1 that have come */
};

static void listen_at(struct side *s, const char *name, size_t size)
{
        struct sockaddr_un at = {.sun_family = AF_UNIX};

        memcpy(at.sun_path, name, size);
        s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_int_equal(bind(s->fd, (void *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)),
                         0);
}

static void heard(const struct side *s, const char *wanted)
{
        char text[200];
        ssize_t n = recv(s->fd, text, sizeof(text) - 1, 0);

        assert_true(n > 0);
        text[n] = '\0';
        assert_string_equal(text, wanted);
}

static int setup(void **state)
{
        struct side *s = mem_new(struct side);

        s->loop = loop_new();
        s->folder = help_folder();
        snprintf(s->path, sizeof(s->path), "%s/manager", s->folder);
        s->fd = -1;
        unsetenv("NOTIFY_SOCKET");
        unsetenv("WATCHDOG_USEC");
        unsetenv("WATCHDOG_PID");
        *state = s;
        return 0;
}

static int teardown(void **state)
{
        struct side *s = *state;

        service_close();
        loop_free(s->loop);
        if (s->fd >= 0)
                close(s->fd);
        help_folder_remove(s->folder);
        free(s);
        return 0;
}

static void test_what_is_told(void **state)
{
        struct side *s = *state;
        char text[200];
        long long when;

        listen_at(s, s->path, strlen(s->path) + 1);
        setenv("NOTIFY_SOCKET", s->path, 1);
        service_open();
        assert_null(getenv("NOTIFY_SOCKET"));
        assert_int_equal(recv(s->fd, text, sizeof(text), 0), -1);
        service_ready(s->loop);
        heard(s, "READY=1");
        service_reloading();
        ssize_t n = recv(s->fd, text, sizeof(text) - 1, 0);
        assert_true(n > 0);
        text[n] = '\0';
        assert_int_equal(sscanf(text, "RELOADING=1\nMONOTONIC_USEC=%lld", &when), 1);
        assert_true(when > 0);
        service_reloaded();
        heard(s, "READY=1");
        service_stopping();
        heard(s, "STOPPING=1");
}

static void test_a_name_that_is_no_file_s(void **state)
{
        struct side *s = *state;
        char name[100];
        int n = snprintf(name, sizeof(name), "@drover-test-%d", (int)getpid());

        setenv("NOTIFY_SOCKET", name, 1);
        name[0] = '\0';
        listen_at(s, name, (size_t)n);
        service_open();
        service_stopping();
        heard(s, "STOPPING=1");
}

static void on_manager(void *arg, int what)
{
        struct side *s = arg;

        (void)what;
        heard(s, "WATCHDOG=1");
        if (++s->count == 3)
                loop_stop(s->loop);
}

/* While the loop turns, and only if this process is the one that is watched. */
static void test_that_the_loop_turns(void **state)
{
        struct side *s = *state;
        char pid[20];

        listen_at(s, s->path, strlen(s->path) + 1);
        snprintf(pid, sizeof(pid), "%d", (int)getpid());
        setenv("NOTIFY_SOCKET", s->path, 1);
        setenv("WATCHDOG_USEC", "20000", 1);
        setenv("WATCHDOG_PID", pid, 1);
        service_open();
        assert_null(getenv("WATCHDOG_USEC"));
        assert_null(getenv("WATCHDOG_PID"));
        service_ready(s->loop);
        heard(s, "READY=1");
        struct watch *w = watch_new(s->loop, s->fd, WATCH_READ, on_manager, s);
        help_run(s->loop);
        watch_free(w);
        service_close();
        while (recv(s->fd, pid, sizeof(pid), 0) > 0)
                continue;
        setenv("NOTIFY_SOCKET", s->path, 1);
        setenv("WATCHDOG_USEC", "1", 1);
        setenv("WATCHDOG_PID", "1", 1);
        service_open();
        service_ready(s->loop);
        heard(s, "READY=1");
        loop_stop(s->loop);
        loop_run(s->loop);
        assert_int_equal(recv(s->fd, pid, sizeof(pid), 0), -1);
}

/* Nobody listens, the name is none, the manager does not read: no call fails, and none waits. */
static void test_bad_managers(void **state)
{
        static const char *const names[] = {"", "@", "relative", "/nowhere/at/all", "vsock:2:3"};
        struct side *s = *state;
        char longest[400];

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                setenv("NOTIFY_SOCKET", names[i], 1);
                setenv("WATCHDOG_USEC", i ? "99999999999999999999999" : "x", 1);
                service_open();
                service_ready(s->loop);
                service_close();
        }
        memset(longest, 'a', sizeof(longest));
        longest[0] = '/';
        longest[sizeof(longest) - 1] = '\0';
        setenv("NOTIFY_SOCKET", longest, 1);
        service_open();
        service_stopping();
        listen_at(s, s->path, strlen(s->path) + 1);
        setenv("NOTIFY_SOCKET", s->path, 1);
        service_open();
        for (unsigned i = 0; i < 100000; i++) /* far more than its socket keeps */
                service_stopping();
        heard(s, "STOPPING=1");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_what_is_told, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_name_that_is_no_file_s, setup, teardown),
                cmocka_unit_test_setup_teardown(test_that_the_loop_turns, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bad_managers, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
