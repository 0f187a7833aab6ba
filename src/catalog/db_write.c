/* Writing: a batch is one transaction. The columns that it changes are read once, changed in memory, and
 * written at its end. */
#include "catalog/db.h"

#include <errno.h>

#include "base/set.h"

/* columns in memory, some 10 KiB each; if there are more, they are written before the end */
#define COLUMNS_HELD 2048

struct batch {
        struct db *q;
        struct idmap *columns; /* id -> column */
        struct buf buf;
        struct err *err;
};

int db_state_write(struct db *q, struct err *err)
{
        sqlite3_stmt *st = q->st[ST_STATE_SET];

        sqlite3_bind_int64(st, 1, (sqlite3_int64)q->next);
        sqlite3_bind_int64(st, 2, (sqlite3_int64)q->catalog.position.number);
        sqlite3_bind_int64(st, 3, (sqlite3_int64)q->catalog.position.id);
        return db_run(q, ST_STATE_SET, err);
}

static int batch_begin(struct batch *b, struct db *q, struct err *err)
{
        *b = (struct batch){.q = q, .err = err};
        if (q->failed)
                return err_set(err, -EIO,
                               "%s: a write failed, and what is on the disk is not known: restart the server",
                               q->path);
        b->columns = idmap_new();
        return db_run(q, ST_BEGIN, err);
}

static int write_column(struct batch *b, int64_t id, const struct column *c)
{
        sqlite3_stmt *st = b->q->st[ST_COLUMN_PUT];
        int r;

        buf_reset(&b->buf);
        if (!column_write(c, &b->buf)) {
                sqlite3_bind_int64(b->q->st[ST_COLUMN_REMOVE], 1, id);
                return db_run(b->q, ST_COLUMN_REMOVE, b->err);
        }
        sqlite3_bind_int64(st, 1, id);
        db_bind(st, 2, buf_view(&b->buf));
        r = db_run(b->q, ST_COLUMN_PUT, b->err);
        sqlite3_clear_bindings(st);
        return r;
}

/* Writes the changed columns, and frees all. */
static int write_columns(struct batch *b, bool write)
{
        size_t at = 0;
        uint64_t id;
        void *c;
        int r = 0;

        while (idmap_next(b->columns, &at, &id, &c)) {
                if (r == 0 && write && ((struct column *)c)->changed)
                        r = write_column(b, (int64_t)id, c);
                column_deinit(c);
                free(c);
        }
        idmap_free(b->columns);
        b->columns = NULL;
        return r;
}

static int write_all(struct batch *b)
{
        int r = write_columns(b, true);

        if (r != 0)
                return r;
        r = catalog_write_log(&b->q->catalog, b->err);
        if (r == 0)
                r = db_state_write(b->q, b->err);
        return r == 0 ? db_run(b->q, ST_COMMIT, b->err) : r;
}

/* Commits the batch, or rolls it back when r is an error or committing fails. */
static int batch_end(struct batch *b, uint64_t next_before, int r)
{
        if (r == 0)
                r = write_all(b);
        if (b->columns)
                write_columns(b, false);
        if (r != 0) {
                if (!sqlite3_get_autocommit(b->q->db))
                        db_run(b->q, ST_ROLLBACK, NULL);
                b->q->next = next_before;
                db_keys_load(b->q, NULL); /* forgets new keys */
        }
        buf_deinit(&b->buf);
        return r;
}

static int get_column(struct batch *b, int64_t id, struct column **ret)
{
        struct column *c = idmap_get(b->columns, (uint64_t)id);
        int r = 0;

        if (!c && idmap_count(b->columns) == COLUMNS_HELD) {
                r = write_columns(b, true);
                b->columns = idmap_new();
        }
        if (!c && r == 0) {
                c = mem_new(struct column);
                idmap_put(b->columns, (uint64_t)id, c);
                r = db_column_read(b->q, id, c, b->err);
        }
        *ret = c;
        return r == 1 ? 0 : r;
}

static int set_value(struct batch *b, uint64_t file, uint32_t key, struct str value)
{
        struct column *c;
        int r = get_column(b, column_id(file, key), &c);

        if (r == 0)
                column_set(c, file_slot(file), value);
        return r;
}

static int add_key(struct batch *b, struct str name, uint32_t *ret)
{
        struct db *q = b->q;
        int r;

        *ret = db_key(q, name);
        if (*ret)
                return 0;
        if (q->key_count == CATALOG_KEYS_MAX)
                return err_set(b->err, CATALOG_INVALID, "a catalog has at most %u different keys",
                               CATALOG_KEYS_MAX);
        *ret = KEY_FIRST + (uint32_t)q->key_count;
        sqlite3_bind_int64(q->st[ST_KEY_ADD], 1, *ret);
        db_bind(q->st[ST_KEY_ADD], 2, name);
        r = db_run(q, ST_KEY_ADD, b->err);
        if (r != 0)
                return r;
        q->names[q->key_count++] = str_make(mem_dup(name.p, name.n), name.n);
        map_put(q->keys, name, (void *)(uintptr_t)*ret);
        return 0;
}

/* Removes the file from all its columns. */
static int clear_values(struct batch *b, uint64_t file)
{
        for (uint32_t key = KEY_PLACES; key < KEY_FIRST + b->q->key_count; key++) {
                struct column *c;
                int r = get_column(b, column_id(file, key), &c);

                if (r != 0)
                        return r;
                column_unset(c, file_slot(file));
        }
        return 0;
}

static int set_values(struct batch *b, uint64_t id, const struct catalog_file *whole,
                      const struct catalog_file *given)
{
        BUF_CLEANUP struct buf value = {0};
        int r;

        places_pack(&value, whole);
        r = set_value(b, id, KEY_PLACES, buf_view(&value));
        if (r == 0 && whole->has_size) {
                buf_reset(&value);
                column_value_pack(&value, &(struct catalog_value){.type = CATALOG_INTEGER,
                                                                  .integer = (int64_t)whole->size});
                r = set_value(b, id, KEY_SIZE, buf_view(&value));
        }
        for (size_t i = 0; r == 0 && i < given->meta_count; i++) {
                uint32_t key;

                r = add_key(b, given->meta[i].key, &key);
                if (r != 0)
                        break;
                buf_reset(&value);
                column_value_pack(&value, &given->meta[i].value);
                r = set_value(b, id, key, buf_view(&value));
        }
        return r;
}

static int write_row(struct batch *b, enum statement which, uint64_t id, const struct catalog_file *f)
{
        sqlite3_stmt *st = b->q->st[which];
        int r;

        buf_reset(&b->buf);
        file_row_pack(&b->buf, f);
        sqlite3_bind_int64(st, 1, (sqlite3_int64)id);
        if (which == ST_FILE_ADD)
                db_bind(st, 2, f->name);
        db_bind(st, which == ST_FILE_ADD ? 3 : 2, buf_view(&b->buf));
        r = db_run(b->q, which, b->err);
        sqlite3_clear_bindings(st);
        return r;
}

/* Returns 1 with the file's number and row; 0: there is no such file; or an error. */
static int find_file(struct batch *b, struct str name, uint64_t *ret_id, struct file_row *row)
{
        sqlite3_stmt *st = b->q->st[ST_FILE_BY_NAME];
        int r;

        db_bind(st, 1, name);
        r = db_step(b->q, ST_FILE_BY_NAME, b->err);
        if (r == 1) {
                *ret_id = db_number(st, 0);
                r = file_row_unpack(b->q, row, name, db_column(st, 1), b->err);
                r = r == 0 ? 1 : r;
        }
        sqlite3_reset(st);
        return r;
}

/* Merges the given file into the existing row. */
static int merge(struct file_row *row, const struct catalog_file *f, struct err *err)
{
        struct catalog_file *known = &row->file;

        if (f->has_size && known->has_size && f->size != known->size)
                return err_set(err, CATALOG_CONFLICT,
                               STR_FMT ": the catalog has %llu bytes, and %llu are given; if the file has "
                                       "changed, replace its entry",
                               STR_ARG(str_head(f->name, 200)), (unsigned long long)known->size,
                               (unsigned long long)f->size);
        if (f->checksum.n && known->checksum.n && !str_ieq(f->checksum, known->checksum))
                return err_set(err, CATALOG_CONFLICT,
                               STR_FMT ": the catalog has the checksum " STR_FMT ", and " STR_FMT
                                       " is given; if the file has changed, replace its entry",
                               STR_ARG(str_head(f->name, 150)), STR_ARG(str_head(known->checksum, 80)),
                               STR_ARG(str_head(f->checksum, 80)));
        if (f->has_size) {
                known->has_size = true;
                known->size = f->size;
        }
        if (f->checksum.n)
                known->checksum = f->checksum;
        for (size_t i = 0; i < f->replica_count; i++) {
                size_t at = 0;

                while (at < known->replica_count && !str_eq(row->replicas[at].url, f->replicas[i].url))
                        at++;
                if (at == CATALOG_REPLICAS_MAX)
                        return err_set(err, CATALOG_INVALID, STR_FMT ": more than %u replicas",
                                       STR_ARG(str_head(f->name, 200)), CATALOG_REPLICAS_MAX);
                row->replicas[at] = f->replicas[i];
                if (at == known->replica_count)
                        known->replica_count++;
        }
        return 0;
}

static int put_file(struct batch *b, const struct catalog_file *f, const struct catalog_put *how,
                    struct file_row *row, struct catalog_counts *counts)
{
        uint64_t id;
        int known = find_file(b, f->name, &id, row), r;

        if (known < 0 || known > 1)
                return known;
        if (!known) {
                if (b->q->next > CATALOG_FILES_MAX)
                        return err_set(b->err, CATALOG_INVALID, "a catalog takes at most %u files",
                                       CATALOG_FILES_MAX);
                id = b->q->next++;
                counts->added++;
                r = write_row(b, ST_FILE_ADD, id, f);
                return r == 0 ? set_values(b, id, f, f) : r;
        }
        counts->changed++;
        if (how->replace) {
                r = clear_values(b, id);
                row->file = *f;
        } else {
                r = merge(row, f, b->err);
        }
        if (r == 0)
                r = write_row(b, ST_FILE_CHANGE, id, &row->file);
        return r == 0 ? set_values(b, id, &row->file, f) : r;
}

static void row_free(struct file_row *row)
{
        arena_deinit(&row->texts);
        free(row);
}

int db_put(struct catalog *c, const struct catalog_file *files, size_t count, const struct catalog_put *how,
           struct catalog_counts *ret, struct err *err)
{
        struct db *q = (struct db *)c;
        struct file_row *row = mem_new(struct file_row);
        struct catalog_counts counts = {0};
        uint64_t next = q->next;
        struct batch b;
        int r = batch_begin(&b, q, err);

        for (size_t i = 0; r == 0 && i < count; i++)
                r = put_file(&b, &files[i], how, row, &counts);
        r = batch_end(&b, next, r);
        row_free(row);
        if (r == 0)
                *ret = counts;
        return r;
}

/* ---- removal */

static int remove_replica(struct batch *b, uint64_t id, struct file_row *row, struct str url,
                          uint64_t *removed)
{
        struct catalog_file *f = &row->file;
        size_t left = 0;
        int r;

        for (size_t i = 0; i < f->replica_count; i++)
                if (!str_eq(row->replicas[i].url, url))
                        row->replicas[left++] = row->replicas[i];
        if (left == f->replica_count)
                return 0;
        *removed += f->replica_count - left;
        f->replica_count = left;
        r = write_row(b, ST_FILE_CHANGE, id, f);
        return r == 0 ? set_values(b, id, f, &(struct catalog_file){0}) : r;
}

static int remove_file(struct batch *b, uint64_t id, uint64_t *removed)
{
        sqlite3_bind_int64(b->q->st[ST_FILE_REMOVE], 1, (sqlite3_int64)id);
        ++*removed;
        return db_run(b->q, ST_FILE_REMOVE, b->err);
}

int db_remove(struct catalog *c, const struct str *names, size_t count, struct str url, uint64_t *ret_removed,
              struct err *err)
{
        struct db *q = (struct db *)c;
        struct file_row *row = mem_new(struct file_row);
        uint64_t removed = 0, id, next = q->next;
        struct batch b;
        int r = batch_begin(&b, q, err);

        for (size_t i = 0; r == 0 && i < count; i++) {
                r = find_file(&b, names[i], &id, row);
                if (r != 1)
                        continue;
                if (url.n) {
                        r = remove_replica(&b, id, row, url, &removed);
                } else {
                        r = clear_values(&b, id);
                        if (r == 0)
                                r = remove_file(&b, id, &removed);
                }
        }
        r = batch_end(&b, next, r);
        row_free(row);
        if (r == 0)
                *ret_removed = removed;
        return r;
}

/* ---- datasets */

static int list_files(struct batch *b, const struct catalog_dataset *d, struct buf *out, uint64_t *ret_count)
{
        struct file_row *row = mem_new(struct file_row);
        struct set files = {0};
        uint64_t id;
        int r = 0;

        for (size_t i = 0; r == 0 && i < d->file_count; i++) {
                r = find_file(b, d->files[i], &id, row);
                if (r == 0)
                        r = err_set(b->err, CATALOG_NOT_FOUND, "the catalog has no file " STR_FMT,
                                    STR_ARG(str_head(d->files[i], 300)));
                else if (r == 1) {
                        set_add(&files, (uint32_t)id);
                        r = 0;
                }
        }
        *ret_count = set_count(&files);
        set_pack(out, &files);
        set_deinit(&files);
        row_free(row);
        return r;
}

static int count_datasets(struct batch *b)
{
        struct catalog_about a = {0};
        int r = b->q->catalog.ops->about(&b->q->catalog, &a, b->err);

        if (r == 0 && a.datasets >= CATALOG_DATASETS_MAX)
                r = err_set(b->err, CATALOG_INVALID, "a catalog has at most %u datasets",
                            CATALOG_DATASETS_MAX);
        return r;
}

int db_dataset_put(struct catalog *c, const struct catalog_dataset *d, struct err *err)
{
        struct db *q = (struct db *)c;
        BUF_CLEANUP struct buf files = {0};
        sqlite3_stmt *st = q->st[ST_DATASET_PUT];
        uint64_t next = q->next, count = 0;
        struct batch b;
        int r = batch_begin(&b, q, err);

        if (r == 0)
                r = count_datasets(&b);
        if (r == 0 && d->file_count)
                r = list_files(&b, d, &files, &count);
        if (r == 0) {
                db_bind(st, 1, d->name);
                db_bind(st, 2, d->owner);
                if (d->file_count) {
                        sqlite3_bind_null(st, 3);
                        db_bind(st, 4, buf_view(&files));
                } else {
                        db_bind(st, 3, d->query);
                        sqlite3_bind_null(st, 4);
                }
                sqlite3_bind_int64(st, 5, (sqlite3_int64)count);
                r = db_run(q, ST_DATASET_PUT, err);
                sqlite3_clear_bindings(st);
        }
        return batch_end(&b, next, r);
}

int db_dataset_remove(struct catalog *c, struct str name, struct err *err)
{
        struct db *q = (struct db *)c;
        uint64_t next = q->next;
        struct batch b;
        int r = batch_begin(&b, q, err);

        if (r == 0) {
                db_bind(q->st[ST_DATASET_REMOVE], 1, name);
                r = db_run(q, ST_DATASET_REMOVE, err);
        }
        if (r == 0 && sqlite3_changes(q->db) == 0)
                r = err_set(err, CATALOG_NOT_FOUND, "there is no dataset " STR_FMT,
                            STR_ARG(str_head(name, 300)));
        return batch_end(&b, next, r);
}
