#include "ev/service.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "base/system/clock.h"

static struct sockaddr_un manager;
static size_t manager_size; /* 0: there is none */
static uint64_t alive_us;   /* 0: it does not ask */
static struct timer *alive;

static uint64_t take_number(const char *name)
{
        const char *text = getenv(name);
        uint64_t n = 0;

        if (!text || str_to_u64(str_of(text), &n) != 0)
                n = 0;
        unsetenv(name);
        return n;
}

void service_open(void)
{
        const char *path = getenv("NOTIFY_SOCKET");
        size_t n = path ? strlen(path) : 0;
        uint64_t pid = take_number("WATCHDOG_PID");

        alive_us = take_number("WATCHDOG_USEC");
        if (pid && pid != (uint64_t)getpid())
                alive_us = 0;
        manager_size = 0;
        if (n > 1 && n < sizeof(manager.sun_path) && strchr("/@", *path)) {
                manager = (struct sockaddr_un){.sun_family = AF_UNIX};
                memcpy(manager.sun_path, path, n);
                if (*path == '@') /* a name that is no file's */
                        manager.sun_path[0] = '\0';
                manager_size = offsetof(struct sockaddr_un, sun_path) + n;
        }
        unsetenv("NOTIFY_SOCKET");
}

/* A manager that does not read is not waited for. */
static void tell_manager(const char *state)
{
        int fd = manager_size ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;

        if (fd < 0)
                return;
        (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                      (const struct sockaddr *)&manager, (socklen_t)manager_size);
        close(fd);
}

void service_waiting(const char *why)
{
        char text[200];

        snprintf(text, sizeof(text), "READY=1\nSTATUS=%s", why);
        tell_manager(text);
}

static void on_alive(void *arg)
{
        uint64_t ms = alive_us / 2000;

        (void)arg;
        tell_manager("WATCHDOG=1");
        timer_start(alive, ms < 1 ? 1 : ms > INT32_MAX ? INT32_MAX : (int64_t)ms);
}

void service_ready(struct loop *l)
{
        tell_manager("READY=1");
        if (!manager_size || !alive_us)
                return;
        alive = timer_new(l, on_alive, NULL);
        timer_start(alive, 0);
}

void service_reloading(void)
{
        char state[80];

        snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%lld",
                 (long long)(clock_mono_ns() / 1000));
        tell_manager(state);
}

void service_reloaded(void)
{
        tell_manager("READY=1");
}

void service_stopping(void)
{
        tell_manager("STOPPING=1");
}

void service_close(void)
{
        timer_free(alive);
        alive = NULL;
}
