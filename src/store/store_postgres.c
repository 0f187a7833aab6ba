/* The PostgreSQL back end: addresses, opening, migrations, locking, closing. (Connections, writing and
 * reading have files of their own.)
 *
 * Everything is in tables drover_… of the current schema of the address. The writer holds an advisory lock
 * of that schema as long as its connection lives, which keeps a second server out. The lock ends with the
 * connection and so does not fence by itself: each writing transaction first updates the state row from
 * the term and the number that this server knows, or fails. See store_postgres_write.c.
 *
 * Two files are on the server's own disk: `<beside>.id` identifies the log, so that the database of
 * another server is refused; and `<beside>.mark` has the newest durable record (store_files.h), so that a
 * database that has lost records (an older copy, a failover to an incomplete standby) is refused. */
#include "store/store_postgres.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/uuid.h"
#include "store/schema_postgres.h"
#include "store/store_files.h"

/* "drov", and a number for the schema: pg_locks shows both numbers. */
#define LOCK "1685221238, hashtext(current_schema())"
#define LOCK_ROW                                                                                             \
        "locktype = 'advisory' AND granted AND classid = 1685221238"                                         \
        " AND objid = (hashtext(current_schema())::bigint & 4294967295)::oid"                                \
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
#define LOCK_WAIT "3s" /* for the session of a server that was just killed to end */

static const char *option(const PQconninfoOption *options, const char *key)
{
        for (; options->keyword; options++)
                if (strcmp(options->keyword, key) == 0)
                        return options->val && *options->val ? options->val : NULL;
        return NULL;
}

/* Returns "the PostgreSQL database x at host:port". libpq's own messages about an address may quote a
 * password. */
int pg_name(struct postgres *pg, struct err *err)
{
        char *message = NULL;
        PQconninfoOption *given = PQconninfoParse(pg->address, &message);
        struct buf name = {0};

        PQfreemem(message);
        if (!given)
                return err_set(err, -EINVAL,
                               "the store's address is not a valid postgresql:// URI: write "
                               "postgresql://USER@HOST:PORT/DATABASE (see \"Connection URIs\" in "
                               "PostgreSQL's documentation of libpq)");
        buf_printf(&name, "the PostgreSQL database %s",
                   option(given, "dbname") ? option(given, "dbname") : "of the default name");
        if (option(given, "host"))
                buf_printf(&name, " at %s", option(given, "host"));
        if (option(given, "port"))
                buf_printf(&name, ":%s", option(given, "port"));
        pg->name = buf_take(&name);
        PQconninfoFree(given);
        return 0;
}

/* ---- the lock */

static int say_holder(const struct postgres *pg, PGconn *conn, struct err *err)
{
        PGresult *res = NULL;
        int r = pg_run(
                pg, conn,
                "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE " LOCK_ROW,
                &res, err);

        if (r != 0)
                return r;
        r = err_set(err, STORE_LOCKED,
                    "%s is in use by %s: stop that server first, or choose another database or schema",
                    pg->name, PQntuples(res) > 0 ? PQgetvalue(res, 0, 0) : "another server");
        PQclear(res);
        return r;
}

static int lock_take(const struct postgres *pg, PGconn *conn, struct err *err)
{
        char sql[600];
        int r;

        if (pg->backend) { /* the session of our own lost connection: do not wait for its end */
                snprintf(sql, sizeof(sql),
                         "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE " LOCK_ROW " AND pid = %d",
                         pg->backend);
                r = pg_run(pg, conn, sql, NULL, err);
                if (r != 0)
                        return r;
        }
        r = pg_run(pg, conn, "SET lock_timeout = '" LOCK_WAIT "'", NULL, err);
        if (r == 0)
                r = pg_run(pg, conn, "SELECT pg_advisory_lock(" LOCK ")", NULL, err);
        if (r == PG_LOST && PQstatus(conn) == CONNECTION_OK)
                return say_holder(pg, conn, err);
        return r == 0 ? pg_run(pg, conn, "SET lock_timeout = 0", NULL, err) : r;
}

/* ---- identity of the log */

static int check_id(struct postgres *pg, struct err *err)
{
        BUF_CLEANUP struct buf name = {0}, text = {0};
        struct str id;
        int r;

        buf_printf(&name, "%s.id", pg->beside);
        r = fs_read(AT_FDCWD, buf_z(&name), 256, &text, err);
        id = str_trim(buf_view(&text));
        if (r == 0 && str_eqz(id, pg->store_id))
                return 0;
        if (r == 0)
                return err_set(err, STORE_FOREIGN,
                               "%s is the log of another server (%s; this one's is " STR_FMT
                               " by %s): name this server's own database",
                               pg->name, pg->store_id, STR_ARG(str_head(id, 40)), buf_z(&name));
        if (r != -ENOENT)
                return r;
        if (pg->last_seq > 0 || pg->number > 0)
                return err_set(err, STORE_FOREIGN,
                               "%s has the log of a server, and %s does not say that it is this one's: name "
                               "another database; or, if the server's folder was lost, write %s into that "
                               "file",
                               pg->name, buf_z(&name), pg->store_id);
        buf_reset(&text);
        buf_printf(&text, "%s\n", pg->store_id);
        return fs_write(AT_FDCWD, buf_z(&name), buf_view(&text), 0600, true, err);
}

/* ---- standby */

#define LOOK_MS 200

/* The leading server, as seen by one that stands by. */
struct leader {
        bool gone;       /* no session has the lock */
        uint64_t number; /* number of its last transaction */
        char id[40];     /* identity of the log; empty while there are no tables */
};

static int look_at_leader(const struct postgres *pg, PGconn *conn, struct leader *ret, struct err *err)
{
        PGresult *res = NULL;
        int r = pg_run(pg, conn, "SELECT pg_try_advisory_lock(" LOCK ")", &res, err);

        *ret = (struct leader){0};
        if (r != 0)
                return r;
        ret->gone = *PQgetvalue(res, 0, 0) == 't';
        PQclear(res);
        if (ret->gone) /* pg_writer_open takes it, in a session of its own */
                r = pg_run(pg, conn, "SELECT pg_advisory_unlock(" LOCK ")", NULL, err);
        if (r == 0)
                r = pg_run(pg, conn, "SELECT to_regclass('drover_state') IS NOT NULL", &res, err);
        if (r != 0)
                return r;
        bool tables = *PQgetvalue(res, 0, 0) == 't';
        PQclear(res);
        if (!tables)
                return 0;
        r = pg_run(pg, conn, "SELECT store, number FROM drover_state", &res, err);
        if (r == 0 && PQntuples(res) == 1) {
                snprintf(ret->id, sizeof(ret->id), "%s", PQgetvalue(res, 0, 0));
                ret->number = strtoull(PQgetvalue(res, 0, 1), NULL, 10);
        }
        if (r == 0)
                PQclear(res);
        return r;
}

/* Waits until no server leads. A leader whose number has not changed for standby_ms, by this machine's
 * clock, is frozen or disconnected, and its sessions are ended. What it had sent is committed or rolled
 * back before its lock is free, and what it sends later is fenced by the term. */
static int stand_by(struct postgres *pg, const struct store_place *place, struct err *err)
{
        int64_t moved_ms = clock_boot_ms();
        uint64_t number = 0;
        bool told = false;
        PGconn *conn = NULL;
        int r = pg_connect(pg, &conn, err);

        while (r == 0 || r == PG_LOST) {
                struct leader seen = {0};

                if (!conn)
                        r = pg_connect(pg, &conn, err);
                if (r == 0)
                        r = look_at_leader(pg, conn, &seen, err);
                /* check now, not when this server has to lead */
                if (r == 0 && !told && *seen.id && pg->beside) {
                        snprintf(pg->store_id, sizeof(pg->store_id), "%s", seen.id);
                        pg->number = seen.number;
                        r = check_id(pg, err);
                }
                if (r == 0 && seen.gone)
                        break;
                if (!told && r == 0 && place->standing_by)
                        place->standing_by(place->standing_arg);
                told = told || r == 0;
                if (r != 0 || seen.number != number) {
                        moved_ms = clock_boot_ms(); /* nothing is known while the database is unreachable */
                        number = r == 0 ? seen.number : number;
                } else if (clock_boot_ms() - moved_ms > place->standby_ms) {
                        r = pg_run(pg, conn, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE " LOCK_ROW,
                                   NULL, err);
                }
                if (r == PG_LOST && !told)
                        break;
                if (r == PG_LOST) {
                        PQfinish(conn);
                        conn = NULL;
                }
                nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
        }
        PQfinish(conn);
        return r;
}

/* ---- tables */

static int migrate(struct postgres *pg, PGconn *conn, struct err *err)
{
        const int newest = migrations[sizeof(migrations) / sizeof(migrations[0]) - 1].number;
        PGresult *res = NULL;
        int version = 0, tables;
        int r = pg_run(
                pg, conn,
                "SELECT to_regclass('drover_state') IS NOT NULL,"
                " (SELECT count(*) FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace"
                " AND c.relname IN ('drover_log', 'drover_blob', 'drover_history', 'drover_snapshot'))",
                &res, err);

        if (r != 0)
                return r;
        tables = (int)strtol(PQgetvalue(res, 0, 1), NULL, 10);
        if (*PQgetvalue(res, 0, 0) == 't') {
                PQclear(res);
                r = pg_run(pg, conn, "SELECT version FROM drover_state", &res, err);
                if (r != 0)
                        return r;
                if (PQntuples(res) != 1)
                        r = pg_corrupt(pg, err, "its table drover_state has %d rows", PQntuples(res));
                else
                        version = (int)strtol(PQgetvalue(res, 0, 0), NULL, 10);
        } else if (tables > 0) {
                r = pg_corrupt(pg, err, "it has tables of the log, but no drover_state");
        }
        PQclear(res);
        if (r == 0 && version > newest)
                return err_set(err, STORE_TOO_NEW,
                               "%s was made by a newer version (schema %d, this one knows up to %d): run "
                               "that version, or put back a backup from before the upgrade",
                               pg->name, version, newest);
        for (size_t i = 0; r == 0 && i < sizeof(migrations) / sizeof(migrations[0]); i++) {
                BUF_CLEANUP struct buf sql = {0};
                char id[UUID_TEXT];

                if (migrations[i].number <= version)
                        continue;
                uuid_new(id);
                buf_printf(&sql, "BEGIN; %s;", migrations[i].sql);
                if (version == 0 && i == 0)
                        buf_printf(&sql, "INSERT INTO drover_state (store) VALUES ('%s');", id);
                buf_printf(&sql, "UPDATE drover_state SET version = %d; COMMIT", migrations[i].number);
                r = pg_run(pg, conn, buf_z(&sql), NULL, err);
                if (r != 0)
                        err_prefix(err, r, "migration %d", migrations[i].number);
        }
        return r == STORE_FULL ? -ENOSPC : r;
}

struct state {
        char id[40];
        uint64_t term, number, last_seq, rows;
        int64_t snapshot_id;
};

static int read_state(const struct postgres *pg, PGconn *conn, struct state *ret, struct err *err)
{
        PGresult *res = NULL;
        int r = pg_run(pg, conn,
                       "SELECT store, term, number, " PG_LAST ","
                       " (SELECT coalesce(max(id), 0) FROM drover_history),"
                       " (SELECT coalesce(max(id), 0) FROM drover_snapshot) FROM drover_state",
                       &res, err);

        if (r != 0)
                return r;
        if (PQntuples(res) == 1) {
                snprintf(ret->id, sizeof(ret->id), "%s", PQgetvalue(res, 0, 0));
                ret->term = strtoull(PQgetvalue(res, 0, 1), NULL, 10);
                ret->number = strtoull(PQgetvalue(res, 0, 2), NULL, 10);
                ret->last_seq = strtoull(PQgetvalue(res, 0, 3), NULL, 10);
                ret->rows = strtoull(PQgetvalue(res, 0, 4), NULL, 10);
                ret->snapshot_id = strtoll(PQgetvalue(res, 0, 5), NULL, 10);
        } else {
                r = pg_corrupt(pg, err, "its table drover_state has %d rows", PQntuples(res));
        }
        PQclear(res);
        return r;
}

/* After a lost connection: checks whether the log is as this server left it, with or without the last
 * transaction. */
static int compare_state(const struct postgres *pg, const struct state *is, enum pg_open how, struct err *err)
{
        if (strcmp(is->id, pg->store_id) != 0)
                return err_set(err, STORE_FOREIGN,
                               "%s is the log of another server now (%s, and this one's is %s)", pg->name,
                               is->id, pg->store_id);
        if (is->term > pg->term && how == PG_AGAIN)
                return err_set(err, PG_FENCED, "another server holds a newer term");
        if (is->term < pg->term || is->number < pg->number || is->last_seq < pg->last_seq)
                return err_set(
                        err, STORE_CORRUPT,
                        "%s ends with record %llu, and %llu was durable in it: it is an older copy, or "
                        "a failover lost what no standby had; nothing was changed",
                        pg->name, (unsigned long long)is->last_seq, (unsigned long long)pg->last_seq);
        return 0;
}

int pg_writer_open(struct postgres *pg, enum pg_open how, struct err *err)
{
        struct state is = {0};
        PGconn *conn = NULL;
        int r = pg_connect(pg, &conn, err);

        if (r != 0)
                return r;
        if (how == PG_AGAIN) { /* report a newer term before waiting for its holder's lock */
                r = read_state(pg, conn, &is, err);
                if (r == 0)
                        r = compare_state(pg, &is, how, err);
        }
        if (r == 0)
                r = lock_take(pg, conn, err);
        if (r == 0)
                pg->backend = PQbackendPID(conn);
        if (r == 0 && how == PG_FIRST)
                r = migrate(pg, conn, err);
        if (r == 0)
                r = read_state(pg, conn, &is, err);
        if (r == 0 && how != PG_FIRST)
                r = compare_state(pg, &is, how, err);
        /* The last transaction was committed, but a session that ends while it waits for the database's own
         * standby leaves it in the primary alone. A commit that follows waits for that one as well. */
        if (r == 0 && how != PG_FIRST && is.number > pg->number)
                r = pg_run(pg, conn, "UPDATE drover_state SET version = version", NULL, err);
        if (r == 0)
                r = pg_prepare_writer(pg, conn, err);
        if (r == 0 && !PQenterPipelineMode(conn))
                r = pg_fail(pg, conn, NULL, err);
        if (r != 0) {
                PQfinish(conn);
                return r;
        }
        pg->conn = conn;
        pg->term = is.term;
        pg->number = is.number;
        pg->rows = is.rows;
        pg->snapshot_id = is.snapshot_id;
        if (how == PG_FIRST) {
                pg->last_seq = is.last_seq;
                snprintf(pg->store_id, sizeof(pg->store_id), "%s", is.id);
        }
        return 0;
}

/* ---- files on this machine */

static int postgres_check_mark(struct postgres *pg, struct err *err)
{
        enum store_mark kind;
        uint64_t mark;
        int r = store_mark_open(pg->beside, &pg->mark_fd, &kind, &mark, err);

        if (r != 0)
                return r;
        if (mark > pg->last_seq && kind == STORE_MARK_OPEN)
                return err_set(
                        err, STORE_CORRUPT,
                        "%s ends with record %llu, and %llu was durable in it: it is an older copy, or "
                        "a failover lost what no standby had; nothing was changed. Bring the newer one "
                        "back, or remove %s.mark to go on without what is lost",
                        pg->name, (unsigned long long)pg->last_seq, (unsigned long long)mark, pg->beside);
        pg->be.lost = kind == STORE_MARK_NONE ? pg->last_seq > 0 : mark > pg->last_seq;
        if (!pg->be.lost)
                store_mark_write(pg->mark_fd, STORE_MARK_OPEN, pg->last_seq);
        return 0;
}

/* ---- opening and closing */

void pg_close(struct postgres *pg)
{
        pg_readers_close(pg);
        if (pg->conn && pg->mark_fd >= 0 && !pg->be.lost)
                store_mark_write(pg->mark_fd, STORE_MARK_CLOSED, pg->last_seq);
        PQfinish(pg->conn);
        if (pg->mark_fd >= 0)
                close(pg->mark_fd);
        pthread_mutex_destroy(&pg->readers_lock);
        free(pg->beside);
        free(pg->name);
        free(pg->address);
        free(pg);
}

int pg_open(const char *address, const struct store_place *place, struct postgres **ret, struct err *err)
{
        struct postgres *pg = mem_new(struct postgres);
        int r;

        pg->be.ops = &store_postgres;
        pg->address = mem_dupz(address);
        pg->beside = place->beside ? mem_dupz(place->beside) : NULL;
        pg->trouble = place->trouble;
        pg->trouble_arg = place->trouble_arg;
        pg->mark_fd = -1;
        pthread_mutex_init(&pg->readers_lock, NULL);
        r = pg_name(pg, err);
        for (bool again = true; again;) {
                if (r == 0 && place->standby_ms > 0)
                        r = stand_by(pg, place, err);
                if (r == 0)
                        r = pg_writer_open(pg, PG_FIRST, err);
                again = r == STORE_LOCKED && place->standby_ms > 0; /* another server took the lock first */
                if (again)
                        r = 0;
        }
        if (r == 0 && pg->beside)
                r = check_id(pg, err);
        if (r == 0 && pg->beside)
                r = postgres_check_mark(pg, err);
        if (r == 0) {
                *ret = pg;
                return 0;
        }
        PQfinish(pg->conn);
        pg->conn = NULL;
        pg_close(pg);
        return r == PG_LOST || r == PG_FENCED ? -ENOTCONN : r == STORE_FULL ? -EROFS : r;
}

static int check_schema(const struct postgres *pg, PGconn *conn, struct err *err)
{
        const int newest = migrations[sizeof(migrations) / sizeof(migrations[0]) - 1].number;
        PGresult *res = NULL;
        int version, r = pg_run(pg, conn, "SELECT version FROM drover_state", &res, err);

        if (r != 0)
                return r;
        version = PQntuples(res) == 1 ? (int)strtol(PQgetvalue(res, 0, 0), NULL, 10) : 0;
        PQclear(res);
        return version == newest
                       ? 0
                       : err_set(err, version > newest ? STORE_TOO_NEW : -ENOENT,
                                 "%s has schema %d, this version reads %d", pg->name, version, newest);
}

static int postgres_follow(const char *path, const struct store_place *place, struct store_backend **ret,
                           struct err *err)
{
        struct postgres *pg = mem_new(struct postgres);
        struct buf address = {0};
        struct state is = {0};
        PGconn *conn = NULL;
        int r;

        buf_printf(&address, "postgresql:%s", path);
        pg->be.ops = &store_postgres;
        pg->address = buf_take(&address);
        pg->beside = place->beside ? mem_dupz(place->beside) : NULL;
        pg->mark_fd = -1;
        pthread_mutex_init(&pg->readers_lock, NULL);
        r = pg_name(pg, err);
        if (r == 0)
                r = pg_connect(pg, &conn, err);
        if (r == 0)
                r = check_schema(pg, conn, err);
        if (r == 0)
                r = read_state(pg, conn, &is, err);
        if (r == 0) {
                snprintf(pg->store_id, sizeof(pg->store_id), "%s", is.id);
                pg->last_seq = is.last_seq;
                pg->number = is.number;
                r = pg->beside ? check_id(pg, err) : 0;
        }
        PQfinish(conn);
        if (r == 0) {
                *ret = &pg->be;
                return 0;
        }
        pg_close(pg);
        return r == PG_LOST || r == PG_FENCED ? -ENOTCONN : r;
}

static void postgres_close(struct store_backend *be)
{
        pg_close((struct postgres *)be);
}

static int postgres_open(const char *path, const struct store_place *place, struct store_backend **ret,
                         uint64_t *ret_last_seq, bool *ret_network, struct err *err)
{
        BUF_CLEANUP struct buf address = {0};
        struct postgres *pg;
        int r;

        buf_printf(&address, "postgresql:%s", path);
        r = pg_open(buf_z(&address), place, &pg, err);
        if (r != 0)
                return r;
        *ret = &pg->be;
        *ret_last_seq = pg->last_seq;
        *ret_network = false;
        return 0;
}

/* The database manages its space: nothing is reserved here. */
static int postgres_reserve(struct store_backend *be)
{
        (void)be;
        return 0;
}

const struct store_backend_ops store_postgres = {
        .open = postgres_open,
        .follow = postgres_follow,
        .follow_last = postgres_follow_last,
        .close = postgres_close,
        .term_take = postgres_term_take,
        .commit = postgres_commit,
        .snapshot_slice = postgres_snapshot_slice,
        .reserve_release = postgres_reserve,
        .reserve_take = postgres_reserve,
        .scan = postgres_scan,
        .snapshot_get = postgres_snapshot_get,
        .blob_get = postgres_blob_get,
        .blob_list = postgres_blob_list,
        .history = postgres_history,
};
