#include "agent/attempt/console.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

#define SIZE_MAX_CELLS 10000

struct console {
        struct console_config config;
        int fd;              /* -1: the command has closed its end */
        struct watch *watch; /* NULL with it */
        struct buf in, out;
        uint64_t taken;   /* bytes of input */
        uint64_t dropped; /* bytes of output in front of `out` */
        bool input_ends;  /* the input ends after `in` */
        bool unopened;    /* no process had the terminal open at the last check */
        bool ended;       /* the command has */
};

static void close_end(struct console *c)
{
        watch_free(c->watch);
        c->watch = NULL;
        if (c->fd >= 0)
                close(c->fd);
        c->fd = -1;
        buf_reset(&c->in);
}

static void set_watch(struct console *c)
{
        int what = c->in.n ? WATCH_WRITE : 0;

        if (c->config.terminal && c->out.n < CONSOLE_MOST && !c->unopened)
                what |= WATCH_READ;
        if (c->watch)
                watch_set(c->watch, what);
}

static bool is_passing(int error)
{
        return error == EAGAIN || error == EINTR;
}

static void write_input(struct console *c)
{
        ssize_t n = c->in.n ? write(c->fd, c->in.p, c->in.n) : 0;

        if (n > 0)
                buf_consume(&c->in, (size_t)n);
        else if (n < 0 && !is_passing(errno))
                close_end(c);
        if (c->fd >= 0 && c->input_ends && !c->in.n && !c->config.terminal)
                close_end(c);
}

/* Reading fails with EIO while no process has the terminal open. That is no end: a command that is about to
 * exit has closed its streams, and would be ended by the hangup; another one opens /dev/tty again. */
static void read_output(struct console *c)
{
        while (c->fd >= 0 && c->out.n < CONSOLE_MOST) {
                size_t room = CONSOLE_MOST - c->out.n;
                ssize_t n = read(c->fd, buf_room(&c->out, room), room);

                if (n > 0)
                        c->out.n += (size_t)n;
                else if (n < 0 && errno == EINTR)
                        continue;
                else if (c->ended)
                        close_end(c);
                else {
                        c->unopened = n < 0 && errno == EIO;
                        return;
                }
        }
}

static void console_on_ready(void *arg, int what)
{
        struct console *c = arg;

        if (what & WATCH_WRITE)
                write_input(c);
        if ((what & WATCH_READ) && c->fd >= 0)
                read_output(c);
        set_watch(c);
        c->config.changed(c->config.arg);
}

static int open_terminal(const struct console_config *config, int *ret_ours, int *ret_theirs)
{
        int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK), theirs = -1, unlocked = 0;

        if (ours >= 0 && ioctl(ours, TIOCSPTLCK, &unlocked) == 0)
                theirs = ioctl(ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (theirs < 0) {
                int error = errno;

                if (ours >= 0)
                        close(ours);
                return -error;
        }
        const struct winsize size = {.ws_row = (unsigned short)config->rows,
                                     .ws_col = (unsigned short)config->columns};
        ioctl(ours, TIOCSWINSZ, &size);
        *ret_ours = ours;
        *ret_theirs = theirs;
        return 0;
}

static int open_pipe(int *ret_ours, int *ret_theirs)
{
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        *ret_ours = ends[1];
        *ret_theirs = ends[0];
        return 0;
}

int console_new(const struct console_config *config, struct console **ret, int *ret_fd)
{
        int ours = -1;
        int r = config->terminal ? open_terminal(config, &ours, ret_fd) : open_pipe(&ours, ret_fd);

        if (r < 0)
                return r;
        struct console *c = mem_new(struct console);
        c->config = *config;
        c->fd = ours;
        c->watch = watch_new(config->loop, ours, 0, console_on_ready, c);
        set_watch(c);
        *ret = c;
        return 0;
}

void console_free(struct console *c)
{
        if (!c)
                return;
        close_end(c);
        buf_deinit(&c->in);
        buf_deinit(&c->out);
        free(c);
}

void console_resize(struct console *c, unsigned rows, unsigned columns)
{
        if (!c->config.terminal || c->fd < 0 || !rows || !columns || rows > SIZE_MAX_CELLS ||
            columns > SIZE_MAX_CELLS)
                return;
        const struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
        ioctl(c->fd, TIOCSWINSZ, &size);
}

uint64_t console_take(struct console *c, uint64_t offset, struct str bytes, bool end)
{
        if (offset > c->taken || offset + bytes.n < c->taken || c->input_ends)
                return c->taken;
        bytes = str_skip(bytes, (size_t)(c->taken - offset));
        size_t room = c->fd < 0 ? bytes.n : CONSOLE_MOST - c->in.n, n = bytes.n < room ? bytes.n : room;
        if (c->fd >= 0)
                buf_str(&c->in, str_head(bytes, n));
        c->taken += n;
        c->input_ends = end && n == bytes.n && !c->config.terminal;
        if (c->fd >= 0)
                write_input(c);
        set_watch(c);
        return c->taken;
}

uint64_t console_taken(const struct console *c)
{
        return c->taken;
}

bool console_has_room(const struct console *c)
{
        return c->in.n < CONSOLE_MOST;
}

bool console_is_deaf(const struct console *c)
{
        return c->fd < 0 || c->input_ends;
}

struct str console_output(struct console *c, uint64_t *offset)
{
        if (*offset > c->dropped) {
                uint64_t known = *offset - c->dropped;
                size_t n = known < c->out.n ? (size_t)known : c->out.n;

                buf_consume(&c->out, n);
                c->dropped += n;
        }
        *offset = c->dropped;
        if (c->ended || c->unopened) {
                c->unopened = false;
                read_output(c);
        }
        set_watch(c);
        return buf_view(&c->out);
}

uint64_t console_written(const struct console *c)
{
        return c->dropped + c->out.n;
}

void console_end(struct console *c)
{
        c->ended = true;
        if (c->config.terminal)
                read_output(c);
        else
                close_end(c);
        set_watch(c);
}

bool console_is_over(const struct console *c)
{
        return c->ended && c->fd < 0;
}
