/* Reading from PostgreSQL. Each call takes a connection for itself (an idle one, or a new one), runs one
 * statement, and returns the connection. Rows are read from the socket one by one, so that a log of any
 * length needs little memory. If the connection is lost before the first row a new one is tried;
 * afterwards the call fails. */
#include <errno.h>
#include <time.h>

#include "base/system/clock.h"
#include "store/store_postgres.h"

#define AGAIN_MS 100

struct reading {
        struct postgres *pg;
        PGconn *conn;
        PGresult *res; /* the current row; after read_begin the first row */
        bool begun;    /* res is a row that was not returned yet */
        bool end;      /* all results were read */
};

static PGconn *reader_take(struct postgres *pg)
{
        PGconn *conn = NULL;

        pthread_mutex_lock(&pg->readers_lock);
        if (pg->reader_count > 0)
                conn = pg->readers[--pg->reader_count];
        pthread_mutex_unlock(&pg->readers_lock);
        return conn;
}

static void reader_give(struct postgres *pg, PGconn *conn)
{
        pthread_mutex_lock(&pg->readers_lock);
        if (pg->reader_count < PG_READERS_MAX) {
                pg->readers[pg->reader_count++] = conn;
                conn = NULL;
        }
        pthread_mutex_unlock(&pg->readers_lock);
        PQfinish(conn);
}

void pg_readers_close(struct postgres *pg)
{
        for (PGconn *conn; (conn = reader_take(pg));)
                PQfinish(conn);
}

/* Reads the next row. Returns 1: there is one; 0: there are no more; otherwise an error. */
static int next_row(struct reading *rd, struct err *err)
{
        int r;

        PQclear(rd->res);
        rd->res = NULL;
        for (;;) {
                r = pg_result(rd->pg, rd->conn, &rd->res, err);
                if (r != 0)
                        return r;
                if (!rd->res) {
                        rd->end = true;
                        return 0;
                }
                if (pg_failed(rd->res))
                        return pg_fail(rd->pg, rd->conn, rd->res, err);
                if (PQntuples(rd->res) > 0)
                        return 1;
                PQclear(rd->res);
                rd->res = NULL;
        }
}

/* Sends the statement and reads its first row, if there is one. */
static int send_query(struct reading *rd, const char *sql, const struct pg_params *p, struct err *err)
{
        int r;

        rd->end = rd->begun = false;
        if (!PQsendQueryParams(rd->conn, sql, p->count, NULL, p->values, p->lengths, p->formats, 1))
                return pg_fail(rd->pg, rd->conn, NULL, err);
        PQsetSingleRowMode(rd->conn);
        r = next_row(rd, err);
        rd->begun = r == 1;
        return r == 1 ? 0 : r;
}

static void drop_reading(struct reading *rd)
{
        PQclear(rd->res);
        PQfinish(rd->conn);
        rd->res = NULL;
        rd->conn = NULL;
}

/* Begins a read; postgres_read_end() must follow, also after a failure. */
static int postgres_read_begin(struct reading *rd, struct store_backend *be, const char *sql,
                               const struct pg_params *p, struct err *err)
{
        struct postgres *pg = (struct postgres *)be;
        int64_t until_ms = clock_boot_ms() + store_postgres_read_patience_ms;
        int r;

        *rd = (struct reading){.pg = pg};
        for (;;) {
                rd->conn = reader_take(pg);
                r = rd->conn ? 0 : pg_connect(pg, &rd->conn, err);
                if (r == 0)
                        r = send_query(rd, sql, p, err);
                if (r != PG_LOST)
                        break;
                drop_reading(rd);
                pg_readers_close(pg); /* the idle connections are probably lost too */
                if (clock_boot_ms() > until_ms)
                        return -ENOTCONN;
                nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000}, NULL);
        }
        return r == STORE_FULL || r == PG_FENCED ? -EIO : r;
}

static void postgres_read_end(struct reading *rd)
{
        if (rd->conn && rd->end && PQstatus(rd->conn) == CONNECTION_OK) {
                PQclear(rd->res);
                reader_give(rd->pg, rd->conn);
        } else { /* unread rows are left: close the connection */
                drop_reading(rd);
        }
}

/* Returns whether there is another row. At the end, or on an error, returns false: *r is then 0 or the
 * store's error. */
static bool postgres_read_row(struct reading *rd, int *r, struct err *err)
{
        if (rd->begun) {
                rd->begun = false;
                *r = 0;
                return true;
        }
        if (rd->end) {
                *r = 0;
                return false;
        }
        *r = next_row(rd, err);
        if (*r == 1) {
                *r = 0;
                return true;
        }
        if (*r == PG_LOST || *r == PG_FENCED || *r == STORE_FULL)
                *r = -ENOTCONN;
        return false;
}

static int postgres_missing(const struct postgres *pg, uint64_t seq, struct err *err)
{
        return pg_corrupt(pg, err, "record %llu is missing", (unsigned long long)seq);
}

/* The first row has the number 0, and has what is needed to check for gaps: the cut, and the newest
 * snapshot's number. */
int postgres_scan(struct store_backend *be, uint64_t from, store_scan_fn *fn, void *arg, struct err *err)
{
        struct pg_params p = {0};
        uint64_t next = 0, snapshot = 0;
        struct reading rd;
        int r;

        pg_param_number(&p, from);
        r = postgres_read_begin(
                &rd, be,
                "SELECT 0::bigint AS seq, cut AS crc, ''::bytea AS record,"
                " (SELECT coalesce(max(seq), 0) FROM drover_snapshot WHERE complete)"
                " FROM drover_state UNION ALL SELECT seq, crc, record, 0 FROM drover_log"
                " WHERE seq >= greatest($1::bigint, (SELECT cut + 1 FROM drover_state)) ORDER BY seq",
                &p, err);
        while (r == 0 && postgres_read_row(&rd, &r, err)) {
                uint64_t seq = pg_number(rd.res, 0, 0), crc = pg_number(rd.res, 0, 1);
                struct str record = pg_bytes(rd.res, 0, 2);

                if (seq == 0) {
                        next = crc + 1 > from ? crc + 1 : from;
                        snapshot = pg_number(rd.res, 0, 3);
                        continue;
                }
                if (next == 0)
                        break;
                if (seq != next)
                        r = postgres_missing(rd.pg, next, err);
                else if (store_record_crc(seq, record) != (uint32_t)crc)
                        r = pg_corrupt(rd.pg, err, "the checksum of record %llu is wrong",
                                       (unsigned long long)seq);
                else
                        r = fn(arg, seq, record, err);
                next++;
        }
        if (r == 0 && next == 0)
                r = pg_corrupt(rd.pg, err, "its table drover_state is empty");
        else if (r == 0 && next <= snapshot)
                r = postgres_missing(rd.pg, next, err);
        postgres_read_end(&rd);
        return r;
}

int postgres_follow_last(struct store_backend *be, uint64_t *ret_seq, struct err *err)
{
        const struct pg_params none = {0};
        struct reading rd;
        int r = postgres_read_begin(&rd, be, "SELECT " PG_LAST " FROM drover_state", &none, err);

        if (r == 0 && postgres_read_row(&rd, &r, err))
                *ret_seq = pg_number(rd.res, 0, 0);
        else if (r == 0)
                r = pg_corrupt(rd.pg, err, "its table drover_state is empty");
        while (r == 0 && postgres_read_row(&rd, &r, err)) /* to the end, so that the connection is kept */
                ;
        postgres_read_end(&rd);
        return r;
}

int postgres_snapshot_get(struct store_backend *be, uint64_t *ret_seq, struct buf *ret_data, struct err *err)
{
        const struct pg_params none = {0};
        uint64_t size = 0, seq = 0;
        struct reading rd;
        bool any = false;
        int r = postgres_read_begin(
                &rd, be,
                "SELECT s.seq, s.size, p.id, p.crc, p.data FROM drover_snapshot s"
                " LEFT JOIN drover_snapshot_part p"
                " ON p.id >= s.id << 20 AND p.id < (s.id + 1) << 20"
                " WHERE s.id = (SELECT max(id) FROM drover_snapshot WHERE complete) ORDER BY p.id",
                &none, err);

        buf_reset(ret_data);
        while (r == 0 && postgres_read_row(&rd, &r, err)) {
                struct str part = pg_bytes(rd.res, 0, 4);

                any = true;
                seq = pg_number(rd.res, 0, 0);
                size = pg_number(rd.res, 0, 1);
                if (part.n &&
                    store_record_crc(pg_number(rd.res, 0, 2), part) != (uint32_t)pg_number(rd.res, 0, 3))
                        r = pg_corrupt(rd.pg, err, "a checksum of the snapshot of record %llu is wrong",
                                       (unsigned long long)seq);
                buf_str(ret_data, part);
        }
        if (r == 0 && !any)
                r = err_set(err, STORE_NOT_FOUND, "there is no snapshot");
        else if (r == 0 && !ret_data->overflow && ret_data->n != size)
                r = pg_corrupt(rd.pg, err, "the snapshot of record %llu is not whole",
                               (unsigned long long)seq);
        else if (r == 0)
                r = buf_check(ret_data);
        if (r == 0)
                *ret_seq = seq;
        postgres_read_end(&rd);
        return r;
}

int postgres_blob_get(struct store_backend *be, struct str name, struct buf *ret_data, struct err *err)
{
        struct pg_params p = {0};
        struct reading rd;
        bool found = false;
        int r;

        pg_param_bytes(&p, name);
        r = postgres_read_begin(&rd, be, "SELECT crc, data FROM drover_blob WHERE name = $1::bytea", &p, err);
        while (r == 0 && postgres_read_row(&rd, &r, err)) {
                struct str data = pg_bytes(rd.res, 0, 1);

                found = true;
                buf_reset(ret_data);
                buf_str(ret_data, data);
                r = buf_check(ret_data);
                if (store_record_crc(name.n, data) != (uint32_t)pg_number(rd.res, 0, 0))
                        r = pg_corrupt(rd.pg, err, "the checksum of \"" STR_FMT "\" is wrong", STR_ARG(name));
        }
        if (r == 0 && !found)
                r = err_set(err, STORE_NOT_FOUND, "there is no \"" STR_FMT "\"", STR_ARG(name));
        postgres_read_end(&rd);
        return r;
}

/* Computes the first name after all names that begin with the prefix; empty when there is none. */
static void name_behind(struct str prefix, struct buf *ret)
{
        buf_str(ret, prefix);
        while (ret->n > 0 && (unsigned char)ret->p[ret->n - 1] == 0xff)
                buf_truncate(ret, ret->n - 1);
        if (ret->n > 0)
                ret->p[ret->n - 1]++;
}

int postgres_blob_list(struct store_backend *be, struct str prefix, struct str from, store_name_fn *fn,
                       void *arg, struct err *err)
{
        BUF_CLEANUP struct buf behind = {0};
        struct pg_params p = {0};
        struct reading rd;
        int r;

        name_behind(prefix, &behind);
        pg_param_bytes(&p, from);
        if (behind.n)
                pg_param_bytes(&p, buf_view(&behind));
        r = postgres_read_begin(
                &rd, be,
                behind.n ? "SELECT name FROM drover_blob WHERE name >= $1::bytea AND name < $2::bytea "
                           "ORDER BY name"
                         : "SELECT name FROM drover_blob WHERE name >= $1::bytea ORDER BY name",
                &p, err);
        while (r == 0 && postgres_read_row(&rd, &r, err))
                r = fn(arg, pg_bytes(rd.res, 0, 0));
        postgres_read_end(&rd);
        return r;
}

/* Rows of single members are selected by their index and then sorted. Rows of an owner or of a request are
 * in the requested order in their index. */
static void postgres_history_sql(const struct store_query *q, struct buf *sql, struct pg_params *p)
{
        const char *columns = "id, request, member, state, submitted, ended, exit_code, owner, crc, data";

        if (q->has_member)
                buf_addz(sql, "WITH chosen AS MATERIALIZED (");
        buf_printf(sql, "SELECT %s FROM drover_history WHERE true", columns);
        if (q->request) {
                pg_param_number(p, q->request);
                buf_printf(sql, " AND request = $%d::bigint", p->count);
        }
        if (q->has_member) {
                pg_param_number(p, q->member);
                buf_printf(sql, " AND member >= $%d::bigint", p->count);
                pg_param_number(p, q->member_end ? q->member_end : (uint64_t)q->member + 1);
                buf_printf(sql, " AND member < $%d::bigint", p->count);
        }
        if (q->owner.n) {
                pg_param_bytes(p, q->owner);
                buf_printf(sql, " AND owner = $%d::bytea", p->count);
        }
        if (q->before) {
                pg_param_number(p, q->before);
                buf_printf(sql, " AND id < $%d::bigint", p->count);
        }
        if (q->has_member)
                buf_printf(sql, ") SELECT %s FROM chosen", columns);
        buf_addz(sql, q->oldest ? " ORDER BY id" : " ORDER BY id DESC");
        if (q->limit) {
                pg_param_number(p, q->limit);
                buf_printf(sql, " LIMIT $%d::bigint", p->count);
        }
}

static int postgres_history_row(struct reading *rd, store_history_fn *fn, void *arg, struct err *err)
{
        const PGresult *res = rd->res;
        BUF_CLEANUP struct buf packed = {0};
        uint64_t row = pg_number(res, 0, 0);
        struct past_job h = {
                .request = pg_number(res, 0, 1),
                .member = (uint32_t)pg_number(res, 0, 2),
                .state = (uint32_t)pg_number(res, 0, 3),
                .submitted_ms = (int64_t)pg_number(res, 0, 4),
                .ended_ms = (int64_t)pg_number(res, 0, 5),
                .exit_code = (int32_t)pg_number(res, 0, 6),
                .owner = pg_bytes(res, 0, 7),
                .data = pg_bytes(res, 0, 9),
        };

        store_history_pack(&packed, &h);
        if (pack_crc32c(0, packed.p, packed.n) != (uint32_t)pg_number(res, 0, 8))
                return pg_corrupt(rd->pg, err, "the checksum of history row %llu is wrong",
                                  (unsigned long long)row);
        return fn(arg, row, &h);
}

int postgres_history(struct store_backend *be, const struct store_query *q, store_history_fn *fn, void *arg,
                     struct err *err)
{
        BUF_CLEANUP struct buf sql = {0};
        struct pg_params p = {0};
        struct reading rd;
        int r;

        postgres_history_sql(q, &sql, &p);
        r = postgres_read_begin(&rd, be, buf_z(&sql), &p, err);
        while (r == 0 && postgres_read_row(&rd, &r, err))
                r = postgres_history_row(&rd, fn, arg, err);
        postgres_read_end(&rd);
        return r;
}
