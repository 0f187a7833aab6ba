/* The SQLite back end: opening, migrations, closing. (Writing and reading have files of their own.)
 *
 * It uses WAL with synchronous=FULL: a commit is one flush of the write-ahead log. One connection writes,
 * a pool of others reads at the same time, and one more moves pages from the log to the database
 * (checkpoints), so that a commit waits for neither. The schema's number is SQLite's user_version;
 * migrations with higher numbers run at opening, each in its own transaction.
 *
 * On a network filesystem (or with "sqlite-exclusive:") there is no shared memory, and locks may not work,
 * so SQLite's exclusive locking is used: the database is locked from opening to closing, the log's index
 * is on the heap, and one connection does everything under a lock.
 *
 * Checksums detect damage that SQLite does not detect: of each record with its number, each part of a
 * snapshot, each blob and each history row. A database file that is empty or missing although its reserve
 * or its log exists is refused. A write-ahead log that was cut short by hand cannot be detected: SQLite
 * uses its valid beginning, as it must after a power cut. */
#include "store/store_sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/schema.h"
#include "store/store_files.h"
#include "store/store_log_file.h"

#define WAL_BYTES      (9 << 20)  /* a little more than its size when a checkpoint begins */
#define APPLICATION_ID 0x44727672 /* "Drvr", in the file's header */

static const char *const statement_sql[ST_COUNT] = {
        [ST_BEGIN] = "BEGIN IMMEDIATE",
        [ST_HOLD] = "SELECT 1 FROM state",
        [ST_COMMIT] = "COMMIT",
        [ST_ROLLBACK] = "ROLLBACK",
        [ST_STATE] = "SELECT term, cut FROM state",
        [ST_TERM] = "UPDATE state SET term = term + 1 RETURNING term",
        [ST_LOG] = "INSERT INTO log (seq, crc, record) VALUES (?, ?, ?)",
        [ST_HISTORY] =
                "INSERT INTO history (request, member, state, submitted, ended, exit_code, owner, crc, data)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [ST_HISTORY_CUT] = "DELETE FROM history WHERE id <= ?",
        [ST_BLOB_PUT] = "INSERT INTO blob (name, crc, data) VALUES (?, ?, ?)"
                        " ON CONFLICT (name) DO UPDATE SET crc = excluded.crc, data = excluded.data",
        [ST_BLOB_DELETE] = "DELETE FROM blob WHERE name = ?",
        [ST_SNAPSHOT_NEW] = "INSERT INTO snapshot (seq, size, complete) VALUES (?, ?, 0) RETURNING id",
        [ST_SNAPSHOT_PART] = "INSERT INTO snapshot_part (id, crc, data) VALUES (?, ?, ?)",
        [ST_SNAPSHOT_COMPLETE] = "UPDATE snapshot SET complete = 1 WHERE id = ?",
        [ST_CUT] = "UPDATE state SET cut = max(cut, ?)",
        /* Deletes all snapshots but the newest complete one, all older parts, and all records that were
         * cut. */
        [ST_TIDY_PARTS] =
                "DELETE FROM snapshot_part WHERE id IN (SELECT id FROM snapshot_part WHERE id >> 20 IS NOT"
                " (SELECT max(id) FROM snapshot WHERE complete) LIMIT 32)",
        [ST_TIDY_SNAPSHOTS] =
                "DELETE FROM snapshot WHERE id IS NOT (SELECT max(id) FROM snapshot WHERE complete)",
        [ST_TIDY_LOG] =
                "DELETE FROM log WHERE seq IN (SELECT seq FROM log WHERE seq <= (SELECT cut FROM state)"
                " ORDER BY seq LIMIT 10000)",
};

int sqlite_corrupt(const struct sqlite *q, struct err *err, const char *fmt, ...)
{
        struct err what = {0};
        va_list ap;

        va_start(ap, fmt);
        err_vset(&what, 0, fmt, ap);
        va_end(ap);
        return err_set(err, STORE_CORRUPT,
                       "%s is damaged (%s); nothing was changed. Put back a backup of it (and remove "
                       "%s-wal), or save what can be read: "
                       "sqlite3 '%s' .recover | sqlite3 new.db",
                       q->path, what.text, q->path, q->path);
}

int sqlite_fail(const struct sqlite *q, sqlite3 *db, int rc, struct err *err)
{
        int number = db ? sqlite3_system_errno(db) : 0;
        bool flush = rc == SQLITE_IOERR_FSYNC || rc == SQLITE_IOERR_DIR_FSYNC;

        switch (rc & 0xff) {
        case SQLITE_NOTADB: return sqlite_corrupt(q, err, "it is not a database");
        case SQLITE_CORRUPT:
                return sqlite_corrupt(q, err, "%s", db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
        case SQLITE_FULL: return err_set(err, STORE_FULL, "there is no space left for %s", q->path);
        case SQLITE_IOERR:
        case SQLITE_CANTOPEN:
                if (!flush && (number == ENOSPC || number == EDQUOT))
                        return err_set(err, STORE_FULL, "there is no space left for %s", q->path);
                number = number ? number : EIO;
                break;
        case SQLITE_BUSY:
        case SQLITE_LOCKED: number = EBUSY; break;
        case SQLITE_READONLY: number = EROFS; break;
        case SQLITE_PERM: number = EACCES; break;
        case SQLITE_NOMEM: number = ENOMEM; break;
        case SQLITE_TOOBIG: number = EMSGSIZE; break;
        default: number = EIO; break;
        }
        return err_set(err, -number, "%s: %s (%s, SQLite's code %d)", q->path, strerror(number),
                       db ? sqlite3_errmsg(db) : sqlite3_errstr(rc), rc);
}

static int sqlite_run_sql(const struct sqlite *q, sqlite3 *db, const char *sql, struct err *err)
{
        int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

        return rc ? sqlite_fail(q, db, rc, err) : 0;
}

/* Returns the first column of the first row, as a number or a short text. */
static int ask_database(const struct sqlite *q, sqlite3 *db, const char *sql, int64_t *ret, char *text,
                        size_t size, struct err *err)
{
        sqlite3_stmt *st = NULL;
        int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
        int r = 0;

        if (rc == SQLITE_OK)
                rc = sqlite3_step(st);
        if (rc == SQLITE_ROW && ret)
                *ret = sqlite3_column_int64(st, 0);
        if (rc == SQLITE_ROW && text)
                sqlite3_snprintf((int)size, text, "%s", (const char *)sqlite3_column_text(st, 0));
        if (rc != SQLITE_ROW)
                r = rc == SQLITE_DONE ? sqlite_corrupt(q, err, "%s gave nothing", sql)
                                      : sqlite_fail(q, db, rc, err);
        sqlite3_finalize(st);
        return r;
}

int sqlite_connect(const struct sqlite *q, sqlite3 **ret, struct err *err)
{
        char mode[16] = "";
        int keep = 1;
        sqlite3 *db = NULL;
        int rc = sqlite3_open_v2(q->path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                                 store_log_file_vfs());
        int r = 0;

        if (rc) {
                r = sqlite_fail(q, db, rc, err);
                sqlite3_close(db);
                return r;
        }
        sqlite3_extended_result_codes(db, 1);
        sqlite3_busy_timeout(db, 10000);
        sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        if (q->exclusive)
                r = sqlite_run_sql(q, db, "PRAGMA locking_mode = EXCLUSIVE", err);
        if (r == 0)
                r = ask_database(q, db, "PRAGMA journal_mode = WAL", NULL, mode, sizeof(mode), err);
        if (r == 0 && !str_eqz(STR("wal"), mode))
                r = err_set(err, -ENOTSUP, "%s: the filesystem has no way to keep a write-ahead log",
                            q->path);
        if (r == 0)
                r = sqlite_run_sql(
                        q, db,
                        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = "
                        "MEMORY;"
                        "PRAGMA cell_size_check = ON",
                        err);
        if (r) {
                sqlite3_close(db);
                return r;
        }
        sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
        *ret = db;
        return 0;
}

int sqlite_migrate(struct sqlite *q, struct err *err)
{
        const int newest = migrations[sizeof(migrations) / sizeof(migrations[0]) - 1].number;
        int64_t version, application, tables;
        int r;

        r = ask_database(q, q->db, "PRAGMA user_version", &version, NULL, 0, err);
        if (r == 0)
                r = ask_database(q, q->db, "PRAGMA application_id", &application, NULL, 0, err);
        if (r == 0)
                r = ask_database(q, q->db, "SELECT count(*) FROM sqlite_schema", &tables, NULL, 0, err);
        if (r)
                return r;
        if (application != APPLICATION_ID && (application || version || tables))
                return sqlite_corrupt(q, err, "it is a database, but not of this program");
        if (version > newest)
                return err_set(
                        err, STORE_TOO_NEW,
                        "%s was made by a newer version (schema %lld, this one knows up to %d): run that "
                        "version, or put back a backup from before the upgrade",
                        q->path, (long long)version, newest);
        for (size_t i = 0; i < sizeof(migrations) / sizeof(migrations[0]); i++) {
                char *sql;

                if (migrations[i].number <= version)
                        continue;
                sql = sqlite3_mprintf(
                        "BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; PRAGMA application_id = %d; "
                        "COMMIT",
                        migrations[i].sql, migrations[i].number, APPLICATION_ID);
                r = sqlite_run_sql(q, q->db, sql, err);
                sqlite3_free(sql);
                if (r) {
                        sqlite3_exec(q->db, "ROLLBACK", NULL, NULL, NULL);
                        return err_prefix(err, r, "migration %d", migrations[i].number);
                }
        }
        return 0;
}

static int prepare_statements(struct sqlite *q, struct err *err)
{
        for (int i = 0; i < ST_COUNT; i++) {
                int rc = sqlite3_prepare_v3(q->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &q->st[i],
                                            NULL);

                if (rc == SQLITE_ERROR)
                        return sqlite_corrupt(q, err, "%s", sqlite3_errmsg(q->db));
                if (rc)
                        return sqlite_fail(q, q->db, rc, err);
        }
        return 0;
}

/* Checks that the file exists if it existed before. */
static int check_presence(const struct sqlite *q, struct err *err)
{
        MEM_CLEANUP char *wal = NULL;
        struct buf name = {0};
        struct stat st;
        const char *witness = NULL;

        if (stat(q->path, &st) == 0 && st.st_size > 0)
                return 0;
        buf_printf(&name, "%s-wal", q->path);
        wal = buf_take(&name);
        if (stat(wal, &st) == 0 && st.st_size > 0)
                witness = "-wal";
        else if (store_reserve_file_exists(q->path))
                witness = ".reserve";
        if (!witness)
                return 0;
        return err_set(err, STORE_CORRUPT,
                       "%s is empty or gone, but %s%s shows that there was one; nothing was changed. Put "
                       "back a backup "
                       "of it, or, to begin with nothing, remove %s%s",
                       q->path, q->path, witness, q->path, witness);
}

static void sqlite_close(struct store_backend *be)
{
        struct sqlite *q = (struct sqlite *)be;
        bool whole = false, fits = q->db && store_wal_fits(q->path);

        sqlite_checkpointer_stop(q);
        sqlite_readers_close(q);
        for (int i = 0; i < ST_COUNT; i++)
                sqlite3_finalize(q->st[i]);
        sqlite3_finalize(q->blob);
        if (q->db && !q->failed && fits)
                whole = sqlite_checkpoint_whole(q);
        if (q->db && (q->failed || !fits)) /* the log has everything, and the next start needs what is left */
                sqlite3_db_config(q->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        sqlite3_close(q->db);
        if (whole) {
                store_wal_empty(q->path, WAL_BYTES);
                if (!q->be.lost)
                        store_mark_write(q->mark_fd, STORE_MARK_CLOSED, q->marked);
        }
        if (q->mark_fd >= 0)
                close(q->mark_fd);
        if (q->lock_fd >= 0)
                close(q->lock_fd);
        pthread_mutex_destroy(&q->db_lock);
        pthread_mutex_destroy(&q->readers_lock);
        pthread_mutex_destroy(&q->checkpoint_lock);
        pthread_cond_destroy(&q->checkpoint_work);
        free(q->path);
        free(q);
}

static struct sqlite *sqlite_new(const struct store_backend_ops *ops, const char *path)
{
        struct sqlite *q = mem_new(struct sqlite);
        pthread_mutexattr_t recursive;

        q->be.ops = ops;
        q->path = mem_dupz(path);
        q->lock_fd = q->mark_fd = -1;
        pthread_mutexattr_init(&recursive);
        pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
        pthread_mutex_init(&q->db_lock, &recursive);
        pthread_mutexattr_destroy(&recursive);
        pthread_mutex_init(&q->readers_lock, NULL);
        pthread_mutex_init(&q->checkpoint_lock, NULL);
        pthread_cond_init(&q->checkpoint_work, NULL);
        return q;
}

/* Refuses a database that ends before a record that was durable in it, unless a copy replaced a closed
 * database, or came without its mark. The mark shows which until the first commit. */
static int sqlite_check_mark(struct sqlite *q, uint64_t last, struct err *err)
{
        enum store_mark kind;
        uint64_t mark;
        int r = store_mark_open(q->path, &q->mark_fd, &kind, &mark, err);

        if (r)
                return r;
        if (mark > last && kind == STORE_MARK_OPEN)
                return err_set(
                        err, STORE_CORRUPT,
                        "%s ends with record %llu, and %llu was durable in it: its -wal file was lost or "
                        "damaged, or a backup is in its place; nothing was changed. Put %s-wal back, or "
                        "remove %s.mark to go on without what is lost",
                        q->path, (unsigned long long)last, (unsigned long long)mark, q->path, q->path);
        q->marked = last;
        q->be.lost = kind == STORE_MARK_NONE ? last > 0 : mark > last;
        if (!q->be.lost)
                store_mark_write(q->mark_fd, STORE_MARK_OPEN, last);
        /* After a power cut a new file may be empty unless it was flushed once, and a database without its
         * mark would be taken for a copy. */
        if (kind == STORE_MARK_NONE && !q->be.lost && fsync(q->mark_fd) < 0 && errno != ENOSPC &&
            errno != EDQUOT)
                return err_set(err, -errno, "cannot write %s.mark: %s", q->path, strerror(errno));
        return 0;
}

static int sqlite_open_file(struct sqlite *q, uint64_t *ret_last_seq, struct err *err)
{
        int64_t last;
        int r;

        r = store_lock_take(q->path, &q->lock_fd, err);
        if (r == 0)
                r = check_presence(q, err);
        if (r == 0)
                r = store_file_create(q->path, err);
        if (r == 0)
                r = sqlite_connect(q, &q->db, err);
        if (r == 0)
                r = sqlite_run_sql(q, q->db, "PRAGMA cache_size = -16384", err);
        if (r == 0)
                r = sqlite_migrate(q, err);
        if (r == 0)
                r = prepare_statements(q, err);
        if (r == 0)
                r = ask_database(q, q->db, SQLITE_LAST, &last, NULL, 0, err);
        if (r == 0)
                r = sqlite_check_mark(q, (uint64_t)last, err);
        if (r == 0)
                r = sqlite_checkpointer_start(q, err);
        if (r)
                return r;
        *ret_last_seq = (uint64_t)last;
        store_wal_extend(q->path, WAL_BYTES);
        /* The store works without a reserve; store_reserve_take reports the full disk again. */
        r = store_reserve_file_take(q->path, err);
        return r == STORE_FULL ? 0 : r;
}

static int open_as(const struct store_backend_ops *ops, bool exclusive, const char *path,
                   struct store_backend **ret, uint64_t *ret_last_seq, bool *ret_network, struct err *err)
{
        struct sqlite *q;
        int r;

        if (!*path)
                return err_set(err, -EINVAL, "the store's address has no path: write sqlite:/path/file.db");
        q = sqlite_new(ops, path);
        *ret_network = store_path_is_network(path);
        q->exclusive = exclusive || *ret_network;
        r = sqlite_open_file(q, ret_last_seq, err);
        if (r) {
                q->failed = true;
                sqlite_close(&q->be);
                return r == STORE_FULL ? -ENOSPC : r;
        }
        *ret = &q->be;
        return 0;
}

static int check_version(const struct sqlite *q, sqlite3 *db, struct err *err)
{
        const int newest = migrations[sizeof(migrations) / sizeof(migrations[0]) - 1].number;
        int64_t version = 0;
        int r = ask_database(q, db, "PRAGMA user_version", &version, NULL, 0, err);

        if (r == 0 && version != newest)
                r = err_set(err, version > newest ? STORE_TOO_NEW : -ENOENT,
                            "%s has schema %lld, this version reads %d", q->path, (long long)version, newest);
        return r;
}

/* Opens a file that belongs to another server: the connections make no checkpoint, not even at closing
 * (`failed`). */
static int sqlite_follow(const char *path, const struct store_place *place, struct store_backend **ret,
                         struct err *err)
{
        struct sqlite *q;
        sqlite3 *db = NULL;
        int r;

        (void)place;
        if (store_path_is_network(path))
                return err_set(err, -ENOTSUP, "%s is on a network filesystem: one process may have it open",
                               path);
        if (access(path, R_OK) < 0)
                return err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
        q = sqlite_new(&store_sqlite, path);
        q->failed = true;
        r = sqlite_connect(q, &db, err);
        if (r == 0)
                r = check_version(q, db, err);
        if (db) {
                sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
                sqlite3_close(db);
        }
        if (r != 0)
                sqlite_close(&q->be);
        else
                *ret = &q->be;
        return r;
}

static int sqlite_open(const char *path, const struct store_place *place, struct store_backend **ret,
                       uint64_t *ret_last_seq, bool *ret_network, struct err *err)
{
        (void)place; /* everything is beside the file */
        return open_as(&store_sqlite, false, path, ret, ret_last_seq, ret_network, err);
}

static int sqlite_open_exclusive(const char *path, const struct store_place *place,
                                 struct store_backend **ret, uint64_t *ret_last_seq, bool *ret_network,
                                 struct err *err)
{
        (void)place;
        return open_as(&store_sqlite_exclusive, true, path, ret, ret_last_seq, ret_network, err);
}

static int sqlite_reserve_release(struct store_backend *be)
{
        return store_reserve_file_release(((struct sqlite *)be)->path, NULL);
}

static int sqlite_reserve_take(struct store_backend *be)
{
        return store_reserve_file_take(((struct sqlite *)be)->path, NULL);
}

#define COMMON                                                                                               \
        .close = sqlite_close, .term_take = sqlite_term_take, .commit = sqlite_commit,                       \
        .snapshot_slice = sqlite_snapshot_slice, .reserve_release = sqlite_reserve_release,                  \
        .reserve_take = sqlite_reserve_take, .scan = sqlite_scan, .snapshot_get = sqlite_snapshot_get,       \
        .blob_get = sqlite_blob_get, .blob_list = sqlite_blob_list, .history = sqlite_history

const struct store_backend_ops store_sqlite = {.open = sqlite_open,
                                               .follow = sqlite_follow,
                                               .follow_last = sqlite_follow_last,
                                               .blobs_begin = sqlite_blobs_begin,
                                               .blobs_end = sqlite_blobs_end,
                                               COMMON};
const struct store_backend_ops store_sqlite_exclusive = {.open = sqlite_open_exclusive, COMMON};
