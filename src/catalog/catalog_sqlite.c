/* The SQLite back end: opening, and what its files share. (Writing and queries have files of their own.)
 *
 * A file is a row with its name, size, checksum and replicas, under a number that is never used again. Its
 * metadata is not stored as rows: a million files with ten keys would need ten million rows and index
 * entries. It is stored in columns (column.h), one for each key and each COLUMN_FILES consecutive numbers,
 * so that a query reads only the keys that it uses, and an import writes a few large pieces. */
#include "catalog/db.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define APPLICATION_ID 0x44727663 /* "Drvc", in the file's header */
#define SCHEMA         2

static const char schema_sql[] =
        "BEGIN IMMEDIATE;"
        "CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), next INTEGER NOT NULL);"
        "INSERT INTO state VALUES (1, 1);"
        "CREATE TABLE file (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, data BLOB NOT NULL);"
        /* id: the file's number / 4096 * 65536 + the key's number */
        "CREATE TABLE piece (id INTEGER PRIMARY KEY, data BLOB NOT NULL);"
        "CREATE TABLE key (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);"
        "CREATE TABLE dataset (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, owner BLOB NOT NULL,"
        " query BLOB, files BLOB, count INTEGER NOT NULL);"
        "PRAGMA user_version = 1; PRAGMA application_id = 1148352099; COMMIT";
static const char schema_2_sql[] = "BEGIN IMMEDIATE;"
                                   "ALTER TABLE state ADD COLUMN log_number INTEGER NOT NULL DEFAULT 0;"
                                   "ALTER TABLE state ADD COLUMN log_id INTEGER NOT NULL DEFAULT 0;"
                                   "PRAGMA user_version = 2; COMMIT";

static const char *const statement_sql[ST_COUNT] = {
        [ST_BEGIN] = "BEGIN IMMEDIATE",
        [ST_BEGIN_READ] = "BEGIN",
        [ST_COMMIT] = "COMMIT",
        [ST_ROLLBACK] = "ROLLBACK",
        [ST_FILE_BY_NAME] = "SELECT id, data FROM file WHERE name = ?",
        [ST_FILE] = "SELECT name, data FROM file WHERE id = ?",
        [ST_FILE_ADD] = "INSERT INTO file (id, name, data) VALUES (?, ?, ?)",
        [ST_FILE_CHANGE] = "UPDATE file SET data = ?2 WHERE id = ?1",
        [ST_FILE_REMOVE] = "DELETE FROM file WHERE id = ?",
        [ST_COLUMN] = "SELECT data FROM piece WHERE id = ?",
        [ST_COLUMNS] = "SELECT id, data FROM piece WHERE id >= ? AND id < ? ORDER BY id",
        [ST_COLUMN_PUT] = "INSERT INTO piece (id, data) VALUES (?, ?)"
                          " ON CONFLICT (id) DO UPDATE SET data = excluded.data",
        [ST_COLUMN_REMOVE] = "DELETE FROM piece WHERE id = ?",
        [ST_KEY_ADD] = "INSERT INTO key (id, name) VALUES (?, ?)",
        [ST_KEYS] = "SELECT id, name FROM key ORDER BY id",
        [ST_STATE] = "SELECT next, log_number, log_id FROM state",
        [ST_STATE_SET] = "UPDATE state SET next = ?, log_number = ?, log_id = ?",
        [ST_DATASET] = "SELECT query, files, owner, count FROM dataset WHERE name = ?",
        [ST_DATASETS] = "SELECT name, owner, query, count FROM dataset WHERE name > ? ORDER BY name",
        [ST_DATASET_PUT] = "INSERT INTO dataset (name, owner, query, files, count) VALUES (?, ?, ?, ?, ?)"
                           " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, query = excluded.query,"
                           " files = excluded.files, count = excluded.count",
        [ST_DATASET_REMOVE] = "DELETE FROM dataset WHERE name = ?",
        [ST_ABOUT] = "SELECT (SELECT count(*) FROM file), (SELECT count(*) FROM dataset)",
};

int db_corrupt(const struct db *q, const char *what, struct err *err)
{
        return err_set(err, CATALOG_CORRUPT,
                       "%s is damaged (%s); nothing was changed. Put back a backup of it, or make it again "
                       "from a list: drover catalog import",
                       q->path, what);
}

int db_fail(struct db *q, int rc, struct err *err)
{
        int number = q->db ? sqlite3_system_errno(q->db) : 0;

        switch (rc & 0xff) {
        case SQLITE_NOTADB:
        case SQLITE_CORRUPT: return db_corrupt(q, q->db ? sqlite3_errmsg(q->db) : "no database", err);
        case SQLITE_FULL: return err_set(err, CATALOG_FULL, "there is no space left for %s", q->path);
        case SQLITE_IOERR:
        case SQLITE_CANTOPEN:
                if (rc != SQLITE_IOERR_FSYNC && (number == ENOSPC || number == EDQUOT))
                        return err_set(err, CATALOG_FULL, "there is no space left for %s", q->path);
                q->failed = true;
                number = number ? number : EIO;
                break;
        case SQLITE_BUSY:
        case SQLITE_LOCKED: number = EBUSY; break;
        case SQLITE_READONLY: number = EROFS; break;
        case SQLITE_NOMEM: number = ENOMEM; break;
        case SQLITE_TOOBIG: number = EMSGSIZE; break;
        default: number = EIO; break;
        }
        return err_set(err, -number, "%s: %s (%s)", q->path, strerror(number),
                       q->db ? sqlite3_errmsg(q->db) : sqlite3_errstr(rc));
}

int db_step(struct db *q, enum statement st, struct err *err)
{
        int rc = sqlite3_step(q->st[st]);

        return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : db_fail(q, rc, err);
}

int db_run(struct db *q, enum statement st, struct err *err)
{
        int r = db_step(q, st, err);

        sqlite3_reset(q->st[st]);
        return r == 1 ? 0 : r;
}

int db_keys_load(struct db *q, struct err *err)
{
        int r;

        map_free(q->keys);
        q->keys = map_new_nocase();
        for (size_t i = 0; i < q->key_count; i++)
                free((char *)(uintptr_t)q->names[i].p);
        q->key_count = 0;
        while ((r = db_step(q, ST_KEYS, err)) == 1) {
                struct str name = db_column(q->st[ST_KEYS], 1);

                if (db_number(q->st[ST_KEYS], 0) != KEY_FIRST + q->key_count ||
                    q->key_count == CATALOG_KEYS_MAX) {
                        r = db_corrupt(q, "its keys have wrong numbers", err);
                        break;
                }
                q->names[q->key_count++] = str_make(mem_dup(name.p ? name.p : "", name.n), name.n);
                map_put(q->keys, name, (void *)(uintptr_t)(KEY_FIRST + q->key_count - 1));
        }
        sqlite3_reset(q->st[ST_KEYS]);
        return r;
}

uint32_t db_key(const struct db *q, struct str name)
{
        return (uint32_t)(uintptr_t)map_get(q->keys, name);
}

int db_column_read(struct db *q, int64_t id, struct column *c, struct err *err)
{
        int r;

        sqlite3_bind_int64(q->st[ST_COLUMN], 1, id);
        r = db_step(q, ST_COLUMN, err);
        if (r == 1 && column_read(c, db_column(q->st[ST_COLUMN], 0)) != 0)
                r = db_corrupt(q, "a piece of metadata has a wrong checksum", err);
        sqlite3_reset(q->st[ST_COLUMN]);
        return r;
}

/* ---- a file's row: CRC-32C of the rest (4 bytes), size + 1 (0: unknown), checksum, replicas. If a URL
 * ends with the file's name, that end is not stored. */

static size_t common_end(struct str a, struct str b)
{
        size_t n = 0;

        while (n < a.n && n < b.n && a.p[a.n - 1 - n] == b.p[b.n - 1 - n])
                n++;
        return n;
}

void file_row_pack(struct buf *out, const struct catalog_file *f)
{
        size_t start = out->n;
        uint32_t crc;

        buf_add(out, "\0\0\0\0", 4);
        pack_u64(out, f->has_size ? f->size + 1 : 0);
        pack_str(out, f->checksum);
        pack_u64(out, f->replica_count);
        for (size_t i = 0; i < f->replica_count; i++) {
                const struct catalog_replica *p = &f->replicas[i];
                size_t end = common_end(p->url, f->name);

                pack_str(out, str_head(p->url, p->url.n - end));
                pack_u64(out, end);
                pack_str(out, p->host);
                pack_str(out, p->store);
        }
        crc = pack_crc32c(0, out->p + start + 4, out->n - start - 4);
        for (unsigned i = 0; i < 4; i++)
                out->p[start + i] = (char)(crc >> (8 * i));
}

int file_row_unpack(struct db *q, struct file_row *row, struct str name, struct str stored, struct err *err)
{
        struct unpack u = unpack_from(str_skip(stored, 4));
        uint32_t crc = 0;
        uint64_t size;

        for (unsigned i = 0; i < 4 && stored.n >= 4; i++)
                crc |= (uint32_t)(unsigned char)stored.p[i] << (8 * i);
        if (stored.n < 4 || pack_crc32c(0, u.p, (size_t)(u.end - u.p)) != crc)
                return db_corrupt(q, "a file's record has a wrong checksum", err);
        arena_reset(&row->texts);
        name = arena_str(&row->texts, name);
        stored = arena_str(&row->texts, str_skip(stored, 4));
        u = unpack_from(stored);
        size = unpack_u64(&u);
        row->file = (struct catalog_file){.name = name,
                                          .has_size = size > 0,
                                          .size = size ? size - 1 : 0,
                                          .checksum = unpack_str(&u),
                                          .replicas = row->replicas};
        row->file.replica_count = unpack_max(&u, CATALOG_REPLICAS_MAX);
        for (size_t i = 0; i < row->file.replica_count; i++) {
                struct str head = unpack_str(&u);
                size_t end = unpack_max(&u, name.n);
                char *url = arena_alloc(&row->texts, head.n + end + 1);

                if (head.n)
                        memcpy(url, head.p, head.n);
                if (end)
                        memcpy(url + head.n, name.p + name.n - end, end);
                row->replicas[i].url = str_make(url, head.n + end);
                row->replicas[i].host = unpack_str(&u);
                row->replicas[i].store = unpack_str(&u);
        }
        return unpack_done(&u) ? 0 : db_corrupt(q, "a file's record is not whole", err);
}

void places_pack(struct buf *out, const struct catalog_file *f)
{
        for (size_t i = 0; i < f->replica_count; i++) {
                pack_str(out, f->replicas[i].host);
                pack_str(out, f->replicas[i].store);
        }
}

/* ---- opening */

static int ask_database(struct db *q, const char *sql, int64_t *ret, struct err *err)
{
        sqlite3_stmt *st = NULL;
        int rc = sqlite3_prepare_v2(q->db, sql, -1, &st, NULL), r = 0;

        if (rc == SQLITE_OK)
                rc = sqlite3_step(st);
        if (rc == SQLITE_ROW)
                *ret = sqlite3_column_int64(st, 0);
        else
                r = db_fail(q, rc, err);
        sqlite3_finalize(st);
        return r;
}

static int run_sql(struct db *q, const char *sql, struct err *err)
{
        int rc = sqlite3_exec(q->db, sql, NULL, NULL, NULL);

        return rc ? db_fail(q, rc, err) : 0;
}

static int migrate(struct db *q, struct err *err)
{
        int64_t version = 0, application = 0, tables = 0;
        int r = ask_database(q, "PRAGMA user_version", &version, err);

        if (r == 0)
                r = ask_database(q, "PRAGMA application_id", &application, err);
        if (r == 0)
                r = ask_database(q, "SELECT count(*) FROM sqlite_schema", &tables, err);
        if (r != 0)
                return r;
        if (application != APPLICATION_ID && (application || version || tables))
                return db_corrupt(q, "it is a database, but not of this program", err);
        if (version > SCHEMA)
                return err_set(err, CATALOG_TOO_NEW, "%s was made by a newer version: run that version",
                               q->path);
        if (version == 0)
                r = run_sql(q, schema_sql, err);
        return r == 0 && version < 2 ? run_sql(q, schema_2_sql, err) : r;
}

static int connect(struct db *q, struct err *err)
{
        bool memory = !*q->path;
        int fd, rc, r;

        if (!memory) { /* otherwise SQLite would create it readable for others */
                fd = open(q->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
                if (fd < 0)
                        return err_set(err, -errno, "cannot open %s: %s", q->path, strerror(errno));
                close(fd);
        }
        rc = sqlite3_open_v2(memory ? ":memory:" : q->path, &q->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
        if (rc != SQLITE_OK)
                return db_fail(q, rc, err);
        sqlite3_extended_result_codes(q->db, 1);
        sqlite3_busy_timeout(q->db, 10000);
        sqlite3_db_config(q->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        sqlite3_db_config(q->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        r = run_sql(
                q,
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;"
                "PRAGMA cache_size = -65536; PRAGMA cell_size_check = ON; PRAGMA wal_autocheckpoint = 4000",
                err);
        return r == 0 ? migrate(q, err) : r;
}

static void db_close(struct catalog *c)
{
        struct db *q = (struct db *)c;

        for (int i = 0; i < ST_COUNT; i++)
                sqlite3_finalize(q->st[i]);
        sqlite3_close(q->db);
        for (size_t i = 0; i < q->key_count; i++)
                free((char *)(uintptr_t)q->names[i].p);
        free(q->names);
        map_free(q->keys);
        free(q->path);
        free(q);
}

static int db_open(const char *path, struct catalog **ret, struct err *err)
{
        struct db *q = mem_new(struct db);
        int r;

        q->catalog.ops = &catalog_sqlite;
        q->path = mem_dupz(path);
        q->names = mem_array(NULL, CATALOG_KEYS_MAX, sizeof(*q->names));
        r = connect(q, err);
        for (int i = 0; r == 0 && i < ST_COUNT; i++) {
                int rc = sqlite3_prepare_v3(q->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &q->st[i],
                                            NULL);

                if (rc != SQLITE_OK)
                        r = rc == SQLITE_ERROR ? db_corrupt(q, sqlite3_errmsg(q->db), err)
                                               : db_fail(q, rc, err);
        }
        if (r == 0)
                r = db_keys_load(q, err);
        if (r == 0) {
                r = db_step(q, ST_STATE, err);
                q->next = r == 1 ? db_number(q->st[ST_STATE], 0) : 0;
                q->catalog.position = (struct catalog_position){r == 1 ? db_number(q->st[ST_STATE], 1) : 0,
                                                                r == 1 ? db_number(q->st[ST_STATE], 2) : 0};
                sqlite3_reset(q->st[ST_STATE]);
                r = r < 0 || r > 1 ? r : q->next == 0 ? db_corrupt(q, "its table of state is empty", err) : 0;
        }
        if (r != 0)
                db_close(&q->catalog);
        else
                *ret = &q->catalog;
        return r;
}

static int about(struct catalog *c, struct catalog_about *ret, struct err *err)
{
        struct db *q = (struct db *)c;
        int r = db_step(q, ST_ABOUT, err);

        if (r == 1)
                *ret = (struct catalog_about){.files = db_number(q->st[ST_ABOUT], 0),
                                              .keys = q->key_count,
                                              .datasets = db_number(q->st[ST_ABOUT], 1)};
        sqlite3_reset(q->st[ST_ABOUT]);
        return r == 1 ? 0 : r;
}

static int check(struct catalog *c, struct err *err)
{
        struct db *q = (struct db *)c;
        sqlite3_stmt *st = NULL;
        int rc = sqlite3_prepare_v2(q->db, "PRAGMA integrity_check(1)", -1, &st, NULL), r = 0;

        if (rc == SQLITE_OK)
                rc = sqlite3_step(st);
        if (rc != SQLITE_ROW)
                r = db_fail(q, rc, err);
        else if (!str_eqz(db_column(st, 0), "ok"))
                r = db_corrupt(q, "its pages contradict each other", err);
        sqlite3_finalize(st);
        return r;
}

/* In WAL mode, NORMAL loses the last commits in a power cut, but never damages the file. */
static int set_logged(struct catalog *c, bool logged, struct err *err)
{
        struct db *q = (struct db *)c;
        int r = run_sql(q, logged ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL", err);

        return r == 0 ? db_state_write(q, err) : r;
}

const struct catalog_ops catalog_sqlite = {
        .open = db_open,
        .close = db_close,
        .find = db_find,
        .get = db_get,
        .datasets = db_datasets,
        .about = about,
        .check = check,
        .put = db_put,
        .remove = db_remove,
        .dataset_put = db_dataset_put,
        .dataset_remove = db_dataset_remove,
        .set_logged = set_logged,
};
