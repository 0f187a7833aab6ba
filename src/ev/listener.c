/* Listening sockets. When the process is out of descriptors, accepting pauses and is tried again, rather than
 * spinning on a socket that stays readable. */
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "ev/resolve.h"
#include "ev/stream.h"

#define ACCEPT_TURN 64   /* connections taken before others have their turn */
#define PAUSE_MS    100  /* after accept() failed for want of something */
#define BACKLOG     4096 /* the kernel takes less where net.core.somaxconn says so */

struct listener {
        int fd;
        struct watch *watch;
        struct timer *resume;
        listener_fn *fn;
        void *arg;
        struct buf address;
        char *path; /* of a unix socket */
        dev_t dev;
        ino_t ino;
        bool accepting, gone; /* listener_readable runs; freed meanwhile */
};

static void listener_resumed(void *arg)
{
        struct listener *l = arg;

        watch_set(l->watch, WATCH_READ);
}

static void listener_readable(void *arg, int what)
{
        struct listener *l = arg;

        (void)what;
        l->accepting = true;
        for (int i = 0; i < ACCEPT_TURN && !l->gone; i++) {
                int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (fd >= 0) {
                        l->fn(l->arg, fd);
                } else if (errno == EAGAIN) {
                        break;
                } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                        watch_set(l->watch, 0);
                        timer_start(l->resume, PAUSE_MS);
                        break;
                } /* else it was that connection's fault, see accept(2): try the next */
        }
        l->accepting = false;
        if (l->gone)
                free(l);
}

/* 0: the path is free now; -EADDRINUSE: somebody answers on it, or it isn't a socket. */
static int listener_clear_path(const struct sockaddr_un *at, struct err *err)
{
        struct stat st;
        int fd, r;

        if (lstat(at->sun_path, &st) < 0)
                return 0;
        if (!S_ISSOCK(st.st_mode))
                return err_set(err, -EADDRINUSE, "%s is there and is not a socket", at->sun_path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
        r = connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 ? 0 : errno;
        close(fd);
        if (r == 0 || r == EAGAIN || r == EACCES) /* EAGAIN: its queue is full */
                return err_set(err, -EADDRINUSE, "%s is in use by another process", at->sun_path);
        if (unlink(at->sun_path) < 0 && errno != ENOENT)
                return err_set(err, -errno, "cannot replace %s: %s", at->sun_path, strerror(errno));
        return 0;
}

static int listener_open_unix(struct listener *l, const char *path, mode_t mode, struct err *err)
{
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        struct stat st;
        int r;

        if (!*path || strlen(path) >= sizeof(at.sun_path))
                return err_set(err, -ENAMETOOLONG, "%s: the path of a unix socket may have 107 bytes", path);
        memcpy(at.sun_path, path, strlen(path) + 1);
        r = listener_clear_path(&at, err);
        if (r < 0)
                return r;
        l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (l->fd < 0)
                return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
        if (bind(l->fd, (struct sockaddr *)&at, sizeof(at)) < 0)
                return err_set(err, -errno, "cannot listen on %s: %s", path, strerror(errno));
        l->path = mem_dupz(path);
        /* nobody can connect before listen(), so the mode is right from the first connection */
        if (chmod(path, mode) < 0 || lstat(path, &st) < 0 || listen(l->fd, BACKLOG) < 0)
                return err_set(err, -errno, "cannot listen on %s: %s", path, strerror(errno));
        l->dev = st.st_dev;
        l->ino = st.st_ino;
        buf_printf(&l->address, "unix:%s", path);
        return 0;
}

static int listener_try(struct listener *l, const struct addrinfo *a)
{
        int one = 1;
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return -errno;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
                int r = -errno;

                close(fd);
                return r;
        }
        l->fd = fd;
        return 0;
}

static void listener_tell_address(struct listener *l)
{
        struct sockaddr_storage at;
        socklen_t size = sizeof(at);
        char host[INET6_ADDRSTRLEN + 24], port[8];

        if (getsockname(l->fd, (struct sockaddr *)&at, &size) == 0 &&
            getnameinfo((struct sockaddr *)&at, size, host, sizeof(host), port, sizeof(port),
                        NI_NUMERICHOST | NI_NUMERICSERV) == 0)
                buf_printf(&l->address, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

/* A server looks its own name up while it starts: that may block. */
static int listener_open_tcp(struct listener *l, const char *address, struct err *err)
{
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
        struct addrinfo *list = NULL;
        MEM_CLEANUP char *host = NULL;
        MEM_CLEANUP char *port = NULL;
        int r = resolve_split(address, &host, &port, err);

        if (r < 0)
                return r;
        r = getaddrinfo(strcmp(host, "*") == 0 ? NULL : host, port, &hints, &list);
        if (r)
                return err_set(err, -EADDRNOTAVAIL, "cannot listen on %s: %s", address, gai_strerror(r));
        r = -EADDRNOTAVAIL;
        for (struct addrinfo *a = list; a && r < 0; a = a->ai_next)
                r = listener_try(l, a);
        freeaddrinfo(list);
        if (r < 0)
                return err_set(err, r, "cannot listen on %s: %s", address, strerror(-r));
        listener_tell_address(l);
        return 0;
}

int listener_new(struct loop *loop, const char *address, mode_t mode, listener_fn *fn, void *arg,
                 struct listener **ret, struct err *err)
{
        struct listener *l = mem_new(struct listener);
        int r;

        l->fd = -1;
        l->fn = fn;
        l->arg = arg;
        if (strncmp(address, "unix:", 5) == 0)
                r = listener_open_unix(l, address + 5, mode, err);
        else
                r = listener_open_tcp(l, address, err);
        if (r < 0) {
                listener_free(l);
                return r;
        }
        l->watch = watch_new(loop, l->fd, WATCH_READ, listener_readable, l);
        l->resume = timer_new(loop, listener_resumed, l);
        buf_z(&l->address);
        *ret = l;
        return 0;
}

const char *listener_address(const struct listener *l)
{
        return l->address.p;
}

void listener_free(struct listener *l)
{
        struct stat st;

        if (!l)
                return;
        assert(!l->gone);
        timer_free(l->resume);
        watch_free(l->watch);
        if (l->fd >= 0)
                close(l->fd);
        /* only our own: another server may have replaced it */
        if (l->path && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
                unlink(l->path);
        free(l->path);
        buf_deinit(&l->address);
        l->gone = true;
        if (!l->accepting)
                free(l);
}
