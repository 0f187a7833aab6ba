/* Converts between SQLite and PostgreSQL. The tables have the same columns, including checksums, so rows
 * are copied unchanged, in one transaction on either side. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/store_postgres.h"
#include "store/store_sqlite.h"

static const struct table {
        const char *name, *columns;
        const char *kinds; /* types of the columns: number, boolean, bytes */
} tables[] = {
        {"log", "seq, crc, record", "nnb"},
        {"snapshot", "id, seq, size, complete", "nnnt"},
        {"snapshot_part", "id, crc, data", "nnb"},
        {"blob", "name, crc, data", "bnb"},
        {"history", "id, request, member, state, submitted, ended, exit_code, owner, crc, data",
         "nnnnnnnbnb"},
};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static int fail_sqlite(const struct sqlite *q, struct err *err)
{
        int r = sqlite_fail(q, q->db, sqlite3_errcode(q->db), err);

        return r ? r : -EIO;
}

static int carry_run_sql(const struct sqlite *q, const char *sql, struct err *err)
{
        return sqlite3_exec(q->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail_sqlite(q, err);
}

static int carry_open_file(struct sqlite *q, const char *path, struct err *err)
{
        *q = (struct sqlite){.path = (char *)path};
        if (sqlite3_open_v2(path, &q->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
                return fail_sqlite(q, err);
        sqlite3_extended_result_codes(q->db, 1);
        sqlite3_busy_timeout(q->db, 10000);
        return 0;
}

/* Converts a result that only the back end knows to one of store.h. */
static int fold(int r)
{
        return r == PG_LOST || r == PG_FENCED ? -ENOTCONN : r;
}

/* ---- PostgreSQL to SQLite */

static int put_row(const struct sqlite *q, sqlite3_stmt *st, const struct table *t, const PGresult *res,
                   struct err *err)
{
        for (int i = 0; t->kinds[i]; i++) {
                if (t->kinds[i] == 'b')
                        sqlite_bind(st, i + 1, pg_bytes(res, 0, i));
                else if (t->kinds[i] == 't')
                        sqlite3_bind_int64(st, i + 1, *PQgetvalue(res, 0, i));
                else
                        sqlite3_bind_int64(st, i + 1, (int64_t)pg_number(res, 0, i));
        }
        if (sqlite3_step(st) != SQLITE_DONE)
                return fail_sqlite(q, err);
        sqlite3_reset(st);
        return 0;
}

static int carry_table_out(const struct postgres *pg, PGconn *conn, const struct sqlite *q,
                           const struct table *t, struct err *err)
{
        BUF_CLEANUP struct buf select = {0}, insert = {0};
        sqlite3_stmt *st = NULL;
        PGresult *res;
        int r = 0;

        buf_printf(&select, "SELECT %s FROM drover_%s", t->columns, t->name);
        buf_printf(&insert, "INSERT INTO %s (%s) VALUES (?", t->name, t->columns);
        for (int i = 1; t->kinds[i]; i++)
                buf_addz(&insert, ", ?");
        buf_char(&insert, ')');
        if (sqlite3_prepare_v2(q->db, buf_z(&insert), -1, &st, NULL) != SQLITE_OK)
                return fail_sqlite(q, err);
        if (!PQsendQueryParams(conn, buf_z(&select), 0, NULL, NULL, NULL, NULL, 1))
                r = pg_fail(pg, conn, NULL, err);
        else
                PQsetSingleRowMode(conn);
        while (r == 0) {
                r = pg_result(pg, conn, &res, err);
                if (r != 0 || !res)
                        break;
                if (pg_failed(res))
                        r = pg_fail(pg, conn, res, err);
                else if (PQntuples(res) > 0)
                        r = put_row(q, st, t, res, err);
                PQclear(res);
        }
        sqlite3_finalize(st);
        return r;
}

static int carry_state_out(const struct postgres *pg, PGconn *conn, const struct sqlite *q, struct err *err)
{
        BUF_CLEANUP struct buf sql = {0};
        PGresult *res = NULL;
        int r = pg_run(pg, conn, "SELECT term, cut FROM drover_state", &res, err);

        if (r == 0 && PQntuples(res) != 1)
                r = pg_corrupt(pg, err, "its table drover_state has %d rows", PQntuples(res));
        if (r == 0) {
                buf_printf(&sql, "UPDATE state SET term = %s, cut = %s", PQgetvalue(res, 0, 0),
                           PQgetvalue(res, 0, 1));
                r = carry_run_sql(q, buf_z(&sql), err);
        }
        PQclear(res);
        return r;
}

static int carry_out(const struct postgres *pg, PGconn *conn, struct sqlite *q, struct err *err)
{
        int r = sqlite_migrate(q, err);

        if (r == 0)
                r = carry_run_sql(q, "BEGIN", err);
        if (r == 0)
                r = pg_run(pg, conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, err);
        if (r == 0)
                r = carry_state_out(pg, conn, q, err);
        for (size_t i = 0; r == 0 && i < TABLES; i++)
                r = carry_table_out(pg, conn, q, &tables[i], err);
        return r == 0 ? carry_run_sql(q, "COMMIT", err) : r;
}

int store_carry_out(const char *address, const char *to, struct err *err)
{
        int fd = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), r;
        struct postgres pg = {0};
        struct sqlite q = {0};
        PGconn *conn = NULL;

        if (fd < 0)
                return err_set(err, -errno, "cannot make %s: %s", to, strerror(errno));
        close(fd);
        pg.address = (char *)address;
        r = pg_name(&pg, err);
        if (r == 0)
                r = pg_connect(&pg, &conn, err);
        if (r == 0)
                r = carry_open_file(&q, to, err);
        if (r == 0)
                r = carry_out(&pg, conn, &q, err);
        PQfinish(conn);
        sqlite3_close(q.db);
        free(pg.name);
        if (r != 0)
                unlink(to);
        return fold(r);
}

/* ---- SQLite to PostgreSQL */

static void add_u16(struct buf *b, uint16_t v)
{
        v = htobe16(v);
        buf_add(b, &v, sizeof(v));
}

static void add_field(struct buf *b, const void *p, size_t n)
{
        uint32_t size = htobe32((uint32_t)n);

        buf_add(b, &size, sizeof(size));
        buf_add(b, p, n);
}

/* Appends a row in the binary format of COPY. */
static void add_row(struct buf *b, const struct table *t, sqlite3_stmt *st)
{
        add_u16(b, (uint16_t)strlen(t->kinds));
        for (int i = 0; t->kinds[i]; i++) {
                uint64_t number = htobe64((uint64_t)sqlite3_column_int64(st, i));
                char truth = (char)(sqlite3_column_int64(st, i) != 0);

                if (t->kinds[i] == 'b') {
                        struct str s = sqlite_column(st, i);

                        add_field(b, s.p ? s.p : "", s.n);
                } else if (t->kinds[i] == 't') {
                        add_field(b, &truth, 1);
                } else {
                        add_field(b, &number, sizeof(number));
                }
        }
}

#define COPY_BYTES (1 << 18)

static int carry_table_in(const struct sqlite *q, const struct postgres *pg, const struct table *t,
                          struct err *err)
{
        BUF_CLEANUP struct buf sql = {0}, rows = {0};
        sqlite3_stmt *st = NULL;
        PGresult *res;
        int rc = SQLITE_ROW, r = 0;

        buf_printf(&sql, "SELECT %s FROM %s", t->columns, t->name);
        if (sqlite3_prepare_v2(q->db, buf_z(&sql), -1, &st, NULL) != SQLITE_OK)
                return fail_sqlite(q, err);
        buf_reset(&sql);
        buf_printf(&sql, "COPY drover_%s (%s) FROM STDIN (FORMAT binary)", t->name, t->columns);
        res = PQexec(pg->conn, buf_z(&sql));
        if (PQresultStatus(res) != PGRES_COPY_IN)
                r = pg_fail(pg, pg->conn, res, err);
        PQclear(res);
        buf_add(&rows, "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19);
        while (r == 0 && rc == SQLITE_ROW) {
                rc = sqlite3_step(st);
                if (rc == SQLITE_ROW)
                        add_row(&rows, t, st);
                else if (rc == SQLITE_DONE)
                        add_u16(&rows, UINT16_MAX);
                else
                        r = fail_sqlite(q, err);
                if (r == 0 && (rc == SQLITE_DONE || rows.n >= COPY_BYTES)) {
                        if (PQputCopyData(pg->conn, rows.p, (int)rows.n) != 1)
                                r = pg_fail(pg, pg->conn, NULL, err);
                        buf_reset(&rows);
                }
        }
        sqlite3_finalize(st);
        if (r != 0) /* the caller closes the connection, which ends the transaction */
                return r;
        if (PQputCopyEnd(pg->conn, NULL) != 1)
                return pg_fail(pg, pg->conn, NULL, err);
        while ((res = PQgetResult(pg->conn))) {
                if (r == 0 && pg_failed(res))
                        r = pg_fail(pg, pg->conn, res, err);
                PQclear(res);
        }
        return r;
}

static int carry_state_in(const struct sqlite *q, const struct postgres *pg, struct err *err)
{
        sqlite3_stmt *st = NULL;
        char sql[120];
        int r;

        if (sqlite3_prepare_v2(q->db, "SELECT term, cut FROM state", -1, &st, NULL) != SQLITE_OK)
                return fail_sqlite(q, err);
        if (sqlite3_step(st) == SQLITE_ROW) {
                snprintf(sql, sizeof(sql), "UPDATE drover_state SET term = %lld, cut = %lld, number = 1",
                         (long long)sqlite3_column_int64(st, 0), (long long)sqlite3_column_int64(st, 1));
                r = pg_run(pg, pg->conn, sql, NULL, err);
        } else {
                r = sqlite_corrupt(q, err, "its table of state is empty");
        }
        sqlite3_finalize(st);
        return r;
}

static int carry_in(struct sqlite *q, const struct postgres *pg, struct err *err)
{
        int r = sqlite_migrate(q, err);

        if (r == 0)
                r = carry_run_sql(q, "BEGIN", err);
        if (r == 0)
                r = pg_run(pg, pg->conn, "BEGIN", NULL, err);
        if (r == 0)
                r = carry_state_in(q, pg, err);
        for (size_t i = 0; r == 0 && i < TABLES; i++)
                r = carry_table_in(q, pg, &tables[i], err);
        return r == 0 ? pg_run(pg, pg->conn, "COMMIT", NULL, err) : r;
}

int store_carry_in(const char *from, const char *address, const struct store_place *place, struct err *err)
{
        struct postgres *pg;
        struct sqlite q = {0};
        int r = pg_open(address, place, &pg, err);

        if (r != 0)
                return r;
        if (pg->number > 0 || pg->last_seq > 0)
                r = err_set(err, -EEXIST,
                            "%s has a queue already: name an empty database or schema (--store)", pg->name);
        if (r == 0)
                r = carry_open_file(&q, from, err);
        if (r == 0) {
                PQexitPipelineMode(pg->conn);
                PQsetnonblocking(pg->conn, 0);
                r = carry_in(&q, pg, err);
        }
        sqlite3_close(q.db);
        pg->be.lost = true; /* writes no mark: records newer than the copy may have been lost */
        pg_close(pg);
        if (r == 0 && place->beside) {
                BUF_CLEANUP struct buf mark = {0};

                buf_printf(&mark, "%s.mark", place->beside);
                unlink(buf_z(&mark));
        }
        return fold(r);
}
