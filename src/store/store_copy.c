/* One step of SQLite's backup interface reads all pages in one transaction: commits by others go into the
 * write-ahead log meanwhile and are not seen, and page numbers and row ids stay the same. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "store/store.h"

#define BUSY_MS 10000

static int explain(sqlite3 *db, const char *path, struct err *err)
{
        int rc = sqlite3_errcode(db), number = sqlite3_system_errno(db);

        switch (rc & 0xff) {
        case SQLITE_FULL: return err_set(err, STORE_FULL, "there is no space left for %s", path);
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
                return err_set(err, STORE_CORRUPT, "%s is damaged (%s)", path, sqlite3_errmsg(db));
        default:
                if (number == ENOSPC || number == EDQUOT)
                        return err_set(err, STORE_FULL, "there is no space left for %s", path);
                return err_set(err, number ? -number : -EIO, "cannot copy %s: %s", path, sqlite3_errmsg(db));
        }
}

static int copy_pages(sqlite3 *from, const char *path, sqlite3 *to, const char *to_path, struct err *err)
{
        sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
        int step, rc;

        if (!b)
                return explain(to, to_path, err);
        step = sqlite3_backup_step(b, -1);
        rc = sqlite3_backup_finish(b);
        if (step == SQLITE_DONE && rc == SQLITE_OK)
                return 0;
        return sqlite3_errcode(from) != SQLITE_OK ? explain(from, path, err) : explain(to, to_path, err);
}

int store_copy(const char *path, const char *to, struct err *err)
{
        sqlite3 *from_db = NULL, *to_db = NULL;
        int fd = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), r = 0;

        if (fd < 0)
                return err_set(err, -errno, "cannot make %s: %s", to, strerror(errno));
        close(fd);
        if (sqlite3_open_v2(path, &from_db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
                r = explain(from_db, path, err);
        else if (sqlite3_open_v2(to, &to_db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
                r = explain(to_db, to, err);
        if (r == 0) {
                sqlite3_busy_timeout(from_db, BUSY_MS);
                /* If this connection closes last, it must not remove the log from under a server that is
                 * starting. */
                sqlite3_db_config(from_db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
                r = copy_pages(from_db, path, to_db, to, err);
        }
        sqlite3_close(from_db);
        sqlite3_close(to_db);
        if (r != 0)
                unlink(to);
        return r;
}
