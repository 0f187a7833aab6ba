#include "agent/container/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/model/expand.h"
#include "agent/model/sandbox.h"

void mounts_deinit(struct mounts *m)
{
        for (size_t i = 0; i < m->count; i++) {
                free(m->more[i].from);
                free(m->more[i].to);
        }
        free(m->more);
        args_deinit(&m->covered);
        args_deinit(&m->seen);
}

/* Returns whether the engine is started here by the agent's own user, as other jobs are: with `users` names
 * are opened with the rights of the job's user, who gets nowhere near Drover's folders. */
static bool is_ours(const struct attempt *at)
{
        return queue_is_local(at->q) && !at->a->users_path;
}

/* Records which file the container has to show at this path. */
static void add_seen(struct mounts *m, const char *path, int fd)
{
        BUF_CLEANUP struct buf word = {0};
        struct stat st;

        if (fstat(fd, &st) < 0)
                st = (struct stat){0}; /* no file has this inode */
        buf_printf(&word, MOUNT_VARIABLE "%zu=%llx:%llx:%s", m->seen.n / 2, (unsigned long long)st.st_dev,
                   (unsigned long long)st.st_ino, path);
        args_add(&m->seen, STR("--env"));
        args_add(&m->seen, buf_view(&word));
}

static void add_mount(struct mounts *m, const char *from, const char *to, int fd)
{
        m->more = mem_array(m->more, m->count + 1, sizeof(*m->more));
        m->more[m->count++] = (struct container_mount){mem_dupz(from), mem_dupz(to)};
        add_seen(m, to, fd);
}

/* Opens a path beneath a folder on which no link is followed: another process may have put one there. */
static int open_beneath(int folder, const char *name)
{
        struct open_how how = {.flags = O_PATH | O_CLOEXEC, /* O_NOFOLLOW would open a last link itself */
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
        int fd = (int)syscall(SYS_openat2, folder, name, &how, sizeof(how));

        return fd < 0 ? -errno : fd;
}

/* Parts of the sandbox that the job mounts elsewhere. */
static int add_parts(const struct attempt *at, const struct container_job *job, int sandbox, struct mounts *m,
                     struct err *err)
{
        const struct job_template *t = at->t->m;
        int r = 0;

        for (size_t i = 0; i < t->mount_count && r == 0; i++) {
                BUF_CLEANUP struct buf name = {.max = 65536}, to = {.max = 65536}, from = {0};

                r = expand_text(at, t->mounts[i].name, &name, err);
                if (r == 0)
                        r = expand_text(at, t->mounts[i].path, &to, err);
                if (r < 0)
                        return r;
                if (str_ends(buf_view(&name), STR("/")))
                        buf_truncate(&name, name.n - 1);
                int fd = open_beneath(sandbox, buf_z(&name));
                if (fd < 0)
                        return err_set(err, fd == -ELOOP ? -EINVAL : fd,
                                       "cannot mount %s of the job's folder: %s", buf_z(&name),
                                       fd == -ELOOP ? "there is a link on its way" : strerror(-fd));
                buf_printf(&from, "%s/%s", job->sandbox, buf_z(&name));
                add_mount(m, buf_z(&from), buf_z(&to), fd);
                close(fd);
        }
        return r;
}

/* Opens a path of the job's, for looking at. Returns the descriptor; -errno with err, also if it is in a
 * hidden folder. */
static int open_shown(const struct attempt *at, const char *path, int flags, struct err *err)
{
        int fd = open(path, O_PATH | O_CLOEXEC | flags);
        int r = fd < 0 ? -errno : hidden_check(at->a->hidden, fd);

        if (r == 0)
                return fd;
        if (fd >= 0)
                close(fd);
        return r == HIDDEN_INSIDE
                       ? err_set(err, -EINVAL, "%s is in a folder of Drover's own", path)
                       : err_set(err, r, "cannot show %s in the container: %s", path, strerror(-r));
}

static bool is_mounted(const struct mounts *m, const char *to)
{
        for (size_t i = 0; i < m->count; i++)
                if (!strcmp(m->more[i].to, to))
                        return true;
        return false;
}

/* Covers a hidden folder beneath the mounted one, `fd`, and keeps those on the way to it where they are. */
static int cover(const char *path, int fd, char *name, struct mounts *m, struct err *err)
{
        BUF_CLEANUP struct buf covered = {0};

        buf_printf(&covered, "%s/%s", strcmp(path, "/") ? path : "", name);
        args_add(&m->covered, buf_view(&covered));
        for (char *slash = name; (slash = strchr(slash, '/')); *slash++ = '/') {
                BUF_CLEANUP struct buf at = {0};

                *slash = 0;
                buf_printf(&at, "%s/%s", strcmp(path, "/") ? path : "", name);
                if (is_mounted(m, buf_z(&at)))
                        continue;
                int way = open_beneath(fd, name);
                if (way < 0)
                        return err_set(err, way, "cannot show %s in the container: %s", buf_z(&at),
                                       strerror(-way));
                add_mount(m, buf_z(&at), buf_z(&at), way);
                close(way);
        }
        return 0;
}

static int show(const struct attempt *at, const char *path, int flags, struct mounts *m, struct err *err)
{
        char *name;
        struct err why;
        int fd = open_shown(at, path, flags, &why), r = 0;

        if (fd < 0 && fd != -EINVAL && !is_ours(at))
                return 0; /* the engine reports it */
        if (fd < 0)
                return err_set(err, fd, "%s", why.text);
        add_seen(m, path, fd);
        for (size_t n = 0; r == 0 && (name = hidden_beneath(at->a->hidden, fd, n)); n++) {
                r = cover(path, fd, name, m, err);
                free(name);
        }
        close(fd);
        return r;
}

int mounts_find(const struct attempt *at, struct container_job *job, struct mounts *m, struct err *err)
{
        char name[64];

        sandbox_name(at, name);
        int sandbox = openat(at->a->jobs, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sandbox < 0)
                return err_set(err, -errno, "the job's folder is gone: %s", strerror(errno));
        add_seen(m, job->target, sandbox);
        int r = add_parts(at, job, sandbox, m, err);
        close(sandbox);
        if (r == 0 && container_shows_cwd(job))
                r = show(at, job->cwd, O_DIRECTORY, m, err);
        if (r == 0 && job->mount_program)
                r = show(at, job->mount_program, 0, m, err);
        if (!is_ours(at))
                args_deinit(&m->seen);
        job->mounts = m->more;
        job->mount_count = m->count;
        job->covered = m->covered.n ? m->covered.v : NULL;
        return r;
}
