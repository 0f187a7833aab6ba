/* Connections to PostgreSQL: connecting, waiting with a deadline, the meaning of errors, values in binary
 * format.
 *
 * libpq is used in non-blocking mode: output is flushed while answers are read, so that the two sides
 * cannot wait for each other. A server that is frozen, or behind a failed network, is silent for longer
 * than store_postgres_silence_ms; its connection then counts as lost. */
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "store/store_postgres.h"

#define BYTEA_OID  17
#define BIGINT_OID 20
#define VERSION    130000 /* the oldest server version that is known to work */

int store_postgres_patience_ms = 60000;
int store_postgres_read_patience_ms = 20000;
int store_postgres_silence_ms = 60000;

int pg_corrupt(const struct postgres *pg, struct err *err, const char *fmt, ...)
{
        struct err what = {0};
        va_list ap;

        va_start(ap, fmt);
        err_vset(&what, 0, fmt, ap);
        va_end(ap);
        return err_set(err, STORE_CORRUPT, "%s is damaged (%s); nothing was changed. Put back a backup of it",
                       pg->name, what.text);
}

/* Writes libpq's message as one line, without the parts that name a file and line of its source. */
static void one_line(const char *text, char *ret, size_t size)
{
        size_t n = 0;

        for (; *text && n + 1 < size; text++) {
                bool space = *text == '\n' || *text == '\t' || *text == ' ';

                if (!space || (n > 0 && ret[n - 1] != ' '))
                        ret[n++] = space ? ' ' : *text;
        }
        n -= n > 0 && ret[n - 1] == ' ';
        ret[n] = '\0';
}

int pg_fail(const struct postgres *pg, PGconn *conn, const PGresult *res, struct err *err)
{
        const char *state = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
        const char *primary = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
        char text[300];

        one_line(primary ? primary : PQerrorMessage(conn), text, sizeof(text));
        if (!state || PQstatus(conn) != CONNECTION_OK)
                return err_set(err, PG_LOST, "the connection to %s was lost (%s)", pg->name, text);
        static const struct {
                const char *state; /* an SQLSTATE, or its class */
                int code;
        } codes[] = {
                {"08", PG_LOST},          {"57P01", PG_LOST},       {"57P02", PG_LOST},
                {"57P03", PG_LOST},       {"57P04", -ENOENT},       {"57014", PG_LOST},
                {"57P05", PG_LOST},       {"25P03", PG_LOST},       {"40", PG_LOST},
                {"55P03", PG_LOST},       {"22012", PG_FENCED},     {"25006", STORE_FULL},
                {"53", STORE_FULL},       {"28", -EACCES},          {"42501", -EACCES},
                {"3D", -ENOENT},          {"3F", -ENOENT},          {"XX001", STORE_CORRUPT},
                {"XX002", STORE_CORRUPT}, {"42P01", STORE_CORRUPT}, {"42703", STORE_CORRUPT},
                {"42804", STORE_CORRUPT}, {"42P10", STORE_CORRUPT}, {"42883", STORE_CORRUPT},
        };
        for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
                if (!str_starts(str_of(state), str_of(codes[i].state)))
                        continue;
                if (codes[i].code == STORE_CORRUPT)
                        return pg_corrupt(pg, err, "%s", text);
                if (codes[i].code == STORE_FULL)
                        return err_set(err, STORE_FULL, "%s takes nothing now: %s", pg->name, text);
                return err_set(err, codes[i].code, "%s: %s (SQLSTATE %s)", pg->name, text, state);
        }
        return err_set(err, -EIO, "%s: %s (SQLSTATE %s)", pg->name, text, state);
}

bool pg_failed(const PGresult *res)
{
        switch (PQresultStatus(res)) {
        case PGRES_COMMAND_OK:
        case PGRES_TUPLES_OK:
        case PGRES_SINGLE_TUPLE:
        case PGRES_PIPELINE_SYNC: return false;
        default: return true;
        }
}

int pg_result(const struct postgres *pg, PGconn *conn, PGresult **ret, struct err *err)
{
        int64_t heard_ms = clock_mono_ns() / 1000000;

        for (;;) {
                int unsent = PQflush(conn);
                struct pollfd p = {.fd = PQsocket(conn), .events = POLLIN};
                int n;

                if (unsent >= 0 && !PQisBusy(conn)) {
                        *ret = PQgetResult(conn);
                        return 0;
                }
                if (p.fd < 0)
                        return pg_fail(pg, conn, NULL, err);
                if (unsent > 0)
                        p.events |= POLLOUT;
                n = poll(&p, 1, 1000);
                if (n < 0 && errno != EINTR)
                        return err_set(err, PG_LOST, "%s: poll: %s", pg->name, strerror(errno));
                if (n > 0) {
                        heard_ms = clock_mono_ns() / 1000000;
                        if ((p.revents & ~POLLOUT) && !PQconsumeInput(conn))
                                return pg_fail(pg, conn, NULL, err);
                } else if (clock_mono_ns() / 1000000 - heard_ms > store_postgres_silence_ms) {
                        return err_set(err, PG_LOST, "%s has not answered for %d s", pg->name,
                                       store_postgres_silence_ms / 1000);
                }
        }
}

int pg_run(const struct postgres *pg, PGconn *conn, const char *sql, PGresult **ret, struct err *err)
{
        PGresult *last = NULL, *res;
        int r = PQsendQuery(conn, sql) ? 0 : pg_fail(pg, conn, NULL, err);

        for (bool more = r == 0; more;) {
                int got = pg_result(pg, conn, &res, err);

                more = got == 0 && res;
                if (got != 0)
                        r = got;
                if (!more)
                        break;
                if (r == 0 && pg_failed(res))
                        r = pg_fail(pg, conn, res, err);
                PQclear(last);
                last = res;
        }
        if (r == 0 && ret) {
                *ret = last;
                return 0;
        }
        PQclear(last);
        return r;
}

static void quiet(void *arg, const char *message)
{
        (void)arg;
        (void)message;
}

/* Settings of every session. Other settings stay as they are in the address. */
static const char session[] =
        "SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0;"
        "SET client_min_messages = warning; SET jit = off; SET max_parallel_workers_per_gather = 0;"
        "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;"
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') = 'off';"
        "SELECT current_schema(), current_setting('fsync')";

static int check_session(const struct postgres *pg, PGconn *conn, struct err *err)
{
        PGresult *res = NULL;
        int version = PQserverVersion(conn), r;

        if (version < VERSION)
                return err_set(err, -ENOTSUP,
                               "%s is PostgreSQL %d: version %d is the oldest that can keep the log",
                               pg->name, version / 10000, VERSION / 10000);
        r = pg_run(pg, conn, session, &res, err);
        if (r != 0)
                return r;
        if (PQgetisnull(res, 0, 0))
                r = err_set(err, -ENOENT,
                            "%s has no schema that the user %s may use: make one (CREATE SCHEMA) and name "
                            "it in the address (?options=-csearch_path%%3DNAME)",
                            pg->name, PQuser(conn));
        else if (strcmp(PQgetvalue(res, 0, 1), "off") == 0)
                r = err_set(
                        err, -EINVAL,
                        "%s runs with fsync = off and would lose what was acknowledged: set fsync = on in "
                        "its postgresql.conf",
                        pg->name);
        PQclear(res);
        return r;
}

int pg_connect(const struct postgres *pg, PGconn **ret, struct err *err)
{
        char name[64], host[HOST_NAME_MAX + 1] = "";
        const char *const keys[] = {"connect_timeout",  "target_session_attrs",
                                    "keepalives_idle",  "keepalives_interval",
                                    "keepalives_count", "tcp_user_timeout",
                                    "dbname",           "application_name",
                                    "client_encoding",  NULL};
        const char *const values[] = {"10",    "read-write", "10", "5",    "3",
                                      "20000", pg->address,  name, "UTF8", NULL};
        PGconn *conn;
        int r;

        gethostname(host, sizeof(host) - 1);
        snprintf(name, sizeof(name), "droverd on %.30s, process %ld", host, (long)getpid());
        conn = PQconnectdbParams(keys, values, 1);
        if (!conn || PQstatus(conn) != CONNECTION_OK) {
                char text[400];

                one_line(conn ? PQerrorMessage(conn) : "no memory", text, sizeof(text));
                r = err_set(err, PG_LOST, "cannot use %s: %s", pg->name, text);
                PQfinish(conn);
                return r;
        }
        PQsetNoticeProcessor(conn, quiet, NULL);
        PQsetnonblocking(conn, 1);
        r = check_session(pg, conn, err);
        if (r != 0) {
                PQfinish(conn);
                return r;
        }
        *ret = conn;
        return 0;
}

/* ---- values */

void pg_param_bytes(struct pg_params *p, struct str s)
{
        p->values[p->count] = s.p ? s.p : "";
        p->lengths[p->count] = (int)s.n;
        p->formats[p->count++] = 1;
}

void pg_param_number(struct pg_params *p, uint64_t v)
{
        p->numbers[p->count] = htobe64(v);
        pg_param_bytes(p, str_make((const char *)&p->numbers[p->count], sizeof(v)));
}

uint64_t pg_number(const PGresult *res, int row, int column)
{
        uint64_t v = 0;

        if (PQgetlength(res, row, column) == (int)sizeof(v))
                memcpy(&v, PQgetvalue(res, row, column), sizeof(v));
        return be64toh(v);
}

struct str pg_bytes(const PGresult *res, int row, int column)
{
        return str_make(PQgetvalue(res, row, column), (size_t)PQgetlength(res, row, column));
}

static void add_u32(struct buf *b, uint32_t v)
{
        v = htobe32(v);
        buf_add(b, &v, sizeof(v));
}

/* Header: number of dimensions, whether there are NULLs, type of the elements, number of elements, index
 * of the first. */
static void array_element(struct pg_array *a, uint32_t type, const void *p, size_t n)
{
        if (a->count++ == 0) {
                add_u32(&a->b, 1);
                add_u32(&a->b, 0);
                add_u32(&a->b, type);
                add_u32(&a->b, 0);
                add_u32(&a->b, 1);
        }
        add_u32(&a->b, (uint32_t)n);
        buf_add(&a->b, p, n);
}

void pg_array_number(struct pg_array *a, uint64_t v)
{
        v = htobe64(v);
        array_element(a, BIGINT_OID, &v, sizeof(v));
}

void pg_array_bytes(struct pg_array *a, struct str s)
{
        array_element(a, BYTEA_OID, s.p ? s.p : "", s.n);
}

void pg_param_array(struct pg_params *p, struct pg_array *a)
{
        uint32_t count = htobe32(a->count);

        memcpy(a->b.p + 3 * sizeof(count), &count, sizeof(count));
        pg_param_bytes(p, buf_view(&a->b));
}

void pg_array_deinit(struct pg_array *a)
{
        buf_deinit(&a->b);
        *a = (struct pg_array){0};
}
