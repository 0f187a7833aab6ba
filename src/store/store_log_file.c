#include "store/store_log_file.h"

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

#include "base/mem.h"

#define GATHER_BYTES (128 << 10)

struct log_file {
        sqlite3_file base;
        sqlite3_file *real; /* behind this struct */
        char *bytes;        /* gathered, for `at`; NULL until the first write */
        int n;
        sqlite3_int64 at;
};

static sqlite3_vfs *real_vfs, log_vfs;

static sqlite3_file *real_of(sqlite3_file *f)
{
        return ((struct log_file *)f)->real;
}

/* Writes what was gathered. After an error it is gone: SQLite rolls the transaction back. */
static int log_pass(sqlite3_file *base)
{
        struct log_file *f = (struct log_file *)base;
        int n = f->n;

        f->n = 0;
        return n ? f->real->pMethods->xWrite(f->real, f->bytes, n, f->at) : SQLITE_OK;
}

static int log_write(sqlite3_file *base, const void *p, int n, sqlite3_int64 at)
{
        struct log_file *f = (struct log_file *)base;
        int rc = f->n && (at != f->at + f->n || n > GATHER_BYTES - f->n) ? log_pass(base) : SQLITE_OK;

        if (rc != SQLITE_OK)
                return rc;
        if (n > GATHER_BYTES)
                return f->real->pMethods->xWrite(f->real, p, n, at);
        if (!f->bytes)
                f->bytes = mem_alloc(GATHER_BYTES);
        if (!f->n)
                f->at = at;
        memcpy(f->bytes + f->n, p, (size_t)n);
        f->n += n;
        return SQLITE_OK;
}

/* What was gathered and never flushed belongs to no commit. */
static int log_close(sqlite3_file *base)
{
        struct log_file *f = (struct log_file *)base;

        free(f->bytes);
        return f->real->pMethods->xClose(f->real);
}

static int log_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
        int rc = log_pass(f);

        return rc ? rc : real_of(f)->pMethods->xRead(real_of(f), p, n, at);
}

static int log_truncate(sqlite3_file *f, sqlite3_int64 size)
{
        int rc = log_pass(f);

        return rc ? rc : real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int log_sync(sqlite3_file *f, int flags)
{
        int rc = log_pass(f);

        return rc ? rc : real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int log_size(sqlite3_file *f, sqlite3_int64 *ret)
{
        int rc = log_pass(f);

        return rc ? rc : real_of(f)->pMethods->xFileSize(real_of(f), ret);
}

static int log_control(sqlite3_file *f, int op, void *arg)
{
        return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int log_sector(sqlite3_file *f)
{
        return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int log_device(sqlite3_file *f)
{
        return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

/* SQLite locks and maps the database only, never its log. */
static const sqlite3_io_methods methods = {
        .iVersion = 1,
        .xClose = log_close,
        .xRead = log_read,
        .xWrite = log_write,
        .xTruncate = log_truncate,
        .xSync = log_sync,
        .xFileSize = log_size,
        .xFileControl = log_control,
        .xSectorSize = log_sector,
        .xDeviceCharacteristics = log_device,
};

static int log_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *ret_flags)
{
        struct log_file *f = (struct log_file *)base;
        int rc;

        (void)vfs;
        if (!(flags & SQLITE_OPEN_WAL))
                return real_vfs->xOpen(real_vfs, name, base, flags, ret_flags);
        *f = (struct log_file){.real = (sqlite3_file *)(f + 1)};
        rc = real_vfs->xOpen(real_vfs, name, f->real, flags, ret_flags);
        f->base.pMethods = f->real->pMethods ? &methods : NULL;
        return rc;
}

static void log_register(sqlite3_vfs *real)
{
        if (real_vfs)
                sqlite3_vfs_unregister(&log_vfs);
        real_vfs = real;
        log_vfs = *real; /* its other calls are the real one's, whose pAppData it then has */
        log_vfs.zName = "drover-log";
        log_vfs.szOsFile = (int)sizeof(struct log_file) + real_vfs->szOsFile;
        log_vfs.xOpen = log_open;
        sqlite3_vfs_register(&log_vfs, 0);
}

const char *store_log_file_vfs(void)
{
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        sqlite3_vfs *real;

        pthread_mutex_lock(&lock);
        real = sqlite3_vfs_find(NULL);
        if (real != real_vfs)
                log_register(real);
        pthread_mutex_unlock(&lock);
        return log_vfs.zName;
}
