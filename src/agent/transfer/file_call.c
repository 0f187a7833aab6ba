/* The folder of a name is opened beneath the folder of the submit (openat2), checked, and used by its
 * descriptor; a link at the last component is never followed when something is made, changed or removed. */
#include "agent/transfer/file_call.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pack.h"
#include "base/system/fs.h"

#define NAME_BYTES_MAX 4096u

bool file_call_is_sane(const struct file_call *c)
{
        return c->op >= FILE_READ && c->op < FILE_OPS && c->name.n && c->name.n < NAME_BYTES_MAX &&
               !memchr(c->name.p, 0, c->name.n) && c->data.n <= FILE_CALL_DATA_MAX &&
               c->length <= FILE_CALL_DATA_MAX && c->offset <= INT64_MAX - FILE_CALL_DATA_MAX;
}

/* ---- as bytes */

void file_call_pack(struct buf *out, const struct file_call *c)
{
        pack_u64(out, c->op);
        pack_str(out, c->name);
        pack_str(out, c->data);
        pack_u64(out, c->offset);
        pack_u64(out, c->length);
        pack_u64(out, c->flags);
        pack_u64(out, c->mode);
}

bool file_call_unpack(struct str packed, struct file_call *ret)
{
        struct unpack u = unpack_from(packed);

        *ret = (struct file_call){.op = (enum file_op)unpack_max(&u, FILE_OPS)};
        ret->name = unpack_str(&u);
        ret->data = unpack_str(&u);
        ret->offset = unpack_u64(&u);
        ret->length = (uint32_t)unpack_max(&u, FILE_CALL_DATA_MAX);
        ret->flags = (uint32_t)unpack_max(&u, UINT32_MAX);
        ret->mode = (uint32_t)unpack_max(&u, UINT32_MAX);
        return unpack_done(&u) && file_call_is_sane(ret);
}

void file_answer_pack(struct buf *out, const struct file_answer *a)
{
        pack_str(out, buf_view(&a->data));
        pack_u64(out, a->size);
        pack_u64(out, a->mode);
        pack_i64(out, a->changed);
}

bool file_answer_unpack(struct str packed, struct file_answer *ret)
{
        struct unpack u = unpack_from(packed);
        struct str data = unpack_str(&u);

        ret->size = unpack_u64(&u);
        ret->mode = (uint32_t)unpack_max(&u, UINT32_MAX);
        ret->changed = unpack_i64(&u);
        if (!unpack_done(&u) || data.n > FILE_CALL_DATA_MAX)
                return false;
        buf_str(&ret->data, data);
        return true;
}

/* ---- names */

/* The name beneath the folder; empty: the folder itself. -EXDEV: it is elsewhere. */
static int name_beneath(const char *folder, struct str name, struct buf *ret)
{
        struct str top = str_of(folder);

        while (top.n && top.p[top.n - 1] == '/')
                top.n--;
        if (name.p[0] == '/') {
                if (!str_starts(name, top) || (name.n > top.n && name.p[top.n] != '/'))
                        return -EXDEV;
                name = str_skip(name, top.n);
        }
        while (name.n && name.p[0] == '/')
                name = str_skip(name, 1);
        while (name.n && name.p[name.n - 1] == '/')
                name.n--;
        buf_str(ret, name);
        return 0;
}

static int hidden_refuse(const struct hidden *hidden, int fd)
{
        int r = hidden ? hidden_check(hidden, fd) : 0;

        return r == HIDDEN_INSIDE ? -EACCES : r;
}

/* Reads the present path of an open folder or file (proc(5)). Returns 0 or -errno. */
static int file_call_name_of(int fd, char room[PATH_MAX])
{
        char link[32];
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, room, PATH_MAX - 1);
        room[n > 0 ? n : 0] = 0;
        return n < 0 ? -errno : 0;
}

/* Checks that no part of the resolved path, nor `last`, begins with a dot, whatever links the name went
 * through. */
static int check_dots(int top, int fd, const char *last)
{
        char above[PATH_MAX], path[PATH_MAX];
        int r = file_call_name_of(top, above);

        if (r == 0)
                r = file_call_name_of(fd, path);
        if (r < 0)
                return r;
        size_t n = strcmp(above, "/") ? strlen(above) : 0;
        if (strncmp(path, above, n) != 0 || (path[n] && path[n] != '/'))
                return -EXDEV; /* the folder was moved meanwhile */
        return strstr(path + n, "/.") || *last == '.' ? -EPERM : 0;
}

/* The folder that the name is in, opened: a descriptor, or -errno. *ret_last points into `name`. */
static int open_parent(const struct hidden *hidden, int top, const char *name, const char **ret_last)
{
        int fd = *name ? fs_open_parent(top, name, ret_last) : -EISDIR;
        int r = fd < 0 ? fd : hidden_refuse(hidden, fd);

        if (r == 0)
                r = check_dots(top, fd, *ret_last);
        if (r < 0 && fd >= 0)
                close(fd);
        return r < 0 ? r : fd;
}

/* Opens a regular file; its type is checked before anything is done with it. */
static int open_file(const struct hidden *hidden, int parent, const char *last, int flags, mode_t mode)
{
        struct stat st;
        int fd = openat(parent, last, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
        int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : hidden_refuse(hidden, fd);

        if (r == 0 && !S_ISREG(st.st_mode))
                r = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
        if (r < 0 && fd >= 0)
                close(fd);
        return r < 0 ? r : fd;
}

/* ---- operations; each gets the folder that the file is in */

static int read_file(int fd, const struct file_call *c, struct file_answer *ret)
{
        while (ret->data.n < c->length) {
                size_t want = c->length - ret->data.n;
                ssize_t n = pread(fd, buf_room(&ret->data, want), want, (off_t)(c->offset + ret->data.n));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                ret->data.n += (size_t)n;
        }
        return 0;
}

static int write_file(int fd, const struct file_call *c)
{
        struct str left = c->data;
        bool append = c->flags & FILE_APPEND;

        while (left.n) {
                uint64_t at = c->offset + (c->data.n - left.n);
                ssize_t n = append ? write(fd, left.p, left.n) : pwrite(fd, left.p, left.n, (off_t)at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                left = str_skip(left, (size_t)n);
        }
        return 0;
}

static int file_stat(int fd, struct file_answer *ret)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        ret->size = (uint64_t)st.st_size;
        ret->mode = st.st_mode;
        ret->changed = st.st_mtim.tv_sec;
        return 0;
}

static int on_contents(const struct hidden *hidden, int parent, const char *last, const struct file_call *c,
                       struct file_answer *ret)
{
        int flags = c->op == FILE_READ ? O_RDONLY : O_WRONLY;

        if (c->op == FILE_WRITE)
                flags |= (c->flags & FILE_CREATE ? O_CREAT : 0) |
                         (c->flags & FILE_NEW ? O_CREAT | O_EXCL : 0) |
                         (c->flags & FILE_APPEND ? O_APPEND : 0);
        int fd = open_file(hidden, parent, last, flags, c->mode & 0777 ? c->mode & 0777 : 0666);
        if (fd < 0)
                return fd;
        int r = 0;
        if (c->op == FILE_READ)
                r = read_file(fd, c, ret);
        else if (c->op == FILE_TRUNCATE || c->flags & FILE_EMPTY)
                r = ftruncate(fd, c->op == FILE_TRUNCATE ? (off_t)c->offset : 0) < 0 ? -errno : 0;
        if (r == 0 && c->op == FILE_WRITE)
                r = write_file(fd, c);
        if (r == 0)
                r = file_stat(fd, ret);
        close(fd);
        return r;
}

static int list_folder(int fd, struct file_answer *ret)
{
        int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        const struct dirent *e;

        if (!dir) {
                int r = -errno;

                if (copy >= 0)
                        close(copy);
                return r;
        }
        int r = 0;
        while (r == 0 && (e = readdir(dir))) {
                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || strchr(e->d_name, '\n'))
                        continue;
                if (ret->data.n + strlen(e->d_name) + 1 > FILE_CALL_DATA_MAX)
                        r = -E2BIG;
                else
                        buf_printf(&ret->data, "%s\n", e->d_name);
        }
        closedir(dir);
        return r;
}

/* Does an operation that also applies to folders, including the folder of the submit itself. */
static int on_any(const struct hidden *hidden, int top, const char *name, const struct file_call *c,
                  struct file_answer *ret)
{
        int fd = fs_open_beneath(top, *name ? name : ".",
                                 O_PATH | O_NOFOLLOW | (c->op == FILE_LIST ? O_DIRECTORY : 0), 0);
        int r = fd < 0 ? fd : hidden_refuse(hidden, fd);

        if (r == 0)
                r = check_dots(top, fd, "");
        if (r == 0)
                r = c->op == FILE_LIST ? list_folder(fd, ret) : file_stat(fd, ret);
        if (fd >= 0)
                close(fd);
        return r;
}

static int on_time(const struct hidden *hidden, int parent, const char *last, const struct file_call *c)
{
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = (time_t)c->offset}};
        int fd = open_file(hidden, parent, last, O_RDONLY, 0), r;

        if (fd < 0)
                return fd;
        if (c->op == FILE_MODE)
                r = fchmod(fd, c->mode & 0777);
        else
                r = futimens(fd, times);
        r = r < 0 ? -errno : 0;
        close(fd);
        return r;
}

static int rename_file(const struct hidden *hidden, int top, const char *folder, int parent, const char *last,
                       struct str to)
{
        BUF_CLEANUP struct buf name = {.max = NAME_BYTES_MAX};
        const char *to_last;
        struct stat st;
        int r = to.n && !memchr(to.p, 0, to.n) ? name_beneath(folder, to, &name) : -EINVAL;
        int other = r < 0 ? r : open_parent(hidden, top, buf_z(&name), &to_last);

        if (other < 0)
                return other;
        r = fstatat(parent, last, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
        if (r == 0 && renameat(parent, last, other, to_last) < 0)
                r = -errno;
        close(other);
        return r;
}

static int on_entry(const struct hidden *hidden, int top, const char *folder, const char *name,
                    const struct file_call *c, struct file_answer *ret)
{
        const char *last;
        int parent = open_parent(hidden, top, name, &last), r;

        if (parent < 0)
                return parent;
        switch (c->op) {
        case FILE_REMOVE: r = unlinkat(parent, last, 0) < 0 ? -errno : 0; break;
        case FILE_REMOVE_FOLDER: r = unlinkat(parent, last, AT_REMOVEDIR) < 0 ? -errno : 0; break;
        case FILE_MAKE_FOLDER:
                r = mkdirat(parent, last, c->mode & 0777 ? c->mode & 0777 : 0777) < 0 ? -errno : 0;
                break;
        case FILE_RENAME: r = rename_file(hidden, top, folder, parent, last, c->data); break;
        case FILE_MODE:
        case FILE_TIME: r = on_time(hidden, parent, last, c); break;
        default: r = on_contents(hidden, parent, last, c, ret); break;
        }
        close(parent);
        return r;
}

static const char *why_not(int r)
{
        switch (-r) {
        case EXDEV: return "it is not beneath the folder of the submit";
        case EPERM: return "names that begin with a dot are not reached";
        case ELOOP: return "it is a link";
        case EINVAL: return "it is no regular file";
        case E2BIG: return "the folder has too many names";
        default: return strerror(-r);
        }
}

int file_call_run(const struct hidden *hidden, const char *folder, const struct file_call *c,
                  struct file_answer *ret, struct err *err)
{
        BUF_CLEANUP struct buf name = {.max = NAME_BYTES_MAX};
        int top = -1,
            r = *folder == '/' && file_call_is_sane(c) ? name_beneath(folder, c->name, &name) : -EPROTO;

        if (r == 0) {
                top = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                r = top < 0 ? -errno : hidden_refuse(hidden, top);
        }
        if (r == 0 && (c->op == FILE_STAT || c->op == FILE_LIST))
                r = on_any(hidden, top, buf_z(&name), c, ret);
        else if (r == 0)
                r = on_entry(hidden, top, folder, buf_z(&name), c, ret);
        if (top >= 0)
                close(top);
        return r < 0 ? err_set(err, r, STR_FMT ": %s", STR_ARG(str_head(c->name, 200)), why_not(r)) : 0;
}
