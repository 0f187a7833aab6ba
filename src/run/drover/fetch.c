/* Fetches the outputs of a job from the other server. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "run/drover/answers.h"
#include "run/drover/fetch.h"
#include "run/drover/link.h"
#include "run/drover/names.h"
#include "run/drover/state.h"
#include "run/drover/tasks.h"
#include "run/drover/user_files.h"
#include "run/task/append.h"

/* Moves an output from its temporary file to the sandbox's stream or the output's name. */
static int put_output(const struct remote_task *t, const char *from, const char *name, unsigned mode)
{
        BUF_CLEANUP struct buf to = {0}, dir = {0};
        bool appending;

        if (remote_destination(t, t->sandbox, name, &to, &appending) < 0)
                return -EINVAL;
        buf_str(&dir, str_head(buf_view(&to), (size_t)str_rfind(buf_view(&to), '/')));
        int r = fs_mkdirs(buf_z(&dir), 0755);
        if (r < 0)
                return r;
        if (appending) {
                BUF_CLEANUP struct buf mark = {0};

                buf_printf(&mark, "%s/%s.at", t->sandbox, name);
                return append_once(from, buf_z(&to), buf_z(&mark));
        }
        if (mode)
                chmod(from, (mode & 0777) | 0600);
        return rename(from, buf_z(&to)) < 0 ? -errno : 0;
}

/* Moves streams that the last place wrote on a shared file system. */
static int put_shared(const struct remote_task *t)
{
        static const char *const names[] = {"out", "err"};
        int r = 0;

        for (int i = 0; i < 2 && r == 0; i++) {
                BUF_CLEANUP struct buf path = {0}, name = {0};

                buf_printf(&name, ".drover_hop.%u.%s", t->id.step, names[i]);
                buf_printf(&path, "%s/%s", t->sandbox, buf_z(&name));
                if (access(buf_z(&path), F_OK) == 0)
                        r = put_output(t, buf_z(&path), buf_z(&name), 0);
        }
        return r;
}

void remote_forget_marks(const struct remote_task *t)
{
        static const char *const names[] = {"out", "err"};

        for (int i = 0; i < 2; i++) {
                BUF_CLEANUP struct buf path = {0};

                buf_printf(&path, "%s/.drover_hop.%u.%s.at", t->sandbox, t->id.step, names[i]);
                unlink(buf_z(&path));
        }
}

static void cannot_keep(struct remote_task *t, const char *name, int error)
{
        remote_cannot_keep(t, name, strerror(error), error);
}

static void temporary(const struct remote_task *t, struct buf *out)
{
        buf_printf(out, "%s/.drover_hop.%u.new", t->sandbox, t->id.step);
}

static void fetch_on_file(void *arg, int status, struct str body, const struct err *err)
{
        struct remote_task *t = arg;
        struct remote_file *file = &t->files.v[t->files.at];
        BUF_CLEANUP struct buf from = {0}, why = {0};

        t->call = NULL;
        bool whole = lseek(t->fd, 0, SEEK_END) == (off_t)file->size;
        close(t->fd);
        t->fd = -1;
        if (!status) {
                remote_unreachable(t->remote, err->text);
                return;
        }
        if (status < 0) {
                remote_cannot_keep(t, file->name, err->text, EIO);
                return;
        }
        if (remote_later(status)) {
                t->not_before_ms = clock_boot_ms() + 1000;
                return;
        }
        if (status != 200) {
                remote_error(&why, status, body);
                remote_fail(t, "output", EREMOTEIO, buf_z(&why));
                return;
        }
        if (!whole) {
                remote_cannot_keep(t, file->name, "it is smaller than was said", EREMOTEIO);
                return;
        }
        if (t->remote->user) { /* all at once, when all are here */
                t->files.at++;
                remote_fetch(t);
                return;
        }
        temporary(t, &from);
        int r = put_output(t, buf_z(&from), file->name, file->mode);
        if (r < 0) {
                cannot_keep(t, file->name, -r);
                return;
        }
        t->files.at++;
        remote_fetch(t);
}

static int fetch_new_file(struct remote_task *t, size_t index)
{
        BUF_CLEANUP struct buf to = {0};

        if (t->remote->user)
                return remote_user_output(t, index);
        fs_mkdirs(t->sandbox, 0755);
        temporary(t, &to);
        int fd = open(buf_z(&to), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        return fd < 0 ? -errno : fd;
}

void remote_fetch(struct remote_task *t)
{
        BUF_CLEANUP struct buf path = {0};

        if (t->files.at == t->files.n && t->remote->user) {
                remote_place(t);
                return;
        }
        if (t->files.at == t->files.n) {
                struct run_event result = t->result;
                int r = put_shared(t);

                if (r < 0)
                        cannot_keep(t, "stream", -r);
                else
                        remote_over(t, &result, NULL);
                return;
        }
        struct remote_file *file = &t->files.v[t->files.at];
        t->fd = fetch_new_file(t, t->files.at);
        if (t->fd < 0) {
                int error = -t->fd;

                t->fd = -1;
                remote_cannot_keep(t, file->name, strerror(error), error);
                return;
        }
        if (!fs_has_room(t->fd, file->size)) {
                close(t->fd);
                t->fd = -1;
                cannot_keep(t, file->name, ENOSPC);
                return;
        }
        remote_file_path(t, file->name, &path);
        const struct http_call_spec spec = {.method = "GET",
                                            .path = buf_z(&path),
                                            .fd = t->fd,
                                            .to_fd = true,
                                            .limited = true,
                                            .limit = file->size,
                                            .timeout_ms = 3600000};
        t->call = http_client_call(t->remote->client, &spec, fetch_on_file, t);
}
