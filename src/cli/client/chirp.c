#include "cli/client/chirp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/format/base64.h"
#include "base/format/json.h"
#include "base/format/json_read.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"

#define ANSWER_MS      90000 /* longer than the agent waits for the server */
#define AGAIN_MS       60000 /* calls that may be another time are tried for so long */
#define PAUSE_MS       500
#define LINE_MAX_BYTES (1u << 20)

struct chirp_client {
        int fd;
        struct buf in;
};

/* ---- the connection */

/* Connects to the socket; a path too long for a socket's address is reached through its folder's descriptor.
 */
static int connect_to(int fd, const char *path)
{
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        const char *slash = strrchr(path, '/');
        int dir = -1, r;

        if (strlen(path) < sizeof(at.sun_path)) {
                memcpy(at.sun_path, path, strlen(path) + 1);
        } else {
                BUF_CLEANUP struct buf folder = {0};

                buf_str(&folder, str_make(path, slash ? (size_t)(slash - path) : 0));
                dir = open(buf_z(&folder), O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (dir < 0)
                        return -errno;
                if (snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d%s", dir, slash) >=
                    (int)sizeof(at.sun_path))
                        errno = ENAMETOOLONG;
        }
        r = connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
        if (dir >= 0)
                close(dir);
        return r;
}

int chirp_connect(struct chirp_client **ret, struct err *err)
{
        const char *path = getenv("DROVER_CHIRP");
        struct chirp_client *c;
        int fd, r;

        if (!path || !*path)
                return err_set(
                        err, -ENOENT,
                        "DROVER_CHIRP is not set: this is for programs of jobs that were submitted with "
                        "want_io_proxy = true, and run as processes of an agent's machine");
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        r = fd < 0 ? -errno : connect_to(fd, path);
        if (r < 0) {
                if (fd >= 0)
                        close(fd);
                return err_set(err, r, "cannot connect to %s: %s", path, strerror(-r));
        }
        c = mem_new(struct chirp_client);
        c->fd = fd;
        *ret = c;
        return 0;
}

void chirp_disconnect(struct chirp_client *c)
{
        if (!c)
                return;
        close(c->fd);
        buf_deinit(&c->in);
        free(c);
}

static int send_line(struct chirp_client *c, const struct buf *line)
{
        for (size_t done = 0; done < line->n;) {
                ssize_t n = send(c->fd, line->p + done, line->n - done, MSG_NOSIGNAL);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                done += (size_t)n;
        }
        return 0;
}

/* Up to the end of the first line; *ret_n is its length. */
static int receive_line(struct chirp_client *c, size_t *ret_n)
{
        int64_t end = clock_boot_ms() + ANSWER_MS;

        for (;;) {
                const char *newline = c->in.n ? memchr(c->in.p, '\n', c->in.n) : NULL;
                int64_t left = end - clock_boot_ms();
                struct pollfd p = {.fd = c->fd, .events = POLLIN};
                ssize_t n;

                if (newline) {
                        *ret_n = (size_t)(newline - c->in.p);
                        return 0;
                }
                if (c->in.n >= LINE_MAX_BYTES)
                        return -EPROTO;
                if (left <= 0 || poll(&p, 1, (int)left) == 0)
                        return -ETIMEDOUT;
                n = recv(c->fd, buf_room(&c->in, 65536), 65536, 0);
                if (n < 0 && (errno == EINTR || errno == EAGAIN))
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ECONNRESET;
                c->in.n += (size_t)n;
        }
}

/* ---- calls */

static void write_call(struct buf *line, const struct chirp_call *call)
{
        BUF_CLEANUP struct buf data = {0};
        struct json j = {.out = line};

        json_open(&j, '{');
        json_kstrz(&j, "op", call->op);
        if (call->name.n)
                json_kstr(&j, "name", call->name);
        if (call->data.n) {
                base64_encode(&data, call->data);
                json_kstr(&j, "data", buf_view(&data));
        }
        if (call->offset)
                json_kint(&j, "offset", (int64_t)call->offset);
        if (call->length)
                json_kint(&j, "length", call->length);
        if (call->flags)
                json_kint(&j, "flags", call->flags);
        if (call->mode)
                json_kint(&j, "mode", call->mode);
        if (call->node)
                json_kint(&j, "node", call->node);
        if (call->command)
                json_kint(&j, "command", (int64_t)call->command);
        if (call->stderr_offset)
                json_kint(&j, "stderr_offset", (int64_t)call->stderr_offset);
        json_close(&j, '}');
        buf_char(line, '\n');
}

void chirp_reply_deinit(struct chirp_reply *r)
{
        buf_deinit(&r->data);
        buf_deinit(&r->stderr_data);
}

/* Replaces the content of the buffer. Returns 0, or a negative number: it is no base64. */
static int read_bytes(const json_t *o, const char *key, struct buf *to)
{
        const json_t *data = json_object_get(o, key);

        buf_reset(to);
        return data ? base64_decode(to, str_make(json_string_value(data), json_string_length(data))) : 0;
}

static int read_reply(struct str line, struct chirp_reply *ret, struct err *err)
{
        json_t *o = json_loadb(line.p, line.n, 0, NULL);
        json_int_t error = json_integer_value(json_object_get(o, "error"));
        const char *text = json_string_value(json_object_get(o, "text"));
        int r = 0;

        if (!json_is_object(o) || error < 0 || error > 4095)
                r = err_set(err, -EPROTO, "the agent's answer is malformed");
        else if (error)
                r = err_set(err, -(int)error, "%s", text ? text : strerror((int)error));
        else if (read_bytes(o, "data", &ret->data) < 0 || read_bytes(o, "stderr", &ret->stderr_data) < 0)
                r = err_set(err, -EPROTO, "the agent's answer is malformed");
        ret->size = (uint64_t)json_integer_value(json_object_get(o, "size"));
        ret->mode = (uint32_t)json_integer_value(json_object_get(o, "mode"));
        ret->changed = json_integer_value(json_object_get(o, "changed"));
        ret->command = (uint64_t)json_integer_value(json_object_get(o, "command"));
        ret->over = json_is_true(json_object_get(o, "over"));
        ret->exit_code = (int32_t)json_integer_value(json_object_get(o, "exit_code"));
        ret->signal = (int32_t)json_integer_value(json_object_get(o, "signal"));
        json_decref(o);
        return r;
}

static int call_once(struct chirp_client *c, const struct buf *line, struct chirp_reply *ret, struct err *err)
{
        size_t n = 0;
        int r = send_line(c, line);

        if (r == 0)
                r = receive_line(c, &n);
        if (r < 0)
                return err_set(err, r, "the agent does not answer: %s", strerror(-r));
        r = read_reply(str_make(c->in.p, n), ret, err);
        buf_consume(&c->in, n + 1);
        return r;
}

/* Returns whether repeating the call has the same effect, whether or not the first attempt took effect. */
static bool is_repeatable(const struct chirp_call *call)
{
        return strcmp(call->op, "log") != 0 && strcmp(call->op, "rename") != 0 &&
               strcmp(call->op, "remove") != 0 && strcmp(call->op, "remove_folder") != 0 &&
               strcmp(call->op, "make_folder") != 0 && !(call->flags & (CHIRP_APPEND | CHIRP_NEW));
}

int chirp_call(struct chirp_client *c, const struct chirp_call *call, struct chirp_reply *ret,
               struct err *err)
{
        const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
        BUF_CLEANUP struct buf line = {0};
        int64_t end = clock_boot_ms() + AGAIN_MS;
        int r;

        write_call(&line, call);
        while ((r = call_once(c, &line, ret, err)) == -EAGAIN && is_repeatable(call) && clock_boot_ms() < end)
                nanosleep(&pause, NULL);
        return r;
}

/* ---- whole files */

int chirp_fetch(struct chirp_client *c, struct str name, int fd, struct err *err)
{
        struct chirp_reply reply = {0};
        uint64_t at = 0;
        int r;

        do {
                r = chirp_call(c,
                               &(struct chirp_call){
                                       .op = "read", .name = name, .offset = at, .length = CHIRP_DATA_MAX},
                               &reply, err);
                at += reply.data.n;
                if (r == 0 && (r = fs_write_all(fd, reply.data.p, reply.data.n)) < 0)
                        err_set(err, r, "cannot write: %s", strerror(-r));
        } while (r == 0 && reply.data.n == CHIRP_DATA_MAX);
        chirp_reply_deinit(&reply);
        return r;
}

static ssize_t read_some(int fd, char *room, size_t n)
{
        size_t got = 0;

        while (got < n) {
                ssize_t k = read(fd, room + got, n - got);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                if (k == 0)
                        break;
                got += (size_t)k;
        }
        return (ssize_t)got;
}

int chirp_put_by(struct chirp_client *c, int fd, struct str name, uint32_t flags, uint32_t mode,
                 struct err *err)
{
        MEM_CLEANUP char *room = mem_alloc(CHIRP_DATA_MAX);
        struct chirp_reply reply = {0};
        uint64_t at = 0;
        int r = 0;

        for (bool first = true; r == 0; first = false) {
                ssize_t n = read_some(fd, room, CHIRP_DATA_MAX);

                if (n < 0)
                        r = err_set(err, (int)n, "cannot read: %s", strerror((int)-n));
                if (n < 0 || (n == 0 && !first))
                        break;
                r = chirp_call(c,
                               &(struct chirp_call){.op = "write",
                                                    .name = name,
                                                    .data = str_make(room, (size_t)n),
                                                    .offset = at,
                                                    .flags = first ? flags : flags & CHIRP_APPEND,
                                                    .mode = mode},
                               &reply, err);
                at += (uint64_t)n;
        }
        chirp_reply_deinit(&reply);
        return r;
}

int chirp_put(struct chirp_client *c, int fd, struct str name, uint32_t mode, struct err *err)
{
        BUF_CLEANUP struct buf part = {0};
        struct chirp_reply reply = {0};
        const char *job = getenv("DROVER_JOB");
        int r;

        buf_printf(&part, STR_FMT ".drover-%s-%d.tmp", STR_ARG(name), job ? job : "", (int)getpid());
        r = chirp_put_by(c, fd, buf_view(&part), CHIRP_CREATE | CHIRP_EMPTY, mode, err);
        if (r == 0)
                r = chirp_call(c, &(struct chirp_call){.op = "rename", .name = buf_view(&part), .data = name},
                               &reply, err);
        if (r < 0)
                chirp_call(c, &(struct chirp_call){.op = "remove", .name = buf_view(&part)}, &reply, NULL);
        chirp_reply_deinit(&reply);
        return r;
}
