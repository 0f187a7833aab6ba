#include "store/store_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/pack.h"
#include "store/store.h"

static char *beside(const char *path, const char *suffix)
{
        struct buf b = {0};

        buf_addz(&b, path);
        buf_addz(&b, suffix);
        return buf_take(&b);
}

static char *folder_of(const char *path)
{
        ptrdiff_t slash = str_rfind(str_of(path), '/');

        if (slash < 0)
                return mem_dupz(".");
        return mem_dup(path, slash == 0 ? 1 : (size_t)slash);
}

static int fail_file(struct err *err, int number, const char *what, const char *path)
{
        return err_set(err, -number, "cannot %s %s: %s", what, path, strerror(number));
}

int store_lock_take(const char *path, int *ret_fd, struct err *err)
{
        MEM_CLEANUP char *lock = beside(path, ".lock");
        char holder[32] = "";
        int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        int n, number;

        if (fd < 0)
                return fail_file(err, errno, "open", lock);
        if (flock(fd, LOCK_EX | LOCK_NB)) {
                number = errno;
                n = (int)pread(fd, holder, sizeof(holder) - 1, 0);
                close(fd);
                if (number != EWOULDBLOCK)
                        return fail_file(err, number, "lock", lock);
                n = n > 0 ? (int)strcspn(holder, "\n") : 0;
                return err_set(err, STORE_LOCKED,
                               "%s is in use by %s%.*s: stop that server first, or choose another folder",
                               path, n ? "process " : "another process", n, holder);
        }
        n = snprintf(holder, sizeof(holder), "%ld\n", (long)getpid());
        if (ftruncate(fd, 0) || pwrite(fd, holder, (size_t)n, 0) != n) {
                /* On a full disk the lock still holds; only its message for others is incomplete. */
                number = errno;
                if (number != ENOSPC && number != EDQUOT) {
                        close(fd);
                        return fail_file(err, number, "write", lock);
                }
        }
        *ret_fd = fd;
        return 0;
}

#define MARK_CLOSED (UINT64_C(1) << 63) /* flag in the number */
#define BEGIN_BYTES (1 << 20)           /* for the first commits of the next start */

struct mark {
        char magic[8];
        uint64_t seq;
        uint32_t crc, spare;
};
static const char mark_magic[8] = "drovermk";

int store_mark_open(const char *path, int *ret_fd, enum store_mark *ret_kind, uint64_t *ret_seq,
                    struct err *err)
{
        MEM_CLEANUP char *name = beside(path, ".mark");
        int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        struct mark m;

        if (fd < 0 && (errno == ENOSPC || errno == EDQUOT))
                return err_set(err, -ENOSPC, "no space for the mark %s", name);
        if (fd < 0)
                return fail_file(err, errno, "open", name);
        *ret_kind = STORE_MARK_NONE;
        *ret_seq = 0;
        if (pread(fd, &m, sizeof(m), 0) == (ssize_t)sizeof(m) && memcmp(m.magic, mark_magic, 8) == 0 &&
            m.crc == pack_crc32c(0, &m.seq, sizeof(m.seq))) {
                *ret_kind = m.seq & MARK_CLOSED || m.seq == 0 ? STORE_MARK_CLOSED : STORE_MARK_OPEN;
                *ret_seq = m.seq & ~MARK_CLOSED;
        }
        *ret_fd = fd;
        return 0;
}

void store_mark_write(int fd, enum store_mark kind, uint64_t seq)
{
        seq |= kind == STORE_MARK_CLOSED ? MARK_CLOSED : 0;

        struct mark m = {.seq = seq, .crc = pack_crc32c(0, &seq, sizeof(seq))};

        memcpy(m.magic, mark_magic, sizeof(m.magic));
        (void)!pwrite(fd, &m, sizeof(m), 0);
}

bool store_reserve_file_exists(const char *path)
{
        MEM_CLEANUP char *name = beside(path, ".reserve");

        return access(name, F_OK) == 0;
}

int store_reserve_file_take(const char *path, struct err *err)
{
        MEM_CLEANUP char *name = beside(path, ".reserve");
        int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        int number;

        if (fd < 0)
                return errno == ENOSPC || errno == EDQUOT
                               ? err_set(err, STORE_FULL, "no space for the reserve %s", name)
                               : fail_file(err, errno, "open", name);
        number = posix_fallocate(fd, 0, STORE_RESERVE_BYTES);
        if (number == 0 && fsync(fd))
                number = errno;
        if (number) /* a partly allocated file would look like a complete reserve */
                (void)!ftruncate(fd, 0);
        close(fd);
        if (number == ENOSPC || number == EDQUOT)
                return err_set(err, STORE_FULL, "no space for the reserve %s", name);
        return number ? fail_file(err, number, "write", name) : 0;
}

int store_reserve_file_release(const char *path, struct err *err)
{
        MEM_CLEANUP char *name = beside(path, ".reserve");

        return truncate(name, 0) && errno != ENOENT ? fail_file(err, errno, "truncate", name) : 0;
}

int store_file_create(const char *path, struct err *err)
{
        MEM_CLEANUP char *folder = folder_of(path);
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        int r = 0;

        if (fd < 0)
                return errno == EEXIST ? 0 : fail_file(err, errno, "create", path);
        if (fsync(fd))
                r = fail_file(err, errno, "flush", path);
        close(fd);
        if (r)
                return r;
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return fail_file(err, errno, "open", folder);
        if (fsync(fd))
                r = fail_file(err, errno, "flush", folder);
        close(fd);
        return r;
}

void store_wal_extend(const char *path, size_t size)
{
        MEM_CLEANUP char *name = beside(path, "-wal");
        MEM_CLEANUP char *zeros = mem_zalloc(1 << 18);
        int fd = open(name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;

        if (fd < 0)
                return;
        if (fstat(fd, &st) == 0) {
                for (off_t at = st.st_size; at < (off_t)size;) {
                        ssize_t n = pwrite(fd, zeros, 1 << 18, at);

                        if (n <= 0) { /* a full disk: its space is needed for other things */
                                (void)!ftruncate(fd, st.st_size);
                                break;
                        }
                        at += n;
                }
                fsync(fd);
        }
        close(fd);
}

bool store_wal_fits(const char *path)
{
        MEM_CLEANUP char *name = beside(path, "-wal");
        struct statvfs disk;
        struct stat st;

        return stat(name, &st) != 0 || statvfs(name, &disk) != 0 ||
               (uint64_t)disk.f_bavail * disk.f_frsize >= (uint64_t)st.st_size + BEGIN_BYTES;
}

void store_wal_empty(const char *path, size_t size)
{
        MEM_CLEANUP char *name = beside(path, "-wal");
        int fd = open(name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        static const char header[32];
        struct stat st;

        if (fd < 0)
                return;
        if (fstat(fd, &st) == 0 && st.st_size > (off_t)size)
                (void)!ftruncate(fd, (off_t)size);
        if (fstat(fd, &st) == 0 && st.st_size > 0 &&
            (pwrite(fd, header, sizeof(header), 0) != sizeof(header) || fdatasync(fd)))
                (void)!ftruncate(fd, 0);
        close(fd);
}

/* From statfs(2) and the filesystems' headers. FUSE is included because sshfs and similar ones use it; a
 * local FUSE filesystem only loses shared memory, which it may not support anyway. */
static const uint32_t network_magics[] = {
        0x00006969, /* NFS */
        0x0000517b, /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x5346414f, /* AFS, OpenAFS */
        0x6b414653, /* AFS, kernel's */
        0x73757245, /* Coda */
        0x01021997, /* 9P */
        0x00c36400, /* Ceph */
        0x47504653, /* GPFS */
        0x0bd00bd0, /* Lustre */
        0x65735546, /* FUSE */
        0x7461636f, /* OCFS2 */
        0x01161970, /* GFS2 */
        0x19830326, /* BeeGFS */
        0xaad7aaea, /* PanFS */
        0x786f4256, /* VirtualBox shared folder */
};

bool store_path_is_network(const char *path)
{
        MEM_CLEANUP char *folder = folder_of(path);
        struct statfs st;

        if (statfs(folder, &st))
                return false;
        for (size_t i = 0; i < sizeof(network_magics) / sizeof(network_magics[0]); i++)
                if ((uint32_t)st.f_type == network_magics[i])
                        return true;
        return false;
}
