/* db: shared by the files of the SQLite back end. Private to catalog/. */
#pragma once
#include <sqlite3.h>

#include "base/arena.h"
#include "base/pack.h"
#include "catalog/catalog_backend.h"
#include "catalog/column.h"

enum statement {
        ST_BEGIN,
        ST_BEGIN_READ,
        ST_COMMIT,
        ST_ROLLBACK,
        ST_FILE_BY_NAME,
        ST_FILE,
        ST_FILE_ADD,
        ST_FILE_CHANGE,
        ST_FILE_REMOVE,
        ST_COLUMN,
        ST_COLUMNS,
        ST_COLUMN_PUT,
        ST_COLUMN_REMOVE,
        ST_KEY_ADD,
        ST_KEYS,
        ST_STATE,
        ST_STATE_SET,
        ST_DATASET,
        ST_DATASETS,
        ST_DATASET_PUT,
        ST_DATASET_REMOVE,
        ST_ABOUT,
        ST_COUNT,
};

/* Columns in which every file has a value: the hosts and stores of its replicas (pairs of pack_str), and
 * its size. Keys of metadata have higher numbers. */
#define KEY_PLACES 1u
#define KEY_SIZE   2u
#define KEY_FIRST  3u

struct db {
        struct catalog catalog;
        char *path;
        sqlite3 *db;
        sqlite3_stmt *st[ST_COUNT];
        uint64_t next;     /* number for the next file */
        struct map *keys;  /* name -> number, case-insensitive */
        struct str *names; /* by number, from KEY_FIRST on */
        size_t key_count;  /* numbers below KEY_FIRST + key_count are used */
        bool failed;       /* a write failed so that the content of the disk is unknown */
};

static inline unsigned file_slot(uint64_t id)
{
        return (unsigned)(id % COLUMN_FILES);
}
static inline int64_t column_id(uint64_t file, uint32_t key)
{
        return (int64_t)(file / COLUMN_FILES << 16 | key);
}
static inline void db_bind(sqlite3_stmt *st, int at, struct str s) /* borrowed until reset */
{
        sqlite3_bind_blob64(st, at, s.p ? s.p : "", s.n, SQLITE_STATIC);
}
static inline struct str db_column(sqlite3_stmt *st, int at) /* borrowed until the next step */
{
        const void *p = sqlite3_column_blob(st, at);

        return str_make(p, (size_t)sqlite3_column_bytes(st, at));
}
static inline uint64_t db_number(sqlite3_stmt *st, int at)
{
        return (uint64_t)sqlite3_column_int64(st, at);
}

int db_fail(struct db *q, int rc, struct err *err); /* returns what a result code means */
int db_corrupt(const struct db *q, const char *what, struct err *err);
/* Steps a statement once. Returns 1 when there is a row, 0, or an error. The caller resets it. */
int db_step(struct db *q, enum statement st, struct err *err);
int db_run(struct db *q, enum statement st, struct err *err); /* runs it to its end, and resets it */
int db_state_write(struct db *q, struct err *err); /* the next file's number, and the position in the log */
int db_keys_load(struct db *q, struct err *err);
/* Returns the number of a key; 0: no file ever had it. */
uint32_t db_key(const struct db *q, struct str name);
/* Reads a column. Returns 1, 0 when it does not exist, or an error. */
int db_column_read(struct db *q, int64_t id, struct column *c, struct err *err);

/* A file's row: everything except its metadata. */
struct file_row {
        struct catalog_file file;
        struct catalog_replica replicas[CATALOG_REPLICAS_MAX];
        struct arena texts;
};
void file_row_pack(struct buf *out, const struct catalog_file *f);
int file_row_unpack(struct db *q, struct file_row *row, struct str name, struct str stored, struct err *err);
void places_pack(struct buf *out, const struct catalog_file *f);

int db_put(struct catalog *c, const struct catalog_file *files, size_t count, const struct catalog_put *how,
           struct catalog_counts *ret, struct err *err);
int db_remove(struct catalog *c, const struct str *names, size_t count, struct str url, uint64_t *ret_removed,
              struct err *err);
int db_dataset_put(struct catalog *c, const struct catalog_dataset *d, struct err *err);
int db_dataset_remove(struct catalog *c, struct str name, struct err *err);
int db_find(struct catalog *c, const struct catalog_query *q, const struct catalog_find *how,
            catalog_file_fn *fn, void *arg, struct catalog_found *ret, struct err *err);
int db_get(struct catalog *c, struct str name, catalog_file_fn *fn, void *arg, struct err *err);
int db_datasets(struct catalog *c, struct str after, catalog_dataset_fn *fn, void *arg, struct err *err);
