/* The two ways share how files come back, and everything else is theirs. */
#include "run/batch/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/system/log.h"
#include "run/batch/login_node.h"
#include "run/batch/sessions.h"
#include "run/batch/state.h"

#define FETCH_NAME ".ended" /* name of a fetched end file until all other files are here */

int batch_remote_open(struct batch *b, const struct runner_config *c, struct remote_files **ret,
                      struct err *err)
{
        return b->system->file_path ? batch_sessions_open(b, c, ret, err)
                                    : batch_login_node_open(b, c, ret, err);
}

void batch_remote_free(struct remote_files *r)
{
        if (r)
                r->kind->free(r);
}

void batch_remote_wrap(const struct remote_files *r, const struct args *env, struct batch_call *call)
{
        if (r->kind->wrap)
                r->kind->wrap(r, env, call);
}

void batch_remote_look(struct batch *b)
{
        if (b->remote)
                b->remote->kind->look(b);
}

bool batch_remote_has(struct batch *b, struct submission *s)
{
        return !b->remote || !b->remote->kind->has || b->remote->kind->has(b, s);
}

void batch_remote_order(struct batch *b, const char *path)
{
        if (b->remote)
                b->remote->kind->order(b, path);
}

void batch_remote_lease(struct batch *b, struct str text, int64_t timeout_ms)
{
        if (b->remote)
                b->remote->kind->lease(b, text, timeout_ms);
}

void batch_remote_forget_task(struct batch *b, const struct task *t)
{
        if (b->remote)
                b->remote->kind->forget_task(b, t);
}

void batch_remote_forget_submission(struct batch *b, const struct submission *s)
{
        if (b->remote && b->remote->kind->forget_submission)
                b->remote->kind->forget_submission(b, s);
}

void batch_remote_stray(struct batch *b, struct str native)
{
        if (b->remote && b->remote->kind->stray)
                b->remote->kind->stray(b, native);
}

bool batch_remote_may_tell(const struct batch *b, struct task *t)
{
        return b->remote && b->remote->kind->may_tell(b, t);
}

/* ---- for the ways themselves */

bool batch_remote_add_order(struct buf *waiting, const char *path)
{
        if (waiting->n > BATCH_REMOTE_ORDERS) {
                log_warn("msg=\"a signal is dropped: too many wait to be sent to the batch system\" "
                         "file=\"%s\"",
                         LOG_TEXT(str_of(path)));
                unlink(path);
                return false;
        }
        buf_addz(waiting, path);
        buf_char(waiting, '\n');
        return true;
}

struct str batch_remote_name(const char *here, const char *path)
{
        size_t n = strlen(here);

        return strncmp(path, here, n) == 0 && path[n] == '/' ? str_of(path + n + 1) : STR("");
}

bool batch_remote_is_folder(const char *path)
{
        const char *at = path;

        if (*at != '/' || strlen(path) > 200 || strstr(path, "/../"))
                return false;
        for (; *at; at++)
                if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+/@:", *at))
                        return false;
        return at[-1] != '/';
}

void batch_remote_mark(const struct task *t, const char *end, int64_t mtime_s)
{
        BUF_CLEANUP struct buf path = {0};
        struct timespec times[2] = {{.tv_sec = mtime_s}, {.tv_sec = mtime_s}};
        int fd;

        batch_step_path(t, end, &path);
        /* a sandbox that came back has what its job left there, and a pipe would block */
        fd = open(buf_z(&path), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
        if (fd < 0)
                return;
        futimens(fd, times);
        close(fd);
}

uint64_t batch_remote_room(const struct batch *b)
{
        struct statvfs st;

        return fstatvfs(b->fd, &st) < 0 ? 0 : (uint64_t)st.f_bavail * st.f_frsize / 50 * 49;
}

/* tar exits with 2 for a missing name, and a failure of the source is known by then. A folder that its owner
 * may not write can neither be moved nor removed: it would be in the way of all that comes later. */
void batch_remote_unpack(const struct batch *b, const char *source, const char *in, struct str names,
                         struct buf *out)
{
        buf_printf(
                out,
                "umask 077; here=$0; in=\"$here/batch.%s/%s\"; [ ! -d \"$in\" ] || chmod -R u+rwX \"$in\"; "
                "rm -rf \"$in\"; mkdir \"$in\" || exit 1; "
                "%s | head -c %llu | { tar -C \"$in\" -xof - --no-same-permissions "
                "--transform='s,\\(/" BATCH_STEP "\\.[0-9]*\\.done\\)$,\\1" FETCH_NAME ",' --" STR_FMT
                " 2>/dev/null; "
                "cat >/dev/null; }; chmod -R u+rwX \"$in\"; for f in" STR_FMT
                "; do [ ! -e \"$in/$f\" ] || [ -L \"$in/$f\" ] || "
                "{ [ -L \"$here/$f\" ] || chmod -R u+rwX \"$here/$f\" 2>/dev/null; "
                "rm -rf \"$here/$f\" && mv \"$in/$f\" \"$here/$f\" || exit 1; }; done; rm -rf \"$in\"",
                b->queue, in, source, (unsigned long long)batch_remote_room(b), STR_ARG(names),
                STR_ARG(names));
}

void batch_remote_arrived(struct task *t)
{
        BUF_CLEANUP struct buf from = {0}, to = {0};

        if (!t->ended_there) {
                t->fetched = true;
                return;
        }
        batch_step_path(t, "done", &to);
        buf_printf(&from, "%s" FETCH_NAME, buf_z(&to));
        if (rename(buf_z(&from), buf_z(&to)) < 0)
                t->ended_there = false; /* it was incomplete, and is looked for again */
        else
                t->fetched = true;
}
