/* Reading from SQLite. Each call takes a connection for itself (an idle one, or a new one), reads within
 * one transaction, and returns the connection; in exclusive mode it uses the writer's connection, under
 * its lock. */
#include "store/store_sqlite.h"

#include <errno.h>

#define READERS_MAX 8 /* idle connections that are kept */

struct reading {
        struct sqlite *q;
        struct reader *reader; /* NULL in exclusive mode */
        sqlite3 *db;
        sqlite3_stmt *st;
        sqlite3_stmt **kept; /* where st stays after the read; NULL: it is finalized */
};

/* Blobs in the order in which they were put, see blob_ahead. Of the thread that called sqlite_blobs_begin;
 * without a statement: there is none. */
static _Thread_local struct reading ahead;

/* Takes a connection for one read; sqlite_read_end() must follow, also after a failure. */
static int reading_connect(struct reading *rd, struct sqlite *q, struct err *err)
{
        int r;

        *rd = (struct reading){.q = q};
        if (q->exclusive) {
                pthread_mutex_lock(&q->db_lock);
                rd->db = q->db;
        } else {
                pthread_mutex_lock(&q->readers_lock);
                rd->reader = q->readers;
                if (rd->reader)
                        q->readers = rd->reader->next;
                pthread_mutex_unlock(&q->readers_lock);
                if (!rd->reader) {
                        sqlite3 *db;

                        r = sqlite_connect(q, &db, err);
                        if (r)
                                return r;
                        sqlite3_exec(db, "PRAGMA query_only = ON", NULL, NULL, NULL);
                        if (q->failed)
                                sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
                        rd->reader = mem_new(struct reader);
                        rd->reader->db = db;
                }
                rd->db = rd->reader->db;
        }
        return 0;
}

/* Prepares sql for one read; sqlite_read_end() must follow, also after a failure. */
static int sqlite_read_begin(struct reading *rd, struct store_backend *be, const char *sql, struct err *err)
{
        int rc, r = reading_connect(rd, (struct sqlite *)be, err);

        if (r)
                return r;
        rc = sqlite3_prepare_v2(rd->db, sql, -1, &rd->st, NULL);
        return rc ? sqlite_fail(rd->q, rd->db, rc, err) : 0;
}

/* The same for a blob by its name, with the connection's own statement. */
static int blob_read_begin(struct reading *rd, struct store_backend *be, struct err *err)
{
        int rc = SQLITE_OK, r = reading_connect(rd, (struct sqlite *)be, err);

        if (r)
                return r;
        rd->kept = rd->reader ? &rd->reader->blob : &rd->q->blob;
        if (!*rd->kept)
                rc = sqlite3_prepare_v3(rd->db, "SELECT crc, data FROM blob WHERE name = ?", -1,
                                        SQLITE_PREPARE_PERSISTENT, rd->kept, NULL);
        rd->st = *rd->kept;
        return rc ? sqlite_fail(rd->q, rd->db, rc, err) : 0;
}

static void reader_free(struct reader *r)
{
        sqlite3_finalize(r->blob);
        sqlite3_close(r->db);
        free(r);
}

static void sqlite_read_end(struct reading *rd)
{
        struct sqlite *q = rd->q;
        unsigned kept = 0;

        if (rd->kept && rd->st)
                sqlite3_reset(rd->st);
        else
                sqlite3_finalize(rd->st);
        if (q->exclusive) {
                pthread_mutex_unlock(&q->db_lock);
                return;
        }
        if (!rd->reader)
                return;
        pthread_mutex_lock(&q->readers_lock);
        for (struct reader *r = q->readers; r; r = r->next)
                kept++;
        if (kept < READERS_MAX) {
                rd->reader->next = q->readers;
                q->readers = rd->reader;
                rd->reader = NULL;
        }
        pthread_mutex_unlock(&q->readers_lock);
        if (rd->reader)
                reader_free(rd->reader);
}

void sqlite_readers_close(struct sqlite *q)
{
        while (q->readers) {
                struct reader *r = q->readers;

                q->readers = r->next;
                if (q->failed)
                        sqlite3_db_config(r->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
                reader_free(r);
        }
}

/* Returns whether there is another row. At the end, or on an error, returns false: *r is then 0 or the
 * store's error. */
static bool sqlite_read_row(struct reading *rd, int *r, struct err *err)
{
        int rc = sqlite3_step(rd->st);

        *r = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : sqlite_fail(rd->q, rd->db, rc, err);
        return rc == SQLITE_ROW;
}

static int sqlite_missing(struct sqlite *q, uint64_t seq, struct err *err)
{
        return sqlite_corrupt(q, err, "record %llu is missing", (unsigned long long)seq);
}

static int scan_row(struct reading *rd, uint64_t next, store_scan_fn *fn, void *arg, struct err *err)
{
        uint64_t seq = (uint64_t)sqlite3_column_int64(rd->st, 0);
        struct str record = sqlite_column(rd->st, 2);

        if (seq != next)
                return sqlite_missing(rd->q, next, err);
        if (store_record_crc(seq, record) != (uint32_t)sqlite3_column_int64(rd->st, 1))
                return sqlite_corrupt(rd->q, err, "the checksum of record %llu is wrong",
                                      (unsigned long long)seq);
        return fn(arg, seq, record, err);
}

/* Each row also has what is needed to check for gaps, the cut and the newest snapshot's number, so that
 * everything is read in one transaction. Without records there is one row, whose number is NULL. */
int sqlite_scan(struct store_backend *be, uint64_t from, store_scan_fn *fn, void *arg, struct err *err)
{
        struct reading rd;
        uint64_t next = 0, snapshot = 0;
        int r = sqlite_read_begin(&rd, be,
                                  "SELECT l.seq, l.crc, l.record, s.cut,"
                                  " (SELECT ifnull(max(seq), 0) FROM snapshot WHERE complete)"
                                  " FROM state s LEFT JOIN log l ON l.seq >= max(?, s.cut + 1) WHERE s.id = 1"
                                  " ORDER BY l.seq",
                                  err);

        if (r == 0)
                sqlite3_bind_int64(rd.st, 1, (int64_t)from);
        while (r == 0 && sqlite_read_row(&rd, &r, err)) {
                if (next == 0) {
                        next = (uint64_t)sqlite3_column_int64(rd.st, 3) + 1;
                        snapshot = (uint64_t)sqlite3_column_int64(rd.st, 4);
                        if (next < from)
                                next = from;
                }
                if (sqlite3_column_type(rd.st, 0) == SQLITE_NULL)
                        continue;
                r = scan_row(&rd, next, fn, arg, err);
                next++;
        }
        if (r == 0 && next == 0)
                r = sqlite_corrupt(rd.q, err, "its table of state is empty");
        else if (r == 0 && next <= snapshot)
                r = sqlite_missing(rd.q, next, err);
        sqlite_read_end(&rd);
        return r;
}

int sqlite_follow_last(struct store_backend *be, uint64_t *ret_seq, struct err *err)
{
        struct reading rd;
        int r = sqlite_read_begin(&rd, be, SQLITE_LAST, err);

        if (r == 0 && sqlite_read_row(&rd, &r, err))
                *ret_seq = (uint64_t)sqlite3_column_int64(rd.st, 0);
        else if (r == 0)
                r = sqlite_corrupt(rd.q, err, "its table of state is empty");
        sqlite_read_end(&rd);
        return r;
}

int sqlite_snapshot_get(struct store_backend *be, uint64_t *ret_seq, struct buf *ret_data, struct err *err)
{
        struct reading rd;
        uint64_t size = 0, seq = 0;
        bool any = false;
        int r = sqlite_read_begin(
                &rd, be,
                "SELECT s.seq, s.size, p.id, p.crc, p.data FROM snapshot s LEFT JOIN snapshot_part p"
                " ON p.id >= s.id << 20 AND p.id < (s.id + 1) << 20"
                " WHERE s.id = (SELECT max(id) FROM snapshot WHERE complete) ORDER BY p.id",
                err);

        buf_reset(ret_data);
        while (r == 0 && sqlite_read_row(&rd, &r, err)) {
                struct str part = sqlite_column(rd.st, 4);

                any = true;
                seq = (uint64_t)sqlite3_column_int64(rd.st, 0);
                size = (uint64_t)sqlite3_column_int64(rd.st, 1);
                if (part.n && store_record_crc((uint64_t)sqlite3_column_int64(rd.st, 2), part) !=
                                      (uint32_t)sqlite3_column_int64(rd.st, 3))
                        r = sqlite_corrupt(rd.q, err, "a checksum of the snapshot of record %llu is wrong",
                                           (unsigned long long)seq);
                buf_str(ret_data, part);
        }
        if (r == 0 && !any)
                r = err_set(err, STORE_NOT_FOUND, "there is no snapshot");
        else if (r == 0 && !ret_data->overflow && ret_data->n != size)
                r = sqlite_corrupt(rd.q, err, "the snapshot of record %llu is not whole",
                                   (unsigned long long)seq);
        else if (r == 0)
                r = buf_check(ret_data);
        if (r == 0)
                *ret_seq = seq;
        sqlite_read_end(&rd);
        return r;
}

void sqlite_blobs_begin(struct store_backend *be)
{
        struct err err;

        if (sqlite_read_begin(&ahead, be,
                              "SELECT crc, data, name FROM blob"
                              " WHERE id >= (SELECT id FROM blob WHERE name = ?) ORDER BY id",
                              &err) != 0)
                sqlite_blobs_end(be);
}

void sqlite_blobs_end(struct store_backend *be)
{
        (void)be;
        if (ahead.q)
                sqlite_read_end(&ahead);
        ahead = (struct reading){0};
}

/* Steps `ahead` to the blob, or begins it anew there. Returns whether there is one; *r as of sqlite_read_row.
 * A start asks for the blobs of requests in the order of the log or of their numbers, which is mostly that in
 * which they were put, and a step to the next one takes a fraction of a search. */
static bool blob_ahead(struct str name, int *r, struct err *err)
{
        if (sqlite3_stmt_busy(ahead.st) && sqlite3_step(ahead.st) == SQLITE_ROW &&
            str_eq(sqlite_column(ahead.st, 2), name))
                return true;
        sqlite3_reset(ahead.st);
        sqlite3_bind_blob64(ahead.st, 1, name.p, name.n, SQLITE_TRANSIENT);
        return sqlite_read_row(&ahead, r, err);
}

static int blob_take(struct sqlite *q, sqlite3_stmt *st, struct str name, struct buf *ret_data,
                     struct err *err)
{
        struct str data = sqlite_column(st, 1);
        int r;

        buf_reset(ret_data);
        buf_str(ret_data, data);
        r = buf_check(ret_data);
        if (store_record_crc(name.n, data) != (uint32_t)sqlite3_column_int64(st, 0))
                r = sqlite_corrupt(q, err, "the checksum of \"" STR_FMT "\" is wrong", STR_ARG(name));
        return r;
}

int sqlite_blob_get(struct store_backend *be, struct str name, struct buf *ret_data, struct err *err)
{
        struct sqlite *q = (struct sqlite *)be;
        bool is_ahead = ahead.q == q, found = false;
        struct reading rd;
        int r = is_ahead ? 0 : blob_read_begin(&rd, be, err);

        if (is_ahead) {
                found = blob_ahead(name, &r, err);
        } else if (r == 0) {
                sqlite_bind(rd.st, 1, name);
                found = sqlite_read_row(&rd, &r, err);
        }
        if (found)
                r = blob_take(q, is_ahead ? ahead.st : rd.st, name, ret_data, err);
        else if (r == 0)
                r = err_set(err, STORE_NOT_FOUND, "there is no \"" STR_FMT "\"", STR_ARG(name));
        if (!is_ahead)
                sqlite_read_end(&rd);
        return r;
}

int sqlite_blob_list(struct store_backend *be, struct str prefix, struct str from, store_name_fn *fn,
                     void *arg, struct err *err)
{
        struct reading rd;
        int r = sqlite_read_begin(&rd, be, "SELECT name FROM blob WHERE name >= ? ORDER BY name", err);

        if (r == 0)
                sqlite_bind(rd.st, 1, from);
        while (r == 0 && sqlite_read_row(&rd, &r, err)) {
                struct str name = sqlite_column(rd.st, 0);

                if (!str_starts(name, prefix))
                        break;
                r = fn(arg, name);
        }
        sqlite_read_end(&rd);
        return r;
}

/* The rows of an owner, of a request, or all rows are read one by one from an index that has the requested
 * order. Nothing is sorted, so the cost is proportional to the rows returned, however long the history is.
 * Rows of single members are selected by their index, and then sorted and read. */
static void sqlite_history_sql(const struct store_query *q, struct buf *sql)
{
        const char *order = q->oldest ? " ORDER BY id" : " ORDER BY id DESC";

        buf_addz(sql, "SELECT id, request, member, state, submitted, ended, exit_code, owner, crc, data FROM "
                      "history");
        if (q->has_member)
                buf_addz(sql, " WHERE id IN (SELECT id FROM history INDEXED BY history_job WHERE 1");
        else
                buf_printf(sql, " %s WHERE 1",
                           q->request   ? "INDEXED BY history_request"
                           : q->owner.n ? "INDEXED BY history_owner"
                                        : "NOT INDEXED");
        if (q->request)
                buf_addz(sql, " AND request = ?1");
        if (q->has_member)
                buf_addz(sql, q->member_end ? " AND member >= ?2 AND member < ?6" : " AND member = ?2");
        if (q->owner.n)
                buf_addz(sql, " AND owner = ?3");
        if (q->before)
                buf_addz(sql, " AND id < ?4");
        buf_addz(sql, order);
        if (q->limit)
                buf_addz(sql, " LIMIT ?5");
        if (q->has_member)
                buf_printf(sql, ")%s", order);
}

static int sqlite_history_row(struct reading *rd, store_history_fn *fn, void *arg, struct err *err)
{
        uint64_t row = (uint64_t)sqlite3_column_int64(rd->st, 0);
        struct past_job h = {
                .request = (uint64_t)sqlite3_column_int64(rd->st, 1),
                .member = (uint32_t)sqlite3_column_int64(rd->st, 2),
                .state = (uint32_t)sqlite3_column_int64(rd->st, 3),
                .submitted_ms = sqlite3_column_int64(rd->st, 4),
                .ended_ms = sqlite3_column_int64(rd->st, 5),
                .exit_code = (int32_t)sqlite3_column_int64(rd->st, 6),
                .owner = sqlite_column(rd->st, 7),
                .data = sqlite_column(rd->st, 9),
        };

        if (sqlite_history_crc(&h) != (uint32_t)sqlite3_column_int64(rd->st, 8))
                return sqlite_corrupt(rd->q, err, "the checksum of history row %llu is wrong",
                                      (unsigned long long)row);
        return fn(arg, row, &h);
}

int sqlite_history(struct store_backend *be, const struct store_query *q, store_history_fn *fn, void *arg,
                   struct err *err)
{
        BUF_CLEANUP struct buf sql = {0};
        struct reading rd;
        int r;

        sqlite_history_sql(q, &sql);
        r = sqlite_read_begin(&rd, be, buf_z(&sql), err);
        if (r == 0) {
                sqlite3_bind_int64(rd.st, 1, (int64_t)q->request);
                sqlite3_bind_int64(rd.st, 2, q->member);
                sqlite_bind(rd.st, 3, q->owner);
                sqlite3_bind_int64(rd.st, 4, (int64_t)q->before);
                sqlite3_bind_int64(rd.st, 5, q->limit);
                sqlite3_bind_int64(rd.st, 6, q->member_end);
        }
        while (r == 0 && sqlite_read_row(&rd, &r, err))
                r = sqlite_history_row(&rd, fn, arg, err);
        sqlite_read_end(&rd);
        return r;
}
