/* openat2 came with Linux 5.6 and has no wrapper in the C library. A kernel without it is refused rather than
 * worked around: resolving a path by hand while a job moves directories about is how such checks go wrong. */
#include "base/system/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/system/uuid.h"

#define TREE_DEPTH_MAX 512
#define LIFT_TRIES     100000

int fs_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
        struct open_how how = {
                .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                .mode = flags & (O_CREAT | __O_TMPFILE) ? mode : 0,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
        };
        long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

        return fd < 0 ? -errno : (int)fd;
}

int fs_open_parent(int dirfd, const char *path, const char **ret_name)
{
        const char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;

        if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
                return -EINVAL;
        int fd;
        if (!slash) {
                fd = fs_open_beneath(dirfd, ".", O_PATH | O_DIRECTORY, 0);
        } else {
                MEM_CLEANUP char *parent = mem_dup(path, (size_t)(slash - path));

                fd = fs_open_beneath(dirfd, *parent ? parent : "/", O_PATH | O_DIRECTORY, 0);
        }
        if (fd >= 0)
                *ret_name = name;
        return fd;
}

int fs_mkdirs(const char *path, mode_t mode)
{
        if (mkdir(path, mode) == 0)
                return 0;
        if (errno == EEXIST) {
                struct stat st;

                if (stat(path, &st) < 0)
                        return -errno;
                return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
        }
        if (errno != ENOENT)
                return -errno;
        const char *slash = strrchr(path, '/');
        while (slash && slash > path && slash[-1] == '/')
                slash--;
        if (!slash || slash == path)
                return -ENOENT;
        MEM_CLEANUP char *parent = mem_dup(path, (size_t)(slash - path));
        int r = fs_mkdirs(parent, mode);
        if (r < 0)
                return r;
        return mkdir(path, mode) == 0 || errno == EEXIST ? 0 : -errno;
}

int fs_mkdirs_beneath(int dirfd, const char *path, mode_t mode)
{
        MEM_CLEANUP char *head = mem_dupz(path);

        for (char *p = head; *p;) {
                char *slash = strchr(p, '/');

                if (slash)
                        *slash = 0;
                if (*p && strcmp(p, ".") != 0) {
                        const char *name;
                        int fd = fs_open_parent(dirfd, head, &name);

                        if (fd < 0)
                                return fd;
                        int r = mkdirat(fd, name, mode) == 0 || errno == EEXIST ? 0 : -errno;
                        close(fd);
                        if (r < 0)
                                return r;
                }
                if (!slash)
                        break;
                *slash = '/';
                p = slash + 1;
        }
        int fd = fs_open_beneath(dirfd, *path ? path : ".", O_PATH | O_DIRECTORY, 0);
        if (fd < 0)
                return fd;
        close(fd);
        return 0;
}

static int read_opened(int fd, const char *path, size_t max, struct buf *out, struct err *err)
{
        if (fd < 0)
                return err_set(err, fd, "cannot read %s: %s", path, strerror(-fd));
        size_t start = out->n;
        for (;;) {
                char chunk[16384];
                ssize_t n = read(fd, chunk, sizeof(chunk));

                if (n < 0 && errno == EINTR)
                        continue;
                int r = n < 0 ? -errno : out->n - start + (size_t)n > max ? -EFBIG : 0;
                if (r < 0) {
                        close(fd);
                        buf_truncate(out, start);
                        return err_set(err, r, "cannot read %s: %s", path, strerror(-r));
                }
                if (n == 0)
                        break;
                buf_add(out, chunk, (size_t)n);
        }
        close(fd);
        return 0;
}

int fs_read(int dirfd, const char *path, size_t max, struct buf *out, struct err *err)
{
        int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

        return read_opened(fd < 0 ? -errno : fd, path, max, out, err);
}

int fs_read_regular(int dirfd, const char *path, size_t max, struct buf *out, struct err *err)
{
        return fs_read_regular_of(dirfd, path, max, out, NULL, err);
}

int fs_read_regular_of(int dirfd, const char *path, size_t max, struct buf *out, uid_t *ret_owner,
                       struct err *err)
{
        struct stat st;
        int fd = openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        int r = fd < 0 ? -errno : fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? fd : -EINVAL;

        if (r < 0 && fd >= 0)
                close(fd);
        if (r >= 0 && ret_owner)
                *ret_owner = st.st_uid;
        return read_opened(r, path, max, out, err);
}

int fs_read_secret(int dirfd, const char *path, size_t max, struct buf *out, struct err *err)
{
        struct stat st;
        int fd = openat(dirfd, path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
        int r = fd < 0 ? -errno : fstat(fd, &st) < 0 ? -errno : 0;

        if (r == 0 && S_ISREG(st.st_mode) && (st.st_mode & (st.st_uid == 0 ? 027 : 077))) {
                close(fd);
                return err_set(err, -EPERM,
                               "others may read or change %s, which holds a secret (mode %04o): chmod 600 it",
                               path, (unsigned)st.st_mode & 07777);
        }
        if (r < 0 && fd >= 0)
                close(fd);
        return read_opened(r < 0 ? r : fd, path, max, out, err);
}

#define OTHERS_SHARE 50
#define OTHERS_MAX   (UINT64_C(256) << 20)

bool fs_has_room(int fd, uint64_t bytes)
{
        struct statvfs v;

        if (fstatvfs(fd, &v) < 0)
                return true;
        uint64_t all = (uint64_t)v.f_blocks * v.f_frsize, left = (uint64_t)v.f_bavail * v.f_frsize;
        uint64_t others = all / OTHERS_SHARE < OTHERS_MAX ? all / OTHERS_SHARE : OTHERS_MAX;
        return left >= others && bytes <= left - others;
}

int fs_write_all(int fd, const void *p, size_t n)
{
        for (const char *at = p; n > 0;) {
                ssize_t done = write(fd, at, n);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0)
                        return -errno;
                at += done;
                n -= (size_t)done;
        }
        return 0;
}

static int sync_parent(int dirfd, const char *path)
{
        const char *slash = strrchr(path, '/');
        MEM_CLEANUP char *parent = slash == path ? mem_dupz("/")
                                   : slash       ? mem_dup(path, (size_t)(slash - path))
                                                 : mem_dupz(".");
        int fd = openat(dirfd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        int r = fsync(fd) == 0 ? 0 : -errno;
        close(fd);
        return r;
}

bool fs_is_left(struct str name)
{
        struct str digits;

        if (!str_ends(name, STR(".tmp")) || name.n < sizeof("x.01234567.tmp") - 1)
                return false;
        digits = str_skip(str_head(name, name.n - 4), name.n - 4 - 8);
        for (size_t i = 0; i < digits.n; i++)
                if (!strchr("0123456789abcdef", digits.p[i]))
                        return false;
        return name.p[name.n - 4 - 9] == '.';
}

size_t fs_sweep(int dirfd, bool (*is_left)(struct str name))
{
        int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;
        size_t count = 0;

        if (!dir && fd >= 0)
                close(fd);
        while (dir && (e = readdir(dir)))
                if (is_left(str_of(e->d_name)) && unlinkat(dirfd, e->d_name, 0) == 0)
                        count++;
        if (dir)
                closedir(dir);
        return count;
}

int fs_write(int dirfd, const char *path, struct str bytes, mode_t mode, bool sync, struct err *err)
{
        char id[UUID_TEXT];

        uuid_new(id);
        BUF_CLEANUP struct buf name = {0};
        buf_printf(&name, "%s.%.8s.tmp", path, id);
        int fd = openat(dirfd, buf_z(&name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        int r = fd < 0 ? -errno : 0;
        if (fd >= 0) {
                r = fs_write_all(fd, bytes.p, bytes.n);
                if (r == 0 && fchmod(fd, mode) < 0)
                        r = -errno;
                if (r == 0 && sync && fsync(fd) < 0)
                        r = -errno;
                if (close(fd) < 0 && r == 0)
                        r = -errno;
                if (r == 0 && renameat(dirfd, buf_z(&name), dirfd, path) < 0)
                        r = -errno;
                if (r < 0)
                        unlinkat(dirfd, buf_z(&name), 0);
                else if (sync)
                        r = sync_parent(dirfd, path);
        }
        return r < 0 ? err_set(err, r, "cannot write %s: %s", path, strerror(-r)) : 0;
}

#define COPY_STEP ((size_t)16 << 20)

int fs_pace_step(struct fs_pace *pace)
{
        if (!pace)
                return 0;
        uint64_t steps = atomic_fetch_add(&pace->steps, 1) + 1;
        if (pace->shown)
                atomic_store(pace->shown, steps);
        return atomic_load(&pace->cancelled) ? -ECANCELED : 0;
}

static int copy_by_hand(int from, int to, uint64_t left, struct fs_pace *pace, uint64_t *done)
{
        MEM_CLEANUP char *room = mem_alloc(131072);
        int r = 0;

        while (r == 0 && left > 0) {
                ssize_t n = read(from, room, left < 131072 ? (size_t)left : 131072);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                r = fs_write_all(to, room, (size_t)n);
                if (r < 0)
                        return r;
                *done += (uint64_t)n;
                left -= (uint64_t)n;
                r = fs_pace_step(pace);
        }
        return r;
}

/* Copies bytes from the position of `from` to that of `to`, until the end of the file or `left` bytes. */
static int copy_bytes(int from, int to, uint64_t left, struct fs_pace *pace, uint64_t *done)
{
        uint64_t before = *done;
        int r = 0;

        while (r == 0 && left > 0) {
                ssize_t n =
                        copy_file_range(from, NULL, to, NULL, left < COPY_STEP ? (size_t)left : COPY_STEP, 0);

                if (n < 0 && errno == EINTR)
                        continue;
                /* files of /proc and such say 0 at once; only reading tells their end */
                if (n <= 0)
                        return n == 0 && *done > before ? 0 : copy_by_hand(from, to, left, pace, done);
                *done += (uint64_t)n;
                left -= (uint64_t)n;
                r = fs_pace_step(pace);
        }
        return r;
}

/* The data between the holes, into an empty file. */
static int copy_sparse(int from, int to, uint64_t size, struct fs_pace *pace, uint64_t *done)
{
        uint64_t copied = 0;
        int r = 0;

        for (off_t at = 0, end; r == 0 && (at = lseek(from, at, SEEK_DATA)) >= 0; at = end) {
                end = lseek(from, at, SEEK_HOLE);
                if (end < 0 || lseek(from, at, SEEK_SET) < 0 || lseek(to, at, SEEK_SET) < 0)
                        return -errno;
                r = copy_bytes(from, to, (uint64_t)(end - at), pace, &copied);
        }
        if (r == 0 && errno != ENXIO)
                r = -errno;
        if (r == 0 && (ftruncate(to, (off_t)size) < 0 || lseek(from, (off_t)size, SEEK_SET) < 0 ||
                       lseek(to, (off_t)size, SEEK_SET) < 0))
                r = -errno;
        *done = r == 0 ? size : copied;
        return r;
}

static bool is_new_file(int fd)
{
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0 &&
               !(fcntl(fd, F_GETFL) & O_APPEND);
}

int fs_copy_paced(int from, int to, struct fs_pace *pace, uint64_t *ret_bytes)
{
        uint64_t done = 0;
        int r;
        struct stat st;
        bool whole = fstat(from, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 65536 &&
                     lseek(from, 0, SEEK_CUR) == 0 && lseek(to, 0, SEEK_CUR) == 0;
        bool sparse = whole && (uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size && is_new_file(to) &&
                      lseek(from, 0, SEEK_HOLE) < st.st_size;

        if (whole && lseek(from, 0, SEEK_SET) < 0)
                return -errno;
        if (whole && ioctl(to, FICLONE, from) == 0) {
                done = (uint64_t)st.st_size;
                r = fs_pace_step(pace);
        } else if (sparse) {
                r = copy_sparse(from, to, (uint64_t)st.st_size, pace, &done);
        } else {
                r = copy_bytes(from, to, UINT64_MAX, pace, &done);
        }
        if (r == 0 && ret_bytes)
                *ret_bytes = done;
        return r;
}

int fs_copy(int from, int to, uint64_t *ret_bytes)
{
        return fs_copy_paced(from, to, NULL, ret_bytes);
}

struct removal {
        dev_t device;
        int top;
        unsigned lifted; /* directories that were moved from where they are too deep to the top */
};

/* Deeper than descriptors reach: it is moved up, and removed from there in another round. */
static int lift(struct removal *r, int dir, const char *name)
{
        for (unsigned tries = 0; tries < LIFT_TRIES; tries++) { /* the name may be the tree's own */
                char up[64];

                snprintf(up, sizeof(up), ".drover_deep.%u", r->lifted++);
                if (renameat2(dir, name, r->top, up, RENAME_NOREPLACE) == 0)
                        return 0;
                if (errno != EEXIST)
                        return -errno;
        }
        return -EEXIST;
}

/* Removes the contents of one directory. A directory that its owner cannot search gets a mode that allows it
 * first. */
static int remove_inside(int fd, struct removal *all, int depth)
{
        DIR *dir = fdopendir(fd);

        if (!dir) {
                int r = -errno;

                close(fd);
                return r;
        }
        int result = 0;
        struct dirent *e;
        while ((e = readdir(dir))) {
                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
                        continue;
                int here = dirfd(dir), r = 0;
                if (e->d_type != DT_DIR && unlinkat(here, e->d_name, 0) == 0)
                        continue;
                struct stat st;
                if (fstatat(here, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                        r = errno == ENOENT ? 0 : -errno;
                } else if (!S_ISDIR(st.st_mode)) {
                        r = unlinkat(here, e->d_name, 0) == 0 || errno == ENOENT ? 0 : -errno;
                } else if (st.st_dev != all->device) {
                        r = -EBUSY;
                } else if (depth >= TREE_DEPTH_MAX) {
                        r = lift(all, here, e->d_name);
                } else {
                        int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
                        int sub = openat(here, e->d_name, flags);

                        if (sub < 0 && errno == EACCES && fchmodat(here, e->d_name, 0700, 0) == 0)
                                sub = openat(here, e->d_name, flags);
                        if (sub >= 0 && (st.st_mode & 0300) != 0300)
                                fchmod(sub, 0700);
                        r = sub < 0 ? -errno : remove_inside(sub, all, depth + 1);
                        if (unlinkat(here, e->d_name, AT_REMOVEDIR) < 0 && r == 0 && errno != ENOENT)
                                r = -errno;
                }
                if (r < 0 && result == 0)
                        result = r;
        }
        closedir(dir);
        return result;
}

int fs_remove_tree(int dirfd, const char *name)
{
        if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0)
                return 0;
        if (errno == ENOENT)
                return -ENOENT;
        if (errno == ENOTDIR)
                return unlinkat(dirfd, name, 0) == 0 ? 0 : -errno;
        int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno == EACCES && fchmodat(dirfd, name, 0700, 0) == 0)
                fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;
        if (fd < 0)
                return errno == ELOOP ? (unlinkat(dirfd, name, 0) == 0 ? 0 : -errno) : -errno;
        if (fstat(fd, &st) < 0) {
                int r = -errno;

                close(fd);
                return r;
        }
        if ((st.st_mode & 0300) != 0300)
                fchmod(fd, 0700);
        struct removal all = {.device = st.st_dev, .top = fcntl(fd, F_DUPFD_CLOEXEC, 3)};
        unsigned before;
        int r;
        do {
                before = all.lifted;
                r = remove_inside(fd, &all, 0);
                fd = all.lifted != before ? openat(all.top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        } while (r == 0 && fd >= 0);
        if (fd >= 0)
                close(fd);
        if (all.top >= 0)
                close(all.top);
        if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && r == 0)
                r = -errno;
        return r;
}

static void tree_bytes(int fd, uint64_t *bytes, uint64_t *left, int depth)
{
        DIR *dir = fdopendir(fd);

        if (!dir) {
                close(fd);
                return;
        }
        struct dirent *e;
        while (*left > 0 && (e = readdir(dir))) {
                struct stat st;

                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
                    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                (*left)--;
                *bytes += (uint64_t)st.st_blocks * 512;
                if (!S_ISDIR(st.st_mode) || depth >= TREE_DEPTH_MAX)
                        continue;
                int sub = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (sub >= 0)
                        tree_bytes(sub, bytes, left, depth + 1);
        }
        closedir(dir);
}

uint64_t fs_tree_bytes(int dirfd, const char *name, uint64_t files_max)
{
        uint64_t bytes = 0, left = files_max ? files_max : UINT64_MAX;
        int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd >= 0)
                tree_bytes(fd, &bytes, &left, 0);
        return bytes;
}

int fs_boot_id(char *room, size_t size)
{
        BUF_CLEANUP struct buf b = {0};
        int r = fs_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 256, &b, NULL);

        if (r == 0)
                snprintf(room, size, STR_FMT, STR_ARG(str_trim(buf_view(&b))));
        return r;
}

void fs_domain(char *room, size_t size)
{
        char boot[64] = "unknown";

        fs_boot_id(boot, sizeof(boot));
        struct stat st = {0};
        (void)!stat("/proc/self/ns/mnt", &st);
        snprintf(room, size, "%s:%llu", boot, (unsigned long long)st.st_ino);
}
