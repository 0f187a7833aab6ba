#include "agent/transfer/move_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/fs.h"

#define DEPTH_MAX 128

static int move_error(struct err *err, int r, const char *what, const char *path)
{
        if (r == HIDDEN_INSIDE)
                return err_set(err, -EACCES, "cannot %s %s: it is in a folder of Drover's own", what, path);
        return err_set(err, r, "cannot %s %s: %s", what, path,
                       r == -EINVAL ? "it is no regular file" : strerror(-r));
}

static int copy_in_file(int from, const struct stat *st, int sandbox, const char *name, mode_t extra,
                        struct fs_pace *pace, uint64_t *bytes)
{
        int to = fs_open_beneath(sandbox, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);

        if (to < 0)
                return to;
        uint64_t n = 0;
        int r = fs_copy_paced(from, to, pace, &n);
        if (r == 0 && fchmod(to, ((st->st_mode & 0777) | 0600 | extra)) < 0)
                r = -errno;
        if (close(to) < 0 && r == 0)
                r = -errno;
        *bytes += n;
        return r;
}

static int copy_in(const struct hidden *hidden, int dirfd, const char *from, int sandbox, const char *name,
                   bool contents, mode_t extra, int depth, struct fs_pace *pace, uint64_t *bytes)
{
        int fd = openat(dirfd, from, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        struct stat st;

        if (fd < 0)
                return -errno;
        int r = fstat(fd, &st) < 0 ? -errno : hidden_check(hidden, fd);
        if (r == 0)
                r = fs_pace_step(pace); /* for each file: the copy of an empty one makes no step */
        if (r == 0 && S_ISREG(st.st_mode)) {
                r = copy_in_file(fd, &st, sandbox, name, extra, pace, bytes);
                close(fd);
                return r;
        }
        if (r == 0 && !S_ISDIR(st.st_mode))
                r = -EINVAL;
        if (r == 0 && depth > DEPTH_MAX)
                r = -ENAMETOOLONG;
        if (r == 0 && !contents)
                r = fs_mkdirs_beneath(sandbox, name, 0700);
        DIR *dir = r != 0 ? NULL : fdopendir(fd);
        if (!dir) {
                close(fd);
                return r != 0 ? r : -errno;
        }
        struct dirent *e;
        while (r == 0 && (e = readdir(dir))) {
                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
                        continue;
                BUF_CLEANUP struct buf sub = {0};
                buf_printf(&sub, "%s%s%s", contents ? "" : name, contents ? "" : "/", e->d_name);
                r = copy_in(hidden, fd, e->d_name, sandbox, buf_z(&sub), false, extra, depth + 1, pace,
                            bytes);
                /* sockets, pipes, dangling links and Drover's own folders are left out */
                if (r == -EINVAL || r == -ENOENT || r == HIDDEN_INSIDE)
                        r = 0;
        }
        closedir(dir);
        return r;
}

int move_in(const struct hidden *hidden, const char *from, int sandbox, const char *name, bool contents,
            mode_t extra_mode, struct fs_pace *pace, uint64_t *bytes, struct err *err)
{
        const char *slash = strrchr(name, '/');
        int r = 0;

        if (slash) {
                BUF_CLEANUP struct buf folder = {0};

                buf_add(&folder, name, (size_t)(slash - name));
                r = fs_mkdirs_beneath(sandbox, buf_z(&folder), 0700);
        }
        if (r == 0)
                r = copy_in(hidden, AT_FDCWD, from, sandbox, name, contents, extra_mode, 0, pace, bytes);
        return r != 0 ? move_error(err, r, "read the input", from) : 0;
}

/* ---- out */

/* Destination of an output: a name in an open folder. */
struct place {
        int dir;
        const char *name;
        bool exists;
        mode_t mode;  /* mode of the existing file */
        char *target; /* target of the link at the destination; `name` points into it */
};

static void place_deinit(struct place *p)
{
        if (p->dir >= 0)
                close(p->dir);
        free(p->target);
}

/* 0, HIDDEN_INSIDE or -errno. */
static int place_open(const struct hidden *hidden, const char *to, struct place *p)
{
        struct stat st;

        *p = (struct place){.dir = -1};
        if (lstat(to, &st) == 0 && S_ISLNK(st.st_mode))
                p->target = realpath(to, NULL); /* a dangling link is replaced */
        int r = hidden_open_parent(hidden, p->target ? p->target : to, &p->dir, &p->name);
        if (r != 0)
                return r == -EINVAL ? -EISDIR : r; /* a name that ends with a slash names a folder */
        p->exists = fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(st.st_mode);
        p->mode = p->exists ? st.st_mode : 0;
        return p->exists && S_ISDIR(st.st_mode) ? -EISDIR : 0;
}

static int copy_to(int from, const struct place *to, uint32_t fence, mode_t mode, struct fs_pace *pace,
                   uint64_t *bytes)
{
        BUF_CLEANUP struct buf name = {0};
        struct stat st;

        if (fstat(from, &st) < 0)
                return -errno;
        buf_printf(&name, "%s.drover-%u-%llx.tmp", to->name, fence, (unsigned long long)st.st_ino);
        int fd = openat(to->dir, buf_z(&name), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        uint64_t n = 0;
        int r = fs_copy_paced(from, fd, pace, &n);
        if (r == 0 && fchmod(fd, mode & 0777) < 0)
                r = -errno;
        if (close(fd) < 0 && r == 0)
                r = -errno;
        if (r == 0)
                r = fs_pace_step(pace);
        if (r == 0 && renameat(to->dir, buf_z(&name), to->dir, to->name) < 0)
                r = -errno;
        if (r < 0)
                unlinkat(to->dir, buf_z(&name), 0);
        *bytes += n;
        return r;
}

/* Writes into an existing device or pipe. */
static int write_into(int from, const struct place *to, struct fs_pace *pace, uint64_t *bytes)
{
        int fd = openat(to->dir, to->name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        int r = fs_copy_paced(from, fd, pace, bytes);
        close(fd);
        return r;
}

static int out_file(int sandbox, const char *name, const struct place *to, uint32_t fence, bool small_only,
                    struct fs_pace *pace, uint64_t *bytes)
{
        struct stat st;
        bool special = to->exists && !S_ISREG(to->mode);
        const char *last;
        int parent = fs_open_parent(sandbox, name, &last);

        if (parent < 0)
                return parent;
        int r = fstatat(parent, last, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
                : S_ISREG(st.st_mode)                               ? 0
                                                                    : -EINVAL;
        if (r == 0 && !special && st.st_nlink == 1 && st.st_uid == geteuid()) {
                r = renameat(parent, last, to->dir, to->name) == 0 ? 0 : -errno;
                if (r == 0)
                        *bytes += (uint64_t)st.st_size;
                if (r != -EXDEV) {
                        close(parent);
                        return r;
                }
                r = 0;
        }
        if (r == 0 && small_only && st.st_size > MOVE_SMALL)
                r = -EXDEV;
        int fd = r < 0 ? r : openat(parent, last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (r == 0 && fd < 0)
                r = -errno;
        if (r == 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
                r = -EINVAL;
        if (r == 0 && special)
                r = write_into(fd, to, pace, bytes);
        else if (r == 0)
                r = copy_to(fd, to, fence, st.st_mode, pace, bytes);
        if (fd >= 0)
                close(fd);
        close(parent);
        return r;
}

static int out_tree(const struct hidden *hidden, int sandbox, const char *name, const char *to,
                    uint32_t fence, int depth, struct fs_pace *pace, uint64_t *bytes, struct err *err)
{
        int fd = fs_open_beneath(sandbox, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

        if (fd < 0)
                return move_error(err, fd, "read the output", name);
        int r = depth > DEPTH_MAX ? -ENAMETOOLONG : hidden_make_folder(hidden, to, 0755);
        if (r != 0) {
                close(fd);
                return move_error(err, r, "make the folder", to);
        }
        DIR *dir = fdopendir(fd);
        struct dirent *e;
        while (dir && r == 0 && (e = readdir(dir))) {
                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
                        continue;
                BUF_CLEANUP struct buf from = {0}, target = {0};
                buf_printf(&from, "%s/%s", name, e->d_name);
                buf_printf(&target, "%s/%s", to, e->d_name);
                struct stat st;
                if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
                        continue;
                r = S_ISDIR(st.st_mode) ? out_tree(hidden, sandbox, buf_z(&from), buf_z(&target), fence,
                                                   depth + 1, pace, bytes, err)
                                        : move_out(hidden, sandbox, buf_z(&from), NULL, buf_z(&target), fence,
                                                   false, pace, bytes, err);
        }
        if (dir)
                closedir(dir);
        else
                close(fd);
        return r;
}

/* The folders of `to` that are missing beneath `iwd`, each only where a file may be written, too. 0,
 * HIDDEN_INSIDE or -errno; -ENOENT: `to` is not beneath it, or that is missing itself. */
static int make_folders(const struct hidden *hidden, const char *iwd, const char *to)
{
        size_t n = iwd ? strlen(iwd) : 0;
        int r = -ENOENT;

        if (n == 0 || strncmp(to, iwd, n) != 0 || to[n] != '/')
                return r;
        for (const char *slash = strchr(to + n + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                MEM_CLEANUP char *folder = mem_dup(to, (size_t)(slash - to));

                if (slash[-1] == '/')
                        continue;
                r = hidden_make_folder(hidden, folder, 0777);
                if (r != 0)
                        return r;
        }
        return r;
}

int move_out(const struct hidden *hidden, int sandbox, const char *name, const char *iwd, const char *to,
             uint32_t fence, bool small_only, struct fs_pace *pace, uint64_t *bytes, struct err *err)
{
        struct place place = {.dir = -1};
        int r = fs_pace_step(pace);

        if (r == 0)
                r = place_open(hidden, to, &place);
        if (r == -ENOENT && (r = make_folders(hidden, iwd, to)) == 0)
                r = place_open(hidden, to, &place);
        if (r == 0)
                r = out_file(sandbox, name, &place, fence, small_only, pace, bytes);
        place_deinit(&place);
        if (r == HIDDEN_INSIDE)
                return move_error(err, r, "write the output", to);
        if (r == -EINVAL || r == -EISDIR) {
                int fd = fs_open_beneath(sandbox, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

                if (fd >= 0) {
                        close(fd);
                        return small_only ? -EXDEV
                                          : out_tree(hidden, sandbox, name, to, fence, 0, pace, bytes, err);
                }
        }
        if (r == -EXDEV && small_only)
                return r;
        if (r == -ENOENT && faccessat(sandbox, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                return err_set(err, r, "the job did not make its output %s", name);
        if (r == -EINVAL || r == -ELOOP)
                return move_error(err, -EINVAL, "deliver", name);
        return r < 0 ? move_error(err, r, "write the output", to) : 0;
}
