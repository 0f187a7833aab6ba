#include "fault_vfs.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"

/* A write or a truncation since the last flush, with what it replaced. */
struct change {
        struct change *before; /* the one made before it */
        sqlite3_int64 offset, old_size, new_size;
        struct buf old_bytes, new_bytes;
};

/* A file, however often it is open. */
struct disk {
        struct disk *next;
        char *path;
        struct change *last;
};

struct file {
        sqlite3_file base;
        struct disk *disk;
        sqlite3_file *real; /* behind this struct */
};

static struct {
        pthread_mutex_t lock;
        sqlite3_vfs *real;
        enum fault_kind kind;
        uint64_t calls, at, length;
        unsigned seed;
        bool reached;
        struct disk *disks;
} fault = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Thread_local int last_errno;

static unsigned chance(void)
{
        fault.seed = fault.seed * 1664525u + 1013904223u;
        return fault.seed >> 16;
}

/* ---- power loss */

static void forget_changes(struct disk *d)
{
        while (d->last) {
                struct change *c = d->last;

                d->last = c->before;
                buf_deinit(&c->old_bytes);
                buf_deinit(&c->new_bytes);
                free(c);
        }
}

static void remember(struct file *f, sqlite3_int64 offset, const void *bytes, int amount,
                     sqlite3_int64 new_size)
{
        struct change *c = mem_new(struct change);
        sqlite3_int64 n;
        char *room;

        f->real->pMethods->xFileSize(f->real, &c->old_size);
        c->offset = offset;
        c->new_size = new_size > 0 || !bytes ? new_size : c->old_size;
        if (bytes && offset + amount > c->new_size)
                c->new_size = offset + amount;
        n = (bytes ? offset + amount : c->old_size) - offset;
        if (offset + n > c->old_size)
                n = c->old_size - offset;
        if (n > 0) {
                room = buf_room(&c->old_bytes, (size_t)n);
                f->real->pMethods->xRead(f->real, room, (int)n, offset);
                c->old_bytes.n = (size_t)n;
        }
        if (bytes)
                buf_add(&c->new_bytes, bytes, (size_t)amount);
        c->before = f->disk->last;
        f->disk->last = c;
}

static void put_bytes(FILE *to, sqlite3_int64 offset, const char *p, size_t n)
{
        if (n == 0)
                return;
        fseeko(to, offset, SEEK_SET);
        if (fwrite(p, 1, n, to) != n)
                abort();
}

static void set_size(FILE *to, sqlite3_int64 size)
{
        fflush(to);
        if (ftruncate(fileno(to), size))
                abort();
}

static void lose(struct disk *d)
{
        FILE *to = d->last ? fopen(d->path, "r+") : NULL;
        struct change *order[4096];
        size_t count = 0;

        if (!to)
                return;
        for (struct change *c = d->last; c && count < 4096; c = c->before) {
                put_bytes(to, c->offset, c->old_bytes.p, c->old_bytes.n);
                set_size(to, c->old_size);
                order[count++] = c;
        }
        while (count-- > 0) {
                struct change *c = order[count];

                if (chance() % 3 == 0)
                        continue; /* the whole of it is lost */
                for (size_t at = 0; at < c->new_bytes.n; at += 512)
                        if (chance() % 4)
                                put_bytes(to, c->offset + (sqlite3_int64)at, c->new_bytes.p + at,
                                          c->new_bytes.n - at < 512 ? c->new_bytes.n - at : 512);
                if (!c->new_bytes.n)
                        set_size(to, c->new_size);
        }
        fclose(to);
}

/* ---- the chosen call */

enum call { CALL_WRITE, CALL_FLUSH, CALL_OTHER };

/* Counts a call; what is to happen instead of it. The lock is held. */
static enum fault_kind next_call(enum call what)
{
        if ((fault.kind == FAULT_NO_SPACE || fault.kind == FAULT_WRITE_EIO) && what != CALL_WRITE)
                return FAULT_NONE;
        if (fault.kind == FAULT_FLUSH_EIO && what != CALL_FLUSH)
                return FAULT_NONE;
        fault.calls++;
        if (fault.kind == FAULT_NONE || fault.calls < fault.at || fault.calls - fault.at >= fault.length)
                return FAULT_NONE;
        if (fault.kind == FAULT_POWER) {
                for (struct disk *d = fault.disks; d; d = d->next)
                        lose(d);
                kill(getpid(), SIGKILL);
        }
        if (fault.kind == FAULT_KILL)
                kill(getpid(), SIGKILL);
        return fault.kind;
}

static int file_write(sqlite3_file *base, const void *p, int amount, sqlite3_int64 offset)
{
        struct file *f = (struct file *)base;
        enum fault_kind what;
        int rc;

        pthread_mutex_lock(&fault.lock);
        what = next_call(CALL_WRITE);
        if (what == FAULT_TORN) {
                f->real->pMethods->xWrite(f->real, p, amount / 2, offset);
                kill(getpid(), SIGKILL);
        }
        if (what == FAULT_NO_SPACE || what == FAULT_WRITE_EIO) {
                f->real->pMethods->xWrite(f->real, p, amount / 2, offset);
                last_errno = what == FAULT_NO_SPACE ? ENOSPC : EIO;
                rc = what == FAULT_NO_SPACE ? SQLITE_FULL : SQLITE_IOERR_WRITE;
                fault.reached = true;
        } else {
                if (fault.kind == FAULT_POWER)
                        remember(f, offset, p, amount, 0);
                rc = f->real->pMethods->xWrite(f->real, p, amount, offset);
        }
        pthread_mutex_unlock(&fault.lock);
        return rc;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
        struct file *f = (struct file *)base;
        int rc;

        pthread_mutex_lock(&fault.lock);
        if (next_call(CALL_OTHER) == FAULT_TORN)
                kill(getpid(), SIGKILL);
        if (fault.kind == FAULT_POWER)
                remember(f, size, NULL, 0, size);
        rc = f->real->pMethods->xTruncate(f->real, size);
        pthread_mutex_unlock(&fault.lock);
        return rc;
}

static int file_sync(sqlite3_file *base, int flags)
{
        struct file *f = (struct file *)base;
        enum fault_kind what;
        int rc;

        pthread_mutex_lock(&fault.lock);
        what = next_call(CALL_FLUSH);
        if (what == FAULT_TORN)
                kill(getpid(), SIGKILL);
        if (what == FAULT_FLUSH_EIO) {
                last_errno = EIO;
                rc = SQLITE_IOERR_FSYNC;
                fault.reached = true;
        } else {
                rc = f->real->pMethods->xSync(f->real, flags);
                if (f->disk)
                        forget_changes(f->disk);
        }
        pthread_mutex_unlock(&fault.lock);
        return rc;
}

#define REAL(f) ((struct file *)(f))->real
static int file_close(sqlite3_file *f)
{
        return REAL(f)->pMethods->xClose(REAL(f));
}
static int file_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
        return REAL(f)->pMethods->xRead(REAL(f), p, n, at);
}
static int file_size(sqlite3_file *f, sqlite3_int64 *size)
{
        return REAL(f)->pMethods->xFileSize(REAL(f), size);
}
static int file_lock(sqlite3_file *f, int how)
{
        return REAL(f)->pMethods->xLock(REAL(f), how);
}
static int file_unlock(sqlite3_file *f, int how)
{
        return REAL(f)->pMethods->xUnlock(REAL(f), how);
}
static int file_reserved(sqlite3_file *f, int *ret)
{
        return REAL(f)->pMethods->xCheckReservedLock(REAL(f), ret);
}
static int file_control(sqlite3_file *f, int op, void *arg)
{
        return REAL(f)->pMethods->xFileControl(REAL(f), op, arg);
}
static int file_sector(sqlite3_file *f)
{
        return REAL(f)->pMethods->xSectorSize(REAL(f));
}
static int file_device(sqlite3_file *f)
{
        return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f));
}
static int shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
        return REAL(f)->pMethods->xShmMap(REAL(f), page, size, extend, ret);
}
static int shm_lock(sqlite3_file *f, int at, int n, int flags)
{
        return REAL(f)->pMethods->xShmLock(REAL(f), at, n, flags);
}
static void shm_barrier(sqlite3_file *f)
{
        REAL(f)->pMethods->xShmBarrier(REAL(f));
}
static int shm_unmap(sqlite3_file *f, int remove)
{
        return REAL(f)->pMethods->xShmUnmap(REAL(f), remove);
}

static const sqlite3_io_methods methods = {
        .iVersion = 2,
        .xClose = file_close,
        .xRead = file_read,
        .xWrite = file_write,
        .xTruncate = file_truncate,
        .xSync = file_sync,
        .xFileSize = file_size,
        .xLock = file_lock,
        .xUnlock = file_unlock,
        .xCheckReservedLock = file_reserved,
        .xFileControl = file_control,
        .xSectorSize = file_sector,
        .xDeviceCharacteristics = file_device,
        .xShmMap = shm_map,
        .xShmLock = shm_lock,
        .xShmBarrier = shm_barrier,
        .xShmUnmap = shm_unmap,
};

static struct disk *disk_of(const char *path)
{
        struct disk *d;

        for (d = fault.disks; d; d = d->next)
                if (strcmp(d->path, path) == 0)
                        return d;
        d = mem_new(struct disk);
        d->path = mem_dupz(path);
        d->next = fault.disks;
        fault.disks = d;
        return d;
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *ret_flags)
{
        struct file *f = (struct file *)base;
        int rc;

        (void)vfs;
        f->real = (sqlite3_file *)(f + 1);
        rc = fault.real->xOpen(fault.real, name, f->real, flags, ret_flags);
        f->base.pMethods = f->real->pMethods ? &methods : NULL;
        pthread_mutex_lock(&fault.lock);
        f->disk = disk_of(name ? name : "temporary");
        pthread_mutex_unlock(&fault.lock);
        return rc;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
        int rc;

        (void)vfs;
        pthread_mutex_lock(&fault.lock);
        if (next_call(CALL_OTHER) == FAULT_TORN)
                kill(getpid(), SIGKILL);
        forget_changes(disk_of(name));
        rc = fault.real->xDelete(fault.real, name, sync);
        pthread_mutex_unlock(&fault.lock);
        return rc;
}

static int vfs_last_error(sqlite3_vfs *vfs, int n, char *text)
{
        int number = last_errno;

        (void)vfs;
        last_errno = 0;
        return number ? number : fault.real->xGetLastError(fault.real, n, text);
}

void fault_install(void)
{
        static sqlite3_vfs vfs;

        fault.real = sqlite3_vfs_find(NULL);
        vfs = *fault.real; /* what is not below goes to the real one, whose pAppData it then has */
        vfs.zName = "fault";
        vfs.szOsFile = (int)sizeof(struct file) + fault.real->szOsFile;
        vfs.xOpen = vfs_open;
        vfs.xDelete = vfs_delete;
        vfs.xGetLastError = vfs_last_error;
        sqlite3_vfs_register(&vfs, 1);
}

void fault_arm(enum fault_kind kind, uint64_t at, uint64_t length, unsigned seed)
{
        pthread_mutex_lock(&fault.lock);
        for (struct disk *d = fault.disks; d; d = d->next)
                forget_changes(d);
        fault.kind = kind;
        fault.at = at;
        fault.length = length;
        fault.seed = seed;
        fault.calls = 0;
        fault.reached = false;
        pthread_mutex_unlock(&fault.lock);
}

uint64_t fault_calls(void)
{
        uint64_t n;

        pthread_mutex_lock(&fault.lock);
        n = fault.calls;
        pthread_mutex_unlock(&fault.lock);
        return n;
}

bool fault_reached(void)
{
        bool reached;

        pthread_mutex_lock(&fault.lock);
        reached = fault.reached;
        pthread_mutex_unlock(&fault.lock);
        return reached;
}
